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
//! The programs themselves are the binary of this package, for the target `bpfel-unknown-none` alone, where nothing can be
//! run as an example; this library never depends on `aya-ebpf`. What a record means is said by the tables that are made of
//! it (`ft_trace::tables`).
#![no_std]

/// Version of this layout; the object with the programs has a global `RECORD_LAYOUT_<VERSION>`.
pub const VERSION: u32 = 1;

/// Bytes of a task's name with its NUL (`TASK_COMM_LEN`, linux/sched.h).
pub const COMM_LEN: usize = 16;

/// First 16 bytes of every record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// `bpf_ktime_get_ns` (CLOCK_MONOTONIC) at the tracepoint.
    pub ts: u64,
    /// One of [`kind`].
    pub kind: u16,
    /// CPU on which the program ran.
    pub cpu: u16,
    /// Kernel `pid` (thread id, initial PID namespace) of the current task; 0 is the idle task.
    pub tid: u32,
}

/// Values of [`Header::kind`].
pub mod kind {
    /// [`super::Switch`].
    pub const SWITCH: u16 = 1;
    /// [`super::Waking`], from `sched_waking`.
    pub const WAKING: u16 = 2;
    /// [`super::Waking`], from `sched_wakeup_new`.
    pub const WAKEUP_NEW: u16 = 3;
    /// [`super::Migrate`].
    pub const MIGRATE: u16 = 4;
    /// [`super::Irq`], a hardware interrupt handler; `number` is the line.
    pub const HARDIRQ: u16 = 5;
    /// [`super::Irq`], a softirq; `number` is the vector (`enum` in linux/interrupt.h).
    pub const SOFTIRQ: u16 = 6;
    /// [`super::Irq`], an interrupt vector; `number` is one of [`super::vector`].
    pub const VECTOR: u16 = 7;
    /// [`super::Task`], from `sched_process_fork`.
    pub const FORK: u16 = 8;
    /// [`super::Task`], from `sched_process_exec`.
    pub const EXEC: u16 = 9;
    /// [`super::Task`], from `sched_process_exit`.
    pub const EXIT: u16 = 10;
    /// [`super::Task`], from `task_rename`.
    pub const RENAME: u16 = 11;
    /// [`super::Contention`].
    pub const CONTENTION: u16 = 12;
    /// [`super::Syscall`] that was entered and has returned.
    pub const SYSCALL: u16 = 13;
    /// [`super::PageFault`] of which it is not known whether and when it was served; `ts` is its begin.
    pub const PAGE_FAULT: u16 = 14;
    /// [`super::Signal`], from `signal_generate`.
    pub const SIGNAL_GENERATE: u16 = 15;
    /// [`super::Signal`], from `signal_deliver`.
    pub const SIGNAL_DELIVER: u16 = 16;
    /// [`super::Chain`] of a thread that was off the CPU, written when it has one again.
    pub const CHAIN_OFF_CPU: u16 = 17;
    /// [`super::Chain`] of who wakes a thread.
    pub const CHAIN_WAKE: u16 = 18;
    /// [`super::Chain`] of a thread that ran when the clock of its CPU struck.
    pub const SAMPLE: u16 = 19;
    /// [`super::Futex`].
    pub const FUTEX: u16 = 20;
    /// [`super::Syscall`] that had not returned at `ts`, when its thread or the recording ended; `ret` says nothing.
    pub const SYSCALL_BEGUN: u16 = 24;
    /// [`super::Syscall`] that nobody saw entered; `entry_ts` is its exit, too.
    pub const SYSCALL_ENDED: u16 = 25;
    /// [`super::ServedFault`] for which nothing had to be read.
    pub const FAULT_MINOR: u16 = 26;
    /// [`super::ServedFault`] for which something had to be read.
    pub const FAULT_MAJOR: u16 = 27;
    /// [`super::Probe`]: a probed function is called, or the first mark of a pair is passed.
    pub const PROBE_BEGIN: u16 = 28;
    /// [`super::Probe`]: a probed function returns, or the second mark is passed.
    pub const PROBE_END: u16 = 29;
    /// [`super::Section`].
    pub const SECTION: u16 = 30;
}

/// Kinds of interrupt vectors (tracepoints of `irq_vectors`).
pub mod vector {
    /// `local_timer`.
    pub const LOCAL_TIMER: u32 = 1;
    /// `reschedule`.
    pub const RESCHEDULE: u32 = 2;
    /// `call_function`.
    pub const CALL_FUNCTION: u32 = 3;
    /// `call_function_single`.
    pub const CALL_FUNCTION_SINGLE: u32 = 4;
    /// `irq_work`.
    pub const IRQ_WORK: u32 = 5;
}

