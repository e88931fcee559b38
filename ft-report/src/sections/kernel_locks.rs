//! Waits for locks of the kernel: which, for how long, from where, and what of the application they delayed.

mod chains;
mod delayed;
mod held;
mod locks;
mod longest;
mod waits;

use serde::Serialize;

use super::{Input, NO_PARTS, without_kernel};
use crate::code::Code;
use crate::document::{
    Builder, Interval, Lock, N, Ns, Of, Place, Section, Share, Table, Text, Thread, Word,
};
use crate::stats::{Marks, OwnRows, Top, own};
use crate::text;
use chains::{Chain, Chains};
use delayed::{Delayed, Delays};
use ft_analysis::{Mark, Tally};
use ft_trace::ids::Name;
use ft_trace::store::Result;
use ft_trace::tables::{Decomposition, KernelLockWait, KernelSections, KernelWaitEnd, LossRow};
use held::Held;
use locks::{KernelLock, Locks};
use longest::LongWait;
use waits::{Sums, Waits};

/// Locks, holds, requests and chains with a line of their own; further ones are in one of others.
///
/// Limit: one row `(others)`.
/// Shown by: `what_has_no_room_is_with_the_others`.
const MAX_KERNEL_GROUPS: usize = 16_384;

/// Rows of a table that are shown; the machine values have all.
const SHOWN: usize = 20;

/// Longest waits that are kept.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct KernelLocksReport {
    /// Waits for locks of the kernel were recorded.
    pub recorded: bool,
    /// There is a kernel stream; without one there are no parts, and no wakers.
    pub kernel: bool,
    /// How sure they are.
    pub marks: Marks,
    /// All of them. Those within others are counted, and their time is left out.
    pub all: Waits,
    /// Waits that lie within others.
    pub nested: u64,
    /// Waits of which only the end was recorded.
    pub without_begin: u64,
    /// Waits in the name of threads that are not observed, or of an idle CPU.
    pub of_others: u64,
    /// What of `all` is the recording's own, of threads of its agent; null where it is not known who recorded.
    pub of_recording: Option<OwnRows>,
    /// Waits of observed threads for locks of the recording's own maps and ring buffers in the kernel, which are left out; null
    /// where they were not counted.
    pub left_out_own: Option<u64>,
    /// By lock and kind, the most time first.
    pub locks: Vec<KernelLock>,
    /// Holds of the application's locks in which threads waited, by lock and place, the most time first.
    pub holds: Vec<Delayed>,
    /// Requests in which threads waited, by name, the most time first.
    pub requests: Vec<Delayed>,
    /// By call chain, the most time first.
    pub chains: Vec<Chain>,
    /// The longest waits.
    pub longest: Vec<LongWait>,
    /// How long they were held; missing without the group `section`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

/// What a lock is called: its variable, or who wanted it; the address where neither is known.
fn label(r: &KernelLockWait) -> Name {
    match (&r.name, &r.caller) {
        (Some(name), _) => name.clone(),
        (None, Some(caller)) => format!("of {caller}").into(),
        (None, None) => format!("{:#x}", r.lock).into(),
    }
}

/// Makes a [`KernelLocksReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
struct KernelLocks {
    all: Sums,
    nested: u64,
    locks: Locks,
    holds: Delays,
    requests: Delays,
    chains: Chains,
    marks: Marks,
    longest: Top<LongWait>,
    own: own::Rows,
}

impl KernelLocks {
    /// Counts a wait; `code` has the call chains.
    fn add(&mut self, r: &KernelLockWait, code: &Code) {
        self.marks.add(r.mark);
        self.locks.add(r);
        if r.stack.is_some() {
            self.chains.add(r, code);
        }
        self.longest.offer(LONGEST, r.dur, || LongWait::from(r));
        if r.nested {
            self.nested += 1;
            return;
        }
        self.all.add(r);
        self.own.add(r.pid, 1, r.dur);
        if let Some(hold) = &r.hold_name {
            self.holds.add(hold, r.hold_place.as_ref(), r);
        }
        if let Some(request) = &r.request {
            self.requests.add(request, None, r);
        }
    }

