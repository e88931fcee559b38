//! What would have shortened the waits behind holders that lost the CPU.
//!
//! **Goal.** One row for each hold in which the holder could have run and did not. How much of what others waited for it
//! from then on could have been spared, had the holder been granted a little more time, inherited the priority of who
//! waited, had a priority above all ordinary threads, or a CPU of its own.
//!
//! **What the record bounds.** No scheduler is simulated here. Up to `t0`, when the holder first could run and did not,
//! none of these changes anything. From `t0` to the release `r` the record has what the hold still needed: so much on a CPU,
//! so much in interrupts, so much asleep. A what-if takes time away in which the holder could run and did not, and
//! leaves all else as it was. So the hold does not end before a moment `e`, and whoever waited for the lock at `r`, since
//! `w`, would have waited until `e` all the same. What is left of its wait behind this hold, from the later of `e` and `w`
//! to `r`, is **the most** that it can be spared; and a hold that ended at `e` would spare it all of that.
//!
//! | what if | `e` |
//! |---|---|
//! | the holder runs on at `t0`, as with a time-slice extension | `t0` and what it ran afterwards, without interrupts, which may strike at another time |
//! | it inherits the priority of who waits | `r` without the time in which a thread of lower priority than the first of its urgent waiters had its CPU, and such a waiter was there |
//! | its priority is above all ordinary ones | `r` without the time in which a thread of ordinary priority had its CPU |
//! | it has a CPU of its own | `r` without all time in which it could run and did not |
//!
//! Since `t0 <= e`, and holds of a lock that excludes others do not overlap, no wait is spared more than it lasted,
//! nor are the sums over all holds more than the sum of all waits.
//!
//! **Chains of holders.** What a holder slept counts as needed here, be it for another lock. What its holder gains with a CPU of
//! its own, and hands on to those behind it, each wait has in `lock_waits.own_cpu_ns`, however long the chain
//! (`waits/spared.rs`). The other changes have no such figure: an extension is for one hold; and whom a priority would make
//! wait in turn, these bounds do not say.
//!
//! **What it does not bound.** What the next in the queue gain when those before them come and go earlier; who
//! loses the time that the holder is given; and whether threads that come earlier then wait for something else. From the first change
//! on the order of events is another, and the record has only one. So these are bounds of these waits, and promise nothing of
//! a program's throughput. Two assumptions remain: that the rest of a hold takes no less than it took (after a
//! preemption, with colder caches, it takes rather more), and that threads would have asked for the lock when they did.
//!
//! **A time-slice extension** (Documentation/userspace-api/rseq.rst; `rseq_grant_slice_extension`,
//! include/linux/rseq_entry.h; `exit_to_user_mode_loop`, kernel/entry/common.c; Linux 7.0) is granted to a thread that has
//! asked for it by a bit of its `struct rseq`, once, when an interrupt is about to return to user space and the thread
//! should be rescheduled. It lasts 5 µs, or up to 50 as the administrator says (debugfs `rseq/slice_ext_nsec`), and a timer
//! ends it; so does each system call, for which `rseq_slice_yield` is meant; and a thread that leaves the CPU has no
//! request any more. Hence [`GrantBar`]: a hold that had slept before, or did afterwards; one whose holder was in the kernel
//! when it lost the CPU, by the record of its call or page fault, or because the kernel's own code was preempted (`R+`, which
//! user space never is: `preempt` of `sched_switch`, `__schedule` in kernel/sched/core.c); and one that made a system call
//! afterwards. Not known, and so left in: that it was on its way back from a call or a
//! fault, that a signal was pending, and on a real-time kernel that a real-time thread came, all of which refuse it. The first loss of the CPU in a hold decides: a grant that is too short for the
//! rest only puts it off.
//!
//! **Priority inheritance** (Documentation/locking/pi-futex.rst) concerns waiters of real-time or deadline priority alone:
//! ordinary ones are all equal (`__waiter_prio`, kernel/locking/rtmutex.c), and a boost does not change what share of the
//! CPU an ordinary thread has. Priorities are those of the newest switch or wake-up of each thread. Only waiters for the
//! hold's own lock count, not those behind a waiter that holds another one.
//!
//! **Situations.**
//! - *A lock held for reading*: others may hold it, too, and nobody is let in. The row has no figures of waits.
//! - *A wait that was given up before the release*: it is not among them.
//! - *The release is not recorded*: no row, counted.
//! - *Records are missing*: a lower bound, of which nothing here is an upper one. Reports leave such rows out of sums.
//!
//! Memory: a few numbers for each lock that is held and whose holder has lost the CPU.

