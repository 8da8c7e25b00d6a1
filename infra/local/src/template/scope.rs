//! Evaluation: what the intrinsic functions, parameters, conditions and references in one template stand for. Lazy, so
//! that what nobody asks for need not be known; a value made from itself is an error, not an endless loop.

use std::borrow::Cow;
use std::cell::RefCell;

use super::error::{Place, TemplateError};
use super::names;
use super::node::{Data, Node};
use super::stack::{Stack, StackId, Tree};

/// What is being evaluated right now, innermost last.
pub(super) type Active = RefCell<Vec<String>>;

/// One template with all that its expressions can refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'t> {
    /// The tree that the stack is part of.
    pub(super) tree: &'t Tree,
    id: StackId,
    active: &'t Active,
}

impl<'t> Scope<'t> {
    /// Makes the scope of one stack.
    pub(super) fn new(tree: &'t Tree, id: StackId, active: &'t Active) -> Self {
        Self { tree, id, active }
    }

    /// The scope of another stack of the same tree.
    pub(super) fn of(self, id: StackId) -> Self {
        Self { id, ..self }
    }

    /// The stack whose scope this is.
    pub(super) fn stack(self) -> &'t Stack {
        self.tree.stack(self.id)
    }

    /// Evaluates a node until it is a scalar, a list or a mapping; what is in it stays as it is.
    ///
    /// # Errors
    /// Unknown names, unknown functions, wrong arguments and values made from themselves.
    pub(super) fn head(self, place: &Place, node: &'t Node) -> Result<Cow<'t, Node>, TemplateError> {
        let Some((function, argument)) = node.call() else {
            return Ok(Cow::Borrowed(node));
        };
        let place = &place.at(node.line);
        let value = match function {
            "Ref" => self.reference(place, literal(place, argument)?)?,
            "Fn::If" => return self.chosen(place, argument),
            "Fn::GetAtt" => self.get_att(place, argument)?,
            "Fn::Sub" => self.sub(place, argument)?,
            "Fn::Join" => self.join(place, argument)?,
            "Fn::Select" => self.select(place, argument)?,
            "Fn::Split" => self.split(place, argument)?,
            "Fn::FindInMap" => self.find_in_map(place, argument)?,
            "Fn::ImportValue" => self.import(place, argument)?,
            other => {
                return Err(TemplateError::UnknownFunction { place: place.clone(), function: other.to_owned() });
            }
        };
        Ok(Cow::Owned(Node { line: node.line, ..value }))
    }

    /// Evaluates a node and all that is in it; absent values disappear.
    ///
    /// # Errors
    /// As [`Scope::head`].
    pub(super) fn full(self, place: &Place, node: &'t Node) -> Result<Node, TemplateError> {
        let node = match self.head(place, node)? {
            Cow::Borrowed(node) => node,
            Cow::Owned(value) => return Ok(value),
        };
        let data = match &node.data {
            Data::Text(text) => Data::Text(text.clone()),
            Data::Nothing => Data::Nothing,
            Data::List(items) => {
                let items =
                    items.iter().enumerate().map(|(index, item)| self.full(&place.item(index, item.line), item));
                let items = items.collect::<Result<Vec<Node>, TemplateError>>()?;
                Data::List(items.into_iter().filter(is_there).collect())
            }
            Data::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(name, node)| Ok((name.clone(), self.full(&place.property(name, node.line), node)?)));
                let entries = entries.collect::<Result<Vec<(String, Node)>, TemplateError>>()?;
                Data::Map(entries.into_iter().filter(|(_, node)| is_there(node)).collect())
            }
        };
        Ok(Node { line: node.line, data })
    }

    /// Evaluates a node that has to be a scalar.
    ///
    /// # Errors
    /// As [`Scope::head`], and for a list or a mapping.
    pub(super) fn text(self, place: &Place, node: &'t Node) -> Result<String, TemplateError> {
        let value = self.head(place, node)?;
        literal(&place.at(node.line), &value).map(str::to_owned)
    }

    /// Whether a resource or an output exists under its condition.
    ///
    /// # Errors
    /// A condition that cannot be evaluated.
    pub(super) fn exists(self, place: &Place, node: &'t Node) -> Result<bool, TemplateError> {
        match node.get("Condition") {
            Some(condition) => {
                let place = place.property("Condition", condition.line);
                self.condition(&place, literal(&place, condition)?)
            }
            None => Ok(true),
        }
    }

    /// What a parameter stands for: the given or passed value, else its default.
    ///
    /// # Errors
    /// A value that cannot be evaluated or that the declaration does not allow.
    pub(super) fn parameter(self, name: &str, declaration: &'t Node) -> Result<Node, TemplateError> {
        let place = self.stack().parameter(name, declaration.line);
        self.once(&place, &format!("parameter {name}"), || {
            let value = match self.passed(name)? {
                Some(value) => value,
                None => match declaration.get("Default") {
                    Some(default) => literal(&place, default)?.to_owned(),
                    None => return Err(TemplateError::MissingParameter { place: place.clone() }),
                },
            };
            typed_parameter(&place, declaration, &value)
        })
    }

    /// Checks the values of all parameters of this stack.
    ///
    /// # Errors
    /// A value that the declaration does not allow.
    pub(super) fn check_given(self) -> Result<(), TemplateError> {
        let declared = self.stack().entries("Parameters");
        declared.iter().try_for_each(|(name, declaration)| self.parameter(name, declaration).map(|_| ()))
    }

    /// Runs an evaluation unless it is already under way further out.
    pub(super) fn once<T>(
        self,
        place: &Place,
        what: &str,
        evaluate: impl FnOnce() -> Result<T, TemplateError>,
    ) -> Result<T, TemplateError> {
        let what = format!("{} {what}", self.stack().name);
        let begun = self.active.borrow().iter().position(|active| *active == what);
        if let Some(begun) = begun {
            let mut chain = self.active.borrow()[begun..].to_vec();
            chain.push(what);
            return Err(TemplateError::Cycle { place: place.clone(), chain: chain.join(" -> ") });
        }
        self.active.borrow_mut().push(what);
        let value = evaluate();
        self.active.borrow_mut().pop();
        value
    }

    /// What the output of a nested stack stands for.
    pub(super) fn output(self, place: &Place, logical_id: &str, output: &str) -> Result<Node, TemplateError> {
        let unknown = || TemplateError::UnknownAttribute {
            place: place.clone(),
            resource: logical_id.to_owned(),
            attribute: format!("Outputs.{output}"),
        };
        let child = self.of(*self.stack().children.get(logical_id).ok_or_else(unknown)?);
        let declaration = child.stack().entry("Outputs", output).ok_or_else(unknown)?;
        child.output_value(output, declaration)?.ok_or_else(unknown)
    }

    /// What an output of this stack stands for; nothing where its condition does not hold.
    pub(super) fn output_value(self, name: &str, declaration: &'t Node) -> Result<Option<Node>, TemplateError> {
        let place = self.stack().place("Outputs", declaration.line).property(name, declaration.line);
        if !self.exists(&place, declaration)? {
            return Ok(None);
        }
        let value = declaration
            .get("Value")
            .ok_or_else(|| TemplateError::MissingProperty { place: place.property("Value", declaration.line) })?;
        self.once(&place, &format!("output {name}"), || self.full(&place, value)).map(Some)
    }

    fn passed(self, name: &str) -> Result<Option<String>, TemplateError> {
        let Some((parent, resource)) = &self.stack().parent else {
            return Ok(self.tree.given.get(name).cloned());
        };
        let Some(node) = self.tree.passed(self.stack(), name) else {
            return Ok(None);
        };
        let parent = self.of(*parent);
        let place = parent.stack().place(resource, node.line).property("Parameters", node.line);
        let place = place.property(name, node.line);
        let value = parent.full(&place, node)?;
        match &value.data {
            Data::Nothing => Ok(None),
            // CloudFormation hands a list over as the text that a CommaDelimitedList takes.
            Data::List(items) => {
                let items = items.iter().map(|item| literal(&place, item));
                Ok(Some(items.collect::<Result<Vec<_>, _>>()?.join(",")))
            }
            Data::Text(_) | Data::Map(_) => literal(&place, &value).map(|text| Some(text.to_owned())),
        }
    }

    /// What `Ref` makes of a name.
    pub(super) fn reference(self, place: &Place, name: &str) -> Result<Node, TemplateError> {
        if name == "AWS::NoValue" {
            return Ok(Node { line: place.line, data: Data::Nothing });
        }
        if let Some(value) = names::pseudo_parameter(self.stack(), name) {
            return Ok(Node::text(place.line, value));
        }
        if let Some(declaration) = self.stack().entry("Parameters", name) {
            return self.parameter(name, declaration);
        }
        let resource = self.resource(place, name)?;
        names::reference(self, name, resource).map(|value| Node::text(place.line, value))
    }

    /// A resource that exists under its condition.
    pub(super) fn resource(self, place: &Place, name: &str) -> Result<&'t Node, TemplateError> {
        let unknown = || TemplateError::UnknownReference { place: place.clone(), name: name.to_owned() };
        let resource = self.stack().resource(name).ok_or_else(unknown)?;
        if self.exists(&self.stack().place(name, resource.line), resource)? { Ok(resource) } else { Err(unknown()) }
    }
}

