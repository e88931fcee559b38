//! How long each thread was really on a CPU (the `--active-time` of the multilevel trace paper's
//! `sigmund`), from the switches.
//!
//! Rule: a CPU belongs to the thread that a switch brought until the next switch of that CPU takes it
//! away, interrupts on top of it included. Before its first switch, and where the thread that leaves is
//! not the one that came, a switch was not recorded and the time is nobody's: it is counted as unknown. A
//! thread whose time overlaps a reported loss of switches is marked.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::Serialize;

use super::filter::{Filter, Selection};
use super::names::{Names, write_thread};
use super::{ListingError, Result};
use crate::render::columns::{Table, cut};
use crate::render::number::{count, dur, percent};
use ft_analysis::Mark;
use ft_trace::ids::{Cpu, Nanos, Pid, Tid};
use ft_trace::row;
use ft_trace::store::{Row, Trace};
use ft_trace::tables::{LossRow, LostRecords};

/// The columns of [`SchedSwitch`](ft_trace::tables::SchedSwitch) that are needed.
#[derive(Clone, Copy, Debug)]
struct Switch {
    ts: Nanos,
    cpu: Cpu,
    prev_tid: Tid,
    next_tid: Tid,
    next_pid: Pid,
}

row!("sched_switch", Switch { ts: Nanos, cpu: Cpu, prev_tid: Tid, next_tid: Tid, next_pid: Pid });

/// Time of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadTime {
    /// Thread; 0 is the idle task of all CPUs.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its newest name.
    pub name: String,
    /// On a CPU, in ns.
    pub active_ns: i64,
    /// How often it got a CPU, or had it already when the window began.
    pub runs: u64,
    /// Longest time without a switch.
    pub longest_ns: i64,
    /// `censored` when switches were lost meanwhile: whose the CPU was until the next one is not known.
    pub mark: Mark,
}

/// Time of all selected threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ActiveTime {
    /// Length of the window in ns: of the recording, unless a part of it was selected.
    pub window_ns: i64,
    /// CPUs whose switches were seen and are selected.
    pub cpus: u64,
    /// Time of these CPUs of which no switch says whose it was.
    pub unknown_ns: i64,
    /// Longest active first.
    pub threads: Vec<ThreadTime>,
}

/// Sums up the time of the selected threads; `most` limits how many are listed.
///
/// # Errors
///
/// When the trace has no switches or cannot be read, or the selection names what is not there.
pub fn active_time(trace: &Trace, selection: &Selection, most: Option<u64>) -> Result<ActiveTime> {
    if trace.meta().tables.get(Switch::TABLE).is_none_or(|table| table.rows == 0) {
        return Err(ListingError::NoSwitches);
    }
    let names = Names::read(trace)?;
    let filter = Filter::new(trace, &names, selection)?;
    let (start, end) = (trace.meta().start.start_ns, trace.meta().end.as_ref().map(|end| end.ts));
    let asked = filter.window();
    let window = asked.start.max(start)..asked.end.min(end.unwrap_or(i64::MAX));
    let mut sums = Sums::new(window, lost_switches(trace)?);
    // From the start: who has a CPU when the window begins was decided before.
    for switch in trace.rows_within::<Switch>(i64::MIN..asked.end) {
        let switch = switch?;
        if filter.selects_cpu(switch.cpu) {
            sums.add(&switch);
        }
    }
    let mut result = sums.finish();
    result.threads.retain(|t| filter.selects_thread(Pid(t.pid), Tid(t.tid)));
    for thread in &mut result.threads {
        thread.name = names.thread(Some(Pid(thread.pid)), Tid(thread.tid)).to_owned();
    }
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    result.threads.truncate(most);
    Ok(result)
}

/// When switches were lost.
fn lost_switches(trace: &Trace) -> Result<Vec<Range<i64>>> {
    let mut lost = Vec::new();
    for row in trace.rows::<LossRow>() {
        let row = row?;
        if row.records() == Some(LostRecords::Switches) {
            // The last loss is part of it.
            lost.push(row.ts.0..row.ts.0.saturating_add(row.dur).saturating_add(1));
        }
    }
    Ok(lost)
}

/// Who has a CPU.
#[derive(Clone, Copy, Debug)]
struct Run {
    pid: Pid,
    tid: Tid,
    since: i64,
}

/// The state machine: switches in, times out.
struct Sums {
    /// Its end is not known while the recording has none.
    window: Range<i64>,
    lost: Vec<Range<i64>>,
    cpus: HashMap<Cpu, Run>,
    threads: HashMap<(Pid, Tid), ThreadTime>,
    unknown_ns: i64,
    newest: i64,
}

impl Sums {
    fn new(window: Range<i64>, lost: Vec<Range<i64>>) -> Sums {
        let newest = window.start;
        Sums { window, lost, cpus: HashMap::new(), threads: HashMap::new(), unknown_ns: 0, newest }
    }

    fn add(&mut self, switch: &Switch) {
        let ts = switch.ts.0;
        self.newest = self.newest.max(ts);
        let next = Run { pid: switch.next_pid, tid: switch.next_tid, since: ts };
        match self.cpus.insert(switch.cpu, next) {
            Some(run) if run.tid == switch.prev_tid => self.ran(run, ts),
            Some(run) => self.unknown_ns += length(&self.clip(run.since, ts)),
            None => self.unknown_ns += length(&self.clip(i64::MIN, ts)),
        }
    }

