//! Measures one trace: every quantity of every subject, for the whole recording or for slices of it.
//!
//! One table is read at a time, and of it one slice; what is kept is a few numbers for each subject and slice. So memory
//! grows neither with the length of a trace nor with the number of traces, but for those numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ft_analysis::Tally;
use ft_trace::Mark;
use ft_trace::ids::{Name, Nanos, Pid, Tid};
use ft_trace::store::{Result, Row, Trace};
use ft_trace::tables::{
    CriticalSection, Decomposition, DispatchLatency, Gap, LockWait, Scope, ThreadRow, ThreadTime,
};

use super::lengths::{Cell, Lengths};
use super::subject::{Class, Namer, Quantity, Subject};

/// Subjects of one class and trace; intervals of further ones are in no row, and counted.
///
/// Limit: intervals of further ones are in no row, and counted (`no_room`).
/// Shown by: `subjects_that_do_not_fit_are_counted`.
const MAX_SUBJECTS: usize = 3 * 1024;

/// Ways to name a row that are remembered; then they are found anew.
///
/// Limit: none for the reader: it takes longer.
/// Shown by: no figure: only a cache.
const MAX_REMEMBERED: usize = 1 << 16;

/// What is compared of one trace.
#[derive(Clone, Debug)]
pub struct Run {
    /// Directory of the trace.
    pub trace: String,
    /// Host, and its boot, on which it was recorded.
    pub host: (String, String),
    /// Kernel release.
    pub kernel: String,
    /// Kernel groups that were recorded.
    pub kernel_groups: Vec<String>,
    /// Begin, CLOCK_MONOTONIC ns.
    pub begin_ns: i64,
    /// Length, ns.
    pub length_ns: i64,
    /// Events.
    pub events: u64,
    /// User events that were lost.
    pub lost_user_events: u64,
    /// Kernel records that were lost.
    pub lost_kernel_records: u64,
    /// Holds and waits that were recorded in part and have no row.
    pub censored: u64,
    /// Intervals of locks that have neither a name nor a place by which they could be found in another trace.
    pub nameless: u64,
    /// Intervals of subjects that did not fit.
    pub no_room: u64,
    /// Smallest distance of two times, ns.
    pub(super) step_ns: f64,
    /// Names of its processes.
    pub(super) processes: BTreeSet<Name>,
    /// Begin and length of what is cut into slices, ns.
    pub(super) sliced: (i64, i64),
    /// What is known of subjects in each slice.
    pub(super) units: Vec<BTreeMap<Subject, Cell>>,
    /// What is known of the recording as a whole alone: its length, and the time of its threads.
    pub(super) whole: BTreeMap<Subject, Cell>,
}

