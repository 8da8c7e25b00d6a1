//! A template's text as a tree: YAML with CloudFormation's short tags, every node with its line. Nothing is evaluated.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

/// Nesting that no template needs; deeper ones would only exhaust the stack.
const DEPTH_MAX: usize = 100;

/// Functions that have a short tag. `!Ref` and `!Condition` stand for themselves, the others for `Fn::<name>`.
const FUNCTION_TAGS: [&str; 18] = [
    "And",
    "Base64",
    "Cidr",
    "Equals",
    "FindInMap",
    "GetAZs",
    "GetAtt",
    "If",
    "ImportValue",
    "Join",
    "Length",
    "Not",
    "Or",
    "Select",
    "Split",
    "Sub",
    "ToJsonString",
    "Transform",
];

/// A value in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// Line on which the value begins, from 1.
    pub(super) line: usize,
    /// The value.
    pub(super) data: Data,
}

/// A value without its line. CloudFormation converts between text, numbers and booleans, so that all scalars are text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Data {
    /// A scalar.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in the order of the file; a function is a mapping with its long name as the only key.
    Map(Vec<(String, Node)>),
    /// `AWS::NoValue`: what holds it is as if it were not there. Only evaluation makes it.
    Nothing,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    /// Line, from 1.
    pub(super) line: usize,
    /// What is wrong there.
    pub(super) message: String,
}

impl Node {
    /// Makes a scalar.
    pub(super) fn text(line: usize, text: impl Into<String>) -> Self {
        Self { line, data: Data::Text(text.into()) }
    }

    /// Makes a sequence.
    pub(super) fn list(line: usize, items: Vec<Node>) -> Self {
        Self { line, data: Data::List(items) }
    }

    /// Parses the one document of a file.
    ///
    /// # Errors
    /// The first thing that is not YAML or that CloudFormation does not take: aliases, merge keys, repeated keys,
    /// null values, unknown tags.
    pub(super) fn parse(source: &str) -> Result<Self, SyntaxError> {
        Builder { events: Parser::new_from_str(source), line: 1 }.document()
    }

    /// The value of a key, where this is a mapping that has it.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().and_then(|entries| entries.iter().find(|(name, _)| name == key).map(|(_, node)| node))
    }

    /// The entries, where this is a mapping.
    pub(super) fn entries(&self) -> Option<&[(String, Node)]> {
        match &self.data {
            Data::Map(entries) => Some(entries),
            Data::Text(_) | Data::List(_) | Data::Nothing => None,
        }
    }

    /// The text, where this is a scalar.
    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            Data::List(_) | Data::Map(_) | Data::Nothing => None,
        }
    }

    /// The function that this mapping calls and its argument, where it calls one.
    pub(super) fn call(&self) -> Option<(&str, &Node)> {
        match self.entries()? {
            [(name, argument)] if name == "Ref" || name.starts_with("Fn::") => Some((name, argument)),
            _ => None,
        }
    }

    /// What this is, in words for a message.
    pub(super) fn describe(&self) -> String {
        match &self.data {
            Data::Text(text) => format!("the text {text:?}"),
            Data::List(items) => format!("a list of {}", items.len()),
            Data::Map(_) => "a mapping".to_owned(),
            Data::Nothing => "AWS::NoValue".to_owned(),
        }
    }
}

struct Builder<'s> {
    events: Parser<'s, StrInput<'s>>,
    line: usize,
}

impl<'s> Builder<'s> {
    fn document(mut self) -> Result<Node, SyntaxError> {
        let root = loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_), _) => {}
                (Event::StreamEnd, _) => return Err(self.error("the file is empty")),
                (event, line) => break self.node(event, line, 0)?,
            }
        };
        loop {
            match self.next()? {
                (Event::DocumentEnd, _) => {}
                (Event::StreamEnd, _) => return Ok(root),
                _ => return Err(self.error("a template is one document, here a second one begins")),
            }
        }
    }

    fn node(&mut self, event: Event<'s>, line: usize, depth: usize) -> Result<Node, SyntaxError> {
        if depth > DEPTH_MAX {
            return Err(self.error("the nesting is too deep"));
        }
        match event {
            Event::Scalar(text, style, _, tag) => {
                if style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL") {
                    return Err(self.error("the value is empty; null values are not allowed in templates"));
                }
                self.tagged(Node::text(line, text), tag.as_deref())
            }
            Event::SequenceStart(_, tag) => {
                let items = self.items(depth)?;
                self.tagged(Node::list(line, items), tag.as_deref())
            }
            Event::MappingStart(_, tag) => {
                let entries = self.mapping(depth)?;
                self.tagged(Node { line, data: Data::Map(entries) }, tag.as_deref())
            }
            Event::Alias(_) => Err(self.error("aliases are not allowed in templates")),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => Err(self.error("a value is missing")),
        }
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Node>, SyntaxError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, line) => items.push(self.node(event, line, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Vec<(String, Node)>, SyntaxError> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => return Ok(entries),
                (Event::Scalar(key, ..), _) => key.into_owned(),
                _ => return Err(self.error("a key must be text")),
            };
            if key == "<<" {
                return Err(self.error("merge keys are not allowed in templates"));
            }
            if entries.iter().any(|(taken, _)| *taken == key) {
                return Err(self.error(&format!("the key {key} is there twice")));
            }
            let (event, line) = self.next()?;
            entries.push((key, self.node(event, line, depth + 1)?));
        }
    }

    /// Turns a short tag into the long form, so that only one form is evaluated.
    fn tagged(&self, node: Node, tag: Option<&Tag>) -> Result<Node, SyntaxError> {
        let Some(tag) = tag else { return Ok(node) };
        if tag.is_yaml_core_schema() {
            return Ok(node);
        }
        let name = tag.suffix.as_str();
        let function = match name {
            "Ref" | "Condition" => name.to_owned(),
            _ if tag.handle == "!" && FUNCTION_TAGS.contains(&name) => format!("Fn::{name}"),
            _ => return Err(self.error(&format!("the tag {}{name} is not known", tag.handle))),
        };
        Ok(Node { line: node.line, data: Data::Map(vec![(function, node)]) })
    }

    fn next(&mut self) -> Result<(Event<'s>, usize), SyntaxError> {
        match self.events.next() {
            Some(Ok((event, Span { start, .. }))) => {
                self.line = start.line();
                Ok((event, self.line))
            }
            Some(Err(error)) => Err(scan_error(&error)),
            None => Err(self.error("the file ends in the middle of a value")),
        }
    }

    fn error(&self, message: &str) -> SyntaxError {
        SyntaxError { line: self.line, message: message.to_owned() }
    }
}

fn scan_error(error: &ScanError) -> SyntaxError {
    SyntaxError { line: error.marker().line(), message: format!("not YAML: {}", error.info()) }
}
