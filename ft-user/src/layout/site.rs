//! What a site is: its kind, its arguments, its metadata and its trigger, and how they are found in an object.

/// What a site means to the analyses.
///
/// The *place* of a lock event is a [`place_word`] if the argument's type is [`ArgType::Unsigned`], and the
/// return address of the call if it is [`ArgType::Pointer`]: locks of programs that do not know of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum SiteKind {
    /// An event of the application.
    Event = 0,
    /// Begin of a scope; pairs with the next `ScopeEnd` of the same name on the same thread.
    ScopeBegin = 1,
    /// End of a scope.
    ScopeEnd = 2,
    /// About to block on a lock that was found taken: (lock address, place).
    LockWait = 3,
    /// A lock was acquired: (lock address, place).
    LockAcquire = 4,
    /// A lock is about to be released: (lock address, place; of a mutex whose holders ask for extensions: [`Slice`]).
    LockRelease = 5,
    /// A condition wait is about to release its lock: (lock address, place, condition address).
    CondWait = 6,
    /// A condition wait has its lock again: (lock address, place, condition address).
    CondWake = 7,
    /// A polling thread begins to poll: (threshold in TSC cycles, poller number).
    PollBegin = 8,
    /// A polling thread saw a gap: (TSC before, TSC after).
    PollGap = 9,
    /// A polling thread ends: (polls, poller number).
    PollEnd = 10,
    /// A wait for a lock ended without it (time-out, deadlock detected): (lock address, place).
    LockAbandon = 11,
    /// About to wait for what no thread holds, a barrier or a channel: (its address, place).
    WaitBegin = 12,
    /// That wait is over: (its address, place).
    WaitEnd = 13,
    /// A thread waited for room in its ring, from the time of the event on: (TSC where the wait ended).
    RingWait = 14,
    /// An async task was made: (task, place).
    TaskNew = 15,
    /// A poll of a task begins: (task, place).
    TaskPoll = 16,
    /// That poll is over: (task, outcome: 0 pending, 1 ready, 2 a panic).
    TaskPolled = 17,
    /// A task is woken: (task).
    TaskWake = 18,
    /// A task is dropped before it was ready: (task).
    TaskDrop = 19,
    /// A function begins: nothing, where the site is one function's own, which has the event's name; else (address of the
    /// function, [`Frame`]).
    FunctionEnter = 20,
    /// That function ends: the same.
    FunctionExit = 21,
    /// A thread leaves the fiber that it ran, pending, and runs another one: (task; 0: none).
    TaskSwitch = 22,
    /// What counters show at the event of the same thread and time that follows: (a number that is the same
    /// in two events between which they did not stop to count; the first; the second, or [`NOT_COUNTED`](super::NOT_COUNTED)).
    /// The kernel has refused them where the first word is negative: (−errno; which one).
    Counters = 23,
    /// A function is called whose end is not told: (address of the function, [`Frame`]).
    FunctionCalled = 24,
}

impl SiteKind {
    /// The kind with this number, if there is one.
    pub const fn from_u16(n: u16) -> Option<SiteKind> {
        use SiteKind::*;
        Some(match n {
            0 => Event,
            1 => ScopeBegin,
            2 => ScopeEnd,
            3 => LockWait,
            4 => LockAcquire,
            5 => LockRelease,
            6 => CondWait,
            7 => CondWake,
            8 => PollBegin,
            9 => PollGap,
            10 => PollEnd,
            11 => LockAbandon,
            12 => WaitBegin,
            13 => WaitEnd,
            14 => RingWait,
            15 => TaskNew,
            16 => TaskPoll,
            17 => TaskPolled,
            18 => TaskWake,
            19 => TaskDrop,
            20 => FunctionEnter,
            21 => FunctionExit,
            22 => TaskSwitch,
            23 => Counters,
            24 => FunctionCalled,
            _ => return None,
        })
    }
}

/// What came of the time-slice extension that a thread asked for when it took a lock, as of the lock's release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Slice {
    /// It could not ask: the kernel has no extensions, or the C library registers no `struct rseq` that is large enough.
    Impossible = 1,
    /// It has asked, and the kernel had no reason to grant one.
    Pending = 2,
    /// It was granted one, which goes on.
    Granted = 3,
    /// Nothing is left of request and grant: it has lost the CPU, or one that was granted ended with a system call.
    Over = 4,
}

