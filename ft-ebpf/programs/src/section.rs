//! Group `section`: how long locks of the kernel are held, and how deeply nested, at the functions that take and release
//! them. Where these are inlined the agent loads none of a kind.
//!
//! A record for each would flood any buffer: so sections are counted here, and the agent reads the counts in the end.
//! Nothing here takes a lock, as a hash table would: what is held lies in arrays, that of spinlocks by CPU, which their
//! holder cannot leave, that of the others by thread. On a real-time kernel most spinlocks are of the others
//! (`rt_spin_lock`, kernel/locking/spinlock_rt.c): who holds one can be preempted. A program that strikes another one of these
//! on its CPU, or in a task that has preempted it, does nothing but count that ([`Sections::skipped`]).

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_get_func_ip, bpf_probe_read_kernel},
    macros::{fentry, fexit, map},
    maps::{Array, PerCpuArray},
    programs::{FEntryContext, FExitContext},
};
use ft_ebpf::{Sections, section};

use crate::{config, filter::current, kernel::TaskStruct, lock, maps::add, record::now};

/// Room for sections that are open at once; the agent says how many of them are used ([`section::OPEN`] at most).
///
/// Limit: further ones are not followed, and counted (`full` in `kernel_sections`); their ends are `end-only`.
/// Shown by: `sections_beyond_their_room_are_counted`, with room for one, where programs can be attached to the
/// kernel's functions.
const MOST_OPEN: usize = section::OPEN as usize;

/// Entries that are looked at for a caller's row.
///
/// Limit: as `CALLERS` of `sections.rs`.
const LOOKS: u32 = 4;

/// Bytes of a thread's stack in the kernel (`THREAD_SIZE`, arch/x86/include/asm/page_64_types.h, without KASAN).
const STACK_BYTES: u64 = 16 << 10;

/// A section that has begun.
#[derive(Clone, Copy)]
#[repr(C)]
struct Open {
    /// Address of the lock; 0: none.
    lock: u64,
    ts: u64,
    caller: u64,
    /// Others that were open when it began.
    depth: u64,
}

/// Those of a thread, or of a CPU.
#[repr(C)]
struct Held {
    /// Whose they are.
    tid: u32,
    /// How many.
    n: u32,
    open: [Open; MOST_OPEN],
}

/// Sections under spinlocks: of threads, and of interrupts.
#[map]
static SPINS: PerCpuArray<Held> = PerCpuArray::with_max_entries(2, 0);

/// Sections of threads under other locks.
#[map]
static SLEEPERS: Array<Held> = Array::with_max_entries(section::THREADS, 0);

/// What is counted: first the rows of no caller, by kind and context.
#[map]
static SECTIONS: PerCpuArray<Sections> = PerCpuArray::with_max_entries(section::ROWS, 0);

/// How many of these programs have begun on this CPU and not ended, and a word for the one that counts.
#[map]
static RUNNING: PerCpuArray<[u64; 2]> = PerCpuArray::with_max_entries(1, 0);

/// Whether an interrupt runs: its stack is not the thread's.
#[inline(always)]
fn is_interrupt(ctx: &impl EbpfContext, scratch: *mut u64) -> bool {
    // SAFETY: the slot is this CPU's. The verifier takes what is read from a map for a number, with which it can be counted.
    let at = unsafe {
        scratch.cast::<*mut core::ffi::c_void>().write_volatile(ctx.as_ptr());
        scratch.read_volatile()
    };
    let stack = TaskStruct::current().probe::<u64>(config::task_stack()).unwrap_or(0);
    at.wrapping_sub(stack) >= STACK_BYTES
}

/// Runs `work`, which is given a word to write to; where another of these programs has not ended on this CPU, that is counted.
///
/// They need not end in the order of a stack: a task can be preempted in one (the trampoline only keeps it from moving,
/// `__bpf_prog_enter_recur`, kernel/bpf/trampoline.c), and go on before the task that preempted it has ended its own. So each
/// takes off what it has added, and no more. Who reads 1 then is alone until it does: whoever comes meanwhile reads more.
#[inline(always)]
fn alone(kind: u32, work: impl FnOnce(*mut u64)) {
    let Some(level) = RUNNING.get_ptr_mut(0).map(<*mut _>::cast::<u64>) else { return };
    // SAFETY: the slot is this CPU's, which the program does not leave, and has two words.
    unsafe {
        add(level, 1);
        if level.read_volatile() == 1 {
            work(level.add(1));
        } else if let Some(row) = SECTIONS.get_ptr_mut(section::row(kind, false)) {
            // Another one can strike here, too.
            add(&raw mut (*row).skipped, 1);
        }
        add(level, -1);
    }
}

