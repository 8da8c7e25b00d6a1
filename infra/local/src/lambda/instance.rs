//! One process of a function with its own Runtime API, identified by its port. Decides nothing about when to start.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use uuid::Uuid;

use super::error::InvokeError;
use super::process::{ACCOUNT_ID, Launch, REGION};
use super::runtime_api::{Exchange, Phase, Work, router};
use crate::model::Function;

/// What is said of a process that the stack itself killed.
const KILLED: &str = "signal: 9 (SIGKILL)";

/// A running process that has asked for work. Killed when dropped.
pub(super) struct Instance {
    function: Arc<Function>,
    exchange: Arc<Exchange>,
    work: mpsc::Sender<Work>,
    exit: watch::Receiver<Option<String>>,
    supervisor: Supervisor,
}

/// How an invocation ended for its instance.
pub(super) enum Outcome {
    /// The function answered; the instance can work again.
    Answered(Result<Bytes, InvokeError>),
    /// The instance is gone, and the invocation with it.
    Died(InvokeError),
    /// The instance was gone before it took the invocation.
    NotTaken {
        /// Exit status or signal.
        exit: String,
    },
}

impl Instance {
    /// Starts a process and waits until it asks for work. The handle that kills it is passed on as soon as it exists.
    ///
    /// # Errors
    ///
    /// When the process cannot be started, reports an error, ends, or takes longer than `init_timeout`.
    pub(super) async fn start(
        function: Arc<Function>,
        launcher: &dyn Launch,
        init_timeout: Duration,
        started: impl FnOnce(AbortHandle),
    ) -> Result<Self, InvokeError> {
        let mut instance = Self::spawn(function, launcher, started).await?;
        instance.wait_until_ready(init_timeout).await?;
        Ok(instance.instance)
    }

    /// Returns whether the process still runs.
    pub(super) fn is_alive(&self) -> bool {
        !self.supervisor.0.is_finished()
    }

    /// Invokes the function and waits for its answer, at most for the function's timeout.
    pub(super) async fn invoke(&mut self, payload: Bytes) -> Outcome {
        let (reply, answer) = oneshot::channel();
        let work = Work::new(&self.function, payload, reply);
        let request_id = work.request_id.clone();
        if self.work.send(work).await.is_err() {
            return Outcome::NotTaken { exit: self.ended().await };
        }
        tokio::select! {
            // An answer counts, even if the process ended right after it.
            biased;
            Ok(answer) = answer => Outcome::Answered(answer),
            exit = ended(&mut self.exit) => self.died(request_id, exit),
            () = tokio::time::sleep(self.function.timeout) => {
                self.supervisor.0.abort();
                Outcome::Died(InvokeError::Timeout {
                    function: self.function.name.clone(),
                    request_id,
                    limit: self.function.timeout,
                })
            }
        }
    }

    /// Tells an invocation that was lost with its process from one that the process never took.
    fn died(&self, request_id: String, exit: String) -> Outcome {
        if self.exchange.is_working_on(&request_id) {
            Outcome::Died(InvokeError::Exit { function: self.function.name.clone(), request_id, exit })
        } else {
            Outcome::NotTaken { exit }
        }
    }

    async fn ended(&mut self) -> String {
        ended(&mut self.exit).await
    }

    async fn spawn(
        function: Arc<Function>,
        launcher: &dyn Launch,
        started: impl FnOnce(AbortHandle),
    ) -> Result<Starting, InvokeError> {
        let fail = |reason: std::io::Error| InvokeError::Start {
            function: function.name.clone(),
            binary: function.binary.clone().into(),
            reason: format!("no Runtime API: {reason}"),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let process = launcher.launch(&function, address).map_err(|error| InvokeError::Start {
            function: function.name.clone(),
            binary: error.binary,
            reason: error.reason.to_string(),
        })?;
        let (exchange, work, phases) = Exchange::new(function.name.clone());
        let (ended, exit) = watch::channel(None);
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap_or_default());
        let served = axum::serve(listener, router(Arc::clone(&exchange)));
        let supervisor = tokio::spawn(async move {
            tokio::select! {
                exit = process => { ended.send_replace(Some(exit)); }
                _ = served.into_future() => {}
            }
        });
        let supervisor = Supervisor(supervisor.abort_handle());
        started(supervisor.0.clone());
        Ok(Starting { instance: Self { function, exchange, work, exit, supervisor }, phases })
    }
}

/// A process that has not asked for work yet.
struct Starting {
    instance: Instance,
    phases: watch::Receiver<Phase>,
}

impl Starting {
    async fn wait_until_ready(&mut self, limit: Duration) -> Result<(), InvokeError> {
        let function = || self.instance.function.name.clone();
        tokio::select! {
            biased;
            Ok(phase) = self.phases.wait_for(|phase| *phase != Phase::Starting) => match phase.clone() {
                Phase::Failed(error) => Err(error),
                Phase::Starting | Phase::Ready => Ok(()),
            },
            exit = ended(&mut self.instance.exit) => Err(InvokeError::InitExit { function: function(), exit }),
            () = tokio::time::sleep(limit) => Err(InvokeError::InitTimeout { function: function(), limit }),
        }
    }
}

/// The task that owns process and listener; ending it kills the process.
struct Supervisor(AbortHandle);

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Work {
    fn new(function: &Function, payload: Bytes, reply: oneshot::Sender<Result<Bytes, InvokeError>>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let deadline = now + function.timeout;
        let trace = Uuid::new_v4().simple().to_string();
        Self {
            request_id: Uuid::new_v4().to_string(),
            payload,
            deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
            function_arn: format!("arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{}", function.name),
            trace_id: format!("Root=1-{:08x}-{};Parent={};Sampled=0", now.as_secs(), &trace[..24], &trace[16..]),
            reply,
        }
    }
}

/// Waits for the end of a process. One that was killed by the stack leaves no status behind.
async fn ended(exit: &mut watch::Receiver<Option<String>>) -> String {
    match exit.wait_for(Option::is_some).await {
        Ok(exit) => exit.clone().unwrap_or_else(|| KILLED.to_owned()),
        Err(_) => KILLED.to_owned(),
    }
}
