//! Counters of a thread of which a signal handler interrupts a reading, and leaves it as `longjmp` does.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::arch::asm;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};
use std::thread;

use common::counting::{counters, numbers, readings};
use common::{Memory, start};
use ft_user::layout::Counting;
use ft_user::{Config, enable, event};
use libc::ucontext_t;

/// The processor's flag that has it trap after each instruction.
const TRAP: i64 = 1 << 8;

/// Where the one thread that is interrupted goes on when a handler leaves what it was at.
static BEFORE: AtomicPtr<ucontext_t> = AtomicPtr::new(ptr::null_mut());
static LEAVES: AtomicBool = AtomicBool::new(false);

/// Comes after each instruction, until the next one is a system call: of an event that is counted, the first one of its reading. Then it writes
/// an event of its own, and goes back or leaves.
extern "C" fn trapped(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over the context of the interrupted thread, and two bytes behind an instruction of a function can be read.
    let (context, next) = unsafe {
        let context = &mut *context.cast::<ucontext_t>();
        let next = context.uc_mcontext.gregs[libc::REG_RIP as usize] as *const [u8; 2];
        (context, *next)
    };
    if next == [0x0f, 0x05] {
        context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP;
        event!("left.handler");
        if LEAVES.load(Relaxed) {
            // SAFETY: the context that `interrupted` waits in; what is left has nothing to give back.
            unsafe { libc::setcontext(BEFORE.load(Relaxed)) };
        }
    }
}

/// Writes an event, step by step.
extern "C" fn stepped() {
    // SAFETY: sets the flag alone, for which there is a handler.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    event!("left.stepped");
    // SAFETY: clears the flag, if no handler has.
    unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
}

/// Writes an event on a stack of its own, in which a handler interrupts this thread; or does not get to its end, where the handler leaves it.
fn interrupted(leaves: bool) {
    LEAVES.store(leaves, Relaxed);
    let mut stack = vec![0u8; 256 << 10];
    let (mut before, mut on_stack) = (MaybeUninit::uninit(), MaybeUninit::<ucontext_t>::uninit());
    // SAFETY: both contexts are filled before they are used, and stay, as the stack does, until this goes on.
    unsafe {
        assert_eq!(libc::getcontext(on_stack.as_mut_ptr()), 0);
        let on_stack = on_stack.assume_init_mut();
        on_stack.uc_stack.ss_sp = stack.as_mut_ptr().cast();
        on_stack.uc_stack.ss_size = stack.len();
        on_stack.uc_link = before.as_mut_ptr();
        BEFORE.store(before.as_mut_ptr(), Relaxed);
        libc::makecontext(on_stack, stepped, 0);
        assert_eq!(libc::swapcontext(before.as_mut_ptr(), on_stack), 0);
    }
}

#[test]
fn a_thread_counts_on_when_a_handler_has_left_a_reading() {
    start(Config::default());
    enable("left.*");
    // SAFETY: the handler does what an event may do anywhere.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = trapped as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &action, ptr::null_mut()), 0);
    }
    let mut memory = Memory::own();
    let ask = |names: &[&str]| {
        let counting = Counting::new(&counters(names), true);
        memory.header().counting.store(counting.0, Relaxed);
    };
    ask(&["page-faults"]);
    let before = numbers();
    thread::scope(|scope| {
        scope.spawn(|| {
            let own = |n: u64| event!("left.own", n: u64);
            own(0);
            interrupted(false);
            interrupted(true);
            own(1);
            interrupted(true);
            own(2);
            // The agent asks for others, and for none any more.
            ask(&["task-clock", "page-faults"]);
            own(3);
            ask(&[]);
            own(4);
            assert_eq!(numbers(), before, "nothing is left open");
        });
    });
    let events = memory.take();
    let of = |name| -> Vec<bool> { readings(&events, name).iter().map(Option::is_some).collect() };
    assert_eq!(of("left.own"), [true, true, true, true, false]);
    assert_eq!(of("left.handler"), [true; 3], "in the middle of a reading");
    assert_eq!(of("left.stepped"), [true], "where the handler came back");
    let stretches = readings(&events, "left.own").into_iter().flatten().map(|reading| reading[0]);
    let mut stretches: Vec<u64> = stretches.collect();
    stretches.dedup();
    assert_eq!(stretches.len(), 2, "one for each that was asked for: {stretches:?}");
}
