//! Group `lock`: waits for kernel locks.
//!
//! A wait is known by its lock and its waiter. A mutex can announce one wait twice (when it stops to spin
//! and sleeps): the first time counts. Our own record ring has a lock, too; waits for that are left out.

use aya_ebpf::{
    bindings::BPF_NOEXIST,
    helpers::bpf_get_smp_processor_id,
    macros::{btf_tracepoint, map},
    maps::{LruHashMap, PerCpuArray},
    programs::BtfTracePointContext,
};
use ft_ebpf::{Contention, kind, program};

use crate::{
    filter::current,
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

/// Its beginning.
#[repr(C)]
#[derive(Clone, Copy)]
struct Begin {
    ts: u64,
    flags: u64,
}

/// Waits that go on. A thread that dies in one leaves its entry, which the newer ones displace.
#[map]
static WAITS: LruHashMap<Key, Begin> = LruHashMap::with_max_entries(16_384, 0);

/// How deep this CPU is in [`crate::record::write`].
#[map]
static SUSPENDED: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

#[inline(always)]
fn add_suspended(delta: u64) {
    if let Some(depth) = SUSPENDED.get_ptr_mut(0) {
        // SAFETY: the slot is this CPU's; whoever interrupts this restores the depth before it returns.
        unsafe { *depth = (*depth).wrapping_add(delta) };
    }
}

/// From here on, this CPU's waits are our own.
#[inline(always)]
pub(crate) fn suspend() {
    add_suspended(1);
}

/// Ends what [`suspend`] began.
#[inline(always)]
pub(crate) fn resume() {
    add_suspended(u64::MAX);
}

#[inline(always)]
fn suspended() -> bool {
    // SAFETY: as in `add_suspended`.
    SUSPENDED.get_ptr(0).is_some_and(|depth| unsafe { *depth } != 0)
}

#[inline(always)]
fn key(lock: u64, tid: u32) -> Key {
    // SAFETY: the helper takes nothing and only returns a number.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let waiter = if tid == 0 { u64::from(cpu + 1) << 32 } else { u64::from(tid) };
    Key { lock, waiter }
}

/// `(void *lock, unsigned int flags)`.
#[btf_tracepoint(function = "contention_begin")]
fn contention_begin(ctx: BtfTracePointContext) -> i32 {
    let waiter = current();
    if suspended() || !waiter.is_observed() {
        return 0;
    }
    let begin = Begin { ts: now(), flags: u64::from(ctx.arg::<u32>(1)) };
    let key = key(ctx.arg(0), waiter.tid);
    if let Err(error) = WAITS.insert(key, begin, u64::from(BPF_NOEXIST)) {
        const EEXIST: i32 = -17;
        if error != EEXIST {
            lost(const { program::index("contention_begin") }, begin.ts);
        }
    }
    0
}

/// `(void *lock, int ret)`.
#[btf_tracepoint(function = "contention_end")]
fn contention_end(ctx: BtfTracePointContext) -> i32 {
    let waiter = current();
    if suspended() || !waiter.is_observed() {
        return 0;
    }
    let key = key(ctx.arg(0), waiter.tid);
    let Some(begin) = WAITS.get_ptr(key) else { return 0 };
    // SAFETY: only this waiter inserts and removes its entry.
    let Begin { ts: entry_ts, flags } = unsafe { *begin };
    let _ = WAITS.remove(key);
    let ts = now();
    write(const { program::index("contention_end") }, ts, || Contention {
        header: header(ts, kind::CONTENTION, waiter.tid),
        entry_ts,
        lock: key.lock,
        flags: flags as u32,
        tgid: waiter.tgid,
    });
    0
}
