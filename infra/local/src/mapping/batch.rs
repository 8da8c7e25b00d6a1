//! A batch under way to a function: at most so many records and one payload. Knows no source.

use axum::body::Bytes;

use crate::lambda::PAYLOAD_BYTES_MAX;

const OPENING: &[u8] = br#"{"Records":["#;
const CLOSING: &[u8] = b"]}";

/// A record in the form in which an event carries it.
pub(super) trait Record {
    /// Returns the record's JSON.
    fn json(&self) -> &[u8];
}

/// Records of one invocation.
#[derive(Debug)]
pub(super) struct Batch<R> {
    records: Vec<R>,
    records_max: usize,
    bytes: usize,
}

impl<R: Record> Batch<R> {
    /// Returns a batch for so many records at most.
    pub(super) fn new(records_max: usize) -> Self {
        Self { records: Vec::new(), records_max: records_max.max(1), bytes: OPENING.len() + CLOSING.len() }
    }

    /// Adds a record, or gives it back if the batch has no room for it. A batch has always room for one record.
    pub(super) fn add(&mut self, record: R) -> Result<(), R> {
        let bytes = self.bytes + record.json().len() + 1;
        if self.is_full() || (bytes > PAYLOAD_BYTES_MAX && !self.records.is_empty()) {
            return Err(record);
        }
        self.bytes = bytes;
        self.records.push(record);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= self.records_max
    }

    /// Returns how many more records it can take by their number.
    pub(super) fn room(&self) -> usize {
        self.records_max - self.records.len()
    }

    pub(super) fn into_records(self) -> Vec<R> {
        self.records
    }
}

/// Returns the event that carries these records.
pub(super) fn event<R: Record>(records: &[R]) -> Bytes {
    let bytes = records.iter().map(|record| record.json().len() + 1).sum::<usize>();
    let mut event = Vec::with_capacity(OPENING.len() + bytes + CLOSING.len());
    event.extend_from_slice(OPENING);
    for (position, record) in records.iter().enumerate() {
        if position > 0 {
            event.push(b',');
        }
        event.extend_from_slice(record.json());
    }
    event.extend_from_slice(CLOSING);
    event.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Record for String {
        fn json(&self) -> &[u8] {
            self.as_bytes()
        }
    }

    #[test]
    fn a_batch_takes_as_many_records_as_it_may() {
        let mut batch = Batch::new(2);

        assert_eq!(batch.add("1".to_owned()), Ok(()));
        assert_eq!(batch.add("2".to_owned()), Ok(()));
        assert_eq!(batch.add("3".to_owned()), Err("3".to_owned()));
        assert_eq!(event(&batch.into_records()), r#"{"Records":[1,2]}"#);
    }

    #[test]
    fn a_batch_ends_before_its_payload_is_over_the_limit() {
        let mut batch = Batch::new(1_000);
        let record = "7".repeat(1024 * 1024);

        let taken = (0..10).take_while(|_| batch.add(record.clone()).is_ok()).count();

        assert_eq!(taken, 5);
        assert!(event(&batch.into_records()).len() <= PAYLOAD_BYTES_MAX);
    }

    #[test]
    fn a_record_that_is_over_the_limit_alone_still_goes_out_alone() {
        let mut batch = Batch::new(10);

        assert!(batch.add("7".repeat(PAYLOAD_BYTES_MAX)).is_ok());
        assert!(batch.add("1".to_owned()).is_err());
    }
}
