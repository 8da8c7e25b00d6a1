//! The tree of templates: the outermost one and the nested stacks that it names by local paths. Nothing is evaluated.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::error::{Place, TemplateError};
use super::globals;
use super::node::{Node, SyntaxError};

/// The outermost stack's name; a nested one's is its parent's and its logical id.
const ROOT_STACK_NAME: &str = "local";

/// Parameters whose values only a deployment can know, and what they are on one machine. A value that is given goes before.
const LOCAL_PARAMETERS: [(&str, &str); 1] = [("JwtIssuer", "https://issuer.localhost")];

/// Index of a stack in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StackId(usize);

/// All templates, the outermost one first.
#[derive(Debug)]
pub(super) struct Tree {
    stacks: Vec<Stack>,
    root_folder: PathBuf,
    /// Values given for the outermost template's parameters.
    pub(super) given: BTreeMap<String, String>,
}

/// One template in its place in the tree. A template that two resources name is two stacks.
#[derive(Debug)]
pub(super) struct Stack {
    /// The file as messages name it.
    pub(super) file: String,
    /// The file's folder, to which the paths in the template are relative.
    pub(super) folder: PathBuf,
    /// What `AWS::StackName` stands for.
    pub(super) name: String,
    /// The stack that nests this one, and the resource that does so.
    pub(super) parent: Option<(StackId, String)>,
    /// Nested stacks by logical id.
    pub(super) children: BTreeMap<String, StackId>,
    path: PathBuf,
    document: Node,
}

impl Tree {
    /// Reads a template and all that it nests.
    ///
    /// # Errors
    /// A file that is missing or is not YAML, a template without resources, a template that nests itself, and values
    /// for parameters that are not declared or the lack of one that is.
    pub(super) fn load(path: &Path, given: &BTreeMap<String, String>) -> Result<Self, TemplateError> {
        let unreadable = |source| TemplateError::Unreadable { file: path.display().to_string(), source };
        let path = normalize(&std::path::absolute(path).map_err(unreadable)?);
        let root_folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        let mut tree = Self { stacks: Vec::new(), root_folder, given: given.clone() };
        tree.add(path, ROOT_STACK_NAME.to_owned(), None)?;
        tree.give_local_parameters();
        for stack in &tree.stacks {
            tree.check_parameter_names(stack)?;
        }
        Ok(tree)
    }

    /// The outermost stack.
    pub(super) fn root(&self) -> StackId {
        StackId(0)
    }

    /// A stack by its index.
    pub(super) fn stack(&self, id: StackId) -> &Stack {
        &self.stacks[id.0]
    }

    /// All stacks, parents before children.
    pub(super) fn ids(&self) -> impl Iterator<Item = StackId> + use<> {
        (0..self.stacks.len()).map(StackId)
    }

    /// The value that a parent passes for a nested stack's parameter.
    pub(super) fn passed(&self, stack: &Stack, parameter: &str) -> Option<&Node> {
        let (parent, resource) = stack.parent.as_ref()?;
        self.stack(*parent).resource(resource)?.get("Properties")?.get("Parameters")?.get(parameter)
    }

