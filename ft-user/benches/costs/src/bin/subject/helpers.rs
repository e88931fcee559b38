//! The two helpers with which a BPF program can tell a call chain, in programs that do nothing else, which the kernel runs in a
//! chain of known length, and whose time it takes itself.
//!
//! One program writes the addresses into a ring buffer, as ours do; the other has the kernel keep the chain, and writes its
//! number. Each time it is the same chain: the kernel has it already, no other collides with it, and nobody reads it. So this
//! is the least that numbers cost.

use std::ffi::c_void;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

use ft_costs::{cpu, fewer, median, tell};

/// Functions of the chain.
const DEPTH: i32 = 16;

/// Runs between two looks at the time.
const RUNS: u64 = 10_000;
const BATCHES: u64 = 15;

/// Most addresses, as in our programs; their bytes, and room for them of a power of two, which the verifier understands.
const MAX_ADDRESSES: i32 = 127;
const CHAIN_BYTES: i32 = 8 * MAX_ADDRESSES;
const ROOM: i32 = 1024;

/// Room for all records of a batch.
const RING_BYTES: i32 = 4 << 20;

// linux/bpf.h.
const MAP_CREATE: u32 = 0;
const PROG_LOAD: u32 = 5;
const ENABLE_STATS: u32 = 32;
const PERCPU_ARRAY: i32 = 6;
const STACK_TRACE: i32 = 7;
const RINGBUF: i32 = 27;
const RAW_TRACEPOINT: u32 = 17;
const USER_STACK: i32 = 1 << 8;
const NO_WAKEUP: i32 = 1;
const MAP_LOOKUP_ELEM: i32 = 1;
const GET_STACKID: i32 = 27;
const GET_STACK: i32 = 67;
const RINGBUF_OUTPUT: i32 = 130;

unsafe extern "C" {
    safe fn ft_costs_run(depth: i32, program: RawFd, passes: u64) -> u64;
}

/// An instruction (`struct bpf_insn`): code, registers (the source in the upper half), offset, immediate.
type Instruction = (u8, u8, i16, i32);

const EXIT: Instruction = (0x95, 0, 0, 0);

fn set(register: u8, value: i32) -> Instruction {
    (0xb7, register, 0, value)
}

fn copy(to: u8, from: u8) -> Instruction {
    (0xbf, from << 4 | to, 0, 0)
}

fn call(helper: i32) -> Instruction {
    (0x85, 0, 0, helper)
}

/// A map, into a register.
fn load(register: u8, map: &OwnedFd) -> [Instruction; 2] {
    [(0x18, 1 << 4 | register, 0, map.as_raw_fd()), (0, 0, 0, 0)]
}

/// The `n` bytes at register 7, or as many as register 8 says, go into the ring; then it is over.
fn output(ring: &OwnedFd, bytes: Instruction) -> Vec<Instruction> {
    let [low, high] = load(1, ring);
    let output = [copy(2, 7), bytes, set(4, NO_WAKEUP), call(RINGBUF_OUTPUT), set(0, 0), EXIT];
    [&[low, high][..], &output].concat()
}

/// Ends the program if the result is not more than 0; jumps over two.
const ENDS_UNLESS_MORE: [Instruction; 3] = [(0x65, 0, 2, 0), (0xb7, 0, 0, 0), EXIT];

/// Writes the chain.
fn chain(ring: &OwnedFd, room: &OwnedFd) -> Vec<Instruction> {
    let [low, high] = load(1, room);
    let buffer = [
        copy(6, 1),
        (0x62, 10, -4, 0),
        low,
        high,
        copy(2, 10),
        (0x07, 2, 0, -4),
        call(MAP_LOOKUP_ELEM),
        (0x55, 0, 2, 0),
        set(0, 0),
        EXIT,
        copy(7, 0),
    ];
    let take = [copy(1, 6), copy(2, 7), set(3, CHAIN_BYTES), set(4, USER_STACK), call(GET_STACK)];
    let bytes = [(0x57, 0, 0, ROOM - 1), copy(8, 0)];
    [&buffer[..], &take, &ENDS_UNLESS_MORE, &bytes, &output(ring, copy(3, 8))].concat()
}

/// Has it kept, and writes its number.
fn number(ring: &OwnedFd, chains: &OwnedFd) -> Vec<Instruction> {
    let [low, high] = load(2, chains);
    let take = [low, high, set(3, USER_STACK), call(GET_STACKID)];
    [&take[..], &ENDS_UNLESS_MORE, &told(ring, 0)].concat()
}

/// Writes a register's eight bytes.
fn told(ring: &OwnedFd, register: u8) -> Vec<Instruction> {
    let bytes = [(0x7b, register << 4 | 10, -8, 0), copy(7, 10), (0x07, 7, 0, -8)];
    [&bytes[..], &output(ring, set(3, 8))].concat()
}

