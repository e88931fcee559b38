//! Events that are left at each of their instructions, as `siglongjmp` out of a signal handler, the end of a thread by force, or a switch
//! to another stack for good leave them: each costs itself and nothing else.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::arch::asm;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::*};
use std::thread;

use common::{Memory, start, tid};
use ft_user::layout::{RingControl, commit};
use ft_user::reader::{Reader, Uncommitted};
use ft_user::ring::Ring;
use ft_user::{Config, enable, event, shared_ring};
use libc::ucontext_t;

/// Where the one thread that is interrupted goes on when a handler leaves what it was at.
static BEFORE: AtomicPtr<ucontext_t> = AtomicPtr::new(ptr::null_mut());
/// Instructions until then.
static LEFT: AtomicU64 = AtomicU64::new(0);
/// Whether it made a system call before.
static CALLS: AtomicBool = AtomicBool::new(false);
/// Which event is interrupted.
static KIND: AtomicU64 = AtomicU64::new(0);
const KINDS: [u64; 5] = [0, 1, 2, 3, 4];

/// More than all kinds of events and those behind them take.
const SLOTS: u32 = 1 << 14;

/// The processor's flag that has it trap after each instruction.
const TRAP: i64 = 1 << 8;

/// Comes after each instruction, until the next one is a system call: there a thread looks for a ring, which it does with all signals
/// blocked.
extern "C" fn trapped(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over the context of the interrupted thread, and two bytes behind an instruction of a function can be read.
    let (context, next) = unsafe {
        let context = &mut *context.cast::<ucontext_t>();
        let next = context.uc_mcontext.gregs[libc::REG_RIP as usize] as *const [u8; 2];
        (context, *next)
    };
    if next == [0x0f, 0x05] {
        context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP;
        CALLS.store(true, Relaxed);
    } else if LEFT.fetch_sub(1, Relaxed) == 1 {
        // SAFETY: the context that `leave` waits in; what is left has nothing to give back.
        unsafe { libc::setcontext(BEFORE.load(Relaxed)) };
    }
}

/// How an event ended.
#[derive(PartialEq)]
enum End {
    Left,
    Whole,
    /// Whole, and nobody has looked at all of it.
    Unseen,
}

/// Writes an event, step by step.
extern "C" fn stepped() {
    let (kind, n) = (KIND.load(Relaxed), 7u64);
    // SAFETY: sets the flag that has the processor trap after each instruction, for which there is a handler.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    match kind {
        0 => event!("left.none"),
        1 => event!("left.two", n: u64, m: u64 = n),
        2 => event!("left.three", n: u64, m: u64 = n, o: u64 = n),
        3 => event!("left.six", n: u64, m: u64 = n, o: u64 = n, p: u64 = n, q: u64 = n, r: u64 = n),
        _ => event!("left.text", text: &str = "a text of some words", n: u64),
    }
    // SAFETY: clears the flag.
    unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
}

/// Writes an event on a stack of its own, and leaves it after so many instructions, if it has so many.
fn leave(kind: u64, instructions: u64) -> End {
    KIND.store(kind, Relaxed);
    CALLS.store(false, Relaxed);
    LEFT.store(instructions, Relaxed);
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
    match (LEFT.load(Relaxed), CALLS.load(Relaxed)) {
        (0, _) => End::Left,
        (_, true) => End::Unseen,
        (_, false) => End::Whole,
    }
}

/// An event that comes behind one that was left.
fn own(n: u64) {
    event!("left.own", n: u64);
}

/// Leaves each kind of event after each of its instructions, or each `step`th, and writes one behind it. Returns for each kind how often it was left, and how
/// often something was `reserved`; and how many were written behind it.
fn leave_all(kinds: &[u64], step: u64, reserved: impl Fn() -> u64) -> (Vec<(u64, u64)>, u64) {
    let mut behind = 0;
    let mut all = |&kind: &u64| {
        let (mut left, mut begun) = (0, 0);
        loop {
            let before = reserved();
            let end = leave(kind, 1 + left * step);
            begun += u64::from(reserved() > before);
            own(behind);
            behind += 1;
            match end {
                End::Left => left += 1,
                End::Unseen => {}
                End::Whole => return (left, begun),
            }
        }
    };
    (kinds.iter().map(&mut all).collect(), behind)
}

