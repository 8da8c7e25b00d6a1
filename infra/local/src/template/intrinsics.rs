//! The intrinsic functions and conditions, one by one. What they are called on and with is in `scope`.

use std::borrow::Cow;

use super::error::{Place, TemplateError};
use super::names;
use super::node::{Data, Node};
use super::scope::{Scope, literal, wrong_type};

impl<'t> Scope<'t> {
    pub(super) fn get_att(self, place: &Place, argument: &'t Node) -> Result<Node, TemplateError> {
        let (name, attribute) = match &argument.data {
            Data::Text(text) => match text.split_once('.') {
                Some((name, attribute)) => (name.to_owned(), attribute.to_owned()),
                None => return Err(wrong_type(place, argument, "Resource.Attribute")),
            },
            Data::List(items) => match items.as_slice() {
                [name, attribute] => (literal(place, name)?.to_owned(), self.text(place, attribute)?),
                _ => return Err(wrong_type(place, argument, "a resource and an attribute")),
            },
            Data::Map(_) | Data::Nothing => return Err(wrong_type(place, argument, "a resource and an attribute")),
        };
        self.attribute(place, &name, &attribute)
    }

    fn attribute(self, place: &Place, name: &str, attribute: &str) -> Result<Node, TemplateError> {
        let resource = self.resource(place, name)?;
        match attribute.strip_prefix("Outputs.") {
            Some(output) => self.output(place, name, output),
            None => names::attribute(self, place, name, resource, attribute).map(|value| Node::text(place.line, value)),
        }
    }

