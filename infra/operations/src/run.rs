//! Carrying out what the operator says, and saying what came of it.

use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;

use events::EventId;
use serde::Serialize;

use crate::command_line::{Arguments, Chosen, Command, DeadLettersCommand, How, Rebuildable, RepublishArguments};
use crate::connect::Reach;
use crate::dead_letters::{DeadLetter, List, Mode, Queues, Received, Redrive, Selection, Source, Summary};
use crate::gaps;
use crate::moment::now;
use crate::output::{Ended, Format, Output};
use crate::progress::{Bar, Progress};
use crate::rebuild::{self, Begin, OrderRebuild, Report};
use crate::republish::{Published, Republish};
use crate::show::Shown;
use crate::stop::Stop;

type Failure = Box<dyn Error + Send + Sync>;

/// Carries out a command.
///
/// # Errors
/// The stack cannot be reached, or the command could not be carried out.
pub async fn run(arguments: Arguments) -> Result<Ended, Failure> {
    let format = if arguments.json { Format::Json } else { Format::Text };
    let reach = Reach::new(arguments.place).await?;
    match arguments.command {
        Command::DeadLetters { command } => dead_letters(&reach, command, format).await,
        Command::Republish(arguments) => republish(&reach, &arguments, &Output::new(format, "records")).await,
        Command::Gaps => gaps(&reach, &Output::new(format, "gaps")).await,
        Command::Trace { event_id } => trace(&reach, event_id, &Output::new(format, "lines")).await,
        Command::Rebuild { what: Rebuildable::Orders, restart } => {
            let begin = if restart { Begin::Anew } else { Begin::WhereItEnded };
            rebuild_orders(&reach, begin, &Output::new(format, "records")).await
        }
    }
}

async fn dead_letters(reach: &Reach, command: DeadLettersCommand, format: Format) -> Result<Ended, Failure> {
    let output = Output::new(format, "messages");
    match command {
        DeadLettersCommand::List { chosen, limit } => list(reach, &chosen, limit, &output).await,
        DeadLettersCommand::Show { id, consumers } => show(reach, &id, &consumers, &output).await,
        DeadLettersCommand::Redrive { chosen, all: _, how } => redrive(reach, &chosen, how, &output).await,
    }
}

