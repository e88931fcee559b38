//! Who ends whose waits: pairs of processes, by their names and calls.

use std::cmp::Reverse;

use serde::Serialize;

use crate::stats::{Groups, Key, OTHERS};
use ft_analysis::Mark;
use ft_trace::ids::Name;
use ft_trace::tables::{FileKind, WakePair, WakerKind};

/// Pairs with a line of their own; further ones are in one of others.
///
/// Limit: as `MAX_THREADS` of `sums.rs`.
const MAX_PAIRS: usize = 16_384;

/// Wake-ups of processes of one name by those of another, from one call to another.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// Who wakes.
    pub waker: WakerKind,
    /// Name of its process, or of the interrupt.
    pub waker_name: String,
    /// The waker's call, with what its descriptor is of.
    pub waker_call: Option<String>,
    /// Name of the process that is woken.
    pub name: String,
    /// The call in which it was blocked, with what its descriptor is of.
    pub call: Option<String>,
    /// Wake-ups.
    pub count: u64,
    /// Time blocked until then, ns.
    pub blocked_ns: i64,
    /// The longest of that, ns.
    pub longest_ns: i64,
    /// Time until the woken threads had a CPU, ns.
    pub dispatch_ns: i64,
    /// How far it can be believed.
    pub mark: Mark,
}

/// Who wakes, in what call on what, and who is woken, in what call on what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PairKey {
    waker: WakerKind,
    waker_name: Name,
    waker_call: (Option<Name>, Option<FileKind>),
    name: Name,
    call: (Option<Name>, Option<FileKind>),
}

impl Key for PairKey {
    fn others(&self) -> Self {
        PairKey {
            waker: WakerKind::Unknown,
            waker_name: OTHERS.into(),
            waker_call: (None, None),
            name: OTHERS.into(),
            call: (None, None),
        }
    }
}

#[derive(Debug, Default)]
struct Sum {
    count: u64,
    blocked_ns: i64,
    longest_ns: i64,
    dispatch_ns: i64,
    mark: Mark,
}

/// Sums up pairs, in memory that does not grow with them.
#[derive(Debug, Default)]
pub(super) struct Pairs(Groups<MAX_PAIRS, PairKey, Sum>);

impl Pairs {
    pub(super) fn add(&mut self, r: WakePair) {
        let sum = self.0.entry(PairKey {
            waker: r.waker,
            waker_name: r.waker_name,
            waker_call: (r.waker_call, r.waker_file),
            name: r.name,
            call: (r.call, r.file),
        });
        sum.count += r.count.unsigned_abs();
        sum.blocked_ns += r.blocked_ns;
        sum.longest_ns = sum.longest_ns.max(r.longest_ns);
        sum.dispatch_ns += r.dispatch_ns;
        sum.mark = sum.mark.max(r.mark);
    }

    /// The most time first.
    pub(super) fn finish(self) -> Vec<Pair> {
        let pair = |(key, sum): (PairKey, Sum)| Pair {
            waker: key.waker,
            waker_name: key.waker_name.to_string(),
            waker_call: with_file(key.waker_call),
            name: key.name.to_string(),
            call: with_file(key.call),
            count: sum.count,
            blocked_ns: sum.blocked_ns,
            longest_ns: sum.longest_ns,
            dispatch_ns: sum.dispatch_ns,
            mark: sum.mark,
        };
        self.0.into_ranked(pair, |p| {
            let woken = (p.name.clone(), p.call.clone());
            (Reverse(p.blocked_ns), woken, p.waker_name.clone(), p.waker_call.clone())
        })
    }
}

fn with_file((call, file): (Option<Name>, Option<FileKind>)) -> Option<String> {
    let call = call?;
    Some(file.map_or_else(|| call.to_string(), |file| format!("{call} ({file})")))
}
