//! A run of the program: command line, build, stack, replay, and how they end. What is run is in the other modules.

use std::error::Error;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::binaries::{self, BuildError};
use crate::calls::{Record, RecordError};
use crate::command_line::{Command, CommandLine, NoTemplate, TokenOptions};
use crate::issuer::{self, Grant, Issuer, KeyError, SigningKey};
use crate::lambda::REGION;
use crate::logs;
use crate::model::Model;
use crate::replay::{ReplayError, Verdict, rare_paths, replay};
use crate::stack::{Addresses, Listeners, Settings, Stack, StartError};
use crate::status::Screen;
use crate::template::{self, TemplateError};
use crate::topology::{Topology, picture, table};

/// Exit code of a replay whose result is not what it should be.
const DIFFERENT: u8 = 1;

/// Exit code of a stack that could not be started.
const CANNOT_START: u8 = 2;

/// Exit code of a run that was interrupted before its end.
const INTERRUPTED: u8 = 130;

/// What the stack logs about itself unless `RUST_LOG` says otherwise. The emulator warns of every refused condition.
const LOG_FILTER: &str = "warn,dynoxide=off";

/// File in the log folder with what the stack says of itself.
const STACK_LOG: &str = "stack.log";

/// Why a stack could not be started.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no template.
    #[error(transparent)]
    NoTemplate(#[from] NoTemplate),
    /// The template is wrong.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The log folder cannot be used.
    #[error("cannot use the log folder {}", path.display())]
    Logs {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The folder of the functions' binaries is not there.
    #[error("there is no folder {} with binaries", path.display())]
    NoBinaries {
        /// The folder.
        path: PathBuf,
    },
    /// A function's binary is not among them.
    #[error("function {function} has no binary {}", path.display())]
    NoBinary {
        /// The function.
        function: String,
        /// Where its binary should be.
        path: PathBuf,
    },
    /// The functions cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The key that signs tokens cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A token is asked for that nobody would look at.
    #[error("no route of {} asks for a token", template.display())]
    NoAuthorizer {
        /// The template.
        template: PathBuf,
    },
    /// The stack cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The replay came to no comparison.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The calls of functions cannot be written down or compared.
    #[error(transparent)]
    Calls(#[from] RecordError),
    /// Signals cannot be listened to.
    #[error("cannot listen to signals")]
    Signals {
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
}

/// Runs what a command line says and returns the program's exit code.
pub async fn run(line: CommandLine) -> ExitCode {
    let screen = Screen::standard_output();
    run_on(&screen, &line).await.unwrap_or_else(|error| {
        eprintln!("error: {}", chain(&error));
        match error {
            // The stack ran, but nothing could be compared.
            RunError::Replay(_) | RunError::Calls(_) => ExitCode::from(DIFFERENT),
            RunError::NoTemplate(_)
            | RunError::Template(_)
            | RunError::Logs { .. }
            | RunError::NoBinaries { .. }
            | RunError::NoBinary { .. }
            | RunError::Build(_)
            | RunError::Key(_)
            | RunError::NoAuthorizer { .. }
            | RunError::Start(_)
            | RunError::Signals { .. } => ExitCode::from(CANNOT_START),
        }
    })
}

/// Returns an error and all its sources on one line.
pub fn chain(error: &dyn Error) -> String {
    let texts: Vec<_> = std::iter::successors(Some(error), |&error| error.source()).map(ToString::to_string).collect();
    texts.join(": ").replace('\n', " ")
}

async fn run_on(screen: &Screen, line: &CommandLine) -> Result<ExitCode, RunError> {
    let mut signals = Signals::listen()?;
    let template = line.template()?;
    let model = template::read(&template, &line.parameters.iter().cloned().collect())?;
    match &line.command {
        Some(Command::Token(options)) => {
            let issuer = issuer(line, &model)?.ok_or(RunError::NoAuthorizer { template })?;
            println!("{}", token(&issuer, options)?);
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Topology { json }) => {
            let topology = Topology::of_code();
            print!("{}", if *json { topology.json() + "\n" } else { shown(&topology, &model) });
            Ok(ExitCode::SUCCESS)
        }
        None => run_stack(screen, line, &mut signals, &template, model).await,
    }
}

/// Returns the issuer whose tokens the API takes, if it takes any.
fn issuer(line: &CommandLine, model: &Model) -> Result<Option<Issuer>, KeyError> {
    let Some(authorizer) = issuer::authorizer(model) else { return Ok(None) };
    let path = line.issuer_key.clone().map_or_else(issuer::default_path, Ok)?;
    Ok(Some(Issuer::new(SigningKey::of_file(&path)?, authorizer.clone())))
}

fn token(issuer: &Issuer, options: &TokenOptions) -> Result<String, KeyError> {
    let lifetime = Duration::from_secs(options.seconds.into());
    issuer.token(&Grant { subject: &options.player, scopes: &options.scopes, lifetime })
}

/// Returns a topology for readers.
fn shown(topology: &Topology, model: &Model) -> String {
    format!("{}\n```mermaid\n{}```\n", table(topology, model), picture(topology, model))
}

async fn run_stack(
    screen: &Screen,
    line: &CommandLine,
    signals: &mut Signals,
    template: &Path,
    model: Model,
) -> Result<ExitCode, RunError> {
    // Before the build, which takes longer than finding out that a port is in use; the default log folder is named after one.
    let listeners = Listeners::bind(addresses(line)).await?;
    let logs = log_folder(line.logs.as_deref(), listeners.addresses().sqs.port())?;
    start_logging(&logs)?;
    let binaries = tokio::select! {
        binaries = binaries(line, template, &model) => binaries?,
        () = signals.received() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    let settings = settings(line, binaries, &logs, issuer(line, &model)?);
    let stack = Stack::start(model, listeners, &settings).await?;
    screen.say(&banner(&stack, template, &logs));
    let exit = tokio::select! {
        () = screen.watch(|| stack.snapshot()) => ExitCode::SUCCESS,
        exit = work(line, &stack, screen, signals) => exit?,
    };
    stack.stop().await;
    Ok(exit)
}

/// Replays what is asked for, and returns when the stack should end.
async fn work(line: &CommandLine, stack: &Stack, screen: &Screen, signals: &mut Signals) -> Result<ExitCode, RunError> {
    if line.empty {
        signals.received().await;
        return Ok(ExitCode::SUCCESS);
    }
    let verdict = tokio::select! {
        verdict = replay_noting_calls(line, stack, screen) => verdict?,
        () = signals.received() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    if !line.once {
        screen.say(&format!("the stack stays up; Ctrl-C ends it\n{}", addresses_text(stack)));
        signals.received().await;
    }
    Ok(match verdict {
        Verdict::Same => ExitCode::SUCCESS,
        Verdict::Different => ExitCode::from(DIFFERENT),
    })
}

/// Replays what is asked for, and writes down or compares the calls that functions have made.
async fn replay_noting_calls(line: &CommandLine, stack: &Stack, screen: &Screen) -> Result<Verdict, RunError> {
    let verdict = replay(&line.replay, &line.hostility, stack, screen).await?;
    if let Some(path) = &line.calls.record_calls {
        rare_paths(stack, screen).await?;
        stack.calls().unwrap_or_default().add_to(path)?;
        screen.say(&format!("the calls of the functions are in {}", path.display()));
    }
    let Some(path) = &line.calls.known_calls else { return Ok(verdict) };
    let unknown = stack.calls().unwrap_or_default().not_in(&Record::read(path)?);
    let listed: String = unknown.iter().map(|call| format!("\n  {call}")).collect();
    screen.say(&format!("calls that {} does not list: {}{listed}", path.display(), unknown.len()));
    Ok(if unknown.is_empty() { verdict } else { Verdict::Different })
}

/// Ctrl-C and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> Result<Self, RunError> {
        let listen = |kind| signal(kind).map_err(|source| RunError::Signals { source });
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for one of them.
    async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn addresses(line: &CommandLine) -> Addresses {
    let options = &line.addresses;
    Addresses {
        api: options.address(options.api_port),
        dynamodb: options.address(options.dynamodb_port),
        sqs: options.address(options.sqs_port),
    }
}

async fn binaries(line: &CommandLine, template: &Path, model: &Model) -> Result<PathBuf, RunError> {
    match &line.binaries {
        Some(folder) if folder.is_dir() => {
            let mut functions = model.functions.iter().map(|function| (function, folder.join(&function.binary)));
            match functions.find(|(_, path)| !path.is_file()) {
                Some((function, path)) => Err(RunError::NoBinary { function: function.name.clone(), path }),
                None => Ok(folder.clone()),
            }
        }
        Some(folder) => Err(RunError::NoBinaries { path: folder.clone() }),
        None => Ok(binaries::build(template, &model.functions).await?),
    }
}

fn settings(line: &CommandLine, binaries: PathBuf, logs: &Path, issuer: Option<Issuer>) -> Settings {
    Settings {
        data: line.data.clone(),
        binaries,
        logs: logs.to_owned(),
        issuer,
        idle: line.scaling.idle_seconds,
        instances_max: line.scaling.instances_max.into(),
        api_concurrency: line.scaling.api_concurrency.into(),
        hostility: line.hostility.deliveries(),
        kill_every: line.hostility.kill_every,
        visibility_timeout: line.hostility.visibility_timeout(),
        calls: line.calls.noting(),
    }
}

/// Makes the folder for logs: the given one, or a new one for temporary files. That one is named after the port of SQS, which
/// no other stack has at the same time, so that who knows the queues finds the logs.
fn log_folder(given: Option<&Path>, sqs_port: u16) -> Result<PathBuf, RunError> {
    let made = match given {
        Some(folder) => std::fs::create_dir_all(folder).map(|()| folder.to_owned()),
        None => logs::new_folder(&logs::default_folder(sqs_port)),
    };
    made.map_err(|source| {
        let path = given.map_or_else(|| logs::default_folder(sqs_port), Path::to_owned);
        RunError::Logs { path, source }
    })
}

/// Writes what the stack says of itself to a file, so that the screen stays readable.
fn start_logging(logs: &Path) -> Result<(), RunError> {
    let path = logs.join(STACK_LOG);
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let file = file.map_err(|source| RunError::Logs { path, source })?;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG_FILTER));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(Mutex::new(file));
    // A program that has its own subscriber keeps it.
    let _ = subscriber.try_init();
    Ok(())
}

/// Returns what is said when a stack has started: what it leaves out, where it answers, and where it logs.
fn banner(stack: &Stack, template: &Path, logs: &Path) -> String {
    let left_out = stack.model().unsupported.iter();
    let left_out = left_out.map(|it| format!("not supported: {}: {}: {}\n", it.template, it.resource, it.property));
    format!(
        "{}{} is running; Ctrl-C ends it\n{}\n  logs      {}",
        left_out.collect::<String>(),
        template.display(),
        addresses_text(stack),
        logs.display()
    )
}

fn addresses_text(stack: &Stack) -> String {
    let addresses = stack.addresses();
    format!(
        "  HTTP API  {}\n  DynamoDB  {}\n  SQS       {}\n  receiver  {} (see GET /letters, PUT /mode)\n  tokens    cargo run -- token --player ID [--scope games:write|moderate|operate]\n  AWS CLI   aws --endpoint-url ADDRESS ..., any credentials, region {REGION}",
        addresses.api_url(),
        addresses.dynamodb_url(),
        addresses.sqs_url(),
        stack.receiver().url()
    )
}