/// What is held in this context.
#[inline(always)]
fn held(kind: u32, interrupt: bool, tid: u32) -> Option<&'static mut Held> {
    let held = match section::spins(kind) || interrupt {
        true => SPINS.get_ptr_mut(u32::from(interrupt)),
        // The numbers of threads that the agent leaves are a power of two.
        false => SLEEPERS.get_ptr_mut(tid & config::section_threads().wrapping_sub(1)),
    };
    // SAFETY: it is this CPU's, where one of these programs runs at a time, or this thread's (its `tid` is looked at).
    held.map(|held| unsafe { &mut *held })
}

/// To where the function returns at whose end the program runs. Behind its arguments and its value lies what the trampoline
/// pushed, and then, where it was called, the address in the function to which it returns
/// (`arch_prepare_bpf_trampoline`, arch/x86/net/bpf_jit_comp.c). Since Linux 6.19 it may have been jumped to. What is
/// not an address of a function has no name in the end.
#[inline(always)]
fn caller(ctx: &FExitContext, arguments: usize) -> u64 {
    const CALL_BYTES: u64 = 16;
    // SAFETY: the helper takes the context, and reading is checked.
    let (function, pushed) = unsafe {
        let behind = ctx.as_ptr().cast::<u64>().wrapping_add(arguments + 2).cast::<[u64; 2]>();
        (bpf_get_func_ip(ctx.as_ptr()), bpf_probe_read_kernel(behind))
    };
    match pushed {
        Ok([inside, caller]) if inside.wrapping_sub(function) <= CALL_BYTES => caller,
        Ok([caller, _]) => caller,
        Err(_) => 0,
    }
}

/// A lock has been taken, by a function of so many arguments.
#[inline(always)]
fn begins(ctx: &FExitContext, kind: u32, arguments: usize) {
    let who = current();
    if !who.is_observed() {
        return;
    }
    let lock = ctx.arg::<u64>(0);
    let caller = caller(ctx, arguments);
    alone(kind, |scratch| {
        let interrupt = is_interrupt(ctx, scratch);
        let Some(counts) = SECTIONS.get_ptr_mut(section::row(kind, interrupt)) else { return };
        // SAFETY: the row is this CPU's, and only one of these programs runs here.
        let counts = unsafe { &mut *counts };
        counts.begun += 1;
        if section::spins(kind)
            && !interrupt
            && let Some(of_interrupts) = SPINS.get_ptr_mut(1)
        {
            // SAFETY: as above. No interrupt runs, so what is still there has ended unseen.
            unsafe { (*of_interrupts).n = 0 };
        }
        let Some(held) = held(kind, interrupt, who.tid) else { return };
        if held.tid != who.tid {
            if !section::spins(kind) && held.n != 0 {
                counts.full += 1;
                return;
            }
            // A thread cannot leave its CPU with a spinlock: what is still there has ended unseen.
            (held.tid, held.n) = (who.tid, 0);
        }
        // One and the same lock again: the end of what is there was not seen. Readers may share.
        let again = match section::is_shared(kind) {
            true => MOST_OPEN,
            false => held.find(lock),
        };
        let (place, depth) = match again < MOST_OPEN {
            true => (again, held.n.wrapping_sub(1)),
            false => (held.n as usize, held.n),
        };
        if place >= MOST_OPEN || place >= config::section_open() as usize {
            counts.full += 1;
            return;
        }
        held.n = depth + 1;
        let open = &mut held.open[place & (MOST_OPEN - 1)];
        *open = Open { lock, ts: 0, caller, depth: depth.into() };
        open.ts = now();
    });
}

