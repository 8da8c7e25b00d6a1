//! Starts a stack from a model: servers first, then what reads from them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{Addresses, RunningQueueMapping, RunningStreamMapping, Settings, Stack};
use crate::calls::{Noting, Witness};
use crate::gateway::Gateway;
use crate::issuer::Issuer;
use crate::lambda::{Functions, InvokeError, Processes, Scaling};
use crate::logs;
use crate::mapping::queue::BrokerQueue;
use crate::mapping::stream::{Stream, StreamError};
use crate::mapping::{Progress, queue as queue_mapping, stream as stream_mapping};
use crate::model::{Model, QueueMapping, StreamMapping};
use crate::receiver::Receiver;
use crate::schedule;
use crate::sqs::{self, Broker};
use crate::tables::{self, TablesError};

/// How long a process may take until it asks for work, as in Lambda.
const INIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A stack that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("{server} cannot listen on {address}: choose another port with {option}")]
    Listen {
        /// What should listen.
        server: &'static str,
        /// The address.
        address: SocketAddr,
        /// Option that sets the port.
        option: &'static str,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The tables cannot be opened.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// The tables cannot be served.
    #[error("cannot start threads for the tables")]
    Threads {
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// No port is left for the receiver of notifications.
    #[error("cannot receive notifications")]
    Receiver {
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// No port is left for the witness of calls.
    #[error("cannot note calls")]
    Witness {
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A queue cannot be created.
    #[error("queue {queue}")]
    Queue {
        /// Queue's name.
        queue: String,
        /// What is wrong with it.
        #[source]
        source: queue::Error,
    },
    /// A mapping or a route names a function that is not declared.
    #[error(transparent)]
    Function(#[from] InvokeError),
    /// A mapping names a table that is not declared.
    #[error("the mapping to {function} reads table {table}, which is not declared")]
    UnknownTable {
        /// Table's name.
        table: String,
        /// Function of the mapping.
        function: String,
    },
    /// A mapping's stream cannot be read.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// The addresses that a stack answers on, taken but not served yet.
#[derive(Debug)]
pub struct Listeners {
    api: TcpListener,
    dynamodb: TcpListener,
    sqs: TcpListener,
    addresses: Addresses,
}

impl Listeners {
    /// Takes the addresses; port 0 is any free one.
    ///
    /// # Errors
    ///
    /// When one of them is in use, or may not be used.
    pub async fn bind(addresses: Addresses) -> Result<Self, StartError> {
        let (api, api_address) = bind("the HTTP API", addresses.api, "--api-port").await?;
        let (dynamodb, dynamodb_address) = bind("DynamoDB", addresses.dynamodb, "--dynamodb-port").await?;
        let (sqs, sqs_address) = bind("SQS", addresses.sqs, "--sqs-port").await?;
        let addresses = Addresses { api: api_address, dynamodb: dynamodb_address, sqs: sqs_address };
        Ok(Self { api, dynamodb, sqs, addresses })
    }

    /// Returns the addresses with the ports that were free.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }
}

async fn bind(
    server: &'static str,
    address: SocketAddr,
    option: &'static str,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { server, address, option, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

impl Stack {
    /// Starts what a model declares.
    ///
    /// # Errors
    ///
    /// When the tables or queues cannot be made, or something names what is not declared.
    pub async fn start(mut model: Model, listeners: Listeners, settings: &Settings) -> Result<Self, StartError> {
        let receiver = Receiver::start(listeners.addresses.api.ip()).await;
        let receiver = receiver.map_err(|source| StartError::Receiver { source })?;
        receiver.announce(&mut model);
        let database = tables::open(settings.data.as_deref(), &model.tables)?;
        let broker = Broker::default();
        let queue_failed = |(queue, source)| StartError::Queue { queue, source };
        broker.create_declared(&model.queues).map_err(queue_failed)?;
        let witness = witness(&listeners.addresses, settings).await?;
        let scaling = scaling(&listeners.addresses, witness.as_ref(), settings);
        let functions = Arc::new(Functions::new(&model.functions, &scaling));
        let keys = settings.issuer.as_ref().map(Issuer::public_keys).unwrap_or_default();
        let gateway = Arc::new(Gateway::new(&model.routes, &functions, settings.api_concurrency, keys)?);
        let tables = tables::Server::start(listeners.dynamodb, database.clone());
        let tables = tables.map_err(|source| StartError::Threads { source })?;
        let mut stack = Self {
            addresses: listeners.addresses,
            database,
            broker,
            functions,
            gateway,
            queue_mappings: Vec::new(),
            stream_mappings: Vec::new(),
            tasks: JoinSet::new(),
            receiver,
            issuer: settings.issuer.clone(),
            witness,
            _tables: tables,
            model,
        };
        stack.tasks.spawn(serve_queues(listeners.sqs, stack.broker.clone()));
        stack.tasks.spawn(serve_api(listeners.api, Arc::clone(&stack.gateway)));
        stack.start_mappings(settings)?;
        stack.start_schedules()?;
        stack.tasks.spawn(tables::sweep(stack.database.clone()));
        stack.tasks.spawn(logs::keep_bounded(settings.logs.clone()));
        if let Some(every) = settings.kill_every {
            stack.tasks.spawn(kill(Arc::clone(&stack.functions), every, settings.hostility.seed));
        }
        Ok(stack)
    }

    fn start_mappings(&mut self, settings: &Settings) -> Result<(), StartError> {
        for declared in self.model.queue_mappings.clone() {
            self.start_queue_mapping(declared, settings)?;
        }
        for declared in self.model.stream_mappings.clone() {
            self.start_stream_mapping(declared, settings)?;
        }
        Ok(())
    }

    fn start_schedules(&mut self) -> Result<(), StartError> {
        for declared in &self.model.schedules {
            let function = self.functions.function(&declared.function)?;
            self.tasks.spawn(schedule::run(declared.function.clone(), function, declared.every));
        }
        Ok(())
    }

    fn start_queue_mapping(&mut self, declared: QueueMapping, settings: &Settings) -> Result<(), StartError> {
        let failed = |source| StartError::Queue { queue: declared.queue.clone(), source };
        let queue = self.broker.queue(&declared.queue).map_err(failed)?;
        let progress = Arc::new(Progress::default());
        let mapping = queue_mapping::Mapping {
            source: Arc::new(BrokerQueue { broker: self.broker.clone(), queue }),
            function: self.functions.function(&declared.function)?,
            concurrency_default: settings.instances_max,
            visibility_timeout: settings.visibility_timeout,
            hostility: settings.hostility,
            progress: Arc::clone(&progress),
            declared: declared.clone(),
        };
        self.tasks.spawn(mapping.run());
        self.queue_mappings.push(RunningQueueMapping { declared, progress });
        Ok(())
    }

    fn start_stream_mapping(&mut self, declared: StreamMapping, settings: &Settings) -> Result<(), StartError> {
        let table = self.model.tables.iter().find(|table| table.name == declared.table);
        let table = table.ok_or_else(|| StartError::UnknownTable {
            table: declared.table.clone(),
            function: declared.function.clone(),
        })?;
        let stream = Stream::open(self.database.clone(), &declared.table)?;
        let progress = Arc::new(Progress::default());
        let mapping = stream_mapping::Mapping {
            partition_key: tables::partition_key(table)?,
            stream: stream.clone(),
            function: self.functions.function(&declared.function)?,
            hostility: settings.hostility,
            progress: Arc::clone(&progress),
            declared: declared.clone(),
        };
        self.tasks.spawn(mapping.run());
        self.stream_mappings.push(RunningStreamMapping { declared, stream, progress });
        Ok(())
    }
}

async fn witness(addresses: &Addresses, settings: &Settings) -> Result<Option<Witness>, StartError> {
    match settings.calls {
        Noting::Off => Ok(None),
        Noting::On => Witness::start(addresses).await.map(Some).map_err(|source| StartError::Witness { source }),
    }
}

fn scaling(addresses: &Addresses, witness: Option<&Witness>, settings: &Settings) -> Scaling {
    let (dynamodb_url, sqs_url) = match witness {
        Some(witness) => (witness.dynamodb_url().to_owned(), witness.sqs_url().to_owned()),
        None => (addresses.dynamodb_url(), addresses.sqs_url()),
    };
    let environment = [
        ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_url),
        ("AWS_ENDPOINT_URL_SQS", sqs_url),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        ("AWS_SESSION_TOKEN", "local".to_owned()),
    ];
    let processes = Processes {
        binaries: settings.binaries.clone(),
        logs: settings.logs.clone(),
        environment: environment.map(|(name, value)| (name.to_owned(), value)).into(),
    };
    Scaling {
        launcher: Arc::new(processes),
        logs: Some(settings.logs.clone()),
        instances_max: settings.instances_max,
        idle: settings.idle,
        init_timeout: INIT_TIMEOUT,
    }
}

async fn serve_queues(listener: TcpListener, broker: Broker) {
    if let Err(error) = sqs::serve(listener, broker, std::future::pending()).await {
        tracing::error!(%error, "SQS ended");
    }
}

async fn serve_api(listener: TcpListener, gateway: Arc<Gateway>) {
    if let Err(error) = gateway.serve(listener).await {
        tracing::error!(%error, "the HTTP API ended");
    }
}

/// Kills a random instance again and again, until it is dropped.
async fn kill(functions: Arc<Functions>, every: Duration, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    loop {
        tokio::time::sleep(every).await;
        if let Some(function) = functions.kill_random(&mut random) {
            tracing::info!(function, "an instance was killed");
        }
    }
}
