//! What threads did at each call chain, and for how long, for the formats that sum it up.
//!
//! Times are ns: of a wait and of a preemption its length, of a sample the time to the next one.

use ft_trace::ids::{Name, Nanos, Tid};
use ft_trace::store::{Result as StoreResult, Row as _, Rows};
use ft_trace::tables::{CallChain, ChainKind, LockChain, LockChainKind, Sample};

use super::{ExportError, Job, Result};
use crate::code::{Code, Comms, Frame};

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    Running,
    Waiting,
    Preempted,
}

impl Did {
    pub(super) fn word(self) -> &'static str {
        match self {
            Did::Running => "running",
            Did::Waiting => "waiting",
            Did::Preempted => "preempted",
        }
    }
}

/// A lock that has to do with what a thread did.
#[derive(Debug)]
pub(super) struct Lock<'l> {
    pub(super) name: &'l str,
    /// The thread waited for it; else it held it.
    pub(super) waited_for: bool,
}

/// Some time of a thread.
#[derive(Debug)]
pub(super) struct Chained<'c, 'l> {
    pub(super) did: Did,
    pub(super) process: Name,
    pub(super) thread: Name,
    /// The lock for which it waited, or the last one of those that it held.
    pub(super) lock: Option<Lock<'l>>,
    /// The innermost first.
    pub(super) frames: Vec<&'c Frame>,
    pub(super) ns: i64,
}

/// Tells `to` the time of each call chain, and `Err` if there is none.
pub(super) fn each<'c>(
    job: &mut Job<'_>,
    code: &'c Code,
    mut to: impl FnMut(Chained<'c, '_>),
) -> Result<()> {
    let names = Comms::read(job.trace)?;
    let mut events = 0;
    let mut told = false;
    if job.trace.has::<CallChain>() {
        let mut locks = Locks::new(job)?;
        for row in job.trace.rows_within::<CallChain>(job.window.clone()) {
            let row = row?;
            events += 1;
            job.seen(events)?;
            let did = match row.kind {
                ChainKind::Wait => Did::Waiting,
                ChainKind::Preempted => Did::Preempted,
                ChainKind::Wake => continue,
            };
            let lock = locks.of(row.ts, row.tid)?.map(|lock| Lock {
                name: &lock.lock_name,
                waited_for: did == Did::Waiting && lock.kind == LockChainKind::Waits,
            });
            told = true;
            let (process, thread) = (names.of(Tid(row.pid.0)), names.of(row.tid));
            to(Chained { did, process, thread, lock, frames: code.chain(row.stack), ns: row.dur });
        }
    }
    if let Some(period) = period(job)
        && job.trace.has::<Sample>()
    {
        let mut locks = Locks::new(job)?;
        for row in job.trace.rows_within::<Sample>(job.window.clone()) {
            let row = row?;
            events += 1;
            job.seen(events)?;
            let lock = locks.of(row.ts, row.tid)?;
            let lock = lock.map(|lock| Lock { name: &lock.lock_name, waited_for: false });
            told = true;
            let (process, thread) = (names.of(Tid(row.pid.0)), names.of(row.tid));
            let (did, frames) = (Did::Running, code.sampled(row.stack));
            to(Chained { did, process, thread, lock, frames, ns: period });
        }
    }
    let has = |table| job.trace.meta().tables.get(table).is_some_and(|table| table.rows > 0);
    match told {
        true => Ok(()),
        false if has(CallChain::TABLE) || has(Sample::TABLE) => Err(ExportError::NoChainsThere),
        false => Err(ExportError::NoChains),
    }
}

/// The time from one sample of a CPU to the next; `None` of a trace without samples.
pub(super) fn period(job: &Job<'_>) -> Option<i64> {
    1_000_000_000i64.checked_div(job.trace.meta().start.sample_hz?.into())
}

/// The locks of chains, which are asked for in the order of time.
struct Locks {
    rows: Option<Rows<LockChain>>,
    next: Option<LockChain>,
    /// Those of one time.
    now: Vec<LockChain>,
}

impl Locks {
    fn new(job: &Job<'_>) -> StoreResult<Locks> {
        let has = job.trace.has::<LockChain>();
        let rows = has.then(|| job.trace.rows_within(job.window.clone()));
        let mut locks = Locks { rows, next: None, now: Vec::new() };
        locks.next = locks.read()?;
        Ok(locks)
    }

    fn read(&mut self) -> StoreResult<Option<LockChain>> {
        self.rows.as_mut().and_then(Iterator::next).transpose()
    }

    /// The lock that a thread waited for then, or the last one that it had acquired.
    fn of(&mut self, ts: Nanos, tid: Tid) -> StoreResult<Option<&LockChain>> {
        if self.now.first().is_none_or(|row| row.ts != ts) {
            self.now.clear();
            while let Some(row) = self.next.take_if(|row| row.ts <= ts) {
                if row.ts == ts {
                    self.now.push(row);
                }
                self.next = self.read()?;
            }
        }
        Ok(self.now.iter().find(|row| row.tid == tid && row.innermost))
    }
}
