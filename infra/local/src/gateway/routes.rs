//! Which route a request takes: the most specific one that fits, as API Gateway chooses. Handles no request.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use crate::model::Route;

/// The routes of an API, the most specific first.
#[derive(Debug)]
pub(super) struct Routes(Vec<Entry>);

/// A route that fits a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Match<'a> {
    /// The route.
    pub(super) route: &'a Route,
    /// Values of the path's parameters, decoded.
    pub(super) parameters: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Entry {
    route: Route,
    segments: Vec<Segment>,
}

/// A part of a route's path. Their order is the order of their precedence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Literal(String),
    Parameter(String),
    Greedy(String),
}

impl Routes {
    pub(super) fn new(routes: &[Route]) -> Self {
        let entry = |route: &Route| Entry { route: route.clone(), segments: segments(&route.path) };
        let mut entries: Vec<_> = routes.iter().map(entry).collect();
        entries.sort_by(Entry::by_precedence);
        Self(entries)
    }

    /// Returns the route of a request. A path that fits with another method only is not found, as in API Gateway.
    pub(super) fn find(&self, method: &str, path: &str) -> Option<Match<'_>> {
        self.0.iter().filter(|entry| entry.takes(method)).find_map(|entry| {
            let parameters = fit(&entry.segments, path)?;
            Some(Match { route: &entry.route, parameters })
        })
    }
}

impl Entry {
    fn takes(&self, method: &str) -> bool {
        self.route.method.eq_ignore_ascii_case("ANY") || self.route.method.eq_ignore_ascii_case(method)
    }

    /// Compares segment by segment, literals before parameters before greedy ones; then a method goes before `ANY`.
    fn by_precedence(&self, other: &Self) -> Ordering {
        let ranks = |entry: &Self| entry.segments.iter().map(Segment::rank).collect::<Vec<_>>();
        let any = |entry: &Self| entry.route.method.eq_ignore_ascii_case("ANY");
        ranks(self).cmp(&ranks(other)).then_with(|| any(self).cmp(&any(other)))
    }
}

impl Segment {
    fn rank(&self) -> u8 {
        match self {
            Self::Literal(_) => 0,
            Self::Parameter(_) => 1,
            Self::Greedy(_) => 2,
        }
    }
}

/// Decodes `%XX`.
pub(super) fn decode_percent(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Splits a route's path; `$default` takes every path.
fn segments(path: &str) -> Vec<Segment> {
    if path == "$default" {
        return vec![Segment::Greedy(String::new())];
    }
    let segment = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) => match name.strip_suffix('+') {
            Some(name) => Segment::Greedy(name.to_owned()),
            None => Segment::Parameter(name.to_owned()),
        },
        None => Segment::Literal(part.to_owned()),
    };
    path.trim_start_matches('/').split('/').map(segment).collect()
}

/// Returns the parameters of a path that fits, and nothing if it does not.
fn fit(segments: &[Segment], path: &str) -> Option<BTreeMap<String, String>> {
    let mut parameters = BTreeMap::new();
    let mut rest = Some(path.trim_start_matches('/'));
    for segment in segments {
        let whole = rest?;
        let (part, after) = match whole.split_once('/') {
            Some((part, after)) => (part, Some(after)),
            None => (whole, None),
        };
        rest = after;
        match segment {
            Segment::Literal(literal) if literal == part || *literal == decode_percent(part) => {}
            Segment::Literal(_) => return None,
            Segment::Parameter(_) if part.is_empty() => return None,
            Segment::Parameter(name) => {
                parameters.insert(name.clone(), decode_percent(part));
            }
            Segment::Greedy(name) => {
                if !name.is_empty() {
                    parameters.insert(name.clone(), decode_percent(whole));
                }
                rest = None;
            }
        }
    }
    rest.is_none().then_some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Access;

    const ROUTES: [(&str, &str); 8] = [
        ("ANY", "$default"),
        ("GET", "/players/{player_id}"),
        ("GET", "/players/{player_id}/stats"),
        ("GET", "/players/me"),
        ("ANY", "/players/{player_id}"),
        ("GET", "/files/{path+}"),
        ("POST", "/games"),
        ("GET", "/"),
    ];

    fn check(without_default: bool, method: &str, path: &str, expected: Option<(&str, &[(&str, &str)])>) {
        let route = |(method, path): &(&str, &str)| Route {
            method: (*method).to_owned(),
            path: (*path).to_owned(),
            function: "api".to_owned(),
            access: Access::Anyone,
        };
        let routes: Vec<_> = ROUTES.iter().skip(usize::from(without_default)).map(route).collect();
        let routes = Routes::new(&routes);
        let found = routes.find(method, path).map(|found| {
            (format!("{} {}", found.route.method, found.route.path), found.parameters.into_iter().collect::<Vec<_>>())
        });
        let owned = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(found, expected.map(|(key, pairs)| (key.to_owned(), owned(pairs))), "{method} {path}");
    }

    #[test]
    fn a_literal_goes_before_a_parameter_and_a_method_before_any() {
        check(true, "GET", "/players/me", Some(("GET /players/me", &[])));
        check(true, "GET", "/players/7", Some(("GET /players/{player_id}", &[("player_id", "7")])));
        check(true, "DELETE", "/players/7", Some(("ANY /players/{player_id}", &[("player_id", "7")])));
        check(true, "GET", "/players/7/stats", Some(("GET /players/{player_id}/stats", &[("player_id", "7")])));
    }

    #[test]
    fn parameters_are_decoded() {
        check(true, "GET", "/players/a%2Fb%20c", Some(("GET /players/{player_id}", &[("player_id", "a/b c")])));
    }

    #[test]
    fn a_greedy_parameter_takes_the_rest() {
        check(true, "GET", "/files/a/b/c", Some(("GET /files/{path+}", &[("path", "a/b/c")])));
    }

    #[test]
    fn what_fits_no_route_is_not_found() {
        check(true, "GET", "/games", None);
        check(true, "POST", "/games/", None);
        check(true, "POST", "/games/7", None);
        check(true, "GET", "/players/", None);
        check(true, "GET", "/players/7/other", None);
        check(true, "GET", "/nothing", None);
        check(true, "GET", "/", Some(("GET /", &[])));
    }

    #[test]
    fn the_default_route_takes_what_no_other_takes() {
        check(false, "GET", "/nothing/at/all", Some(("ANY $default", &[])));
        check(false, "POST", "/games", Some(("POST /games", &[])));
    }
}
