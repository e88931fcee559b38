//! The layout that a traced process and the agent share: the memfd, its rings, its directory, the
//! records of the linker section, and the messages of the registration socket.
//!
//! One memfd per process, named [`MEMFD_NAME`], sealed with [`SEALS`]:
//!
//! ```text
//! 0                 Header                      one page
//! dir_offset        directory                   DIR_BYTES, append-only log of DirEntry
//! shared_offset     shared multi-writer ring    one control page, then SHARED_SLOTS × SharedSlot
//! rings_offset      ring 0                      one control page (RingControl), then slots
//!                   ring 1 …                    rings_offset + i × ring_stride
//! ```
//!
//! Everything is native-endian and fixed-size. The reader trusts none of it: it masks every index,
//! bounds every length, and keeps its own positions.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

mod counter;
pub mod format;
mod site;
mod sled;
mod socket;

pub use counter::{COUNTERS, COUNTERS_AT_ONCE, COUNTERS_KEY, Counter, Counting, NOT_COUNTED};
pub use site::{
    ABSENT, Arg, ArgType, Frame, HOOKED_TASKS, NOTE_OWNER, NOTE_TYPE, OPTIONAL, SiteKind, SiteMeta,
    SiteRecord, Slice, Str, TEXT_CUT, TRIGGER_BYTES, TRIGGER_LENT, TRIGGER_OFF, TRIGGER_ON,
    TRIGGER_STATE, place_word,
};
pub(crate) use sled::BREAKPOINT;
#[cfg(all(feature = "sleds", target_arch = "x86_64", target_os = "linux", not(ft_off)))]
pub(crate) use sled::{DATA_OF_ENTRY, DATA_OF_JUMP, DATA_OF_RETURN};
pub use sled::{SLED_BYTES, SLEDS_NOTE, Sled, SledEntry, SledKind, SledState, SledTable};
pub use socket::{DEFAULT_SOCKET, Hello, MAX_REPLY_BYTES, NO_ANSWER, Reply};

/// Name given to `memfd_create`; `/proc/PID/fd/N` then reads `/memfd:feather-trace (deleted)`.
pub const MEMFD_NAME: &core::ffi::CStr = c"feather-trace";

/// `F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW` (linux/fcntl.h): the size is final, so that a reader
/// that has checked it once can never be sent a `SIGBUS`.
pub const SEALS: u32 = 0x1 | 0x2 | 0x4;

/// First eight bytes of the memfd: `FTTRACE` and a NUL.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FTTRACE\0");

/// Version of everything in this module. A reader refuses any other.
pub const VERSION: u32 = 6;

/// Page size of x86-64; control pages and regions start on its multiples.
pub const PAGE: u64 = 4096;

/// Size of the directory region in bytes (sparse: only what is written is backed).
///
/// Limit: counted in `loss` as `directory`; events of a site without an entry have no name.
/// Shown by: `full_directory_drops_and_counts`, `a_full_table_refuses_…`.
pub const DIR_BYTES: u64 = 4 << 20;

/// Largest `ring_slots` that a reader accepts: 2^22 slots, 128 MiB.
///
/// Limit: each lost event is counted and has a place in `loss`.
/// Shown by: `loss_is_told_before_the_first_event_that_fits`.
pub const MAX_RING_SLOTS: u32 = 1 << 22;

/// Smallest `ring_slots`; must exceed [`MARGIN_SLOTS`] plus one event.
pub const MIN_RING_SLOTS: u32 = 1 << 12;

/// Largest number of rings that a reader accepts.
///
/// Limit: counted in `loss`.
/// Shown by: `full_ring_counts_the_loss`.
pub const MAX_RINGS: u32 = 4096;

/// Slots of the shared multi-writer ring.
///
/// Limit: as `MAX_RINGS`.
pub const SHARED_SLOTS: u32 = 1 << 13;

/// Slots of one ring that discard mode keeps free.
///
/// A writer checks fullness, then reserves. A signal handler may run in between, check for itself,
/// and be interrupted in turn: with at most 64 signals nested, each level overshoots by one event of
/// at most [`MAX_EVENT_SLOTS`].
///
/// Limit: as `MAX_RING_SLOTS`.
pub const MARGIN_SLOTS: u32 = 64 * MAX_EVENT_SLOTS;

/// Most slots that one event takes: the first and 12 continuations (2 + 12 × 3 words, 304 bytes).
///
/// Limit: as `MAX_STRING_BYTES` of `directory/mod.rs`.
pub const MAX_EVENT_SLOTS: u32 = 13;

