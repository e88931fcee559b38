//! The breakdown: all time of processes by system call, page fault and code of their own, and who ends whose waits.

mod pairs;
mod places;
mod process;
mod sums;

use serde::Serialize;

use super::time::unbalanced;
use super::{Input, NO_SCHEDULER, unknown};
use crate::document::{N, Ns, Of, Section, Table, Thread, Word};
use crate::stats::{Marks, OwnRows};
use crate::text;
use ft_trace::store::Result;
use ft_trace::tables::{Breakdown, Decomposition, Place, WakePair, WakerKind};
use pairs::Pair;
use places::{CallBreakdown, FaultBreakdown};
use process::ProcessBreakdown;
use sums::{Breakdowns, ThreadBreakdown};

/// Lines of a table that are shown; the machine values have all.
const SHOWN: usize = 20;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct BreakdownReport {
    /// System calls were recorded.
    pub recorded: bool,
    /// Page faults were recorded.
    pub faults: bool,
    /// There is a kernel stream; without one nothing is known.
    pub kernel: bool,
    /// Threads whose parts sum to their wall time.
    pub balanced: u64,
    /// Threads whose parts do not: a fault of this program.
    pub unbalanced: u64,
    /// Time of further threads, ns: more than 16,384 have no lines of their own, and these are only in what follows.
    pub others_ns: i64,
    /// Threads by their mark.
    pub marks: Marks,
    /// What of `calls` is the recording's own, of threads of its agent, without page faults; null where it is not known who recorded.
    pub calls_of_recording: Option<OwnRows>,
    /// What of `page_faults` is.
    pub faults_of_recording: Option<OwnRows>,
    /// By process, most time first.
    pub processes: Vec<ProcessBreakdown>,
    /// By process and system call, most time first.
    pub calls: Vec<CallBreakdown>,
    /// By process, place and kind, most time first.
    pub page_faults: Vec<FaultBreakdown>,
    /// Who ends whose waits, most time first.
    pub pairs: Vec<Pair>,
    /// Each thread, longest wall time first.
    pub threads: Vec<ThreadBreakdown>,
}

