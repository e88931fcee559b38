//! The layout of `ft_user::layout` with few slots: what a model explores grows with every word.

use crate::atomic::{AtomicI32, AtomicU32, AtomicU64, Role};

pub(crate) use ft_user::layout::{LOSS_KEY, Mode, marker, ring_state};
/// No event of a model has it.
pub(crate) const RING_WAIT_KEY: u32 = 99 << 3;

/// Slots of the per-thread ring.
pub(crate) const SLOTS: usize = 4;
/// Smallest and largest ring.
pub(crate) const MIN_RING_SLOTS: u32 = SLOTS as u32;
pub(crate) const MAX_RING_SLOTS: u32 = SLOTS as u32;
/// Slots of the longest event.
pub(crate) const MAX_EVENT_SLOTS: u32 = 2;
/// What a writer with one handler can overshoot by when their events take one slot, or a writer without
/// when its event takes two.
pub(crate) const MARGIN_SLOTS: u32 = 1;
/// From the control page to the slots.
pub(crate) const PAGE: u64 = core::mem::offset_of!(Memory, slots) as u64;
/// Slots and payload words of the shared ring.
pub(crate) const SHARED_SLOTS: u32 = 2;
pub(crate) const SHARED_WORDS: usize = 1;

/// The commit word with a tag that changes with every lap of the small ring.
pub(crate) mod commit {
    pub(crate) use ft_user::layout::commit::{
        COMMITTED, CONT_MASK, CONT_SHIFT, CONTINUATION, CPU_SHIFT, CPU_UNKNOWN, FLAGS, PASSED,
        TAG_MASK, TAG_SHIFT, continuations, key,
    };

    pub(crate) fn tag(index: u64) -> u64 {
        index / super::SLOTS as u64 & TAG_MASK
    }

    pub(crate) fn age(word: u64, index: u64) -> u64 {
        (tag(index).wrapping_sub(word >> TAG_SHIFT) & TAG_MASK) * super::SLOTS as u64
    }
}

pub(crate) struct RingControl {
    pub(crate) head: AtomicU64,
    pub(crate) limit: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) lost_pending: AtomicU64,
    pub(crate) loss_begin_tsc: AtomicU64,
    pub(crate) clear_until: AtomicU64,
    pub(crate) tail: AtomicU64,
    pub(crate) passed_at: AtomicU64,
    pub(crate) told: AtomicU64,
    pub(crate) mode: AtomicU32,
    pub(crate) claimed_at: AtomicU64,
    pub(crate) state: AtomicU32,
    pub(crate) tid: AtomicU32,
    pub(crate) generation: AtomicU32,
    pub(crate) name: [AtomicU64; 2],
    pub(crate) vain_wait_tsc: [AtomicU64; 2],
}

pub(crate) struct Slot {
    pub(crate) commit: AtomicU64,
    pub(crate) words: [AtomicU64; 3],
}

/// A ring as it lies in memory.
#[repr(C)]
pub(crate) struct Memory {
    pub(crate) control: RingControl,
    pub(crate) slots: [Slot; SLOTS],
}

impl Memory {
    /// Zeroed memory.
    pub(crate) fn new() -> Memory {
        let word = |role| AtomicU64::new(role, 0);
        let slot = || Slot {
            commit: word(Role::Commit),
            words: std::array::from_fn(|_| word(Role::Payload)),
        };
        let control = RingControl {
            head: word(Role::Head),
            limit: word(Role::Other),
            lost: word(Role::Other),
            lost_pending: word(Role::Other),
            loss_begin_tsc: word(Role::Other),
            clear_until: word(Role::Other),
            tail: word(Role::Tail),
            passed_at: word(Role::Other),
            told: word(Role::Other),
            mode: AtomicU32::new(Role::Other, 0),
            claimed_at: word(Role::Other),
            state: AtomicU32::new(Role::State, ring_state::FREE),
            tid: AtomicU32::new(Role::Other, 0),
            generation: AtomicU32::new(Role::Generation, 0),
            name: [word(Role::Payload), word(Role::Payload)],
            vain_wait_tsc: [word(Role::Other), word(Role::Other)],
        };
        Memory { control, slots: std::array::from_fn(|_| slot()) }
    }
}

pub(crate) struct SharedControl {
    pub(crate) free: AtomicI32,
    pub(crate) write: AtomicU32,
    pub(crate) lost: AtomicU64,
    pub(crate) loss_tsc: [AtomicU64; 2],
    pub(crate) read: AtomicU32,
}

pub(crate) struct SharedSlot {
    pub(crate) marker: AtomicU32,
    pub(crate) tid: AtomicU32,
    pub(crate) commit: AtomicU64,
    pub(crate) tsc: AtomicU64,
    pub(crate) words: [AtomicU64; SHARED_WORDS],
}

/// A shared ring.
pub(crate) struct SharedMemory {
    pub(crate) control: SharedControl,
    pub(crate) slots: [SharedSlot; SHARED_SLOTS as usize],
}

impl SharedMemory {
    /// An empty ring.
    pub(crate) fn new() -> SharedMemory {
        let word = |role| AtomicU64::new(role, 0);
        let slot = || SharedSlot {
            marker: AtomicU32::new(Role::Marker, marker::FREE),
            tid: AtomicU32::new(Role::Payload, 0),
            commit: word(Role::Payload),
            tsc: word(Role::Payload),
            words: [word(Role::Payload)],
        };
        let control = SharedControl {
            free: AtomicI32::new(Role::Free, SHARED_SLOTS as i32),
            write: AtomicU32::new(Role::Write, 0),
            lost: word(Role::Other),
            loss_tsc: [word(Role::Other), word(Role::Other)],
            read: AtomicU32::new(Role::Other, 0),
        };
        SharedMemory { control, slots: std::array::from_fn(|_| slot()) }
    }
}
