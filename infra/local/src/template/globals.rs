//! SAM's `Globals`: what a template says once for all its resources of a type.

use super::node::{Data, Node};

/// Sections of `Globals` that are merged, and the type of resource that each is for.
pub(super) const SECTIONS: [(&str, &str); 2] =
    [("Function", "AWS::Serverless::Function"), ("HttpApi", "AWS::Serverless::HttpApi")];

/// Merges the globals of a template into the properties of its resources.
pub(super) fn apply(document: &mut Node) {
    for (section, kind) in SECTIONS {
        let global = document.get("Globals").and_then(|globals| globals.get(section)).cloned();
        if let Some(global) = global
            && let Some(resources) = value_mut(document, "Resources")
            && let Data::Map(resources) = &mut resources.data
        {
            let of_kind = |resource: &Node| resource.get("Type").and_then(Node::as_text) == Some(kind);
            resources.iter_mut().filter(|(_, node)| of_kind(node)).for_each(|(_, node)| apply_to(node, &global));
        }
    }
}

fn apply_to(resource: &mut Node, global: &Node) {
    match value_mut(resource, "Properties") {
        Some(properties) => merge(global, properties),
        None => {
            if let Data::Map(attributes) = &mut resource.data {
                attributes.push(("Properties".to_owned(), global.clone()));
            }
        }
    }
}

/// As SAM documents it: mappings are merged, lists are joined with the global items first, and anything else is
/// replaced by what the resource says.
fn merge(global: &Node, own: &mut Node) {
    if global.call().is_some() || own.call().is_some() {
        return;
    }
    match (&global.data, &mut own.data) {
        (Data::Map(global), Data::Map(own)) => {
            for (key, value) in global {
                match own.iter_mut().find(|(name, _)| name == key) {
                    Some((_, node)) => merge(value, node),
                    None => own.push((key.clone(), value.clone())),
                }
            }
        }
        (Data::List(global), Data::List(own)) => {
            own.splice(0..0, global.iter().cloned());
        }
        _ => {}
    }
}

fn value_mut<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    match &mut node.data {
        Data::Map(entries) => entries.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value),
        Data::Text(_) | Data::List(_) | Data::Nothing => None,
    }
}
