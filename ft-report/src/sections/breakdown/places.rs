//! System calls and page faults, by the process in which they are.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use crate::stats::{Groups, Key, OTHERS, ranked};
use ft_trace::ids::{Name, Pid};
use ft_trace::tables::{Breakdown, Decomposition, FaultKind, Place};

/// Places (of processes) with a line of their own; further ones are in one of others.
///
/// Limit: as `MAX_THREADS` of `sums.rs`.
pub(super) const MAX_PLACES: usize = 16_384;

/// One system call of the processes of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CallBreakdown {
    /// The name.
    pub name: String,
    /// Name of the call.
    pub call: String,
    /// What it waits for when it is blocked.
    pub waits_for: Option<String>,
    /// Calls that were entered in the trace.
    pub calls: u64,
    /// Of `calls`, not returned.
    pub unfinished: u64,
    /// Returned in the trace, and not entered there; beside `calls`.
    pub begun_before: u64,
    /// Where its time went, without page faults.
    pub parts: Decomposition,
    /// Page faults in it.
    pub faults: u64,
    /// Their time, ns.
    pub faults_ns: i64,
}

/// Page faults of the processes of one name.
#[derive(Clone, Debug, Serialize)]
pub struct FaultBreakdown {
    /// The name.
    pub name: String,
    /// In system calls, or outside.
    pub place: Place,
    /// What it took.
    pub kind: FaultKind,
    /// How many.
    pub faults: u64,
    /// Where their time went.
    pub parts: Decomposition,
}

/// A place of a process: the call, and what its descriptor is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PlaceKey(Pid, Place, Option<Name>, Option<Name>);

impl Key for PlaceKey {
    fn others(&self) -> Self {
        PlaceKey(Pid(0), self.1, self.2.as_ref().map(|_| OTHERS.into()), None)
    }
}

/// What is summed up of one place.
#[derive(Clone, Debug, Default)]
struct Sum {
    waits_for: Option<Name>,
    count: u64,
    unfinished: u64,
    begun_before: u64,
    parts: Decomposition,
    /// Minor and major faults there.
    faults: [(u64, Decomposition); 2],
}

/// Sums up what happened where, in memory that does not grow with it.
#[derive(Debug, Default)]
pub(super) struct Places(Groups<MAX_PLACES, PlaceKey, Sum>);

impl Places {
    pub(super) fn add(&mut self, r: &Breakdown, parts: Decomposition) {
        let key = PlaceKey(r.pid, r.place, r.call.clone(), r.file.map(|file| file.word().into()));
        let sum = self.0.entry(key);
        match r.fault {
            Some(kind) => {
                let (faults, of) = &mut sum.faults[usize::from(kind == FaultKind::Major)];
                *faults += r.count.unsigned_abs();
                *of += parts;
            }
            None => {
                sum.count += r.count.unsigned_abs();
                sum.unfinished += r.unfinished.unsigned_abs();
                sum.begun_before += r.begun_before.unsigned_abs();
                sum.parts += parts;
                sum.waits_for.clone_from(&r.waits_for);
            }
        }
    }

    /// Those of processes of one name together, the most time first; `name` has the name of each.
    pub(super) fn finish(
        self,
        name: impl Fn(Pid) -> String,
    ) -> (Vec<CallBreakdown>, Vec<FaultBreakdown>) {
        let mut calls: HashMap<_, CallBreakdown> = HashMap::new();
        let mut page_faults: HashMap<_, FaultBreakdown> = HashMap::new();
        for (PlaceKey(pid, place, call, file), sum) in self.0.into_ranked(|place| place, |_| ()) {
            let name = name(pid);
            for (&(n, parts), kind) in sum.faults.iter().zip([FaultKind::Minor, FaultKind::Major]) {
                if n > 0 {
                    let all = page_faults
                        .entry((name.clone(), place, kind))
                        .or_insert_with(|| FaultBreakdown::none(&name, place, kind));
                    all.faults += n;
                    all.parts += parts;
                }
            }
            if let Some(call) = call {
                calls
                    .entry((name.clone(), call.clone(), file))
                    .or_insert_with(|| CallBreakdown {
                        name,
                        call: call.to_string(),
                        ..CallBreakdown::default()
                    })
                    .add(&sum);
            }
        }
        let calls = ranked(calls.into_values().collect(), |c: &CallBreakdown| {
            let ns = c.parts.total_ns() + c.faults_ns;
            (Reverse(ns), c.name.clone(), c.call.clone(), c.waits_for.clone())
        });
        let page_faults = ranked(page_faults.into_values().collect(), |f: &FaultBreakdown| {
            (Reverse(f.parts.total_ns()), f.name.clone(), f.place, f.kind)
        });
        (calls, page_faults)
    }
}

impl CallBreakdown {
    /// Those under way when the recording began. A new thread returns once more from the call that made it.
    pub(super) fn cut_at_begin(&self) -> u64 {
        let makes_threads = matches!(&*self.call, "clone" | "clone3" | "fork" | "vfork");
        if makes_threads { 0 } else { self.begun_before }
    }

    fn add(&mut self, sum: &Sum) {
        self.waits_for = self.waits_for.take().or(sum.waits_for.as_deref().map(str::to_owned));
        self.calls += sum.count;
        self.unfinished += sum.unfinished;
        self.begun_before += sum.begun_before;
        self.parts += sum.parts;
        self.faults += sum.faults.iter().map(|(n, _)| n).sum::<u64>();
        self.faults_ns += sum.faults.iter().map(|(_, parts)| parts.total_ns()).sum::<i64>();
    }
}

impl FaultBreakdown {
    fn none(name: &str, place: Place, kind: FaultKind) -> FaultBreakdown {
        FaultBreakdown {
            name: name.to_owned(),
            place,
            kind,
            faults: 0,
            parts: Decomposition::default(),
        }
    }
}
