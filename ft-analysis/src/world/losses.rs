//! Which intervals were touched by loss.
//!
//! **Rule.** An interval is touched when a loss that may concern it overlaps it. Intervals are judged when they
//! end and losses arrive by their start, so of every loss that has arrived only its end matters: the
//! latest end per thread, per process, and of the kernel stream. No list of losses is kept.
//!
//! What nobody reported lost can still be missing: a switch away from a thread that did not have the CPU shows
//! it ([`super::cpus`]), and the threads concerned are marked in the same way: the one that left unseen, the one
//! that came unseen, and those that waited for that CPU.

use std::collections::HashMap;

use ft_trace::ids::{Pid, ThreadKey};
use ft_trace::tables::{LossOrigin, LossRow, LostRecords};

/// What a loss leaves unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hides {
    /// The state of every thread, and interrupts: scheduler records, or nobody knows which.
    Scheduling,
    /// Interrupts only.
    Interrupts,
    /// Events of one thread.
    Thread(ThreadKey),
    /// Events of any thread of one process.
    Process(Pid),
    /// Everything: the agent itself lost it.
    Everything,
    /// System calls and page faults.
    Calls,
    /// Hits of probes.
    Probes,
    /// Nothing that these analyses use.
    Nothing,
}

impl Hides {
    /// Switches may be missing.
    pub(crate) fn scheduling(self) -> bool {
        matches!(self, Hides::Scheduling | Hides::Everything)
    }

    /// Hits of probes may be missing.
    pub(crate) fn probes(self) -> bool {
        matches!(self, Hides::Probes | Hides::Everything)
    }

    /// Interrupts may be missing.
    pub(crate) fn interrupts(self) -> bool {
        self.scheduling() || self == Hides::Interrupts
    }
}

/// What the loss hides. An origin or a program that is not known hides all that it could.
pub(crate) fn hides(loss: &LossRow) -> Hides {
    if let Some(records) = loss.records() {
        return match records {
            LostRecords::Switches | LostRecords::Wakings => Hides::Scheduling,
            LostRecords::Interrupts => Hides::Interrupts,
            LostRecords::Calls => Hides::Calls,
            LostRecords::Probes => Hides::Probes,
            LostRecords::Chains | LostRecords::Sections | LostRecords::Counts => Hides::Nothing,
            LostRecords::Other if ft_ebpf::program::NAMES.contains(&&*loss.what) => Hides::Nothing,
            LostRecords::Other => Hides::Scheduling,
        };
    }
    match loss.origin {
        LossOrigin::Ring | LossOrigin::SharedRing if loss.tid.0 >= 0 => {
            Hides::Thread(ThreadKey { pid: loss.pid, tid: loss.tid })
        }
        LossOrigin::Ring | LossOrigin::SharedRing | LossOrigin::Tsc | LossOrigin::Site
            if loss.pid.0 >= 0 =>
        {
            Hides::Process(loss.pid)
        }
        // What a child does is none of its parent's.
        LossOrigin::Directory | LossOrigin::Child => Hides::Nothing,
        _ => Hides::Everything,
    }
}

/// The latest ends of the losses so far.
#[derive(Debug)]
pub(crate) struct Losses {
    threads: HashMap<ThreadKey, i64>,
    processes: HashMap<Pid, i64>,
    /// Of any thread of a process.
    rings: HashMap<Pid, i64>,
    scheduling: Option<i64>,
    interrupts: Option<i64>,
    calls: Option<i64>,
    probes: Option<i64>,
    everything: Option<i64>,
    /// What a thread not seen yet must know of, when it appears: until when switches may be missing, and interrupts.
    pub(super) dark_until: i64,
    pub(super) blind_until: i64,
    /// How many losses of each origin's records there were.
    pub(crate) user_records: u64,
    pub(crate) kernel_records: u64,
}

impl Default for Losses {
    fn default() -> Self {
        Losses {
            threads: HashMap::new(),
            processes: HashMap::new(),
            rings: HashMap::new(),
            scheduling: None,
            interrupts: None,
            calls: None,
            probes: None,
            everything: None,
            dark_until: i64::MIN,
            blind_until: i64::MIN,
            user_records: 0,
            kernel_records: 0,
        }
    }
}

