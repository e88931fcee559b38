//! Calls about futexes that have begun and not ended: what the programs keep of them is what would be recorded.

use aya::maps::{HashMap, Map, MapData, MapError};
use ft_ebpf::{Futex, read};

use crate::clock::monotonic_ns;

/// The map that has them, by thread.
pub(super) const MAP: &str = "FUTEX_CALLS";

/// Appends their records, whose time is now.
///
/// # Errors
///
/// When the map cannot be read.
pub(super) fn append(map: Option<&Map>, out: &mut Vec<u8>) -> Result<(), MapError> {
    let map = map.ok_or_else(|| MapError::InvalidName { name: MAP.to_owned() })?;
    let calls = HashMap::<&MapData, u32, [u8; size_of::<Futex>()]>::try_from(map)?;
    let now = (monotonic_ns() as u64).to_ne_bytes();
    // Entries come and go meanwhile; one that cannot be read has gone.
    for mut call in calls.iter().filter_map(|entry| entry.ok().map(|(_, call)| call)) {
        let is_unfinished = |call: Futex| call.flags & Futex::UNFINISHED != 0;
        if read::<Futex>(&call).is_some_and(is_unfinished) {
            // The record begins with its time.
            call[..now.len()].copy_from_slice(&now);
            out.extend_from_slice(&call);
        }
    }
    Ok(())
}
