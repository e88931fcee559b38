//! What a trigger costs, off and on, against what it must be measured by, in one run.
//!
//! Every subject runs in a loop around a body of known cost, in turns with the same loop without it;
//! the difference of the minima and of the medians is shown. Two bodies: *latency*, one dependency chain
//! that leaves most issue slots empty, where a trigger can hide; *issue*, six chains that fill them,
//! where it cannot. Cycles are those of the time stamp counter.
//!
//! `cargo bench -p ft-user --bench trigger [-- REPETITIONS]`

use std::arch::asm;
use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use ft_user::event;
use ft_user::layout::{Mode, PAGE, RingControl};
use ft_user::reader::{Reader, Uncommitted};
use ft_user::ring::Ring;

/// Passes of one measurement of a subject that is off, and of one that is on.
const OFF_PASSES: u64 = 200_000;
const ON_PASSES: u64 = 100_000;
const RING_SLOTS: u32 = 1 << 16;

static FLAG: AtomicBool = AtomicBool::new(false);

type Loop = fn(u64, u64) -> u64;

macro_rules! step {
    ($($x:ident)*) => {$(
        $x ^= $x << 13;
        $x ^= $x >> 7;
        $x ^= $x << 17;
        // SAFETY: no instruction. Holds each chain in a register of its own: in vector registers the
        // six would leave issue slots empty.
        unsafe { asm!("/* {} */", inout(reg) $x, options(pure, nomem, nostack, preserves_flags)) };
    )*};
}

/// Holds a value in a register, so that every loop counts in the same way, with or without a use of
/// its counter.
macro_rules! hold {
    ($i:ident) => {
        // SAFETY: no instruction.
        unsafe { asm!("/* {} */", in(reg) $i, options(nomem, nostack, preserves_flags)) }
    };
}

/// A loop with one dependency chain, and one with six, around the subject.
macro_rules! loops {
    ($latency:ident, $issue:ident, |$x:ident, $i:ident| $subject:expr) => {
        #[inline(never)]
        fn $latency(n: u64, mut $x: u64) -> u64 {
            for $i in 0..n {
                step!($x);
                hold!($i);
                $subject;
            }
            $x
        }
        #[inline(never)]
        fn $issue(n: u64, mut $x: u64) -> u64 {
            let (mut a, mut b, mut c, mut d, mut e) = ($x + 1, $x + 2, $x + 3, $x + 4, $x + 5);
            for $i in 0..n {
                step!($x a b c d e);
                hold!($i);
                $subject;
            }
            $x ^ a ^ b ^ c ^ d ^ e
        }
    };
}

macro_rules! sixteen {
    ($e:expr) => {{
        $e;
        $e;
        $e;
        $e;
        $e;
        $e;
        $e;
        $e;
        $e;
        $e;
        $e;
        $e;
        $e;
        $e;
        $e;
        $e;
    }};
}

/// One five-byte instruction that does nothing.
macro_rules! nop {
    () => {
        // SAFETY: `nop dword ptr [rax + rax]`, which reads no memory.
        unsafe {
            asm!(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", options(nomem, nostack, preserves_flags))
        }
    };
}

/// The trigger of the Feather-Trace paper: `jmp` over a displacement byte, always taken.
macro_rules! paper {
    () => {
        // SAFETY: jumps to the next instruction.
        unsafe {
            asm!(
                ".byte 0xeb, 0x03",
                ".byte 0x0f, 0x1f, 0x00",
                options(nomem, nostack, preserves_flags)
            )
        }
    };
}

macro_rules! load_and_branch {
    ($x:ident, $i:ident) => {
        if FLAG.load(Ordering::Relaxed) {
            cold($x, $i);
        }
    };
}

#[cold]
#[inline(never)]
fn cold(a: u64, b: u64) {
    black_box((a, b));
}

loops!(base_latency, base_issue, |x, i| hold!(i));
loops!(nop_latency, nop_issue, |x, i| nop!());
loops!(nop16_latency, nop16_issue, |x, i| sixteen!(nop!()));
loops!(paper_latency, paper_issue, |x, i| paper!());
loops!(paper16_latency, paper16_issue, |x, i| sixteen!(paper!()));
loops!(flag_latency, flag_issue, |x, i| load_and_branch!(x, i));
loops!(flag16_latency, flag16_issue, |x, i| sixteen!(load_and_branch!(x, i)));
loops!(off_latency, off_issue, |x, i| event!("bench.off", x: u64, i: u64));
loops!(off16_latency, off16_issue, |x, i| sixteen!(event!("bench.off16", x: u64, i: u64)));
loops!(rdtsc_latency, rdtsc_issue, |x, i| black_box(rdtsc()));
loops!(on_latency, on_issue, |x, i| event!("bench.on", x: u64, i: u64));
loops!(on6_latency, on6_issue, |x, i| event!(
    "bench.on6", x: u64, i: u64, a: u64 = x + 1, b: u64 = x ^ 2, c: u64 = i + 3, d: u64 = i ^ x
));
loops!(on16b_latency, on16b_issue, |x, i| event!("bench.on_text16", i: u64, t: &str = &TEXT[..16]));
loops!(on256b_latency, on256b_issue, |x, i| event!("bench.on_text256", i: u64, t: &str = TEXT));

/// A text of 256 bytes.
const TEXT: &str = {
    const BYTES: [u8; 256] = [b't'; 256];
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => unreachable!(),
    }
};

