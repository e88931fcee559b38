//! Group `lock`: waits for kernel locks.
//!
//! A wait is known by its lock and its waiter. A mutex can announce one wait twice (when it stops to spin
//! and sleeps): the first time counts. Our own maps and our record ring have locks, too; waits for those are left out.
//!
//! The call chain is taken at the begin, in time that is waited away; at the end the lock is held, and others wait for it.
//! To walk the kernel's stack takes the most of it: without the group `stack` only so far as to who wanted the lock.
//!
//! What the kernel does not announce is not here: who waits for a spinlock alone, by its pending bit (kernel/locking/qspinlock.c), and
//! who spins for a semaphore of readers and writers (`rwsem_optimistic_spin`, kernel/locking/rwsem.c).

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_get_smp_processor_id, generated::bpf_get_stack},
    macros::{btf_tracepoint, map},
    maps::{HashMap, PerCpuArray},
    programs::BtfTracePointContext,
};
use ft_ebpf::{Contention, OWN_THREADS, kind, program};

use crate::{
    chain::{ADDRESSES, Head, Place},
    config,
    filter::current,
    maps::add,
    record::{header, lost, now, write},
};

/// One wait.
#[repr(C)]
#[derive(Clone, Copy)]
struct Key {
    lock: u64,
    /// Thread id; idle tasks, which share the id 0, are told apart by their CPU in the high half.
    waiter: u64,
}

impl Head for Contention {
    #[inline(always)]
    fn counts(&self) -> (i32, i32) {
        (self.user.into(), self.kernel.into())
    }

