//! What critical paths are made of, and how a piece of one is said.

use serde::Serialize;

use crate::stats::{Key, OTHERS};
use ft_trace::ids::Name;
use ft_trace::tables::PathKind;

/// Something that critical paths are made of.
#[derive(Clone, Debug, Serialize)]
pub struct PathCause {
    /// Kind of the requests.
    pub request: String,
    /// What the thread did, or what was done to it.
    pub kind: PathKind,
    /// Thread whose time it is.
    pub thread: String,
    /// Who or what did that to it.
    pub culprit: Option<String>,
    /// What was waited for meanwhile.
    pub wait: Option<String>,
    /// All such time, ns.
    pub total_ns: i64,
    /// Paths of this kind of requests in all, ns.
    pub of_ns: i64,
    /// Pieces.
    pub pieces: u64,
    /// In words.
    #[serde(skip)]
    pub(super) what: String,
}

/// What pieces of paths have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Same {
    pub(super) request: Name,
    pub(super) kind: PathKind,
    pub(super) comm: Name,
    pub(super) culprit: Option<Name>,
    pub(super) idle: bool,
    pub(super) wait: Option<Name>,
}

impl Key for Same {
    fn others(&self) -> Same {
        let (request, kind) = (self.request.clone(), self.kind);
        Same { request, kind, comm: OTHERS.into(), culprit: None, idle: false, wait: None }
    }
}

/// What a piece of a path says, without its thread.
pub(in crate::sections) fn says(kind: PathKind, culprit: Option<&str>, idle: bool) -> String {
    let by = |before: &str, none: &str| {
        culprit.map_or_else(|| none.to_owned(), |culprit| format!("{before}{culprit}"))
    };
    match kind {
        PathKind::Running => "ran".to_owned(),
        PathKind::Preempted => by("preempted by ", "preempted"),
        PathKind::Dispatch if idle => "woken, CPU idle".to_owned(),
        PathKind::Dispatch => by("woken, behind ", "woken, no CPU yet"),
        PathKind::Interrupt => by("interrupt ", "interrupted"),
        PathKind::Timer => by("slept until timer ", "slept until a timer"),
        PathKind::Device => by("slept until interrupt ", "slept until an interrupt"),
        PathKind::Outside => by("slept until woken by ", "slept until woken from outside"),
        PathKind::Unknown => by("unknown: ", "unknown"),
    }
}
