//! How an instance's process is started: its environment, its log file and its end. Speaks no protocol.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::process::Command;

use crate::model::Function;

/// Region that every function is told.
pub const REGION: &str = "us-east-1";

/// Account that every name is told to belong to.
pub const ACCOUNT_ID: &str = "000000000000";

/// Variables of the stack's own environment that a function sees too.
const INHERITED: [&str; 4] = ["PATH", "RUST_LOG", "RUST_BACKTRACE", "LD_LIBRARY_PATH"];

/// A started process: ends with the way it ended, and is killed when dropped.
pub type Running = BoxFuture<'static, String>;

/// Starts the processes of functions.
pub trait Launch: Send + Sync + 'static {
    /// Starts one process of a function, which finds its Runtime API at an address.
    ///
    /// # Errors
    ///
    /// When the process cannot be started.
    fn launch(&self, function: &Function, runtime_api: SocketAddr) -> Result<Running, LaunchError>;
}

/// A process that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {}: {reason}", binary.display())]
pub struct LaunchError {
    /// The binary.
    pub binary: PathBuf,
    /// What the operating system said.
    pub reason: io::Error,
}

/// Starts binaries of a folder as Lambda would, with their output in one log file a function.
#[derive(Debug, Clone)]
pub struct Processes {
    /// Folder with the binaries.
    pub binaries: PathBuf,
    /// Folder with the log files.
    pub logs: PathBuf,
    /// Variables that every function gets: endpoints and credentials.
    pub environment: BTreeMap<String, String>,
}

impl Launch for Processes {
    fn launch(&self, function: &Function, runtime_api: SocketAddr) -> Result<Running, LaunchError> {
        let binary = self.binaries.join(&function.binary);
        let fail = |reason| LaunchError { binary: binary.clone(), reason };
        let log = open_log(&self.logs, &function.name).map_err(fail)?;
        let mut command = Command::new(&binary);
        command
            .env_clear()
            .envs(INHERITED.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value))))
            .envs(&self.environment)
            .envs(&function.environment)
            .envs(lambda_environment(function, runtime_api))
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(fail)?)
            .stderr(log)
            // Ctrl-C is for the stack, which then ends the instances itself.
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(fail)?;
        let ended = async move {
            match child.wait().await {
                Ok(status) => status.to_string(),
                Err(error) => format!("its end cannot be observed: {error}"),
            }
        };
        Ok(ended.boxed())
    }
}

/// Returns the path of a function's log file.
pub fn log_path(logs: &Path, function: &str) -> PathBuf {
    logs.join(format!("{function}.log"))
}

/// Opens the log file of a function for appending.
fn open_log(logs: &Path, function: &str) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(log_path(logs, function))
}

/// Returns the variables that the Lambda service itself sets.
fn lambda_environment(function: &Function, runtime_api: SocketAddr) -> [(&'static str, String); 14] {
    [
        ("_HANDLER", "bootstrap".to_owned()),
        // Each has credentials of its own, as in Lambda: so it can be told who asks for what.
        ("AWS_ACCESS_KEY_ID", function.name.clone()),
        ("AWS_DEFAULT_REGION", REGION.to_owned()),
        ("AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", function.memory_mib.to_string()),
        ("AWS_LAMBDA_FUNCTION_NAME", function.name.clone()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{}", function.name)),
        ("AWS_LAMBDA_LOG_STREAM_NAME", format!("local/[$LATEST]{}", runtime_api.port())),
        ("AWS_LAMBDA_RUNTIME_API", runtime_api.to_string()),
        ("AWS_REGION", REGION.to_owned()),
        ("LAMBDA_TASK_ROOT", function.code.display().to_string()),
        ("TZ", ":UTC".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_environment_has_every_variable_that_a_rust_runtime_reads() {
        let function = Function {
            name: "prefix-api".to_owned(),
            binary: "api".to_owned(),
            code: PathBuf::from("/code"),
            environment: BTreeMap::new(),
            timeout: Duration::from_secs(3),
            memory_mib: 256,
        };

        let variables = BTreeMap::from(lambda_environment(&function, (Ipv4Addr::LOCALHOST, 4242).into()));

        assert_eq!(variables["AWS_LAMBDA_RUNTIME_API"], "127.0.0.1:4242");
        assert_eq!(variables["AWS_LAMBDA_FUNCTION_NAME"], "prefix-api");
        assert_eq!(variables["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"], "256");
        assert_eq!(variables["AWS_LAMBDA_FUNCTION_VERSION"], "$LATEST");
        assert_eq!(variables["AWS_ACCESS_KEY_ID"], "prefix-api");
        assert_eq!(variables["AWS_REGION"], "us-east-1");
    }
}
