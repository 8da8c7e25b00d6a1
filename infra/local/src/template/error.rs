//! What can be wrong with a template, and where. Every error names the file, the resource and the property.

use std::fmt;
use std::sync::Arc;

/// Where in a template something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The template's file, relative to the folder of the outermost template.
    pub file: Arc<str>,
    /// Line, from 1; 0 where there is none.
    pub line: usize,
    /// Logical id of the resource, or the section where it is not a resource.
    pub resource: Arc<str>,
    /// Path of the property below the resource's `Properties`; empty for the resource as a whole.
    pub property: String,
}

impl Place {
    /// The same property, seen from another line of its value.
    pub(super) fn at(&self, line: usize) -> Self {
        Self { line, ..self.clone() }
    }

    /// A property of this one.
    pub(super) fn property(&self, name: &str, line: usize) -> Self {
        let separator = if self.property.is_empty() { "" } else { "." };
        Self { property: format!("{}{separator}{name}", self.property), ..self.at(line) }
    }

    /// An item of this list.
    pub(super) fn item(&self, index: usize, line: usize) -> Self {
        Self { property: format!("{}[{index}]", self.property), ..self.at(line) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        if self.line > 0 {
            write!(formatter, ":{}", self.line)?;
        }
        write!(formatter, ": {}", self.resource)?;
        if !self.property.is_empty() {
            write!(formatter, ": {}", self.property)?;
        }
        Ok(())
    }
}

/// Why a template cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The file is missing or is not text.
    #[error("{file}: the template cannot be read")]
    Unreadable {
        /// The template's file.
        file: String,
        /// What the operating system says.
        #[source]
        source: std::io::Error,
    },
    /// The file is not YAML as CloudFormation takes it.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The template's file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong in this line.
        message: String,
    },
    /// A parameter has neither a value nor a default.
    #[error("{place}: the parameter has no value and no default")]
    MissingParameter {
        /// The parameter.
        place: Place,
    },
    /// A value is given for a parameter that the template does not declare.
    #[error("{place}: the template declares no such parameter")]
    UnknownParameter {
        /// The parameter.
        place: Place,
    },
    /// A name that is neither a parameter, a resource, a condition, a mapping nor an export.
    #[error("{place}: nothing here is called {name}")]
    UnknownReference {
        /// Where the name is used.
        place: Place,
        /// The name.
        name: String,
    },
    /// A resource that is known has no such attribute, or none that exists on one machine.
    #[error("{place}: {resource} has no attribute {attribute} here")]
    UnknownAttribute {
        /// Where the attribute is used.
        place: Place,
        /// Logical id of the resource.
        resource: String,
        /// The attribute.
        attribute: String,
    },
    /// An intrinsic function that is not evaluated here.
    #[error("{place}: {function} cannot be evaluated here")]
    UnknownFunction {
        /// Where the function is called.
        place: Place,
        /// The function's name.
        function: String,
    },
    /// Values that are made from one another.
    #[error("{place}: the value is made from itself: {chain}")]
    Cycle {
        /// Where the circle closes.
        place: Place,
        /// What is made from what.
        chain: String,
    },
    /// A value of another shape than the property takes.
    #[error("{place}: the value is {found}, it must be {expected}")]
    WrongType {
        /// The property.
        place: Place,
        /// What the property takes.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A value of the right shape that the property does not take.
    #[error("{place}: {value} is not {expected}")]
    InvalidValue {
        /// The property.
        place: Place,
        /// The value.
        value: String,
        /// What the property takes.
        expected: String,
    },
    /// A property without which nothing can be made of the resource.
    #[error("{place}: the property is missing")]
    MissingProperty {
        /// The property.
        place: Place,
    },
    /// A function that does not say which cargo binary it is.
    #[error("{place}: the name of the function's cargo binary is missing")]
    MissingBinary {
        /// The property that should hold the name.
        place: Place,
    },
    /// A queue that no template of the tree declares.
    #[error("{place}: there is no queue {queue}")]
    UnknownQueue {
        /// Where the queue is named.
        place: Place,
        /// Physical name or ARN of the queue.
        queue: String,
    },
    /// A stream that no table of the tree has.
    #[error("{place}: there is no table with the stream {stream}")]
    UnknownStream {
        /// Where the stream is named.
        place: Place,
        /// The stream's ARN.
        stream: String,
    },
    /// A function that no template of the tree declares.
    #[error("{place}: there is no function {function}")]
    UnknownLambda {
        /// Where the function is named.
        place: Place,
        /// Physical name or ARN of the function.
        function: String,
    },
    /// Two resources of one kind with one name.
    #[error("{place}: the name {name} is taken by {first}")]
    DuplicateName {
        /// The second resource.
        place: Place,
        /// The name.
        name: String,
        /// The first resource.
        first: Box<Place>,
    },
}
