//! Calls about futexes and semaphores.

use super::Header;

/// One system call about a futex or a System-V semaphore, written when it returns; one that never does, when the
/// recording ends. What the program passed stands here as it came.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Futex {
    /// Common part; `ts` is the exit.
    pub header: Header,
    /// When it was entered.
    pub entry_ts: u64,
    /// Address of the futex, of several the first; of a semaphore its number in its set, in the high half, and the
    /// identifier of the set.
    pub address: u64,
    /// The other address, where the operation has one; of a semaphore, how many operations there are.
    pub second: u64,
    /// Seconds of the timeout.
    pub timeout_s: i64,
    /// Nanoseconds of the timeout.
    pub timeout_ns: i64,
    /// Return value.
    pub ret: i64,
    /// Number of the system call, one of [`Futex::CALLS`].
    pub call: u32,
    /// Operation of `futex`, flags of the others that have such.
    pub op: u32,
    /// Value that a wait expects; how many a wake-up may wake; what is added to a semaphore; how many futexes.
    pub value: u32,
    /// What stood at the address at the entry.
    pub word: u32,
    /// `Futex::TIMEOUT` and the like.
    pub flags: u32,
    /// Process.
    pub tgid: u32,
}

impl Futex {
    /// `futex`, and how Linux numbers its likes (arch/x86/entry/syscalls/syscall_64.tbl).
    pub const FUTEX: u32 = 202;
    /// `futex_waitv`, Linux 5.16.
    pub const WAITV: u32 = 449;
    /// `futex_wake`, Linux 6.7.
    pub const WAKE: u32 = 454;
    /// `futex_wait`, Linux 6.7.
    pub const WAIT: u32 = 455;
    /// `futex_requeue`, Linux 6.7.
    pub const REQUEUE: u32 = 456;
    /// `semop`.
    pub const SEMOP: u32 = 65;
    /// `semtimedop`.
    pub const SEMTIMEDOP: u32 = 220;

    /// The system calls that are recorded.
    pub const CALLS: [u32; 7] = [
        Self::FUTEX,
        Self::WAITV,
        Self::WAKE,
        Self::WAIT,
        Self::REQUEUE,
        Self::SEMOP,
        Self::SEMTIMEDOP,
    ];

    /// In `op` of `futex` and its likes: no other process knows the futex (`FUTEX_PRIVATE_FLAG`,
    /// include/uapi/linux/futex.h, like all of these).
    pub const OP_PRIVATE: u32 = 128;
    /// In `op` of `futex`: its time is one of CLOCK_REALTIME.
    pub const OP_CLOCK_REALTIME: u32 = 256;
    /// What of `op` is no operation.
    pub const OP_FLAGS: u32 = Self::OP_PRIVATE | Self::OP_CLOCK_REALTIME;
    /// Waits; its timeout is a duration, that of all others a time.
    pub const OP_WAIT: u32 = 0;
    /// Wakes.
    pub const OP_WAKE: u32 = 1;
    /// Wakes some, and lets others wait elsewhere.
    pub const OP_REQUEUE: u32 = 3;
    /// The same, if the value is the expected one.
    pub const OP_CMP_REQUEUE: u32 = 4;
    /// Wakes some, changes another value, and may wake some there.
    pub const OP_WAKE_OP: u32 = 5;
    /// Locks with priority inheritance; its timeout is a time of CLOCK_REALTIME.
    pub const OP_LOCK_PI: u32 = 6;
    /// Unlocks what has priority inheritance.
    pub const OP_UNLOCK_PI: u32 = 7;
    /// Locks it without waiting.
    pub const OP_TRYLOCK_PI: u32 = 8;
    /// Waits for some wake-ups.
    pub const OP_WAIT_BITSET: u32 = 9;
    /// Wakes some waits.
    pub const OP_WAKE_BITSET: u32 = 10;
    /// Waits to be moved to a futex with priority inheritance.
    pub const OP_WAIT_REQUEUE_PI: u32 = 11;
    /// Moves threads to such a one.
    pub const OP_CMP_REQUEUE_PI: u32 = 12;
    /// As [`Futex::OP_LOCK_PI`], by either clock (Linux 5.14).
    pub const OP_LOCK_PI2: u32 = 13;

    /// In `flags`: a timeout was given and could be read.
    pub const TIMEOUT: u32 = 1;
    /// In `flags`: one was given and could not be read.
    pub const UNREADABLE: u32 = 2;
    /// In `flags`: it is a time of CLOCK_REALTIME, as the call says by an argument of its own.
    pub const REALTIME: u32 = 4;
    /// In `flags`: `word` could be read.
    pub const WORD: u32 = 8;
    /// In `flags`: it had not returned; `header.ts` is until when that is known, and `ret` says nothing.
    pub const UNFINISHED: u32 = 16;
    /// In `flags`, of a call that was interrupted: the thread may go on with it (`restart_syscall`).
    pub const RESTARTS: u32 = 32;
}
