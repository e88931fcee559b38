//! Group `stack`: where in the code a thread left the CPU, and where in the code who woke it was.
//!
//! The addresses of user space are those that frame pointers lead to; they can be had only of the thread that runs, so
//! they are taken when it leaves the CPU, and wait in its [`Place`]. Only when it comes back is it known how long it was
//! away. Then the kernel's part is taken, of a stack that has not changed meanwhile: what was away for less than
//! `CHAIN_MIN_NS` costs neither that nor a record.

use aya_ebpf::{
    EbpfContext,
    bindings::{BPF_F_NO_PREALLOC, BPF_F_USER_STACK},
    helpers::generated::{bpf_get_stack, bpf_get_task_stack},
    macros::{btf_tracepoint, map},
    maps::{HashMap, PerCpuArray},
    programs::BtfTracePointContext,
};
use ft_ebpf::{Chain, kind, program};

use crate::{
    config,
    filter::{current, ended},
    kernel::TaskStruct,
    lock::own,
    record::{header, lost, now, write_bytes},
};

const USER_BYTES: u32 = 8 * Chain::MAX_USER as u32;
const KERNEL_BYTES: u32 = 8 * Chain::MAX_KERNEL as u32;

/// What a chain belongs to: a record that says how many addresses follow it.
pub(crate) trait Head {
    /// How many of user space, and of the kernel; less than 0: none could be had.
    fn counts(&self) -> (i32, i32);
    /// Sets how many of user space.
    fn set_user(&mut self, n: i32);
    /// Sets how many of the kernel.
    fn set_kernel(&mut self, n: i32);
}

impl Head for Chain {
    #[inline(always)]
    fn counts(&self) -> (i32, i32) {
        (self.user, self.kernel)
    }

    #[inline(always)]
    fn set_user(&mut self, n: i32) {
        self.user = n;
    }

    #[inline(always)]
    fn set_kernel(&mut self, n: i32) {
        self.kernel = n;
    }
}

/// A record as it is written, with room for the longest chain.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Place<H = Chain> {
    pub(crate) head: H,
    addresses: [u64; Chain::MAX_USER + Chain::MAX_KERNEL],
}

/// What threads were at when they left the CPU; `left_ts` is 0 while one has it.
#[map]
static PLACES: HashMap<u32, Place> = HashMap::with_max_entries(1 << 16, BPF_F_NO_PREALLOC);

/// The same in fewer entries that are made beforehand. An entry is needed while the lock of a run queue is held. Before Linux 6.1 it
/// would come from an allocator that may wake a thread, which takes such a lock.
#[map]
static PLACES_MADE: HashMap<u32, Place> = HashMap::with_max_entries(1, 0);

#[inline(always)]
fn places() -> &'static HashMap<u32, Place> {
    if config::places_are_made() != 0 { &PLACES_MADE } else { &PLACES }
}

/// How a new place begins.
#[map]
static BLANK: PerCpuArray<Place> = PerCpuArray::with_max_entries(1, 0);

/// The chain of a waker, while it is made.
#[map]
static WAKER: PerCpuArray<Place> = PerCpuArray::with_max_entries(1, 0);

impl<H: Head> Place<H> {
    /// Takes the addresses of the current task in user space.
    #[inline(always)]
    pub(crate) fn take_user(&mut self, ctx: &impl EbpfContext) {
        let to = self.addresses.as_mut_ptr().cast();
        // SAFETY: `USER_BYTES` are not more than there is room for.
        let n = unsafe { bpf_get_stack(ctx.as_ptr(), to, USER_BYTES, u64::from(BPF_F_USER_STACK)) };
        self.head.set_user(if n < 0 { n as i32 } else { n as i32 / 8 });
    }

    /// Takes the addresses of the kernel with `take`, which is told where to write [`KERNEL_BYTES`], behind those of user
    /// space.
    #[inline(always)]
    pub(crate) fn take_kernel(&mut self, take: impl FnOnce(*mut u8, u32) -> i64) {
        let user = masked(self.head.counts().0);
        // SAFETY: behind at most `MAX_USER` addresses there is room for `MAX_KERNEL`.
        let to = unsafe { self.addresses.as_mut_ptr().add(user) };
        let n = take(to.cast(), KERNEL_BYTES);
        self.head.set_kernel(if n < 0 { n as i32 } else { n as i32 / 8 });
    }

    /// Writes the record.
    #[inline(always)]
    pub(crate) fn write(&mut self, program: u32, ts: u64) {
        let (user, kernel) = self.head.counts();
        let (user, kernel) = (masked(user), masked(kernel));
        if kernel > Chain::MAX_KERNEL {
            return;
        }
        let bytes = size_of::<H>() + 8 * (user + kernel);
        // SAFETY: so many bytes are written, and not more than a place has.
        let record =
            unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), bytes) };
        write_bytes(program, ts, record);
    }

    /// Takes the addresses of the kernel as [`Place::take_kernel`] does, and writes the record.
    #[inline(always)]
    pub(crate) fn finish(&mut self, program: u32, ts: u64, take: impl FnOnce(*mut u8, u32) -> i64) {
        self.take_kernel(take);
        self.write(program, ts);
    }
}

