//! Group `stack`: where in the code a thread left the CPU, and where in the code who woke it was.
//!
//! The addresses of user space are those that frame pointers lead to. Where there are none, who called is found afterwards, by
//! what the files of the program say of their frames: for that there are the registers, and a piece of the stack. Both can be
//! had only of the thread that runs, so they are taken when it leaves the CPU, and wait in its [`Place`]. Only when it comes back is
//! it known how long it was away. Then the kernel's part is taken, of a stack that has not changed meanwhile: what was away for
//! less than `CHAIN_MIN_NS` costs neither that nor a record. Of a thread that was so each of the last times, little is taken: the
//! innermost functions, should it be away for longer the next time.

use core::arch::asm;

use aya_ebpf::{
    EbpfContext,
    bindings::{BPF_F_NO_PREALLOC, BPF_F_USER_STACK},
    helpers::generated::{
        bpf_get_current_task_btf, bpf_get_stack, bpf_get_task_stack, bpf_probe_read_user,
        bpf_task_pt_regs,
    },
    macros::{btf_tracepoint, map},
    maps::{HashMap, PerCpuArray},
    programs::BtfTracePointContext,
};
use ft_ebpf::{Chain, kind, program};

use crate::{
    config,
    filter::{current, ended},
    irq,
    kernel::{DEAD, Registers, TaskStruct},
    lock::own,
    record::{header, lost, now, write_bytes},
};

const USER_BYTES: u32 = 8 * Chain::MAX_USER as u32;
const KERNEL_BYTES: u32 = 8 * Chain::MAX_KERNEL as u32;

/// What a chain belongs to: a record that says how many addresses follow it.
pub(crate) trait Head {
    /// How many of user space, and of the kernel; less than 0: none could be had.
    fn counts(&self) -> (i32, i32);
    /// Bytes of the stack between them.
    fn stack(&self) -> u64;
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
    fn stack(&self) -> u64 {
        self.stack
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

/// Words of a chain of addresses.
pub(crate) const ADDRESSES: usize = Chain::MAX_USER + Chain::MAX_KERNEL;

/// A record as it is written, with room for the longest chain, here with a piece of the stack.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Place<H = Chain, const WORDS: usize = { Chain::MAX_TAIL / 8 }> {
    pub(crate) head: H,
    words: [u64; WORDS],
    /// How many times in a row the thread was away for less than counts.
    shortly: u64,
}

/// After so many times little is taken of a thread.
const SHORTLY: u64 = 16;

/// Bytes of a stack of which little is taken.
const LITTLE: usize = 1016;

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

impl<H: Head, const WORDS: usize> Place<H, WORDS> {
    /// Takes the addresses of the current task in user space.
    #[inline(always)]
    pub(crate) fn take_user(&mut self, ctx: &impl EbpfContext) {
        let to = self.words.as_mut_ptr().cast();
        // SAFETY: `USER_BYTES` are not more than there is room for.
        let n = unsafe { bpf_get_stack(ctx.as_ptr(), to, USER_BYTES, u64::from(BPF_F_USER_STACK)) };
        self.head.set_user(if n < 0 { n as i32 } else { n as i32 / 8 });
    }

    /// Takes the addresses of the kernel with `take`, which is told where to write [`KERNEL_BYTES`], behind what is of user
    /// space.
    #[inline(always)]
    pub(crate) fn take_kernel(&mut self, take: impl FnOnce(*mut u8, u32) -> i64) {
        let (user, stack) = (masked(self.head.counts().0), masked_bytes(self.head.stack()));
        // SAFETY: behind at most `MAX_USER` addresses, and so much of a stack as the record has, there is room for `MAX_KERNEL`.
        let to = unsafe { self.words.as_mut_ptr().add(user).byte_add(stack) };
        let n = take(to.cast(), KERNEL_BYTES);
        self.head.set_kernel(if n < 0 { n as i32 } else { n as i32 / 8 });
    }

    /// Writes the record. `is_urgent`: the agent should look at its process soon, which may have ended before long.
    #[inline(always)]
    pub(crate) fn write(&mut self, program: u32, ts: u64, is_urgent: bool) {
        let (user, kernel) = self.head.counts();
        let (user, kernel) = (masked(user), masked(kernel));
        if kernel > Chain::MAX_KERNEL {
            return;
        }
        let bytes = size_of::<H>() + 8 * (user + kernel) + masked_bytes(self.head.stack());
        // SAFETY: so many bytes are written, and not more than a place has.
        let record =
            unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), bytes) };
        write_bytes(program, ts, record, is_urgent);
    }

    /// Takes the addresses of the kernel as [`Place::take_kernel`] does, and writes the record of `thread`.
    #[inline(always)]
    pub(crate) fn finish(
        &mut self,
        program: u32,
        ts: u64,
        thread: TaskStruct,
        take: impl FnOnce(*mut u8, u32) -> i64,
    ) {
        self.take_kernel(take);
        self.write(program, ts, thread.is_young(ts));
    }
}

impl Place {
    /// Takes the addresses of the current task in user space, its registers there, and a piece of its stack.
    #[inline(always)]
    pub(crate) fn take_thread(&mut self, ctx: &impl EbpfContext) {
        self.take_user(ctx);
        self.take_frame(Chain::MAX_STACK);
    }

