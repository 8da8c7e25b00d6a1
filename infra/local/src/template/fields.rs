//! Typed access to a resource's properties. What is never asked for is left over, and what is left over is reported.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::error::{Place, TemplateError};
use super::node::{Data, Node};
use super::scope::{Scope, literal, wrong_type};

/// A property that is there, evaluated down to its shape.
#[derive(Debug)]
pub(super) struct Property<'t> {
    /// Where it stands.
    pub(super) place: Place,
    scope: Scope<'t>,
    node: Cow<'t, Node>,
}

/// The properties of a mapping that have not been asked for yet.
#[derive(Debug)]
pub(super) struct Fields<'t> {
    place: Place,
    scope: Scope<'t>,
    entries: Vec<(String, Cow<'t, Node>)>,
}

impl<'t> Property<'t> {
    /// Evaluates a value; nothing where it is `AWS::NoValue`.
    ///
    /// # Errors
    /// A value that cannot be evaluated.
    pub(super) fn evaluate(scope: Scope<'t>, place: Place, node: Cow<'t, Node>) -> Result<Option<Self>, TemplateError> {
        let node = match node {
            Cow::Borrowed(node) => scope.head(&place, node)?,
            // What evaluation has made holds no more functions.
            Cow::Owned(node) => Cow::Owned(node),
        };
        Ok(if node.data == Data::Nothing { None } else { Some(Self { place, scope, node }) })
    }

    /// The value as text.
    ///
    /// # Errors
    /// A list or a mapping.
    pub(super) fn text(&self) -> Result<&str, TemplateError> {
        literal(&self.place, &self.node)
    }

    /// The value as a whole number within a range.
    ///
    /// # Errors
    /// Anything else.
    pub(super) fn number<T>(&self, range: RangeInclusive<T>) -> Result<T, TemplateError>
    where
        T: FromStr + PartialOrd + Display,
    {
        let number = self.text()?.parse::<T>().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| self.invalid(&format!("a whole number from {} to {}", range.start(), range.end())))
    }

    /// The value as a truth value.
    ///
    /// # Errors
    /// Anything but `true` and `false`.
    pub(super) fn boolean(&self) -> Result<bool, TemplateError> {
        match self.text()?.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.invalid("true or false")),
        }
    }

    /// The value as one of some words.
    ///
    /// # Errors
    /// Any other value.
    pub(super) fn one_of(&self, words: &[&str]) -> Result<&str, TemplateError> {
        let text = self.text()?;
        if words.contains(&text) { Ok(text) } else { Err(self.invalid(&format!("one of {}", words.join(", ")))) }
    }

    /// The items of a list; absent ones are left out.
    ///
    /// # Errors
    /// A value that is not a list, and an item that cannot be evaluated.
    pub(super) fn items(self) -> Result<Vec<Property<'t>>, TemplateError> {
        let items: Vec<Cow<'t, Node>> = match self.node {
            Cow::Borrowed(Node { data: Data::List(items), .. }) => items.iter().map(Cow::Borrowed).collect(),
            Cow::Owned(Node { data: Data::List(items), .. }) => items.into_iter().map(Cow::Owned).collect(),
            Cow::Borrowed(_) | Cow::Owned(_) => return Err(wrong_type(&self.place, &self.node, "a list")),
        };
        let items = items.into_iter().enumerate().map(|(index, node)| {
            let place = self.place.item(index, node.line);
            Property::evaluate(self.scope, place, node)
        });
        Ok(items.collect::<Result<Vec<_>, TemplateError>>()?.into_iter().flatten().collect())
    }

    /// The properties of a mapping.
    ///
    /// # Errors
    /// A value that is not a mapping.
    pub(super) fn fields(self) -> Result<Fields<'t>, TemplateError> {
        let entries = match self.node {
            Cow::Borrowed(Node { data: Data::Map(entries), .. }) => {
                entries.iter().map(|(name, node)| (name.clone(), Cow::Borrowed(node))).collect()
            }
            Cow::Owned(Node { data: Data::Map(entries), .. }) => {
                entries.into_iter().map(|(name, node)| (name, Cow::Owned(node))).collect()
            }
            Cow::Borrowed(_) | Cow::Owned(_) => return Err(wrong_type(&self.place, &self.node, "a mapping")),
        };
        Ok(Fields { place: self.place, scope: self.scope, entries })
    }

    /// The error for a value that the property does not take.
    pub(super) fn invalid(&self, expected: &str) -> TemplateError {
        let value = match &self.node.data {
            Data::Text(text) => text.clone(),
            Data::List(_) | Data::Map(_) | Data::Nothing => self.node.describe(),
        };
        TemplateError::InvalidValue { place: self.place.clone(), value, expected: expected.to_owned() }
    }
}

impl<'t> Fields<'t> {
    /// The properties of something that declares none.
    pub(super) fn none(scope: Scope<'t>, place: Place) -> Self {
        Self { place, scope, entries: Vec::new() }
    }

    /// Takes a property out.
    ///
    /// # Errors
    /// A value that cannot be evaluated.
    pub(super) fn take(&mut self, name: &str) -> Result<Option<Property<'t>>, TemplateError> {
        let Some(index) = self.entries.iter().position(|(entry, _)| entry == name) else {
            return Ok(None);
        };
        let (_, node) = self.entries.remove(index);
        Property::evaluate(self.scope, self.place.property(name, node.line), node)
    }

    /// Takes out a property that has to be there.
    ///
    /// # Errors
    /// A property that is missing or cannot be evaluated.
    pub(super) fn require(&mut self, name: &str) -> Result<Property<'t>, TemplateError> {
        self.take(name)?
            .ok_or_else(|| TemplateError::MissingProperty { place: self.place.property(name, self.place.line) })
    }

    /// Takes out a number that may be absent.
    ///
    /// # Errors
    /// As [`Property::number`].
    pub(super) fn number<T>(&mut self, name: &str, range: RangeInclusive<T>) -> Result<Option<T>, TemplateError>
    where
        T: FromStr + PartialOrd + Display,
    {
        self.take(name)?.map(|property| property.number(range)).transpose()
    }

    /// Takes out a text that may be absent.
    ///
    /// # Errors
    /// As [`Property::text`].
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, TemplateError> {
        self.take(name)?.map(|property| property.text().map(str::to_owned)).transpose()
    }

    /// Takes out a truth value that may be absent.
    ///
    /// # Errors
    /// As [`Property::boolean`].
    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>, TemplateError> {
        self.take(name)?.map(|property| property.boolean()).transpose()
    }

    /// Takes all properties out.
    ///
    /// # Errors
    /// A value that cannot be evaluated.
    pub(super) fn all(mut self) -> Result<Vec<(String, Property<'t>)>, TemplateError> {
        let names: Vec<String> = self.entries.iter().map(|(name, _)| name.clone()).collect();
        let all = names.into_iter().map(|name| Ok(self.take(&name)?.map(|property| (name, property))));
        Ok(all.collect::<Result<Vec<_>, TemplateError>>()?.into_iter().flatten().collect())
    }

    /// The places of the properties that nobody has asked for and that are not known to mean nothing here.
    pub(super) fn left_over(self, ignored: &[(&str, &str)]) -> Vec<Place> {
        let is_ignored = |name: &str| ignored.iter().any(|(property, _)| *property == name);
        let left_over = self.entries.iter().filter(|(name, _)| !is_ignored(name));
        left_over.map(|(name, node)| self.place.property(name, node.line)).collect()
    }

    /// Where the mapping stands.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }
}