/// `sched_switch`: `prev` leaves the CPU, `next` gets it. `header.tid` is `prev`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch {
    /// Common part.
    pub header: Header,
    /// Process id of the task that leaves.
    pub prev_tgid: u32,
    /// Kernel priority of the task that leaves: 0..=98 real-time, 100..=139 normal, -1 deadline.
    pub prev_prio: i32,
    /// `prev_state` of the tracepoint: 0 running, 1 interruptible, 2 uninterruptible, …; see
    /// [`Switch::PREEMPTED`] and [`Switch::BEING_WOKEN`].
    pub prev_state: u32,
    /// Thread id of the task that comes.
    pub next_tid: u32,
    /// Process id of the task that comes.
    pub next_tgid: u32,
    /// Kernel priority of the task that comes.
    pub next_prio: i32,
    /// Name of the task that leaves.
    pub prev_comm: [u8; COMM_LEN],
    /// Name of the task that comes.
    pub next_comm: [u8; COMM_LEN],
}

impl Switch {
    /// Set in `prev_state` when the tracepoint said that the switch was a preemption.
    pub const PREEMPTED: u32 = 1 << 31;
    /// Set in `prev_state` when the task goes to sleep and somebody is about to wake it already: it can run again as
    /// soon as it is off the CPU. Its waking was recorded before, or follows at once.
    ///
    /// The waker holds `pi_lock` from before its `sched_waking` until the wake-up is done; until it has enqueued the
    /// task, which it cannot before the switch, it has set the state to `TASK_WAKING`. Only while the scheduler looks
    /// for work on other CPUs, without the lock of its queue, can a wake-up be done altogether: then the state is
    /// `TASK_RUNNING` (`try_to_wake_up`, `ttwu_runnable`, `__schedule`: kernel/sched/core.c). A waking that the task
    /// had undone before, by setting its state, has left none of these.
    pub const BEING_WOKEN: u32 = 1 << 30;
}

/// `sched_waking` or `sched_wakeup_new`: `header.tid` (or an interrupt on top of it) wakes `tid`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waking {
    /// Common part; `tid` is the waker.
    pub header: Header,
    /// Thread that is woken.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Its kernel priority.
    pub prio: i32,
    /// CPU on which it last ran (the tracepoint fires before a CPU is chosen).
    pub target_cpu: u32,
}

/// `sched_migrate_task`: `tid` moves from `from_cpu` to `to_cpu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Migrate {
    /// Common part.
    pub header: Header,
    /// Thread that moves.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Where it was.
    pub from_cpu: u32,
    /// Where it goes.
    pub to_cpu: u32,
}

/// One handler run, written at its exit. `header.ts` is the exit, `entry_ts` the entry, `header.tid`
/// the interrupted thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Irq {
    /// Common part.
    pub header: Header,
    /// `bpf_ktime_get_ns` at the entry tracepoint.
    pub entry_ts: u64,
    /// Line, softirq number or [`vector`] kind.
    pub number: u32,
    /// Process of the interrupted thread.
    pub tgid: u32,
}

/// Life of a task: fork, exec, exit, rename.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Common part.
    pub header: Header,
    /// The task concerned: the child of a fork, else the current one.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Process of the parent (fork only), else 0.
    pub parent_tgid: u32,
    /// Zero.
    pub reserved: u32,
    /// Its name (the new one for a rename).
    pub comm: [u8; COMM_LEN],
}

/// One wait for a kernel lock, written at `contention_end`: this, and behind it [`Contention::user`] and then
/// [`Contention::kernel`] addresses of 8 bytes, each the innermost first: the call chain at `contention_begin`. One that
/// never ends is written when the recording does.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// Common part; `ts` is the end.
    pub header: Header,
    /// When the wait began; the end where that is not known.
    pub entry_ts: u64,
    /// Address of the lock.
    pub lock: u64,
    /// `LCB_F_*` flags (include/trace/events/lock.h), and how it ended: [`Contention::FAILED`] and the like.
    pub flags: u16,
    /// Addresses of user space; 0 unless the group `stack` is recorded.
    pub user: u8,
    /// Addresses of the kernel.
    pub kernel: u8,
    /// Process of the waiter.
    pub tgid: u32,
}

impl Contention {
    /// In `flags`: the thread has given up, for a signal or a time-out.
    pub const FAILED: u16 = 1 << 13;
    /// In `flags`: it had not ended; `header.ts` is until when that is known.
    pub const UNFINISHED: u16 = 1 << 14;
    /// In `flags`: its begin was not recorded, and no other flag is known.
    pub const NO_BEGIN: u16 = 1 << 15;
    /// In `flags`, those of the kernel.
    pub const OF_KERNEL: u16 = Self::FAILED - 1;

