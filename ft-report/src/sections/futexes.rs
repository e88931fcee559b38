//! Waits at futexes and semaphores: the locks of any program, by what the kernel sees of them.

use std::cmp::Reverse;

use serde::Serialize;

use super::stacks::{self, Chain, Way, Ways};
use super::{Input, NO_PARTS, unknown, without_kernel};
use crate::code::Code;
use crate::document::{Interval, Lock, N, Ns, Section, Share, Table, Text, Thread, Word};
use crate::stats::{Distribution, Groups, Marks, Names, Own, OwnRows, Tail, Top, own};
use crate::text;
use ft_analysis::Mark;
use ft_trace::ids::{Name, Pid};
use ft_trace::store::Result;
use ft_trace::tables::{Decomposition, FutexEnd, FutexKind, FutexWait};

/// Futexes with a line of their own; further ones are in one of others.
///
/// Limit: one row `(others)`.
/// Shown by: `what_has_no_room_is_with_the_others`.
const MAX_FUTEXES: usize = 16_384;

/// Futexes that are shown; the machine values have all.
const SHOWN: usize = 20;

/// Longest waits that are kept.
///
/// Limit: no others are listed, in JSON neither; they are in all sums, and rows of the trace's tables.
/// Shown by: no figure: which rows are listed.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct FutexesReport {
    /// Calls about futexes were recorded.
    pub recorded: bool,
    /// There is a kernel stream; without one there are no parts, and no wakers.
    pub kernel: bool,
    /// How sure they are.
    pub marks: Marks,
    /// All of them.
    pub all: Waits,
    /// What of them is the recording's own, of threads of its agent; null where it is not known who recorded.
    pub of_recording: Option<OwnRows>,
    /// By futex, the most time first.
    pub futexes: Vec<Futex>,
    /// By call chain, the most time first; empty without chains.
    pub chains: Vec<Chain>,
    /// The longest waits.
    pub longest: Vec<LongWait>,
}

/// Waits, summed up.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Waits {
    /// Waits, of whatever end.
    pub waits: u64,
    /// Of these, lower bounds and those that went on.
    pub doubtful: u64,
    /// In all of them, ns.
    pub total_ns: i64,
    /// How long they are.
    #[serde(flatten)]
    pub tail: Tail,
    /// Where the time went.
    pub parts: Decomposition,
    /// Of `total_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// Ended by a wake-up.
    pub woken: u64,
    /// Without a wait: a semaphore or a lock that was free by then.
    pub at_once: u64,
    /// Without a sleep: the value had changed by then.
    pub changed: u64,
    /// By the timeout.
    pub timed_out: u64,
    /// For a signal.
    pub interrupted: u64,
    /// With another error.
    pub failed: u64,
    /// Not before the thread or the recording did.
    pub unfinished: u64,
    /// Right after one that was woken, at the same address.
    pub again: u64,
}

/// Waits at one futex.
#[derive(Clone, Debug, Serialize)]
pub struct Futex {
    /// Process; 0 of others.
    pub pid: i32,
    /// The variable, or the address.
    pub name: String,
    /// What the program's own events call it; `None` where it has none.
    pub own: Option<String>,
    /// How its threads wait.
    pub kind: FutexKind,
    /// The waits.
    #[serde(flatten)]
    pub waits: Waits,
    /// Who woke most of them.
    pub waker: Option<String>,
    /// How many of the wake-ups that one did.
    pub by_waker: u64,
}

/// One of the longest waits.
#[derive(Clone, Debug, Serialize)]
pub struct LongWait {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// The futex.
    pub name: String,
    /// How it ended.
    pub end: FutexEnd,
    /// Where the time went.
    pub parts: Option<Decomposition>,
    /// From the begin to the wake-up, ns.
    pub woken_ns: Option<i64>,
    /// Who woke it.
    pub waker: Option<String>,
    /// That thread's id.
    pub waker_tid: Option<i32>,
    /// Who had the CPU longest while it was woken and waited for it.
    pub behind: Option<String>,
    /// That thread's id.
    pub behind_tid: Option<i32>,
    /// How sure it is.
    pub mark: Mark,
}

impl From<&FutexWait> for LongWait {
    fn from(r: &FutexWait) -> Self {
        LongWait {
            ts: r.ts.0,
            dur_ns: r.dur,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            name: own_name(r).unwrap_or_else(|| r.name.to_string()),
            end: r.end,
            parts: r.parts,
            woken_ns: r.woken_ns,
            waker: r.waker_comm.as_ref().map(ToString::to_string),
            waker_tid: r.waker_tid,
            behind: r.behind_comm.as_ref().map(ToString::to_string),
            behind_tid: r.behind_tid,
            mark: r.mark,
        }
    }
}

