//! Waits by what of the application they delayed.

use std::cmp::Reverse;

use serde::Serialize;

use super::waits::{Sums, Waits};
use super::{MAX_KERNEL_GROUPS, label};
use crate::stats::{Groups, Key, OTHERS};
use ft_trace::ids::Name;
use ft_trace::tables::KernelLockWait;

/// What of the application was delayed.
#[derive(Clone, Debug, Serialize)]
pub struct Delayed {
    /// The lock that was held, or the request.
    pub name: String,
    /// Where it was acquired; empty of a request.
    pub place: String,
    /// Waits in it.
    #[serde(flatten)]
    pub waits: Waits,
    /// The longest part of that time was waited for this lock of the kernel.
    pub mostly: String,
    /// How long, ns.
    pub mostly_ns: i64,
}

/// Name and place of what was delayed.
type DelayedKey = (Name, Name);

impl Key for DelayedKey {
    fn others(&self) -> Self {
        (OTHERS.into(), "".into())
    }
}

#[derive(Debug, Default)]
struct OfDelayed {
    sums: Sums,
    locks: Groups<64, Name, i64>,
}

impl OfDelayed {
    fn add(&mut self, r: &KernelLockWait) {
        self.sums.add(r);
        *self.locks.entry(format!("{} {}", r.kind, label(r)).into()) += r.dur;
    }

    fn delayed(mut self, (name, place): DelayedKey) -> Delayed {
        let mut locks =
            self.locks.into_ranked(|lock| lock, |(name, ns)| (Reverse(*ns), name.clone()));
        let (mostly, mostly_ns) = locks.drain(..).next().unwrap_or_default();
        Delayed {
            name: name.to_string(),
            place: place.to_string(),
            waits: self.sums.waits(),
            mostly: mostly.to_string(),
            mostly_ns,
        }
    }
}

/// Sums up waits by what they delayed.
#[derive(Debug, Default)]
pub(super) struct Delays(Groups<MAX_KERNEL_GROUPS, DelayedKey, OfDelayed>);

impl Delays {
    pub(super) fn add(&mut self, name: &Name, place: Option<&Name>, r: &KernelLockWait) {
        let place = place.cloned().unwrap_or_else(|| "".into());
        self.0.entry((name.clone(), place)).add(r);
    }

    /// The most time first.
    pub(super) fn finish(self) -> Vec<Delayed> {
        self.0.into_ranked(
            |(key, sums)| sums.delayed(key),
            |d| (Reverse(d.waits.total_ns), d.name.clone(), d.place.clone()),
        )
    }
}
