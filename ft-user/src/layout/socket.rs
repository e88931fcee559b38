//! The registration of a process with the agent: one message there, one back.

/// Where the agent listens unless `FT_SOCKET` says otherwise.
pub const DEFAULT_SOCKET: &str = "/run/feather-trace/agent.sock";

/// First (and only) message of a process on the `SOCK_SEQPACKET` socket, with the memfd as
/// `SCM_RIGHTS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Hello {
    /// [`MAGIC`](super::MAGIC).
    pub magic: u64,
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// [`NO_ANSWER`] or zero.
    pub flags: u32,
}

/// [`Hello::flags`]: the process does not wait for a [`Reply`].
pub const NO_ANSWER: u32 = 1;

/// The agent's answer: this header, then `bytes` of globs separated by `\n` (at most
/// [`MAX_REPLY_BYTES`] in all). An empty list enables nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// [`MAGIC`](super::MAGIC).
    pub magic: u64,
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// Length of what follows.
    pub bytes: u32,
}

/// Longest reply with its header.
///
/// Limit: the client is refused, or the name is cut; no figure depends on it.
/// Shown by: `a_reply_is_bounded`.
pub const MAX_REPLY_BYTES: usize = 4096;
