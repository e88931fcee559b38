//! What a thread waits for while it is off the CPU and not runnable.
//!
//! **Rule**, the first that holds:
//! 0. *full ring*: it waits for room in its ring, which is the tracer's doing.
//! 1. *lock*, *condition*, *barrier*, …: the newest event of the thread itself is the begin of a wait, for a lock, a
//!    condition, a barrier, a channel's value or its room.
//! 2. *kernel lock*: it is inside a recorded wait for a lock of the kernel; of waits within each other, the inner one.
//! 3. *system call*: it is inside a recorded system call.
//! 4. *page fault*: it is inside a recorded page fault. Of one whose end was not recorded: it left the CPU
//!    uninterruptibly (state `D`), and after it got the CPU that fault was the last that was recorded of it. A system
//!    call that was not recorded and follows such a fault looks the same: with the group `syscall` it does not.
//! 5. *system call*, *page fault*: what the registers said when it left the CPU (`sleeps`): in which call it was, or that it was in
//!    none and left uninterruptibly, which is a fault of its own code.
//! 6. The state in which it left: *asleep* (`S`), *uninterruptible* (`D`), *stopped*.
//!
//! Rows of kernel locks, system calls and page faults come at their begin and have their length, so a wait is split at
//! their ends exactly. One that had not ended when the recording did has no row.

use ft_trace::ids::Name;
use ft_trace::tables::{LockKind, TaskState};

/// Of what kind it is that a thread is blocked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedOn {
    /// Room in the thread's own ring: the tracer's doing.
    FullRing,
    /// A lock of the program.
    Lock,
    /// A semaphore of the program.
    Semaphore,
    /// A condition, named after the lock that it belongs to.
    Condition,
    /// A barrier.
    Barrier,
    /// A value from a channel.
    Value,
    /// Room in a channel.
    Room,
    /// Another wait that the program names.
    Other,
    /// A lock of the kernel.
    KernelLock,
    /// A system call.
    SystemCall,
    /// A page fault.
    PageFault,
    /// It is not known on what, and no signal ends it.
    Uninterruptible,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// It is not known on what.
    Asleep,
}

impl BlockedOn {
    /// For tables; a name may follow.
    pub const fn word(self) -> &'static str {
        match self {
            BlockedOn::FullRing => "full ring",
            BlockedOn::Lock => "lock",
            BlockedOn::Semaphore => LockKind::Semaphore.word(),
            BlockedOn::Condition => "condition of",
            BlockedOn::Barrier => "barrier",
            BlockedOn::Value => "receive from",
            BlockedOn::Room => "room in",
            BlockedOn::Other => "wait for",
            BlockedOn::KernelLock => "kernel lock",
            BlockedOn::SystemCall => "system call",
            BlockedOn::PageFault => "page fault",
            BlockedOn::Uninterruptible => "uninterruptible",
            BlockedOn::Stopped => "stopped",
            BlockedOn::Asleep => "asleep",
        }
    }
}

/// Waits for locks of the kernel that enclose each other. A thread has a few, with those of the interrupts on top of it;
/// damaged data can have more.
///
/// Limit: cannot be reached: a lock, the lock of its queue, and the same in a softirq and a hard interrupt on top. In
/// damaged data the outermost is forgotten, and a wait that outlasts all others is `asleep`.
/// Shown by: `of_more_waits_than_can_enclose_each_other_the_outermost_is_forgotten`.
const MAX_ENCLOSED: usize = 16;

/// A stay in the kernel whose end is known.
#[derive(Debug)]
struct Stay {
    end: i64,
    name: Name,
}

/// The newest page fault.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It is served until then.
    Until(i64),
    /// Its end was not recorded.
    Endless,
}

/// What a thread was in when it left the CPU.
#[derive(Debug)]
enum LeftIn {
    Call(Name),
    NoCall,
}

/// What one thread is inside of.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Until when it waits for room in its ring.
    full_ring: Option<i64>,
    own: Option<(BlockedOn, Name)>,
    /// Those that enclose each other: a semaphore's queue has a lock of its own, and an interrupt waits on top of it.
    contention: Vec<Stay>,
    syscall: Option<Stay>,
    fault: Option<Fault>,
    /// What it was in when it left the CPU.
    left_in: Option<LeftIn>,
    state: Option<TaskState>,
}

impl Waits {
    /// An own event of the thread; `begins` is the kind and name of a wait that it begins with.
    pub(crate) fn own_event(&mut self, begins: Option<(BlockedOn, Name)>) {
        self.own = begins;
        self.fault = None;
    }