    /// The part of an interval that lies in the window.
    fn clip(&self, from: i64, to: i64) -> Range<i64> {
        from.max(self.window.start)..to.min(self.window.end)
    }

    fn ran(&mut self, run: Run, until: i64) {
        let time = self.clip(run.since, until);
        if time.is_empty() {
            return;
        }
        let lost = self.lost.iter().any(|l| l.start < time.end && time.start < l.end);
        let thread = self.threads.entry((run.pid, run.tid)).or_default();
        thread.active_ns += length(&time);
        thread.runs += 1;
        thread.longest_ns = thread.longest_ns.max(length(&time));
        thread.mark = thread.mark.max(if lost { Mark::Censored } else { Mark::Exact });
    }

    fn finish(mut self) -> ActiveTime {
        if self.window.end == i64::MAX {
            self.window.end = self.newest;
        }
        let runs: Vec<Run> = self.cpus.values().copied().collect();
        for run in &runs {
            self.ran(*run, self.window.end);
        }
        let mut threads: Vec<_> = self
            .threads
            .into_iter()
            .map(|((pid, tid), time)| ThreadTime { tid: tid.0, pid: pid.0, ..time })
            .collect();
        threads.sort_by_key(|t| (std::cmp::Reverse(t.active_ns), t.pid, t.tid));
        ActiveTime {
            window_ns: length(&self.window),
            cpus: runs.len() as u64,
            unknown_ns: self.unknown_ns,
            threads,
        }
    }
}

fn length(range: &Range<i64>) -> i64 {
    range.end.saturating_sub(range.start).max(0)
}

impl fmt::Display for ActiveTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = if self.cpus == 1 { "CPU" } else { "CPUs" };
        writeln!(f, "on the CPU within {} on {} {cpus}", dur(self.window_ns), self.cpus)?;
        let mut table =
            Table::new(&["<thread", "process", "active", "of one CPU", "runs", "longest"]);
        for t in &self.threads {
            let mut name = String::new();
            write_thread(&cut(&t.name, 24), Tid(t.tid), &mut name);
            let mark = if t.mark == Mark::Exact { "" } else { "*" };
            table.row([
                name,
                if t.tid == 0 { "-".into() } else { t.pid.to_string() },
                format!("{}{mark}", dur(t.active_ns)),
                percent(t.active_ns, self.window_ns),
                count(t.runs),
                dur(t.longest_ns),
            ]);
        }
        write!(f, "{table}")?;
        if self.unknown_ns > 0 {
            writeln!(
                f,
                "unknown: {} of CPU time before a CPU's first switch or beside a missing one",
                dur(self.unknown_ns)
            )?;
        }
        if self.threads.iter().any(|t| t.mark != Mark::Exact) {
            writeln!(f, "* censored: switches were lost meanwhile")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(window: Range<i64>, switches: &[(i64, i32, i32, i32)]) -> ActiveTime {
        let mut sums = Sums::new(window, std::iter::once(35..36).collect());
        for &(ts, cpu, prev, next) in switches {
            sums.add(&Switch {
                ts: Nanos(ts),
                cpu: Cpu(cpu),
                prev_tid: Tid(prev),
                next_tid: Tid(next),
                next_pid: Pid(next),
            });
        }
        sums.finish()
    }

    /// Thread, time, runs, longest, censored.
    fn times(found: &ActiveTime) -> Vec<(i32, i64, u64, i64, bool)> {
        let of = |t: &ThreadTime| (t.tid, t.active_ns, t.runs, t.longest_ns, t.mark != Mark::Exact);
        found.threads.iter().map(of).collect()
    }

    // CPU 0:  ?--1-----2--1--------2   CPU 1:  ???????0----
    //         0  10   20 25       40               30    50
    const TWO_CPUS: [(i64, i32, i32, i32); 5] =
        [(10, 0, 9, 1), (20, 0, 1, 2), (25, 0, 2, 1), (30, 1, 7, 0), (40, 0, 1, 2)];

    #[test]
    fn a_cpu_belongs_to_who_came_until_it_leaves() {
        let found = sums(0..50, &TWO_CPUS);
        assert_eq!(
            times(&found),
            [(1, 25, 2, 15, true), (0, 20, 1, 20, true), (2, 15, 2, 10, false)]
        );
        // 10 before the first switch of CPU 0, 30 before that of CPU 1.
        assert_eq!((found.window_ns, found.unknown_ns, found.cpus), (50, 40, 2));
        let all: i64 = found.threads.iter().map(|t| t.active_ns).sum();
        assert_eq!(all + found.unknown_ns, 2 * 50);
    }

    #[test]
    fn a_window_cuts_the_runs_at_its_ends() {
        let found = sums(12..22, &TWO_CPUS[..3]);
        assert_eq!(times(&found), [(1, 8, 1, 8, false), (2, 2, 1, 2, false)]);
        assert_eq!(found.unknown_ns, 0);
    }

    #[test]
    fn time_beside_a_missing_switch_is_nobodys() {
        let found = sums(0..100, &[(0, 0, 9, 1), (60, 0, 2, 3)]);
        assert_eq!(times(&found), [(3, 40, 1, 40, false)]);
        assert_eq!(found.unknown_ns, 60);
    }

    #[test]
    fn a_recording_without_an_end_ends_with_its_last_switch() {
        let found = sums(0..i64::MAX, &[(0, 0, 9, 1), (60, 0, 1, 2)]);
        assert_eq!((found.window_ns, times(&found)), (60, vec![(1, 60, 1, 60, true)]));
    }
}
