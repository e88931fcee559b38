//! Where the time of an interval went, and how often something happened to its thread: columns of many tables.

use std::ops::{AddAssign, Sub};

use serde::Serialize;

use crate::words::words;

words! {
    /// A part of a thread's time.
    pub enum Part {
        /// On a CPU, outside interrupts.
        Running = "running",
        /// Off the CPU while runnable, because it had to leave it.
        Preempted = "preempted",
        /// Off the CPU while runnable, woken and not yet dispatched.
        Dispatch = "dispatch",
        /// Off the CPU, waiting for something.
        Blocked = "blocked",
        /// On the CPU, in a hardware interrupt handler.
        Hardirq = "hardirq",
        /// On the CPU, in a softirq.
        Softirq = "softirq",
        /// On the CPU, in an interrupt vector (timer, reschedule, …).
        Vector = "vector",
        /// Covered by no record.
        Unexplained = "unexplained",
        _ => Unexplained
    }
}

/// What `parked_ns` means.
const PARKED: &str = "No thread ran the task in which the interval began: a fiber that was switched out, an async task between polls. It waited for its turn, or for something else. 0 of what began in none.";

/// Declares the parts of a [`Decomposition`]: those of [`Part`], in its order, and what only a task has.
macro_rules! parts {
    ($($part:ident: $field:ident, $about:literal;)*) => {
        /// Where the time of an interval of one thread went, or of several, or of a task, which threads run by turns. The parts
        /// sum to the interval.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Decomposition {
            $(#[doc = $about] pub $field: i64,)*
            /// Of an interval that began in a task: no thread ran that task, be it that it waited for its turn or for something else. A
            /// thread itself is never parked.
            pub parked_ns: i64,
        }

        impl Decomposition {
            /// Names of the parts, which are their columns.
            pub const NAMES: [&str; 9] = [$(stringify!($field),)* "parked_ns"];

            /// What they mean.
            pub const MEANINGS: [&str; 9] = [$($about,)* PARKED];

            /// The parts in the order of [`Decomposition::NAMES`].
            pub fn to_array(self) -> [i64; 9] {
                [$(self.$field,)* self.parked_ns]
            }

            /// Inverse of [`Decomposition::to_array`].
            pub fn from_array([$($field,)* parked_ns]: [i64; 9]) -> Decomposition {
                Decomposition { $($field,)* parked_ns }
            }

            /// One of the parts that a thread's time has.
            pub fn part_mut(&mut self, part: Part) -> &mut i64 {
                match part {
                    $(Part::$part => &mut self.$field,)*
                }
            }
        }
    };
}

parts! {
    Running: running_ns, "On a CPU, outside interrupts.";
    Preempted: preempted_ns, "Off the CPU while runnable, because it had to leave it.";
    Dispatch: dispatch_ns, "Off the CPU while runnable, woken and not yet dispatched.";
    Blocked: blocked_ns, "Off the CPU, waiting for something.";
    Hardirq: hardirq_ns, "On the CPU, in a hardware interrupt handler.";
    Softirq: softirq_ns, "On the CPU, in a softirq.";
    Vector: vector_ns, "On the CPU, in an interrupt vector (timer, reschedule, …).";
    Unexplained: unexplained_ns, "Covered by no record.";
}

impl Decomposition {
    /// Time without a CPU that was wanted: preempted, or woken and not yet there.
    pub fn runnable_ns(&self) -> i64 {
        self.preempted_ns + self.dispatch_ns
    }

    /// Time in any interrupt.
    pub fn interrupts_ns(&self) -> i64 {
        self.hardirq_ns + self.softirq_ns + self.vector_ns
    }

    /// Sum of the parts.
    pub fn total_ns(&self) -> i64 {
        self.to_array().into_iter().fold(0, i64::saturating_add)
    }
}

/// How often something happened to a thread in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// It left its CPU to wait for something.
    pub sleeps: i64,
    /// It left its CPU although it could run.
    pub switches: i64,
    /// It came to another CPU than the one that it had.
    pub moves: i64,
    /// Page faults, and of these major ones; not known where the kernel group `fault` is not recorded.
    pub faults: Option<[i64; 2]>,
}

impl Counts {
    /// The columns, and what they mean.
    pub const COLUMNS: [(&str, &str); 5] = [
        (
            "sleeps",
            "Times that the thread left its CPU to wait for something. Null without a kernel stream, as the next two.",
        ),
        ("switches", "Times that it left its CPU although it could run."),
        ("moves", "Times that it came to another CPU than the one that it had."),
        (
            "faults",
            "Page faults, of its own and in system calls. Null until the trace has a first one of any thread (kernel group `fault`), and where records of some were lost meanwhile.",
        ),
        ("major_faults", "Of these, major ones."),
    ];

    /// The columns' values.
    pub fn to_array(self) -> [Option<i64>; 5] {
        let [faults, major] = self.faults.map_or([None; 2], |faults| faults.map(Some));
        [Some(self.sleeps), Some(self.switches), Some(self.moves), faults, major]
    }

    /// Inverse of [`Counts::to_array`], where there are any.
    pub fn from_array(
        [sleeps, switches, moves, faults, major]: [Option<i64>; 5],
    ) -> Option<Counts> {
        let faults = faults.zip(major).map(|(faults, major)| [faults, major]);
        Some(Counts { sleeps: sleeps?, switches: switches?, moves: moves?, faults })
    }
}

/// Saturates, as that of a [`Decomposition`]; page faults are known where those of both are.
impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.sleeps = self.sleeps.saturating_add(other.sleeps);
        self.switches = self.switches.saturating_add(other.switches);
        self.moves = self.moves.saturating_add(other.moves);
        let sum =
            |(a, b): ([i64; 2], [i64; 2])| [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])];
        self.faults = self.faults.zip(other.faults).map(sum);
    }
}

/// Where the time between two moments went, from all that went before each.
impl Sub for Decomposition {
    type Output = Decomposition;

    fn sub(self, earlier: Decomposition) -> Decomposition {
        let (later, earlier) = (self.to_array(), earlier.to_array());
        Decomposition::from_array(std::array::from_fn(|i| later[i] - earlier[i]))
    }
}

/// Saturates: applications nest what is summed as they like, so that a sum has no bound in the length of a trace.
impl AddAssign for Decomposition {
    fn add_assign(&mut self, other: Decomposition) {
        let (mine, others) = (self.to_array(), other.to_array());
        let sum = |i: usize| mine[i].saturating_add(others[i]);
        *self = Decomposition::from_array(std::array::from_fn(sum));
    }
}
