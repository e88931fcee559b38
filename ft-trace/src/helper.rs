//! Processes of this program that do what may end or hang its own: they read what others wrote, or close what others opened.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

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
