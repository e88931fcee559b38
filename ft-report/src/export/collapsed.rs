//! Call chains as lines of functions and a number, from the outermost on: what flame graphs are made of (Gregg's
//! `stackcollapse`, which has no specification: functions with `;` between them, a blank, a number).
//!
//! The number is time, ns. A chain begins with the process and what the thread did: `running` (a sample stands for the
//! time to the next one), `waiting`, `preempted`; then, where that is known, for which lock it waited, or which it held,
//! the one acquired last. So no time is there twice, and all of it has one unit.
//!
//! Of names only a `;` or the end of a line could be anything else: the former becomes `:`, the latter its picture.
//!
//! Memory: a line for each different chain of each process; what the conversion kept of chains bounds that.

use std::collections::BTreeMap;
use std::io::Write;

use ft_trace::ids::{Nanos, Tid};
use ft_trace::store::{Result as StoreResult, Row as _, Rows};
use ft_trace::tables::{CallChain, ChainKind, LockChain, LockChainKind, Sample};

use super::text::visible;
use super::{ExportError, Job, Result};
use crate::code::{Code, Comms, Frame};

/// Lines of a trace, with their time; one at least.
pub(super) fn lines(job: &mut Job<'_>) -> Result<BTreeMap<String, i64>> {
    let code = Code::read(job.trace)?;
    let names = Comms::read(job.trace)?;
    let mut lines = BTreeMap::new();
    let mut add = |first: [&str; 2], lock: Option<String>, chain: &[&Frame], ns: i64| {
        let mut line = String::new();
        let functions = chain.iter().rev().map(|frame| &*frame.label);
        let parts = first.into_iter().chain(lock.as_deref()).chain(functions);
        for (i, part) in parts.enumerate() {
            if i > 0 {
                line.push(';');
            }
            line.extend(part.chars().map(|c| if c == ';' { ':' } else { visible(c) }));
        }
        *lines.entry(line).or_insert(0i64) += ns;
    };
    let mut events = 0;
    if job.trace.has::<CallChain>() {
        let mut locks = Locks::new(job)?;
        for row in job.trace.rows_within::<CallChain>(job.window.clone()) {
            let row = row?;
            events += 1;
            if events % super::WATCH_EVENTS == 0 {
                job.look(events)?;
            }
            let (did, word) = match row.kind {
                ChainKind::Wait => ("waiting", "for"),
                ChainKind::Preempted => ("preempted", "holding"),
                ChainKind::Wake => continue,
            };
            let lock = locks.of(row.ts, row.tid)?.map(|lock| match lock.kind {
                LockChainKind::Waits => format!("{word} '{}'", lock.lock_name),
                _ => format!("holding '{}'", lock.lock_name),
            });
            let process = names.of(Tid(row.pid.0));
            add([&process, did], lock, &code.chain(row.stack), row.dur);
        }
    }
    let hz = job.trace.meta().start.sample_hz.unwrap_or(0);
    if hz > 0 && job.trace.has::<Sample>() {
        let period = 1_000_000_000 / i64::from(hz);
        let mut locks = Locks::new(job)?;
        for row in job.trace.rows_within::<Sample>(job.window.clone()) {
            let row = row?;
            events += 1;
            if events % super::WATCH_EVENTS == 0 {
                job.look(events)?;
            }
            let lock = locks.of(row.ts, row.tid)?;
            let lock = lock.map(|lock| format!("holding '{}'", lock.lock_name));
            let process = names.of(Tid(row.pid.0));
            add([&process, "running"], lock, &code.sampled(row.stack), period);
        }
    }
    let has = |table| job.trace.meta().tables.get(table).is_some_and(|table| table.rows > 0);
    match lines.is_empty() {
        true if has(CallChain::TABLE) || has(Sample::TABLE) => Err(ExportError::NoChainsThere),
        true => Err(ExportError::NoChains),
        false => Ok(lines),
    }
}

/// Writes them.
pub(super) fn write(job: &mut Job<'_>, out: &mut dyn Write) -> Result<()> {
    for (line, ns) in lines(job)? {
        writeln!(out, "{line} {ns}")?;
    }
    Ok(())
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
