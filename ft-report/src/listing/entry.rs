//! One event of any table, and the stream of all of them.

use std::borrow::Cow;
use std::ops::Range;

use ft_trace::ids::{Cpu, Nanos, Pid, Tid};
use ft_trace::store::Trace;
use ft_trace::stream::{Merged, Timed};
use ft_trace::tables::{
    Contention, Irq, LossRow, PageFault, SchedMigrate, SchedSwitch, SchedWaking, Syscall,
    TaskEvent, UserEvent,
};

/// One event.
#[expect(clippy::large_enum_variant, reason = "most events of a trace are of the largest variant")]
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Loss(LossRow),
    Task(TaskEvent),
    Waking(SchedWaking),
    Migrate(SchedMigrate),
    Switch(SchedSwitch),
    Irq(Irq),
    Contention(Contention),
    Syscall(Syscall),
    Fault(PageFault),
    User(UserEvent),
}

/// Names of the kernel's events, without those of system calls: `syscall.` and the name of the call.
pub(super) const KERNEL_EVENTS: [&str; 13] = [
    "sched.switch",
    "sched.waking",
    "sched.wakeup_new",
    "sched.migrate",
    "irq.hard",
    "irq.soft",
    "irq.vector",
    "task.fork",
    "task.exec",
    "task.exit",
    "task.rename",
    "lock.contention",
    "fault.page",
];

/// Which events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streams {
    User,
    Kernel,
    Both,
}

/// The events whose time lies in `window`, in order, and the losses.
pub(super) fn entries(trace: &Trace, streams: Streams, window: Range<i64>) -> Merged<Entry> {
    let mut merged = Merged::default().with_any(trace, &window, Entry::Loss);
    if streams != Streams::User {
        merged = merged
            .with_any(trace, &window, Entry::Task)
            .with_any(trace, &window, Entry::Waking)
            .with_any(trace, &window, Entry::Migrate)
            .with_any(trace, &window, Entry::Switch)
            .with_any(trace, &window, Entry::Irq)
            .with_any(trace, &window, Entry::Contention)
            .with_any(trace, &window, Entry::Syscall)
            .with_any(trace, &window, Entry::Fault);
    }
    match streams {
        Streams::Kernel => merged,
        // A trace without this table is damaged: the reader says so.
        _ => merged.with(trace.rows_within(window), Entry::User),
    }
}

impl Timed for Entry {
    fn ts(&self) -> Nanos {
        match self {
            Entry::Loss(e) => e.ts,
            Entry::Task(e) => e.ts,
            Entry::Waking(e) => e.ts,
            Entry::Migrate(e) => e.ts,
            Entry::Switch(e) => e.ts,
            Entry::Irq(e) => e.ts,
            Entry::Contention(e) => e.ts,
            Entry::Syscall(e) => e.ts,
            Entry::Fault(e) => e.ts,
            Entry::User(e) => e.ts,
        }
    }
}

impl Entry {
    /// Name, `category.name`.
    pub(super) fn name(&self) -> Cow<'_, str> {
        match self {
            Entry::Loss(e) => format!("loss.{}", e.origin).into(),
            Entry::Task(e) => format!("task.{}", e.kind).into(),
            Entry::Waking(e) if e.is_new => "sched.wakeup_new".into(),
            Entry::Waking(_) => "sched.waking".into(),
            Entry::Migrate(_) => "sched.migrate".into(),
            Entry::Switch(_) => "sched.switch".into(),
            Entry::Irq(e) => format!("irq.{}", e.kind).into(),
            Entry::Contention(_) => "lock.contention".into(),
            Entry::Syscall(e) => format!("syscall.{}", e.name).into(),
            Entry::Fault(_) => "fault.page".into(),
            Entry::User(e) => (&*e.event).into(),
        }
    }

    /// CPU on which it happened.
    pub(super) fn cpu(&self) -> Cpu {
        match self {
            Entry::Loss(e) => e.cpu,
            Entry::Task(e) => e.cpu,
            Entry::Waking(e) => e.cpu,
            Entry::Migrate(e) => e.cpu,
            Entry::Switch(e) => e.cpu,
            Entry::Irq(e) => e.cpu,
            Entry::Contention(e) => e.cpu,
            Entry::Syscall(e) => e.cpu,
            Entry::Fault(e) => e.cpu,
            Entry::User(e) => e.cpu,
        }
    }

    /// The thread that the line is about: who did it, or whom it struck. Negative where there is none.
    pub(super) fn subject(&self) -> (Option<Pid>, Tid) {
        match self {
            Entry::Loss(e) => (Some(e.pid), e.tid),
            Entry::Task(e) => (Some(e.pid), e.tid),
            Entry::Waking(e) => (None, e.waker_tid),
            Entry::Migrate(e) => (Some(e.pid), e.tid),
            Entry::Switch(e) => (Some(e.prev_pid), e.prev_tid),
            Entry::Irq(e) => (Some(e.pid), e.tid),
            Entry::Contention(e) => (Some(e.pid), e.tid),
            Entry::Syscall(e) => (Some(e.pid), e.tid),
            Entry::Fault(e) => (Some(e.pid), e.tid),
            Entry::User(e) => (Some(e.pid), e.tid),
        }
    }

    /// The other thread of an event of two: who came, who was woken.
    pub(super) fn object(&self) -> Option<(Pid, Tid)> {
        match self {
            Entry::Switch(e) => Some((e.next_pid, e.next_tid)),
            Entry::Waking(e) => Some((e.pid, e.tid)),
            _ => None,
        }
    }
}