/// The error for a value of the wrong shape.
pub(super) fn wrong_type(place: &Place, found: &Node, expected: &str) -> TemplateError {
    let place = if found.line > 0 { place.at(found.line) } else { place.clone() };
    TemplateError::WrongType { place, expected: expected.to_owned(), found: found.describe() }
}

/// The text of a node that has to be a scalar as it stands.
pub(super) fn literal<'n>(place: &Place, node: &'n Node) -> Result<&'n str, TemplateError> {
    node.as_text().ok_or_else(|| wrong_type(place, node, "a text"))
}

fn is_there(node: &Node) -> bool {
    node.data != Data::Nothing
}

/// Gives a parameter's text the declared type. Of the constraints, the listed values are checked here; patterns and
/// lengths are CloudFormation's to check.
fn typed_parameter(place: &Place, declaration: &Node, value: &str) -> Result<Node, TemplateError> {
    let invalid = |expected: &str| TemplateError::InvalidValue {
        place: place.clone(),
        value: format!("{value:?}"),
        expected: expected.to_owned(),
    };
    if let Some(Node { data: Data::List(allowed), .. }) = declaration.get("AllowedValues")
        && !allowed.iter().any(|allowed| allowed.as_text() == Some(value))
    {
        return Err(invalid("one of the parameter's AllowedValues"));
    }
    let items = || value.split(',').map(|item| Node::text(place.line, item.trim())).collect();
    match declaration.get("Type").and_then(Node::as_text) {
        Some("Number") if value.parse::<f64>().is_err() => Err(invalid("a number")),
        Some(list) if list == "CommaDelimitedList" || list.starts_with("List<") => Ok(Node::list(place.line, items())),
        Some(stored) if stored.starts_with("AWS::SSM::Parameter::Value<") => {
            Err(invalid("a value: it is kept in Parameter Store, which does not exist here"))
        }
        Some(_) => Ok(Node::text(place.line, value)),
        None => Err(TemplateError::MissingProperty { place: place.property("Type", declaration.line) }),
    }
}