/// Where a call of a function has its frame, in one word: what distinguishes calls that are left without an end.
///
/// Of the address of its lowest 16 bytes the bits 4 to 46, all that differ in user space; then the low 10 bits of where the
/// function returns to, and the low 11 bits of where its begin was recorded.
///
/// An optimising compiler may record the end last of all, by a jump, when the frame is gone: then the address is that
/// of its highest 16 bytes, at most so far above the lowest as the frame is large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame(pub u64);

impl Frame {
    /// Of a function that begins, and returns to `caller`: recorded by a call from before `told` with the stack pointer `stack`.
    #[inline]
    pub const fn of_begin(stack: u64, caller: u64, told: u64) -> Frame {
        Frame(stack >> 4 << 21 | (caller & 0x3ff) << 11 | told & 0x7ff)
    }

    /// The same of a function that ends. Where it was recorded by a jump, what was called returns where the function does.
    #[inline]
    pub const fn of_end(stack: u64, caller: u64, told: u64) -> Frame {
        match told == caller {
            true => Frame::of_begin(stack.wrapping_sub(16), caller, 1),
            false => Frame::of_begin(stack, caller, 0),
        }
    }

    /// Orders frames of one stack: that of whoever calls is higher.
    pub const fn height(self) -> u64 {
        self.0 >> 21
    }

    /// Of where the function returns to.
    pub const fn caller(self) -> u64 {
        self.0 >> 11 & 0x3ff
    }

    /// Of where the begin was recorded.
    pub const fn told(self) -> u64 {
        self.0 & 0x7ff
    }

    /// Of an end: it was recorded when the frame was gone.
    pub const fn is_gone(self) -> bool {
        self.told() == 1
    }
}

/// Tasks of this number and above are reported by the hooks of their executor, which report no wake-up. So many others no
/// program makes, and a double has room for both.
pub const HOOKED_TASKS: u64 = 1_000_000_000_000_000;

/// A place in one word: the place of the call and the lock's name, both numbers of directory entries
/// (0: unknown).
#[inline]
pub const fn place_word(place: u32, name: u32) -> u64 {
    (name as u64) << 32 | place as u64
}

/// Type of one argument. Every argument takes one word; strings, slices and what is optional take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ArgType {
    /// Unsigned integer of any width, zero-extended.
    Unsigned = 1,
    /// Signed integer of any width, sign-extended.
    Signed = 2,
    /// `f64` bits (`f32` is widened).
    Float = 3,
    /// 0 or 1.
    Bool = 4,
    /// An address.
    Pointer = 5,
    /// A TSC value.
    Tsc = 6,
    /// UTF-8: a word with the length in bytes ([`TEXT_CUT`]: it was cut), then the bytes, padded to words.
    Str = 7,
    /// Bytes, encoded like `Str`.
    Bytes = 8,
    /// `Unsigned` or nothing: a word with 8, the length of the value in bytes, and the value; or [`ABSENT`] alone.
    OptionalUnsigned = OPTIONAL | 1,
    /// `Signed` or nothing, encoded like `OptionalUnsigned`.
    OptionalSigned = OPTIONAL | 2,
    /// `Float` or nothing, encoded like `OptionalUnsigned`.
    OptionalFloat = OPTIONAL | 3,
    /// `Bool` or nothing, encoded like `OptionalUnsigned`.
    OptionalBool = OPTIONAL | 4,
    /// `Pointer` or nothing, encoded like `OptionalUnsigned`.
    OptionalPointer = OPTIONAL | 5,
    /// `Tsc` or nothing, encoded like `OptionalUnsigned`.
    OptionalTsc = OPTIONAL | 6,
    /// `Str` or nothing: as `Str`, or [`ABSENT`] alone.
    OptionalStr = OPTIONAL | 7,
    /// `Bytes` or nothing: as `Bytes`, or [`ABSENT`] alone.
    OptionalBytes = OPTIONAL | 8,
}

/// The bit of an [`ArgType`] of a value that may be absent; the others say what it is if it is there.
pub const OPTIONAL: u8 = 16;

/// The payload word of an optional argument that is absent. No length of text is as large.
pub const ABSENT: u64 = 1 << 62;

impl ArgType {
    /// The type with this number, if there is one.
    pub const fn from_u8(n: u8) -> Option<ArgType> {
        use ArgType::*;
        const { assert!(OPTIONAL == 16) };
        Some(match n {
            1 => Unsigned,
            2 => Signed,
            3 => Float,
            4 => Bool,
            5 => Pointer,
            6 => Tsc,
            7 => Str,
            8 => Bytes,
            17 => OptionalUnsigned,
            18 => OptionalSigned,
            19 => OptionalFloat,
            20 => OptionalBool,
            21 => OptionalPointer,
            22 => OptionalTsc,
            23 => OptionalStr,
            24 => OptionalBytes,
            _ => return None,
        })
    }