impl Losses {
    /// Counts a loss.
    pub(crate) fn add(&mut self, loss: &LossRow) -> Hides {
        let end = loss.ts.0.saturating_add(loss.dur.max(0));
        let count = u64::try_from(loss.count).unwrap_or(0);
        let kernel = loss.origin.is_kernel();
        let records = if kernel { &mut self.kernel_records } else { &mut self.user_records };
        // An application tells the count, and may tell anything.
        *records = records.saturating_add(count);
        let hides = hides(loss);
        if hides.scheduling() {
            self.dark_until = self.dark_until.max(end);
        }
        if hides.interrupts() {
            self.blind_until = self.blind_until.max(end);
        }
        if let Hides::Thread(_) = hides {
            let latest = self.rings.entry(loss.pid).or_insert(end);
            *latest = end.max(*latest);
        }
        let latest = match hides {
            Hides::Scheduling => self.scheduling.get_or_insert(end),
            Hides::Interrupts => self.interrupts.get_or_insert(end),
            Hides::Calls => self.calls.get_or_insert(end),
            Hides::Probes => self.probes.get_or_insert(end),
            Hides::Thread(thread) => self.threads.entry(thread).or_insert(end),
            Hides::Process(pid) => self.processes.entry(pid).or_insert(end),
            Hides::Everything => self.everything.get_or_insert(end),
            Hides::Nothing => return hides,
        };
        *latest = end.max(*latest);
        hides
    }

    /// Whether a loss of the thread's own events reaches past `since`.
    pub(crate) fn of_events(&self, thread: ThreadKey, since: i64) -> bool {
        let own = [self.threads.get(&thread), self.processes.get(&thread.pid)];
        let all = own.into_iter().flatten().chain(&self.everything);
        all.into_iter().any(|&end| end >= since)
    }

    /// The thread has ended: another one may get its number.
    pub(crate) fn ended(&mut self, thread: ThreadKey) {
        self.threads.remove(&thread);
    }

    /// Whether a loss of scheduler records reaches past `since`.
    pub(crate) fn scheduling_since(&self, since: i64) -> bool {
        [self.scheduling, self.everything].into_iter().flatten().any(|end| end >= since)
    }

    /// Whether a loss of kernel records reaches past `since`.
    pub(crate) fn kernel_since(&self, since: i64) -> bool {
        self.scheduling_since(since) || self.interrupts.is_some_and(|end| end >= since)
    }

    /// Whether a loss of any thread's own events reaches past `since`.
    pub(crate) fn events_since(&self, since: i64) -> bool {
        let all = self.rings.values().chain(self.processes.values()).chain(&self.everything);
        all.into_iter().any(|&end| end >= since)
    }

    /// Whether a loss of system calls or page faults reaches past `since`.
    pub(crate) fn calls_since(&self, since: i64) -> bool {
        [self.calls, self.everything].into_iter().flatten().any(|end| end >= since)
    }

    /// Whether a loss of hits of probes reaches past `since`.
    pub(crate) fn probes_since(&self, since: i64) -> bool {
        [self.probes, self.everything].into_iter().flatten().any(|end| end >= since)
    }

    /// Whether any loss that concerns a thread of the process reaches past `since`.
    pub(crate) fn process_since(&self, pid: Pid, since: i64) -> bool {
        let own = [self.rings.get(&pid), self.processes.get(&pid)];
        self.kernel_since(since) || own.into_iter().flatten().any(|&end| end >= since)
    }