impl BreakdownReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<BreakdownReport> {
        let mut breakdowns = Breakdowns::by(input.agent());
        let recorded = input.recorded("syscall");
        if recorded {
            input.rows(|r: Breakdown| breakdowns.add(&r))?;
            input.rows(|r: WakePair| breakdowns.pair(r))?;
        }
        Ok(breakdowns.finish(recorded, input.recorded("fault"), input.tally.kernel))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new(
            "breakdown",
            "all time of each process: its own code, system calls, page faults, interrupts",
        );
        if !self.recorded {
            s.say(
                "System calls were not recorded: record with the kernel groups `syscall` and `fault` \
                 (`-k default,syscall,fault`).",
            );
        } else if !self.kernel {
            s.say(NO_SCHEDULER);
        } else if self.processes.is_empty() {
            s.say("No thread of a recorded process was seen.");
        } else {
            self.coverage(&mut s);
            self.processes(&mut s);
            self.calls(&mut s);
            self.page_faults(&mut s);
            self.pairs(&mut s);
        }
        s.fault = unbalanced(self.unbalanced);
        if self.recorded && self.kernel { s.with(self) } else { s.with(unknown(self)) }
    }

    fn coverage(&self, s: &mut Section) {
        let all = text!(
            "{}; the parts of each sum to its wall time, to the nanosecond",
            Of(self.balanced + self.unbalanced, "thread")
        );
        s.say(all.reasons(&[
            (self.marks.exact, "exact: started and ended in the trace"),
            (self.marks.disturbed, "that waited for room in their rings: disturbed by the tracer"),
            (self.marks.lower_bounds, "with lost records: lower bounds"),
            (self.marks.censored, "only partly in the trace: censored"),
        ]));
        if self.others_ns > 0 {
            s.say(text!(
                "Further threads, without lines of their own: {} in all",
                Ns(self.others_ns)
            ));
        }
        if !self.faults {
            s.say(
                "Page faults were not recorded (kernel group `fault`): they count as the code or the call in which \
                 they were.",
            );
        }
    }

    fn processes(&self, s: &mut Section) {
        let several = self.processes.iter().any(|p| p.processes > 1);
        let t = Table::first(SHOWN, &self.processes)
            .counted("processes")
            .column("process", |p| Thread::named(&p.name))
            .when(several, |t| t.column("processes", |p| N(p.processes)))
            .column("threads", |p| N(p.threads))
            .column("time", |p| Ns(p.wall_ns))
            .column("own code", |p| Ns(p.user_ns))
            .column("calls", |p| Ns(p.calls_ns))
            .when(self.faults, |t| t.column("faults", |p| Ns(p.faults_ns)))
            .column("irqs", |p| Ns(p.interrupts_ns))
            .column("no CPU", |p| Ns(p.runnable_ns))
            .column("blocked", |p| Ns(p.blocked_ns))
            .notes("for pages", |p| some(p.fault_blocked_ns))
            .notes("stopped", |p| some(p.outside_ns))
            .notes("either", |p| some(p.unknown_ns))
            .notes("unexpl.", |p| some(p.unexplained_ns));
        s.table(t.titled(
            "Where the time went: on a CPU in its own code, in calls, in faults, in interrupts; able to run, with no \
             CPU; blocked",
        ));
        if self.processes.iter().any(|p| p.unknown_ns > 0) {
            s.say(
                "*either*: on a CPU in threads of which neither a call nor a fault was seen, so that they may have been in a \
                 call all the time.",
            );
        }
    }

    fn calls(&self, s: &mut Section) {
        let of_all = |c: &CallBreakdown| c.calls + c.cut_at_begin();
        let t = Table::first(SHOWN, &self.calls)
            .counted("calls")
            .column("process", |c| Thread::named(&c.name))
            .column("call", |c| Word(&c.call))
            .column("waits for", |c| c.waits_for.as_deref().map(Word))
            .column("calls", |c| N(of_all(c)))
            .notes("cut", |c| {
                let cut = c.unfinished + c.cut_at_begin();
                (cut > 0).then_some(N(cut))
            })
            .column("on CPU", |c| Ns(c.parts.running_ns))
            .column("per call", |c| per(&c.parts, of_all(c)))
            .column("blocked", |c| Ns(c.parts.blocked_ns))
            .column("no CPU", |c| Ns(c.parts.runnable_ns()))
            .notes("unexpl.", |c| some(c.parts.unexplained_ns))
            .when(self.faults, |t| {
                t.column("faults", |c| N(c.faults)).column("in them", |c| Ns(c.faults_ns))
            });
        s.table(t.titled("System calls by process, the most time first (cut: of the calls, those whose begin or return was not recorded; per call: on CPU; no CPU: able to run)"));
        OwnRows::say(self.calls_of_recording, "call", s);
    }

    fn page_faults(&self, s: &mut Section) {
        if self.page_faults.is_empty() {
            return;
        }
        let t = Table::first(SHOWN, &self.page_faults)
            .counted("lines")
            .column("process", |f| Thread::named(&f.name))
            .column("in", |f| Word(if f.place == Place::Call { "calls" } else { "its own code" }))
            .column("kind", |f| Word(f.kind.word()))
            .column("faults", |f| N(f.faults))
            .column("on CPU", |f| Ns(f.parts.running_ns))
            .column("per fault", |f| per(&f.parts, f.faults))
            .column("blocked", |f| Ns(f.parts.blocked_ns))
            .column("no CPU", |f| Ns(f.parts.runnable_ns()))
            .notes("unexpl.", |f| some(f.parts.unexplained_ns));
        s.table(t.titled("Page faults that were served"));
        OwnRows::say(self.faults_of_recording, "fault", s);
    }

    fn pairs(&self, s: &mut Section) {
        if self.pairs.is_empty() {
            return;
        }
        let t = Table::first(SHOWN, &self.pairs)
            .counted("pairs")
            .marks(|p| p.mark)
            .column("process", |p| Thread::named(&p.name))
            .column("blocked in", |p| p.call.as_deref().map(Word))
            .column("was woken by", |p| Thread::named(&p.waker_name))
            .column("in", |p| match p.waker {
                WakerKind::Thread => p.waker_call.as_deref().map(Word),
                kind => Some(Word(kind.word())),
            })
            .column("times", |p| N(p.count))
            .column("blocked", |p| Ns(p.blocked_ns))
            .column("longest", |p| Ns(p.longest_ns))
            .column("then no CPU", |p| Ns(p.dispatch_ns));
        s.table(t.titled("Who ended whose waits, the most time first"));
    }
}

