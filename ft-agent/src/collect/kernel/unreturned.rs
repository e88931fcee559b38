//! What has begun and not ended: what the programs keep of it is what would be recorded.

use aya::Pod;
use aya::maps::{HashMap, Map, MapData, MapError};
use ft_ebpf::{Chain, Contention, Futex, PageFault, Record, Syscall, read};
use ft_trace::spool::frame::kernel_record_len;

use super::Group;
use crate::clock::monotonic_ns;

/// The map that has waits for locks of the kernel, by lock and waiter.
pub(super) const WAITS: &str = "WAITS";

/// All tables of what is under way, by lock and waiter or by thread: the last two are of threads off the CPU, whose chain waits
/// for their return, and of softirqs that can be preempted.
pub(super) const TABLES: [&str; 6] =
    ["FUTEX_CALLS", WAITS, "CALLS", "FAULTS", "PLACES", "SOFTIRQS"];

/// A wait with room for its chain, as the programs keep it.
const WAIT_BYTES: usize =
    size_of::<Contention>() + size_of::<u64>() * (Chain::MAX_USER + Chain::MAX_KERNEL);

/// What one of the maps holds: by thread, or by lock and waiter.
pub(super) struct Kept {
    pub(super) group: Group,
    pub(super) map: &'static str,
    append: fn(&Map, &mut Vec<u8>) -> Result<(), MapError>,
}

/// All of them.
pub(super) const UNDER_WAY: [Kept; 4] = [
    Kept {
        group: Group::Futex,
        map: "FUTEX_CALLS",
        append: |map, out| {
            let goes_on = |call: Futex| call.flags & Futex::UNFINISHED != 0;
            until_now::<u32, Futex, { size_of::<Futex>() }>(map, out, goes_on)
        },
    },
    Kept {
        group: Group::Lock,
        map: WAITS,
        append: |map, out| {
            let goes_on = |wait: Contention| wait.flags & Contention::UNFINISHED != 0;
            until_now::<[u64; 2], Contention, WAIT_BYTES>(map, out, goes_on)
        },
    },
    Kept {
        group: Group::Syscall,
        map: "CALLS",
        append: |map, out| {
            let goes_on = |call: Syscall| call.entry_ts != 0;
            until_now::<u32, Syscall, { size_of::<Syscall>() }>(map, out, goes_on)
        },
    },
    Kept {
        group: Group::Fault,
        map: "FAULTS",
        append: |map, out| {
            // One of user space and one of the kernel's, of which only the former has a record without its end.
            let faults = records::<u32, { 2 * size_of::<PageFault>() }>(map)?;
            for fault in faults {
                if read::<PageFault>(&fault).is_some_and(|fault| fault.header.ts != 0) {
                    out.extend_from_slice(&fault[..size_of::<PageFault>()]);
                }
            }
            Ok(())
        },
    },
];

impl Kept {
    /// Appends the records.
    ///
    /// # Errors
    ///
    /// When the map cannot be read.
    pub(super) fn append(&self, map: Option<&Map>, out: &mut Vec<u8>) -> Result<(), MapError> {
        let missing = || MapError::InvalidName { name: self.map.to_owned() };
        (self.append)(map.ok_or_else(missing)?, out)
    }
}

/// Appends the records of what goes on, whose time is now.
fn until_now<K: Pod, T: Record, const BYTES: usize>(
    map: &Map,
    out: &mut Vec<u8>,
    goes_on: fn(T) -> bool,
) -> Result<(), MapError> {
    let now = (monotonic_ns() as u64).to_ne_bytes();
    for kept in records::<K, BYTES>(map)? {
        // There may be room for more addresses than it has.
        let length = kernel_record_len(&kept).filter(|_| read::<T>(&kept).is_some_and(goes_on));
        if let Some(rest) = length.and_then(|length| kept.get(now.len()..length)) {
            // It begins with its time.
            out.extend_from_slice(&now);
            out.extend_from_slice(rest);
        }
    }
    Ok(())
}

/// The values of a map. Entries come and go meanwhile; one that cannot be read has gone.
fn records<K: Pod, const BYTES: usize>(
    map: &Map,
) -> Result<impl Iterator<Item = [u8; BYTES]>, MapError> {
    let entries: HashMap<&MapData, K, [u8; BYTES]> = map.try_into()?;
    let values: Vec<_> = entries.iter().filter_map(|entry| entry.ok().map(|(_, v)| v)).collect();
    Ok(values.into_iter())
}
