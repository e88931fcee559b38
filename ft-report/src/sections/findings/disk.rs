//! Who else a disk has served while threads waited for it.

use super::role::Role;
use super::{Finding, Kind};
use ft_trace::tables::PathKind;

/// What a disk does for another one is told if it is at least one in so much of what it does for these.
const AS_MUCH_ONE_IN: i64 = 4;

/// For how long the threads of a finding, or those behind it, waited for a disk, ns.
fn on_disk(finding: &Finding) -> i64 {
    let did = finding.behind.iter().flat_map(|behind| &behind.did);
    did.filter(|did| did.kind == PathKind::Device && did.culprit.as_deref() == Some(BLOCK))
        .map(|did| did.ns)
        .sum()
}

/// Interrupt that ends what a disk was asked for.
pub(super) const BLOCK: &str = "BLOCK";

/// Those that a disk has served most while it let the threads of a finding wait, and where they were.
pub(super) fn shared(finding: &Finding, all: &[Finding]) -> Option<(Role, Vec<String>)> {
    let waits = |f: &Finding| matches!(f.kind, Kind::Sync | Kind::File | Kind::Fault);
    let own = on_disk(finding);
    if !waits(finding) || 2 * own < finding.lost_ns {
        return None;
    }
    let others = all.iter().filter(|f| waits(f) && !f.who.is_like(&finding.who));
    let most = others.max_by_key(|f| on_disk(f))?;
    (on_disk(most) > own / AS_MUCH_ONE_IN).then(|| (most.who.clone(), most.at.clone()))
}
