//! Reports: what the tables of the analyses say, as text and as JSON.
//!
//! Each report is a plain struct that serialises (`--json`) and displays itself (text). The statistics take
//! rows one by one, and know nothing of files; this module alone reads the trace. Text fits the width that it is
//! formatted with (`{:80}`), or 100 columns, and every figure stands with its coverage: what is not in it, and what is a lower bound.

mod agreement;
mod dispatch;
pub(crate) mod format;
mod gaps;
mod gaps_text;
mod head;
#[cfg(test)]
mod hostile_tests;
mod locks;
mod locks_text;
mod marks;
mod order;
mod preempted;
mod preempted_text;
mod quality;
mod steal;
mod study;
mod summary;
pub mod table;
mod tail;
#[cfg(test)]
mod tests;
mod time;
mod time_text;
mod top;
mod waits;
mod waits_text;

use std::fmt;

use serde::Serialize;

pub use agreement::{AgreementReport, MissedLength, Score};
pub use dispatch::{Dispatch, DispatchReport, Latency, WorstWake};
pub use gaps::{CauseSum, CulpritSum, Gaps, GapsReport, Inferred, LongGap, Poller};
pub use head::Head;
pub use locks::{Group, Locks, LocksReport, LongHold, Parts};
pub use marks::Marks;
pub use order::{Abba, Taken};
pub use preempted::{Grants, LongPreemption, Preempted, PreemptedLock, PreemptedReport, Preemptor};
pub use quality::{LossPlace, Quality};
pub use steal::Steal;
pub use study::Study;
pub use summary::Summary;
pub use tail::Tail;
pub use time::{ThreadBalance, TimeCulprit, TimeReport, Times};
pub use waits::{LockWaits, LongWait, PlaceWaits, RootWaits, Unended, Waits, WaitsReport};

pub use crate::analyze::ensure as ensure_analyzed;
use ft_analysis::Tally;
use ft_trace::store::{Result, Trace};
use ft_trace::tables::{
    CriticalSection, DispatchLatency, Gap, LockOrder, LockPreemption, LockWait, ThreadTime,
    UnfinishedWait,
};

/// All reports of a trace.
#[derive(Debug, Serialize)]
pub struct Reports {
    /// Who held which lock how deep and for how long.
    pub locks: LocksReport,
    /// Who waited for which lock, and whose fault it was.
    pub waits: WaitsReport,
    /// Holders of locks that could have run and did not.
    pub preempted: PreemptedReport,
    /// How long woken threads waited for a CPU, and behind whom.
    pub dispatch: DispatchReport,
    /// Where polling threads' time went.
    pub gaps: GapsReport,
    /// How well their causes were inferred without the kernel.
    pub agreement: AgreementReport,
    /// Where all the time of each observed thread went.
    pub time: TimeReport,
}

impl fmt::Display for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = table::width(f);
        write!(f, "{:w$}\n{:w$}\n{:w$}\n", self.locks, self.waits, self.preempted)?;
        write!(f, "{:w$}\n{:w$}\n", self.dispatch, self.gaps)?;
        write!(f, "{:w$}\n{:w$}", self.agreement, self.time)
    }
}

/// Makes the locks report.
///
/// # Errors
///
/// When the table cannot be read.
pub fn locks(trace: &Trace, tally: &Tally) -> Result<LocksReport> {
    let mut locks = Locks::default();
    for row in trace.rows::<CriticalSection>() {
        locks.add(&row?);
    }
    Ok(locks.finish(tally))
}

/// Makes the report on waits for locks, their order and deadlocks.
///
/// # Errors
///
/// When a table cannot be read.
pub fn waits(trace: &Trace, tally: &Tally) -> Result<WaitsReport> {
    let mut waits = Waits::default();
    for row in trace.rows::<LockWait>() {
        waits.add(&row?);
    }
    for row in trace.rows::<UnfinishedWait>() {
        waits.add_unfinished(&row?);
    }
    for row in trace.rows::<LockOrder>() {
        waits.add_order(row?);
    }
    Ok(waits.finish(tally))
}

/// Makes the report on preempted holders.
///
/// # Errors
///
/// When the table cannot be read.
pub fn preempted(trace: &Trace, tally: &Tally) -> Result<PreemptedReport> {
    let mut preempted = Preempted::default();
    for row in trace.rows::<LockPreemption>() {
        preempted.add(&row?);
    }
    Ok(preempted.finish(tally))
}

/// Makes the dispatch report.
///
/// # Errors
///
/// When the table cannot be read.
pub fn dispatch(trace: &Trace, tally: &Tally) -> Result<DispatchReport> {
    let mut dispatch = Dispatch::default();
    for row in trace.rows::<DispatchLatency>() {
        dispatch.add(&row?);
    }
    Ok(dispatch.finish(tally))
}

/// Makes the gaps report.
///
/// # Errors
///
/// When the table cannot be read.
pub fn gaps(trace: &Trace, tally: &Tally) -> Result<GapsReport> {
    let mut gaps = Gaps::default();
    for row in trace.rows::<Gap>() {
        gaps.add(&row?);
    }
    Ok(gaps.finish(tally))
}

/// Makes the time ledger.
///
/// # Errors
///
/// When the table cannot be read.
pub fn time(trace: &Trace, tally: &Tally) -> Result<TimeReport> {
    let mut times = Times::default();
    for row in trace.rows::<ThreadTime>() {
        times.add(&row?);
    }
    Ok(times.finish(tally, Steal::of(trace.meta())))
}

/// Makes all of them.
///
/// # Errors
///
/// When a table cannot be read.
pub fn all(trace: &Trace, tally: &Tally) -> Result<Reports> {
    Ok(Reports {
        locks: locks(trace, tally)?,
        waits: waits(trace, tally)?,
        preempted: preempted(trace, tally)?,
        dispatch: dispatch(trace, tally)?,
        gaps: gaps(trace, tally)?,
        agreement: AgreementReport::new(tally),
        time: time(trace, tally)?,
    })
}
