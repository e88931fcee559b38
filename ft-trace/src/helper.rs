//! Processes of this program that do what may end or hang its own: they read what others wrote, or close what others opened; and the
//! packets of bytes and descriptors by which it speaks with them.

use std::collections::BTreeSet;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

static START: OnceLock<fn(&'static str) -> Command> = OnceLock::new();

/// Numbers of those that run: children of this process, for which nobody else may wait.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Says how a helper of a kind is started: by a command whose process does nothing but the work of that kind. It has no environment.
pub fn start_by(command: fn(&'static str) -> Command) {
    // The first one counts.
    let _ = START.set(command);
}

/// Does what concerns children of this process, of which some are helpers, by their numbers; none begins or is forgotten meanwhile.
pub fn beside<T>(act: impl FnOnce(&BTreeSet<u32>) -> T) -> T {
    act(&running())
}

fn running() -> MutexGuard<'static, BTreeSet<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process; dropped, it is not waited for.
#[derive(Debug)]
pub struct Helper(pub Child);

impl Helper {
    /// Starts one, with `socket` as its standard input. It does not get the signals of a terminal. `None` where nobody has said how.
    ///
    /// # Errors
    ///
    /// When the kernel gives no process.
    pub fn start(kind: &'static str, socket: OwnedFd) -> io::Result<Option<Helper>> {
        use std::os::unix::process::CommandExt as _;
        let Some(command) = START.get() else { return Ok(None) };
        let mut command = command(kind);
        command.stdin(socket).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = running();
        let process = command.current_dir("/").process_group(0).spawn()?;
        running.insert(process.id());
        Ok(Some(Helper(process)))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        running().remove(&self.0.id());
    }
}

/// Descriptors of a packet at most.
const DESCRIPTORS: usize = 3;

/// Sends a packet.
///
/// # Errors
///
/// `InvalidInput` when there are more than three descriptors; else what sendmsg(2) says.
pub fn send(
    socket: &impl AsFd,
    packet: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(packet)], &mut control, flags | SendFlags::NOSIGNAL)?;
    Ok(())
}

/// A packet that was received.
#[derive(Debug)]
pub struct Received {
    /// Bytes of it; 0 when the other end is gone.
    pub bytes: usize,
    /// What came along.
    pub descriptors: Vec<OwnedFd>,
    /// There was no room for all.
    pub is_cut: bool,
}

/// The next packet, with room for the descriptors in `space`.
///
/// # Errors
///
/// What recvmsg(2) says.
pub fn receive(
    socket: &impl AsFd,
    packet: &mut [u8],
    space: &mut [MaybeUninit<u8>],
    flags: RecvFlags,
) -> io::Result<Received> {
    let mut control = RecvAncillaryBuffer::new(space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(packet)], &mut control, flags)?;
    let descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
        _ => Vec::new(),
    });
    let descriptors = descriptors.collect();
    let is_cut = received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    Ok(Received { bytes: received.bytes, descriptors, is_cut })
}
