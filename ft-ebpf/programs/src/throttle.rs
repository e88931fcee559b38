//! Who is kept from the CPU by the quota of its group.
//!
//! No tracepoint tells. But when a thread leaves its CPU, the kernel's own structures say whether its group had none left; and when it
//! comes back, how long the queue of its group was kept from that CPU meanwhile (since Linux 6.6; before, until it came back). What is
//! known at the first moment waits for the second one. Of threads without a quota this costs a load or two.

use aya_ebpf::{helpers::bpf_probe_read_kernel_str_bytes, macros::map, maps::HashMap};
use ft_ebpf::{Throttle, kind, program};

use crate::{
    config,
    kernel::{DEAD, TaskStruct},
    lock::own,
    record::{header, lost, write},
};

/// A thread that has left its CPU.
#[repr(C)]
#[derive(Clone, Copy)]
struct Left {
    /// What is known by then.
    throttle: Throttle,
    /// Its queue, and for how long that had been kept from its CPU.
    queue: u64,
    queue_ns: u64,
}

/// By thread, which leaves with its return.
///
/// Limit: a further one is a loss of `throttle`, counted; who had the CPU is told to have been waited for.
/// Shown by: not shown.
#[map]
static THROTTLED: HashMap<u32, Left> = HashMap::with_max_entries(1 << 12, 0);

/// Levels of groups that are looked through for one that has no time left.
///
/// Limit: its name and numbers are null in `throttles`.
/// Shown by: not shown.
const MAX_LEVELS: usize = 8;

/// An observed thread leaves its CPU in this state.
#[inline(always)]
pub(crate) fn leaves(ts: u64, thread: TaskStruct, state: u32) {
    let Some(queue) = thread.queue() else { return };
    let throttled = match thread.is_throttled() {
        Some(throttled) => throttled,
        None => queue.field::<i32>(config::queue_throttles()) > 0,
    };
    let throttled = throttled && state == 0;
    let measures = config::queue_throttled_ns() != 0;
    // Where the kernel does not say it of threads, one that waits or sleeps may be kept from the CPU later.
    let may_be = config::task_throttled() == 0
        && measures
        && queue.field::<i32>(config::queue_has_quota()) != 0;
    if !throttled && !may_be || state & DEAD != 0 || !thread.is_ordinary() {
        return;
    }
    let mut left = Left {
        throttle: Throttle {
            header: header(ts, kind::THROTTLE, thread.tid()),
            left_ts: ts,
            since_ts: ts,
            tgid: thread.tgid(),
            flags: if throttled { Throttle::SINCE_LEFT } else { 0 },
            ..Throttle::default()
        },
        queue: queue.as_ptr() as u64,
        queue_ns: if measures { queue.field(config::queue_throttled_ns()) } else { 0 },
    };
    take_group(&mut left.throttle, thread, throttled);
    if own(|| THROTTLED.insert(thread.tid(), left, 0)).is_err() {
        lost(const { program::index("throttle") }, ts);
    }
}

/// A thread comes to a CPU.
#[inline(always)]
pub(crate) fn comes(ts: u64, thread: TaskStruct) {
    let Some(queue) = thread.queue() else { return };
    if !thread.is_ordinary() {
        return;
    }
    // A queue that never was kept from its CPU has no such threads.
    let measures = config::queue_throttled_ns() != 0;
    if measures && queue.field::<u64>(config::queue_throttled_ns()) == 0 || thread.tid() == 0 {
        return;
    }
    let Some(left) = THROTTLED.get_ptr_mut(thread.tid()) else { return };
    // SAFETY: only the CPU that a thread leaves or comes to looks at its entry.
    let left = unsafe { &mut *left };
    let throttle = &mut left.throttle;
    let away = ts.saturating_sub(throttle.left_ts);
    if measures && left.queue == queue.as_ptr() as u64 {
        let queue_ns: u64 = queue.field(config::queue_throttled_ns());
        throttle.ns = queue_ns.saturating_sub(left.queue_ns);
        throttle.flags |= Throttle::MEASURED;
        if throttle.ns > away {
            throttle.ns = away;
        }
    } else if throttle.flags & Throttle::SINCE_LEFT != 0 {
        throttle.ns = away;
    }
    if throttle.flags & Throttle::SINCE_LEFT == 0 {
        // It had waited for others before that.
        throttle.since_ts = ts.saturating_sub(throttle.ns);
    }
    if throttle.ns > 0 {
        throttle.header = header(ts, kind::THROTTLE, thread.tid());
        write(const { program::index("throttle") }, ts, || *throttle);
    }
    let _ = own(|| THROTTLED.remove(thread.tid()));
}

/// Takes which group's quota it is: the innermost that has no time left; of a thread that still may run, its own.
#[inline(always)]
fn take_group(throttle: &mut Throttle, thread: TaskStruct, throttled: bool) {
    let Some(mut queue) = thread.pointer(config::task_queue()) else { return };
    let mut parent = thread.pointer(config::task_parent());
    if throttled {
        for _ in 0..MAX_LEVELS {
            if queue.probe::<u32>(config::queue_throttled()).unwrap_or(0) != 0 {
                break;
            }
            let Some(entity) = parent else { return };
            let Some(above) = entity.pointer(config::entity_queue()) else { return };
            (queue, parent) = (above, entity.pointer(config::entity_parent()));
        }
    }
    let Some(group) = queue.pointer(config::queue_group()) else { return };
    throttle.quota_ns = group.probe(config::group_quota()).unwrap_or(0);
    throttle.period_ns = group.probe(config::group_period()).unwrap_or(0);
    let Some(node) = group
        .pointer(config::group_cgroup())
        .and_then(|cgroup| cgroup.pointer(config::cgroup_node()))
    else {
        return;
    };
    throttle.cgroup = node.probe(config::node_id()).unwrap_or(0);
    let Some(name) = node.pointer(config::node_name()) else { return };
    // SAFETY: the helper checks the source.
    let _ = unsafe { bpf_probe_read_kernel_str_bytes(name.as_ptr(), &mut throttle.name) };
}
