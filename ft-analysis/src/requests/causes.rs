//! What begins a reaction, by the words of whoever asks for one.

use std::collections::BTreeSet;
use std::fmt;

use ft_trace::ids::Name;
use serde::{Deserialize, Serialize};

use super::kinds::{NoRequest, RequestKind};
use crate::world::World;

/// Names that an error shows of those that there are.
const SHOWN: usize = 8;

/// What a reaction is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// An interrupt begins, on any CPU: a line, a softirq or a vector of this name, as the table `irq` has it.
    Irq,
    /// The interrupt of a clock begins in which a thread of this name is woken.
    Timer,
    /// The softirq begins that brings packets, and in which a thread of this name is woken.
    Packet,
    /// A thread of this name is woken, by whomever.
    Wake,
    /// An event of this name.
    Event,
}

impl Cause {
    const ALL: [Cause; 5] = [Cause::Irq, Cause::Timer, Cause::Packet, Cause::Wake, Cause::Event];

    /// Its word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Cause::Irq => "irq",
            Cause::Timer => "timer",
            Cause::Packet => "packet",
            Cause::Wake => "wake",
            Cause::Event => "event",
        }
    }

    /// Reads `irq:eth*`.
    fn parse(text: &str) -> Option<(Cause, &str)> {
        let (word, glob) = text.split_once(':')?;
        let cause = Cause::ALL.into_iter().find(|cause| cause.word() == word)?;
        (!glob.is_empty()).then_some((cause, glob))
    }

    /// Whether one that was since then may have no record.
    pub(super) fn may_be_lost_since(self, since: i64, world: &World) -> bool {
        let losses = world.losses();
        match self {
            Cause::Irq | Cause::Timer | Cause::Packet => losses.kernel_since(since),
            Cause::Wake => losses.scheduling_since(since),
            Cause::Event => losses.events_since(since),
        }
    }

    /// What its glob names.
    fn whose(self) -> &'static str {
        match self {
            Cause::Irq => "interrupt",
            Cause::Timer | Cause::Packet | Cause::Wake => "thread",
            Cause::Event => "event",
        }
    }
}

/// What the kernel's records of a trace name; `None`: the group of the kernel that has it was not recorded.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Interrupts.
    pub interrupts: Option<BTreeSet<Name>>,
    /// Threads, by their last names.
    pub threads: Option<BTreeSet<Name>>,
}

/// Names of which none is meant; a few of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    first: Vec<Name>,
    more: usize,
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&self.first.join(", "))?;
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}

impl RequestKind {
    /// A reaction, from `irq:NAME`, `timer:THREAD`, `packet:THREAD`, `wake:THREAD` or `event:NAME` to `event:NAME`; names are globs.
    ///
    /// # Errors
    ///
    /// When it is none, or has a key and something else than an event begins it.
    pub fn reaction(from: &str, to: &str, key: Option<&str>) -> Result<RequestKind, NoRequest> {
        let (cause, begin) = Cause::parse(from).ok_or_else(|| NoRequest::Cause(from.to_owned()))?;
        let Some((Cause::Event, end)) = Cause::parse(to) else {
            return Err(NoRequest::Answer(to.to_owned()));
        };
        if key.is_some() && cause != Cause::Event {
            return Err(NoRequest::KeyOfCause(from.to_owned()));
        }
        Ok(RequestKind {
            begin: begin.to_owned(),
            end: Some(end.to_owned()),
            key: key.map(str::to_owned),
            cause: Some(cause),
            deadline_ns: None,
        })
    }

    /// It begins with a record of the kernel: [`RequestKind::check`] wants to know what that has [`Recorded`].
    pub fn needs_kernel(&self) -> bool {
        self.deadline_ns.is_some() || self.cause.is_some_and(|cause| cause != Cause::Event)
    }

    /// Whether a trace that has recorded this has such a thread.
    pub(super) fn check_threads(&self, recorded: &Recorded) -> Result<(), NoRequest> {
        let group = "sched";
        let from = || NoRequest::NotRecorded { from: self.name(), group };
        let there = recorded.threads.as_ref().ok_or_else(from)?;
        matched(Cause::Wake, &self.begin, there.iter())
    }

    /// Whether a trace that has recorded this can have such a cause of the kernel's.
    pub(super) fn check_cause(&self, cause: Cause, recorded: &Recorded) -> Result<(), NoRequest> {
        let (group, there) = match cause {
            Cause::Irq => ("irq", &recorded.interrupts),
            Cause::Timer | Cause::Packet if recorded.interrupts.is_none() => ("irq", &None),
            Cause::Timer | Cause::Packet | Cause::Wake => ("sched", &recorded.threads),
            Cause::Event => return Ok(()),
        };
        let from = || format!("{}:{}", cause.word(), self.begin);
        let there = there.as_ref().ok_or_else(|| NoRequest::NotRecorded { from: from(), group })?;
        matched(cause, &self.begin, there.iter())
    }
}

/// Whether one of these names is meant.
pub(super) fn matched<'a>(
    cause: Cause,
    glob: &str,
    names: impl Iterator<Item = &'a Name> + Clone,
) -> Result<(), NoRequest> {
    if names.clone().any(|name| ft_user::glob::matches(glob, name)) {
        return Ok(());
    }
    let there: BTreeSet<&Name> = names.collect();
    Err(NoRequest::NothingLike {
        what: cause.whose(),
        glob: glob.to_owned(),
        there: Names {
            first: there.iter().take(SHOWN).map(|name| Name::clone(name)).collect(),
            more: there.len().saturating_sub(SHOWN),
        },
    })
}
