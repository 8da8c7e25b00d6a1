//! The program itself: how it starts, what stops it from starting, and how it ends.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use local::issuer::SigningKey;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::runtime::PATIENCE;

/// A template with one queue and no function, so that there is nothing to build.
const TEMPLATE: &str = "
AWSTemplateFormatVersion: '2010-09-09'
Resources:
  Work:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: work
  Bucket:
    Type: AWS::S3::Bucket
";

/// What a function adds to the template.
const FUNCTION: &str = "
  Function:
    Type: AWS::Serverless::Function
    Metadata:
      BuildMethod: rust-cargolambda
      BuildProperties:
        Binary: worker
    Properties:
      FunctionName: worker
      CodeUri: .
      Handler: bootstrap
      Runtime: provided.al2023
";

fn local(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_local"));
    command.args(["--empty", "--api-port", "0", "--dynamodb-port", "0"]).arg("--logs").arg(folder.join("logs"));
    command.args(arguments).kill_on_drop(true).current_dir(folder);
    command
}

fn folder_with(template: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("template.yaml"), template).unwrap();
    folder
}

/// Starts the program, which must end with exit code 2 and one line that contains all of these.
async fn check_refused(template: &str, arguments: &[&str], named: &[&str]) {
    let folder = folder_with(template);

    let ended = timeout(PATIENCE, local(folder.path(), arguments).output()).await.unwrap().unwrap();

    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for named in named {
        assert!(said.contains(named), "{named} is not in {said}");
    }
}

#[tokio::test]
async fn what_cannot_start_says_why_on_one_line() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();

    check_refused(TEMPLATE, &["--sqs-port", &port], &["SQS", &port, "--sqs-port", "in use"]).await;
    check_refused(TEMPLATE, &["--template", "other.yaml"], &["other.yaml"]).await;
    check_refused(TEMPLATE, &["--sqs-port", "0", "--binaries", "none"], &["none"]).await;
    check_refused(TEMPLATE, &["--sqs-port", "0", "--data", "/dev/null/data"], &["/dev/null/data"]).await;
    check_refused("Resources: [", &["--sqs-port", "0"], &["template.yaml"]).await;
    let wrong = TEMPLATE.replace("QueueName: work", "VisibilityTimeout: long");
    check_refused(&wrong, &["--sqs-port", "0"], &["template.yaml", "Work", "VisibilityTimeout"]).await;
}

/// Starts the program with a function to build and a stand-in for cargo.
fn building(folder: &Path, cargo: &str) -> Command {
    std::fs::write(folder.join("Cargo.toml"), "[workspace]\n").unwrap();
    let path = folder.join("cargo");
    std::fs::write(&path, format!("#!/bin/sh\n{cargo}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = local(folder, &["--sqs-port", "0"]);
    command.env("CARGO", path);
    command
}

#[tokio::test]
async fn functions_are_built_as_the_program_itself_was() {
    let folder = folder_with(&format!("{TEMPLATE}{FUNCTION}"));
    // It notes its arguments and fails, so that the program ends.
    let mut program = building(folder.path(), r#"echo "$@" > arguments; exit 101"#);

    let ended = timeout(PATIENCE, program.output()).await.unwrap().unwrap();

    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert_eq!(said, "error: cargo could not build the functions worker: exit status: 101\n");
    let arguments = std::fs::read_to_string(folder.path().join("arguments")).unwrap();
    let target = Path::new(env!("CARGO_BIN_EXE_local")).parent().unwrap().parent().unwrap();
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let expected = format!(
        "build --profile {profile} --bin worker --manifest-path {}/Cargo.toml --target-dir {}\n",
        folder.path().display(),
        target.display()
    );
    assert_eq!(arguments, expected);
}

#[tokio::test]
async fn without_cargo_or_a_workspace_nothing_can_be_built() {
    let folder = folder_with(&format!("{TEMPLATE}{FUNCTION}"));
    let mut no_cargo = building(folder.path(), "exit 0");
    let ended = timeout(PATIENCE, no_cargo.env("CARGO", "/nowhere/cargo").output()).await.unwrap().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.starts_with("error: cannot start /nowhere/cargo: "), "{said}");
    assert_eq!(ended.status.code(), Some(2));

    check_refused(&format!("{TEMPLATE}{FUNCTION}"), &["--sqs-port", "0"], &["no Cargo.toml with a [workspace]"]).await;
}

/// What an API that asks for tokens adds to the template and its function.
const API: &str = "      Events: {Get: {Type: HttpApi, Properties: {ApiId: !Ref Api, Method: GET, Path: /}}}
  Api:
    Type: AWS::Serverless::HttpApi
    Properties:
      Auth:
        DefaultAuthorizer: Jwt
        Authorizers:
          Jwt:
            IdentitySource: $request.header.Authorization
            JwtConfiguration: {issuer: https://issuer.test, audience: [chess]}
";

#[tokio::test]
async fn whoever_asks_for_a_token_gets_one_that_is_signed_with_the_key_of_all() {
    let folder = folder_with(&format!("{TEMPLATE}{FUNCTION}{API}"));
    let key = folder.path().join("key");
    let token = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_local"));
        command.current_dir(folder.path()).arg("--issuer-key").arg(&key);
        command
            .args(["token", "--player", "ann", "--scope", "moderate", "--scope", "operate", "--seconds", "60"])
            .output()
    };

    let (first, second) = (token().await.unwrap(), token().await.unwrap());

    let keys = SigningKey::of_file(&key).unwrap().public_keys();
    for said in [first, second] {
        assert!(said.status.success(), "{said:?}");
        let claims = keys.claims(String::from_utf8(said.stdout).unwrap().trim_end()).unwrap();
        let moment = |name: &str| claims[name].as_u64().unwrap();
        assert_eq!(moment("exp") - moment("iat"), 60);
        for (name, value) in
            [("iss", "https://issuer.test"), ("aud", "chess"), ("sub", "ann"), ("scope", "moderate operate")]
        {
            assert_eq!(claims[name], json!(value), "{name}");
        }
    }
}

#[tokio::test]
async fn there_is_no_token_where_no_route_asks_for_one() {
    let folder = folder_with(TEMPLATE);
    let mut command = Command::new(env!("CARGO_BIN_EXE_local"));
    let said = command.current_dir(folder.path()).args(["token", "--player", "ann"]).output().await.unwrap();

    assert_eq!(said.status.code(), Some(2));
    let text = String::from_utf8(said.stderr).unwrap();
    assert!(text.ends_with("template.yaml asks for a token\n"), "{text}");
}

#[tokio::test]
async fn a_running_stack_names_its_addresses_and_what_it_leaves_out_and_ends_when_told() {
    for signal in ["TERM", "INT"] {
        let folder = folder_with(TEMPLATE);
        let mut program = local(folder.path(), &["--sqs-port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
        let mut said = String::new();
        while !said.contains("logs") {
            let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
            said += &line.unwrap_or_else(|| panic!("the program ended: {said}"));
            said.push('\n');
        }
        assert!(said.contains("not supported: template.yaml: Bucket: AWS::S3::Bucket"), "{said}");
        for server in ["HTTP API  http://127.0.0.1:", "DynamoDB  http://127.0.0.1:", "SQS       http://127.0.0.1:"] {
            assert!(said.contains(server), "{said}");
        }

        let pid = program.id().unwrap().to_string();
        let told = Command::new("sh").args(["-c", "kill -$0 $1", signal, &pid]).status().await.unwrap();
        assert!(told.success());

        let ended = timeout(PATIENCE, program.wait()).await.unwrap().unwrap();
        assert_eq!(ended.code(), Some(0), "{signal}");
    }
}