/// Arguments of one event, at most.
///
/// Limit: the program does not compile; in an event of `tracing`, fields beyond it share one argument `fields`, as
/// text, which is marked if it is cut.
/// Shown by: `what_has_no_room_is_text`.
pub const MAX_ARGS: usize = 6;

/// First page of the memfd.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], stored last (release) when the rest is valid.
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: u32,
    /// `size_of::<Header>()`.
    pub header_bytes: u32,
    /// Size of the whole memfd.
    pub total_bytes: u64,
    /// Process id in the process's own PID namespace. Informational: the agent asks the kernel.
    pub pid: u32,
    /// [`Mode`] of all rings.
    pub mode: u32,
    /// Start of the directory region.
    pub dir_offset: u64,
    /// Start of the control page of the shared ring.
    pub shared_offset: u64,
    /// Start of ring 0.
    pub rings_offset: u64,
    /// Distance between two rings: `PAGE + ring_slots * 32`.
    pub ring_stride: u64,
    /// Number of rings, `1 ..= MAX_RINGS`.
    pub ring_count: u32,
    /// Slots per ring, a power of two in `MIN_RING_SLOTS ..= MAX_RING_SLOTS`.
    pub ring_slots: u32,
    /// Slots of the shared ring, a power of two.
    pub shared_slots: u32,
    /// Directory entries that did not fit and were dropped.
    pub dir_dropped: AtomicU32,
    /// Bytes of the directory that are reserved (`fetch_add`); may exceed [`DIR_BYTES`] when full.
    pub dir_head: AtomicU64,
    /// Number of rings that were ever claimed: rings at or above this index were never touched.
    pub rings_used: AtomicU32,
    /// Sites that are enabled now; informational.
    pub sites_enabled: AtomicU32,
    /// How long a thread may wait for room in its full ring before it loses an event, µs; 0: not at all. Written by the
    /// reader only, as long as it reads.
    pub full_wait_us: AtomicU32,
    /// The counters that threads read with each of their events, a [`Counting`]; 0: none. Written by the reader only, as
    /// long as it reads. A process resets it, and the word before, with the [`lease`] of a reader that is gone.
    pub counting: AtomicU32,
    /// Until when sites are on for an agent, see [`lease`].
    pub lease: AtomicU64,
}

/// How long what an agent has switched on stays so: [`Header::lease`] is a TSC, which the agent moves ahead as long as it is there, or
/// one of these.
pub mod lease {
    /// No agent has said anything.
    pub const NONE: u64 = 0;
    /// The agent has gone, and may have left sites on.
    pub const OVER: u64 = 1;
    /// The process has noticed that the agent is gone, and switches off, or has, what was on for it.
    pub const TAKEN_BACK: u64 = 2;
    /// How far ahead an agent moves it, TSC ticks: 17 billion, which are 4 to 9 s at 2 to 4 GHz.
    pub const TICKS: u64 = 1 << 34;
}

/// What a writer does when its ring is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// Drop the new event and count it; mark the place with a loss event.
    Discard = 0,
    /// Flight recorder: overwrite the oldest.
    Overwrite = 1,
}

/// State of a ring, `RingControl::state`.
pub mod ring_state {
    /// Nobody owns the ring; a thread may claim it (compare-and-exchange to `CLAIMED`).
    pub const FREE: u32 = 0;
    /// A running thread owns it.
    pub const LIVE: u32 = 1;
    /// Its thread has ended; the reader drains it and then sets `FREE`.
    pub const EXITED: u32 = 2;
    /// A thread has claimed it and is about to own it.
    pub const CLAIMED: u32 = 3;
}

/// Control page of one per-thread ring. Three cache lines, by who writes them.
#[repr(C, align(64))]
pub struct RingControl {
    /// Next index to reserve, in slots since the ring was made. Starts at `ring_slots`, so that a tag
    /// is never that of zeroed memory. Written with one unlocked `xadd` by the owner only.
    pub head: AtomicU64,
    /// The owner may reserve while `head < limit`; recomputed from `tail` on the slow path.
    pub limit: AtomicU64,
    /// `ring_slots - 1`.
    pub mask: u64,
    /// Events lost in all (discard mode).
    pub lost: AtomicU64,
    /// Of these, how many no loss event has reported yet; they began at `loss_begin_tsc`.
    pub lost_pending: AtomicU64,
    /// TSC of the first loss that is not yet reported.
    pub loss_begin_tsc: AtomicU64,
    /// Where writes are guarded: below this index no slot holds a write of the owner that may go on (`guard.rs`).
    pub clear_until: AtomicU64,
    _pad0: u64,