/// Reads the ring of a thread that lives, as the agent does; returns what its `own` events say, how many others there are, and how many
/// were never finished.
fn read(control: &RingControl, own: u32) -> (Vec<u64>, u64, u64) {
    // SAFETY: slots follow each control page.
    let ring = unsafe { Ring::new(control, SLOTS) }.unwrap();
    let mut reader = Reader::at(control.tail.load(Relaxed));
    let (mut numbers, mut others, mut lost, mut bytes) = (Vec::new(), 0, 0, Vec::new());
    loop {
        let drained = reader.drain(&ring, Uncommitted::Wait, u64::MAX, &mut bytes);
        assert_eq!(drained.lost, 0);
        if !drained.more {
            let Some(slots) = reader.unfinished(&ring, u64::MAX) else { break };
            lost += reader.pass_unfinished(&ring, slots);
        }
    }
    let mut slots = bytes.chunks(32);
    while let Some(slot) = slots.next() {
        let word = |n: usize| u64::from_ne_bytes(slot[8 * n..8 * n + 8].try_into().unwrap());
        for _ in 0..commit::continuations(word(0)) {
            slots.next();
        }
        if commit::key(word(0)) == own { numbers.push(word(2)) } else { others += 1 }
    }
    (numbers, others, lost)
}

#[test]
fn an_event_that_was_left_costs_itself_alone() {
    start(Config { ring_slots: SLOTS, rings: 1, ..Config::default() });
    enable("left.*");
    // SAFETY: the handler counts, or leaves.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = trapped as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &action, ptr::null_mut()), 0);
    }
    let memory = Memory::own();
    // The first event of the thread, which gets the only ring.
    own(u64::MAX);
    let control = memory.rings().next().unwrap();
    assert_eq!(control.tid.load(Relaxed), tid());
    let first = Reader::at(control.tail.load(Relaxed)).tail();
    // SAFETY: slots follow each control page.
    let ring = unsafe { Ring::new(control, SLOTS) }.unwrap();
    let mut bytes = Vec::new();
    Reader::at(first).drain(&ring, Uncommitted::Wait, u64::MAX, &mut bytes);
    let key = commit::key(u64::from_ne_bytes(bytes[..8].try_into().unwrap()));

    let (attempts, written) = leave_all(&KINDS, 1, || control.head.load(Relaxed));
    assert!(attempts.iter().all(|&(left, begun)| 20 < begun && begun < left), "{attempts:?}");
    assert_eq!(control.lost.load(Relaxed), 0, "a ring that is large enough");
    let (numbers, others, lost) = read(control, key);
    assert!(numbers.into_iter().eq(0..written), "each one behind is there, once");
    let begun: u64 = attempts.iter().map(|(_, begun)| begun).sum();
    // One of each kind is left behind its end, and one comes to its end.
    assert!(others > KINDS.len() as u64 && lost > 100, "{others} {lost}");
    assert_eq!(others + lost, begun, "each that has begun is there or lost, once");

    // A thread without a ring, whose events take thousands of instructions where nothing is optimised.
    let (control, slots) = memory.shared();
    let (attempts, written) = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            own(u64::MAX);
            leave_all(&KINDS[1..3], 101, || slots.len() as u64 - control.free.load(Relaxed) as u64)
        });
        thread.join().unwrap()
    });
    let mut reader = shared_ring::Reader::new(control, slots, 0);
    let records: Vec<_> = std::iter::from_fn(|| reader.read_any()).collect();
    let is_own = |record: &&shared_ring::Record| commit::key(record.commit) == key;
    let numbers = records.iter().filter(is_own).map(|record| record.words[0]);
    assert!(numbers.eq(std::iter::once(u64::MAX).chain(0..written)), "each one behind is there");
    let begun: u64 = attempts.iter().map(|(_, begun)| begun).sum();
    let others = records.len() as u64 - written - 1;
    assert!(others >= 2 && reader.taken() > 3, "{others} {}", reader.taken());
    assert_eq!(others + reader.taken(), begun, "each that has begun is there or lost, once");
}
