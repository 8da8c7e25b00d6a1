//! The tables on one machine: an emulator of DynamoDB inside this process, in memory or in a file. Writes no item.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dynoxide::Database;
use dynoxide::actions::create_table::CreateTableRequest;
use dynoxide::actions::describe_table::DescribeTableRequest;
use dynoxide::actions::describe_time_to_live::DescribeTimeToLiveRequest;
use dynoxide::actions::update_time_to_live::{TimeToLiveSpecification, UpdateTimeToLiveRequest};
use dynoxide::types::KeyType;
use rusqlite::Connection;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

use crate::model::Table;

/// File in the data folder that holds all tables.
const FILE: &str = "tables.sqlite3";

/// How often expired items are deleted. DynamoDB itself only promises days.
const SWEEP_EVERY: Duration = Duration::from_secs(300);

/// Threads that serve the tables.
const THREADS: usize = 4;

/// What the emulator lacks for a busy stream: an index of the order in which records are read and numbered (without it
/// every write looks at every record ever written), and the retention of 24 hours. Two old records go for each new one.
const STREAM_UPKEEP: &str = "
    CREATE INDEX IF NOT EXISTS local_stream_order
        ON _stream_records (table_name, CAST(sequence_number AS INTEGER));
    CREATE TRIGGER IF NOT EXISTS local_stream_retention AFTER INSERT ON _stream_records BEGIN
        DELETE FROM _stream_records
            WHERE id IN (SELECT id FROM _stream_records ORDER BY id LIMIT 2)
            AND created_at < NEW.created_at - 86400;
    END;";

/// Tables that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// The data folder cannot be made.
    #[error("cannot make the data folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The database cannot be opened.
    #[error("cannot open the tables in {location}: {reason}")]
    Open {
        /// The file, or `memory`.
        location: String,
        /// What the database said.
        reason: String,
    },
    /// A table's declaration is not one that DynamoDB takes.
    #[error("table {table}: {reason}")]
    Declaration {
        /// Table's name.
        table: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The data folder holds the table with other keys or indexes than the template declares.
    #[error("table {table}: the data folder holds it with other {what} than the template declares; use another folder")]
    Changed {
        /// Table's name.
        table: String,
        /// What differs.
        what: &'static str,
    },
}

/// Serves the tables to everyone outside this process, on threads of its own: the emulator answers synchronously, one
/// request after the other, and whoever waits for it must not keep the rest of the stack waiting. Ends when dropped.
#[derive(Debug)]
pub struct Server {
    runtime: Option<Runtime>,
}

