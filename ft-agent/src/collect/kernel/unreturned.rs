//! What has begun and not ended: what the programs keep of it is what would be recorded.
//!
//! It is kept by the number of the thread and not in the task's storage (`BPF_MAP_TYPE_TASK_STORAGE`, 5.11): that cannot be walked,
//! so the end of a recording would need an iterator program or a pidfd of each thread (6.9), and 5.10 the tables as well. A number is
//! as good where each of its changes is seen (`number.rs` of the programs), and a call returns only from the process that entered it.
//!
//! A recording ends in the kernel first: what returned between two readings, of the rings and of these tables, would be in neither.
//! So a byte that all programs read says that nothing is recorded any more.
//!
//! # What the kernel does with calls and numbers of threads
//!
//! Linux 5.10 to 7.3: kernel/entry/common.c, fs/exec.c, kernel/exit.c. `tests/kernel_programs/under_way.rs` does exec, exit, seccomp
//! and calls of 32 bits.
//!
//! | what | tracepoints of calls | thread, and its state | what is recorded |
//! |---|---|---|---|
//! | a new thread, a child | its first is a return | `sched_process_fork` before it runs | `return`; whatever was kept of its number goes |
//! | `execve` by the first thread | entry, return | the same | whole |
//! | `execve` by another thread | entry under its number, return under the first one's, which has exited before | `sched_process_exec` has both numbers; no switch between them | whole, under the former number, whose thread ends there; a `return` of the latter, whose thread begins there |
//! | `exit`, a deadly signal | entry without return, or none | `sched_process_exit`; since 6.16 before the memory is given back, so page faults follow it; the last switch is in `X` | `entry`, until then |
//! | denied by seccomp (error, trap, a tracer's choice), or emulated by a tracer (`PTRACE_SYSEMU`) | return without entry | runs on | whole, of no length, once the thread was seen between two calls; the first return of a thread stays one that was under way |
//! | `SECCOMP_RET_USER_NOTIF` | return without entry, or both if the supervisor lets it go on | sleeps before the entry | the sleep is outside of calls |
//! | dispatched to user space (`PR_SET_SYSCALL_USER_DISPATCH`), killed by seccomp | none | a signal | nothing |
//! | stopped by a tracer at a call | the stops lie before the entry and behind the return | `t` | outside of the call |
//! | interrupted by a signal without a handler | return with -516, then `restart_syscall`, entry and return | | two rows, one wait |
//! | frozen by the freezer of cgroup version 1, or for suspend | none | until 6.0 `D`, since 6.1 a bit of its own (0x8000), shown as `D`; version 2 sleeps in `S` | blocked |
//! | a call of 32 bits | both, with numbers of that ABI | | with the name in that ABI |
//! | work that a call leaves behind (the last `close` of a file) | behind the return | runs | outside of the call |

use std::mem::offset_of;

use aya::Pod;
use aya::maps::{HashMap, Map, MapData, MapError};
use ft_ebpf::{Chain, Contention, Futex, PageFault, Record, Syscall, read};
use ft_trace::spool::frame::kernel_record_len;

use super::Group;

/// The map that has waits for locks of the kernel, by lock and waiter.
pub(super) const WAITS: &str = "WAITS";

/// The map that has where threads were.
pub(super) const PLACES: &str = "PLACES";

/// The map that has it where entries must be made beforehand, and how many: 45 MiB.
pub(super) const PLACES_MADE: &str = "PLACES_MADE";
pub(super) const MADE: u32 = 8192;

/// All tables of what is under way, by lock and waiter or by thread: the last two are of threads off the CPU, whose chain waits
/// for their return, and of softirqs that can be preempted.
pub(super) const TABLES: [&str; 6] = ["FUTEX_CALLS", WAITS, "CALLS", "FAULTS", PLACES, "SOFTIRQS"];

/// What the programs keep behind the room for a chain (`Place`, ft-ebpf/programs/src/chain.rs).
const OWN_BYTES: usize = size_of::<u64>();

/// A wait with room for its chain, as the programs keep it.
const WAIT_BYTES: usize =
    size_of::<Contention>() + size_of::<u64>() * (Chain::MAX_USER + Chain::MAX_KERNEL) + OWN_BYTES;

/// What one of the maps holds: by thread, or by lock and waiter.
pub(super) struct Kept {
    pub(super) group: Group,
    pub(super) map: &'static str,
    append: fn(&Map, Until, &mut Vec<u8>) -> Result<(), MapError>,
}

/// Until when it has gone on.
#[derive(Clone, Copy)]
pub(super) struct Until {
    /// CLOCK_MONOTONIC, ns.
    pub(super) ns: u64,
    /// Who is off the CPU for less has no chain.
    pub(super) stack_min_ns: u64,
}

