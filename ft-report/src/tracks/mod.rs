//! What was so from when to when: a trace as a stream of intervals and instants, for whoever draws it.
//!
//! A viewer shows rows of time: CPUs, threads, locks. [`Walk`] reads a trace once, in the order of time and in bounded
//! memory, and yields an [`Item`] for everything that can be drawn ([`What`]): who had a CPU, what a thread did and whose
//! fault that was, holds, waits, wake-ups, interrupts, the application's events, scopes and polls, gaps, runs between them, and losses. All of it
//! comes from the analyses of `ft_analysis`: where an item is a row of one of their tables, it is that row, with its
//! mark, so what is drawn and what is reported cannot differ.
//!
//! ```
//! use ft_report::tracks::{Walk, What};
//! use ft_trace::store::Trace;
//!
//! fn draw(dir: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//!     let trace = Trace::open(dir)?;
//!     for item in Walk::new(&trace, i64::MIN..i64::MAX)? {
//!         let item = item?;
//!         match &item.what {
//!             What::State(s) => println!("{:?} {}..{} {}", s.thread, item.from, item.to, s.part),
//!             What::Hold(hold) => println!("{} held {} until {}", hold.tid, hold.lock_name, item.to),
//!             _ => {}
//!         }
//!     }
//!     Ok(())
//! }
//! # assert!(draw("/no/such/trace".as_ref()).is_err());
//! ```
//!
//! # Order
//!
//! Items come when they are known, which is not the order of their begins:
//!
//! - An instant comes at its time.
//! - What has its own length (interrupts, system calls, waits for locks of the kernel, losses) comes at its begin.
//! - Everything else comes when it is over: holds, waits, scopes, polls, runs and gaps at the event that ends them, a wake-up at the switch to the
//!   woken thread, an occupancy and the stretch of *running* that it ends at the switch away, any other stretch at the switch to
//!   its thread. So of one thread, and of one CPU, stretches and occupancies come in order and do not overlap; holds of one exclusive
//!   lock do neither, as far as no release was lost.
//! - At the end come, by thread, those that go on: see [`Item::over`].
//!
//! A format that wants all in order must sort what it writes; one that wants the order within a row need not.
//!
//! # A part of a trace
//!
//! With a window, what lies before it is read, too, and nothing of it is yielded: who holds a lock when it begins was
//! decided then. Items that reach over an end of the window are cut there ([`Item::from`], [`Item::to`]) and say so
//! ([`Item::begun`], [`Item::over`]), while their rows are as they are: a row that began before the window has its own
//! begin and length. What goes on behind the window's end is not looked for: a hold that ends there is one without a known end
//! here, and `censored`.
//!
//! # Memory
//!
//! What the analyses hold, one stretch for each observed thread that lives, and the items of one event.

pub(crate) mod args;
mod told;
mod walk;

#[cfg(test)]
mod tests;

pub use args::{Arg, Args};
pub use walk::{Tracks, Walk};

use ft_analysis::unended::Unmet;
use ft_analysis::world::{Occupancy, Stretch};
use ft_trace::Mark;
use ft_trace::event::{LeanContention, LeanFault, LeanSyscall};
use ft_trace::tables::{
    AsyncSwitch, CriticalSection, DispatchLatency, Gap, Irq, LoadRun, LockWait, LossRow,
    SchedMigrate, SchedSwitch, SchedWaking, Scope, Signal, TaskEvent, UserEvent,
};

/// Something that was so.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// When it began, CLOCK_MONOTONIC ns; not before the window.
    pub from: i64,
    /// When it was over, not before `from`; the same for an instant. Not behind the window.
    pub to: i64,
    /// It began in the window. If not, it was so before.
    pub begun: bool,
    /// It was over in the window, and its end was recorded. If not, it went on, for all that is known.
    pub over: bool,
    /// What.
    pub what: What,
}

impl Item {
    /// Its length, ns, as far as it lies in the window.
    pub fn len_ns(&self) -> i64 {
        self.to - self.from
    }
}

/// What was so. Rows are those of the table of their type, but where it says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A thread, observed or not, had a CPU. Thread 0 is the idle task.
    Occupied(Occupancy),
    /// An observed thread was running, preempted (by whom), woken and waiting for a CPU (behind whom), blocked (on what),
    /// or in an interrupt (which). Not without a kernel stream. The stretches of a thread follow one another without a
    /// hole; those that are the same are one.
    State(Stretch),
    /// An interrupt of any CPU.
    Interrupt(Irq),
    /// A lock was held. One whose end was not recorded is in no table, and `censored`.
    Hold(CriticalSection),
    /// A lock was waited for, until the thread had it.
    Wait(LockWait),
    /// A lock was waited for, without getting it; in no table.
    Unmet(Unmet),
    /// An observed thread could run since it was woken, and waited for a CPU: from the waking to the switch to it.
    Dispatch(DispatchLatency),
    /// A piece of work that the application marked. One without a recorded end is in no table, and `censored`.
    Scope(Scope),
    /// A thread polled an async task. One without a recorded end is `censored`.
    Poll(AsyncSwitch),
    /// A polling thread did not run.
    Gap(Gap),
    /// A worker of a load had a CPU without a gap, by its own account. Not with a kernel stream, which tells it of every thread.
    Run(LoadRun),
    /// An event of the application, as recorded: those of scopes, locks and polling, too.
    Event(UserEvent),
    /// A switch, as recorded.
    Switch(SchedSwitch),
    /// A waking, as recorded: of all threads, and those that woke nobody.
    Waking(SchedWaking),
    /// A move to another CPU, as recorded.
    Migrate(SchedMigrate),
    /// A fork, exec, exit or change of name, as recorded.
    Task(TaskEvent),
    /// A system call.
    Syscall(LeanSyscall),
    /// A wait for a lock of the kernel.
    Contention(LeanContention),
    /// A page fault.
    Fault(LeanFault),
    /// A signal.
    Signal(Signal),
    /// Events or records were lost.
    Loss(LossRow),
}

impl What {
    /// How far it can be believed, where anything can be in doubt.
    pub fn mark(&self) -> Option<Mark> {
        match self {
            What::Occupied(o) => Some(if o.seen { Mark::Exact } else { Mark::Censored }),
            What::State(s) => Some(s.mark),
            What::Hold(h) => Some(h.mark),
            What::Wait(w) => Some(w.mark),
            What::Unmet(w) => Some(w.mark),
            What::Dispatch(d) => Some(d.mark),
            What::Scope(s) => Some(s.mark),
            What::Poll(p) => Some(p.mark),
            What::Gap(g) => Some(g.mark),
            What::Run(r) => Some(r.mark),
            _ => None,
        }
    }
}
