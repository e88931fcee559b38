//! Who or what took the time of a thread.

use super::cpus::Occupant;
use super::held::SEMAPHORE;
use ft_trace::ids::{Name, Pid, ThreadKey, Tid};

/// The kind of a wait for a lock of the program.
pub(crate) const LOCK: &str = "lock";

/// The kind of a wait for a lock of the kernel.
pub(crate) const KERNEL_LOCK: &str = "kernel lock";

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
    Cause(&'static str, Option<Name>),
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
        matches!(self, Culprit::Cause(LOCK | KERNEL_LOCK | SEMAPHORE, _))
    }

    /// For tables.
    pub fn name(&self) -> Option<Name> {
        match self {
            Culprit::Nobody => None,
            Culprit::Thread(o) => Some(o.comm.clone()),
            Culprit::Threads(name) | Culprit::Interrupt(name) => Some(name.clone()),
            Culprit::Cause(kind, None) => Some((*kind).into()),
            Culprit::Cause(kind, Some(name)) => Some(format!("{kind} {name}").into()),
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
