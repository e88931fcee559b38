//! The longest gaps.

use serde::Serialize;

use crate::document::{Interval, Ns, Table, Thread, Word};
use crate::stats::{Own, own};
use ft_analysis::Mark;
use ft_trace::tables::{Decomposition, Gap};

/// One of the longest gaps.
#[derive(Clone, Debug, Serialize)]
pub struct LongGap {
    /// Last poll before, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Thread.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// CPU of the first poll after.
    pub cpu: i32,
    /// Cause.
    pub cause: &'static str,
    /// Who or what it was.
    pub culprit: Option<String>,
    /// Its thread id.
    pub culprit_tid: Option<i32>,
    /// What the gap consisted of.
    pub parts: Option<Decomposition>,
    /// Of `dur_ns`, what threads of the agent had the CPU, ns; missing where it is not known.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// Inferred cause.
    pub inferred: &'static str,
    /// How sure it is.
    pub mark: Mark,
}

impl LongGap {
    /// Where it lies in the trace.
    pub(in crate::sections) fn interval(&self) -> Interval {
        Interval { ts: self.ts, dur_ns: self.dur_ns, tid: self.tid, lock: None }
    }

    /// Of a row, with its cause.
    pub(super) fn of(r: &Gap, cause: &'static str) -> LongGap {
        LongGap {
            ts: r.ts.0,
            dur_ns: r.dur,
            tid: r.tid.0,
            comm: r.comm.to_string(),
            cpu: r.cpu.0,
            cause,
            culprit: r.culprit.as_ref().map(ToString::to_string),
            culprit_tid: r.culprit_tid,
            parts: r.parts,
            agent_ns: Own(r.agent_ns),
            inferred: r.inferred.word(),
            mark: r.mark,
        }
    }
}

/// The table of them.
pub(super) fn table(gaps: &[LongGap], kernel: bool) -> Table {
    let part = |g: &LongGap, of: fn(&Decomposition) -> i64| g.parts.as_ref().map(|p| Ns(of(p)));
    let t = Table::of(gaps)
        .marks(|g| g.mark)
        .column("thread", |g| Thread::named(&g.comm))
        .tids("tid", |g| Some((&*g.comm, g.tid)))
        .column("gap", |g| g.interval())
        .when(kernel, |t| {
            t.column("cause", |g| Word(g.cause))
                .column("who or what", |g| g.culprit.as_deref().map(Word))
                .column("off CPU", |g| part(g, |p| p.runnable_ns() + p.blocked_ns))
                .column("irqs", |g| part(g, Decomposition::interrupts_ns))
                .column("unexpl.", |g| part(g, |p| p.unexplained_ns))
        })
        .column("inferred", |g| Word(g.inferred));
    own::beside(t, |g| (g.agent_ns, g.dur_ns)).titled("The longest gaps")
}