    fn give_local_parameters(&mut self) {
        for (name, value) in LOCAL_PARAMETERS {
            let declaration = self.stack(self.root()).entry("Parameters", name);
            if declaration.is_some_and(|declaration| declaration.get("Default").is_none()) {
                self.given.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
    }

    fn add(
        &mut self,
        path: PathBuf,
        name: String,
        parent: Option<(StackId, String)>,
    ) -> Result<StackId, TemplateError> {
        let file = path.strip_prefix(&self.root_folder).unwrap_or(&path).display().to_string();
        let source = std::fs::read_to_string(&path)
            .map_err(|source| TemplateError::Unreadable { file: file.clone(), source })?;
        let mut document = Node::parse(&source).map_err(|SyntaxError { line, message }| TemplateError::Syntax {
            file: file.clone(),
            line,
            message,
        })?;
        globals::apply(&mut document);
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        let stack = Stack { file, folder, name, parent, children: BTreeMap::new(), path, document };
        stack.check_shape()?;
        let nested = stack.nested_paths();
        let id = StackId(self.stacks.len());
        self.stacks.push(stack);
        for (resource, line, path) in nested {
            self.check_not_nested_in_itself(id, &resource, line, &path)?;
            let name = format!("{}-{resource}", self.stack(id).name);
            let child = self.add(path, name, Some((id, resource.clone())))?;
            self.stacks[id.0].children.insert(resource, child);
        }
        Ok(id)
    }

    fn check_not_nested_in_itself(
        &self,
        id: StackId,
        resource: &str,
        line: usize,
        path: &Path,
    ) -> Result<(), TemplateError> {
        let mut ancestors = vec![id];
        while let Some((parent, _)) = ancestors.last().and_then(|last| self.stack(*last).parent.as_ref()) {
            ancestors.push(*parent);
        }
        if !ancestors.iter().any(|ancestor| self.stack(*ancestor).path == path) {
            return Ok(());
        }
        let mut files: Vec<&str> = ancestors.iter().rev().map(|ancestor| self.stack(*ancestor).file.as_str()).collect();
        let again = path.strip_prefix(&self.root_folder).unwrap_or(path).display().to_string();
        files.push(&again);
        Err(TemplateError::Cycle { place: self.stack(id).place(resource, line), chain: files.join(" -> ") })
    }

    fn check_parameter_names(&self, stack: &Stack) -> Result<(), TemplateError> {
        let declared = stack.entries("Parameters");
        let is_declared = |name: &str| declared.iter().any(|(parameter, _)| parameter == name);
        let unknown = match &stack.parent {
            None => self.given.keys().find(|name| !is_declared(name)).map(|name| stack.parameter(name, 0)),
            Some((parent, resource)) => {
                let parent = self.stack(*parent);
                let passed = parent.resource(resource).and_then(|node| node.get("Properties")?.get("Parameters"));
                let passed = passed.and_then(Node::entries).unwrap_or_default();
                let unknown = passed.iter().find(|(name, _)| !is_declared(name));
                unknown.map(|(name, node)| {
                    let place = parent.place(resource, node.line).property("Parameters", node.line);
                    place.property(name, node.line)
                })
            }
        };
        if let Some(place) = unknown {
            return Err(TemplateError::UnknownParameter { place });
        }
        let missing = declared.iter().find(|(name, declaration)| {
            let given = stack.parent.is_none() && self.given.contains_key(name);
            !given && self.passed(stack, name).is_none() && declaration.get("Default").is_none()
        });
        match missing {
            Some((name, node)) => Err(TemplateError::MissingParameter { place: stack.parameter(name, node.line) }),
            None => Ok(()),
        }
    }
}

impl Stack {
    /// The sections of the template in its order.
    pub(super) fn sections(&self) -> &[(String, Node)] {
        self.document.entries().unwrap_or_default()
    }

    /// The entries of a section; none where the section is absent.
    pub(super) fn entries(&self, section: &str) -> &[(String, Node)] {
        self.document.get(section).and_then(Node::entries).unwrap_or_default()
    }

    /// One entry of a section.
    pub(super) fn entry(&self, section: &str, name: &str) -> Option<&Node> {
        self.document.get(section)?.get(name)
    }

    /// A resource by its logical id.
    pub(super) fn resource(&self, logical_id: &str) -> Option<&Node> {
        self.entry("Resources", logical_id)
    }

    /// A place in this template.
    pub(super) fn place(&self, resource: &str, line: usize) -> Place {
        Place { file: Arc::from(self.file.as_str()), line, resource: Arc::from(resource), property: String::new() }
    }

    /// The place of a parameter's declaration.
    pub(super) fn parameter(&self, name: &str, line: usize) -> Place {
        self.place("Parameters", line).property(name, line)
    }

    fn check_shape(&self) -> Result<(), TemplateError> {
        let resources = self.document.get("Resources");
        if resources.is_none() {
            return Err(TemplateError::MissingProperty { place: self.place("Resources", self.document.line) });
        }
        for section in ["Parameters", "Mappings", "Conditions", "Globals", "Resources", "Outputs"] {
            let Some(node) = self.document.get(section) else {
                continue;
            };
            let Some(entries) = node.entries() else {
                return Err(not_a_mapping(self.place(section, node.line), node));
            };
            let scalar = entries.iter().find(|(_, entry)| section != "Conditions" && entry.entries().is_none());
            if let Some((name, entry)) = scalar {
                return Err(not_a_mapping(self.place(section, entry.line).property(name, entry.line), entry));
            }
        }
        for (name, resource) in self.entries("Resources") {
            if resource.get("Type").and_then(Node::as_text).is_none() {
                let place = self.place(name, resource.line).property("Type", resource.line);
                return Err(TemplateError::MissingProperty { place });
            }
        }
        Ok(())
    }

    fn nested_paths(&self) -> Vec<(String, usize, PathBuf)> {
        let nested = self.entries("Resources").iter().filter_map(|(name, resource)| {
            let location = nested_location(resource)?;
            Some((name.clone(), location.line, normalize(&self.folder.join(location.as_text()?))))
        });
        nested.collect()
    }
}

/// The local path of the template that a resource nests; nothing where it nests none or one from elsewhere.
pub(super) fn nested_location(resource: &Node) -> Option<&Node> {
    let location = match resource.get("Type")?.as_text()? {
        "AWS::Serverless::Application" => "Location",
        "AWS::CloudFormation::Stack" => "TemplateURL",
        _ => return None,
    };
    let location = resource.get("Properties")?.get(location)?;
    location.as_text().is_some_and(|text| !text.contains("://")).then_some(location)
}

/// Takes `.` and `..` out of a path without asking the file system.
pub(super) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => normal.push(component),
        }
    }
    normal
}

fn not_a_mapping(place: Place, node: &Node) -> TemplateError {
    TemplateError::WrongType { place, expected: "a mapping".to_owned(), found: node.describe() }
}