    /// Written by the reader only: everything below is consumed.
    pub tail: AtomicU64,
    /// The index behind the newest write that the reader has passed over although its thread lives; 0: none. Written by the reader
    /// only, but at the begin of a forked child.
    pub passed_at: AtomicU64,
    /// Written by the reader only: of the events lost in all, how many loss events it has read or has told of itself.
    pub told: AtomicU64,
    _pad1: [u64; 5],

    /// One of [`ring_state`].
    pub state: AtomicU32,
    /// Thread id of the owner in its own PID namespace.
    pub tid: AtomicU32,
    /// Counts claims; differs between two owners of one ring.
    pub generation: AtomicU32,
    /// Events of the owner that a fork has cut in two, in the ring of the child: their rest is written where no reader looks. The
    /// reader takes the number when it tells of them.
    pub cut_by_fork: AtomicU32,
    /// `head` when the present owner claimed the ring; in a forked child, where its oldest write begins that the fork has cut in two.
    pub claimed_at: AtomicU64,
    /// Thread name when it was claimed (`PR_GET_NAME`), NUL-padded.
    pub name: [AtomicU64; 2],
    /// TSC where a wait for room began that was in vain and is not yet reported, and where it ended; `u64::MAX` and 0 if there
    /// is none.
    pub vain_wait_tsc: [AtomicU64; 2],
    /// [`Mode`] in which the present owner writes.
    pub mode: AtomicU32,
    _pad2: u32,
}

/// A slot of a per-thread ring.
///
/// The first slot of an event holds the commit word, the TSC and two argument words; a continuation
/// slot holds a commit word of its own ([`commit::CONTINUATION`] set) and three more words.
#[repr(C, align(32))]
pub struct Slot {
    /// See [`commit`].
    pub commit: AtomicU64,
    /// TSC in the first slot, a payload word in a continuation.
    pub words: [AtomicU64; 3],
}

/// The commit word: `tag << 49 | continuations << 45 | cpu << 32 | key | flags`.
///
/// `key` is the low half of the address of the site's [`SiteMeta`] (aligned to 8, so three bits are free
/// for flags). Within one process it is unique, or the later of two colliding sites is refused.
pub mod commit {
    /// Flag: the slot is complete. A slot that is being written lacks it.
    pub const COMMITTED: u64 = 1;
    /// Flag: a continuation slot.
    pub const CONTINUATION: u64 = 2;
    /// Flag: the slot holds nothing. Its writer has passed over it, and over as many slots behind it as its last word says, which an
    /// unfinished write of the same thread may still fill.
    pub const PASSED: u64 = 4;
    /// All flags: the bits that no key has.
    pub const FLAGS: u64 = 7;
    /// First bit of the CPU number, 13 bits.
    pub const CPU_SHIFT: u32 = 32;
    /// The CPU is not known (no rseq).
    pub const CPU_UNKNOWN: u64 = (1 << 13) - 1;
    /// First bit of the number of continuation slots, 4 bits.
    pub const CONT_SHIFT: u32 = 45;
    /// Mask of the number of continuation slots, unshifted.
    pub const CONT_MASK: u64 = 15;
    /// First bit of the lap tag, 15 bits.
    pub const TAG_SHIFT: u32 = 49;
    /// Mask of the tag, unshifted.
    pub const TAG_MASK: u64 = (1 << 15) - 1;
    /// The tag of index `i` is `(i >> TAG_INDEX_SHIFT) & TAG_MASK`: constant for any ring size, and
    /// different on successive laps because `MIN_RING_SLOTS >= 1 << TAG_INDEX_SHIFT` and
    /// `MAX_RING_SLOTS < 1 << (TAG_INDEX_SHIFT + 15)`.
    pub const TAG_INDEX_SHIFT: u32 = 12;

    /// Tag of the slot with reservation index `index`.
    #[inline(always)]
    pub const fn tag(index: u64) -> u64 {
        (index >> TAG_INDEX_SHIFT) & TAG_MASK
    }
    /// How many slots before `index` the slot with this commit word was reserved, modulo the period of tags, rounded down.
    #[inline]
    pub const fn age(word: u64, index: u64) -> u64 {
        (tag(index).wrapping_sub(word >> TAG_SHIFT) & TAG_MASK) << TAG_INDEX_SHIFT
    }
    /// Site key.
    #[inline]
    pub const fn key(word: u64) -> u32 {
        word as u32 & !(FLAGS as u32)
    }
    /// CPU number, `CPU_UNKNOWN` when not known.
    #[inline]
    pub const fn cpu(word: u64) -> u16 {
        ((word >> CPU_SHIFT) & CPU_UNKNOWN) as u16
    }
    /// Number of continuation slots, `0 ..= 12` when valid (the field holds up to 15).
    #[inline]
    pub const fn continuations(word: u64) -> u32 {
        ((word >> CONT_SHIFT) & CONT_MASK) as u32
    }
}

