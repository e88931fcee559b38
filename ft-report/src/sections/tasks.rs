//! Async tasks: where the time of their lives went, the longest polls, and how long woken tasks waited for their executor.

mod names;
mod polls;
mod workers;

pub use names::TaskName;

use serde::Serialize;

use super::called::Called;
use super::scopes::not_counted;
use super::{Input, without_kernel};
use crate::document::{Id, N, Ns, Number, Of, Section, Share, Table, Thread, Word};
use crate::stats::{Marks, Tail, Top, counted, happened, own, parts};
use crate::text;
use ft_analysis::{Mark, Tally, TaskCounts};
use ft_trace::store::Result;
use ft_trace::tables::{AsyncSwitch, AsyncTask};
use ft_user::layout::HOOKED_TASKS;
use names::Names;
use polls::{Behind, Behinds, BlockedFor, Blocks, HeldAcross, Helds, LongPoll};
use workers::{Worker, Workers};

/// Names, and pairs of what was queued and what it was queued behind, with a line of their own; further ones are in one of
/// others.
///
/// Limit: one row `(others)`.
/// Shown by: `what_has_no_room_is_with_the_others`.
const MAX_TASK_GROUPS: usize = 16_384;

/// Rows of a table that are shown; the machine values have all.
const SHOWN: usize = 20;

/// Longest polls that are kept.
///
/// Limit: as `LONGEST` of `futexes.rs`.
const LONGEST: usize = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct TasksReport {
    /// There is a kernel stream; without one there are no parts.
    pub kernel: bool,
    /// Tasks and polls, with a row and without.
    pub counts: TaskCounts,
    /// How sure those with a row are.
    pub marks: Marks,
    /// Tasks that hooks of their executor report, without their wake-ups.
    pub hooked: u64,
    /// Each name, or place of tasks without one, the most time in polls first.
    pub names: Vec<TaskName>,
    /// What was queued behind what, the most time first.
    pub behind: Vec<Behind>,
    /// What polls were blocked for, the most time first.
    pub blocked: Vec<BlockedFor>,
    /// The threads that polled, the longest without a CPU first.
    pub workers: Vec<Worker>,
    /// Locks that were held when a poll ended, the most polls first.
    pub held: Vec<HeldAcross>,
    /// The longest polls.
    pub longest: Vec<LongPoll>,
}

/// Makes a [`TasksReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    names: Names,
    behind: Behinds,
    blocked: Blocks,
    held: Helds,
    workers: Workers,
    marks: Marks,
    hooked: u64,
    longest: Top<LongPoll>,
}

impl Tasks {
    pub(super) fn task(&mut self, r: &AsyncTask) {
        self.marks.add(r.mark);
        self.hooked += u64::from(r.task >= HOOKED_TASKS as i64);
        self.names.task(r);
    }

    pub(super) fn poll(&mut self, r: &AsyncSwitch) {
        self.names.poll(r);
        self.behind.add(r);
        self.blocked.add(r);
        self.held.add(r);
        self.workers.add(r);
        self.longest.offer(LONGEST, r.dur, || LongPoll::from(r));
    }

    pub(super) fn finish(self, tally: &Tally) -> TasksReport {
        TasksReport {
            kernel: tally.kernel,
            counts: tally.tasks,
            marks: self.marks,
            hooked: self.hooked,
            names: self.names.finish(&tally.counting.names),
            behind: self.behind.finish(),
            blocked: self.blocked.finish(),
            workers: self.workers.finish(),
            held: self.held.finish(),
            longest: self.longest.into_sorted(),
        }
    }
}