/// A lock is about to be released.
#[inline(always)]
fn ends(ctx: &FEntryContext, kind: u32) {
    let ts = now();
    let who = current();
    let lock = ctx.arg::<u64>(0);
    alone(kind, |scratch| {
        let interrupt = is_interrupt(ctx, scratch);
        let Some(held) = held(kind, interrupt, who.tid) else { return };
        // The scheduler's lock passes from a thread to the next.
        let is_own = section::spins(kind) || held.tid == who.tid;
        let place = if is_own { held.find(lock) } else { MOST_OPEN };
        if place >= MOST_OPEN {
            if who.is_observed()
                && let Some(row) = SECTIONS.get_ptr_mut(section::row(kind, interrupt))
            {
                // SAFETY: the row is this CPU's, and only one of these programs runs here.
                unsafe { (*row).ends += 1 };
            }
            return;
        }
        let open = held.open[place & (MOST_OPEN - 1)];
        held.n = held.n.wrapping_sub(1);
        // The last takes its place.
        let last = held.n as usize & (MOST_OPEN - 1);
        held.open[place & (MOST_OPEN - 1)] = held.open[last];
        held.open[last].lock = 0;
        let Some(row) = row(kind, interrupt, open.caller) else { return };
        // SAFETY: as above.
        let row = unsafe { &mut *row };
        let ns = ts.saturating_sub(open.ts);
        row.lengths[section::bin(ns) & (section::LENGTHS - 1)].add(ns);
        row.depths[(open.depth as usize).min(section::DEPTHS - 1) & (section::DEPTHS - 1)].add(ns);
        // An interrupt that strikes the agent is not its own; what one of our programs takes is, also in an interrupt.
        if (!interrupt && who.tgid == config::agent() || lock::is_own())
            && let Some(all) = SECTIONS.get_ptr_mut(section::row(kind, interrupt))
        {
            // SAFETY: as above.
            unsafe { (*all).own.add(ns) };
        }
    });
}

impl Held {
    /// Where a lock is among those that are held; [`MOST_OPEN`] when it is not.
    #[inline(always)]
    fn find(&self, lock: u64) -> usize {
        let mut place = MOST_OPEN;
        for (i, open) in self.open.iter().enumerate() {
            if (i as u32) < self.n && open.lock == lock {
                place = i;
            }
        }
        place
    }
}

