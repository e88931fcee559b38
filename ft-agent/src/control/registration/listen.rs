//! Listening sockets, and the names that they get.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, chmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

/// Clients that wait in the kernel's queue; whoever comes when it is full goes on untraced. The kernel takes
/// 4096 at most (`net.core.somaxconn`).
pub(super) const BACKLOG: i32 = 4096;

/// How often it is tried to take the name of a socket that was left, while others do so, too.
const TRIES: usize = 16;

/// Makes a listening socket at `path`, for every user. A socket that nobody listens to any more is
/// replaced. It has its name only once it listens: no other agent takes it for one that was left.
///
/// # Errors
///
/// `AddrInUse` when another agent listens there, `InvalidInput` when the path is too long, 100 bytes or more
/// (unix(7)); else what the kernel says.
pub fn listener(path: &Path) -> io::Result<OwnedFd> {
    let new = path.with_file_name(format!(".{:016x}", RandomState::new().build_hasher().finish()));
    let socket = unconnected()?;
    bind(&socket, &address(&new)?)?;
    // Recording a process of another user is the point; what it passes is not trusted anyway.
    let ready = chmod(&new, Mode::from_bits_retain(0o666)).and_then(|()| listen(&socket, BACKLOG));
    let named = ready.map_err(io::Error::from).and_then(|()| name(&new, path));
    // Its other name stays.
    let _ = fs::remove_file(&new);
    named.map(|()| socket)
}

/// Gives a socket that listens its name, unless another one that listens has it.
fn name(new: &Path, path: &Path) -> io::Result<()> {
    let address = address(path)?;
    for _ in 0..TRIES {
        match fs::hard_link(new, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            named => return named,
        }
        let found = inode(path);
        match connect(&unconnected()?, &address) {
            Err(Errno::CONNREFUSED) => {}
            Err(Errno::NOENT) => continue,
            _ => break,
        }
        // Since then another agent may have replaced it: what that has put there is put back.
        let aside = new.with_extension("old");
        if fs::rename(path, &aside).is_ok() {
            if inode(&aside) != found {
                let _ = fs::hard_link(&aside, path);
            }
            let _ = fs::remove_file(&aside);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// What tells a file from others of its file system, while it is there.
pub fn inode(path: &Path) -> Option<u64> {
    Some(fs::symlink_metadata(path).ok()?.ino())
}

pub(super) fn address(path: &Path) -> io::Result<SocketAddrUnix> {
    SocketAddrUnix::new(path).map_err(|_| io::ErrorKind::InvalidInput.into())
}

pub(super) fn unconnected() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}