    /// Takes its registers, and so many bytes of its stack.
    #[inline(always)]
    fn take_frame(&mut self, most: usize) {
        let head = &mut self.head;
        (head.ip, head.sp, head.bp, head.stack) = (0, 0, 0, 0);
        head.kept = [0; Chain::STACK_BITS];
        // Who has no addresses has no user space.
        if config::regs_ip() == 0 || head.user <= 0 {
            return;
        }
        // SAFETY: the task is the current one.
        let registers = unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) };
        let registers = Registers::new(registers as *const u8);
        (head.ip, head.sp, head.bp) = (registers.ip(), registers.sp(), registers.bp());
        if head.sp % 8 == 0 {
            self.take_stack(most);
        }
    }

    /// Takes nothing of the current task: it is not the one that acts.
    #[inline(always)]
    fn take_nobody(&mut self) {
        let head = &mut self.head;
        (head.user, head.stack) = (0, 0);
        (head.ip, head.sp, head.bp) = (0, 0, 0);
        head.kept = [0; Chain::STACK_BITS];
    }

    /// Takes as much of the stack as there is room for. Where its end is near, or a page is not there, up to the end of the first
    /// page.
    #[inline(always)]
    fn take_stack(&mut self, most: usize) {
        const PAGE: u64 = 4096;
        let (sp, user) = (self.head.sp, masked(self.head.user));
        // SAFETY: behind at most `MAX_USER` addresses there is room for `MAX_STACK` bytes.
        let to = unsafe { self.words.as_mut_ptr().add(user) };
        let copy = |bytes: usize| {
            // SAFETY: the helper checks the source, and there is room for `MAX_STACK`.
            unsafe { bpf_probe_read_user(to.cast(), bytes as u32, sp as *const _) == 0 }
        };
        if copy(most) {
            self.head.stack = most as u64;
            return;
        }
        let rest = masked_bytes(PAGE - sp % PAGE);
        if copy(rest) {
            self.head.stack = rest as u64;
        }
    }
}

impl Place {
    /// Leaves out what cannot be an address of user space: most of a stack, and all numbers and texts in it that are anybody's secret.
    /// Once for each stack.
    #[inline(always)]
    pub(crate) fn compact(&mut self) {
        let stack = masked_bytes(self.head.stack);
        if config::regs_ip() == 0 || stack == 0 {
            return;
        }
        // SAFETY: behind at most `MAX_USER` addresses there is room for `MAX_STACK` bytes.
        let words = unsafe { self.words.as_mut_ptr().add(masked(self.head.user)) };
        let mut n = 0;
        for of_bits in 0..Chain::STACK_BITS {
            let mut bits = 0;
            for bit in 0..u64::BITS as usize {
                let i = 64 * of_bits + bit;
                // SAFETY: the last one that is read lies behind the stack, where there is room for the kernel's addresses; of the stack
                // none is written before it was read.
                unsafe {
                    let word = words.add(i).read();
                    let keep = can_be_address(word) & is_less(8 * i as u64, stack as u64);
                    words.byte_add(masked_bytes(8 * n)).write(word);
                    n += keep;
                    bits |= keep << bit;
                }
            }
            self.head.kept[of_bits] = bits;
        }
        self.head.stack = 8 * n;
    }
}

/// Whether a word can be an address of user space: 1, or 0. Without a branch, of which the verifier would follow both ways in each
/// round.
#[inline(always)]
fn can_be_address(word: u64) -> u64 {
    // No program has its text below (`vm.mmap_min_addr`), or above (arch/x86/include/asm/page_64_types.h).
    const LOWEST: u64 = 1 << 16;
    const BITS: u32 = 47;
    is_less(word.wrapping_sub(LOWEST) >> BITS, 1)
}

/// 1 if it is less, of numbers of fewer than 63 bits; else 0.
#[inline(always)]
fn is_less(a: u64, b: u64) -> u64 {
    let mut sign = a.wrapping_sub(b);
    // SAFETY: it only shifts. Of a shift that it knows, the compiler would make a branch.
    unsafe { asm!("{} >>= 63", inout(reg) sign, options(pure, nomem, nostack)) };
    sign
}

/// So many bytes of a stack, at most [`Chain::MAX_STACK`]; see [`masked`].
#[inline(always)]
fn masked_bytes(n: u64) -> usize {
    const { assert!(Chain::MAX_STACK & 7 == 0 && (Chain::MAX_STACK + 8).is_power_of_two()) };
    n as usize & Chain::MAX_STACK
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
    if place.shortly >= SHORTLY && config::regs_ip() != 0 && place.head.user > 0 {
        place.head.user = 1;
        place.take_frame(LITTLE);
        place.words[0] = place.head.ip;
    } else {
        place.take_thread(ctx);
    }
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
    if left != 0 && ts.wrapping_sub(left) < config::chain_min_ns() {
        place.shortly = place.shortly.wrapping_add(1);
    } else if left != 0 {
        place.shortly = 0;
        place.head.header = header(ts, kind::CHAIN_OFF_CPU, tid);
        place.compact();
        place.finish(const { program::index("chain_switch") }, ts, thread, |to, bytes| {
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

/// `sched_waking`: `(task_struct *p)`. In an interrupt there are the addresses of the kernel alone: whom it struck has woken nobody,
/// and may be a process of anybody.
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
    if irq::is_in() {
        place.take_nobody();
    } else {
        place.take_thread(&ctx);
        place.compact();
    }
    place.finish(
        const { program::index("chain_waking") },
        ts,
        TaskStruct::current(),
        |to, bytes| {
            // SAFETY: there is room for `bytes`.
            unsafe { bpf_get_stack(ctx.as_ptr(), to.cast(), bytes, 0) }
        },
    );
    0
}
