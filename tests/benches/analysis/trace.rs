//! Traces of any length, made up: 8 observed threads on 4 CPUs that take two nested locks, are interrupted,
//! preempted by other threads, sleep, and are woken.

use std::path::Path;

use ft_trace::event::{Event, LeanUserEvent};
use ft_trace::ids::{Cpu, Name, Nanos, Pid, SiteId, Tid};
use ft_trace::store::{
    Footer, Meta, PartWriter, Result, Row, SCHEMA_VERSION, TableMeta, TableWriter,
};
use ft_trace::tables::{
    ClockRow, Irq, IrqKind, LossRow, NameRow, SchedMigrate, SchedSwitch, SchedWaking, SiteKind,
    SiteRow, TaskEvent, TaskState, ThreadRow, UserEvent,
};

/// Threads that take locks.
const THREADS: i32 = 8;

/// Events of one thread in one round: 8 of locks, 4 switches, 4 interrupts, 2 wakings.
const EVENTS: u64 = 18;

/// Time between two events, ns.
const STEP_NS: i64 = 200;

/// Events of this many rounds.
pub(crate) const fn events_of(rounds: u64) -> u64 {
    rounds * THREADS as u64 * EVENTS
}

/// Holds in this many rounds.
pub(crate) const fn holds_of(rounds: u64) -> u64 {
    rounds * THREADS as u64 * 4
}

/// The sites of the lock events.
pub(crate) fn sites() -> Vec<SiteRow> {
    let row = |(site, kind, event): (i32, SiteKind, &str)| SiteRow {
        site: SiteId(site),
        pid: Pid(1),
        event: event.into(),
        category: "lock".into(),
        kind,
        file: "".into(),
        line: 0,
        args: "".into(),
        format: "".into(),
        triggers: 1,
        source: 0,
        started: 0,
        program: 0,
        on_ns: Some(0),
    };
    let acquire = (0, SiteKind::LockAcquire, "lock.mutex_acquire");
    [acquire, (1, SiteKind::LockRelease, "lock.mutex_release")].map(row).into()
}

/// The observed process.
pub(crate) fn threads() -> Vec<ThreadRow> {
    vec![ThreadRow {
        ts: Nanos(0),
        tid: Tid(1),
        pid: Pid(1),
        name: "worker".into(),
        process: "worker".into(),
        prio: None,
        observed: true,
    }]
}

struct Names {
    worker: Name,
    other: Name,
    timer: Name,
}

/// The events of `rounds` rounds, by time.
pub(crate) fn events(rounds: u64) -> impl Iterator<Item = Event> {
    let [worker, other, timer] = ["worker", "other", "local_timer"].map(Into::into);
    let names = Names { worker, other, timer };
    let turns = (0..rounds as i64).flat_map(|round| (0..THREADS).map(move |t| (round, t)));
    turns.zip(0..).flat_map(move |((round, thread), turn)| {
        turn_of(round, thread, turn * EVENTS as i64 * STEP_NS, &names)
    })
}

/// What one thread does in one round.
fn turn_of(round: i64, thread: i32, from: i64, names: &Names) -> Vec<Event> {
    let mut events = Vec::with_capacity(EVENTS as usize);
    let (tid, cpu) = (Tid(10 + thread), Cpu(thread % 4));
    let mut at = |make: &dyn Fn(Nanos) -> Event| {
        events.push(make(Nanos(from + (events.len() as i64 + 1) * STEP_NS)));
    };
    let switch = |out: bool, state: TaskState| {
        let (mine, foreign) = ((tid, Pid(1), &names.worker), (Tid(99), Pid(9), &names.other));
        let (prev, next) = if out { (mine, foreign) } else { (foreign, mine) };
        move |ts| {
            Event::Switch(SchedSwitch {
                ts,
                cpu,
                prev_tid: prev.0,
                prev_pid: prev.1,
                prev_comm: prev.2.clone(),
                prev_prio: 120,
                prev_state: state,
                prev_woken: false,
                next_tid: next.0,
                next_pid: next.1,
                next_comm: next.2.clone(),
                next_prio: 120,
            })
        }
    };
    let lock = |site, lock| {
        let (site, arg) = (SiteId(site), [lock, 0, 0]);
        move |ts| Event::User(LeanUserEvent { ts, pid: Pid(1), tid, cpu, site, arg })
    };
    let irq = |ts| {
        let (kind, name) = (IrqKind::Vector, names.timer.clone());
        Event::Irq(Irq { ts, dur: 150, cpu, kind, number: 1, name, tid, pid: Pid(1) })
    };
    let waking = |ts| {
        let (waker_tid, pid, target_cpu) = (Tid(99), Pid(1), cpu);
        Event::Waking(SchedWaking {
            ts,
            cpu,
            waker_tid,
            tid,
            pid,
            prio: 120,
            target_cpu,
            is_new: false,
        })
    };
    let (outer, inner) = (0x1000 + round % 4, 0x2000 + i64::from(thread));
    at(&waking);
    at(&switch(false, TaskState::Sleeping));
    for _ in 0..2 {
        at(&lock(0, outer));
        at(&irq);
        at(&lock(0, inner));
        at(&irq);
        at(&lock(1, inner));
        at(&lock(1, outer));
    }
    at(&switch(true, TaskState::Preempted));
    at(&switch(false, TaskState::Sleeping));
    at(&switch(true, TaskState::Sleeping));
    at(&waking);
    events
}

