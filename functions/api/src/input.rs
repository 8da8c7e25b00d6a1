//! Reads requests: bodies field by field, so that everything that is wrong is named at once and not only the first of it.

use std::fmt::Display;
use std::str::FromStr;

use axum::body::{Body, to_bytes};
use axum::extract::Query;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Uri};
use events::Rating;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::problem::{FieldError, Kind, Place, Problem};

/// Bytes of a body, at most.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;
/// Characters of an idempotency key, at most.
const IDEMPOTENCY_KEY_LENGTH_MAX: usize = 255;
/// Characters of a field's name that an answer repeats, at most.
const NAME_LENGTH_MAX: usize = 64;
/// Header that a missing id is derived from.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Reads a body as JSON. A body without a content type is taken for JSON; any type but JSON's is refused, so that no plain
/// HTML form can send a command.
pub(crate) async fn json(headers: &HeaderMap, body: Body) -> Result<Value, Problem> {
    if let Some(content_type) = headers.get(CONTENT_TYPE)
        && !is_json(content_type.to_str().unwrap_or_default())
    {
        let detail = "A body has to be of type application/json.";
        return Err(Problem::new(Kind::UnsupportedMediaType, detail)
            .with_error(Place::Header("Content-Type"), "is not application/json"));
    }
    let Ok(bytes) = to_bytes(body, BODY_BYTES_MAX).await else {
        let detail = format!("A body has at most {BODY_BYTES_MAX} bytes.");
        return Err(Problem::new(Kind::TooLarge, &detail).with_error(Place::Pointer("#".to_owned()), detail));
    };
    let mut deserializer = serde_json::Deserializer::from_slice(&bytes);
    let value: Value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let pointer = error.path().iter().fold("#".to_owned(), |pointer, segment| child(&pointer, &name_of(segment)));
        not_json(pointer, error.inner())
    })?;
    deserializer.end().map_err(|error| not_json("#".to_owned(), &error))?;
    Ok(value)
}

fn not_json(pointer: String, error: &serde_json::Error) -> Problem {
    Problem::new(Kind::NotJson, "The body could not be read as JSON.")
        .with_error(Place::Pointer(pointer), error.to_string())
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn name_of(segment: &serde_path_to_error::Segment) -> String {
    match segment {
        serde_path_to_error::Segment::Seq { index } => index.to_string(),
        serde_path_to_error::Segment::Map { key } => key.clone(),
        serde_path_to_error::Segment::Enum { variant } => variant.clone(),
        serde_path_to_error::Segment::Unknown => "?".to_owned(),
    }
}

/// The object that a body is, or holds. Fields that are wrong are noted in its errors.
pub(crate) struct Object<'a> {
    pointer: String,
    fields: Option<&'a Map<String, Value>>,
    errors: Vec<FieldError>,
}

impl<'a> Object<'a> {
    /// Takes a body for an object with no other fields than these.
    pub(crate) fn body(body: &'a Value, known: &[&str]) -> Self {
        let mut object = Self { pointer: "#".to_owned(), fields: body.as_object(), errors: Vec::new() };
        if object.fields.is_none() {
            object.note("#".to_owned(), "is not an object");
        }
        object.refuse_others(known);
        object
    }