impl LongWait {
    /// Where it lies in the trace.
    pub(super) fn interval(&self) -> Interval {
        Interval { ts: self.ts, dur_ns: self.dur_ns, tid: self.tid, lock: None }
    }
}

/// What the program's own events call it: `lock queue`.
fn own_name(r: &FutexWait) -> Option<String> {
    Some(format!("{} {}", r.own_kind.as_ref()?, r.own_name.as_ref()?))
}

#[derive(Debug, Default)]
struct Sums {
    lengths: Distribution,
    waits: Waits,
    kind: Option<FutexKind>,
    wakers: Names,
}

impl Sums {
    fn add(&mut self, r: &FutexWait) {
        let w = &mut self.waits;
        self.lengths.add(r.dur);
        w.waits += 1;
        w.doubtful += u64::from(r.mark >= Mark::LowerBound);
        w.total_ns = w.total_ns.saturating_add(r.dur);
        w.agent_ns.add(r.agent_ns);
        w.again += u64::from(r.again);
        if let Some(parts) = r.parts {
            w.parts += parts;
        }
        *match r.end {
            FutexEnd::Woken => &mut w.woken,
            FutexEnd::AtOnce => &mut w.at_once,
            FutexEnd::Changed => &mut w.changed,
            FutexEnd::TimedOut => &mut w.timed_out,
            FutexEnd::Interrupted => &mut w.interrupted,
            FutexEnd::Failed => &mut w.failed,
            FutexEnd::Thread | FutexEnd::Trace => &mut w.unfinished,
        } += 1;
        self.kind.get_or_insert(r.kind);
        if let Some(waker) = r.waker_comm.as_ref().filter(|_| r.end == FutexEnd::Woken) {
            self.wakers.add(waker.clone());
        }
    }

    fn waits(&mut self) -> Waits {
        Waits { tail: Tail::of(&mut self.lengths), ..std::mem::take(&mut self.waits) }
    }

    fn futex(mut self, (pid, name, own): (Pid, Name, Name)) -> Futex {
        let waits = self.waits();
        let (waker, by_waker) = self.wakers.most().unzip();
        Futex {
            pid: pid.0,
            name: name.to_string(),
            own: (!own.is_empty()).then(|| own.to_string()),
            kind: self.kind.unwrap_or(FutexKind::Other),
            waits,
            waker: waker.map(|name| name.to_string()),
            by_waker: by_waker.unwrap_or(0),
        }
    }
}

/// Makes a [`FutexesReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct Futexes {
    all: Sums,
    futexes: Groups<MAX_FUTEXES, (Pid, Name, Name), Sums>,
    ways: Ways,
    marks: Marks,
    longest: Top<LongWait>,
    own: own::Rows,
}

impl Futexes {
    /// Counts a wait; `code` has the call chains.
    pub fn add(&mut self, r: &FutexWait, code: &Code) {
        self.marks.add(r.mark);
        self.all.add(r);
        self.own.add(r.pid, 1, r.dur);
        let own = own_name(r).unwrap_or_default();
        self.futexes.entry((r.pid, r.name.clone(), own.into())).add(r);
        self.longest.offer(LONGEST, r.dur, || LongWait::from(r));
        if r.stack.is_some() {
            let way = Way::of(&code.chain(r.stack), Some(r.name.clone()));
            let waker =
                r.waker_comm.as_ref().map(|comm| stacks::waker(&code.chain(r.waker_stack), comm));
            self.ways.entry(way).add_woken(r.dur, &r.comm, waker);
        }
    }

    /// Finishes the statistics.
    pub fn finish(mut self, recorded: bool, kernel: bool) -> FutexesReport {
        FutexesReport {
            recorded,
            kernel,
            marks: self.marks,
            all: self.all.waits(),
            of_recording: self.own.finish(),
            futexes: self.futexes.into_ranked(
                |(key, s)| s.futex(key),
                |f| (Reverse(f.waits.total_ns), f.name.clone()),
            ),
            chains: stacks::ranked(self.ways),
            longest: self.longest.into_sorted(),
        }
    }
}

