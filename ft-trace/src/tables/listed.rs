//! An event as one line of a listing: what a table of events says of itself for that.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use crate::ids::{Cpu, Pid, Tid};

/// A row that a listing shows.
///
/// A line begins with time, CPU, thread and name; [`Listed::say`] is what follows.
pub trait Listed: fmt::Debug {
    /// Names of its events, `category.name`, as far as they are known beforehand.
    fn names() -> &'static [&'static str]
    where
        Self: Sized,
    {
        &[]
    }

    /// Whether an event of this table can have a name that fits.
    fn can_be(fits: &dyn Fn(&str) -> bool) -> bool
    where
        Self: Sized,
    {
        Self::names().iter().any(|name| fits(name))
    }

    /// Name, `category.name`.
    fn name(&self) -> Cow<'_, str>;

    /// CPU on which it happened.
    fn cpu(&self) -> Cpu;

    /// The thread that the line is about: who did it, or whom it struck. Negative where there is none.
    fn subject(&self) -> (Option<Pid>, Tid);

    /// The other thread of an event of two: who came, who was woken.
    fn object(&self) -> Option<(Pid, Tid)> {
        None
    }

    /// Says the rest.
    ///
    /// # Errors
    ///
    /// Those of `line`.
    fn say(&self, line: &mut dyn Line) -> fmt::Result;

    /// For programs: the columns that a line does not have already, by their names.
    fn fields(&self) -> Map<String, Value>;
}

/// A line of a listing, which knows how durations and threads are written.
pub trait Line: fmt::Write {
    /// A duration in ns.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    fn duration(&mut self, ns: i64) -> fmt::Result;

    /// A count.
    ///
    /// # Errors
    ///
    /// As [`Line::duration`].
    fn count(&mut self, n: u64) -> fmt::Result;

    /// A thread by its newest name.
    ///
    /// # Errors
    ///
    /// As [`Line::duration`].
    fn thread(&mut self, pid: Pid, tid: Tid) -> fmt::Result;

    /// A thread by the name that it had then.
    ///
    /// # Errors
    ///
    /// As [`Line::duration`].
    fn thread_named(&mut self, comm: &str, tid: Tid) -> fmt::Result;
}
