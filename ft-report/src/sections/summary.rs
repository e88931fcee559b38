//! What `record` prints when it ends: a few lines about each question.

mod program;
mod unknown;
mod values;

pub(super) use unknown::knows_sleeps;

use super::apart::Names;
use super::dispatch::{DispatchReport, LATE_NS, WorstWake};
use super::functions::FunctionsReport;
use super::futexes::{self, FutexesReport};
use super::gaps::GapsReport;
use super::locks::{LocksReport, LongHold};
use super::order::ORDER;
use super::preempted::PreemptedReport;
use super::tasks::TasksReport;
use super::time::TimeReport;
use super::waits::{LongWait, RootWaits, UNFINISHED, WaitsReport, at, free};
use crate::document::{Lock, N, Ns, Of, Section, See, Share, Text, Thread, Word};
use crate::stats::Own;
use crate::text;
use ft_trace::tables::{Decomposition, LockKind};

/// Locks, threads and culprits that are named.
const NAMED: usize = 3;

/// What it is made of.
pub(super) struct Answers {
    pub(super) locks: LocksReport,
    pub(super) waits: WaitsReport,
    pub(super) futexes: FutexesReport,
    pub(super) preempted: PreemptedReport,
    pub(super) dispatch: DispatchReport,
    pub(super) gaps: GapsReport,
    pub(super) time: TimeReport,
    pub(super) tasks: TasksReport,
    pub(super) functions: FunctionsReport,
    /// It is known in which calls threads slept.
    pub(super) sleeps: bool,
    /// The command ran with the preload library.
    pub(super) preload: bool,
}

impl Answers {
    /// What it says.
    pub(super) fn section(&self) -> Section {
        let mut s = Section::new("summary", "");
        self.locks(&mut s);
        self.waits(&mut s);
        self.futexes(&mut s);
        self.held_up(&mut s);
        self.dispatch(&mut s);
        self.gaps(&mut s);
        self.time(&mut s);
        self.tasks(&mut s);
        self.functions(&mut s);
        s.with(self.values())
    }

    fn locks(&self, s: &mut Section) {
        let locks = &self.locks;
        if locks.holds == 0 {
            return s.answer("locks", "locks", text!("no hold was recorded{}", self.unknown()));
        }
        let all = &locks.all;
        s.answer(
            "locks",
            "locks",
            text!(
                "{} of {}{}, {}{} nested; p50 {}{}, max {}",
                Of(locks.holds, "hold"),
                // One that has readers and writers is one.
                if all.instances_exact { "" } else { "at least " },
                Of(all.instances, "lock"),
                if locks.depth_lower_bounds > 0 { "at least " } else { "" },
                Share::of(all.nested, all.holds),
                Ns(all.tail.p50_ns),
                p99(all.tail.p99_ns),
                locks.longest.first().map(LongHold::interval)
            ),
        );
        let (censored, lower) = (locks.marks.censored, locks.marks.lower_bounds);
        let censored =
            (censored > 0).then(|| text!("{} more censored and not counted", N(censored)));
        let lower = (lower > 0).then(|| text!("{} with lost records (lower bounds)", N(lower)));
        match (censored, lower) {
            (Some(censored), Some(lower)) => s.say(text!("{}; {}", censored, lower)),
            (Some(one), None) | (None, Some(one)) => s.say(one),
            (None, None) => {}
        }
        if locks.decomposed {
            let p = &all.parts;
            let running = text!("running {}", Share(p.running_ns, p.total_ns()));
            s.say(text!(
                "{} preempted; held time: {}{}",
                Of(all.preempted_holds, "hold"),
                Text::join([running].into_iter().chain(elsewhere(p)), ", ").unwrap_or_default(),
                all.agent_ns.of_it(all.total_ns)
            ));
        }
        for h in locks.longest.iter().take(NAMED) {
            s.say(text!(
                "{} held {}{}{}",
                Lock::named(&h.lock),
                h.interval(),
                at(&h.place),
                h.parts.map_or(Text::default(), |p| why(h, &p))
            ));
        }
    }

    /// Waits for semaphores that ended, and their sum: nobody in particular holds one, so none is to blame for them.
    fn semaphores(&self) -> Option<(u64, i64)> {
        let of = self.locks.locks.iter().filter(|g| LockKind::of(&g.kind) == LockKind::Semaphore);
        let sum = of.fold((0, 0), |(n, ns), g| (n + g.waits, ns + g.wait_total_ns));
        (sum.0 > 0).then_some(sum)
    }