    pub(super) fn sub(self, place: &Place, argument: &'t Node) -> Result<Node, TemplateError> {
        let (template, variables): (&str, &'t [(String, Node)]) = match &argument.data {
            Data::Text(text) => (text, &[]),
            Data::List(items) => match items.as_slice() {
                [template, variables] => {
                    let entries = variables.entries().ok_or_else(|| wrong_type(place, variables, "a mapping"))?;
                    (literal(place, template)?, entries)
                }
                _ => return Err(wrong_type(place, argument, "a text and a mapping")),
            },
            Data::Map(_) | Data::Nothing => return Err(wrong_type(place, argument, "a text")),
        };
        let mut result = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| wrong_type(place, argument, "a text in which every ${ is closed"))?;
            result.push_str(before);
            result.push_str(&self.substituted(place, name.trim(), variables)?);
            rest = after;
        }
        result.push_str(rest);
        Ok(Node::text(place.line, result))
    }

    fn substituted(self, place: &Place, name: &str, variables: &'t [(String, Node)]) -> Result<String, TemplateError> {
        if let Some(as_it_stands) = name.strip_prefix('!') {
            return Ok(format!("${{{as_it_stands}}}"));
        }
        if let Some((_, value)) = variables.iter().find(|(variable, _)| variable == name) {
            return self.text(place, value);
        }
        let value = match name.split_once('.') {
            Some((resource, attribute)) => self.attribute(place, resource, attribute)?,
            None => self.reference(place, name)?,
        };
        literal(place, &value).map(str::to_owned)
    }

    pub(super) fn join(self, place: &Place, argument: &'t Node) -> Result<Node, TemplateError> {
        let [separator, items] = arguments(place, argument, "a separator and a list")?;
        let items = self.list(place, items)?;
        let items = items.iter().map(|item| literal(place, item)).collect::<Result<Vec<_>, _>>()?;
        Ok(Node::text(place.line, items.join(literal(place, separator)?)))
    }

    pub(super) fn select(self, place: &Place, argument: &'t Node) -> Result<Node, TemplateError> {
        let [index, items] = arguments(place, argument, "an index and a list")?;
        let index = self.text(place, index)?;
        let items = self.list(place, items)?;
        let item = index.parse::<usize>().ok().and_then(|index| items.into_iter().nth(index));
        item.ok_or_else(|| TemplateError::InvalidValue {
            place: place.clone(),
            value: index,
            expected: "an index of the list".to_owned(),
        })
    }

    pub(super) fn split(self, place: &Place, argument: &'t Node) -> Result<Node, TemplateError> {
        let [separator, text] = arguments(place, argument, "a separator and a text")?;
        let text = self.text(place, text)?;
        let parts = text.split(literal(place, separator)?).map(|part| Node::text(place.line, part));
        Ok(Node::list(place.line, parts.collect()))
    }

    pub(super) fn find_in_map(self, place: &Place, argument: &'t Node) -> Result<Node, TemplateError> {
        let [map, first, second] = arguments(place, argument, "a mapping and two keys")?;
        let (map, first, second) = (self.text(place, map)?, self.text(place, first)?, self.text(place, second)?);
        let entry = self.stack().entry("Mappings", &map).and_then(|map| map.get(&first)?.get(&second));
        entry.cloned().ok_or_else(|| TemplateError::UnknownReference {
            place: place.clone(),
            name: format!("{map}.{first}.{second}"),
        })
    }

    pub(super) fn import(self, place: &Place, argument: &'t Node) -> Result<Node, TemplateError> {
        let wanted = self.text(place, argument)?;
        for id in self.tree.ids() {
            let scope = self.of(id);
            for (name, declaration) in scope.stack().entries("Outputs") {
                let Some(export) = declaration.get("Export").and_then(|export| export.get("Name")) else {
                    continue;
                };
                if scope.text(place, export)? == wanted
                    && let Some(value) = scope.output_value(name, declaration)?
                {
                    return Ok(value);
                }
            }
        }
        Err(TemplateError::UnknownReference { place: place.clone(), name: wanted })
    }

    pub(super) fn chosen(self, place: &Place, argument: &'t Node) -> Result<Cow<'t, Node>, TemplateError> {
        let [condition, then, otherwise] = arguments(place, argument, "a condition and two values")?;
        let holds = self.condition(place, literal(place, condition)?)?;
        self.head(place, if holds { then } else { otherwise })
    }

    pub(super) fn condition(self, place: &Place, name: &str) -> Result<bool, TemplateError> {
        let unknown = || TemplateError::UnknownReference { place: place.clone(), name: name.to_owned() };
        let condition = self.stack().entry("Conditions", name).ok_or_else(unknown)?;
        let place = self.stack().place("Conditions", condition.line).property(name, condition.line);
        self.once(&place, &format!("condition {name}"), || self.holds(&place, condition))
    }

    fn holds(self, place: &Place, node: &'t Node) -> Result<bool, TemplateError> {
        let Some([(function, argument)]) = node.entries() else {
            return Err(wrong_type(place, node, "a condition"));
        };
        match function.as_str() {
            "Condition" => self.condition(place, literal(place, argument)?),
            "Fn::Equals" => {
                let [left, right] = arguments(place, argument, "two values")?;
                Ok(self.text(place, left)? == self.text(place, right)?)
            }
            "Fn::Not" => {
                let [condition] = arguments(place, argument, "one condition")?;
                self.holds(place, condition).map(|holds| !holds)
            }
            "Fn::And" | "Fn::Or" => {
                let Data::List(conditions) = &argument.data else {
                    return Err(wrong_type(place, argument, "a list of conditions"));
                };
                let conditions = conditions.iter().map(|condition| self.holds(place, condition));
                let conditions = conditions.collect::<Result<Vec<bool>, _>>()?;
                Ok(match function.as_str() {
                    "Fn::And" => conditions.into_iter().all(|holds| holds),
                    _ => conditions.into_iter().any(|holds| holds),
                })
            }
            other => Err(TemplateError::UnknownFunction { place: place.clone(), function: other.to_owned() }),
        }
    }

    fn list(self, place: &Place, node: &'t Node) -> Result<Vec<Node>, TemplateError> {
        let value = self.full(place, node)?;
        match value.data {
            Data::List(items) => Ok(items),
            Data::Text(_) | Data::Map(_) | Data::Nothing => Err(wrong_type(place, &value, "a list")),
        }
    }
}

fn arguments<'n, const N: usize>(
    place: &Place,
    argument: &'n Node,
    expected: &str,
) -> Result<&'n [Node; N], TemplateError> {
    let items = match &argument.data {
        Data::List(items) => items.as_slice().try_into().ok(),
        Data::Text(_) | Data::Map(_) | Data::Nothing => None,
    };
    items.ok_or_else(|| wrong_type(place, argument, expected))
}
