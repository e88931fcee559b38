//! The sections of a report, by name.

use std::fmt;

use serde::Serialize;

use ft_analysis::Tally;
use ft_report::report::{
    self, AgreementReport, DispatchReport, GapsReport, LocksReport, PreemptedReport, TimeReport,
    WaitsReport,
};
use ft_trace::store::{Result, Trace};

/// A section that can be asked for.
pub(crate) struct Section {
    /// On the command line and in JSON.
    pub(crate) name: &'static str,
    /// What it shows, in a line.
    pub(crate) about: &'static str,
    /// Reads it from a trace.
    pub(crate) make: fn(&Trace, &Tally) -> Result<Contents>,
}

/// All of them, in the order in which a whole report has them.
pub(crate) const SECTIONS: &[Section] = &[
    Section {
        name: "locks",
        about: "who held which lock, how deep and for how long, and what happened meanwhile",
        make: |trace, tally| Ok(Contents::Locks(report::locks(trace, tally)?)),
    },
    Section {
        name: "waits",
        about: "who waited for which lock and who made it wait; lock order and deadlocks",
        make: |trace, tally| Ok(Contents::Waits(report::waits(trace, tally)?)),
    },
    Section {
        name: "preempted",
        about: "which holders of locks were preempted, by whom, and whom that delayed",
        make: |trace, tally| Ok(Contents::Preempted(report::preempted(trace, tally)?)),
    },
    Section {
        name: "dispatch",
        about: "how long woken threads waited for a CPU, and behind whom",
        make: |trace, tally| Ok(Contents::Dispatch(report::dispatch(trace, tally)?)),
    },
    Section {
        name: "gaps",
        about: "why polling threads did not run",
        make: |trace, tally| Ok(Contents::Gaps(report::gaps(trace, tally)?)),
    },
    Section {
        name: "agreement",
        about: "how often the causes of gaps that are inferred without the kernel are right",
        make: |_, tally| Ok(Contents::Agreement(AgreementReport::new(tally))),
    },
    Section {
        name: "time",
        about: "where all the time of each thread went, and who or what took it",
        make: |trace, tally| Ok(Contents::Time(report::time(trace, tally)?)),
    },
];

/// What a section says.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Contents {
    Locks(LocksReport),
    Waits(WaitsReport),
    Preempted(PreemptedReport),
    Dispatch(DispatchReport),
    Gaps(GapsReport),
    Agreement(AgreementReport),
    Time(TimeReport),
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contents::Locks(report) => report.fmt(f),
            Contents::Waits(report) => report.fmt(f),
            Contents::Preempted(report) => report.fmt(f),
            Contents::Dispatch(report) => report.fmt(f),
            Contents::Gaps(report) => report.fmt(f),
            Contents::Agreement(report) => report.fmt(f),
            Contents::Time(report) => report.fmt(f),
        }
    }
}

impl Contents {
    /// Threads whose parts do not sum to their wall time.
    pub(crate) fn unbalanced(&self) -> u64 {
        if let Contents::Time(report) = self { report.unbalanced } else { 0 }
    }
}