#[inline(always)]
fn rdtsc() -> u64 {
    // SAFETY: every x86-64 has the instruction.
    unsafe { _rdtsc() }
}

fn begin() -> u64 {
    // SAFETY: every x86-64 has the instructions. The fences keep the work on its side of the reading.
    unsafe {
        _mm_lfence();
        let tsc = _rdtsc();
        _mm_lfence();
        tsc
    }
}

fn end() -> u64 {
    // SAFETY: as in `begin`.
    unsafe {
        let tsc = __rdtscp(&mut 0);
        _mm_lfence();
        tsc
    }
}

fn cycles_per_pass(subject: Loop, passes: u64, seed: u64) -> f64 {
    let start = begin();
    black_box(subject(passes, black_box(seed)));
    (end() - start) as f64 / passes as f64
}

/// Cycles per pass that the subject adds to the base: (minimum, median).
fn measure(base: Loop, subject: Loop, passes: u64, repetitions: usize) -> (f64, f64) {
    cycles_per_pass(base, passes / 10, 1);
    cycles_per_pass(subject, passes / 10, 1);
    let (mut without, mut with): (Vec<f64>, Vec<f64>) = (0..repetitions as u64)
        .map(|r| (cycles_per_pass(base, passes, r + 3), cycles_per_pass(subject, passes, r + 3)))
        .unzip();
    without.sort_by(f64::total_cmp);
    with.sort_by(f64::total_cmp);
    (with[0] - without[0], with[repetitions / 2] - without[repetitions / 2])
}

/// A table whose ratios refer to its first row.
struct Table {
    cycles_per_ns: f64,
    repetitions: usize,
    first: Option<[f64; 2]>,
}

impl Table {
    fn new(title: &str, cycles_per_ns: f64, repetitions: usize) -> Table {
        println!("\n{title}");
        println!("{:<44}{:>34}{:>34}", "", "latency body", "issue body");
        let unit = format!("{:>10}{:>10}{:>8}{:>6}", "min cyc", "med cyc", "med ns", "ratio");
        println!("{:<44}{unit}{unit}", "");
        Table { cycles_per_ns, repetitions, first: None }
    }

    /// Measures `latency` and `issue`, with `sites` subjects a pass.
    fn row(&mut self, name: &str, latency: Loop, issue: Loop, passes: u64, sites: f64) {
        let bodies = [(base_latency as Loop, latency), (base_issue, issue)];
        let results =
            bodies.map(|(base, subject)| measure(base, subject, passes, self.repetitions));
        let medians = results.map(|(_, median)| median / sites);
        let first = *self.first.get_or_insert(medians);
        print!("{name:<44}");
        for (((min, _), median), first) in results.into_iter().zip(medians).zip(first) {
            let ratio = if first.abs() < 0.02 { f64::NAN } else { median / first };
            print!(
                "{:>10.2}{median:>10.2}{:>8.2}{ratio:>6.2}",
                min / sites,
                median / self.cycles_per_ns
            );
        }
        println!();
    }
}

fn cycles_per_ns() -> f64 {
    let (time, tsc) = (Instant::now(), begin());
    while time.elapsed() < Duration::from_millis(200) {}
    (end() - tsc) as f64 / time.elapsed().as_nanos() as f64
}

fn pin(cpu: usize) {
    // SAFETY: `set` is a plain bit set, and lives through the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// A ring in memory of this process.
fn new_ring() -> &'static RingControl {
    let bytes = PAGE as usize + RING_SLOTS as usize * 32;
    // SAFETY: an anonymous mapping that is never unmapped, zeroed; a control page may be zero but for
    // its mask, which nobody reads yet.
    unsafe {
        let memory = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
            -1,
            0,
        );
        assert_ne!(memory, libc::MAP_FAILED, "no memory for the ring");
        let control = memory.cast::<RingControl>();
        (*control).mask = RING_SLOTS as u64 - 1;
        &*control
    }
}