/// Key of the event that reports a loss: words are (TSC of the event, TSC where the loss began, count).
/// No site has it: it lies in the first page, which is never mapped.
pub const LOSS_KEY: u32 = 8;

/// Key of the event that reports a wait for room: the TSC of the event is where the wait began, its word is where it
/// ended. Its [`dir_kind::META`] is in the directory before the first of them. No site has it, as [`LOSS_KEY`].
pub const RING_WAIT_KEY: u32 = 16;

/// Control page of the shared multi-writer ring: the paper's buffer (Feather-Trace, section 2.2 and
/// figure 3), free count, write index, error count; the slot markers are in the slots.
#[repr(C, align(64))]
pub struct SharedControl {
    /// Free slots; negative for a moment when writers find the ring full.
    pub free: AtomicI32,
    /// Next slot to write, modulo the number of slots.
    pub write: AtomicU32,
    /// Events lost because the ring was full.
    pub lost: AtomicU64,
    /// TSC of the first and the last loss.
    pub loss_tsc: [AtomicU64; 2],
    /// Slots that were read, modulo 2^32: where the next reader goes on. Written by the reader only.
    pub read: AtomicU32,
    _pad0: u32,
    /// Events lost by threads that may not read the time stamp counter (`PR_SET_TSC`).
    pub without_tsc: AtomicU64,
    /// Key of a site that was switched on while a breakpoint stood on it, so that its events can be missing; 0 if there was none
    /// since a reader has last stored that.
    pub hidden_site: AtomicU32,
    /// Forked children that got no memfd of their own, or found nobody to tell of it.
    pub unknown_children: AtomicU32,
    _pad: u64,
}

/// Marker values of [`SharedSlot::marker`].
pub mod marker {
    /// May be written.
    pub const FREE: u32 = 0;
    /// Is being written.
    pub const BUSY: u32 = 1;
    /// May be read.
    pub const READY: u32 = 2;
}

/// Payload words of one event of the shared ring; what does not fit is cut and marked.
///
/// Limit: as `MAX_STRING_BYTES` of `directory/mod.rs`.
pub const SHARED_WORDS: usize = 12;

/// A slot of the shared ring: one whole event.
#[repr(C, align(128))]
pub struct SharedSlot {
    /// One of [`marker`].
    pub marker: AtomicU32,
    /// Thread id of the writer in its own PID namespace.
    pub tid: AtomicU32,
    /// As in [`commit`], without a tag; `continuations` counts as for a per-thread ring.
    pub commit: AtomicU64,
    /// TSC.
    pub tsc: AtomicU64,
    /// Payload, as many as `continuations` says (2 + 3 × continuations), at most [`SHARED_WORDS`].
    pub words: [AtomicU64; SHARED_WORDS],
}

/// Header of a directory entry; `bytes` includes it and is a multiple of 8.
///
/// Entries follow each other from the start of the region. The first whose `kind` is still 0 is not
/// written yet and ends what can be read now.
#[repr(C)]
pub struct DirEntry {
    /// One of [`dir_kind`]; stored last (release).
    pub kind: AtomicU32,
    /// Size with this header; stored before anything else of the entry.
    pub bytes: AtomicU32,
}

/// Kinds of directory entries. Strings are `u16` length and UTF-8 bytes, unpadded; numbers unaligned.
pub mod dir_kind {
    /// Metadata of a site: `key u32, kind u16, arg_count u8, 0 u8, line u32, str name, str file,
    /// str format, arg_count × (type u8, str name)`. The category is what stands before the first dot
    /// of the name.
    pub const META: u32 = 1;
    /// A place in the text that refers to a META: `key u32, state u32 (0), address u64`.
    pub const SITE: u32 = 2;
    /// A name: `id u32, str text`. Ids start at 1 and are given by the process.
    pub const NAME: u32 = 3;
    /// A source place: `id u32, line u32, column u32, str file`.
    pub const PLACE: u32 = 4;
}

const _: () = {
    assert!(size_of::<Slot>() == 32);
    assert!(size_of::<SharedSlot>() == 128);
    assert!(size_of::<RingControl>() == 192);
    assert!(size_of::<SharedControl>() == 64);
    assert!(size_of::<Header>() <= PAGE as usize);
    assert!(MIN_RING_SLOTS >= 1 << commit::TAG_INDEX_SHIFT);
    assert!((MAX_RING_SLOTS as u64) < 1 << (commit::TAG_INDEX_SHIFT + 15));
    assert!(MIN_RING_SLOTS > 2 * MARGIN_SLOTS);
};
