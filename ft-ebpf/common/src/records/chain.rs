//! Call chains, and samples, which are nothing else.

use super::Header;

/// A call chain: this, and behind it [`Chain::user`] addresses of 8 bytes, [`Chain::stack`] bytes of the user stack, and
/// [`Chain::kernel`] addresses; of addresses the innermost first.
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
    /// Addresses of user space that frame pointers lead to, or minus the error number with which the kernel refused them
    /// (`-EFAULT`: the thread has no user space).
    pub user: i32,
    /// Addresses of the kernel, likewise.
    pub kernel: i32,
    /// Where the thread was in user space; 0, like the next two, where its registers are not known.
    pub ip: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// Its register `rbp`: a frame pointer, or anything else.
    pub bp: u64,
    /// Bytes that the record has of its stack, from `sp` on: a multiple of 8.
    pub stack: u64,
    /// Which words of the stack they are, a bit for each: those that can be addresses of user space. All 0: the first ones.
    pub kept: [u64; Chain::STACK_BITS],
}

impl Chain {
    /// Addresses of user space in a chain, at most (`kernel.perf_event_max_stack`, unless that was changed).
    ///
    /// Limit: the row is `cut`, and the report counts it.
    /// Shown by: `what_a_record_says_is_bounded`.
    pub const MAX_USER: usize = 127;
    /// Addresses of the kernel, at most.
    ///
    /// Limit: as `MAX_USER`.
    pub const MAX_KERNEL: usize = 64;
    /// Bytes of the user stack, at most: a multiple of 8 whose bits are a mask.
    ///
    /// Limit: the chain ends with the last function found, and the row is `cut`, unless frame pointers go on from
    /// there.
    /// Shown by: `each_frame_lies_above_the_one_that_it_has_called`,
    /// `above_the_piece_of_the_stack_frame_pointers_go_on`.
    pub const MAX_STACK: usize = 4088;
    /// Words of [`Chain::kept`].
    pub const STACK_BITS: usize = (Self::MAX_STACK / 8).div_ceil(64);
    /// Bytes that follow, at most.
    ///
    /// Limit: as `MAX_STACK`.
    pub const MAX_TAIL: usize = 8 * (Self::MAX_USER + Self::MAX_KERNEL) + Self::MAX_STACK;

    /// Bytes that follow; `None` when there are more than a chain can have.
    pub fn tail_bytes(&self) -> Option<usize> {
        let stack = usize::try_from(self.stack).ok()?;
        let kept: usize = self.kept.iter().map(|bits| bits.count_ones() as usize).sum();
        let fits =
            stack.is_multiple_of(8) && stack <= Self::MAX_STACK && (kept == 0 || 8 * kept == stack);
        // What does not fit is not added to anything.
        let stack = fits.then_some(stack)?;
        Some(address_bytes(self.user, self.kernel)? + stack)
    }
}

/// Bytes of so many addresses of user space and of the kernel, or fewer than 0 for none.
pub(super) fn address_bytes(user: i32, kernel: i32) -> Option<usize> {
    let number = |n: i32, most: usize| Some(n.max(0) as usize).filter(|n| *n <= most);
    Some(8 * (number(user, Chain::MAX_USER)? + number(kernel, Chain::MAX_KERNEL)?))
}