    /// Reads a field, which must be there.
    pub(crate) fn required<T>(&mut self, name: &str, read: impl FnOnce(&'a Value) -> Result<T, String>) -> Option<T> {
        if self.fields.is_some_and(|fields| !fields.contains_key(name)) {
            self.note(child(&self.pointer, name), "is missing");
        }
        self.optional(name, read)
    }

    /// Reads a field, if it is there. `null` is a value like any other.
    pub(crate) fn optional<T>(&mut self, name: &str, read: impl FnOnce(&'a Value) -> Result<T, String>) -> Option<T> {
        match read(self.fields?.get(name)?) {
            Ok(value) => Some(value),
            Err(detail) => {
                self.note(child(&self.pointer, name), detail);
                None
            }
        }
    }

    /// Reads a field, which is this value if it is not there.
    pub(crate) fn optional_or<T>(
        &mut self,
        name: &str,
        absent: T,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<T> {
        if self.fields?.contains_key(name) { self.optional(name, read) } else { Some(absent) }
    }

    /// Reads an id; without one in the body it is derived from the request's idempotency key.
    pub(crate) fn id<T: FromStr<Err: Display>>(
        &mut self,
        name: &str,
        headers: &HeaderMap,
        derive: impl FnOnce(&str) -> T,
    ) -> Option<T> {
        if self.fields?.contains_key(name) {
            return self.optional(name, text);
        }
        let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
            self.note(child(&self.pointer, name), format!("is missing, and so is the header {IDEMPOTENCY_KEY}"));
            return None;
        };
        match value.to_str().map(str::trim) {
            Ok(key) if (1..=IDEMPOTENCY_KEY_LENGTH_MAX).contains(&key.len()) => Some(derive(key)),
            Ok(_) | Err(_) => {
                let detail = format!("is not 1 to {IDEMPOTENCY_KEY_LENGTH_MAX} printable ASCII characters");
                self.errors.push(FieldError { place: Place::Header(IDEMPOTENCY_KEY), detail });
                None
            }
        }
    }

    /// Reads a field, which must be there and an object with no other fields than these.
    pub(crate) fn object<T>(
        &mut self,
        name: &str,
        known: &[&str],
        read: impl FnOnce(&mut Object<'a>) -> Option<T>,
    ) -> Option<T> {
        let fields = self.required(name, |value| value.as_object().ok_or_else(|| "is not an object".to_owned()));
        let mut object = Object { pointer: child(&self.pointer, name), fields, errors: Vec::new() };
        object.refuse_others(known);
        let value = fields.and_then(|_| read(&mut object));
        self.errors.append(&mut object.errors);
        value
    }

    /// Notes what is wrong with a field beyond its own form.
    pub(crate) fn note_field(&mut self, path: &[&str], detail: impl Into<String>) {
        let pointer = path.iter().fold(self.pointer.clone(), |pointer, name| child(&pointer, name));
        self.note(pointer, detail);
    }

    /// Ends the reading: what was read if all of it was good. `None` has noted an error before.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Problem> {
        value.filter(|_| self.errors.is_empty()).ok_or_else(|| Problem::invalid(self.errors))
    }

    fn refuse_others(&mut self, known: &[&str]) {
        let names = self.fields.into_iter().flat_map(Map::keys);
        let others: Vec<String> = names.filter(|name| !known.contains(&name.as_str())).cloned().collect();
        for name in others {
            self.note(child(&self.pointer, &name), "is not a known field");
        }
    }

    fn note(&mut self, pointer: String, detail: impl Into<String>) {
        self.errors.push(FieldError { place: Place::Pointer(pointer), detail: detail.into() });
    }
}

/// Reads a text of some form.
pub(crate) fn text<T: FromStr<Err: Display>>(value: &Value) -> Result<T, String> {
    let text = value.as_str().ok_or_else(|| "is not text".to_owned())?;
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Reads a rating: a whole number, not a text and not a fraction.
pub(crate) fn rating(value: &Value) -> Result<Rating, String> {
    let points = value.as_i64().ok_or_else(|| format!("is not a whole number from 0 to {}", Rating::MAX.points()))?;
    Rating::try_from(points).map_err(|error| error.to_string())
}

/// Reads how many rows a page may have, `rows_max` at most.
pub(crate) fn limit(text: &str, rows_max: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(limit) if (1..=rows_max).contains(&limit) => Ok(limit),
        Ok(_) | Err(_) => Err(format!("is not a whole number from 1 to {rows_max}")),
    }
}

/// Reads a value that is one of a few texts.
pub(crate) fn one_of<T: for<'de> Deserialize<'de>>(value: &Value, texts: &str) -> Result<T, String> {
    // An enum would also be read from an object with one key.
    let known = if value.is_string() { T::deserialize(value).ok() } else { None };
    known.ok_or_else(|| format!("is not one of {texts}"))
}

/// Reads a parameter of the path.
pub(crate) fn path_parameter<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error: T::Err| invalid_parameter(name, error.to_string()))
}

/// Returns the problem of a parameter that is wrong.
pub(crate) fn invalid_parameter(name: &str, detail: impl Into<String>) -> Problem {
    Problem::invalid(vec![parameter_error(name, detail)])
}

/// The parameters of a query. Those that are wrong are noted.
pub(crate) struct Parameters {
    pairs: Vec<(String, String)>,
    errors: Vec<FieldError>,
}

impl Parameters {
    /// Takes the parameters of a query that has no others than these, and each once.
    pub(crate) fn of(uri: &Uri, known: &[&str]) -> Result<Self, Problem> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| Problem::invalid(vec![parameter_error("", error.body_text())]))?;
        let mut errors = Vec::new();
        for (index, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                errors.push(parameter_error(name, "is not a known parameter"));
            } else if pairs[..index].iter().any(|(before, _)| before == name) {
                errors.push(parameter_error(name, "is given more than once"));
            }
        }
        Ok(Self { pairs, errors })
    }

    /// Reads a parameter, if it is there.
    pub(crate) fn optional<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let (_, text) = self.pairs.iter().find(|(other, _)| other == name)?;
        match read(text) {
            Ok(value) => Some(value),
            Err(detail) => {
                self.note(name, detail);
                None
            }
        }
    }

    /// Notes what is wrong with a parameter beyond its own form.
    pub(crate) fn note(&mut self, name: &str, detail: impl Into<String>) {
        self.errors.push(parameter_error(name, detail));
    }

    /// Ends the reading: the problem, if there is one.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        if self.errors.is_empty() { Ok(()) } else { Err(Problem::invalid(self.errors)) }
    }
}

fn parameter_error(name: &str, detail: impl Into<String>) -> FieldError {
    FieldError { place: Place::Parameter(shortened(name)), detail: detail.into() }
}

fn shortened(name: &str) -> String {
    name.chars().take(NAME_LENGTH_MAX).collect()
}

/// Returns the pointer to a field of what `pointer` points to.
fn child(pointer: &str, name: &str) -> String {
    let mut child = format!("{pointer}/");
    for byte in shortened(name).replace('~', "~0").replace('/', "~1").bytes() {
        // What a URI fragment may hold as it is stays readable.
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@?".contains(&byte) {
            child.push(char::from(byte));
        } else {
            child.push_str(&format!("%{byte:02X}"));
        }
    }
    child
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_json() {
        for good in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.chess+json"] {
            assert!(is_json(good), "{good}");
        }
        for bad in ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "image/svg+json"] {
            assert!(!is_json(bad), "{bad}");
        }
    }

    #[test]
    fn pointers_are_escaped() {
        assert_eq!(child("#/white", "rating"), "#/white/rating");
        assert_eq!(child("#", "a/b~c d\u{e9}"), "#/a~1b~0c%20d%C3%A9");
        assert_eq!(child("#", &"x".repeat(1_000)).len(), 2 + NAME_LENGTH_MAX);
    }
}