    /// Finishes the statistics.
    fn finish(mut self, recorded: bool, tally: &Tally) -> KernelLocksReport {
        KernelLocksReport {
            recorded,
            kernel: tally.kernel,
            marks: self.marks,
            all: self.all.waits(),
            nested: self.nested,
            without_begin: tally.kernel_waits_without_begin,
            of_others: tally.kernel_waits_of_others,
            of_recording: self.own.finish(),
            left_out_own: None,
            locks: self.locks.finish(),
            holds: self.holds.finish(),
            requests: self.requests.finish(),
            chains: self.chains.finish(),
            longest: self.longest.into_sorted(),
            held: None,
        }
    }
}

impl KernelLocksReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<KernelLocksReport> {
        let own = own::Rows::of(input.agent());
        let mut locks = KernelLocks { own, ..KernelLocks::default() };
        let recorded = input.recorded("lock");
        if recorded {
            let code = input.code()?;
            input.rows(|r: KernelLockWait| locks.add(&r, code))?;
        }
        let mut report = locks.finish(recorded, input.tally);
        report.left_out_own = input.trace.meta().end.as_ref().and_then(|end| end.own_lock_waits);
        if input.recorded("section") {
            let mut held = held::Sums::default();
            input.rows(|r: KernelSections| held.add(&r))?;
            input.rows(|r: LossRow| held.add_loss(&r))?;
            report.held = Some(held.finish());
        }
        Ok(report)
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("kernel-locks", "waits for locks of the kernel");
        if !self.recorded {
            s.say("Waits for locks of the kernel were not recorded: record with the kernel group `lock` (`-k default,lock`).");
        } else if self.all.waits + self.nested > 0 {
            self.coverage(&mut s);
            self.locks(&mut s);
            self.delayed(&mut s);
            self.chains(&mut s);
            self.longest(&mut s);
            own::explain(&mut s, "");
            self.marks.legend(&mut s);
        } else {
            s.say("No observed thread waited for a lock of the kernel, as far as the kernel announces waits.");
            self.left_out(&mut s);
        }
        if let Some(held) = &self.held {
            held.say(&mut s);
        }
        if self.kernel { s.with(self) } else { s.with(without_kernel(self, &["parts"])) }
    }

    fn coverage(&self, s: &mut Section) {
        s.say(self.marks.line("wait"));
        let all = &self.all;
        let mut parts = vec![text!("{} in all", Ns(all.total_ns))];
        if self.kernel && all.total_ns > 0 {
            let p = &all.parts;
            for (ns, what) in [
                (p.running_ns, "spinning"),
                (p.blocked_ns, "asleep"),
                (p.dispatch_ns, "woken and waiting for a CPU"),
                (p.preempted_ns, "preempted"),
                (p.hardirq_ns + p.softirq_ns + p.vector_ns, "in interrupts"),
                (p.unexplained_ns, "unexplained"),
            ] {
                if ns > 0 {
                    parts.push(text!("{} {}", Share(ns, all.total_ns), what));
                }
            }
        }
        s.say(text!("{}.", Text::join(parts, ", ").unwrap_or_default()));
        let odd = [
            (all.failed, "given up, for a signal or a time-out"),
            (all.unfinished, "not over when the thread or the recording was"),
            (self.nested, "within another wait of the same thread, whose time is counted once"),
        ];
        let odd = odd.iter().filter(|(n, _)| *n > 0).map(|(n, how)| text!("{} {}", N(*n), *how));
        if let Some(odd) = Text::join(odd, "; ") {
            s.say(text!("{}.", odd));
        }
        OwnRows::say(self.of_recording, "wait", s);
        self.left_out(s);
        s.say(
            "The kernel reports neither the first waiter for a spinlock nor spinning for a reader-writer semaphore, and not \
             who holds a lock.",
        );
        if !self.kernel {
            s.say(NO_PARTS);
        }
    }

    fn left_out(&self, s: &mut Section) {
        if self.without_begin > 0 {
            let n = Of(self.without_begin, "wait");
            s.say(text!("{} began before the recording and left out.", n));
        }
        if self.of_others > 0 {
            s.say(text!(
                "{} more of idle CPUs and of threads that are not observed: table `contention`.",
                N(self.of_others)
            ));
        }
        if let Some(waits) = self.left_out_own.filter(|waits| *waits > 0) {
            s.say(text!(
                "{} more for locks of the recording's own maps and buffers in the kernel, left out: their time is in that of the program.",
                Of(waits, "wait")
            ));
        }
    }

    fn locks(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.locks)
            .counted("locks")
            .marks(|l| Mark::lower_bound_if(l.waits.doubtful > 0))
            .column("lock", |l| Lock::named(l.name.as_deref().unwrap_or("dynamic")))
            .column("wanted by", |l| {
                let more = if l.other_callers > 0 { ", …" } else { "" };
                l.caller.as_ref().map(|caller| format!("{caller}{more}"))
            })
            .column("kind", |l| Word(&l.kind))
            .column("waits", |l| N(l.waits.waits))
            .column("total", |l| Ns(l.waits.total_ns))
            .when(self.kernel, |t| {
                t.column("spinning", |l| Ns(l.waits.parts.running_ns))
                    .column("asleep", |l| Ns(l.waits.parts.blocked_ns))
            })
            .column("p50", |l| Ns(l.waits.tail.p50_ns))
            .column("max", |l| Interval {
                ts: l.longest_ts,
                dur_ns: l.waits.tail.max_ns,
                tid: l.tid,
                lock: None,
            })
            .column("by", |l| Thread::of(Some(l.tid), Some(&l.thread)));
        let t = own::beside(t, |l| (l.waits.agent_ns, l.waits.total_ns));
        s.table(t.titled("By lock, the most time first"));
    }

    fn delayed(&self, s: &mut Section) {
        if !self.holds.is_empty() {
            let t = delayed(&self.holds)
                .column("holding", |d| Lock::named(&d.name))
                .notes("acquired at", |d| Some(Place(&d.place)))
                .column("waits", |d| N(d.waits.waits))
                .column("delayed by", |d| Ns(d.waits.total_ns))
                .column("max", |d| Ns(d.waits.tail.max_ns))
                .column("longest for", |d| Word(&d.mostly))
                .column("for that", |d| Ns(d.mostly_ns));
            s.table(t.titled("Holds of the program's locks that were delayed by them"));
        }
        if !self.requests.is_empty() {
            let t = delayed(&self.requests)
                .column("request", |d| Word(&d.name))
                .column("waits", |d| N(d.waits.waits))
                .column("delayed by", |d| Ns(d.waits.total_ns))
                .column("max", |d| Ns(d.waits.tail.max_ns))
                .column("longest for", |d| Word(&d.mostly))
                .column("for that", |d| Ns(d.mostly_ns));
            s.table(t.titled("Requests that were delayed by them"));
        }
    }

    fn chains(&self, s: &mut Section) {
        if self.chains.is_empty() {
            return;
        }
        let t = Table::first(SHOWN, &self.chains)
            .counted("call chains")
            .column("lock", |c| Lock::named(&c.lock))
            .column("kind", |c| Word(&c.kind))
            .column("waits", |c| N(c.waits))
            .column("total", |c| Ns(c.total_ns))
            .column("from", |c| Word(&c.way));
        s.table(t.titled("By call chain, the most time first"));
    }

    fn longest(&self, s: &mut Section) {
        let part = |l: &&LongWait, of: fn(&Decomposition) -> i64| l.parts.as_ref().map(of).map(Ns);
        let t = Table::of(&self.longest)
            .marks(|l| l.mark)
            .column("lock", |l| Lock::named(&l.lock))
            .column("kind", |l| Word(&l.kind))
            .column("thread", |l| Thread::of(Some(l.tid), Some(&l.comm)))
            .column("length", |l| Interval { ts: l.ts, dur_ns: l.dur_ns, tid: l.tid, lock: None })
            .notes("ended", |l| (l.end != KernelWaitEnd::Acquired).then(|| Word(l.end.word())))
            .when(self.kernel, |t| {
                t.column("spinning", |l| part(l, |p| p.running_ns))
                    .column("asleep", |l| part(l, |p| p.blocked_ns))
                    .column("woken by", |l| {
                        l.waker.as_deref().map(|comm| Thread::of(l.waker_tid, Some(comm)))
                    })
                    .column("dispatch", |l| part(l, |p| p.dispatch_ns))
            })
            .notes("holding", |l| l.hold.as_deref().map(Lock::named))
            .notes("in", |l| l.request.as_deref().map(Word));
        s.table(t.titled("The longest waits"));
    }
}

/// A table of what was delayed.
fn delayed(rows: &[Delayed]) -> Builder<&Delayed> {
    Table::first(SHOWN, rows).counted("rows").marks(|d| Mark::lower_bound_if(d.waits.doubtful > 0))
}

#[cfg(test)]
mod tests;
