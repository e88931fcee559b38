//! What is said at the registration socket: who asks to be recorded and with what, and the answer, or why there is none.

use std::io;
use std::mem::size_of;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ft_user::layout::{MAGIC, MAX_REPLY_BYTES, Reply, VERSION};
use rustix::net::{SendFlags, send};

use crate::collect::attach::Refusal;
use crate::collect::discover::Identity;
use crate::collect::inspect::{Found, Inspected};
use crate::collect::later::Later;
use crate::collect::shares::Place;

/// Who knows of a socket at which processes register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The recorded command, and what it has started: by `FT_SOCKET`.
    Command,
    /// Everybody.
    Default,
}

/// A process that wants to be recorded. Dropped without an answer, it closes the connection: the process
/// enables nothing.
#[derive(Debug)]
pub struct Registration {
    /// Who it is, by the kernel's account.
    pub identity: Identity,
    /// Where it has registered.
    pub door: Door,
    /// What it passed: a memfd with all seals. No more is known.
    pub memfd: Later<OwnedFd>,
    /// It waits for an answer, half a second or more; a forked child does not.
    pub waits: bool,
    /// For later looks at it.
    pub subject: Arc<Inspected>,
    /// What the first one has found; nothing when that would have taken too long.
    pub found: Found,
    /// Its share of what can be recorded.
    pub place: Place,
    pub(super) connection: OwnedFd,
}

impl Registration {
    /// Tells the process which sites to enable.
    ///
    /// # Errors
    ///
    /// When it has gone meanwhile, or the globs take more than [`MAX_REPLY_BYTES`].
    pub fn accept(&self, globs: &[String]) -> io::Result<()> {
        let message = reply(globs).ok_or(io::ErrorKind::InvalidInput)?;
        send(&self.connection, &message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// The answer that enables `globs`; `None` when it is longer than [`MAX_REPLY_BYTES`].
pub fn reply(globs: &[String]) -> Option<Vec<u8>> {
    let list = globs.join("\n");
    let mut message = Vec::with_capacity(size_of::<Reply>() + list.len());
    message.extend_from_slice(&MAGIC.to_ne_bytes());
    message.extend_from_slice(&VERSION.to_ne_bytes());
    message.extend_from_slice(&(list.len() as u32).to_ne_bytes());
    message.extend_from_slice(list.as_bytes());
    (message.len() <= MAX_REPLY_BYTES).then_some(message)
}

/// Why a client was sent away.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    /// Nothing came in time.
    #[error("it connected and sent nothing for a long time")]
    Silent,
    /// More connections without a message than its process or user has a share of.
    #[error(
        "it connected and sent nothing, and so did too many others of its process or user; end whoever \
         connects without end"
    )]
    Crowded,
    /// More processes than its user has a share of.
    #[error(
        "as many processes of its user are recorded as there is room for; raise the limit of descriptors \
         (`ulimit -n`), or record fewer processes"
    )]
    Full,
    /// Not a [`Hello`](ft_user::layout::Hello) with one descriptor.
    #[error("it sent something that is no registration")]
    Rubbish,
    /// A descriptor of something else than such a memfd.
    #[error("{0}")]
    Unfit(Refusal),
    /// Too many of its user wait to be heard.
    #[error(
        "so many others of its user wait to be heard that nobody had time for it; end whoever registers \
         without end"
    )]
    Unheard,
    /// Another version of the layout.
    #[error("it speaks version {0}, this agent {VERSION}: build both from one release")]
    Version(u32),
    /// It lives in a PID namespace that is not below ours.
    #[error(
        "it lives in a PID namespace that this one does not see; run the agent outside of both"
    )]
    Unidentified,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(io::Error),
}

impl Rejection {
    /// What was sent was no registration.
    pub(super) fn has_not_asked(&self) -> bool {
        matches!(self, Rejection::Silent | Rejection::Crowded | Rejection::Rubbish)
    }

    /// For counting: whatever a client says.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Rejection::Silent => "silent",
            Rejection::Crowded => "crowded",
            Rejection::Full => "full",
            Rejection::Rubbish => "rubbish",
            Rejection::Unfit(refusal) => refusal.kind(),
            Rejection::Unheard => "unheard",
            Rejection::Version(_) => "version",
            Rejection::Unidentified => "unidentified",
            Rejection::Broken(_) => "broken",
        }
    }
}
