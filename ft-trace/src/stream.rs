//! The tables of a trace as one stream ordered by time.
//!
//! Release rule. A writer may be stopped between its time stamp and its place in the ring, and a
//! kernel record may wait in its buffer: so neither the rings nor the spool are sorted. The
//! conversion takes one segment of the spool as a whole, once it is closed, and sorts it; it waits
//! for nothing. What comes later than its time appears in a later part, so neighbouring parts may
//! overlap by as much as a writer was stopped or a record waited. Nothing is dropped for being late;
//! `meta.json` counts the rows that are older than the newest row of the parts before, and by how
//! much at most. The reader merges the parts that overlap, so what comes out of [`events`] (and of
//! [`Trace::rows`]) is in order, always. Equal times: see [`crate::event`].

use std::ops::Range;

use crate::event::Event;
use crate::ids::Nanos;
use crate::store::{Result, Row, Rows, Trace};

/// What can be merged by time.
pub trait Timed {
    /// Time of the item.
    fn ts(&self) -> Nanos;
}

impl Timed for Event {
    fn ts(&self) -> Nanos {
        Event::ts(self)
    }
}

/// A table as a stream of items, with the next one already read.
struct Stream<T> {
    rows: Box<dyn Iterator<Item = Result<T>>>,
    head: Option<T>,
}

impl<T> Stream<T> {
    /// Returns the head and reads the next one.
    fn advance(&mut self) -> Result<Option<T>> {
        let next = self.rows.next().transpose()?;
        Ok(std::mem::replace(&mut self.head, next))
    }
}

/// Every time.
pub(crate) const ALL: Range<i64> = i64::MIN..i64::MAX;

/// Iterator over the rows of several tables by time; after an error it ends.
pub struct Merged<T> {
    /// At equal times the first of them comes first.
    streams: Vec<Stream<T>>,
    /// The first heads are read.
    primed: bool,
}

/// All events of a trace that analyses look at, by time.
///
/// Memory: one batch of rows for each table and each of its parts that overlap at a time.
pub fn events(trace: &Trace) -> Merged<Event> {
    Event::merged(trace, &ALL)
}

/// The events of `window` that analyses look at, by time (CLOCK_MONOTONIC ns).
pub fn events_within(trace: &Trace, window: &Range<i64>) -> Merged<Event> {
    Event::merged(trace, window)
}

/// How many events [`events`] yields, by what the trace says of itself.
pub fn count(trace: &Trace) -> u64 {
    let tables = Event::TABLES.iter().filter_map(|table| trace.meta().tables.get(*table));
    tables.map(|table| table.rows).sum()
}

impl<T> Default for Merged<T> {
    /// Of no table yet.
    fn default() -> Merged<T> {
        Merged { streams: Vec::new(), primed: false }
    }
}

impl<T: Timed + 'static> Merged<T> {
    /// Merges a table, whose rows come behind those of the tables before at equal times.
    pub fn with<R: Row>(mut self, rows: Rows<R>, wrap: fn(R) -> T) -> Merged<T> {
        let rows = Box::new(rows.map(move |row| row.map(wrap)));
        self.streams.push(Stream { rows, head: None });
        self
    }

    /// Merges the rows of a table whose first column lies in `keys`; a trace of an earlier version, which does not say
    /// that it has the table, need not have it.
    pub fn with_any<R: Row>(self, trace: &Trace, keys: &Range<i64>, wrap: fn(R) -> T) -> Merged<T> {
        let says = trace.meta().tables.contains_key(R::TABLE);
        if says || trace.has::<R>() {
            self.with(trace.rows_within(keys.clone()), wrap)
        } else {
            self
        }
    }

    fn take(&mut self) -> Result<Option<T>> {
        if !std::mem::replace(&mut self.primed, true) {
            for stream in &mut self.streams {
                stream.advance()?;
            }
            // Kernel groups that were not recorded.
            self.streams.retain(|stream| stream.head.is_some());
        }
        // `min_by_key` returns the first of equals.
        let due = self.streams.iter_mut().filter(|s| s.head.is_some());
        match due.min_by_key(|s| s.head.as_ref().map(T::ts)) {
            Some(stream) => stream.advance(),
            None => Ok(None),
        }
    }
}

impl<T: Timed + 'static> Iterator for Merged<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let result = self.take();
        if result.is_err() {
            self.streams.clear();
        }
        result.transpose()
    }
}

#[cfg(test)]
mod tests;