    /// The wait that the newest event of the thread itself is the begin of: its kind, and the name of what it is for.
    pub(crate) fn own(&self) -> Option<(BlockedOn, &Name)> {
        self.own.as_ref().map(|(kind, name)| (*kind, name))
    }

    /// It waits for room in its ring until `end`.
    pub(crate) fn full_ring(&mut self, end: i64) {
        self.full_ring = Some(end);
    }

    /// It waits for a lock of the kernel from `begin` to `end`.
    pub(crate) fn contends(&mut self, begin: i64, end: i64, kind: &Name) {
        self.contention.retain(|outer| begin < outer.end);
        if self.contention.len() == MAX_ENCLOSED {
            self.contention.remove(0);
        }
        self.contention.push(Stay { end, name: kind.clone() });
    }

    /// It is in a system call until `end`.
    pub(crate) fn calls(&mut self, end: i64, name: &Name) {
        self.syscall = Some(Stay { end, name: name.clone() });
        self.fault = None;
    }

    /// It has touched a page that is not there; until when that is served, if it was recorded.
    pub(crate) fn faults(&mut self, end: Option<i64>) {
        self.fault = Some(end.map_or(Fault::Endless, Fault::Until));
    }

    /// It is about to leave the CPU in this call, or in none.
    pub(crate) fn sleeps(&mut self, call: Option<&Name>) {
        self.left_in = Some(call.map_or(LeftIn::NoCall, |call| LeftIn::Call(call.clone())));
    }

    /// Nothing is told of the sleep to which it goes; an earlier one is over, though the record of its end may be missing.
    pub(crate) fn untold(&mut self) {
        self.left_in = None;
    }

    /// It leaves the CPU in `state` (of `sched_switch`).
    pub(crate) fn leaves(&mut self, state: TaskState) {
        self.state = Some(state);
    }

    /// It gets a CPU.
    pub(crate) fn returns(&mut self) {
        self.fault = self.fault.filter(|fault| *fault != Fault::Endless);
        self.left_in = None;
    }

