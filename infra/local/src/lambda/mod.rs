//! Runs each function as processes of its own through the Lambda Runtime API: none without work, more with it. Knows
//! neither queues nor routes.

mod error;
mod instance;
mod pool;
mod process;
mod runtime_api;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

pub use error::InvokeError;
pub use process::{ACCOUNT_ID, Launch, LaunchError, Processes, REGION, Running, log_path};
pub use runtime_api::RESPONSE_BYTES_MAX;

use crate::model::Function;
use pool::Pool;

/// Largest event that a function can be invoked with: 6 MB.
pub const PAYLOAD_BYTES_MAX: usize = 6 * 1024 * 1024;

/// How instances come and go.
#[derive(Clone)]
pub struct Scaling {
    /// Starts a process.
    pub launcher: Arc<dyn Launch>,
    /// Folder with the log files, where failures are noted too.
    pub logs: Option<PathBuf>,
    /// Instances of one function, at most; further invocations wait.
    pub instances_max: usize,
    /// How long an instance may be idle until it is stopped.
    pub idle: Duration,
    /// How long a process may take until it asks for work; Lambda gives 10 seconds.
    pub init_timeout: Duration,
}

/// What one function does and has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Living processes.
    pub instances: usize,
    /// Invocations that wait for an instance.
    pub waiting: usize,
    /// Invocations being processed.
    pub in_flight: usize,
    /// Processes started so far.
    pub starts: u64,
    /// Invocations ended so far.
    pub invocations: u64,
    /// Of these, those that failed.
    pub errors: u64,
}

/// Something that can be invoked: a function, or a stand-in for one.
pub trait Invoke: Send + Sync + 'static {
    /// Invokes it with an event and returns its response.
    ///
    /// # Errors
    ///
    /// When there is no response: see [`InvokeError`].
    fn invoke(&self, payload: Bytes) -> BoxFuture<'static, Result<Bytes, InvokeError>>;
}

/// All functions of a stack.
pub struct Functions {
    pools: BTreeMap<String, Arc<Pool>>,
}

impl Functions {
    /// Returns the functions without any instance.
    pub fn new(functions: &[Function], scaling: &Scaling) -> Self {
        let pool = |function: &Function| Arc::new(Pool::new(function.clone(), scaling.clone()));
        Self { pools: functions.iter().map(|function| (function.name.clone(), pool(function))).collect() }
    }

    /// Invokes a function and returns its response. The invocation goes on when the caller stops waiting, as it does
    /// in Lambda.
    ///
    /// # Errors
    ///
    /// When there is no response: see [`InvokeError`].
    pub async fn invoke(&self, function: &str, payload: Bytes) -> Result<Bytes, InvokeError> {
        self.function(function)?.invoke(payload).await
    }

    /// Returns one function, to be invoked often.
    ///
    /// # Errors
    ///
    /// When no function has this name.
    pub fn function(&self, function: &str) -> Result<Arc<dyn Invoke>, InvokeError> {
        match self.pools.get(function) {
            Some(pool) => Ok(Arc::new(Handle { function: function.to_owned(), pool: Arc::clone(pool) })),
            None => Err(InvokeError::UnknownFunction { function: function.to_owned() }),
        }
    }

    /// Returns the counters of each function, by name.
    pub fn counters(&self) -> BTreeMap<String, Counters> {
        self.pools.iter().map(|(name, pool)| (name.clone(), pool.counters())).collect()
    }

    /// Kills a random instance of a random function without warning and returns the function's name. Functions with few
    /// instances are hit as often as those with many.
    pub fn kill_random(&self, random: &mut fastrand::Rng) -> Option<String> {
        let live = self.pools.iter().map(|(name, pool)| (name, pool.live()));
        let live: Vec<_> = live.filter(|(_, instances)| !instances.is_empty()).collect();
        let (name, instances) = random.choice(live)?;
        random.choice(instances)?.abort();
        Some(name.clone())
    }

    /// Kills all instances and refuses further invocations.
    pub fn stop(&self) {
        for pool in self.pools.values() {
            pool.stop();
        }
    }
}

impl Drop for Functions {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One function, to be invoked often.
struct Handle {
    function: String,
    pool: Arc<Pool>,
}

impl Invoke for Handle {
    fn invoke(&self, payload: Bytes) -> BoxFuture<'static, Result<Bytes, InvokeError>> {
        let invocation = tokio::spawn(Arc::clone(&self.pool).invoke(payload));
        let function = self.function.clone();
        async move { invocation.await.unwrap_or(Err(InvokeError::Stopping { function })) }.boxed()
    }
}
