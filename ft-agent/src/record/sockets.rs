//! The sockets at which processes register during one recording.
//!
//! A command gets a private one, in the directory of the trace, by `FT_SOCKET`; when that path is too long for a
//! socket (107 bytes, unix(7)), or closed to other users, whom the command may become, it lies in a temporary
//! directory. The default socket serves everything
//! else that starts meanwhile, when we may make it and no other agent has it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind::*};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};

use ft_user::layout::DEFAULT_SOCKET;

use super::{Options, RecordError};
use crate::control::registration::{self, Door};
use ft_trace::dir::{self, Dir};

/// Whether a program can give the path to a socket: with the NUL behind it, which the kernel alone could do without.
fn fits(path: &Path) -> bool {
    SocketAddr::from_pathname(path).is_ok()
}

/// Whether every user can reach what is in a directory.
fn is_open_to_all(directory: &Path) -> bool {
    const OTHERS_MAY_SEARCH: u32 = 0o001;
    let mode = |dir: &Path| fs::metadata(dir).map_or(0, |metadata| metadata.mode());
    directory.ancestors().all(|dir| mode(dir) & OTHERS_MAY_SEARCH != 0)
}

/// Listening sockets, and the paths to remove at the end.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    listeners: Vec<(OwnedFd, Door)>,
    private: Option<PathBuf>,
    remove: Vec<PathBuf>,
    /// Inode of the default one, if that is ours.
    default: Option<u64>,
    /// The directory of the trace, when the private socket lies there.
    output: Option<Dir>,
    /// Why nobody listens at the default one here.
    pub(super) unreachable: Option<String>,
}

/// Name of the private socket.
const SOCKET: &str = "agent.sock";

/// Makes the sockets that these options need.
///
/// # Errors
///
/// When the private one cannot be made, or nothing at all could be recorded.
pub(super) fn open(options: &Options, output: &Dir) -> Result<Sockets, RecordError> {
    let mut sockets = Sockets::default();
    if !options.command.is_empty() {
        sockets.open_private(output).map_err(RecordError::system("make a socket"))?;
    }
    let default = Path::new(DEFAULT_SOCKET);
    let opened = default.parent().map_or(Ok(()), fs::create_dir_all);
    match opened.and_then(|()| registration::listener(default)) {
        Ok(listener) => {
            sockets.listeners.push((listener, Door::Default));
            sockets.default = registration::inode(default);
        }
        Err(source)
            if options.command.is_empty()
                && options.pids.is_empty()
                && options.cgroup.is_none()
                && !options.system_wide =>
        {
            return Err(RecordError::NothingToRecord { socket: default.to_owned(), source });
        }
        // Whatever is recorded was named; what that starts is not.
        Err(error) => {
            sockets.unreachable =
                Some(format!("this recording has no socket {DEFAULT_SOCKET} ({error})"));
        }
    }
    Ok(sockets)
}

impl Sockets {
    fn open_private(&mut self, output: &Dir) -> io::Result<()> {
        let directory = std::path::absolute(output.path())?;
        let mut path = directory.join(SOCKET);
        let listener = if !is_open_to_all(&directory) {
            Err(io::ErrorKind::PermissionDenied.into())
        } else if !fits(&path) {
            Err(io::ErrorKind::InvalidInput.into())
        } else {
            // Its mode is changed after it is made: not by a name that may lead elsewhere by then.
            registration::listener(&output.anchored().join(SOCKET))
        };
        let listener = match listener {
            Err(e) if matches!(e.kind(), InvalidInput | PermissionDenied) => {
                // Others may search it.
                let own = dir::temporary(0o711)?;
                path = own.join(SOCKET);
                let listener = registration::listener(&path);
                self.remove.extend([path.clone(), own]);
                listener?
            }
            listener => {
                let listener = listener?;
                self.output = Some(output.clone());
                listener
            }
        };
        self.listeners.push((listener, Door::Command));
        self.private = Some(path);
        Ok(())
    }

    /// Environment of the command.
    pub(super) fn environment(&self, options: &Options) -> Vec<(&'static str, OsString)> {
        let socket = self.private.as_ref().map(|p| ("FT_SOCKET", p.clone().into_os_string()));
        // What the user has set for the program stands, unless it is asked for here.
        let asked = options.ring_bytes.is_some() || std::env::var_os("FT_RING_SLOTS").is_none();
        let slots =
            options.ring_slots().filter(|_| asked).map(|n| ("FT_RING_SLOTS", n.to_string().into()));
        socket.into_iter().chain(slots).collect()
    }

    /// The listening sockets, once.
    pub(super) fn take_listeners(&mut self) -> Vec<(OwnedFd, Door)> {
        std::mem::take(&mut self.listeners)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if let Some(output) = &self.output {
            // What somebody else removed is gone.
            let _ = output.remove(SOCKET);
        }
        let default = Path::new(DEFAULT_SOCKET);
        // Somebody may have removed it, and another agent made its own.
        if self.default.is_some() && self.default == registration::inode(default) {
            let _ = fs::remove_file(default);
        }
        for path in &self.remove {
            // A directory stands behind its socket. What somebody else removed is gone.
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_as_long_as_programs_take_it() {
        // `ft_user` has room for 108 bytes with a NUL.
        assert!(fits(Path::new(&"x".repeat(107))));
        assert!(!fits(Path::new(&"x".repeat(108))));
    }
}