fn ring(control: &'static RingControl) -> Ring<'static> {
    // SAFETY: made by `new_ring` with this many slots.
    unsafe { Ring::new(control, RING_SLOTS) }.expect("a valid number of slots")
}

fn enable(pattern: &str) {
    let mut text = ft_user::patch::Text::own().expect("the own text can be patched");
    ft_user::site::for_each(|site| {
        if site.meta.name().starts_with(pattern) {
            text.set(site.trigger as u64, true).expect("the site can be patched");
        }
    });
}

fn main() {
    // `cargo bench` passes `--bench`; `cargo test` does not, and then everything runs once.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = arguments.iter().find_map(|argument| argument.parse().ok());
    let bench = arguments.iter().any(|argument| argument == "--bench");
    let repetitions: usize = number.unwrap_or(if bench { 31 } else { 1 });

    pin(1);
    let clock = cycles_per_ns();
    println!("TSC {clock:.4} GHz, {repetitions} repetitions, pinned to CPU 1 where there is one");

    let mut off = Table::new("off, one site", clock, repetitions);
    off.row("relaxed load and branch", flag_latency, flag_issue, OFF_PASSES, 1.0);
    off.row("event!, off", off_latency, off_issue, OFF_PASSES, 1.0);
    off.row("nop, 5 bytes", nop_latency, nop_issue, OFF_PASSES, 1.0);
    off.row("jump of the paper", paper_latency, paper_issue, OFF_PASSES, 1.0);

    let mut off = Table::new("off, one of sixteen sites", clock, repetitions);
    off.row("relaxed load and branch", flag16_latency, flag16_issue, OFF_PASSES, 16.0);
    off.row("event!, off", off16_latency, off16_issue, OFF_PASSES, 16.0);
    off.row("nop, 5 bytes", nop16_latency, nop16_issue, OFF_PASSES, 16.0);
    off.row("jump of the paper", paper16_latency, paper16_issue, OFF_PASSES, 16.0);

    let control = new_ring();
    ring(control).prepare(Mode::Overwrite);
    // SAFETY: this thread alone writes to the ring, which stays mapped.
    unsafe { ft_user::thread::set(control) };
    enable("bench.on");
    let mut on = Table::new("on, overwriting, no reader", clock, repetitions);
    on.row("rdtsc", rdtsc_latency, rdtsc_issue, ON_PASSES, 1.0);
    on.row("event!, 2 words", on_latency, on_issue, ON_PASSES, 1.0);
    on.row("event!, 6 words", on6_latency, on6_issue, ON_PASSES, 1.0);
    on.row("event!, a word and a text of 16 bytes", on16b_latency, on16b_issue, ON_PASSES, 1.0);
    on.row("event!, a word and a text of 256 bytes", on256b_latency, on256b_issue, ON_PASSES, 1.0);

    ring(control).prepare(Mode::Discard);
    let started = Arc::new(Barrier::new(2));
    let reader_started = started.clone();
    let reader = std::thread::spawn(move || {
        pin(0);
        reader_started.wait();
        let (mut reader, mut out) = (Reader::newest(&ring(control)), Vec::new());
        let mut slots = 0;
        while !FLAG.load(Ordering::Relaxed) {
            slots += reader.drain(&ring(control), Uncommitted::Wait, u64::MAX, &mut out).slots;
            out.clear();
            std::thread::sleep(Duration::from_micros(100));
        }
        slots
    });
    started.wait();
    let mut on =
        Table::new("on, discarding, a reader on another CPU every 0.1 ms", clock, repetitions);
    on.row("rdtsc", rdtsc_latency, rdtsc_issue, ON_PASSES, 1.0);
    on.row("event!, 2 words", on_latency, on_issue, ON_PASSES, 1.0);
    FLAG.store(true, Ordering::Relaxed);
    let read = reader.join().expect("the reader ends");
    let lost = control.lost.load(Ordering::Relaxed);
    println!("{read} slots read, {lost} events lost");
    if lost > read / 100 {
        println!("the reader had too little of its CPU: the row is in part that of losses");
    }
    assert!(read > 0, "nothing was recorded");

    let mut full = Table::new("on, the ring is full and nobody reads", clock, repetitions);
    full.row("rdtsc", rdtsc_latency, rdtsc_issue, ON_PASSES, 1.0);
    full.row("event!, 2 words, lost", on_latency, on_issue, ON_PASSES, 1.0);
}
