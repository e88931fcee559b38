//! The sockets at which processes register during one recording.
//!
//! A command gets a private one, in the directory of the trace, by `FT_SOCKET`; when that path is too long for a
//! socket (107 bytes, unix(7)), or closed to other users, whom the command may become, it lies in a temporary
//! directory. The default socket serves everything
//! else that starts meanwhile, when we may make it and no other agent has it.

use std::fs;
use std::io::{self, ErrorKind::*};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use ft_user::layout::DEFAULT_SOCKET;

use super::{Options, RecordError};
use crate::collect::server;

/// Whether every user can reach what is in a directory.
fn is_open_to_all(directory: &Path) -> bool {
    const OTHERS_MAY_SEARCH: u32 = 0o001;
    let mode = |dir: &Path| fs::metadata(dir).map_or(0, |metadata| metadata.mode());
    directory.ancestors().all(|dir| mode(dir) & OTHERS_MAY_SEARCH != 0)
}

/// Listening sockets, and the paths to remove at the end.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    listeners: Vec<OwnedFd>,
    private: Option<PathBuf>,
    remove: Vec<PathBuf>,
}

/// Makes the sockets that these options need.
///
/// # Errors
///
/// When the private one cannot be made, or nothing at all could be recorded.
pub(super) fn open(options: &Options) -> Result<Sockets, RecordError> {
    let mut sockets = Sockets::default();
    if !options.command.is_empty() {
        sockets.open_private(&options.output).map_err(RecordError::system("make a socket"))?;
    }
    let default = Path::new(DEFAULT_SOCKET);
    let opened = default.parent().map_or(Ok(()), fs::create_dir_all);
    match opened.and_then(|()| server::listener(default)) {
        Ok(listener) => {
            sockets.listeners.push(listener);
            sockets.remove.push(default.to_owned());
        }
        Err(source)
            if options.command.is_empty()
                && options.pids.is_empty()
                && options.cgroup.is_none()
                && !options.system_wide =>
        {
            return Err(RecordError::NothingToRecord { socket: default.to_owned(), source });
        }
        // Whatever is recorded was named.
        Err(_) => {}
    }
    Ok(sockets)
}

impl Sockets {
    fn open_private(&mut self, directory: &Path) -> io::Result<()> {
        let directory = std::path::absolute(directory)?;
        let mut path = directory.join("agent.sock");
        let listener = if is_open_to_all(&directory) {
            server::listener(&path)
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        };
        let listener = match listener {
            Err(e) if matches!(e.kind(), InvalidInput | PermissionDenied) => {
                let own =
                    std::env::temp_dir().join(format!("feather-trace-{}", std::process::id()));
                // Must be new: whoever made it could swap the socket.
                fs::DirBuilder::new().mode(0o711).create(&own)?;
                path = own.join("agent.sock");
                let listener = server::listener(&path);
                self.remove.extend([path.clone(), own]);
                listener?
            }
            listener => {
                let listener = listener?;
                self.remove.push(path.clone());
                listener
            }
        };
        self.listeners.push(listener);
        self.private = Some(path);
        Ok(())
    }

    /// Environment of the command.
    pub(super) fn environment(&self, options: &Options) -> Vec<(&'static str, String)> {
        let socket = self.private.as_ref().map(|p| ("FT_SOCKET", p.to_string_lossy().into_owned()));
        // What the user has set for the program stands, unless it is asked for here.
        let asked = options.ring_bytes.is_some() || std::env::var_os("FT_RING_SLOTS").is_none();
        let slots =
            options.ring_slots().filter(|_| asked).map(|n| ("FT_RING_SLOTS", n.to_string()));
        socket.into_iter().chain(slots).collect()
    }

    /// The listening sockets, once.
    pub(super) fn take_listeners(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.listeners)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for path in &self.remove {
            // A directory stands behind its socket. What somebody else removed is gone.
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
    }
}
