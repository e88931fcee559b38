//! Sections under locks of the kernel, counted.

use super::Header;

/// Sections under locks of the kernel are counted, not recorded one by one.
pub mod section {
    /// Under a spinlock: values of [`Section::kind`](super::Section::kind).
    pub const SPIN: u32 = 0;
    /// Under a mutex.
    pub const MUTEX: u32 = 1;
    /// Under a semaphore of readers and writers, as a reader.
    pub const READ: u32 = 2;
    /// As a writer.
    pub const WRITE: u32 = 3;
    /// Under a counting semaphore.
    pub const SEMAPHORE: u32 = 4;
    /// Under a spinlock of readers and writers, as a reader.
    pub const SPIN_READ: u32 = 5;
    /// As a writer.
    pub const SPIN_WRITE: u32 = 6;
    /// Under what is a spinlock on other kernels: on a real-time one its waiters sleep, and its holder can be preempted.
    pub const RT_SPIN: u32 = 7;
    /// Under what is a spinlock of readers and writers elsewhere, as a reader.
    pub const RT_READ: u32 = 8;
    /// As a writer.
    pub const RT_WRITE: u32 = 9;
    /// How many there are.
    pub const KINDS: u32 = 10;

    /// Whether the holder cannot leave its CPU, which then is what nests.
    #[inline(always)]
    pub const fn spins(kind: u32) -> bool {
        matches!(kind, SPIN | SPIN_READ | SPIN_WRITE)
    }

    /// Whether a thread can hold one such lock more than once.
    #[inline(always)]
    pub const fn is_shared(kind: u32) -> bool {
        matches!(kind, READ | SPIN_READ | RT_READ)
    }

    /// Bins of lengths: two for each power of two of nanoseconds; the last has all beyond 3.2 s.
    ///
    /// Limit: the last bin has all beyond 3.2 s; a percentile is the longest section of its bin, so up to half too
    /// high; the longest of all is exact.
    /// Shown by: `the_last_bin_has_all_that_is_longer`, `lengths_depths_and_what_is_missing_are_those_of_the_rows`.
    pub const LENGTHS: usize = 64;
    /// Depths that are told apart: all that are followed.
    ///
    /// Limit: cannot be reached: none is deeper that is followed.
    /// Shown by: `the_last_bin_has_all_that_is_longer`.
    pub const DEPTHS: usize = 8;
    /// Rows of a CPU: that of each kind and context, and those of callers.
    pub const ROWS: u32 = 2 * KINDS + CALLERS;
    /// Those of callers.
    ///
    /// Limit: those of others are in the row without a caller.
    /// Shown by: `sections_beyond_their_room_are_counted`, with room for one.
    pub const CALLERS: u32 = 512;
    /// Sections that are open at once, by CPU or thread, at most; further ones are counted ([`FULL`]).
    ///
    /// Limit: as `MOST_OPEN` of `section.rs`.
    pub const OPEN: u32 = DEPTHS as u32;
    /// Threads whose sections are followed at the same time, at most: one for each remainder of their number.
    ///
    /// Limit: the later one's sections are not followed, and counted (`full`).
    /// Shown by: `sections_beyond_their_room_are_counted`, with room for one.
    pub const THREADS: u32 = 8_192;

    /// What a record counts: values of [`Section::what`](super::Section::what). Sections by their length, ns.
    pub const LENGTH: u16 = 0;
    /// Sections by their depth.
    pub const DEPTH: u16 = 1;
    /// Begins, whether or not the end was seen.
    pub const BEGUN: u16 = 2;
    /// Begins that could not be followed.
    pub const FULL: u16 = 3;
    /// Ends of which no begin was seen.
    pub const ENDS: u16 = 4;
    /// Runs that could not be made, of any context.
    pub const SKIPPED: u16 = 5;
    /// Sections of the recording's own: of the agent's threads, and under locks of the programs' maps and ring buffers.
    pub const OWN: u16 = 6;

    /// A kind and a context in a number.
    pub const fn key(kind: u32, interrupt: bool) -> u32 {
        2 * kind + interrupt as u32
    }

    /// The row of what has no caller.
    pub const fn row(kind: u32, interrupt: bool) -> u32 {
        key(kind, interrupt)
    }

    /// The bin of a length.
    #[inline(always)]
    pub const fn bin(ns: u64) -> usize {
        if ns < 2 {
            return ns as usize;
        }
        let log = 63 - ns.leading_zeros();
        let bin = 2 * log as usize + (ns >> (log - 1) & 1) as usize;
        if bin < LENGTHS { bin } else { LENGTHS - 1 }
    }

    /// The shortest length of a bin, ns.
    pub const fn from_ns(bin: usize) -> u64 {
        if bin < 2 { bin as u64 } else { (2 + bin as u64 % 2) << (bin / 2 - 1) }
    }
}

/// Sections of one bin.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SectionBin {
    /// How many.
    pub count: u64,
    /// Their lengths together, ns.
    pub total_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
}

impl SectionBin {
    /// Counts one.
    #[inline(always)]
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.total_ns += ns;
        if ns > self.max_ns {
            self.max_ns = ns;
        }
    }
}

/// A row of the map that counts sections, of one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sections {
    /// To where the function returned that took the lock; 0: not told apart.
    pub caller: u64,
    /// [`section::key`].
    pub key: u32,
    /// Zero.
    pub reserved: u32,
    /// By length.
    pub lengths: [SectionBin; section::LENGTHS],
    /// By depth.
    pub depths: [SectionBin; section::DEPTHS],
    /// See [`section::BEGUN`]; this and what follows in rows without caller.
    pub begun: u64,
    /// See [`section::FULL`].
    pub full: u64,
    /// See [`section::ENDS`].
    pub ends: u64,
    /// See [`section::SKIPPED`].
    pub skipped: u64,
    /// See [`section::OWN`].
    pub own: SectionBin,
}

/// Sections under locks of the kernel that have something in common, as the agent has read them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Common part; `ts` is when they were read, and the rest says nothing.
    pub header: Header,
    /// As in [`Sections`].
    pub caller: u64,
    /// The shortest of the bin, ns, or its depth.
    pub from: u64,
    /// How many, how long.
    pub bin: SectionBin,
    /// One of [`mod@section`], like `what`.
    pub kind: u16,
    /// What is counted.
    pub what: u16,
    /// Not 0: of interrupts.
    pub interrupt: u32,
}