impl FutexesReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<FutexesReport> {
        let own = own::Rows::of(input.agent());
        let mut futexes = Futexes { own, ..Futexes::default() };
        let recorded = input.recorded("futex");
        if recorded {
            let code = input.code()?;
            input.rows(|r: FutexWait| futexes.add(&r, code))?;
        }
        Ok(futexes.finish(recorded, input.tally.kernel))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s =
            Section::new("futexes", "waits at futexes and semaphores, of any lock of any program");
        if !self.recorded {
            s.say("Futexes were not recorded: record with the kernel group `futex` (`-k default,futex`).");
        } else if self.marks.any() {
            self.coverage(&mut s);
            self.futexes(&mut s);
            if !self.chains.is_empty() {
                let t = stacks::table(&self.chains, true);
                s.table(t.titled("By call chain, the most time first"));
            }
            self.longest(&mut s);
            own::explain(&mut s, "");
            self.marks.legend(&mut s);
        } else {
            s.say("No thread waited at a futex or a semaphore.");
        }
        match (self.recorded, self.kernel) {
            (false, _) => s.with(unknown(self)),
            (true, false) => s.with(without_kernel(self, &["parts"])),
            (true, true) => s.with(self),
        }
    }

    fn coverage(&self, s: &mut Section) {
        s.say(self.marks.line("wait"));
        let all = &self.all;
        let ends = [
            (all.woken, "woken"),
            (all.timed_out, "timed out"),
            (all.changed, "did not sleep, since the value had changed"),
            (all.at_once, "had it at once"),
            (all.interrupted, "interrupted"),
            (all.failed, "failed"),
            (all.unfinished, "not over"),
        ];
        let ends = ends.iter().filter(|(n, _)| *n > 0).map(|(n, how)| text!("{} {}", N(*n), *how));
        let ends = Text::join(ends, ", ").unwrap_or_default();
        s.say(text!("{}. {} came right after a wake-up at the same address.", ends, N(all.again)));
        OwnRows::say(self.of_recording, "wait", s);
        s.say(
            "A lock that nobody waits for makes no system call: holds and their lengths are not known from futexes. Nor is \
             who had the lock, unless the holder wakes the waiter, or the futex has priority inheritance.",
        );
        if !self.kernel {
            s.say(NO_PARTS);
        }
    }

    fn futexes(&self, s: &mut Section) {
        let some = |n: u64| (n > 0).then_some(N(n));
        let t = Table::first(SHOWN, &self.futexes)
            .counted("futexes")
            .marks(|f| Mark::lower_bound_if(f.waits.doubtful > 0))
            .column("futex", |f| Lock::named(&f.name))
            .notes("known as", |f| f.own.as_deref().map(Word))
            .processes(|f| f.pid)
            .notes("call", |f| (f.kind != FutexKind::Wait).then(|| Word(f.kind.word())))
            .column("waits", |f| N(f.waits.waits))
            .column("total", |f| Ns(f.waits.total_ns))
            .column("max", |f| Ns(f.waits.tail.max_ns))
            .when(self.kernel, |t| {
                t.column("asleep", |f| Share(f.waits.parts.blocked_ns, f.waits.total_ns))
                    .column("dispatch", |f| Share(f.waits.parts.dispatch_ns, f.waits.total_ns))
            })
            .notes("timed out", |f| some(f.waits.timed_out))
            .notes("no sleep", |f| some(f.waits.changed + f.waits.at_once))
            .notes("again", |f| some(f.waits.again))
            .when(self.kernel, |t| {
                t.column("most often woken by", |f| f.waker.as_deref().map(Thread::named))
                    .column("of them", |f| Share::of(f.by_waker, f.waits.woken))
            });
        let t = own::beside(t, |f| (f.waits.agent_ns, f.waits.total_ns));
        s.table(t.titled("By futex, the most time first"));
    }

    fn longest(&self, s: &mut Section) {
        let part = |l: &&LongWait, of: fn(&Decomposition) -> i64| l.parts.as_ref().map(of).map(Ns);
        let t = Table::of(&self.longest)
            .marks(|l| l.mark)
            .column("futex", |l| Lock::named(&l.name))
            .column("thread", |l| Thread::of(Some(l.tid), Some(&l.comm)))
            .column("length", |l| l.interval())
            .column("ended", |l| Word(l.end.word()))
            .when(self.kernel, |t| {
                t.column("asleep", |l| part(l, |p| p.blocked_ns))
                    .column("woken by", |l| {
                        l.waker.as_deref().map(|comm| Thread::of(l.waker_tid, Some(comm)))
                    })
                    .column("dispatch", |l| part(l, |p| p.dispatch_ns))
                    .column("behind", |l| {
                        l.behind.as_deref().map(|comm| Thread::of(l.behind_tid, Some(comm)))
                    })
            });
        s.table(t.titled("The longest waits"));
    }
}

#[cfg(test)]
mod tests;
