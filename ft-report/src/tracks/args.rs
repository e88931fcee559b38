//! What the arguments of an application's events are, by name and type.

use ft_trace::ids::{Pid, ThreadKey, Tid};
use ft_trace::store::{Result, Trace};
use ft_trace::tables::{SiteRow, UserEvent};

use serde::Serialize;

use crate::listing::TimeStyle;
use crate::listing::format::ArgKind;
use crate::listing::names::Names;
use crate::listing::time::Times;

/// A value of an argument. In JSON it is a number, a text, yes or no, or null.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Arg<'a> {
    /// The program says that there is none.
    Absent,
    /// A signed number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// An address.
    Pointer(u64),
    /// Yes or no.
    Bool(bool),
    /// A number with a fraction, or none at all (NaN).
    Float(f64),
    /// A text of the application: any characters but NUL.
    Text(&'a str),
    /// A time, CLOCK_MONOTONIC ns.
    Time(i64),
}

/// The sites of a trace, for the arguments and the words of their events.
#[derive(Debug)]
pub struct Args {
    names: Names,
    times: Times,
}

impl Args {
    /// Of a trace without tables.
    #[cfg(test)]
    pub(crate) fn nobody() -> Args {
        Args {
            names: Names::default(),
            times: Times::new(TimeStyle::Relative, &Default::default()),
        }
    }

    /// Reads the tables that events refer to.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn read(trace: &Trace) -> Result<Args> {
        let times = Times::new(TimeStyle::Relative, trace.meta());
        Ok(Args { names: Names::read(trace)?, times })
    }

    /// The site of an event; `None` where the trace does not describe it.
    pub fn site(&self, event: &UserEvent) -> Option<&SiteRow> {
        self.names.site(event.site).map(|site| &site.row)
    }

    /// The arguments of an event, with their names.
    pub fn of<'a>(&'a self, event: &'a UserEvent) -> impl Iterator<Item = (&'a str, Arg<'a>)> {
        let site = self.names.site(event.site);
        let args = site.map_or(&[][..], |site| site.args());
        args.iter().enumerate().map(|(i, arg)| (&*arg.name, value(arg.kind, event, i)))
    }

    /// Appends what an event says, as a listing does.
    pub fn write_words(&self, event: &UserEvent, out: &mut String) {
        self.names.write_user(event, self.times, out);
    }

    /// The newest thread with this number, by the kernel's account.
    pub fn newest(&self, tid: Tid) -> Option<ThreadKey> {
        self.names.newest(tid).map(|thread| ThreadKey { pid: thread.pid, tid })
    }

    /// Name of a process; empty when it is not known.
    pub fn process(&self, pid: Pid) -> &str {
        self.names.process(pid)
    }

    /// Newest name of a thread; empty when it is not known.
    pub fn thread(&self, pid: Option<Pid>, tid: Tid) -> &str {
        self.names.thread(pid, tid)
    }
}

/// The `i`th argument of an event, which is of this kind.
pub(crate) fn value(kind: ArgKind, event: &UserEvent, i: usize) -> Arg<'_> {
    let word = event.arg[i];
    let found = match kind {
        ArgKind::Float => event.argf[i].map(Arg::Float),
        ArgKind::Text => event.argt[i].as_deref().map(Arg::Text),
        ArgKind::Signed => word.map(Arg::Signed),
        ArgKind::Tsc => word.map(Arg::Time),
        ArgKind::Bool => word.map(|w| Arg::Bool(w != 0)),
        ArgKind::Unsigned => word.map(|w| Arg::Unsigned(w as u64)),
        ArgKind::Pointer => word.map(|w| Arg::Pointer(w as u64)),
    };
    found.unwrap_or(Arg::Absent)
}
