//! Sites that are made at run time, for whoever learns only then which events a program has, as a subscriber of
//! `tracing` does.
//!
//! The site of a macro is code: its trigger stands where the event is written. A [`Switch`] has a trigger too, in the
//! text of this crate, but no thread runs through it: whoever would write asks it first ([`Switch::is_on`]: one load and
//! a comparison). So it is listed, described and switched as all other sites are, by [`enable`](crate::enable()),
//! `FT_ENABLE`, and the agent from outside, and no thread of the program has to notice.
//!
//! ```
//! use ft_user::{ArgType, dynamic::{Description, Kind, Switch, Values}};
//!
//! let of_script = Description {
//!     kind: Kind::Event,
//!     name: "script.called",
//!     file: "start.lua",
//!     line: 7,
//!     args: &[("depth", ArgType::Unsigned), ("what", ArgType::Str)],
//! };
//! // Made once, kept for good.
//! let site = Switch::new(&of_script);
//! // Wherever it happens:
//! if let Some(site) = site && site.is_on() {
//!     let mut values = Values::new();
//!     values.push(3u64);
//!     values.push("main");
//!     site.event().write(&values);
//! }
//! ```
//!
//! # Limits
//!
//! [`SWITCHES`] switches in a process, and 4096 descriptions of events in all, those of macros among them. What is made
//! stays: its text is never freed.

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]
mod made;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(ft_off))))]
#[path = "none.rs"]
mod made;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]
mod pool;
mod values;

use core::fmt;

pub use crate::layout::MAX_ARGS;
use crate::layout::{ArgType, SiteKind, SiteMeta};
use crate::site;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]
pub(crate) use made::describe_all;
pub use values::{Text, Types, Values};

/// Switches that a process can have.
///
/// Limit: for each further one, an event `ft_tracing.refused` states the place; its events are not written.
/// Shown by: `who_has_no_room_is_named_once_…`.
pub const SWITCHES: usize = 1024;

/// What the trace says of an event.
#[derive(Clone, Copy, Debug)]
pub struct Description<'a> {
    /// What it means to the analyses.
    pub kind: Kind,
    /// `category.name`: something before and behind the first dot.
    pub name: &'a str,
    /// Source file, may be empty.
    pub file: &'a str,
    /// Source line, 0 where it is not known.
    pub line: u32,
    /// Names and types of its arguments, at most six.
    pub args: &'a [(&'a str, ArgType)],
}

/// What an event means to the analyses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As [`event!`](crate::event).
    Event,
    /// The begin of a scope; it ends with the next [`Kind::End`] of its name on its thread.
    Begin,
    /// The end of a scope.
    End,
}

impl Kind {
    #[cfg_attr(ft_off, allow(dead_code, reason = "nothing is described"))]
    fn site(self) -> SiteKind {
        match self {
            Kind::Event => SiteKind::Event,
            Kind::Begin => SiteKind::ScopeBegin,
            Kind::End => SiteKind::ScopeEnd,
        }
    }
}

impl Description<'_> {
    /// Whether it can be one.
    fn is_sound(&self) -> bool {
        site::has_category(self.name) && self.args.len() <= MAX_ARGS
    }
}

/// A site that says whether it is on, and of which whoever asks writes the events.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Address of its trigger.
    trigger: usize,
    event: Event,
}

impl Switch {
    /// Makes a switch. It is on if what matches its name was enabled before ([`enable`](crate::enable()), the agent).
    ///
    /// `None` when it has more than six arguments or a name without a category, when there are [`SWITCHES`] already,
    /// where its events could not be distinguished from those of another site ([`Status::refused`](crate::Status)), and where there
    /// are no sites (`--cfg ft_off`, other targets).
    ///
    /// Allocates, and takes a lock for some microseconds. Not for signal handlers.
    pub fn new(description: &Description<'_>) -> Option<Switch> {
        if description.is_sound() { made::switch(description) } else { None }
    }

    /// Whether it is on now.
    #[inline]
    pub fn is_on(self) -> bool {
        made::is_on(self.trigger)
    }

    /// Its event.
    pub fn event(self) -> Event {
        self.event
    }
}

/// An event that is described in the trace: that of a switch, or another one that is written while a switch is on.
#[derive(Clone, Copy)]
pub struct Event {
    meta: &'static SiteMeta,
    types: Types,
}

impl Event {
    /// Describes an event that has no site of its own: another form of what a switch switches.
    ///
    /// `None` as for [`Switch::new`], and when 4096 events are described. Allocates, and takes a lock for some
    /// microseconds. Not for signal handlers.
    pub fn new(description: &Description<'_>) -> Option<Event> {
        if description.is_sound() { made::event(description) } else { None }
    }

    /// Writes it now, and returns true; writes nothing when the values are not of the types that were described. Whether
    /// a switch is on is the caller's business.
    ///
    /// As for every event: no lock, no allocation, no system call but for a thread's first; a full ring loses it, which is
    /// counted. `errno` stays as it is.
    pub fn write(self, values: &Values) -> bool {
        let fits = values.types() == self.types;
        if fits {
            made::write(self.meta, values);
        }
        fits
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.meta.name())
    }
}