use crate::analysis::Analysis;
use crate::world::{Began, Change, Hold, Occupant, PerThread, Shares, Thread, World};
use crate::{Rows, Tally};
use ft_ebpf::FIRST_ORDINARY;
use ft_trace::Mark;
use ft_trace::ids::{Nanos, Tid};
use ft_trace::tables::{Decomposition, GrantBar, PreemptionCause, WhatIf};

/// A hold in which the holder could have run and did not.
#[derive(Debug)]
struct HeldUp {
    hold: u64,
    since: i64,
    cause: PreemptionCause,
    prio: Option<i32>,
    /// The first time, and what came after it.
    first: Decomposition,
    then: Began,
    in_kernel: bool,
    calls: i64,
    times: i32,
    /// Of all times: threads of ordinary priority had the CPU.
    ordinary_ns: i64,
    /// Threads had it that the holder would have preempted with the priority of an urgent waiter.
    inheritable_ns: i64,
    /// Threads of the agent had the CPU the first time.
    first_agent_ns: Option<i64>,
    /// It is known who had the CPU.
    exact: bool,
}

/// Makes the table `what_ifs`.
#[derive(Debug, Default)]
pub struct WhatIfs {
    open: PerThread<Vec<HeldUp>>,
    unreleased: u64,
}

impl Analysis for WhatIfs {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Dispatched { thread, after, shares, .. } if after.is_runnable() => {
                self.runs_again(thread, shares, world);
            }
            Change::Released { thread, hold: Some(hold), .. } => {
                if let Some(held_up) = self.over(thread, hold) {
                    rows.what_ifs.push(row(thread, hold, &held_up, world));
                }
            }
            Change::HoldLost { thread, hold }
            | Change::HoldMoved { from: Some(thread), hold, .. } => {
                self.unreleased += u64::from(self.over(thread, hold).is_some());
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.unreleased_held_up = self.unreleased;
    }
}

impl WhatIfs {
    /// A thread runs again, which could have run before.
    fn runs_again(&mut self, thread: &Thread, shares: &Shares, world: &World) {
        if thread.locks.locks().next().is_none() {
            return;
        }
        let open = self.open.of(thread);
        for hold in thread.locks.locks() {
            let at = open.iter().position(|held_up| held_up.hold == hold.id).unwrap_or_else(|| {
                open.push(HeldUp::first(thread, hold, world));
                open.len() - 1
            });
            open[at].again(thread, hold, shares, world);
        }
    }

    /// A hold is over.
    fn over(&mut self, thread: &Thread, hold: &Hold) -> Option<HeldUp> {
        let open = self.open.get(thread)?;
        let at = open.iter().position(|held_up| held_up.hold == hold.id)?;
        Some(open.swap_remove(at))
    }
}

impl HeldUp {
    /// The first time of a hold is over.
    fn first(thread: &Thread, hold: &Hold, world: &World) -> HeldUp {
        let since = thread.runnable.0.max(hold.began.ts);
        let (cause, mut first) = (cause(thread), Decomposition::default());
        *match cause {
            PreemptionCause::Preempted => &mut first.preempted_ns,
            PreemptionCause::Woken => &mut first.dispatch_ns,
        } = world.now() - since;
        let place = thread.place(world.now());
        let inside = place.is_some_and(|at| at.call.is_some() || at.fault.is_some());
        HeldUp {
            hold: hold.id,
            since,
            cause,
            prio: thread.prio,
            first,
            then: Began::now(thread, world),
            in_kernel: inside || thread.cut_off,
            calls: thread.calls(),
            times: 0,
            ordinary_ns: 0,
            inheritable_ns: 0,
            first_agent_ns: None,
            exact: true,
        }
    }