    /// Who delayed whom; nothing where nobody did.
    fn waits(&self, s: &mut Section) {
        let waits = &self.waits;
        let semaphores = self.semaphores();
        if waits.waits == 0
            && let Some((n, ns)) = semaphores
        {
            s.answer(
                "waits",
                "locks",
                text!("{} for a semaphore, {} in all", Of(n, "wait"), Ns(ns)),
            );
        }
        if waits.waits > 0 {
            s.answer(
                "waits",
                "waits",
                text!(
                    "{} for a lock, {} in all{}; longest {}",
                    Of(waits.waits, "wait"),
                    Ns(waits.total_ns),
                    waits.all.agent_ns.of_it(waits.total_ns),
                    waits.longest.first().map(LongWait::interval)
                ),
            );
            if let Some((n, ns)) = semaphores {
                s.say(text!("{} more for a semaphore, {} in all", N(n), Ns(ns)));
            }
            if let Some(free) = free::sentence(&waits.all) {
                s.say(free);
            }
            // Only the longest of each wait is counted.
            let bound = if waits.brief_roots_ns > 0 { "at least " } else { "" };
            let worth = |r: &&RootWaits| r.total_ns > waits.total_ns / 1000;
            for r in waits.roots.iter().take(NAMED).filter(worth) {
                s.say(text!(
                    "{}{} of it caused by {} holding {}{}",
                    bound,
                    Share(r.total_ns, waits.total_ns),
                    Thread::named(&r.comm),
                    Lock::named(&r.lock),
                    at(&r.place)
                ));
            }
        }
        let locked = waits.deadlocked();
        if locked > 0 {
            let n = Of(locked, "thread");
            let see = See("waits", UNFINISHED);
            s.warn(text!("DEADLOCK: {} wait for each other; see {}", n, see));
        }
        if !waits.order.abba.is_empty() {
            let n = Of(waits.order.abba.len() as u64, "pair");
            s.answer(
                "order",
                "waits",
                text!("{} of locks acquired in both orders; see {}", n, See("waits", ORDER)),
            );
        }
    }

    /// Waits of any lock; nothing where they were not asked for.
    fn futexes(&self, s: &mut Section) {
        let all = &self.futexes.all;
        if all.waits == 0 {
            return;
        }
        s.answer(
            "futexes",
            "futexes",
            text!(
                "{} at futexes and semaphores, {} in all{}, {} of it asleep; {} woken; longest {}",
                Of(all.waits, "wait"),
                Ns(all.total_ns),
                all.agent_ns.of_it(all.total_ns),
                Share(all.parts.blocked_ns, all.total_ns),
                N(all.woken),
                self.futexes.longest.first().map(futexes::LongWait::interval)
            ),
        );
        for f in self.futexes.futexes.iter().take(NAMED) {
            let waker = f.waker.as_deref().map(|waker| {
                let times = text!("({} of {})", N(f.by_waker), N(f.waits.woken));
                text!(", most often woken by {} {}", Thread::named(waker), times)
            });
            s.say(text!(
                "{} in {} at {}{}",
                Ns(f.waits.total_ns),
                Of(f.waits.waits, "wait"),
                Lock::named(f.own.as_ref().unwrap_or(&f.name)),
                waker.unwrap_or_default()
            ));
        }
    }

    fn held_up(&self, s: &mut Section) {
        let preempted = &self.preempted;
        let Some(first) = preempted.preemptors.first() else { return };
        let delayed = match preempted.delayed_ns() {
            0 => text!("nobody waited for it"),
            ns => text!("waiters delayed by {}", Ns(ns)),
        };
        let semaphores = match preempted.semaphores {
            0 => Text::default(),
            n => text!("; {} of semaphores not among them", Of(n, "hold")),
        };
        s.answer(
            "held up",
            "preempted",
            text!(
                "{} a lock's holder had no CPU: {}{}, {}; {}{}",
                Of(preempted.times, "time"),
                Ns(preempted.total_ns),
                preempted.agent_ns.of_it(preempted.total_ns),
                first.held_up(preempted.lost_ns(first.cause), preempted.total_ns),
                delayed,
                semaphores
            ),
        );
    }