/// How many addresses those are, at most [`Chain::MAX_USER`]. The verifier of Linux 5.10 forgets what a comparison of half a
/// register has said, and knows what a mask does.
#[inline(always)]
fn masked(n: i32) -> usize {
    const MASK: usize = 127;
    const { assert!(Chain::MAX_USER == MASK && Chain::MAX_KERNEL < MASK) };
    n.max(0) as usize & MASK
}

/// The place of a thread, a new one if need be; `None` when there is none to be had.
#[inline(always)]
fn place(tid: u32) -> Option<*mut Place> {
    if let Some(place) = places().get_ptr_mut(tid) {
        return Some(place);
    }
    // SAFETY: nobody writes to it.
    let blank = unsafe { &*BLANK.get_ptr(0)? };
    own(|| places().insert(tid, blank, 0)).ok()?;
    places().get_ptr_mut(tid)
}

/// A thread leaves the CPU.
#[inline(always)]
fn leaves(ctx: &BtfTracePointContext, thread: TaskStruct) {
    // `TASK_DEAD`, include/linux/sched.h: it leaves for good.
    const DEAD: u32 = 0x80;
    let (tid, state) = match config::switch_has_state() != 0 {
        true => (thread.tid(), ctx.arg::<u32>(3)),
        false => (thread.tid(), thread.state()),
    };
    if state & DEAD != 0 {
        forget(tid);
        return;
    }
    let ts = now();
    let Some(place) = place(tid) else {
        lost(const { program::index("chain_switch") }, ts);
        return;
    };
    // SAFETY: only the CPU that a thread leaves or comes to looks at its place, or whoever wakes it, and that one reads.
    let place = unsafe { &mut *place };
    place.take_user(ctx);
    // Also what is written of one that does not come back.
    place.head.header = header(ts, kind::CHAIN_OFF_CPU, tid);
    place.head.tgid = thread.tgid();
    place.head.preempted = u32::from(ctx.arg::<u8>(0) != 0 || state == 0);
    place.head.left_ts = ts;
}

/// A thread comes to the CPU.
#[inline(always)]
fn comes(thread: TaskStruct) {
    let tid = thread.tid();
    let Some(place) = places().get_ptr_mut(tid) else { return };
    // SAFETY: as in `leaves`.
    let place = unsafe { &mut *place };
    let left = place.head.left_ts;
    let ts = now();
    if left != 0 && ts.wrapping_sub(left) >= config::chain_min_ns() {
        place.head.header = header(ts, kind::CHAIN_OFF_CPU, tid);
        place.finish(const { program::index("chain_switch") }, ts, |to, bytes| {
            // SAFETY: the task is the tracepoint's, and there is room for `bytes`.
            unsafe { bpf_get_task_stack(thread.as_ptr().cast_mut().cast(), to.cast(), bytes, 0) }
        });
    }
    place.head.left_ts = 0;
}

/// Nothing is known of the thread of this number.
#[inline(always)]
pub(crate) fn forget(tid: u32) {
    let _ = own(|| places().remove(tid));
}

/// `sched_switch`: `(bool preempt, task_struct *prev, task_struct *next, unsigned int prev_state)`; see
/// [`crate::sched`].
#[btf_tracepoint(function = "sched_switch")]
fn chain_switch(ctx: BtfTracePointContext) -> i32 {
    let prev = TaskStruct::new(ctx.arg(1));
    let next = TaskStruct::new(ctx.arg(2));
    // Idle tasks, which share the id 0, have no chain that tells anything.
    // Whoever leaves the cgroup, as each thread does that exits, may have a place.
    let may_have_left = config::cgroup_id() != 0 && !ended();
    if prev.tid() != 0 {
        if prev.is_observed() {
            leaves(&ctx, prev);
        } else if may_have_left {
            forget(prev.tid());
        }
    }
    if next.tid() != 0 && (may_have_left || next.is_observed()) {
        comes(next);
    }
    0
}

/// `sched_waking`: `(task_struct *p)`. In an interrupt, the addresses of the kernel say so, and what it struck is none of
/// its business: idle tasks are left out of user space by the kernel.
#[btf_tracepoint(function = "sched_waking")]
fn chain_waking(ctx: BtfTracePointContext) -> i32 {
    let woken = TaskStruct::new(ctx.arg(0));
    if !woken.is_observed() {
        return 0;
    }
    let woken_tid = woken.tid();
    let Some(place) = places().get_ptr(woken_tid) else { return 0 };
    // SAFETY: a word is read whole.
    let left = unsafe { (&raw const (*place).head.left_ts).read_volatile() };
    let ts = now();
    if left == 0 || ts.wrapping_sub(left) < config::chain_min_ns() {
        return 0;
    }
    let Some(place) = WAKER.get_ptr_mut(0) else { return 0 };
    // SAFETY: the slot is this CPU's, and the kernel runs no program within itself.
    let place = unsafe { &mut *place };
    let waker = current();
    place.head.header = header(ts, kind::CHAIN_WAKE, waker.tid);
    place.head.tgid = waker.tgid;
    place.head.woken_tid = woken_tid;
    place.head.woken_tgid = woken.tgid();
    place.take_user(&ctx);
    place.finish(const { program::index("chain_waking") }, ts, |to, bytes| {
        // SAFETY: there is room for `bytes`.
        unsafe { bpf_get_stack(ctx.as_ptr(), to.cast(), bytes, 0) }
    });
    0
}