fn bpf(command: u32, attributes: &[u64]) -> OwnedFd {
    // SAFETY: the attributes are whole, and what they point to outlives the call.
    let fd = unsafe {
        libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size_of_val(attributes))
    };
    assert!(fd >= 0, "bpf({command}): {}", std::io::Error::last_os_error());
    // SAFETY: the kernel has just given it to us.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

fn words(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn map(kind: i32, key_bytes: i32, value_bytes: i32, entries: i32) -> OwnedFd {
    let [kind, key, value, entries] = [kind, key_bytes, value_bytes, entries].map(|n| n as u32);
    bpf(MAP_CREATE, &[words(kind, key), words(value, entries), 0, 0])
}

fn program(instructions: &[Instruction]) -> OwnedFd {
    let encoded = |&(code, registers, offset, value): &Instruction| {
        let low = u32::from(offset as u16) << 16 | u32::from(registers) << 8 | u32::from(code);
        words(low, value as u32)
    };
    let encoded: Vec<u64> = instructions.iter().map(encoded).collect();
    let license = c"GPL";
    let attributes = [
        words(RAW_TRACEPOINT, encoded.len() as u32),
        encoded.as_ptr() as u64,
        license.as_ptr() as u64,
        0,
        0,
        0,
    ];
    bpf(PROG_LOAD, &attributes)
}

/// The positions of a ring buffer: who reads has read all that was written.
struct Ring {
    read: *mut c_void,
    written: *mut c_void,
}

impl Ring {
    fn of(map: &OwnedFd) -> Ring {
        const PAGE: usize = 4096;
        let page = |rights, at: usize| {
            // SAFETY: a new mapping of a page, which stays until the end.
            let page = unsafe {
                let at = at as libc::off_t;
                libc::mmap(ptr::null_mut(), PAGE, rights, libc::MAP_SHARED, map.as_raw_fd(), at)
            };
            assert_ne!(page, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
            page
        };
        let read = page(libc::PROT_READ | libc::PROT_WRITE, 0);
        Ring { read, written: page(libc::PROT_READ, PAGE) }
    }

    /// How many bytes there were.
    fn empty(&self) -> u64 {
        // SAFETY: each page begins with a position, which the kernel reads and writes whole.
        let [read, written] =
            [self.read, self.written].map(|at| unsafe { AtomicU64::from_ptr(at.cast()) });
        let position = written.load(Acquire);
        let before = read.swap(position, Release);
        position - before
    }
}

/// Time and number of all runs of a program.
fn taken(program: &OwnedFd) -> [u64; 2] {
    let path = format!("/proc/self/fdinfo/{}", program.as_raw_fd());
    let text = fs::read_to_string(path).expect("what the kernel knows of it");
    ["run_time_ns:", "run_cnt:"].map(|name| {
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.expect("it counts").trim().parse().expect("a number")
    })
}

/// Tells `chain`, `number`, `neither` and `nothing`, ns a run; and `bytes`, of a record with a chain
/// and what the ring buffer has before each.
pub(crate) fn measure() {
    cpu::pin(cpu::measured());
    let _stats = bpf(ENABLE_STATS, &[0]);
    let ring = map(RINGBUF, 0, 0, RING_BYTES);
    let room = map(PERCPU_ARRAY, 4, ROOM, 1);
    let chains = map(STACK_TRACE, 4, CHAIN_BYTES, 1 << 14);
    let constant = [set(0, 1), copy(1, 0)];
    let programs = [
        ("chain", chain(&ring, &room)),
        ("number", number(&ring, &chains)),
        ("neither", [&constant[..], &told(&ring, 1)].concat()),
        ("nothing", vec![set(0, 0), EXIT]),
    ];
    let programs = programs.map(|(name, instructions)| (name, program(&instructions)));
    let ring = Ring::of(&ring);
    let (mut samples, mut record) = (programs.each_ref().map(|_| Vec::new()), 0);
    for _ in 0..fewer(BATCHES, 3) {
        for ((name, program), samples) in programs.iter().zip(&mut samples) {
            let [time, runs] = taken(program);
            assert_eq!(ft_costs_run(DEPTH, program.as_raw_fd(), RUNS), RUNS, "{name}");
            let bytes = ring.empty();
            let [time, runs] = [taken(program)[0] - time, taken(program)[1] - runs];
            assert!(runs == RUNS && (bytes > 0 || *name == "nothing"), "{name}: {runs} {bytes}");
            if *name == "chain" {
                assert!(bytes >= RUNS * 8 * DEPTH as u64, "a chain of {} bytes", bytes / RUNS);
                record = bytes / RUNS;
            }
            samples.push(time as f64 / runs as f64);
        }
    }
    tell("bytes", record as f64);
    for ((name, _), samples) in programs.iter().zip(samples) {
        tell(name, median(samples));
    }
}