impl TasksReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<TasksReport> {
        let mut tasks = Tasks::default();
        input.rows(|r: AsyncTask| tasks.task(&r))?;
        input.rows(|r: AsyncSwitch| tasks.poll(&r))?;
        let mut report = tasks.finish(input.tally);
        Called::name(input, report.longest.iter_mut().map(|poll| &mut poll.called))?;
        Ok(report)
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("tasks", "where the time of async tasks went");
        self.coverage(&mut s);
        if !self.names.is_empty() {
            self.lives(&mut s);
            self.polls(&mut s);
            self.queues(&mut s);
            self.blocked(&mut s);
            self.held(&mut s);
            self.workers(&mut s);
            self.longest(&mut s);
            own::explain(&mut s, "");
            self.marks.legend(&mut s);
        }
        if self.kernel { s.with(self) } else { s.with(without_kernel(self, &["parts"])) }
    }

    fn coverage(&self, s: &mut Section) {
        if self.marks.any() {
            s.say(self.marks.line("task"));
        } else {
            s.say("No async task was recorded; a program follows one with `ft_user::task`.");
        }
        if self.hooked > 0 {
            s.say(text!(
                "Of {}, followed by hooks of the executor, there are no wake-ups: what they were in outside of polls is unknown.",
                Of(self.hooked, "task")
            ));
        }
        if self.counts.too_many > 0 {
            let n = Of(self.counts.too_many, "task");
            s.say(text!("{} not counted: more than 65,536 of one process at once.", n));
        }
        not_counted(s, "poll", &self.counts.unpaired, "more than one thread can be in");
        Tail::legend(
            s,
            "poll",
            self.names.iter().flat_map(|name| [&name.polls.tail, &name.queued.tail]),
        );
    }

    fn lives(&self, s: &mut Section) {
        let share = |n: &&TaskName, ns: i64| Share(ns, n.lives_ns);
        let t = Table::first(SHOWN, &self.names)
            .counted("names")
            .marks(|n| Mark::lower_bound_if(n.doubtful > 0))
            .column("task", |n| Word(&n.name))
            .column("tasks", |n| N(n.tasks))
            .notes("dropped", |n| (n.dropped > 0).then_some(N(n.dropped)))
            .notes("panics", |n| (n.panics > 0).then_some(N(n.panics)))
            .notes("unended", |n| (n.unended > 0).then_some(N(n.unended)))
            .column("lives", |n| Ns(n.lives_ns))
            .column("polled", |n| share(n, n.polled_ns))
            .column("queued", |n| share(n, n.queued_ns))
            .column("waiting", |n| share(n, n.waiting_ns))
            .column("unstarted", |n| share(n, n.unstarted_ns))
            .column("unknown", |n| share(n, n.unknown_ns));
        s.table(t.titled(
            "Where their lives went, the most time in polls first (queued: woken and not polled yet; waiting: not woken)",
        ));
    }

    fn polls(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.names)
            .marks(|n| Mark::lower_bound_if(n.polls.doubtful > 0))
            .column("task", |n| Word(&n.name))
            .column("polls", |n| N(n.polls.polls))
            .column("total", |n| Ns(n.polls.total_ns))
            .column("p50", |n| Ns(n.polls.tail.p50_ns))
            .column("p99", |n| n.polls.tail.p99_ns.map(Ns))
            .column("max", |n| Ns(n.polls.tail.max_ns));
        s.table(t.titled("Their polls"));
        let t = Table::first(SHOWN, &self.names).column("task", |n| Word(&n.name));
        let t = t.column("polls", |n| N(n.polls.polls));
        happened::table(s, t, "What happened in them, and how often", |n| n.polls.happened);
        counted::tables(
            s,
            &self.names,
            SHOWN,
            |n| &n.polls.counted,
            |t| t.column("task", |(n, _)| Word(&n.name)),
            "polls",
        );
        if self.kernel {
            let t = Table::first(SHOWN, &self.names)
                .marks(|n| Mark::lower_bound_if(n.polls.doubtful > 0))
                .column("task", |n| Word(&n.name));
            let t = parts::shares(t, |n| (n.polls.parts, n.polls.total_ns));
            let t = own::beside(t, |n| (n.polls.agent_ns, n.polls.total_ns));
            s.table(t.titled(
                "What their threads did meanwhile (blocked: a call blocked the executor's thread)",
            ));
        }
    }

    fn queues(&self, s: &mut Section) {
        let queued = self.names.iter().filter(|n| n.queued.polls > 0);
        let t = Table::first(SHOWN, queued)
            .column("task", |n| Word(&n.name))
            .column("wake-ups", |n| N(n.queued.polls))
            .column("total", |n| Ns(n.queued.total_ns))
            .column("p50", |n| Ns(n.queued.tail.p50_ns))
            .column("p99", |n| n.queued.tail.p99_ns.map(Ns))
            .column("max", |n| Ns(n.queued.tail.max_ns))
            .column("behind polls", |n| Share(n.queued.behind_ns, n.queued.total_ns))
            .when(self.kernel, |t| {
                t.column("dispatch", |n| Share(n.queued.dispatch_ns, n.queued.total_ns))
                    .column("its max", |n| Ns(n.queued.longest_dispatch_ns))
            });
        s.table(t.titled(
            "From a wake-up to the poll (behind polls: its thread polled others; dispatch: that thread was woken, and waited for a \
             CPU)",
        ));
        if !self.behind.is_empty() {
            let t = Table::first(SHOWN, &self.behind)
                .counted("pairs")
                .column("task", |b| Word(&b.name))
                .column("queued behind", |b| Word(&b.behind))
                .column("times", |b| N(b.times))
                .column("total", |b| Ns(b.total_ns))
                .column("max", |b| Ns(b.longest_ns));
            s.table(
                t.titled("Behind which tasks, of each wake-up the one that was polled longest"),
            );
        }
    }

    fn blocked(&self, s: &mut Section) {
        if !self.blocked.is_empty() {
            let t = Table::first(SHOWN, &self.blocked)
                .counted("causes")
                .column("task", |b| Word(&b.name))
                .column("blocked for", |b| Word(&b.cause))
                .column("polls", |b| N(b.times))
                .column("total", |b| Ns(b.total_ns))
                .column("max", |b| Ns(b.longest_ns));
            s.table(
                t.titled("Polls that blocked their thread, by what it was blocked for longest"),
            );
        }
    }

    fn workers(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.workers)
            .counted("threads")
            .marks(|w| Mark::lower_bound_if(w.doubtful > 0))
            .column("thread", |w| Thread::of(Some(w.tid), Some(&w.comm)))
            .column("tid", |w| Id(w.tid))
            .column("polls", |w| N(w.polls))
            .column("polled", |w| Ns(w.polled_ns));
        if !self.kernel {
            s.table(t.titled("Threads that polled"));
            return;
        }
        let t = t
            .column("blocked", |w| Ns(w.parts.blocked_ns))
            .column("preempted", |w| Ns(w.parts.preempted_ns.saturating_add(w.parts.dispatch_ns)))
            .column("dispatch", |w| Ns(w.dispatch_ns))
            .column("its max", |w| Ns(w.longest_dispatch_ns));
        s.table(t.titled(
            "Threads that polled, the longest without a CPU first (blocked, preempted: in polls; dispatch: woken and without a CPU, \
             while a task was queued)",
        ));
    }

    fn held(&self, s: &mut Section) {
        if !self.held.is_empty() {
            let t = Table::first(SHOWN, &self.held)
                .counted("locks")
                .column("task", |h| Word(&h.name))
                .column("lock", |h| Word(&h.lock))
                .column("acquired", |h| Word(&h.place))
                .column("polls", |h| N(h.times));
            s.table(t.titled(
                "Locks that were held when a poll ended: nobody else gets them until the task goes on",
            ));
        }
    }

    fn longest(&self, s: &mut Section) {
        let t = Table::of(&self.longest)
            .marks(|l| l.mark)
            .column("task", |l| Word(&l.name))
            .column("number", |l| Number(l.task))
            .column("thread", |l| Thread::of(Some(l.tid), Some(&l.comm)))
            .column("length", |l| l.interval())
            .when(self.kernel, |t| {
                parts::durations(t, |l| l.parts)
                    .notes("preemptor", |l| {
                        let preemptor = l.preemptor.as_deref();
                        preemptor.map(|comm| Thread::of(l.preemptor_tid, Some(comm)))
                    })
                    .notes("blocked for", |l| l.blocked_for.as_deref().map(Word))
                    .notes("faults", |l| l.faults.filter(|n| *n > 0).map(N))
                    .notes("from", |l| l.called.way().map(Word))
            });
        s.table(own::beside(t, |l| (l.agent_ns, l.dur_ns)).titled("The longest polls"));
    }
}

#[cfg(test)]
mod tests;
