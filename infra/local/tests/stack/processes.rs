//! Real processes as instances: shell scripts that end, hang or write.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use local::lambda::{Functions, InvokeError, Processes, Scaling, log_path};
use local::model::Function;
use tempfile::TempDir;

use crate::runtime::{eventually, function, scaling};

/// The function `function`, which runs a script.
fn functions(folder: &Path, script: Option<&str>, init_timeout: Duration) -> Functions {
    if let Some(script) = script {
        let path = folder.join("function");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let environment = BTreeMap::from([("AWS_ENDPOINT_URL_SQS".to_owned(), "http://127.0.0.1:9324".to_owned())]);
    let processes = Processes { binaries: folder.to_owned(), logs: folder.to_owned(), environment };
    let scaling = Scaling { logs: Some(folder.to_owned()), init_timeout, ..scaling(Arc::new(processes)) };
    let function = Function {
        environment: BTreeMap::from([("DECLARED".to_owned(), "value".to_owned())]),
        ..function(Duration::from_secs(5))
    };
    Functions::new(&[function], &scaling)
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(log_path(folder, "function")).unwrap_or_default()
}

#[tokio::test]
async fn a_process_gets_lambdas_environment_and_nothing_else_of_ours() {
    let folder = TempDir::new().unwrap();
    let functions = functions(folder.path(), Some("env; exit 3"), Duration::from_secs(5));

    let error = functions.invoke("function", Bytes::from_static(b"{}")).await.unwrap_err();

    assert!(matches!(&error, InvokeError::InitExit { exit, .. } if exit == "exit status: 3"), "{error}");
    let log = log(folder.path());
    for line in [
        "AWS_LAMBDA_FUNCTION_NAME=function",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256",
        "AWS_REGION=us-east-1",
        "AWS_ENDPOINT_URL_SQS=http://127.0.0.1:9324",
        "DECLARED=value",
    ] {
        assert!(log.lines().any(|logged| logged == line), "{line} is not in\n{log}");
    }
    assert!(log.contains("AWS_LAMBDA_RUNTIME_API=127.0.0.1:"), "{log}");
    assert!(!log.contains("CARGO_MANIFEST_DIR"), "{log}");
    // The failure stands next to what the function wrote.
    assert!(log.contains("[Runtime.ExitError] function: ended before it asked for work: exit status: 3"), "{log}");
}

#[tokio::test]
async fn a_process_that_is_given_up_is_killed() {
    let folder = TempDir::new().unwrap();
    let functions = functions(folder.path(), Some("echo pid $$; exec sleep 600"), Duration::from_millis(500));

    let error = functions.invoke("function", Bytes::from_static(b"{}")).await.unwrap_err();

    assert!(matches!(error, InvokeError::InitTimeout { .. }), "{error}");
    let log = log(folder.path());
    let pid = log.lines().find_map(|line| line.strip_prefix("pid ")).unwrap_or_else(|| panic!("{log}"));
    let process = Path::new("/proc").join(pid);
    eventually("the process's end", || !process.exists()).await;
}

#[tokio::test]
async fn a_missing_binary_is_named() {
    let folder = TempDir::new().unwrap();
    let functions = functions(folder.path(), None, Duration::from_secs(5));

    let error = functions.invoke("function", Bytes::from_static(b"{}")).await.unwrap_err();

    assert_eq!(error.error_type(), "Runtime.InvalidEntrypoint");
    let binary = folder.path().join("function");
    assert!(error.to_string().starts_with(&format!("function: cannot start {}: ", binary.display())), "{error}");
}