    /// Addresses of the kernel without the group `stack`: as many as lead to who wanted the lock, beyond the program, the
    /// tracepoint's function and those of the lock.
    pub const NEAREST: usize = 10;

    /// Bytes of the addresses that follow; `None` when there are more than a chain can have.
    pub fn address_bytes(&self) -> Option<usize> {
        address_bytes(self.user.into(), self.kernel.into())
    }
}

/// What the descriptor is of that a system call takes first: values of [`Syscall::file`].
pub mod file {
    /// It takes none, or there is none of this number.
    pub const NONE: u16 = 0;
    /// A file.
    pub const REGULAR: u16 = 1;
    /// A directory.
    pub const DIRECTORY: u16 = 2;
    /// A character device: a terminal, `/dev/null`, …
    pub const CHARACTER: u16 = 3;
    /// A block device.
    pub const BLOCK: u16 = 4;
    /// A pipe, with or without a name.
    pub const PIPE: u16 = 5;
    /// A socket.
    pub const SOCKET: u16 = 6;
    /// Of `eventfd`.
    pub const EVENTFD: u16 = 7;
    /// Of `timerfd_create`.
    pub const TIMERFD: u16 = 8;
    /// Of `epoll_create`.
    pub const EPOLL: u16 = 9;
    /// Of `signalfd`.
    pub const SIGNALFD: u16 = 10;
    /// Of `inotify_init`.
    pub const INOTIFY: u16 = 11;
    /// Anything else.
    pub const OTHER: u16 = 12;
}

/// One system call, written at `sys_exit`, or when it is known that it never comes there.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syscall {
    /// Common part; `ts` is the exit.
    pub header: Header,
    /// When it was entered.
    pub entry_ts: u64,
    /// Return value.
    pub ret: i64,
    /// Number of the system call; 65,535 stands for itself and all beyond.
    pub number: u16,
    /// One of [`mod@file`].
    pub file: u16,
    /// Process.
    pub tgid: u32,
}

/// One page fault, in user space or on behalf of a system call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageFault {
    /// Common part.
    pub header: Header,
    /// Faulting address.
    pub address: u64,
    /// Error code of the CPU.
    pub error: u32,
    /// Process.
    pub tgid: u32,
}

impl PageFault {
    /// In `error`: it was in user space (`X86_PF_USER`, arch/x86/include/asm/trap_pf.h).
    pub const USER: u32 = 1 << 2;
}

/// A page fault that was served.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedFault {
    /// It; `header.ts` is its end.
    pub fault: PageFault,
    /// Its begin.
    pub entry_ts: u64,
}

/// A signal that is sent, or that the current thread takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signal {
    /// Common part; `tid` is the sender, or the thread that takes it.
    pub header: Header,
    /// Process of the sender; 0 when it is taken.
    pub sender_tgid: u32,
    /// Thread that it is sent to, or that takes it.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// Number of the signal.
    pub number: u32,
    /// Not 0: it is sent to the process; 0 when it is taken.
    pub group: u32,
    /// `TRACE_SIGNAL_*` (linux/trace/events/signal.h); 0 when it is taken.
    pub result: u32,
}

/// A call chain: this, and behind it [`Chain::user`] and then [`Chain::kernel`] addresses of 8 bytes, each the innermost
/// first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Common part; `tid` is the thread whose chain it is: of a wake-up the waker, else who was off the CPU or was
    /// sampled. `ts` is when it has a CPU again, the wake-up, or the sample.
    pub header: Header,
    /// When a thread that was off the CPU had left it, else 0.
    pub left_ts: u64,
    /// Process of the thread whose chain it is.
    pub tgid: u32,
    /// Thread that is woken, else 0.
    pub woken_tid: u32,
    /// Its process.
    pub woken_tgid: u32,
    /// Not 0: the thread could have run on when it left the CPU.
    pub preempted: u32,
    /// Addresses of user space, or minus the error number with which the kernel refused them (`-EFAULT`: the thread has
    /// no user space).
    pub user: i32,
    /// Addresses of the kernel, likewise.
    pub kernel: i32,
}

impl Chain {
    /// Addresses of user space in a chain, at most (`kernel.perf_event_max_stack`, unless that was changed).
    pub const MAX_USER: usize = 127;
    /// Addresses of the kernel, at most.
    pub const MAX_KERNEL: usize = 64;

    /// Bytes of the addresses that follow; `None` when there are more than a chain can have.
    pub fn address_bytes(&self) -> Option<usize> {
        address_bytes(self.user, self.kernel)
    }
}