async fn list(reach: &Reach, chosen: &Chosen, limit: usize, output: &Output) -> Result<Ended, Failure> {
    let (queues, stop) = (reach.queues(), Stop::on_interrupt());
    let logs = chosen.with_logs.then(|| reach.logs());
    let selection = chosen.selection();
    let list = List { queues: &queues, logs: logs.as_ref(), selection: &selection, stop: &stop, now: now() };
    let (mut summary, mut shown, mut failed) = (Summary::default(), 0, None);
    for source in sources(&queues, &chosen.consumers).await? {
        let show = |letter: &DeadLetter, _: &Received| {
            if shown < limit {
                shown += 1;
                failed = output.say("dead_letter", letter).err();
            }
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        list.run(source, &mut summary, &output.bar, show).await?;
        if failed.is_some() || stop.is_wished() {
            break;
        }
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    output.say("dead_letters", &summary)?;
    Ok(if stop.is_wished() { Ended::Interrupted } else { Ended::Done })
}

async fn show(reach: &Reach, id: &str, consumers: &[Source], output: &Output) -> Result<Ended, Failure> {
    let (queues, stop) = (reach.queues(), Stop::on_interrupt());
    let (logs, selection) = (reach.logs(), Selection::default());
    let list = List { queues: &queues, logs: None, selection: &selection, stop: &stop, now: now() };
    let mut found = Vec::new();
    for source in sources(&queues, consumers).await? {
        let take = |letter: &DeadLetter, received: &Received| {
            let is_it = letter.message_id == id || letter.event_id.is_some_and(|event_id| event_id.to_string() == id);
            if is_it {
                found.push((source, Shown::new(letter, received)));
            }
            ControlFlow::Continue(())
        };
        list.run(source, &mut Summary::default(), &output.bar, take).await?;
        if stop.is_wished() {
            return Ok(Ended::Interrupted);
        }
    }
    for (source, shown) in &mut found {
        // Where the logs cannot be asked, the letter is worth showing all the same.
        let reasons = logs.reasons(source.function_name(), &[shown.letter.message_id.as_str()]).await;
        shown.letter.logged_reason = reasons.ok().and_then(|mut reasons| reasons.remove(&shown.letter.message_id));
        output.say("dead_letter", shown)?;
    }
    Ok(if found.is_empty() { Ended::LeftOver } else { Ended::Done })
}

async fn redrive(reach: &Reach, chosen: &Chosen, how: How, output: &Output) -> Result<Ended, Failure> {
    let (queues, tables, stop) = (reach.queues(), reach.tables(), Stop::on_interrupt());
    let logs = chosen.with_logs.then(|| reach.logs());
    let redrive = Redrive {
        queues: &queues,
        records: &tables,
        logs: logs.as_ref(),
        selection: &chosen.selection(),
        mode: mode(how),
        rate: how.rate,
        stop: &stop,
        now: now(),
    };
    let mut ended = Ended::Done;
    for source in sources(&queues, &chosen.consumers).await? {
        let report = redrive.run(source, &output.bar).await?;
        output.say("redrive", &report)?;
        if !report.is_done() {
            ended = Ended::LeftOver;
        }
        if stop.is_wished() {
            return Ok(Ended::Interrupted);
        }
    }
    Ok(ended)
}

/// Returns the sources that are named; if none is, those that have letters. That count is some seconds old, so a letter that
/// came just now may be missed, but nobody waits a second for each empty queue.
async fn sources(queues: &impl Queues, named: &[Source]) -> Result<Vec<Source>, Failure> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let mut sources = Vec::new();
    for source in Source::all() {
        if queues.count(&source.queue_name()).await? > 0 {
            sources.push(source);
        }
    }
    Ok(sources)
}

async fn republish(reach: &Reach, arguments: &RepublishArguments, output: &Output) -> Result<Ended, Failure> {
    let (queues, tables, stop) = (reach.queues(), reach.tables(), Stop::on_interrupt());
    let published = Published {
        since: arguments.since,
        until: arguments.until.unwrap_or_else(now),
        event_types: arguments.event_types.iter().copied().collect(),
        consumers: arguments.consumers.iter().copied().collect(),
    };
    let (mode, rate) = (mode(arguments.how), arguments.how.rate);
    let republish = Republish { queues: &queues, published: &published, mode, rate, stop: &stop };
    let report = republish.run(&tables, &output.bar).await?;
    output.say("republish", &report)?;
    Ok(match (report.interrupted, report.failed) {
        (true, _) => Ended::Interrupted,
        (false, 0) => Ended::Done,
        (false, _) => Ended::LeftOver,
    })
}

async fn gaps(reach: &Reach, output: &Output) -> Result<Ended, Failure> {
    let tables = reach.tables();
    let (mut after, mut open) = (String::new(), 0);
    loop {
        let (gaps, end) = gaps::page(&tables, &after).await?;
        for gap in &gaps {
            output.say("gap", gap)?;
        }
        open += gaps.len();
        match end {
            Some(end) => after = end,
            None => break,
        }
    }
    output.say("gaps", &OpenGaps { open })?;
    Ok(Ended::Done)
}

async fn trace(reach: &Reach, event_id: EventId, output: &Output) -> Result<Ended, Failure> {
    match reach.logs().life(event_id).await? {
        Some(life) => {
            output.say("trace", &life)?;
            Ok(Ended::Done)
        }
        None => {
            eprintln!("no line is logged about event {event_id}");
            Ok(Ended::LeftOver)
        }
    }
}

async fn rebuild_orders(reach: &Reach, begin: Begin, output: &Output) -> Result<Ended, Failure> {
    let rebuild = OrderRebuild::new(reach.scans(), reach.writes(), reach.table_names());
    let report = rebuild.run(begin, &output.bar).await?;
    output.say("rebuild", &report)?;
    Ok(if report.incomplete.is_empty() { Ended::Done } else { Ended::LeftOver })
}

fn mode(how: How) -> Mode {
    if how.dry_run { Mode::DryRun } else { Mode::Send }
}

/// How many orders miss events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct OpenGaps {
    open: usize,
}

impl fmt::Display for OpenGaps {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} orders miss events", self.open)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} orders looked at, {} of them rewritten", self.orders, self.rewritten)?;
        for (order_id, version) in &self.incomplete {
            write!(formatter, "\norder {order_id}: event {version} is missing or cannot be read")?;
        }
        Ok(())
    }
}

impl rebuild::Progress for Bar {
    fn begin(&self, records: u64) {
        Progress::begin(self, records);
    }

    fn page(&self, records: u64, report: &Report) {
        self.at(records, &format!("{} orders, {} rewritten", report.orders, report.rewritten));
    }

    fn end(&self) {
        Progress::end(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_a_rebuild_names_the_orders_with_gaps() {
        let incomplete = vec![("o-1".parse().unwrap(), 3)];
        let report = Report { orders: 12, rewritten: 2, incomplete };
        let expected = "12 orders looked at, 2 of them rewritten\norder o-1: event 3 is missing or cannot be read";
        assert_eq!(report.to_string(), expected);
    }
}