    /// What it waits for at `t`, with its name if it has one, and until when that is known to last.
    pub(crate) fn cause(&self, t: i64) -> ((BlockedOn, Option<&Name>), i64) {
        if let Some(end) = self.full_ring.filter(|&end| t < end) {
            return ((BlockedOn::FullRing, None), end);
        }
        if let Some((kind, name)) = &self.own {
            return ((*kind, Some(name)), i64::MAX);
        }
        if let Some(stay) = self.contention.iter().rev().find(|s| t < s.end) {
            return ((BlockedOn::KernelLock, Some(&stay.name)), stay.end);
        }
        if let Some(stay) = self.syscall.as_ref().filter(|s| t < s.end) {
            return ((BlockedOn::SystemCall, Some(&stay.name)), stay.end);
        }
        if let Some(Fault::Until(end)) = self.fault
            && t < end
        {
            return ((BlockedOn::PageFault, None), end);
        }
        if let Some(LeftIn::Call(call)) = &self.left_in {
            return ((BlockedOn::SystemCall, Some(call)), i64::MAX);
        }
        let in_no_call = matches!(self.left_in, Some(LeftIn::NoCall));
        let endless_fault = self.fault == Some(Fault::Endless) || in_no_call;
        let on = match self.state {
            Some(TaskState::Uninterruptible) if endless_fault => BlockedOn::PageFault,
            Some(TaskState::Uninterruptible) => BlockedOn::Uninterruptible,
            Some(TaskState::Stopped | TaskState::Traced) => BlockedOn::Stopped,
            _ => BlockedOn::Asleep,
        };
        ((on, None), i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::culprit::Culprit;
    use super::*;

    fn cause(waits: &Waits, t: i64) -> (String, i64) {
        let ((on, name), until) = waits.cause(t);
        (Culprit::Blocked(on, name.cloned()).name().unwrap().to_string(), until)
    }

    #[test]
    fn the_innermost_known_cause_counts() {
        let mut waits = Waits::default();
        waits.leaves(TaskState::Sleeping);
        assert_eq!(cause(&waits, 0), ("asleep".into(), i64::MAX));
        waits.calls(100, &"read".into());
        assert_eq!(cause(&waits, 0), ("system call read".into(), 100));
        waits.contends(0, 50, &"mutex".into());
        assert_eq!(cause(&waits, 0), ("kernel lock mutex".into(), 50));
        assert_eq!(cause(&waits, 50), ("system call read".into(), 100));
        assert_eq!(cause(&waits, 100), ("asleep".into(), i64::MAX));
        waits.own_event(Some((BlockedOn::Lock, "queue".into())));
        assert_eq!(cause(&waits, 0), ("lock queue".into(), i64::MAX));
        waits.own_event(None);
        assert_eq!(cause(&waits, 0), ("kernel lock mutex".into(), 50));
        waits.full_ring(40);
        assert_eq!(cause(&waits, 39), ("full ring".into(), 40));
        assert_eq!(cause(&waits, 40), ("kernel lock mutex".into(), 50));
    }

    #[test]
    fn a_wait_within_a_wait_does_not_end_the_outer_one() {
        //        0    10   20        50   60
        // rwsem  |-------------------|
        // spin        |----|
        // mutex                           |----
        let mut waits = Waits::default();
        waits.contends(0, 50, &"rwsem-write".into());
        waits.contends(10, 20, &"spinlock".into());
        assert_eq!(cause(&waits, 10), ("kernel lock spinlock".into(), 20));
        assert_eq!(cause(&waits, 20), ("kernel lock rwsem-write".into(), 50));
        waits.contends(60, 70, &"mutex".into());
        assert_eq!(cause(&waits, 60), ("kernel lock mutex".into(), 70));
        assert_eq!(waits.contention.len(), 1, "what is over is forgotten");
    }

    #[test]
    fn of_more_waits_than_can_enclose_each_other_the_outermost_is_forgotten() {
        let mut waits = Waits::default();
        let last = MAX_ENCLOSED as i64;
        for n in 0..=last {
            waits.contends(n, 100 - n, &n.to_string().into());
        }
        assert_eq!(waits.contention.len(), MAX_ENCLOSED);
        assert_eq!(cause(&waits, last), (format!("kernel lock {last}"), 100 - last));
        assert_eq!(cause(&waits, 98), ("kernel lock 1".into(), 99));
        assert_eq!(cause(&waits, 99), ("asleep".into(), i64::MAX));
    }

    #[test]
    fn a_page_fault_counts_until_it_is_served() {
        let mut waits = Waits::default();
        waits.faults(Some(50));
        waits.leaves(TaskState::Uninterruptible);
        assert_eq!(cause(&waits, 10), ("page fault".into(), 50));
        assert_eq!(cause(&waits, 50), ("uninterruptible".into(), i64::MAX));
        // It can wait twice in one.
        waits.returns();
        waits.leaves(TaskState::Sleeping);
        assert_eq!(cause(&waits, 20), ("page fault".into(), 50));
        assert_eq!(cause(&waits, 60), ("asleep".into(), i64::MAX));
        waits.contends(30, 40, &"rwsem-read".into());
        assert_eq!(cause(&waits, 30), ("kernel lock rwsem-read".into(), 40));
    }

    #[test]
    fn what_it_left_the_cpu_in_counts_until_it_is_back() {
        let mut waits = Waits::default();
        waits.sleeps(Some(&"futex".into()));
        waits.leaves(TaskState::Sleeping);
        assert_eq!(cause(&waits, 10), ("system call futex".into(), i64::MAX));
        waits.contends(20, 30, &"rwsem-read".into());
        assert_eq!(cause(&waits, 20).0, "kernel lock rwsem-read");
        waits.returns();
        waits.leaves(TaskState::Sleeping);
        assert_eq!(cause(&waits, 40).0, "asleep");
        for (state, expected) in
            [(TaskState::Uninterruptible, "page fault"), (TaskState::Sleeping, "asleep")]
        {
            waits.sleeps(None);
            waits.leaves(state);
            assert_eq!(cause(&waits, 50).0, expected);
        }
    }

    #[test]
    fn a_page_fault_without_an_end_counts_only_where_nothing_else_can_be() {
        let check = |state: &str, expected: &str, then: fn(&mut Waits)| {
            let mut waits = Waits::default();
            waits.faults(None);
            then(&mut waits);
            waits.leaves(TaskState::of(state));
            assert_eq!(cause(&waits, 10).0, expected);
        };
        check("D", "page fault", |_| ());
        check("S", "asleep", |_| ());
        check("D", "uninterruptible", |w| w.own_event(None));
        check("D", "uninterruptible", |w| w.calls(5, &"read".into()));
        check("D", "uninterruptible", Waits::returns);
        check("T", "stopped", |_| ());
    }
}
