//! What a report of deadlines says.

use super::{Blamed, Class, DeadlinesReport, LongCycle, OfDeadline};
use crate::document::{
    Data, Histogram, Interval, IntoText, N, Ns, Number, Of, Section, Share, Step, Table, Text,
    Thread, Typed, Word,
};
use crate::text;

/// Lines that are shown; the machine values have all.
const SHOWN: usize = 20;

/// Causes in the sentence about a deadline.
const NAMED: usize = 6;

impl LongCycle {
    /// What its nth longest part is, and how long.
    fn part(&self, n: usize) -> Option<(Word<'_>, Ns)> {
        self.parts.get(n).map(|(what, ns)| (Word(what), Ns(*ns)))
    }
}

impl DeadlinesReport {
    /// What it says.
    pub fn section(self) -> Section {
        let about = "which cycles of threads that sleep until times met their deadline, and why others did not";
        let mut s = Section::new("deadlines", about);
        if self.deadlines.is_empty() {
            s.say(
                "No deadline was asked for: name a thread that sleeps until times, and how long a cycle may take (`--deadline \
                 'rt-loop=1ms'`).",
            );
            return s.with(self);
        }
        self.deadlines.iter().for_each(|d| self.outcome(d, &mut s));
        self.budget(&mut s);
        self.longest(&mut s);
        self.threads(&mut s);
        self.histograms(&mut s);
        if let Some(path) = &self.path {
            path.say(&mut s);
        }
        if self.marks.lower_bounds > 0 {
            s.say(
                "A star (*) marks a cycle in which records are missing: it may be several, and the thread slept in between.",
            );
        }
        s.with(self)
    }

    fn outcome(&self, d: &OfDeadline, s: &mut Section) {
        let OfDeadline { counts, met, .. } = d;
        if counts.cycles == 0 && counts.not_over_missed == 0 {
            s.warn(text!(
                "No cycle of {}: its threads did not sleep until a time (`nanosleep`, `clock_nanosleep`, a `read` of a timerfd) twice",
                Word(&counts.kind)
            ));
            return;
        }
        s.say(text!(
            "Deadline {}: {}, {} met it, {} missed it{}",
            Word(&counts.kind),
            Of(counts.cycles, "cycle"),
            N(*met),
            N(counts.missed),
            "".into_text()
                .reasons(&[(counts.doubtful, "with missing records, so that it may be several")])
        ));
        let mut blamed: Vec<&Blamed> =
            self.budget.iter().filter(|b| b.kind == counts.kind).collect();
        let more = blamed.split_off(blamed.len().min(NAMED)).iter().map(|b| b.cycles).sum::<u64>();
        let told = blamed.iter().map(|b| text!("{} {}", N(b.cycles), Word(&b.what)));
        let told = told.chain((more > 0).then(|| text!("{} others", N(more))));
        if let Some(told) = Text::join(told, ", ") {
            s.say(text!("Of {} missed: {}", N(counts.missed), told));
        }
        for (n, why) in [
            (
                counts.by_interrupt,
                "without the time of its timer, which a timerfd or CLOCK_REALTIME has: from its interrupt on, so how late that came is \
                 not known",
            ),
            (counts.not_over, "not over when the thread or the recording ended, and in no figure"),
        ] {
            if n > 0 {
                s.say(text!("{} {}", Of(n, "cycle"), why));
            }
        }
        if counts.not_over_missed > 0 {
            s.say(text!(
                "{} more missed it by then: the longest had taken {}",
                Of(counts.not_over_missed, "cycle"),
                Ns(counts.not_over_ns)
            ));
        }
        if counts.missed + counts.not_over_missed > 0 {
            s.say(
                "A thread that is too late to sleep goes on with the same cycle: a program that counts each of its periods \
                 counts more that missed.",
            );
        }
    }

    fn several(&self) -> bool {
        self.deadlines.len() > 1
    }

    fn budget(&self, s: &mut Section) {
        if !self.budget.is_empty() {
            let t = Table::first(SHOWN, &self.budget)
                .counted("causes")
                .when(self.several(), |t| t.column("deadline", |b| Word(&b.kind)))
                .column("to blame", |b| Word(&b.what))
                .column("missed", |b| N(b.cycles))
                .column("took", |b| Ns(b.total_ns))
                .column("max", |b| Ns(b.max_ns));
            s.table(t.titled(
                "What took most of each cycle that missed its deadline (its own work: beyond what it usually does)",
            ));
        }
        if self.unexplained > 0 {
            s.say(text!(
                "{} missed without a cause: without a path, or more than are looked into",
                Of(self.unexplained, "cycle")
            ));
        }
        if !self.faults && self.budget.iter().any(|b| b.cause.class == Class::Own) {
            s.say(
                "What its own work was, `-k default,fault,syscall` records: page faults are then apart from it here, and \
                 `breakdown` has the system calls; `profile` has where threads ran.",
            );
        }
    }

    fn longest(&self, s: &mut Section) {
        let t = Table::of(&self.longest)
            .marks(|l| l.mark)
            .column("number", |l| Number(l.request))
            .when(self.several(), |t| t.column("deadline", |l| Word(&l.kind)))
            .column("thread", |l| Thread::named(&l.comm))
            .column("length", |l| Interval { ts: l.ts, dur_ns: l.dur_ns, tid: l.tid, lock: None })
            .column("deadline", |l| Word(if l.missed { "missed" } else { "met" }))
            .column("most of it", |l| l.part(0).map(|(what, _)| what))
            .column("took", |l| l.part(0).map(|(_, ns)| ns))
            .column("then", |l| l.part(1).map(|(what, _)| what))
            .column("for", |l| l.part(1).map(|(_, ns)| ns));
        s.table(
            t.titled("The longest cycles; `report DIR requests --of NUMBER` shows the path of one"),
        );
    }

    fn threads(&self, s: &mut Section) {
        let t = Table::first(SHOWN, &self.threads)
            .counted("threads")
            .when(self.several(), |t| t.column("deadline", |t| Word(&t.kind)))
            .column("thread", |t| Thread::named(&t.comm))
            .tids("tid", |t| (t.tid > 0).then_some((&*t.comm, t.tid)))
            .column("cycles", |t| N(t.cycles))
            .column("missed", |t| N(t.missed))
            .column("share", |t| Share::of(t.missed, t.cycles))
            .column("p50", |t| Ns(t.tail.p50_ns))
            .column("p99", |t| t.tail.p99_ns.map(Ns))
            .column("p99.9", |t| t.tail.p999_ns.map(Ns))
            .column("max", |t| Ns(t.tail.max_ns))
            .column("own work", |t| Ns(t.usual_ns));
        s.table(t.titled("By thread: lengths of cycles, and what it usually does itself in one"));
    }

    fn histograms(&self, s: &mut Section) {
        for d in self.deadlines.iter().filter(|d| d.counts.cycles > 0) {
            let kind = &*d.counts.kind;
            s.figure(
                text!("How long cycles of {} took", Word(kind)),
                Data::Cumulative {
                    axis: "up to",
                    counted: "cycles",
                    steps: Step::between(&d.cumulative, d.counts.cycles),
                    bins: d.histogram_100ns.clone(),
                    each: vec![Histogram {
                        of: Word(kind).value(),
                        bins: d.histogram_100ns.clone(),
                    }],
                },
            );
        }
    }
}
