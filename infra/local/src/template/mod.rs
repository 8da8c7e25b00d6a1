//! The template reader: from `template.yaml` and the stacks that it nests to the [`Model`] that the local stack is built
//! from. It evaluates what CloudFormation and SAM would, as far as it matters here, and starts nothing.
//!
//! What is declared ends in one of three ways: it is in the model, it is on the list of what means nothing on one
//! machine ([`ignored`]), or it is in [`Model::unsupported`].

mod access;
mod error;
mod fields;
mod findings;
mod functions;
mod globals;
pub mod ignored;
mod intrinsics;
mod mappings;
mod names;
mod node;
mod reader;
mod schedules;
mod scope;
mod stack;
mod tables;

use std::collections::BTreeMap;
use std::path::Path;

pub use error::{Place, TemplateError};
pub use names::{ACCOUNT_ID, REGION};

use crate::model::Model;

/// Reads a template, its nested stacks, and what they declare, with values for the outermost template's parameters.
///
/// # Errors
/// The first thing that is wrong, with its file, resource and property.
pub fn read(path: &Path, parameters: &BTreeMap<String, String>) -> Result<Model, TemplateError> {
    let tree = stack::Tree::load(path, parameters)?;
    let active = scope::Active::default();
    let root = scope::Scope::new(&tree, tree.root(), &active);
    root.check_given()?;
    let mut findings = findings::Findings::default();
    reader::read_stack(root, &mut findings)?;
    findings.finish()
}
