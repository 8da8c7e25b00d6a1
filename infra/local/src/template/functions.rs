//! `AWS::Serverless::Function` and `AWS::Serverless::HttpApi`: what runs, and the routes that lead to it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::access::{self, Authorizers};
use super::error::{Place, TemplateError};
use super::fields::{Fields, Property};
use super::findings::Findings;
use super::mappings;
use super::reader::Resource;
use super::{ignored, names, schedules, stack};
use crate::model::{Function, Route};

/// The one way of building that is followed here.
const BUILD_METHOD: &str = "rust-cargolambda";
/// The payload that the local HTTP API sends, which is also the default.
const PAYLOAD_FORMAT: &str = "2.0";
const DEFAULT_TIMEOUT_SECONDS: u64 = 3;
const DEFAULT_MEMORY_MIB: u32 = 128;

/// Reads a function and the events that call it.
///
/// # Errors
/// A missing binary or code folder, values that Lambda does not take, and a name or route that is taken.
pub(super) fn read_function(resource: &Resource<'_>, findings: &mut Findings) -> Result<(), TemplateError> {
    let name = resource.physical_name()?;
    let binary = binary(resource, findings)?;
    let mut properties = resource.properties()?;
    properties.text("FunctionName")?;
    let code = properties.require("CodeUri")?;
    if code.text()?.contains("://") {
        return Err(code.invalid("a folder of this machine"));
    }
    let code = stack::normalize(&resource.scope.stack().folder.join(code.text()?));
    if let Some(runtime) = properties.take("Runtime")?
        && !runtime.text()?.starts_with("provided.")
    {
        findings.unsupported(runtime.place);
    }
    let environment = match properties.take("Environment")? {
        Some(environment) => environment_of(environment, findings)?,
        None => BTreeMap::new(),
    };
    let timeout = properties.number("Timeout", 1..=900)?.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
    let memory_mib = properties.number("MemorySize", 128..=10_240)?.unwrap_or(DEFAULT_MEMORY_MIB);
    let events = properties.take("Events")?;
    findings.left_over(properties, ignored::FUNCTION);
    let timeout = Duration::from_secs(timeout);
    let function = Function { name: name.clone(), binary, code, environment, timeout, memory_mib };
    findings.function(resource.place(), function)?;
    if let Some(events) = events {
        for (_, event) in events.fields()?.all()? {
            read_event(resource, &name, event, findings)?;
        }
    }
    Ok(())
}

/// Reads an HTTP API. Its routes are events of functions; here it only has to ask for nothing else.
///
/// # Errors
/// Values that cannot be evaluated.
pub(super) fn read_http_api(resource: &Resource<'_>, findings: &mut Findings) -> Result<(), TemplateError> {
    let mut properties = resource.properties()?;
    if let Some(stage) = properties.take("StageName")?
        && stage.text()? != "$default"
    {
        // Any other stage's name is part of every path.
        findings.unsupported(stage.place);
    }
    if let Some(auth) = properties.take("Auth")? {
        let (_, left_over) = access::read_authorizers(auth)?;
        left_over.into_iter().for_each(|place| findings.unsupported(place));
    }
    findings.left_over(properties, ignored::HTTP_API);
    Ok(())
}

fn binary(resource: &Resource<'_>, findings: &mut Findings) -> Result<String, TemplateError> {
    let mut metadata = resource.metadata()?;
    if let Some(method) = metadata.take("BuildMethod")?
        && method.text()? != BUILD_METHOD
    {
        findings.unsupported(method.place);
    }
    let missing = |place: &Place| TemplateError::MissingBinary { place: place.property("Binary", place.line) };
    let Some(properties) = metadata.take("BuildProperties")? else {
        let place = metadata.place();
        return Err(missing(&place.property("BuildProperties", place.line)));
    };
    let mut properties = properties.fields()?;
    let binary = properties.text("Binary")?.ok_or_else(|| missing(properties.place()))?;
    findings.left_over(properties, &[]);
    Ok(binary)
}

fn environment_of(property: Property<'_>, findings: &mut Findings) -> Result<BTreeMap<String, String>, TemplateError> {
    let mut environment = property.fields()?;
    let mut variables = BTreeMap::new();
    if let Some(declared) = environment.take("Variables")? {
        for (name, value) in declared.fields()?.all()? {
            variables.insert(name, value.text()?.to_owned());
        }
    }
    findings.left_over(environment, &[]);
    Ok(variables)
}

fn read_event(
    resource: &Resource<'_>,
    function: &str,
    event: Property<'_>,
    findings: &mut Findings,
) -> Result<(), TemplateError> {
    let place = event.place.clone();
    let mut event = event.fields()?;
    let kind = event.require("Type")?;
    let properties = match event.take("Properties")? {
        Some(properties) => properties.fields()?,
        None => Fields::none(resource.scope, place.property("Properties", place.line)),
    };
    findings.left_over(event, &[]);
    match kind.text()? {
        "HttpApi" => read_route(resource, function, properties, findings),
        "SQS" => mappings::read_queue_event(function, place, properties, findings),
        "DynamoDB" => mappings::read_stream_event(function, place, properties, findings),
        "Schedule" => schedules::read_schedule(function, properties, findings),
        _ => {
            findings.unsupported(kind.place);
            Ok(())
        }
    }
}

fn read_route(
    resource: &Resource<'_>,
    function: &str,
    mut properties: Fields<'_>,
    findings: &mut Findings,
) -> Result<(), TemplateError> {
    let authorizers = match properties.take("ApiId")? {
        Some(api) => authorizers(resource, &api)?,
        None => Authorizers::default(),
    };
    let access = match properties.take("Auth")? {
        Some(auth) => access::read_route(auth, &authorizers, findings)?,
        None => authorizers.of_a_route_that_says_nothing(),
    };
    if let Some(version) = properties.take("PayloadFormatVersion")?
        && version.text()? != PAYLOAD_FORMAT
    {
        findings.unsupported(version.place);
    }
    let (place, method, path) = (properties.place().clone(), properties.text("Method")?, properties.text("Path")?);
    findings.left_over(properties, &[]);
    let (Some(method), Some(path)) = (method, path) else {
        // A route without method and path takes what no other route does.
        findings.unsupported(place);
        return Ok(());
    };
    let method = method.to_ascii_uppercase();
    findings.route(place, Route { method, path, function: function.to_owned(), access })
}

/// Returns the authorizers of the API that an event names. It is one of its own template; SAM cannot add a route to any other.
fn authorizers(resource: &Resource<'_>, api: &Property<'_>) -> Result<Authorizers, TemplateError> {
    let scope = resource.scope;
    for (logical_id, node) in scope.stack().entries("Resources") {
        if names::kind(node) == "AWS::Serverless::HttpApi"
            && names::reference(scope, logical_id, node)? == api.text()?
        {
            return match Resource::new(scope, logical_id, node).properties()?.take("Auth")? {
                Some(auth) => Ok(access::read_authorizers(auth)?.0),
                None => Ok(Authorizers::default()),
            };
        }
    }
    Err(api.invalid("an AWS::Serverless::HttpApi of this template"))
}
