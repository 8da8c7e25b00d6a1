//! The logs of a local stack: a file a function, a line an event, and beside it what the file held before it was too long.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::line::Line;
use super::search::{LINES_MAX, Search};
use super::{LogsError, function_names};

/// Bytes of a line that are read; what is longer is no line of the functions' own.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// The logs of a local stack.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    prefix: String,
}

/// Returns where a local stack logs whose queues are at this port, unless it is told otherwise.
pub(crate) fn default_folder(sqs_port: u16) -> PathBuf {
    std::env::temp_dir().join(format!("local-stack-{sqs_port}"))
}

impl Folder {
    /// Reads the logs in this folder of the functions whose names begin with the prefix and a hyphen.
    pub fn new(path: impl Into<PathBuf>, prefix: impl Into<String>) -> Self {
        Self { path: path.into(), prefix: prefix.into() }
    }

    /// Returns the lines that are searched for, a function after the other.
    ///
    /// # Errors
    /// The folder is not there, or a file cannot be read.
    pub fn lines(&self, search: &Search) -> Result<Vec<Line>, LogsError> {
        let failed = |path: &Path, source: io::Error| LogsError {
            place: format!("log {}", path.display()),
            source: Box::new(source),
        };
        std::fs::read_dir(&self.path).map_err(|error| failed(&self.path, error))?;
        let mut lines = Vec::new();
        for function in function_names().filter(|name| search.function().is_none_or(|function| function == *name)) {
            for ending in ["log.1", "log"] {
                let path = self.path.join(format!("{}-{function}.{ending}", self.prefix));
                match File::open(&path) {
                    Ok(file) => read(file, function, search, &mut lines).map_err(|error| failed(&path, error))?,
                    // A function that was never called has none.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(failed(&path, error)),
                }
            }
        }
        Ok(lines)
    }
}

/// Adds the lines of a file that are searched for.
fn read(file: File, function: &str, search: &Search, lines: &mut Vec<Line>) -> io::Result<()> {
    let wanted = search.trait_of_lines();
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let mut bytes = Vec::new();
    while lines.len() < LINES_MAX {
        bytes.clear();
        if io::Read::take(&mut reader, LINE_BYTES_MAX).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&bytes);
        if wanted.as_ref().is_some_and(|wanted| !text.contains(wanted.as_str())) {
            continue;
        }
        lines.extend(Line::read(function, &text).filter(|line| search.takes(line)));
    }
    Ok(())
}
