//! Where the time of waiting for a lock went.

use std::ops::{AddAssign, Sub};

use ft_trace::tables::Decomposition;

/// A decomposition of waiting time; it grows while the lock is waited for, and a wait is the difference of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blame {
    /// What the thread at the end of the chain of holders did.
    pub(crate) parts: Decomposition,
    /// Nobody was known to hold the lock.
    pub(crate) no_holder_ns: i64,
    /// The chain of holders led back to itself.
    pub(crate) cycle_ns: i64,
    /// Not a part of the sum: the holder itself waited for a lock.
    pub(crate) holder_waits_ns: i64,
    /// Not a part of the sum: while that thread waited for a CPU, the agent had it.
    pub(crate) agent_ns: i64,
}

impl Blame {
    /// Sum of what excludes each other.
    pub(crate) fn total_ns(&self) -> i64 {
        self.parts.total_ns() + self.no_holder_ns + self.cycle_ns
    }
}

impl Sub for Blame {
    type Output = Blame;

    fn sub(self, earlier: Blame) -> Blame {
        Blame {
            parts: self.parts - earlier.parts,
            no_holder_ns: self.no_holder_ns - earlier.no_holder_ns,
            cycle_ns: self.cycle_ns - earlier.cycle_ns,
            holder_waits_ns: self.holder_waits_ns - earlier.holder_waits_ns,
            agent_ns: self.agent_ns - earlier.agent_ns,
        }
    }
}

impl AddAssign for Blame {
    fn add_assign(&mut self, other: Blame) {
        self.parts += other.parts;
        self.no_holder_ns += other.no_holder_ns;
        self.cycle_ns += other.cycle_ns;
        self.holder_waits_ns += other.holder_waits_ns;
        self.agent_ns += other.agent_ns;
    }
}
