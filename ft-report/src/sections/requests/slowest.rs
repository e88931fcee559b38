//! The slowest requests.

use serde::Serialize;

use crate::document::{Interval, Ns, Number, Table, Thread, Word};
use crate::stats::{Own, own, parts};
use ft_analysis::Mark;
use ft_trace::tables::{Decomposition, Request};

/// One of the slowest requests.
#[derive(Clone, Debug, Serialize)]
pub struct SlowRequest {
    /// Its number, for `--of`.
    pub request: i64,
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// Name of the scope, or both events.
    pub kind: String,
    /// Its key.
    pub key: Option<i64>,
    /// Thread that ended it.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Where the time of its thread went, where it is one.
    pub parts: Option<Decomposition>,
    /// What of its path, or else of its thread's time, threads of the agent had the CPU, ns.
    #[serde(skip_serializing_if = "Own::is_unknown")]
    pub agent_ns: Own,
    /// Of its path, in other threads, ns.
    pub elsewhere_ns: Option<i64>,
    /// Of its path, unknown, ns.
    pub unknown_ns: Option<i64>,
    /// How sure it is, with its path.
    pub mark: Mark,
}

impl From<&Request> for SlowRequest {
    fn from(r: &Request) -> Self {
        SlowRequest {
            request: r.request,
            ts: r.ts.0,
            dur_ns: r.dur,
            kind: r.kind.to_string(),
            key: r.key,
            tid: r.end_tid.0,
            comm: r.end_comm.to_string(),
            parts: r.parts,
            agent_ns: Own(r.path_agent_ns.or(r.agent_ns)),
            elsewhere_ns: r.path_elsewhere_ns,
            unknown_ns: r.path_unknown_ns,
            mark: r.mark.max(r.path_mark),
        }
    }
}

/// Whether parts are known of some, and others have none, because they cross threads.
pub(super) fn some_cross_threads(slowest: &[SlowRequest]) -> bool {
    let known = slowest.iter().filter(|request| request.parts.is_some()).count();
    (1..slowest.len()).contains(&known)
}

/// The table of them; `kinds`: there are several.
pub(super) fn table(slowest: &[SlowRequest], kinds: bool) -> Table {
    let t = Table::of(slowest)
        .marks(|r| r.mark)
        .column("number", |r| Number(r.request))
        .when(kinds, |t| t.column("request", |r| Word(&r.kind)))
        .notes("key", |r| r.key.map(Number))
        .column("ended by", |r| Thread::of(Some(r.tid), Some(&r.comm)))
        .column("length", |r| Interval { ts: r.ts, dur_ns: r.dur_ns, tid: r.tid, lock: None });
    let known = slowest.iter().any(|r| r.parts.is_some());
    let t = t
        .when(known, |t| parts::durations(t, |r: &&SlowRequest| r.parts))
        .column("elsewhere", |r| r.elsewhere_ns.map(Ns));
    own::beside(t, |r| (r.agent_ns, r.dur_ns))
        .titled("The slowest; `report DIR requests --of NUMBER` shows the path of one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_some_have_no_parts_is_to_be_said_where_others_have() {
        let request = |parts| SlowRequest {
            request: 1,
            ts: 0,
            dur_ns: 10,
            kind: "fetch".into(),
            key: None,
            tid: 7,
            comm: "worker".into(),
            parts,
            agent_ns: Own(None),
            elsewhere_ns: None,
            unknown_ns: None,
            mark: Mark::Exact,
        };
        let (one, crosses) = (request(Some(Decomposition::default())), request(None));
        let said = |slowest: &[&SlowRequest]| {
            some_cross_threads(&slowest.iter().map(|r| (*r).clone()).collect::<Vec<_>>())
        };
        assert!(said(&[&one, &crosses]) && said(&[&crosses, &one, &one]));
        assert!(!said(&[]) && !said(&[&one, &one]) && !said(&[&crosses]));
    }
}
