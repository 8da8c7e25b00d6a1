//! Looking at dead letters. Nothing is moved, but a message that is looked at is away for a moment.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

use events::{EventType, Timestamp};
use serde::Serialize;

use super::letter::DeadLetter;
use super::queues::{Queues, Received};
use super::redrive::RedriveError;
use super::scan::{Ending, Scan};
use super::selection::Selection;
use super::source::Source;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::trace::{Logs, LogsError};

/// What looks at dead letters.
#[derive(Debug)]
pub struct List<'a, Q> {
    /// The queues.
    pub queues: &'a Q,
    /// The logs, if they are to say why a letter is dead.
    pub logs: Option<&'a Logs>,
    /// Which letters are meant.
    pub selection: &'a Selection,
    /// Whether to stop.
    pub stop: &'a Stop,
    /// The moment of which it is judged how old letters are.
    pub now: Timestamp,
}

/// What was seen of one queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Whose dead letters.
    pub consumer: Source,
    /// Messages that the queue has, about.
    pub messages: u64,
    /// Those that were looked at.
    pub seen: u64,
    /// Those of them that were meant.
    pub selected: u64,
    /// How going through the queue ended.
    pub ending: Ending,
}

/// Letters that have the same to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Whose dead letters.
    pub consumer: Source,
    /// Their type, if it is one that this code knows.
    pub event_type: Option<String>,
    /// The name of their reason.
    pub reason: String,
    /// How many.
    pub letters: u64,
}

/// What was seen of all queues.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Summary {
    /// Queue by queue.
    pub queues: Vec<Counted>,
    /// The letters that were meant, by what they say.
    pub groups: Vec<Group>,
}

impl<Q: Queues> List<'_, Q> {
    /// Goes through one queue, adds to the summary, and shows the letters that are meant until `show` has seen enough.
    ///
    /// # Errors
    /// A queue or the logs did not answer.
    pub async fn run(
        &self,
        source: Source,
        summary: &mut Summary,
        progress: &impl Progress,
        mut show: impl FnMut(&DeadLetter, &Received) -> ControlFlow<()>,
    ) -> Result<(), RedriveError> {
        let queue = source.queue_name();
        let count = self.queues.count(&queue).await.map_err(|source| RedriveError::Queue { sent: 0, source })?;
        progress.begin(count);
        let mut scan = Scan::new(self.queues, queue, count, Duration::ZERO);
        let mut groups = BTreeMap::new();
        let result = self.go_through(source, &mut scan, &mut groups, progress, &mut show).await;
        scan.give_back().await;
        progress.end();
        result?;
        let (seen, ending) = (scan.seen, scan.ending);
        let selected = groups.values().sum();
        summary.queues.push(Counted { consumer: source, messages: count, seen, selected, ending });
        summary.groups.extend(groups.into_iter().map(|((event_type, reason), letters)| Group {
            consumer: source,
            event_type: event_type.map(|event_type| event_type.to_string()),
            reason: reason.to_owned(),
            letters,
        }));
        Ok(())
    }

    async fn go_through(
        &self,
        source: Source,
        scan: &mut Scan<'_, Q>,
        groups: &mut BTreeMap<(Option<EventType>, &'static str), u64>,
        progress: &impl Progress,
        show: &mut impl FnMut(&DeadLetter, &Received) -> ControlFlow<()>,
    ) -> Result<(), RedriveError> {
        while !self.stop.is_wished() {
            let next = scan.next().await.map_err(|source| RedriveError::Queue { sent: 0, source })?;
            let Some(messages) = next else { return Ok(()) };
            messages.iter().for_each(|message| scan.hold(message));
            let letters = letters(source, &messages, self.logs, self.now).await;
            let letters = letters.map_err(|source| RedriveError::Logs { sent: 0, source })?;
            for (letter, message) in letters.iter().zip(&messages).filter(|(letter, _)| self.selection.takes(letter)) {
                let event_type = letter.event_type.as_ref().and_then(|event_type| event_type.parse().ok());
                *groups.entry((event_type, letter.reason.kind())).or_default() += 1;
                if show(letter, message).is_break() {
                    return Ok(());
                }
            }
            progress.at(scan.seen, &format!("{} selected", groups.values().sum::<u64>()));
        }
        Ok(())
    }
}

/// Looks at messages, and asks the logs about those that say nothing themselves.
pub(crate) async fn letters(
    source: Source,
    messages: &[Received],
    logs: Option<&Logs>,
    now: Timestamp,
) -> Result<Vec<DeadLetter>, LogsError> {
    let mut letters: Vec<DeadLetter> = messages.iter().map(|message| DeadLetter::read(source, message, now)).collect();
    if let Some(logs) = logs {
        let ids: Vec<&str> = letters.iter().map(|letter| letter.message_id.as_str()).collect();
        let mut reasons = logs.reasons(source.function_name(), &ids).await?;
        for letter in &mut letters {
            letter.logged_reason = reasons.remove(&letter.message_id);
        }
    }
    Ok(letters)
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: u64 = self.queues.iter().map(|queue| queue.messages).sum();
        let selected: u64 = self.queues.iter().map(|queue| queue.selected).sum();
        write!(formatter, "{messages} dead letters in {} queues, {selected} selected", self.queues.len())?;
        for group in &self.groups {
            let event_type = group.event_type.as_deref().unwrap_or("?");
            write!(
                formatter,
                "\n{:>9}  {:<22}  {event_type:<22}  {}",
                group.letters,
                group.consumer.to_string(),
                group.reason
            )?;
        }
        for queue in self.queues.iter().filter(|queue| queue.ending != Ending::Complete) {
            write!(formatter, "\n{}: {}", queue.consumer, queue.ending)?;
        }
        Ok(())
    }
}