    /// Whether any loss that concerns the thread reaches past `since`.
    pub(crate) fn any_since(&self, thread: ThreadKey, since: i64) -> bool {
        let own = [self.threads.get(&thread), self.processes.get(&thread.pid)];
        self.kernel_since(since) || own.into_iter().flatten().any(|&end| end >= since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::ids::{Cpu, Nanos, Tid};

    fn thread(pid: i32, tid: i32) -> ThreadKey {
        ThreadKey { pid: Pid(pid), tid: Tid(tid) }
    }

    fn loss(origin: &str, what: &str, pid: i32, tid: i32, ts: i64, dur: i64) -> LossRow {
        LossRow {
            ts: Nanos(ts),
            dur,
            origin: LossOrigin::of(origin),
            what: what.into(),
            cpu: Cpu(0),
            pid: Pid(pid),
            tid: Tid(tid),
            count: 1,
        }
    }

    #[test]
    fn a_loss_hides_what_it_may_concern() {
        for (origin, what, tid, pid, expected) in [
            ("kernel", "sched_switch", -1, -1, Hides::Scheduling),
            ("kernel", "what is this", -1, -1, Hides::Scheduling),
            ("kernel", "softirq_exit", -1, -1, Hides::Interrupts),
            ("kernel", "sys_exit", -1, -1, Hides::Calls),
            ("kernel-skipped", "sched_switch", -1, -1, Hides::Scheduling),
            ("kernel-skipped", "sys_exit", -1, -1, Hides::Calls),
            ("kernel", "probe_return", -1, -1, Hides::Probes),
            ("kernel", "signal_generate", -1, -1, Hides::Nothing),
            ("ring", "", 5, 4, Hides::Thread(thread(4, 5))),
            ("shared-ring", "", -1, 4, Hides::Process(Pid(4))),
            ("directory", "", -1, 4, Hides::Nothing),
            ("tsc", "", -1, 4, Hides::Process(Pid(4))),
            ("site", "order.placed", -1, 4, Hides::Process(Pid(4))),
            ("agent", "disk full", -1, -1, Hides::Everything),
        ] {
            assert_eq!(hides(&loss(origin, what, pid, tid, 0, 0)), expected, "{origin} {what}");
        }
    }

    #[test]
    fn every_program_of_the_kernel_side_is_known() {
        for name in ft_ebpf::program::NAMES {
            let scheduling = hides(&loss("kernel", name, -1, -1, 0, 0)) == Hides::Scheduling;
            let expected = name.starts_with("sched_sw")
                || name.starts_with("sched_wak")
                || name.starts_with("sched_migrate");
            assert_eq!(scheduling, expected, "{name}");
        }
    }

    #[test]
    fn a_loss_touches_what_it_overlaps() {
        //          10      20      30
        // loss      |-------|
        // touched     |--------|            since 15
        // not                   |----|      since 25
        let mut losses = Losses::default();
        losses.add(&loss("ring", "", 4, 5, 10, 10));
        assert!(losses.any_since(thread(4, 5), 15));
        assert!(losses.any_since(thread(4, 5), 20));
        assert!(!losses.any_since(thread(4, 5), 25));
        assert!(!losses.any_since(thread(4, 6), 15), "another thread's ring");
        assert!(!losses.any_since(thread(3, 5), 15), "another process's thread");
        assert!(losses.of_events(thread(4, 5), 20) && !losses.of_events(thread(4, 5), 21));
        assert!(!losses.of_events(thread(4, 6), i64::MIN));
        assert!(!losses.kernel_since(15));
        losses.add(&loss("kernel", "sched_switch", -1, -1, 12, 50));
        assert!(losses.any_since(thread(4, 6), 25) && losses.kernel_since(62));
        assert!(!losses.kernel_since(63));
        losses.add(&loss("kernel", "softirq_exit", -1, -1, 70, 5));
        assert!(losses.kernel_since(75) && !losses.scheduling_since(63));
    }

    #[test]
    fn losses_that_no_counter_holds_are_the_most_that_it_holds() {
        let mut losses = Losses::default();
        for origin in ["ring", "kernel"] {
            let loss = LossRow { count: i64::MAX, ..loss(origin, "", 4, 5, 0, 0) };
            (0..3).for_each(|_| _ = losses.add(&loss));
        }
        assert_eq!((losses.user_records, losses.kernel_records), (u64::MAX, u64::MAX));
    }
}
