//! Events of all kinds, for who interrupts them at each instruction: `tests/unwind.rs` steps through this program.
//!
//! `stepped ACTION NUMBER` with what the handler of SIGUSR1 does, `event` or `backtrace`, and the number of the event; one that
//! is larger by the number of kinds is the first event of its thread. Traps say where that begins and ends.
//!
//! `stepped profile NUMBER` runs through all kinds until a handler of SIGPROF has walked the stack so many times.

use std::arch::asm;
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{OnceLock, TryLockError};

use ft_user::event;
use ft_user::sync::{Mutex, RwLock};

/// As in `tests/stepper/mod.rs`.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Mark {
    Begin = 0x4654_0001,
    End,
    Handled,
    Done,
}

#[inline(always)]
fn mark(mark: Mark) {
    // SAFETY: a trap, for who steps through this.
    unsafe { asm!("int3", in("rax") mark as u64, options(nostack)) };
}

static LOOKS: AtomicBool = AtomicBool::new(false);
static HANDLED: AtomicUsize = AtomicUsize::new(0);
static WITHOUT_CALLERS: AtomicUsize = AtomicUsize::new(0);
/// Who called `run`; below each interrupted instruction of an event must be the same ones.
static CALLERS: OnceLock<Vec<usize>> = OnceLock::new();

const MOST_FRAMES: usize = 64;

/// Return addresses, innermost first.
#[inline(never)]
fn backtrace(frames: &mut [usize; MOST_FRAMES]) -> &[usize] {
    // SAFETY: fills in the array, whose length it is told.
    let found =
        unsafe { libc::backtrace(frames.as_mut_ptr().cast::<*mut c_void>(), MOST_FRAMES as i32) };
    &frames[..found as usize]
}

/// Whether the instruction is an entry of a linkage table, `jmp [rip + distance]; push number`, of which LLD, which rustc links
/// with, leaves no description: a stack ends there, in programs with and without events.
fn is_linkage(pc: usize) -> bool {
    // SAFETY: bytes of an instruction that this thread has executed, and of the next.
    let bytes = unsafe { *(pc as *const [u8; 7]) };
    bytes[..2] == [0xff, 0x25] && bytes[6] == 0x68
}

fn look_for_callers(number: usize) {
    let mut frames = [0; MOST_FRAMES];
    let found = backtrace(&mut frames);
    let callers = CALLERS.get().expect("remembered before the first signal");
    if found.ends_with(callers) || found.last().is_some_and(|&pc| is_linkage(pc)) {
        return;
    }
    if WITHOUT_CALLERS.fetch_add(1, Relaxed) < 5 {
        eprintln!("at signal {number}, without callers: {found:x?}");
    }
}

extern "C" fn profiler(_: libc::c_int) {
    look_for_callers(HANDLED.fetch_add(1, Relaxed));
}

/// Runs through all events while a profiler walks the stack.
#[inline(never)]
fn profiled(samples: usize) {
    let mut frames = [0; MOST_FRAMES];
    CALLERS.set(backtrace(&mut frames)[2..].to_vec()).unwrap();
    handle(libc::SIGPROF, profiler);
    let millisecond = libc::timeval { tv_sec: 0, tv_usec: 1000 };
    let often = libc::itimerval { it_interval: millisecond, it_value: millisecond };
    // SAFETY: reads the times. The process ends with the last sample.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const often, std::ptr::null_mut()) };
    for number in (0..KINDS).cycle().take_while(|_| HANDLED.load(Relaxed) < samples) {
        black_box(outer(number));
    }
    handle(libc::SIGPROF, ignore);
}

extern "C" fn ignore(_: libc::c_int) {}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: handlers write an event, or walk the stack, and trap.
    unsafe {
        let mut handling: libc::sigaction = std::mem::zeroed();
        handling.sa_sigaction = handler as *const () as usize;
        handling.sa_flags = libc::SA_NODEFER;
        assert_eq!(libc::sigaction(signal, &raw const handling, std::ptr::null_mut()), 0);
    }
}

extern "C" fn handler(_: libc::c_int) {
    let number = HANDLED.fetch_add(1, Relaxed);
    if LOOKS.load(Relaxed) {
        look_for_callers(number);
    } else {
        inner();
    }
    mark(Mark::Handled);
}

