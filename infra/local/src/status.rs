//! What is shown on the screen while the stack runs: a line a function, kept in place on a terminal. Counts nothing.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a terminal is refreshed.
const REFRESH: Duration = Duration::from_secs(1);

/// How often plain output gets new lines, if anything changed.
const REPORT: Duration = Duration::from_secs(5);

/// What one function and its source are doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Function's name.
    pub function: String,
    /// Living processes.
    pub instances: usize,
    /// Records or requests that wait.
    pub backlog: usize,
    /// Invocations under way.
    pub in_flight: usize,
    /// Records or requests done since the start.
    pub done: u64,
    /// Invocations that failed since the start.
    pub errors: u64,
    /// Messages in the dead letter queues of its sources; nothing where there are none.
    pub dead_letters: Option<usize>,
}

/// What the stack is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// One row a function.
    pub rows: Vec<Row>,
    /// Queues that nobody reads and that are not empty, with the number of their messages.
    pub unread: Vec<(String, usize)>,
}

/// The screen: lines that stay, and below them, on a terminal, a block that is refreshed in place.
pub struct Screen {
    mode: Mode,
    state: Mutex<State>,
}

/// Where the screen's lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A terminal, on which the block is refreshed in place.
    Terminal,
    /// A file or a pipe, to which lines are only added.
    Plain,
}

struct State {
    out: Box<dyn Write + Send>,
    /// The block at the bottom.
    block: Vec<String>,
    before: Option<(Instant, Snapshot)>,
}

impl Screen {
    /// Returns the screen of the standard output.
    pub fn standard_output() -> Self {
        let out = std::io::stdout();
        let mode = if out.is_terminal() { Mode::Terminal } else { Mode::Plain };
        Self::new(mode, Box::new(out))
    }

    /// Returns a screen that writes somewhere.
    pub fn new(mode: Mode, out: Box<dyn Write + Send>) -> Self {
        Self { mode, state: Mutex::new(State { out, block: Vec::new(), before: None }) }
    }

    /// Adds lines that stay. A screen that cannot be written to is no reason to stop.
    pub fn say(&self, text: &str) {
        self.write(text, None);
    }

    /// Shows what the stack is doing: in place on a terminal, elsewhere only if something changed.
    pub fn show(&self, snapshot: Snapshot) {
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.before.replace((now, snapshot.clone()));
        drop(state);
        let table = table(&snapshot, before.as_ref().map(|(at, before)| (now.duration_since(*at), before)));
        match self.mode {
            Mode::Terminal => self.write("", Some(table)),
            Mode::Plain if before.is_none_or(|(_, before)| before != snapshot) => self.write(&table.join("\n"), None),
            Mode::Plain => {}
        }
    }

    /// Shows snapshots again and again, until it is dropped.
    pub async fn watch(&self, snapshot: impl Fn() -> Snapshot) {
        let every = match self.mode {
            Mode::Terminal => REFRESH,
            Mode::Plain => REPORT,
        };
        loop {
            self.show(snapshot());
            tokio::time::sleep(every).await;
        }
    }

    /// Takes the block away, writes lines, and puts the block, or a new one, below them.
    fn write(&self, text: &str, block: Option<Vec<String>>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut output = match state.block.len() {
            0 => String::new(),
            // Up to the block's first line, then clear to the end of the screen.
            lines => format!("\x1b[{lines}A\x1b[J"),
        };
        if let Some(block) = block {
            state.block = block;
        }
        for line in text.lines().chain(state.block.iter().map(String::as_str)) {
            output.push_str(line);
            output.push('\n');
        }
        let _ = state.out.write_all(output.as_bytes()).and_then(|()| state.out.flush());
    }
}

/// Returns the lines of a snapshot; rates are those since an earlier one.
fn table(snapshot: &Snapshot, before: Option<(Duration, &Snapshot)>) -> Vec<String> {
    let width = snapshot.rows.iter().map(|row| row.function.len()).max().unwrap_or_default().max("function".len());
    let line = |name: &str, columns: [&str; 6]| {
        let [instances, backlog, in_flight, done, errors, dead_letters] = columns;
        format!(
            "{name:width$}  {instances:>9}  {backlog:>9}  {in_flight:>9}  {done:>9}  {errors:>7}  {dead_letters:>12}"
        )
    };
    let head = line("function", ["instances", "backlog", "in flight", "done/s", "errors", "dead letters"]);
    let rows = snapshot.rows.iter().map(|row| {
        let dead_letters = row.dead_letters.map_or("-".to_owned(), |count| count.to_string());
        let columns = [
            row.instances.to_string(),
            row.backlog.to_string(),
            row.in_flight.to_string(),
            rate(row, before),
            row.errors.to_string(),
            dead_letters,
        ];
        line(&row.function, columns.each_ref().map(String::as_str))
    });
    let unread =
        snapshot.unread.iter().map(|(queue, count)| format!("queue {queue}: {count} messages, nobody reads it"));
    std::iter::once(head).chain(rows).chain(unread).collect()
}

fn rate(row: &Row, before: Option<(Duration, &Snapshot)>) -> String {
    let per_second = before.and_then(|(elapsed, before)| {
        let before = before.rows.iter().find(|before| before.function == row.function)?;
        Some(row.done.saturating_sub(before.done) as f64 / elapsed.as_secs_f64().max(0.001))
    });
    match per_second.unwrap_or_default() {
        none if none < 0.05 => "0".to_owned(),
        few if few < 9.95 => format!("{few:.1}"),
        many => format!("{many:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        fn take(&self) -> String {
            String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
        }
    }

    fn snapshot(done: u64) -> Snapshot {
        let row = Row { function: "api".to_owned(), instances: 2, done, ..Row::default() };
        Snapshot { rows: vec![row], unread: vec![] }
    }

    #[test]
    fn plain_output_only_tells_what_changed() {
        let written = Written::default();
        let screen = Screen::new(Mode::Plain, Box::new(written.clone()));

        screen.show(snapshot(1));
        assert_eq!(written.take().lines().count(), 2);
        screen.show(snapshot(1));
        assert_eq!(written.take(), "");
        screen.show(snapshot(2));
        assert_eq!(written.take().lines().count(), 2);
    }

    #[test]
    fn a_terminal_keeps_the_block_below_everything_else() {
        let written = Written::default();
        let screen = Screen::new(Mode::Terminal, Box::new(written.clone()));
        screen.show(snapshot(1));
        written.take();

        screen.say("hello");

        let output = written.take();
        let lines: Vec<_> = output.lines().collect();
        assert_eq!(lines[0], "\x1b[2A\x1b[Jhello");
        assert!(lines[1].starts_with("function") && lines[2].starts_with("api"));
    }

    #[test]
    fn the_rate_is_what_was_done_since_the_last_time() {
        let lines = table(&snapshot(150), Some((Duration::from_secs(2), &snapshot(50))));

        let columns: Vec<_> = lines[1].split_whitespace().collect();
        assert_eq!(columns, ["api", "2", "0", "0", "50", "0", "-"]);
    }

    #[test]
    fn a_queue_that_nobody_reads_is_named() {
        let snapshot = Snapshot { rows: vec![], unread: vec![("rejected".to_owned(), 3)] };

        assert_eq!(table(&snapshot, None)[1], "queue rejected: 3 messages, nobody reads it");
    }
}
