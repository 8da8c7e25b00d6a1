//! The topology as a graph that Mermaid draws (<https://mermaid.js.org/syntax/flowchart.html>).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Topology;
use crate::model::{Model, Route};

/// Draws the way of an event from a request to what is read: paths come from the template, everything else from the topology.
pub fn picture(topology: &Topology, model: &Model) -> String {
    let Topology { relay, rejected_queue, api, .. } = topology;
    let is_read = |route: &&Route| route.method == "GET";
    let commands = resources(model.routes.iter().filter(|route| !is_read(route)));
    let reads = resources(model.routes.iter().filter(is_read));
    let mut text = format!(
        "flowchart LR\n\
         \x20   clients([players, moderators, game servers, shops]) -- \"POST, PUT, DELETE<br>{commands}\" --> api[{api}]\n\
         \x20   api -- \"one write:<br>records + one event\" --> records[(records)]\n\
         \x20   clock([schedule]) --> canary[canary] -- \"a record for every queue\" --> records\n\
         \x20   records -- stream --> relay[{relay}]\n\
         \x20   relay -. \"can never be sent\" .-> rejected[[{rejected_queue}]]\n\
         \x20   views[(views)] --> reads[\"GET {reads}\"]\n"
    );
    for (index, consumer) in topology.consumers.iter().enumerate() {
        let number = index + 1;
        let table = if consumer.publishes.is_empty() { "views" } else { "records" };
        let _ = writeln!(
            text,
            "    relay --> q{number}[[\"{}\"]] --> c{number}[{}] -- \"{}\" --> {table}",
            consumer.queue, consumer.name, consumer.keeps
        );
        if let Some(external) = consumer.external {
            let _ = writeln!(text, "    c{number} -- \"POST, idempotency key\" --> {external}([{external}])");
        }
    }
    let queues: Vec<String> = (1..=topology.consumers.len()).map(|number| format!("q{number}")).collect();
    let _ = writeln!(text, "    {} -. redrive .-> dead[[\"a dead letter queue each\"]]", queues.join(" & "));
    text
}

/// Returns the first parts of the routes' paths.
fn resources<'a>(routes: impl Iterator<Item = &'a Route>) -> String {
    let first = |route: &'a Route| route.path.split('/').find(|part| !part.is_empty());
    let parts: BTreeSet<&str> = routes.filter_map(first).collect();
    parts.into_iter().map(|part| format!("/{part}")).collect::<Vec<_>>().join(", ")
}
