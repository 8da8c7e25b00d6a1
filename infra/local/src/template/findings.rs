//! What has been read so far, and the checks that need all of it: names are taken once, links lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::error::{Place, TemplateError};
use super::fields::Fields;
use super::names;
use crate::model::{Function, Model, Queue, QueueMapping, Route, Schedule, StreamMapping, Table, Unsupported};

/// Visibility timeout of a queue that declares none.
const DEFAULT_VISIBILITY_SECONDS: u64 = 30;

/// The model in the making.
#[derive(Debug, Default)]
pub(super) struct Findings {
    model: Model,
    unsupported: Vec<Place>,
    taken: BTreeMap<(&'static str, String), Place>,
    streams: BTreeSet<String>,
    dead_letter_queues: Vec<(Place, String)>,
    /// Places of the event sources and of the functions of the mappings, in the order of the mappings.
    queue_mapping_places: Vec<(Place, Place)>,
    stream_mapping_places: Vec<(Place, Place)>,
}

/// Whether a table has a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// It has none.
    Absent,
    /// It has one.
    Present,
}

impl Findings {
    /// Adds a table.
    ///
    /// # Errors
    /// A name that is taken.
    pub(super) fn table(&mut self, place: Place, table: Table, stream: Stream) -> Result<(), TemplateError> {
        self.take_name("table", &table.name, place)?;
        if stream == Stream::Present {
            self.streams.insert(table.name.clone());
        }
        self.model.tables.push(table);
        Ok(())
    }

    /// Adds a queue.
    ///
    /// # Errors
    /// A name that is taken.
    pub(super) fn queue(&mut self, place: Place, queue: Queue) -> Result<(), TemplateError> {
        self.take_name("queue", &queue.name, place)?;
        self.model.queues.push(queue);
        Ok(())
    }

    /// Notes a queue that a redrive policy names.
    pub(super) fn dead_letter_queue(&mut self, place: Place, arn: &str) {
        self.dead_letter_queues.push((place, names::queue_of(arn).to_owned()));
    }

    /// Adds a function.
    ///
    /// # Errors
    /// A name that is taken.
    pub(super) fn function(&mut self, place: Place, function: Function) -> Result<(), TemplateError> {
        self.take_name("function", &function.name, place)?;
        self.model.functions.push(function);
        Ok(())
    }

    /// Adds a route.
    ///
    /// # Errors
    /// A method and path that are taken.
    pub(super) fn route(&mut self, place: Place, route: Route) -> Result<(), TemplateError> {
        self.take_name("route", &format!("{} {}", route.method, route.path), place)?;
        self.model.routes.push(route);
        Ok(())
    }

    /// Adds a mapping from a queue, with the places that name the queue and the function.
    pub(super) fn queue_mapping(&mut self, queue: Place, function: Place, mapping: QueueMapping) {
        self.queue_mapping_places.push((queue, function));
        self.model.queue_mappings.push(mapping);
    }

    /// Adds a mapping from a stream, with the places that name the stream and the function.
    pub(super) fn stream_mapping(&mut self, stream: Place, function: Place, mapping: StreamMapping) {
        self.stream_mapping_places.push((stream, function));
        self.model.stream_mappings.push(mapping);
    }

    /// Adds a schedule of a function that was added.
    pub(super) fn schedule(&mut self, schedule: Schedule) {
        self.model.schedules.push(schedule);
    }

    /// Reports something that is declared and not acted on.
    pub(super) fn unsupported(&mut self, place: Place) {
        self.unsupported.push(place);
    }

    /// Reports what is left over of some properties.
    pub(super) fn left_over(&mut self, fields: Fields<'_>, ignored: &[(&str, &str)]) {
        self.unsupported.extend(fields.left_over(ignored));
    }

    /// Checks what needs the whole model, and hands it over.
    ///
    /// # Errors
    /// A dead letter queue, an event source or a function that does not exist, and a queue whose messages come back
    /// before the function has had its time.
    pub(super) fn finish(mut self) -> Result<Model, TemplateError> {
        for (place, queue) in &self.dead_letter_queues {
            self.find_queue(place, queue)?;
        }
        for (mapping, (source, function)) in self.model.queue_mappings.iter().zip(&self.queue_mapping_places) {
            let queue = self.find_queue(source, &mapping.queue)?;
            let function = self.find_function(function, &mapping.function)?;
            check_visibility(source, queue, function)?;
        }
        for (mapping, (source, function)) in self.model.stream_mappings.iter().zip(&self.stream_mapping_places) {
            if !self.streams.contains(&mapping.table) {
                return Err(TemplateError::UnknownStream { place: source.clone(), stream: mapping.table.clone() });
            }
            self.find_function(function, &mapping.function)?;
        }
        let unsupported = std::mem::take(&mut self.unsupported);
        self.model.unsupported = in_template_order(unsupported);
        Ok(self.model)
    }

    fn take_name(&mut self, kind: &'static str, name: &str, place: Place) -> Result<(), TemplateError> {
        let key = (kind, name.to_owned());
        if let Some(first) = self.taken.get(&key) {
            let first = Box::new(first.clone());
            return Err(TemplateError::DuplicateName { place, name: name.to_owned(), first });
        }
        self.taken.insert(key, place);
        Ok(())
    }

    fn find_queue(&self, place: &Place, name: &str) -> Result<&Queue, TemplateError> {
        let queue = self.model.queues.iter().find(|queue| queue.name == name);
        queue.ok_or_else(|| TemplateError::UnknownQueue { place: place.clone(), queue: name.to_owned() })
    }

    fn find_function(&self, place: &Place, name: &str) -> Result<&Function, TemplateError> {
        let function = self.model.functions.iter().find(|function| function.name == name);
        function.ok_or_else(|| TemplateError::UnknownLambda { place: place.clone(), function: name.to_owned() })
    }
}

/// Lambda refuses a mapping from a queue whose visibility timeout is below the function's timeout.
fn check_visibility(place: &Place, queue: &Queue, function: &Function) -> Result<(), TemplateError> {
    let visibility = queue.attributes.get("VisibilityTimeout").and_then(|seconds| seconds.parse().ok());
    let visibility = Duration::from_secs(visibility.unwrap_or(DEFAULT_VISIBILITY_SECONDS));
    if visibility >= function.timeout {
        return Ok(());
    }
    Err(TemplateError::InvalidValue {
        place: place.clone(),
        value: format!("the queue {} with a visibility timeout of {} s", queue.name, visibility.as_secs()),
        expected: format!("a queue with at least the {} s that the function may take", function.timeout.as_secs()),
    })
}

fn in_template_order(places: Vec<Place>) -> Vec<Unsupported> {
    let mut files: Vec<Arc<str>> = Vec::new();
    let mut ordered: Vec<(usize, Place)> = Vec::new();
    for place in places {
        let file = files.iter().position(|file| *file == place.file).unwrap_or_else(|| {
            files.push(place.file.clone());
            files.len() - 1
        });
        ordered.push((file, place));
    }
    ordered.sort_by_key(|(file, place)| (*file, place.line));
    let unsupported = ordered.into_iter().map(|(_, place)| Unsupported {
        template: place.file.to_string(),
        resource: place.resource.to_string(),
        property: place.property,
    });
    unsupported.collect()
}