    fn dispatch(&self, s: &mut Section) {
        let all = &self.dispatch.all;
        if all.wakeups == 0 {
            return s.answer(
                "dispatch",
                "dispatch",
                match self.dispatch.kernel {
                    true => "no wake-up was recorded",
                    false => "the kernel was not recorded",
                },
            );
        }
        s.answer(
            "dispatch",
            "dispatch",
            text!(
                "{}{}; p50 {}{}, max {}; {} later than {}",
                Of(all.wakeups, "wake-up"),
                match all.agent_ns.beside(all.total_ns) {
                    Some(share) => text!(", {} of their latency the recording itself", share),
                    None => Text::default(),
                },
                Ns(all.tail.p50_ns),
                p99(all.tail.p99_ns),
                self.dispatch.worst.first().map(WorstWake::interval),
                N(all.later_than[0]),
                Ns(LATE_NS[0])
            ),
        );
        let worst = || self.dispatch.worst.iter().take(NAMED);
        let all = worst().flat_map(|w| [Some((&*w.comm, w.tid)), w.behind()]).flatten();
        let names = Names::of(all, "");
        let thread = |(name, tid)| Thread::of(Some(tid), Some(&names.name(name, tid)));
        for w in worst() {
            let waited = thread((&w.comm, w.tid));
            let behind = w.behind().zip(w.behind_ns).map_or(Text::default(), |(behind, ns)| {
                text!(", {} of it behind {}", Ns(ns), thread(behind))
            });
            s.say(text!("{} waited {}{}", waited, w.interval(), behind));
        }
    }

    fn gaps(&self, s: &mut Section) {
        let gaps = &self.gaps;
        if gaps.gaps == 0 {
            return s.answer(
                "gaps",
                "gaps",
                match gaps.pollers_seen {
                    0 => "no thread polled",
                    _ => "none was seen",
                },
            );
        }
        s.answer(
            "gaps",
            "gaps",
            text!(
                "{} of {}, {} in all",
                Of(gaps.gaps, "gap"),
                Of(gaps.pollers.len() as u64, "polling thread"),
                Ns(gaps.total_ns())
            ),
        );
        for c in gaps.culprits.iter().take(NAMED) {
            s.say(text!(
                "{}, with the largest part {} by {}: {} in all, at most {}",
                Of(c.gaps, "gap"),
                Word(c.cause),
                Thread::named(&c.culprit),
                Ns(c.total_ns),
                Ns(c.max_ns)
            ));
        }
    }

    fn time(&self, s: &mut Section) {
        let time = &self.time;
        if time.threads.is_empty() {
            return;
        }
        let sums = time.parts();
        let total = sums.total_ns();
        let mut own = Own::default();
        time.culprits.iter().for_each(|c| own.add(c.agent_ns.0));
        s.answer("time", "time", text!(
            "{} of {}, {}: running {}, preempted {}, woken and waiting {}{}, blocked {}, interrupts {}, unexplained {}",
            Ns(total),
            Of(time.threads.len() as u64, "thread"),
            if time.unbalanced == 0 { "balanced" } else { "NOT BALANCED" },
            Share(sums.running_ns, total),
            Share(sums.preempted_ns, total),
            Share(sums.dispatch_ns, total),
            match own.beside(sums.runnable_ns()) {
                Some(share) => text!(" ({} of these two the recording itself)", share),
                None => Text::default(),
            },
            Share(sums.blocked_ns, total),
            Share(sums.interrupts_ns(), total),
            Share(sums.unexplained_ns, total)
        ));
    }
}

/// `, p99 1.00 µs`, if there are samples for it.
fn p99(ns: Option<i64>) -> Text {
    ns.map_or(Text::default(), |ns| text!(", p99 {}", Ns(ns)))
}

/// The shares of held time in which the holder did not run, without those that are nothing.
fn elsewhere(p: &Decomposition) -> impl Iterator<Item = Text> {
    let total = p.total_ns();
    let parts = [
        ("preempted", p.preempted_ns),
        ("woken and waiting", p.dispatch_ns),
        ("blocked", p.blocked_ns),
        ("interrupts", p.interrupts_ns()),
        ("parked with its task", p.parked_ns),
    ];
    let some = parts.into_iter().filter(|(_, ns)| *ns > 0);
    some.map(move |(name, ns)| text!("{} {}", name, Share(ns, total)))
}

/// `: 3.40 ms`, how long the one had the CPU that had it longest.
fn longest(h: &LongHold) -> Text {
    h.preemptor_ns.map_or(Text::default(), |ns| text!(": {}", Ns(ns)))
}

/// The largest part of a hold in which its holder had no CPU.
fn why(h: &LongHold, p: &Decomposition) -> Text {
    let parts = [
        (p.blocked_ns, text!("blocked")),
        (p.dispatch_ns, text!("woken and waiting for a CPU")),
        (p.preempted_ns, text!("preempted, longest by {}{}", h.preemptor(), longest(h))),
        (p.parked_ns, text!("parked with its task")),
    ];
    match parts.into_iter().max_by_key(|(ns, _)| *ns) {
        Some((ns @ 1.., what)) => text!(", {} of it {}", Ns(ns), what),
        _ => Text::default(),
    }
}
