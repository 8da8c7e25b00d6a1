//! The folder with the functions' logs, JSON lines as CloudWatch would have them: where it is, and how much it may hold. Writes
//! no line itself.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Ending of a log file.
const LOG: &str = "log";
/// Ending of what a log file held before it was too long.
const EARLIER: &str = "log.1";
/// Bytes of a log file from which on it begins anew; as many are kept of before.
pub const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How often it is looked how long they are.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Returns where a stack whose queues are at this port logs, unless it is told otherwise.
pub fn default_folder(sqs_port: u16) -> PathBuf {
    std::env::temp_dir().join(format!("local-stack-{sqs_port}"))
}

/// Makes a folder, without what an earlier stack has logged there.
///
/// # Errors
/// It cannot be made, or a log cannot be removed.
pub fn new_folder(folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_log(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(folder.to_owned())
}

/// Keeps the logs of a folder bounded, until it is dropped.
pub async fn keep_bounded(folder: PathBuf) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Err(error) = bound(&folder, LOG_BYTES_MAX) {
            tracing::warn!(%error, "the logs cannot be kept short");
        }
    }
}

/// Begins the log files anew that have more than `bytes_max`. What they held is kept beside them, in place of what was kept there
/// before. The functions append to the same file all the time: a line that is written between the copy and the cut is lost.
///
/// # Errors
/// A file cannot be read or written.
pub fn bound(folder: &Path, bytes_max: u64) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == LOG) && entry.metadata()?.len() > bytes_max {
            fs::copy(&path, path.with_extension(EARLIER))?;
            OpenOptions::new().write(true).open(&path)?.set_len(0)?;
        }
    }
    Ok(())
}

fn is_log(path: &Path) -> bool {
    path.to_str().is_some_and(|path| [LOG, EARLIER].iter().any(|ending| path.ends_with(&format!(".{ending}"))))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_long_log_begins_anew_and_its_writer_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p-api.log");
        let mut writer = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        writer.write_all(b"first\n").unwrap();
        bound(folder.path(), 6).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\n");
        writer.write_all(b"second\n").unwrap();
        bound(folder.path(), 6).unwrap();
        writer.write_all(b"third\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "third\n");
        assert_eq!(fs::read_to_string(folder.path().join("p-api.log.1")).unwrap(), "first\nsecond\n");
    }

    #[test]
    fn a_new_folder_has_no_log_of_before_and_keeps_everything_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["p-api.log", "p-api.log.1", "notes.txt"] {
            fs::write(folder.path().join(name), "text").unwrap();
        }
        new_folder(folder.path()).unwrap();
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["notes.txt"]);
    }
}