fn inner() {
    event!("inner.event", n: u64 = 7);
}

#[inline(never)]
fn none() {
    event!("outer.none");
}

#[inline(never)]
fn two(a: u64, b: u64) -> u64 {
    event!("outer.two", a: u64, b: u64);
    a ^ b
}

#[inline(never)]
fn three(a: u64) {
    event!("outer.three", a: u64, b: u32 = 3, c: f64 = 1.5);
}

#[inline(never)]
fn six(a: u64, b: f64) {
    event!("outer.six", a: u64, b: f64, c: u64 = a + 1, d: i8 = -1, e: bool = true, f: f64 = b + 1.0);
}

#[inline(never)]
fn text(a: &str) {
    event!("outer.text", a: &str);
}

#[inline(never)]
fn mixed(a: &str, b: &[u8], c: Option<u64>) {
    event!("outer.mixed", a: &str, b: &[u8], c: Option<u64>, d: u64 = 7, e: &str = &a[1..], f: Option<&str> = None);
}

#[inline(never)]
fn cut(a: &[u8]) {
    event!("outer.cut", a: &[u8]);
}

#[inline(never)]
fn scope(n: u64) -> u64 {
    let _scope = ft_user::scope!("outer.scope", n: u64);
    (0..n).map(|i| two(i, n)).sum()
}

/// With registers to save and a part of the stack: the frame is neither empty nor only found by `rsp`.
#[inline(never)]
fn framed(n: u64) -> u64 {
    let mut room = [0u64; 40];
    for (i, word) in room.iter_mut().enumerate() {
        *word = n.wrapping_mul(black_box(i as u64));
    }
    let sum: u64 = room.iter().sum();
    event!("outer.framed", n: u64, sum: u64, a: u64 = room[1], b: u64 = room[2], c: u64 = sum ^ n, d: u64 = room[3]);
    two(sum, black_box(&room)[39])
}

static MUTEX: Mutex<u64> = Mutex::new(7);
static RWLOCK: RwLock<u64> = RwLock::new(7);

#[inline(never)]
fn locks() -> u64 {
    let mut sum = *MUTEX.lock().unwrap();
    sum += *RWLOCK.read().unwrap();
    *RWLOCK.write().unwrap() += 1;
    match MUTEX.try_lock() {
        Ok(guard) => sum + *guard,
        Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => sum,
    }
}

const KINDS: usize = 10;

#[inline(never)]
fn outer(number: usize) -> u64 {
    let n = black_box(7);
    match number {
        0 => none(),
        1 => return two(n, n),
        2 => three(n),
        3 => six(n, 2.5),
        4 => text(black_box("/index.html?q=1")),
        5 => mixed(black_box("hello"), black_box(&[1; 13]), black_box(Some(n))),
        6 => cut(black_box(&[1; 400])),
        7 => return scope(n),
        8 => return framed(n),
        _ => return locks(),
    }
    0
}

/// One event, between the marks.
#[inline(never)]
fn run(number: usize) {
    let mut frames = [0; MOST_FRAMES];
    let found = backtrace(&mut frames);
    // Without `backtrace` and this function.
    CALLERS.set(found[found.len().min(2)..].to_vec()).unwrap();
    mark(Mark::Begin);
    black_box(outer(number));
    mark(Mark::End);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [action, number] = &arguments[..] else { panic!("an action and a number") };
    let number: usize = number.parse().unwrap();
    ft_user::init().unwrap();
    LOOKS.store(action == "backtrace", Relaxed);
    if action == "profile" {
        profiled(number);
        return say();
    }
    handle(libc::SIGUSR1, handler);
    if number < KINDS {
        for _ in 0..2 {
            black_box(outer(number));
            inner();
        }
    }
    run(number % KINDS);
    say();
    mark(Mark::Done);
}

fn say() {
    let callers = CALLERS.get().map_or(0, Vec::len);
    let (handled, without) = (HANDLED.load(Relaxed), WITHOUT_CALLERS.load(Relaxed));
    println!("{callers} callers, {handled} handled, {without} without callers");
}