    /// Whether the value may be absent.
    pub const fn is_optional(self) -> bool {
        self as u8 & OPTIONAL != 0
    }

    /// The type of the value if it is there.
    pub const fn value(self) -> ArgType {
        match ArgType::from_u8(self as u8 & !OPTIONAL) {
            Some(value) => value,
            None => self,
        }
    }

    /// The type of such a value that may be absent.
    ///
    /// # Panics
    ///
    /// When it may be already: at compile time, where it is a type of Rust.
    pub const fn optional(self) -> ArgType {
        match ArgType::from_u8(self as u8 | OPTIONAL) {
            Some(optional) if !self.is_optional() => optional,
            _ => panic!("an argument is an `Option` once at most"),
        }
    }

    /// Whether the value is text or bytes.
    pub const fn is_text(self) -> bool {
        matches!(self.value(), ArgType::Str | ArgType::Bytes)
    }
}

/// Set in the length word of text that was cut to what the event can hold.
pub const TEXT_CUT: u64 = 1 << 63;

/// Static metadata of a site, in the read-only data of the object that holds it. Made by the macros only.
#[repr(C, align(8))]
pub struct SiteMeta {
    /// `size_of::<SiteMeta>()`; a reader skips what it does not know.
    pub bytes: u16,
    /// [`SiteKind`].
    pub kind: u16,
    /// Source line.
    pub line: u32,
    /// Dotted name, `category.name`.
    pub name: Str,
    /// Source file.
    pub file: Str,
    /// Format string for listings (`{0}`, `{name}`), may be empty.
    pub format: Str,
    /// Arguments, at most [`MAX_ARGS`](super::MAX_ARGS).
    pub(crate) args: *const Arg,
    /// Number of arguments.
    pub(crate) arg_count: u64,
}

// SAFETY: a `SiteMeta` is immutable and points only to immutable `'static` data.
unsafe impl Sync for SiteMeta {}

/// A string of static metadata: pointer and length, made from a `&'static str` only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    /// UTF-8, not NUL-terminated.
    pub(crate) ptr: *const u8,
    /// Length in bytes.
    pub(crate) len: u64,
}

/// Name and type of one argument.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arg {
    /// Name of the argument.
    pub name: Str,
    /// [`ArgType`].
    pub ty: u8,
    /// Zero.
    pub _pad: [u8; 7],
}

// SAFETY: as for `SiteMeta`: immutable, and points to immutable `'static` data.
unsafe impl Sync for Arg {}

/// One record of the linker section `ft_sites`: self-relative, so that it needs no relocation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SiteRecord {
    /// `size_of::<SiteRecord>()`; a reader steps by it.
    pub bytes: u16,
    /// 1.
    pub version: u16,
    /// Address of the trigger minus the address of this field.
    pub site: i32,
    /// Address of the [`SiteMeta`] minus the address of this field.
    pub meta: i32,
    /// Zero.
    pub reserved: u32,
}

/// First four of a trigger's eight bytes while it is off, in the order of memory: an eight-byte nop, whose
/// last five bytes are the `jmp` of the other form (ft-user/src/trigger.rs).
pub const TRIGGER_OFF: u32 = u32::from_le_bytes([0x0f, 0x1f, 0x84, 0xe9]);
/// The same while it is on: a three-byte nop, and the opcode of `jmp rel32`.
pub const TRIGGER_ON: u32 = u32::from_le_bytes([0x0f, 0x1f, 0x00, 0xe9]);
/// The same while it is on for an agent, and goes off with it: another three-byte nop. Whoever else switches a site on writes
/// [`TRIGGER_ON`], and that stays.
pub const TRIGGER_LENT: u32 = u32::from_le_bytes([0x0f, 0x1f, 0x03, 0xe9]);
/// Which byte of a trigger is its state: the only one in which the forms differ.
pub const TRIGGER_STATE: u64 = 2;
/// Length of a trigger.
pub const TRIGGER_BYTES: u64 = 8;

/// ELF note by which the sites of an object are found from outside and from inside: owner
/// `FeatherTrace`, this type, descriptor `i32 start - ., i32 stop - .` (each relative to itself).
pub const NOTE_TYPE: u32 = 0x4654_0001;
/// Owner of the note, with its NUL.
pub const NOTE_OWNER: &[u8] = b"FeatherTrace\0";

const _: () = assert!(size_of::<SiteRecord>() == 16);