    #[inline(always)]
    fn stack(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn set_user(&mut self, n: i32) {
        self.user = n.max(0) as u8;
    }

    #[inline(always)]
    fn set_kernel(&mut self, n: i32) {
        self.kernel = n.max(0) as u8;
    }
}

/// A wait with its chain.
type Wait = Place<Contention, ADDRESSES>;

/// Waits that go on, as they would be recorded if they never ended; the agent reads them in the end. One whose end is not
/// seen keeps its entry. Entries are made beforehand, and the last that became free on a CPU is its next one, which is still
/// in its cache; an LRU map would take the one that was used longest ago.
///
/// Limit: a further one is a loss of `contention_begin`, counted; its end is `end-only`, which the report counts.
/// Shown by: `what_is_under_way_beyond_its_table_is_counted`.
#[map]
static WAITS: HashMap<Key, Wait> = HashMap::with_max_entries(8_192, 0);

/// `LCB_F_MUTEX` (include/trace/events/lock.h).
const MUTEX: u32 = 32;

/// A wait while it is made.
#[map]
static BEGUN: PerCpuArray<Wait> = PerCpuArray::with_max_entries(1, 0);

/// How many of our programs are in [`own`] on this CPU, by the remainder of their threads' numbers. Where tracepoints can be
/// preempted, other threads have the CPU meanwhile: their waits are not ours, and their programs need not end in the order in
/// which they began. So each takes off what it has added, and no more.
#[map]
static OWN: PerCpuArray<[u64; OWN_THREADS]> = PerCpuArray::with_max_entries(1, 0);

/// How many waits were left out as our own.
#[map]
static OWN_WAITS: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// The count of the current thread, or of the one that an interrupt struck; `None`: nobody asks.
#[inline(always)]
fn own_count() -> Option<*mut u64> {
    if config::locks() == 0 {
        return None;
    }
    let counts = OWN.get_ptr_mut(0)?.cast::<u64>();
    // SAFETY: the index is within the array.
    Some(unsafe { counts.add(current().tid as usize % OWN_THREADS) })
}

/// Does what may wait for a lock of our own maps or ring buffers. Such a wait is not recorded: that would take the same lock.
#[inline(always)]
pub(crate) fn own<R>(work: impl FnOnce() -> R) -> R {
    let count = own_count();
    if let Some(count) = count {
        // SAFETY: a word of this CPU's, which the program does not leave.
        unsafe { add(count, 1) };
    }
    let done = work();
    if let Some(count) = count {
        // SAFETY: the same.
        unsafe { add(count, -1) };
    }
    done
}

/// Whether the current thread is in [`own`].
#[inline(always)]
pub(crate) fn is_own() -> bool {
    // SAFETY: a word of this CPU's.
    own_count().is_some_and(|count| unsafe { count.read_volatile() } != 0)
}

#[inline(always)]
fn key(lock: u64, tid: u32) -> Key {
    // SAFETY: the helper takes nothing and only returns a number.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let waiter = if tid == 0 { u64::from(cpu + 1) << 32 } else { u64::from(tid) };
    Key { lock, waiter }
}

/// Remembers a wait that begins.
#[inline(always)]
fn begins(ctx: &BtfTracePointContext, key: Key, tid: u32, tgid: u32) {
    let Some(place) = BEGUN.get_ptr_mut(0) else { return };
    // SAFETY: the slot is this CPU's, and the kernel runs no program within itself.
    let place = unsafe { &mut *place };
    let ts = now();
    place.head = Contention {
        header: header(ts, kind::CONTENTION, tid),
        entry_ts: ts,
        lock: key.lock,
        flags: ctx.arg::<u32>(1) as u16 & Contention::OF_KERNEL | Contention::UNFINISHED,
        user: 0,
        kernel: 0,
        tgid,
    };
    if config::stacks() != 0 {
        place.take_user(ctx);
    }
    place.take_kernel(|to, bytes| {
        let bytes = if config::stacks() != 0 { bytes } else { 8 * Contention::NEAREST as u32 };
        // SAFETY: there is room for `bytes`.
        unsafe { bpf_get_stack(ctx.as_ptr(), to.cast(), bytes, 0) }
    });
    if WAITS.insert(key, &*place, 0).is_err() {
        lost(const { program::index("contention_begin") }, ts);
    }
}

/// `(void *lock, unsigned int flags)`.
#[btf_tracepoint(function = "contention_begin")]
fn contention_begin(ctx: BtfTracePointContext) -> i32 {
    let waiter = current();
    if !waiter.is_observed() {
        return 0;
    }
    if is_own() {
        if let Some(waits) = OWN_WAITS.get_ptr_mut(0) {
            // SAFETY: a word of this CPU's.
            unsafe { add(waits, 1) };
        }
        return 0;
    }
    let key = key(ctx.arg(0), waiter.tid);
    own(|| {
        // What announces no wait twice has one here whose end was not seen.
        if ctx.arg::<u32>(1) & MUTEX == 0 || WAITS.get_ptr(key).is_none() {
            begins(&ctx, key, waiter.tid, waiter.tgid);
        }
    });
    0
}

/// `(void *lock, int ret)`.
#[btf_tracepoint(function = "contention_end")]
fn contention_end(ctx: BtfTracePointContext) -> i32 {
    let waiter = current();
    if is_own() || !waiter.is_observed() {
        return 0;
    }
    let (key, ts) = (key(ctx.arg(0), waiter.tid), now());
    let program = const { program::index("contention_end") };
    let failed = if ctx.arg::<i32>(1) == 0 { 0 } else { Contention::FAILED };
    let header = header(ts, kind::CONTENTION, waiter.tid);
    own(|| match WAITS.get_ptr_mut(key) {
        Some(place) => {
            // SAFETY: only this waiter inserts and removes its entry.
            let place = unsafe { &mut *place };
            place.head.header = header;
            place.head.flags = place.head.flags & Contention::OF_KERNEL | failed;
            place.write(program, ts, false);
            let _ = WAITS.remove(key);
        }
        None => write(program, ts, || Contention {
            header,
            entry_ts: ts,
            lock: key.lock,
            flags: Contention::NO_BEGIN,
            user: 0,
            kernel: 0,
            tgid: waiter.tgid,
        }),
    });
    0
}