impl Run {
    /// Reads a trace that was analysed, in so many slices of equal time, from its first interval to its last: before and
    /// after, the program was not there. An interval belongs to the slice in which it begins.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(trace: &Trace, tally: &Tally, slices: usize) -> Result<Run> {
        let (meta, slices) = (trace.meta(), slices.max(1));
        let begin_ns = meta.start.window_from_ns.unwrap_or(meta.start.start_ns);
        let length_ns = meta.end.as_ref().map_or(tally.last_ns, |end| end.ts) - begin_ns;
        let mut namer = Namer::default();
        trace.rows::<ThreadRow>().try_for_each(|row| row.map(|row| namer.learn(&row)))?;
        let mut run = Run {
            trace: trace.dir().display().to_string(),
            host: (meta.start.host.clone(), meta.start.boot_id.clone()),
            kernel: meta.start.kernel.clone(),
            kernel_groups: meta.start.kernel_groups.clone(),
            begin_ns,
            length_ns: length_ns.max(1),
            events: tally.events,
            lost_user_events: tally.lost_user_events,
            lost_kernel_records: tally.lost_kernel_records,
            censored: tally.incomplete.holds(),
            nameless: 0,
            no_room: 0,
            step_ns: meta.clock.step_ns.max(1) as f64,
            processes: namer.processes(),
            sliced: (begin_ns, length_ns.max(1)),
            units: vec![BTreeMap::new(); slices],
            whole: BTreeMap::new(),
        };
        if slices > 1
            && let Some((first, last)) = span(trace)?
        {
            run.sliced = (first, last - first + 1);
        }
        run.intervals(trace, &namer, Class::Hold, |r: &CriticalSection| {
            (r.ts, (r.dur, r.agent_ns), r.mark, (r.pid, r.tid), [&r.lock_name, &r.kind, &r.place])
        })?;
        run.intervals(trace, &namer, Class::Wait, |r: &LockWait| {
            (r.ts, (r.dur, r.agent_ns), r.mark, (r.pid, r.tid), [&r.lock_name, &r.kind, &r.place])
        })?;
        run.intervals(trace, &namer, Class::Dispatch, |r: &DispatchLatency| {
            (r.ts, (r.dur, r.agent_ns), r.mark, (r.pid, r.tid), [&r.comm; 3])
        })?;
        run.intervals(trace, &namer, Class::Gap, |r: &Gap| {
            (r.ts, (r.dur, r.agent_ns), r.mark, (r.pid, r.tid), [&r.comm; 3])
        })?;
        run.intervals(trace, &namer, Class::Scope, |r: &Scope| {
            (r.ts, (r.dur, r.agent_ns), r.mark, (r.pid, r.tid), [&r.event; 3])
        })?;
        run.thread_time(trace, &namer)?;
        let mut length = Cell { count: 1, ..Cell::default() };
        length.set(Quantity::Length, Some(run.length_ns as f64));
        run.whole.insert(Subject::run(), length);
        Ok(run)
    }

    /// Reads the intervals of one table.
    fn intervals<R: Row>(
        &mut self,
        trace: &Trace,
        namer: &Namer,
        class: Class,
        of: impl for<'r> Fn(&'r R) -> (Nanos, (i64, Option<i64>), Mark, (Pid, Tid), [&'r Name; 3]),
    ) -> Result<()> {
        let mut open = Open::default();
        let mut unit = 0;
        for row in trace.rows::<R>() {
            let row = row?;
            let (ts, dur, mark, thread, names) = of(&row);
            // Rows come by their begin.
            let now = self.unit_of(ts).max(unit);
            if now > unit {
                self.close(std::mem::take(&mut open), unit);
                unit = now;
            }
            let subjects = || match class {
                Class::Hold | Class::Wait => namer.lock(class, thread, names),
                _ => vec![namer.named(class, thread.0, names[0])],
            };
            open.add((thread.0, thread.1, names.map(Name::clone)), subjects, dur, mark);
        }
        self.close(open, unit);
        Ok(())
    }

    fn unit_of(&self, ts: Nanos) -> usize {
        let (units, (begin_ns, length_ns)) = (self.units.len(), self.sliced);
        let at = i128::from(ts.0 - begin_ns) * units as i128 / i128::from(length_ns);
        (at.max(0) as usize).min(units - 1)
    }

    /// Finishes a slice.
    fn close(&mut self, open: Open, unit: usize) {
        let slices = self.units.len();
        let unit_ns = self.sliced.1 as f64 / slices as f64;
        self.nameless += open.nameless;
        self.no_room += open.no_room;
        for (subject, number) in open.numbers {
            self.units[unit].insert(subject, open.lengths[number].cell(unit_ns, slices));
        }
    }

    /// Reads the time of the threads. That of a thread of which records were lost is not in its parts.
    fn thread_time(&mut self, trace: &Trace, namer: &Namer) -> Result<()> {
        let mut threads: HashMap<Subject, (Decomposition, Cell)> = HashMap::new();
        for row in trace.rows::<ThreadTime>() {
            let row = row?;
            let subject = namer.named(Class::Time, row.pid, &row.comm);
            if threads.len() >= MAX_SUBJECTS && !threads.contains_key(&subject) {
                self.no_room += 1;
                continue;
            }
            let (parts, cell) = threads.entry(subject).or_default();
            cell.count += row.spent_ns.unsigned_abs();
            match row.mark {
                Mark::LowerBound => cell.left_out += row.spent_ns.unsigned_abs(),
                _ => {
                    *parts.part_mut(row.part) += row.spent_ns;
                    cell.recording.add(row.agent_ns, row.spent_ns);
                }
            }
        }
        for (subject, (parts, mut cell)) in threads {
            let wall = parts.total_ns();
            let share = |ns: i64| (wall > 0).then(|| ns as f64 / wall as f64);
            cell.set(Quantity::Running, share(parts.running_ns));
            cell.set(Quantity::Preempted, share(parts.preempted_ns));
            cell.set(Quantity::Dispatch, share(parts.dispatch_ns));
            cell.set(Quantity::Blocked, share(parts.blocked_ns));
            cell.set(Quantity::Interrupts, share(parts.interrupts_ns()));
            cell.set(Quantity::Unexplained, share(parts.unexplained_ns));
            self.whole.insert(subject, cell);
        }
        Ok(())
    }
}