/// The mean time on a CPU; not known where none was seen, and some is unexplained.
fn per(parts: &Decomposition, count: u64) -> Option<Ns> {
    let count = i64::try_from(count).ok().filter(|count| *count > 0)?;
    let known = parts.running_ns > 0 || parts.unexplained_ns == 0;
    known.then(|| Ns(parts.running_ns / count))
}

/// A time that is shown where there is one.
fn some(ns: i64) -> Option<Ns> {
    (ns > 0).then_some(Ns(ns))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::places::MAX_PLACES;
    use super::sums::MAX_THREADS;
    use super::*;
    use crate::document::Block;
    use crate::stats::OTHERS;
    use ft_analysis::timeline::run;
    use ft_trace::ids::{Pid, Tid};

    fn report(timeline: &str) -> BreakdownReport {
        let (rows, tally) = run(true, timeline);
        let mut breakdowns = Breakdowns::default();
        rows.breakdown.iter().for_each(|r| breakdowns.add(r));
        rows.wake_pairs.into_iter().for_each(|r| breakdowns.pair(r));
        breakdowns.finish(true, true, tally.kernel)
    }

    const TIMELINE: &str = "
        0 0 .>a S
        0 1 .>b S
        1000 call a read 6000 whole pipe
        1200 0 a>. S
        3000 call b write 1000 whole pipe
        3500 wake b a 0 1
        3800 fault b 100 minor kernel
        4500 0 .>a S
        8000 fault a 400 major
        9000 irq a soft 100
        10000 0 a>. X
        10000 1 b>. X";

    #[test]
    fn each_process_has_its_time_in_parts_that_sum() {
        let report = report(TIMELINE);
        assert_eq!((report.balanced, report.unbalanced), (2, 0));
        let p = &report.processes[0];
        let parts = [p.user_ns, p.calls_ns, p.faults_ns, p.unknown_ns, p.interrupts_ns];
        let more =
            [p.runnable_ns, p.blocked_ns, p.fault_blocked_ns, p.outside_ns, p.unexplained_ns];
        assert_eq!(parts, [12_500, 3_600, 500, 0, 100]);
        assert_eq!(more, [1_000, 2_300, 0, 0, 0]);
        assert_eq!(parts.iter().chain(&more).sum::<i64>(), p.wall_ns);
        let calls: Vec<_> = report
            .calls
            .iter()
            .map(|c| (&*c.call, c.waits_for.as_deref(), c.calls, c.parts.blocked_ns, c.faults_ns))
            .collect();
        assert_eq!(calls, [("read", Some("pipe"), 1, 2300, 0), ("write", Some("pipe"), 1, 0, 100)]);
        let text = format!("{:160}", report.section());
        for line in ["2 threads; the parts", "write (pipe)", "major", "calls", "Who ended whose"] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn calls_and_faults_of_the_agent_are_the_recordings_own() {
        let (rows, tally) = run(true, TIMELINE);
        let report = |agent| {
            let mut breakdowns = Breakdowns::by(agent);
            rows.breakdown.iter().for_each(|r| breakdowns.add(r));
            breakdowns.finish(true, true, tally.kernel)
        };
        let agents = report(Some(rows.breakdown[0].pid));
        // A read of 6 µs, a write of 1 µs but for the fault of 0.1 µs in it; another fault of 0.4 µs.
        assert_eq!(agents.calls_of_recording, Some(OwnRows { count: 2, total_ns: 6_900 }));
        assert_eq!(agents.faults_of_recording, Some(OwnRows { count: 2, total_ns: 500 }));
        let text = format!("{:160}", agents.section());
        for said in ["of ft-agent: 2 calls (6.90 µs)", "of ft-agent: 2 faults (500 ns)"] {
            assert!(text.contains(said), "{said}: {text}");
        }
        let others = report(Some(Pid(-5)));
        assert_eq!(others.calls_of_recording, Some(OwnRows::default()));
        assert_eq!(report(None).faults_of_recording, None);
    }

    #[test]
    fn one_process_of_a_name_is_counted_beside_several_of_another() {
        let mut report = report(TIMELINE);
        let several = ProcessBreakdown { processes: 34, ..report.processes[0].clone() };
        report.processes.push(several);
        let text = format!("{:160}", report.section());
        let rows = text.lines().skip_while(|line| !line.contains("  processes  threads")).skip(1);
        let counts: Vec<_> = rows.take(2).map(|row| row.split_whitespace().nth(1)).collect();
        assert_eq!(counts, [Some("1"), Some("34")], "{text}");
    }

    /// The row of the first call, cell by cell, under the titles of its columns.
    fn first_call(report: BreakdownReport) -> BTreeMap<String, String> {
        let section = report.section();
        let mut tables = section.blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        let table = tables.nth(1).expect("the calls");
        let titles = table.columns.iter().map(|column| column.title.clone());
        titles.zip(table.rows[0].cells.iter().map(crate::render::text::cell)).collect()
    }

    #[test]
    fn time_in_a_call_that_nobody_can_explain_is_shown_and_has_no_mean() {
        let mut report = report(TIMELINE);
        report.calls[0].parts = Decomposition { unexplained_ns: 5_000, ..Default::default() };
        let row = first_call(report);
        assert_eq!((&*row["on CPU"], &*row["per call"], &*row["unexpl."]), ("0", "-", "5.00 µs"));
    }

    #[test]
    fn a_new_thread_makes_no_call_of_that_which_made_it() {
        let mut report = report(TIMELINE);
        let c = &mut report.calls[0];
        (c.call, c.calls, c.begun_before) = ("clone3".into(), 8, 8);
        c.parts = Decomposition { running_ns: 178_000, ..Default::default() };
        let calls = |report: &BreakdownReport| {
            let row = first_call(report.clone());
            (row["calls"].clone(), row.get("cut").cloned(), row["per call"].clone())
        };
        assert_eq!(calls(&report), ("8".into(), None, "22.2 µs".into()));
        // Those that are cut are calls, too.
        report.calls[0].call = "read".into();
        assert_eq!(calls(&report), ("16".into(), Some("8".into()), "11.1 µs".into()));
    }

    #[test]
    fn a_thread_that_does_not_balance_is_not_hidden() {
        let (mut rows, _) = run(true, TIMELINE);
        rows.breakdown[0].wall_ns += 1;
        let mut breakdowns = Breakdowns::default();
        rows.breakdown.iter().for_each(|r| breakdowns.add(r));
        let report = breakdowns.finish(true, true, true);
        assert!(report.unbalanced > 0);
        assert!(report.section().fault.is_some());
    }

    #[test]
    fn what_was_not_recorded_has_a_remedy() {
        let none = format!("{:160}", Breakdowns::default().finish(false, true, true).section());
        assert!(none.contains("-k default,syscall,fault"), "{none}");
        let alone = Breakdowns::default().finish(true, true, false).section();
        assert!(format!("{alone:160}").contains("No scheduler records"));
    }

    #[test]
    fn a_table_without_rows_is_not_shown() {
        let without = TIMELINE.lines().filter(|l| !l.contains(" fault ") && !l.contains(" wake "));
        let without = without.collect::<Vec<_>>().join("\n");
        let [with, without] = [TIMELINE, &without].map(|t| format!("{:160}", report(t).section()));
        for title in ["Page faults that were served", "Who ended whose waits"] {
            assert!(with.contains(title) && !without.contains(title), "{title}: {without}");
        }
    }

    #[test]
    fn what_has_no_room_is_with_the_others() {
        let mut breakdowns = Breakdowns::default();
        let (rows, _) = run(true, TIMELINE);
        let row = rows.breakdown.iter().find(|r| r.call.is_some()).unwrap();
        for n in 0..MAX_PLACES as i32 + 5 {
            breakdowns.add(&Breakdown { pid: Pid(n + 1), tid: Tid(n + 1), ..row.clone() });
        }
        let report = breakdowns.finish(true, true, true);
        assert_eq!(report.processes.iter().map(|p| p.threads).sum::<u64>(), MAX_PLACES as u64 + 5);
        let others: Vec<_> = report.calls.iter().filter(|c| c.name == OTHERS).collect();
        assert_eq!((others.len(), others[0].calls), (1, 5));
        assert_eq!(report.threads.len(), MAX_THREADS);
        assert_eq!(report.others_ns, 5 * row.parts.unwrap().total_ns());
    }
}
