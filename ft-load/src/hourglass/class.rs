//! How a thread is scheduled: the priorities and reservations of Hourglass as classes of today's Linux.
//!
//! | Hourglass | here | |
//! |---|---|---|
//! | `IDLE` | `SCHED_IDLE` | |
//! | `LOW`, `NORMAL`, `HIGH`, `HIGHEST` | `SCHED_OTHER` with nice 10, 0, −10, −20 | also `nice:N` |
//! | `RTLOW`, `RTMED` | `SCHED_FIFO` 10, 40 | below threaded interrupts, which have 50; also `fifo:N` |
//! | `RTHIGH` | `SCHED_FIFO` 80 | above them, below the kernel's own 99 |
//! | `-rh` | `SCHED_DEADLINE` | the amount is a limit, too: who has used it up waits for the next period |
//! | `-rs` | `SCHED_DEADLINE` with `SCHED_FLAG_RECLAIM` | gets of what others have reserved and do not use (GRUB) |
//!
//! sched(7), sched_setattr(2) and `Documentation/scheduler/sched-deadline.rst` of the kernel say what each does.

use std::fmt;
use std::io;

use super::scenario::Plan;
use super::workload::fits;
use crate::Error;
use crate::args::{not_zero, number};
use crate::time::{Time, parse};

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// By priority.
    Priority(Priority),
    /// By a reservation: that much of the CPU in each period.
    Reservation {
        /// CPU time, ns.
        amount_ns: u64,
        /// Length of a period, which is the relative deadline, too, ns.
        period_ns: u64,
        /// Whether it may have more where others leave it.
        soft: bool,
    },
}

/// A priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// `SCHED_IDLE`: what nobody else wants.
    Idle,
    /// `SCHED_OTHER` with this nice value, −20 to 19.
    Nice(i32),
    /// `SCHED_FIFO` with this priority, 1 to 99.
    Fifo(u32),
}

const PRIORITIES: [(&str, Priority); 8] = [
    ("IDLE", Priority::Idle),
    ("LOW", Priority::Nice(10)),
    ("NORMAL", Priority::Nice(0)),
    ("HIGH", Priority::Nice(-10)),
    ("HIGHEST", Priority::Nice(-20)),
    ("RTLOW", Priority::Fifo(10)),
    ("RTMED", Priority::Fifo(40)),
    ("RTHIGH", Priority::Fifo(80)),
];

/// `SCHED_FLAG_RECLAIM` (linux/sched.h).
pub(super) const RECLAIM: u64 = 0x02;

/// `SCHED_FLAG_DL_OVERRUN` (linux/sched.h): see [`super::overrun`].
const OVERRUN: u64 = 0x04;

/// `SCHED_DEADLINE` (linux/sched.h).
pub(super) const DEADLINE: u32 = 6;

impl Priority {
    /// Reads a name of the paper, `idle`, `nice:N` or `fifo:N`.
    ///
    /// # Errors
    ///
    /// For anything else.
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        if let Some((_, priority)) = PRIORITIES.iter().find(|(name, _)| *name == text) {
            return Ok(*priority);
        }
        match text.split_once(':') {
            None if text == "idle" => Ok(Priority::Idle),
            Some(("nice", value)) => Ok(Priority::Nice(number(value, "nice", -20, 19)?)),
            Some(("fifo", value)) => Ok(Priority::Fifo(number(value, "fifo", 1, 99)?)),
            _ => Err(Error::usage(format!(
                "there is no priority `{}`; use IDLE, LOW, NORMAL, HIGH, HIGHEST, RTLOW, RTMED, RTHIGH, \
                 nice:N (-20 to 19) or fifo:N (1 to 99)",
                text.escape_debug()
            ))),
        }
    }
}

impl Class {
    /// Reads a reservation of `amount` in each `period`.
    ///
    /// # Errors
    ///
    /// For what are no times, and for an amount that no period has.
    pub(super) fn reservation(amount: &str, period: &str, soft: bool) -> Result<Self, Error> {
        let amount_ns = not_zero(amount, parse(amount)?)?;
        let period_ns = not_zero(period, parse(period)?)?;
        fits(amount_ns, period_ns)?;
        Ok(Class::Reservation { amount_ns, period_ns, soft })
    }

    /// Puts the calling thread into this class; `pinned` says whether it may not run on all CPUs.
    ///
    /// # Errors
    ///
    /// A sentence with the remedy where the kernel refuses it.
    pub(crate) fn enter(self, pinned: bool) -> Result<(), Error> {
        self.set(0, pinned)
    }