impl Server {
    /// Starts to serve DynamoDB's HTTP protocol.
    ///
    /// # Errors
    ///
    /// When there are no threads to be had.
    pub fn start(listener: TcpListener, database: Database) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_name("tables").enable_all().build()?;
        let listener = listener.into_std()?;
        runtime.spawn(async move {
            let served = match TcpListener::from_std(listener) {
                Ok(listener) => dynoxide::server::serve_with_shutdown(listener, database, std::future::pending()).await,
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = served {
                tracing::error!(error, "DynamoDB ended");
            }
        });
        Ok(Self { runtime: Some(runtime) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Opens the database, in memory or in a folder, and creates the tables that it does not have.
///
/// # Errors
///
/// When the folder or its file cannot be used, or a table is declared wrongly or otherwise than the folder holds it.
pub fn open(data: Option<&Path>, tables: &[Table]) -> Result<Database, TablesError> {
    let location = match data {
        Some(folder) => {
            let failed = |source| TablesError::Folder { path: folder.to_owned(), source };
            std::fs::create_dir_all(folder).map_err(failed)?;
            folder.join(FILE).display().to_string()
        }
        // A name of its own, so that a second connection finds it as well.
        None => format!("file:{}?mode=memory&cache=shared", Uuid::new_v4().simple()),
    };
    let failed = |reason: String| {
        let location = if data.is_some() { location.clone() } else { "memory".to_owned() };
        TablesError::Open { location, reason }
    };
    let database = Database::new(&location).map_err(|error| failed(error.to_string()))?;
    let upkeep = Connection::open(&location).and_then(|connection| connection.execute_batch(STREAM_UPKEEP));
    upkeep.map_err(|error| failed(error.to_string()))?;
    // Writes are ordered, but not forced to the disk one by one.
    database.disable_bulk_loading().map_err(|error| failed(error.to_string()))?;
    for table in tables {
        create(&database, table)?;
    }
    Ok(database)
}

/// Returns the name of a table's hash key.
///
/// # Errors
///
/// When the table's declaration is not one that DynamoDB takes.
pub fn partition_key(table: &Table) -> Result<String, TablesError> {
    let request = request(table)?;
    let hash = request.key_schema.into_iter().find(|key| key.key_type == KeyType::HASH);
    let missing = || TablesError::Declaration { table: table.name.clone(), reason: "it has no hash key".to_owned() };
    Ok(hash.ok_or_else(missing)?.attribute_name)
}

/// Deletes expired items from time to time, until it is dropped.
pub async fn sweep(database: Database) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let database = database.clone();
        match tokio::task::spawn_blocking(move || database.sweep_ttl()).await {
            Ok(Ok(deleted)) => tracing::debug!(deleted, "expired items were deleted"),
            Ok(Err(error)) => tracing::warn!(%error, "expired items were not deleted"),
            Err(_) => return,
        }
    }
}

fn create(database: &Database, table: &Table) -> Result<(), TablesError> {
    let failed = |reason: String| TablesError::Declaration { table: table.name.clone(), reason };
    let request = request(table)?;
    match database.describe_table(DescribeTableRequest { table_name: table.name.clone() }) {
        Ok(existing) => check_unchanged(table, &request, &existing.table)?,
        Err(_) => {
            database.create_table(request).map_err(|error| failed(error.to_string()))?;
        }
    }
    if let Some(attribute) = &table.time_to_live_attribute {
        let described = DescribeTimeToLiveRequest { table_name: table.name.clone() };
        let described = database.describe_time_to_live(described).map_err(|error| failed(error.to_string()))?;
        if described.time_to_live_description.attribute_name.as_ref() != Some(attribute) {
            let time_to_live_specification =
                TimeToLiveSpecification { attribute_name: attribute.clone(), enabled: true };
            let request = UpdateTimeToLiveRequest { table_name: table.name.clone(), time_to_live_specification };
            database.update_time_to_live(request).map_err(|error| failed(error.to_string()))?;
        }
    }
    Ok(())
}

fn request(table: &Table) -> Result<CreateTableRequest, TablesError> {
    serde_json::from_str(&table.create_request).map_err(|error| TablesError::Declaration {
        table: table.name.clone(),
        reason: error.to_string().trim_start_matches("VALIDATION:").to_owned(),
    })
}

fn check_unchanged(
    table: &Table,
    declared: &CreateTableRequest,
    existing: &dynoxide::actions::TableDescription,
) -> Result<(), TablesError> {
    let changed = |what| TablesError::Changed { table: table.name.clone(), what };
    if declared.key_schema != existing.key_schema {
        return Err(changed("keys"));
    }
    let declared_indexes = declared.global_secondary_indexes.iter().flatten();
    let mut declared_indexes: Vec<_> = declared_indexes.map(|index| (&index.index_name, &index.key_schema)).collect();
    let existing_indexes = existing.global_secondary_indexes.iter().flatten();
    let mut existing_indexes: Vec<_> = existing_indexes.map(|index| (&index.index_name, &index.key_schema)).collect();
    declared_indexes.sort_by_key(|(name, _)| *name);
    existing_indexes.sort_by_key(|(name, _)| *name);
    if declared_indexes != existing_indexes {
        return Err(changed("indexes"));
    }
    Ok(())
}