/// Begin of the first and of the last interval that the program recorded; without any, of its wake-ups.
fn span(trace: &Trace) -> Result<Option<(i64, i64)>> {
    let of_user = [
        trace.keys::<CriticalSection>()?,
        trace.keys::<LockWait>()?,
        trace.keys::<Gap>()?,
        trace.keys::<Scope>()?,
    ];
    let joined = of_user.into_iter().flatten().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    match joined {
        None => trace.keys::<DispatchLatency>(),
        some => Ok(some),
    }
}

/// By which a row's subjects are found again without making them.
type RowKey = (Pid, Tid, [Name; 3]);

/// The intervals of one slice, so far.
#[derive(Default)]
struct Open {
    numbers: HashMap<Subject, usize>,
    lengths: Vec<Lengths>,
    remembered: HashMap<RowKey, Vec<usize>>,
    /// Intervals that are in no subject, for want of a name or of room.
    nameless: u64,
    no_room: u64,
}

impl Open {
    /// Counts an interval, and what of it is the recording's own, for its subjects: its lock, and that lock at this
    /// place, and by this thread.
    fn add(
        &mut self,
        key: RowKey,
        subjects: impl FnOnce() -> Vec<Subject>,
        (ns, own): (i64, Option<i64>),
        mark: Mark,
    ) {
        if self.remembered.len() >= MAX_REMEMBERED {
            self.remembered.clear();
        }
        let Open { numbers, lengths, remembered, nameless, no_room } = self;
        let of_row = remembered.entry(key).or_insert_with(|| {
            let number = |subject: Subject| match numbers.get(&subject) {
                Some(&number) => number,
                None if lengths.len() >= MAX_SUBJECTS => NO_ROOM,
                None => {
                    lengths.push(Lengths::default());
                    numbers.insert(subject, lengths.len() - 1);
                    lengths.len() - 1
                }
            };
            subjects().into_iter().map(number).collect()
        });
        *nameless += u64::from(of_row.is_empty());
        *no_room += u64::from(of_row.contains(&NO_ROOM));
        for &number in of_row.iter().filter(|&&number| number != NO_ROOM) {
            lengths[number].add(ns, own, mark);
        }
    }
}

/// The number of a subject that did not fit.
const NO_ROOM: usize = usize::MAX;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A recording of which nothing is known but that it was.
    pub(in crate::compare) fn run() -> Run {
        Run {
            trace: "trace".into(),
            host: ("host".into(), "boot".into()),
            kernel: "6.18".into(),
            kernel_groups: Vec::new(),
            begin_ns: 0,
            length_ns: 1_000_000_000,
            events: 0,
            lost_user_events: 0,
            lost_kernel_records: 0,
            censored: 0,
            nameless: 0,
            no_room: 0,
            step_ns: 1.0,
            sliced: (0, 1_000_000_000),
            processes: BTreeSet::new(),
            units: vec![BTreeMap::new()],
            whole: BTreeMap::new(),
        }
    }

    #[test]
    fn subjects_that_do_not_fit_are_counted() {
        let mut open = Open::default();
        let name = |i: usize| Name::from(format!("lock-{i}").as_str());
        let subject = |name: Name| Subject { class: Class::Hold, name, ..Subject::run() };
        let mut add = |i: usize| {
            let key = (Pid(1), Tid(1), [name(i), name(i), name(i)]);
            open.add(key, || vec![subject(name(i))], (5, None), Mark::Exact);
            (open.lengths.len(), open.no_room)
        };
        (0..MAX_SUBJECTS - 1).for_each(|i| _ = add(i));
        assert_eq!(add(MAX_SUBJECTS), (MAX_SUBJECTS, 0));
        assert_eq!(add(MAX_SUBJECTS + 1), (MAX_SUBJECTS, 1));
        assert_eq!(add(0), (MAX_SUBJECTS, 1), "who was there has its room");
        assert_eq!(open.numbers.len(), MAX_SUBJECTS);
    }

    #[test]
    fn what_is_remembered_of_rows_is_bounded_and_nothing_is_counted_twice() {
        let mut open = Open::default();
        for i in 0..MAX_REMEMBERED as i32 + 10 {
            let names = [Name::from("book"), "mutex".into(), "".into()];
            let all = || vec![Subject { class: Class::Hold, ..Subject::run() }];
            open.add((Pid(1), Tid(i), names), all, (5, None), Mark::Exact);
        }
        assert!(open.remembered.len() <= MAX_REMEMBERED);
        let cell = open.lengths[0].cell(1e9, 1);
        assert_eq!((open.lengths.len(), cell.count), (1, MAX_REMEMBERED as u64 + 10));
    }
}
