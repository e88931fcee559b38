//! Waits for locks without the kernel's records: how long threads waited for which, and nothing of why.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use super::group::bounded;
use super::role::{Role, role};
use crate::sections::Input;
use ft_trace::store::Result;
use ft_trace::tables::LockWait;

/// Waits of threads of one role for one lock.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LockSum {
    /// Who waited.
    pub who: Role,
    /// Name of the lock, or its address.
    pub name: String,
    /// What kind of lock it is.
    pub kind: String,
    /// Number of waits.
    pub waits: u64,
    /// Their sum, ns.
    pub ns: i64,
    /// The longest, ns.
    pub longest_ns: i64,
}

/// Those of a trace, most first. What has no room is in the report `waits` alone.
pub(super) fn waits(input: Input<'_>) -> Result<Vec<LockSum>> {
    let mut sums = HashMap::new();
    input.rows(|row: LockWait| {
        let key = (role(&row.comm).to_owned(), row.pid, row.lock);
        let Some(sum): Option<&mut LockSum> = bounded(&mut sums, key) else { return };
        sum.who.add(&row.comm, Some(row.pid.0), Some(row.tid.0));
        (sum.name, sum.kind) = (row.lock_name.to_string(), row.kind.to_string());
        sum.waits += 1;
        sum.ns += row.dur;
        sum.longest_ns = sum.longest_ns.max(row.dur);
    })?;
    let mut sums: Vec<LockSum> = sums.into_values().collect();
    sums.sort_by_key(|sum| (Reverse(sum.ns), sum.name.clone(), sum.who.name.clone()));
    Ok(sums)
}