/// The row of a caller; that of no caller where it is not known, or where there is no room.
#[inline(always)]
fn row(kind: u32, interrupt: bool, caller: u64) -> Option<*mut Sections> {
    let key = section::key(kind, interrupt);
    let callers = config::section_callers();
    let hash = ((caller ^ u64::from(key) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
    if caller != 0 && callers != 0 {
        for look in 0..LOOKS {
            let index = section::row(section::KINDS, false) + hash.wrapping_add(look) % callers;
            let row = SECTIONS.get_ptr_mut(index)?;
            // SAFETY: as in `begins`.
            unsafe {
                if (*row).caller == 0 {
                    ((*row).caller, (*row).key) = (caller, key);
                }
                if (*row).caller == caller && (*row).key == key {
                    return Some(row);
                }
            }
        }
    }
    SECTIONS.get_ptr_mut(section::row(kind, interrupt))
}

/// Declares the programs by the kernel's functions. The first argument of each is the lock, mostly the only one; of what can
/// fail, the value says whether it has taken it.
macro_rules! programs {
    (begins { $($begin:ident: $taken:literal $($arguments:literal)? $kind:ident $($got:ident)?;)* }
     ends { $($end:ident: $released:literal $of:ident;)* }) => {
        $(
            #[fexit(function = $taken)]
            fn $begin(ctx: FExitContext) -> i32 {
                const ARGUMENTS: usize = programs!(@arguments $($arguments)?);
                $(if !$got(ctx.arg::<i32>(ARGUMENTS)) {
                    return 0;
                })?
                begins(&ctx, section::$kind, ARGUMENTS);
                0
            }
        )*
        $(
            #[fentry(function = $released)]
            fn $end(ctx: FEntryContext) -> i32 {
                ends(&ctx, section::$of);
                0
            }
        )*
    };
    (@arguments) => { 1 };
    (@arguments $arguments:literal) => { $arguments };
}

/// Of a function that returns whether it has taken the lock.
#[inline(always)]
fn yes(value: i32) -> bool {
    value != 0
}

/// Of one that returns an error or 0. (`down_trylock` returns 1 where others return 0.)
#[inline(always)]
fn no_error(value: i32) -> bool {
    value == 0
}

programs! {
    begins {
        section_spin_lock: "_raw_spin_lock" SPIN;
        section_spin_lock_irq: "_raw_spin_lock_irq" SPIN;
        section_spin_lock_irqsave: "_raw_spin_lock_irqsave" SPIN;
        section_spin_lock_bh: "_raw_spin_lock_bh" SPIN;
        section_spin_trylock: "_raw_spin_trylock" SPIN yes;
        section_spin_trylock_bh: "_raw_spin_trylock_bh" SPIN yes;
        section_read_lock: "_raw_read_lock" SPIN_READ;
        section_read_lock_irq: "_raw_read_lock_irq" SPIN_READ;
        section_read_lock_irqsave: "_raw_read_lock_irqsave" SPIN_READ;
        section_read_lock_bh: "_raw_read_lock_bh" SPIN_READ;
        section_read_trylock: "_raw_read_trylock" SPIN_READ yes;
        section_write_lock: "_raw_write_lock" SPIN_WRITE;
        section_write_lock_irq: "_raw_write_lock_irq" SPIN_WRITE;
        section_write_lock_irqsave: "_raw_write_lock_irqsave" SPIN_WRITE;
        section_write_lock_bh: "_raw_write_lock_bh" SPIN_WRITE;
        section_write_trylock: "_raw_write_trylock" SPIN_WRITE yes;
        section_rt_spin_lock: "rt_spin_lock" RT_SPIN;
        section_rt_spin_trylock: "rt_spin_trylock" RT_SPIN yes;
        section_rt_spin_trylock_bh: "rt_spin_trylock_bh" RT_SPIN yes;
        section_rt_read_lock: "rt_read_lock" RT_READ;
        section_rt_read_trylock: "rt_read_trylock" RT_READ yes;
        section_rt_write_lock: "rt_write_lock" RT_WRITE;
        section_rt_write_trylock: "rt_write_trylock" RT_WRITE yes;
        section_mutex_lock: "mutex_lock" MUTEX;
        section_mutex_lock_interruptible: "mutex_lock_interruptible" MUTEX no_error;
        section_mutex_lock_killable: "mutex_lock_killable" MUTEX no_error;
        section_mutex_trylock: "mutex_trylock" MUTEX yes;
        section_down_read: "down_read" READ;
        section_down_read_interruptible: "down_read_interruptible" READ no_error;
        section_down_read_killable: "down_read_killable" READ no_error;
        section_down_read_trylock: "down_read_trylock" READ yes;
        section_down_write: "down_write" WRITE;
        section_down_write_killable: "down_write_killable" WRITE no_error;
        section_down_write_trylock: "down_write_trylock" WRITE yes;
        section_down: "down" SEMAPHORE;
        section_down_interruptible: "down_interruptible" SEMAPHORE no_error;
        section_down_killable: "down_killable" SEMAPHORE no_error;
        section_down_trylock: "down_trylock" SEMAPHORE no_error;
        section_down_timeout: "down_timeout" 2 SEMAPHORE no_error;
    }
    ends {
        section_spin_unlock: "_raw_spin_unlock" SPIN;
        section_spin_unlock_irq: "_raw_spin_unlock_irq" SPIN;
        section_spin_unlock_irqrestore: "_raw_spin_unlock_irqrestore" SPIN;
        section_spin_unlock_bh: "_raw_spin_unlock_bh" SPIN;
        section_read_unlock: "_raw_read_unlock" SPIN_READ;
        section_read_unlock_irq: "_raw_read_unlock_irq" SPIN_READ;
        section_read_unlock_irqrestore: "_raw_read_unlock_irqrestore" SPIN_READ;
        section_read_unlock_bh: "_raw_read_unlock_bh" SPIN_READ;
        section_write_unlock: "_raw_write_unlock" SPIN_WRITE;
        section_write_unlock_irq: "_raw_write_unlock_irq" SPIN_WRITE;
        section_write_unlock_irqrestore: "_raw_write_unlock_irqrestore" SPIN_WRITE;
        section_write_unlock_bh: "_raw_write_unlock_bh" SPIN_WRITE;
        section_rt_spin_unlock: "rt_spin_unlock" RT_SPIN;
        section_rt_read_unlock: "rt_read_unlock" RT_READ;
        section_rt_write_unlock: "rt_write_unlock" RT_WRITE;
        section_mutex_unlock: "mutex_unlock" MUTEX;
        section_up_read: "up_read" READ;
        section_up_write: "up_write" WRITE;
        section_downgrade_write: "downgrade_write" WRITE;
        section_up: "up" SEMAPHORE;
    }
}