    /// The same with a slice, of which 0 is the kernel's own choice.
    fn set(self, slice_ns: u64, pinned: bool) -> Result<(), Error> {
        let mut attributes = attributes(self);
        if slice_ns > 0 {
            attributes.sched_runtime = slice_ns;
        }
        // SAFETY: the kernel reads as many bytes as `size` says; 0 is the calling thread.
        match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
            0 => Ok(()),
            _ => Err(refused(self, pinned, &io::Error::last_os_error())),
        }
    }

    /// Whether no thread of the ordinary scheduler can take the CPU from it.
    pub(super) fn is_real_time(self) -> bool {
        !matches!(self, Class::Priority(Priority::Idle | Priority::Nice(_)))
    }

    /// Who of two goes first: reservations, then real-time priorities, then the ordinary ones.
    pub(super) fn rank(self) -> i32 {
        match self {
            Class::Reservation { .. } => 1000,
            Class::Priority(Priority::Fifo(n)) => 100 + n as i32,
            Class::Priority(Priority::Nice(n)) => -n,
            Class::Priority(Priority::Idle) => -100,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Class::Priority(Priority::Idle) => write!(f, "SCHED_IDLE"),
            Class::Priority(Priority::Nice(n)) => write!(f, "nice {n}"),
            Class::Priority(Priority::Fifo(n)) => write!(f, "SCHED_FIFO {n}"),
            Class::Reservation { amount_ns, period_ns, soft } => {
                let soft = if soft { ", reclaiming" } else { "" };
                write!(f, "SCHED_DEADLINE {} in {}{soft}", Time(amount_ns), Time(period_ns))
            }
        }
    }
}

/// Puts the calling thread onto its CPUs, and then into its class.
///
/// # Errors
///
/// A sentence with the remedy for whatever the kernel refuses.
pub(super) fn apply(plan: &Plan) -> Result<(), Error> {
    if !plan.cpus.is_empty() {
        crate::cpus::pin(&plan.cpus)?;
    }
    let class = match (plan.class, plan.slice_ns) {
        (Some(class), _) => class,
        (None, None) => return Ok(()),
        (None, Some(_)) => Class::Priority(Priority::Nice(own_nice())),
    };
    class.set(plan.slice_ns.unwrap_or(0), !plan.cpus.is_empty())?;
    match plan.slice_ns {
        Some(slice_ns) if slice() != Some(slice_ns) => Err(Error::refused(format!(
            "the kernel does not give slices of {} (from Linux 6.12 on it gives 0.1 ms to 100 ms); leave out --slice",
            Time(slice_ns)
        ))),
        _ => Ok(()),
    }
}

fn attributes(class: Class) -> libc::sched_attr {
    let mut attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    match class {
        Class::Priority(Priority::Idle) => attributes.sched_policy = libc::SCHED_IDLE as u32,
        Class::Priority(Priority::Nice(nice)) => attributes.sched_nice = nice,
        Class::Priority(Priority::Fifo(priority)) => {
            attributes.sched_policy = libc::SCHED_FIFO as u32;
            attributes.sched_priority = priority;
        }
        Class::Reservation { amount_ns, period_ns, soft } => {
            attributes.sched_policy = DEADLINE;
            attributes.sched_flags = OVERRUN | if soft { RECLAIM } else { 0 };
            attributes.sched_runtime = amount_ns;
            attributes.sched_deadline = period_ns;
            attributes.sched_period = period_ns;
        }
    }
    attributes
}

/// What the kernel's answer means for who asked.
fn refused(class: Class, pinned: bool, error: &io::Error) -> Error {
    let reserved = matches!(class, Class::Reservation { .. });
    Error::refused(match error.raw_os_error() {
        Some(libc::EBUSY) => format!(
            "the kernel does not admit {class}: with what is reserved already it would be more than \
             sched_rt_runtime_us in /proc/sys/kernel allows; reserve less"
        ),
        Some(libc::EINVAL) if reserved => format!(
            "the kernel knows no {class}: amounts are at least 1024ns, and periods lie between \
             sched_deadline_period_min_us and sched_deadline_period_max_us in /proc/sys/kernel; reserve others"
        ),
        Some(libc::EPERM) if reserved && pinned => format!(
            "the kernel reserves time for threads that may run on all CPUs alone; leave out --cpu beside {class}"
        ),
        Some(libc::EPERM | libc::EACCES) => {
            let limit = match class {
                Class::Priority(Priority::Fifo(_)) => ", or raise `ulimit -r`",
                Class::Priority(_) => ", or raise `ulimit -e`",
                Class::Reservation { .. } => "",
            };
            format!("{class} is refused to this user; run it as root or with CAP_SYS_NICE{limit}")
        }
        _ => format!("{class} is refused ({error}); choose another priority"),
    })
}

/// The nice value of the calling thread.
fn own_nice() -> i32 {
    // SAFETY: takes no pointer. On Linux the answer is that of the thread, and cannot fail for the caller.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// The slice of the calling thread, where the kernel tells it.
fn slice() -> Option<u64> {
    own().map(|own| own.sched_runtime)
}

/// How the calling thread is scheduled, by the kernel's account.
pub(super) fn own() -> Option<libc::sched_attr> {
    let mut own = attributes(Class::Priority(Priority::Idle));
    let size = own.size;
    // SAFETY: the kernel writes at most `size` bytes; 0 is the calling thread.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut own, size, 0) };
    (answer == 0).then_some(own)
}
