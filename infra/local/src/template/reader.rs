//! The walk over all templates: each resource to the reader of its type, everything else to the report.

use std::borrow::Cow;

use super::error::{Place, TemplateError};
use super::fields::{Fields, Property};
use super::findings::Findings;
use super::node::{Data, Node};
use super::scope::Scope;
use super::{functions, globals, ignored, mappings, names, tables};

/// The one transform whose meaning the readers have built in.
const SERVERLESS_TRANSFORM: &str = "AWS::Serverless-2016-10-31";

/// A resource that exists, in the scope of its template.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resource<'t> {
    /// Scope of the template.
    pub(super) scope: Scope<'t>,
    logical_id: &'t str,
    node: &'t Node,
}

impl<'t> Resource<'t> {
    /// Takes a resource of a template, without asking whether it exists.
    pub(super) fn new(scope: Scope<'t>, logical_id: &'t str, node: &'t Node) -> Self {
        Self { scope, logical_id, node }
    }

    /// Where the resource stands.
    pub(super) fn place(&self) -> Place {
        self.scope.stack().place(self.logical_id, self.node.line)
    }

    /// The name under which the resource is found.
    ///
    /// # Errors
    /// A name that cannot be evaluated.
    pub(super) fn physical_name(&self) -> Result<String, TemplateError> {
        names::physical_name(self.scope, self.logical_id, self.node)
    }

    /// The resource's properties.
    ///
    /// # Errors
    /// Properties that are not a mapping.
    pub(super) fn properties(&self) -> Result<Fields<'t>, TemplateError> {
        self.attribute("Properties", self.place())
    }

    /// The resource's metadata.
    ///
    /// # Errors
    /// Metadata that is not a mapping.
    pub(super) fn metadata(&self) -> Result<Fields<'t>, TemplateError> {
        self.attribute("Metadata", self.place().property("Metadata", self.node.line))
    }

    fn attribute(&self, name: &str, place: Place) -> Result<Fields<'t>, TemplateError> {
        let Some(node) = self.node.get(name) else {
            return Ok(Fields::none(self.scope, place));
        };
        match Property::evaluate(self.scope, place.at(node.line), Cow::Borrowed(node))? {
            Some(properties) => properties.fields(),
            None => Ok(Fields::none(self.scope, place)),
        }
    }
}

/// Reads a stack and all that it nests.
///
/// # Errors
/// The first thing that is wrong.
pub(super) fn read_stack(scope: Scope<'_>, findings: &mut Findings) -> Result<(), TemplateError> {
    let stack = scope.stack();
    report_sections(scope, findings);
    for (logical_id, node) in stack.entries("Resources") {
        let resource = Resource::new(scope, logical_id, node);
        if scope.exists(&resource.place(), node)? {
            report_attributes(&resource, findings);
            read_resource(&resource, findings)?;
        }
    }
    Ok(())
}

fn read_resource(resource: &Resource<'_>, findings: &mut Findings) -> Result<(), TemplateError> {
    let kind = names::kind(resource.node);
    match kind {
        "AWS::DynamoDB::Table" => tables::read_table(resource, findings),
        "AWS::SQS::Queue" => tables::read_queue(resource, findings),
        "AWS::Serverless::Function" => functions::read_function(resource, findings),
        "AWS::Serverless::HttpApi" => functions::read_http_api(resource, findings),
        "AWS::Lambda::EventSourceMapping" => mappings::read_mapping(resource, findings),
        "AWS::Serverless::Application" => read_nested(resource, "Location", findings),
        "AWS::CloudFormation::Stack" => read_nested(resource, "TemplateURL", findings),
        _ if ignored::RESOURCES.iter().any(|(ignored, _)| *ignored == kind) => Ok(()),
        _ => {
            findings.unsupported(resource.place().property(kind, resource.node.line));
            Ok(())
        }
    }
}

fn read_nested(resource: &Resource<'_>, location: &str, findings: &mut Findings) -> Result<(), TemplateError> {
    let mut properties = resource.properties()?;
    properties.take("Parameters")?;
    if let Some(child) = resource.scope.stack().children.get(resource.logical_id) {
        properties.take(location)?;
        read_stack(resource.scope.of(*child), findings)?;
    }
    // A location that is not a path of this machine is still there and so is reported.
    findings.left_over(properties, ignored::NESTED_STACK);
    Ok(())
}

fn report_attributes(resource: &Resource<'_>, findings: &mut Findings) {
    for (name, node) in resource.node.entries().unwrap_or_default() {
        if !ignored::ATTRIBUTES.iter().any(|(ignored, _)| ignored == name) {
            findings.unsupported(resource.place().property(name, node.line));
        }
    }
}

fn report_sections(scope: Scope<'_>, findings: &mut Findings) {
    let stack = scope.stack();
    for (section, node) in stack.sections() {
        if !ignored::SECTIONS.iter().any(|(ignored, _)| ignored == section) {
            findings.unsupported(stack.place(section, node.line).property(section, node.line));
        }
        if section == "Transform" {
            for (name, line) in foreign_transforms(node) {
                findings.unsupported(stack.place(section, line).property(&name, line));
            }
        }
    }
    for (parameter, node) in stack.entries("Parameters") {
        for (name, value) in node.entries().unwrap_or_default() {
            if !ignored::PARAMETER.iter().any(|(ignored, _)| ignored == name) {
                findings.unsupported(stack.parameter(parameter, value.line).property(name, value.line));
            }
        }
    }
    for (section, node) in stack.entries("Globals") {
        if !globals::SECTIONS.iter().any(|(merged, _)| merged == section) {
            findings.unsupported(stack.place("Globals", node.line).property(section, node.line));
        }
    }
}

fn foreign_transforms(node: &Node) -> Vec<(String, usize)> {
    let foreign = |node: &Node| match node.as_text() {
        Some(SERVERLESS_TRANSFORM) => None,
        Some(other) => Some((other.to_owned(), node.line)),
        None => Some((node.describe(), node.line)),
    };
    match &node.data {
        Data::List(transforms) => transforms.iter().filter_map(foreign).collect(),
        Data::Text(_) | Data::Map(_) | Data::Nothing => foreign(node).into_iter().collect(),
    }
}