/// Rows of one table that belong into one part.
struct Table<'a, R: Row> {
    trace: &'a Path,
    part: PartWriter<R>,
    meta: TableMeta,
}

impl<'a, R: Row> Table<'a, R> {
    fn begin(trace: &'a Path, number: u32) -> Result<PartWriter<R>> {
        PartWriter::create(trace, number, Footer::default())
    }

    fn new(trace: &'a Path) -> Result<Self> {
        Ok(Table { trace, part: Self::begin(trace, 0)?, meta: TableMeta::default() })
    }

    fn push(&mut self, row: &R) -> Result<()> {
        self.meta.rows += 1;
        self.part.push(row)
    }

    /// Ends the part, and begins the next one.
    fn next(&mut self) -> Result<()> {
        self.meta.parts += 1;
        let next = Self::begin(self.trace, self.meta.parts)?;
        std::mem::replace(&mut self.part, next).finish().map(drop)
    }

    fn finish(mut self, meta: &mut Meta) -> Result<()> {
        self.meta.parts += 1;
        meta.tables.insert(R::TABLE.into(), self.meta);
        self.part.finish().map(drop)
    }
}

fn whole<R: Row>(trace: &Path, rows: impl IntoIterator<Item = R>) -> Result<()> {
    let mut writer = TableWriter::create(trace, Footer::default())?;
    rows.into_iter().try_for_each(|row| writer.push(row))?;
    writer.finish().map(drop)
}

fn stored(e: &LeanUserEvent) -> UserEvent {
    UserEvent {
        ts: e.ts,
        tsc: e.ts.0,
        pid: e.pid,
        tid: e.tid,
        cpu: e.cpu,
        site: e.site,
        event: "lock".into(),
        category: "lock".into(),
        kind: SiteKind::Event,
        arg: [Some(e.arg[0]), Some(e.arg[1]), None, None, None, None],
        argf: [None; 6],
        argt: [const { None }; 6],
    }
}

/// Writes the events of `rounds` rounds as a trace, one part of each table for `part_events` events, as the
/// conversion makes one for each segment of the spool. Memory does not grow with the length.
pub(crate) fn write(trace: &Path, rounds: u64, part_events: u64) -> Result<()> {
    let mut switches = Table::<SchedSwitch>::new(trace)?;
    let mut wakings = Table::<SchedWaking>::new(trace)?;
    let mut interrupts = Table::<Irq>::new(trace)?;
    let mut user = Table::<UserEvent>::new(trace)?;
    for (event, number) in events(rounds).zip(1u64..) {
        match event {
            Event::Switch(row) => switches.push(&row)?,
            Event::Waking(row) => wakings.push(&row)?,
            Event::Irq(row) => interrupts.push(&row)?,
            Event::User(row) => user.push(&stored(&row))?,
            other => unreachable!("not made up: {other:?}"),
        }
        if number.is_multiple_of(part_events) && number < events_of(rounds) {
            switches.next()?;
            wakings.next()?;
            interrupts.next()?;
            user.next()?;
        }
    }
    let mut meta = Meta { schema_version: SCHEMA_VERSION, complete: true, ..Meta::default() };
    meta.clock.bound_ns = 100;
    switches.finish(&mut meta)?;
    wakings.finish(&mut meta)?;
    interrupts.finish(&mut meta)?;
    user.finish(&mut meta)?;
    whole::<ClockRow>(trace, [])?;
    whole::<LossRow>(trace, [])?;
    whole::<TaskEvent>(trace, [])?;
    whole::<SchedMigrate>(trace, [])?;
    whole::<NameRow>(trace, [])?;
    whole(trace, sites())?;
    whole(trace, threads())?;
    meta.write(trace)
}
