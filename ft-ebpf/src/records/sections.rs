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
    /// How many there are.
    pub const KINDS: u32 = 4;

    /// Bins of lengths: two for each power of two of nanoseconds; the last has all beyond 3.2 s.
    pub const LENGTHS: usize = 64;
    /// Depths that are told apart; the last is it or more.
    pub const DEPTHS: usize = 8;
    /// Rows of a CPU: that of each kind and context, and those of callers.
    pub const ROWS: u32 = 2 * KINDS + 512;

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