/// Bytes of so many addresses of user space and of the kernel, or fewer than 0 for none.
fn address_bytes(user: i32, kernel: i32) -> Option<usize> {
    let number = |n: i32, most: usize| Some(n.max(0) as usize).filter(|n| *n <= most);
    Some(8 * (number(user, Chain::MAX_USER)? + number(kernel, Chain::MAX_KERNEL)?))
}

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

/// A thread has come to a place in its program that is probed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Common part.
    pub header: Header,
    /// Stack pointer at the entry of the function, where its return address lies; of its return, too. Of a mark, as it is.
    pub stack_pointer: u64,
    /// Number that the agent gave to the probe.
    pub number: u32,
    /// Process.
    pub tgid: u32,
}

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

    /// Programs within one another that are told apart.
    pub const LEVELS: usize = 4;

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
    /// See [`section::SKIPPED`], by what they are within.
    pub skipped: [u64; section::LEVELS],
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

/// The map of observed processes: a byte for each process id, 0 when it is not observed.
pub mod observed {
    /// The process is observed.
    pub const OBSERVED: u8 = 1;
    /// It is, and the last of its threads has begun to exit, if others have perhaps not come to the tracepoint. It stays so
    /// until its number is given to another.
    pub const LEAVING: u8 = 2;
    /// Process ids lie below this (`PID_MAX_LIMIT`, linux/threads.h).
    pub const PIDS: usize = 1 << 22;
    /// Bytes of one value of the map.
    pub const CHUNK: usize = 4096;
}

/// Programs that can lose something, as indices into the loss map.
pub mod program {
    /// Names, by index; equal to the tracepoints' names, but for those of call chains, samples and futexes, of calls that never return, of the ends of faults, and of probes. Of a pair the exit writes the record; an entry is
    /// here where it needs room, too, to be remembered.
    pub const NAMES: [&str; 35] = [
        "sched_switch",
        "sched_waking",
        "sched_wakeup_new",
        "sched_migrate_task",
        "irq_handler_exit",
        "softirq_exit",
        "local_timer_exit",
        "reschedule_exit",
        "call_function_exit",
        "call_function_single_exit",
        "irq_work_exit",
        "sched_process_fork",
        "sched_process_exec",
        "sched_process_exit",
        "task_rename",
        "contention_end",
        "sys_exit",
        "page_fault_user",
        "contention_begin",
        "sys_enter",
        "signal_generate",
        "signal_deliver",
        "chain_switch",
        "chain_waking",
        "sample",
        "futex_enter",
        "futex_exit",
        "call_end",
        "page_fault_kernel",
        "fault_minor",
        "fault_major",
        "fault_end",
        "probe_begin",
        "probe_end",
        "probe_return",
    ];

    /// Index of a program.
    ///
    /// # Panics
    ///
    /// When the name is not in [`NAMES`]; meant for constants, where that is a compile-time error.
    pub const fn index(name: &str) -> u32 {
        let mut i = 0;
        while i < NAMES.len() {
            if equal(NAMES[i].as_bytes(), name.as_bytes()) {
                return i as u32;
            }
            i += 1;
        }
        panic!("not the name of a program that can lose something");
    }

    const fn equal(a: &[u8], b: &[u8]) -> bool {
        let mut i = 0;
        while i < a.len() && i < b.len() && a[i] == b[i] {
            i += 1;
        }
        i == a.len() && i == b.len()
    }
}

/// Value of the per-CPU loss map (key: index into [`program::NAMES`]).
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

/// A record, or its beginning: any bytes are one.
///
/// # Safety
///
/// The type consists of integers and arrays of them, without padding.
pub unsafe trait Record: Copy {}

/// The record at the start of `bytes`; `None` when it is cut short.
pub fn read<T: Record>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: the slice is as long as `T`, which is valid for any bytes (`Record`).
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The records, and their sizes: a layout that has changed by mistake does not compile.
macro_rules! records {
    ($($record:ident: $bytes:literal,)*) => {
        $(
            const _: () = assert!(size_of::<$record>() == $bytes);
            // SAFETY: its fields are integers and arrays of them, which fill the size stated above.
            unsafe impl Record for $record {}
        )*
    };
}

records! {
    Header: 16,
    Switch: 72,
    Waking: 32,
    Migrate: 32,
    Irq: 32,
    Task: 48,
    Contention: 40,
    Syscall: 40,
    PageFault: 32,
    ServedFault: 40,
    Signal: 40,
    Chain: 48,
    Futex: 88,
    Probe: 32,
    Section: 64,
    SectionBin: 24,
    Sections: 1800,
}
