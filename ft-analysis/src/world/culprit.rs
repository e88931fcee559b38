//! Who or what took the time of a thread.

use super::blocked::BlockedOn;
use super::cpus::Occupant;
use ft_trace::ids::{Name, Pid, ThreadKey, Tid};

/// Who or what took some time of a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Culprit {
    /// The thread itself, or nothing that has a name.
    Nobody,
    /// A thread that ran instead.
    Thread(Occupant),
    /// Several threads of one name that did.
    Threads(Name),
    /// An interrupt.
    Interrupt(Name),
    /// What it waited for: of what kind that is, and its name if it has one.
    Blocked(BlockedOn, Option<Name>),
    /// Culprits that are not told apart, because there were too many.
    Others,
    /// It is not known, for a reason.
    Unknown(Unknown),
    /// The tick of the machine below, and its period in ns.
    HostTick(i64),
}

impl Culprit {
    /// A thread that is not observed.
    pub(crate) fn outside(comm: Name, tid: Tid) -> Culprit {
        Culprit::Thread(Occupant { thread: ThreadKey { pid: Pid(0), tid }, comm, prio: 0 })
    }

    /// It is a lock that the thread waited for, of the program or of the kernel, or a semaphore.
    pub fn is_lock(&self) -> bool {
        use BlockedOn::{KernelLock, Lock, Semaphore};
        matches!(self, Culprit::Blocked(Lock | KernelLock | Semaphore, _))
    }

    /// For tables.
    pub fn name(&self) -> Option<Name> {
        match self {
            Culprit::Nobody => None,
            Culprit::Thread(o) => Some(o.comm.clone()),
            Culprit::Threads(name) | Culprit::Interrupt(name) => Some(name.clone()),
            Culprit::Blocked(on, None) => Some(on.word().into()),
            Culprit::Blocked(on, Some(name)) => Some(format!("{} {name}", on.word()).into()),
            Culprit::Others => Some("others".into()),
            Culprit::Unknown(why) => Some(why.word().into()),
            Culprit::HostTick(ns) => {
                let (ms, tenths) = (ns / 1_000_000, ns / 100_000 % 10);
                Some(format!("host tick, {ms}.{tenths} ms").into())
            }
        }
    }

    /// For tables: the number of the thread, if it is one.
    pub fn tid(&self) -> Option<Tid> {
        match self {
            Culprit::Thread(o) => Some(o.thread.tid),
            _ => None,
        }
    }
}

/// Why it is not known who or what took some time of a thread, or what ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Nobody is known to have had the CPU that the thread waited for.
    Occupant,
    /// The thread says that it did not run, and nothing that was recorded says why.
    InGaps,
    /// Records are missing.
    NoRecord,
    /// The record was no longer kept when it was needed.
    NotKept,
    /// Nothing shows who woke the thread.
    NoWaking,
    /// Whoever had the waking thread's CPU is not known.
    Waker,
    /// An interrupt that was not recorded woke the thread.
    UnrecordedInterrupt,
    /// The waker is itself asleep in the same chain of waits.
    SleepingWaker,
    /// The chain of waits is too long to be followed.
    TooManyWaits,
    /// The path has too many pieces to be followed.
    TooManyPieces,
}

impl Unknown {
    /// For tables.
    pub const fn word(self) -> &'static str {
        match self {
            Unknown::Occupant => "not known",
            Unknown::InGaps => "in gaps",
            Unknown::NoRecord => "no record",
            Unknown::NotKept => "not kept",
            Unknown::NoWaking => "no waking",
            Unknown::Waker => "a waker that is not known",
            Unknown::UnrecordedInterrupt => "an interrupt without a record",
            Unknown::SleepingWaker => "woken by one that sleeps",
            Unknown::TooManyWaits => "too many waits",
            Unknown::TooManyPieces => "too many pieces",
        }
    }
}