    /// One more time, be it the first.
    fn again(&mut self, thread: &Thread, hold: &Hold, shares: &Shares, world: &World) {
        let since = thread.runnable.0.max(self.since);
        let took = |are_meant: &dyn Fn(&Occupant) -> bool, from: i64| {
            // An idle CPU is given to any thread, whatever its priority.
            let ns = shares.of(|who| who.thread.tid != Tid(0) && are_meant(who));
            ns.min(world.now() - from)
        };
        if self.times == 0 {
            self.first_agent_ns = world.agent_share(shares);
        }
        self.times = self.times.saturating_add(1);
        self.ordinary_ns += took(&|who| who.prio >= FIRST_ORDINARY, since);
        let urgent = urgent(self.prio, thread, hold, world);
        if let Some((highest, there)) = urgent.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1))) {
            self.inheritable_ns += took(&|who| who.prio > highest, since.max(there));
        }
        self.exact &= shares.is_exact();
    }

    /// What would have kept a time-slice extension from letting the hold end, which now does.
    fn bar(&self, thread: &Thread, parts: &Decomposition) -> GrantBar {
        match self.cause {
            PreemptionCause::Woken => GrantBar::Sleep,
            PreemptionCause::Preempted if parts.blocked_ns > 0 => GrantBar::Sleep,
            PreemptionCause::Preempted if self.in_kernel => GrantBar::Kernel,
            PreemptionCause::Preempted if thread.calls() > self.calls => GrantBar::Call,
            PreemptionCause::Preempted => GrantBar::Nothing,
        }
    }
}

fn cause(thread: &Thread) -> PreemptionCause {
    if thread.runnable.1 { PreemptionCause::Woken } else { PreemptionCause::Preempted }
}

/// The waiters for the lock of a hold with a real-time priority higher than that of its holder: their priorities, and since
/// when they wait.
fn urgent<'a>(
    holder: Option<i32>,
    thread: &'a Thread,
    hold: &Hold,
    world: &'a World,
) -> impl Iterator<Item = (i32, i64)> + Clone + use<'a> {
    let queue = world.locks().queue(thread.process, hold.lock).iter();
    queue.filter_map(move |&(tid, from)| {
        let prio = world.thread(thread.key.pid, tid)?.prio?;
        (prio < FIRST_ORDINARY && prio < holder?).then_some((prio, from))
    })
}

/// What threads that began to wait at these times have waited from `since` until now.
fn waited(since: i64, now: i64, from: impl Iterator<Item = i64>) -> i64 {
    from.map(|from| now - from.max(since)).sum()
}

/// The row of a hold that ends now.
fn row(thread: &Thread, hold: &Hold, h: &HeldUp, world: &World) -> WhatIf {
    let (context, pid, now) = (world.context(), thread.key.pid, world.now());
    let mut parts = h.then.parts(thread, world).unwrap_or_default();
    parts += h.first;
    let exclusive = !hold.kind.ends_with("-read");
    let all = world.locks().queue(thread.process, hold.lock).iter().map(|(_, from)| *from);
    let urgent = urgent(h.prio, thread, hold, world).map(|(_, from)| from);
    let of_all = |since| exclusive.then(|| waited(since, now, all.clone()));
    let of_urgent = |since| exclusive.then(|| waited(since, now, urgent.clone()));
    let count = |n: usize| exclusive.then(|| i32::try_from(n).unwrap_or(i32::MAX));
    let losses = world.losses();
    let lost = losses.kernel_since(h.since)
        || losses.calls_since(h.since)
        || losses.process_since(pid, h.since)
        || thread.doubtful_since(h.since)
        || !h.exact;
    WhatIf {
        ts: Nanos(h.since),
        dur: now - h.since,
        pid,
        tid: thread.key.tid,
        comm: thread.comm.clone(),
        prio: h.prio,
        lock: hold.lock,
        lock_name: context.lock_name(pid, hold.lock, hold.site, hold.word),
        kind: hold.kind.clone(),
        site: hold.site,
        place: context.place(pid, hold.site, hold.word),
        cause: h.cause,
        times: h.times,
        parts: Some(parts),
        bar: h.bar(thread, &parts),
        waiters: count(all.clone().count()),
        waited_ns: of_all(h.since),
        run_on_ns: of_all(h.since + parts.running_ns),
        urgent: count(urgent.clone().count()),
        urgent_ns: of_urgent(h.since),
        inherited_ns: of_urgent(now - h.inheritable_ns),
        prioritized_ns: of_all(now - h.ordinary_ns),
        own_cpu_ns: of_all(now - parts.preempted_ns - parts.dispatch_ns),
        // Also of times in which the hold was parked, as in the parts.
        agent_ns: h.first_agent_ns.zip(h.then.agent_ns(thread, world)).map(|(a, b)| a + b),
        mark: Mark::lower_bound_if(lost).max(world.disturbed_since(pid, h.since)),
    }
}
