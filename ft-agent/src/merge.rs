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

use crate::event::{Event, LeanUserEvent};
use crate::store::rows::{Irq, LossRow, SchedMigrate, SchedSwitch, SchedWaking, TaskEvent};
use crate::store::{Result, Row, Trace};

/// A table as a stream of events, with the next one already read.
struct Stream {
    rows: Box<dyn Iterator<Item = Result<Event>>>,
    head: Option<Event>,
}

impl Stream {
    /// Returns the head and reads the next one.
    fn advance(&mut self) -> Result<Option<Event>> {
        let next = self.rows.next().transpose()?;
        Ok(std::mem::replace(&mut self.head, next))
    }
}

/// Iterator over all events; after an error it ends.
pub struct Events {
    /// In the order of [`Event::rank`].
    streams: Vec<Stream>,
    /// The first heads are read.
    primed: bool,
}

/// All events of a trace: losses, tasks, scheduler, interrupts and user events, by time.
///
/// Memory: one batch of rows for each table and each of its parts that overlap at a time.
pub fn events(trace: &Trace) -> Events {
    fn stream<R: Row>(trace: &Trace, wrap: fn(R) -> Event) -> Stream {
        Stream { rows: Box::new(trace.rows::<R>().map(move |row| row.map(wrap))), head: None }
    }
    let streams = vec![
        stream::<LossRow>(trace, Event::Loss),
        stream::<TaskEvent>(trace, Event::Task),
        stream::<SchedWaking>(trace, Event::Waking),
        stream::<SchedMigrate>(trace, Event::Migrate),
        stream::<SchedSwitch>(trace, Event::Switch),
        stream::<Irq>(trace, Event::Irq),
        stream::<LeanUserEvent>(trace, Event::User),
    ];
    Events { streams, primed: false }
}

impl Events {
    fn take(&mut self) -> Result<Option<Event>> {
        if !std::mem::replace(&mut self.primed, true) {
            for stream in &mut self.streams {
                stream.advance()?;
            }
        }
        // `min_by_key` returns the first of equals, which is the one of the lowest rank.
        let due = self.streams.iter_mut().filter(|s| s.head.is_some());
        match due.min_by_key(|s| s.head.as_ref().map(Event::ts)) {
            Some(stream) => stream.advance(),
            None => Ok(None),
        }
    }
}

impl Iterator for Events {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        let result = self.take();
        if result.is_err() {
            self.streams.clear();
        }
        result.transpose()
    }
}

#[cfg(test)]
mod tests;
