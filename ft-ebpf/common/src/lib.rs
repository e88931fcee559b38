//! Layout of the records that the kernel programs write into the BPF ring buffer, shared with the
//! agent that reads them.
//!
//! Every record starts with a [`Header`], whose `kind` says which struct it is. All are plain, native-endian,
//! without padding, and a multiple of 8 bytes:
//!
//! ```
//! use ft_ebpf::{Header, Migrate, kind, read};
//!
//! # let header = Header { ts: 5, kind: kind::MIGRATE, cpu: 0, tid: 7 };
//! # let written = Migrate { header, tid: 9, tgid: 8, from_cpu: 0, to_cpu: 1 };
//! # let words: [u32; 8] = [5, 0, kind::MIGRATE.into(), 7, 9, 8, 0, 1];
//! # let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
//! # assert_eq!(read::<Migrate>(&bytes), Some(written));
//! // `bytes` is what one entry of the ring buffer holds: any bytes are a record, but not too few of them.
//! let header: Header = read(&bytes).unwrap();
//! if header.kind == kind::MIGRATE {
//!     let moved: Migrate = read(&bytes).unwrap();
//!     println!("{} ns: thread {} goes to CPU {}", header.ts, moved.tid, moved.to_cpu);
//! #   assert_eq!((moved.tid, moved.to_cpu), (9, 1));
//! }
//! assert_eq!(read::<Migrate>(&bytes[1..]), None);
//! ```
//!
//! # Where to read on
//!
//! 1. [`kind`]: all kinds of records, each with its struct; [`Record`] and [`read`]: how bytes become one.
//! 2. [`program`]: the programs that can lose records, in the order of the map that counts them; [`Loss`].
//! 3. [`VERSION`]: the agent refuses an object with another layout.
//!
//! # Where it ends
//!
//! The programs themselves are a package of their own (`ft-ebpf/programs`), for the target `bpfel-unknown-none` alone; this
//! library never depends on `aya-ebpf`. What a record means is said by the tables that are made of
//! it (`ft_trace::tables`).
#![no_std]

pub mod program;
mod records;

pub use records::*;

/// Version of this layout; the object with the programs has a global `RECORD_LAYOUT_<VERSION>`.
pub const VERSION: u32 = 2;

/// The map of observed processes: a byte for each process id, 0 when it is not observed.
pub mod observed {
    /// The process is observed.
    pub const OBSERVED: u8 = 1;
    /// It is, and the last of its threads has begun to exit, if others have perhaps not come to the tracepoint. It stays so
    /// until its number is given to another.
    pub const LEAVING: u8 = 2;
    /// What stands at process 0, which nobody is, once the recording has ended: nothing is recorded any more, and what is
    /// under way stays as it was then.
    pub const ENDED: u8 = 3;
    /// Process ids lie below this (`PID_MAX_LIMIT`, linux/threads.h).
    pub const PIDS: usize = 1 << 22;
    /// Bytes of one value of the map.
    pub const CHUNK: usize = 4096;
}

/// What the programs keep of threads, by their numbers: bits of their global `KEPT`.
pub mod kept {
    /// System calls under way.
    ///
    /// Limit: a further one is a loss of `sys_enter` or `page_fault_user`, counted; `breakdown` is a lower bound.
    /// Shown by: `what_is_under_way_beyond_its_table_is_counted`.
    pub const CALLS: u32 = 1;
    /// Calls about futexes under way.
    ///
    /// Limit: a further one is a loss of `futex_enter`, counted.
    /// Shown by: `what_is_under_way_beyond_its_table_is_counted`.
    pub const FUTEX_CALLS: u32 = 2;
    /// Page faults under way.
    ///
    /// Limit: as `CALLS`.
    pub const FAULTS: u32 = 4;
    /// Where threads were when they left the CPU.
    ///
    /// Limit: a further one is a loss of `chain_switch`, counted.
    /// Shown by: `what_is_under_way_beyond_its_table_is_counted`.
    pub const PLACES: u32 = 8;
}

/// Words of the map `OWN`, by CPU: how many programs are at work on our own maps and ring buffers in a thread, whose waits for
/// locks of these are not recorded. Threads are told apart by the remainder of their number: of two of one remainder, waits of
/// the one are left out while the other is preempted within a program on that CPU.
pub const OWN_THREADS: usize = 256;

/// The one value of the per-CPU loss map: by index into [`program::NAMES`].
pub type Losses = [Loss; program::NAMES.len()];

/// What one program has lost on a CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Records that found no room.
    pub count: u64,
    /// `bpf_ktime_get_ns` of the first of them; 0 when there is none.
    pub first_ts: u64,
    /// `bpf_ktime_get_ns` of the newest.
    pub last_ts: u64,
}
