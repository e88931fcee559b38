//! Listing of a trace: every event in words, one a line (K42, section 4.4).
//!
//! The words of an application's event come from the format string of its site, those of the kernel's
//! events from their tables ([`Listed`](ft_trace::tables::Listed)). All tables are merged by time as they are read, so a listing begins at
//! once and its memory does not grow with the trace. What applications wrote (names, formats, texts) is
//! shown without control characters, and a format that does not fit its arguments is shown as it is.

mod active;
pub(crate) mod entry;
mod event_counts;
mod filter;
pub(crate) mod format;
mod line;
pub(crate) mod names;
mod tasks;
#[cfg(test)]
mod tests;
pub(crate) mod time;

use std::io::{self, Write};

pub use active::{ActiveTime, ThreadTime, active_time};
pub use event_counts::{EventCount, EventCounts, event_counts};
pub use filter::{Selection, window};
pub use time::TimeStyle;

use entry::Streams;
use filter::Filter;
use ft_trace::store::{StoreError, Trace};
use line::Lines;
use names::Names;

/// Why there is no listing.
#[derive(Debug, thiserror::Error)]
pub enum ListingError {
    /// The trace cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The output cannot be written.
    #[error("cannot write the listing: {0}; check where it goes")]
    Write(#[from] io::Error),
    /// `--thread` names none.
    #[error(
        "no thread of this trace matches '{0}'; give the id of a thread or a glob over names, as 'worker*'"
    )]
    NoThread(String),
    /// `--task` names none.
    #[error(
        "no task of this trace matches '{0}'; give its number or a glob over names, as \
         `ft-agent report TRACE tasks` has them"
    )]
    NoTask(String),
    /// `--pid` names none.
    #[error("process {0} is not in this trace; its table `threads` lists those that are")]
    NoProcess(i32),
    /// `--cpu` names none.
    #[error("there is no CPU {cpu} in this trace; give one from 0 to {last}")]
    NoCpu {
        /// As given.
        cpu: i32,
        /// The last one.
        last: i32,
    },
    /// `--from` lies behind the end.
    #[error("the recording ended after {0}; give an earlier --from")]
    AfterEnd(String),
    /// `--event` names none.
    #[error("no event of this trace matches '{0}'; see `ft-agent events --list-events`")]
    NoEvent(String),
    /// `--event` names only events that are not listed.
    #[error("'{0}' matches events of the kernel alone; list them with --kernel")]
    KernelEvent(String),
    /// `--from` and `--to` leave nothing.
    #[error("nothing lies between --from and --to; give a later --to")]
    EmptyWindow,
    /// `--active-time` without switches.
    #[error(
        "the trace holds no switches, which say when a thread was on the CPU; record with `-k sched`"
    )]
    NoSwitches,
}

/// Result of a listing.
pub type Result<T> = std::result::Result<T, ListingError>;

/// How events are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// How times are written; JSON has nanoseconds of CLOCK_MONOTONIC.
    pub times: TimeStyle,
    /// One JSON object a line instead of words.
    pub json: bool,
    /// At most so many events.
    pub limit: Option<u64>,
}

/// Writes the selected events, one a line; returns how many.
///
/// # Errors
///
/// When the selection names what is not there, the trace cannot be read, or `out` cannot be written: a
/// closed pipe, too.
pub fn list(trace: &Trace, selection: &Selection, form: Form, out: &mut dyn Write) -> Result<u64> {
    let names = Names::read(trace)?;
    let filter = Filter::new(trace, &names, selection)?;
    let mut lines = Lines::new(trace, &names, &filter, form, selection.kernel);
    let streams = if selection.kernel { Streams::Both } else { Streams::User };
    let mut listed = 0;
    if !form.json {
        lines.write_title(out)?;
    }
    for entry in entry::entries(trace, streams, filter.window()) {
        if form.limit.is_some_and(|limit| listed >= limit) {
            break;
        }
        let entry = entry?;
        if filter.selects(&entry) {
            lines.write(&entry, out)?;
            listed += 1;
        }
    }
    out.flush()?;
    Ok(listed)
}
