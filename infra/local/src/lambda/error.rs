//! Why an invocation has no response, with the error types that Lambda itself reports.

use std::path::PathBuf;
use std::time::Duration;

/// An invocation that ended without a response of the function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvokeError {
    /// No function of this name is declared.
    #[error("no function is called {function}")]
    UnknownFunction {
        /// Name asked for.
        function: String,
    },
    /// The event is larger than Lambda takes.
    #[error("{function}: an event of {bytes} bytes is over the limit of {bytes_max}")]
    PayloadTooLarge {
        /// Function's name.
        function: String,
        /// Size of the event.
        bytes: usize,
        /// Largest event.
        bytes_max: usize,
    },
    /// The operating system could not start the binary.
    #[error("{function}: cannot start {}: {reason}", binary.display())]
    Start {
        /// Function's name.
        function: String,
        /// The binary.
        binary: PathBuf,
        /// What the operating system said.
        reason: String,
    },
    /// The function reported that it could not initialise.
    #[error("{function}: initialisation failed: {error_type}: {message}")]
    Init {
        /// Function's name.
        function: String,
        /// `errorType` of the report.
        error_type: String,
        /// `errorMessage` of the report.
        message: String,
    },
    /// The process ended before it asked for work.
    #[error("{function}: ended before it asked for work: {exit}")]
    InitExit {
        /// Function's name.
        function: String,
        /// Exit status or signal.
        exit: String,
    },
    /// The process did not ask for work in time and was killed.
    #[error("{function}: did not ask for work within {limit:?} of its start")]
    InitTimeout {
        /// Function's name.
        function: String,
        /// Time it had.
        limit: Duration,
    },
    /// The process ended during the invocation.
    #[error("{function}: request {request_id}: runtime exited with error: {exit}")]
    Exit {
        /// Function's name.
        function: String,
        /// Request that was being processed.
        request_id: String,
        /// Exit status or signal.
        exit: String,
    },
    /// The invocation took longer than the function's timeout; the process was killed.
    #[error("{function}: request {request_id}: task timed out after {limit:?}")]
    Timeout {
        /// Function's name.
        function: String,
        /// Request that was being processed.
        request_id: String,
        /// The function's timeout.
        limit: Duration,
    },
    /// The response is larger than Lambda takes.
    #[error("{function}: request {request_id}: the response is over the limit of {bytes_max} bytes")]
    ResponseTooLarge {
        /// Function's name.
        function: String,
        /// Request that was being processed.
        request_id: String,
        /// Largest response.
        bytes_max: usize,
    },
    /// The function answered with an error.
    #[error("{function}: {error_type}: {message}")]
    Function {
        /// Function's name.
        function: String,
        /// `errorType` of the answer.
        error_type: String,
        /// `errorMessage` of the answer.
        message: String,
    },
    /// The stack is being stopped.
    #[error("{function}: the stack is stopping")]
    Stopping {
        /// Function's name.
        function: String,
    },
}

impl InvokeError {
    /// Returns the `errorType` that Lambda reports for it.
    pub fn error_type(&self) -> &str {
        match self {
            Self::UnknownFunction { .. } => "ResourceNotFoundException",
            Self::PayloadTooLarge { .. } => "RequestTooLargeException",
            Self::Start { .. } => "Runtime.InvalidEntrypoint",
            Self::Init { error_type, .. } | Self::Function { error_type, .. } => error_type,
            Self::InitExit { .. } | Self::Exit { .. } => "Runtime.ExitError",
            Self::InitTimeout { .. } | Self::Timeout { .. } => "Sandbox.Timedout",
            Self::ResponseTooLarge { .. } => "Function.ResponseSizeTooLarge",
            Self::Stopping { .. } => "ServiceException",
        }
    }
}