/// A place with room for its chain, as the programs keep it.
const PLACE_BYTES: usize = size_of::<Chain>() + Chain::MAX_TAIL + OWN_BYTES;

/// All of them.
pub(super) const UNDER_WAY: [Kept; 5] = [
    Kept {
        group: Group::Futex,
        map: "FUTEX_CALLS",
        append: |map, until, out| {
            let goes_on = |call: Futex| call.flags & Futex::UNFINISHED != 0;
            until_now::<u32, Futex, { size_of::<Futex>() }>(map, until, out, goes_on)
        },
    },
    Kept {
        group: Group::Lock,
        map: WAITS,
        append: |map, until, out| {
            let goes_on = |wait: Contention| wait.flags & Contention::UNFINISHED != 0;
            until_now::<[u64; 2], Contention, WAIT_BYTES>(map, until, out, goes_on)
        },
    },
    Kept {
        group: Group::Syscall,
        map: "CALLS",
        append: |map, until, out| {
            let goes_on = |call: Syscall| call.entry_ts != 0;
            until_now::<u32, Syscall, { size_of::<Syscall>() }>(map, until, out, goes_on)
        },
    },
    Kept {
        group: Group::Fault,
        map: "FAULTS",
        append: |map, _, out| {
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
    Kept {
        group: Group::Stack,
        map: PLACES,
        append: |map, until, out| {
            for mut place in records::<u32, PLACE_BYTES>(map)? {
                // The kernel's addresses are taken when it comes back: those are of the time before.
                place[offset_of!(Chain, kernel)..][..size_of::<i32>()].fill(0);
                append_until(&place, until, out, |place: Chain| {
                    let away = until.ns.saturating_sub(place.left_ts);
                    place.left_ts != 0 && away >= until.stack_min_ns
                });
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
    pub(super) fn append(
        &self,
        map: Option<&Map>,
        until: Until,
        out: &mut Vec<u8>,
    ) -> Result<(), MapError> {
        let missing = || MapError::InvalidName { name: self.map.to_owned() };
        (self.append)(map.ok_or_else(missing)?, until, out)
    }
}

/// The threads of which a table by thread has an entry; none of a table that there is not.
pub(super) fn threads(table: &'static str, map: Option<&Map>) -> Vec<u32> {
    fn keys<const BYTES: usize>(map: &Map) -> Option<Vec<u32>> {
        let entries: HashMap<&MapData, u32, [u8; BYTES]> = map.try_into().ok()?;
        Some(entries.keys().filter_map(Result::ok).collect())
    }
    let Some(map) = map else { return Vec::new() };
    let keys = match table {
        "CALLS" => keys::<{ size_of::<Syscall>() }>(map),
        "FUTEX_CALLS" => keys::<{ size_of::<Futex>() }>(map),
        "FAULTS" => keys::<{ 2 * size_of::<PageFault>() }>(map),
        PLACES => keys::<PLACE_BYTES>(map),
        _ => None,
    };
    keys.unwrap_or_default()
}

/// Appends the records of what goes on.
fn until_now<K: Pod, T: Record, const BYTES: usize>(
    map: &Map,
    until: Until,
    out: &mut Vec<u8>,
    goes_on: impl Fn(T) -> bool,
) -> Result<(), MapError> {
    for kept in records::<K, BYTES>(map)? {
        append_until(&kept, until, out, &goes_on);
    }
    Ok(())
}

/// Appends the record of something, if it goes on. It begins with its time, which is until when that is known.
fn append_until<T: Record>(
    kept: &[u8],
    until: Until,
    out: &mut Vec<u8>,
    goes_on: impl Fn(T) -> bool,
) {
    // There may be room for more addresses than it has.
    let length = kernel_record_len(kept).filter(|_| read::<T>(kept).is_some_and(goes_on));
    if let Some(rest) = length.and_then(|length| kept.get(size_of_val(&until.ns)..length)) {
        out.extend_from_slice(&until.ns.to_ne_bytes());
        out.extend_from_slice(rest);
    }
}

/// The values of a map, in which nothing changes once the recording has ended.
fn records<K: Pod, const BYTES: usize>(
    map: &Map,
) -> Result<impl Iterator<Item = [u8; BYTES]>, MapError> {
    let entries: HashMap<&MapData, K, [u8; BYTES]> = map.try_into()?;
    let values: Vec<_> = entries.iter().filter_map(|entry| entry.ok().map(|(_, v)| v)).collect();
    Ok(values.into_iter())
}
