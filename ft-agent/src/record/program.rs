//! The build id of the program that is recorded.
//!
//! It is what the file says that `execvp` will take, a link's file included, or the file that a process executes. Of a script
//! it is none: what the kernel executes for it is its interpreter, which is another program, and the same one for all scripts.
//!
//! Rule: which file that is, a user may have said, and it can lie on a file system that does not answer. So nothing but a
//! regular file is opened, a few hundred bytes of it are read ([`mod@build_id`]), and that by a thread for which nobody waits
//! longer than [`PATIENCE`].

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use ft_trace::foreign_file::regular;
use ft_trace::{build_id, reach};

use super::Attached;
use crate::threads;

/// How long a recording waits for the file; then its build id is not known.
///
/// Limit: it is not known: `build_id` of the catalogue is that of call chains, or empty.
/// Shown by: `what_is_no_program_has_none_and_nobody_waits_for_it`.
const PATIENCE: Duration = Duration::from_secs(2);

/// Of the program that the command means, or else of the one that all these processes execute, in hexadecimal digits.
/// `None` where it has none, is no program of 64 bits, or cannot be read; and where the processes execute several.
pub(super) fn build_id(command: Option<&OsStr>, attached: &[Attached]) -> Option<String> {
    if let Some(command) = command {
        let command = command.to_owned();
        return within(PATIENCE, move || of_file(&reach::find(&command)?));
    }
    if attached.is_empty() {
        return None;
    }
    let pids: Vec<i32> = attached.iter().map(|process| process.identity.pid).collect();
    let found = within(PATIENCE, move || of_all(&pids));
    // What `/proc` said under a number was of that process only if it still has it.
    found.filter(|_| attached.iter().all(|process| process.identity.has_number()))
}

/// The one that all these processes have.
fn of_all(pids: &[i32]) -> Option<String> {
    let mut ids = pids.iter().map(|pid| of_file(&PathBuf::from(format!("/proc/{pid}/exe"))));
    let first = ids.next()??;
    ids.all(|id| id.as_ref() == Some(&first)).then_some(first)
}

fn of_file(path: &Path) -> Option<String> {
    build_id::of_opened(&regular(path)?)
}

/// What is found in this time; whatever takes longer is left behind.
fn within(
    patience: Duration,
    find: impl FnOnce() -> Option<String> + Send + 'static,
) -> Option<String> {
    let (sender, found) = mpsc::channel();
    // Nobody may listen any more.
    threads::spawn("ft-build-id", move || drop(sender.send(find()))).ok()?;
    found.recv_timeout(patience).ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::collect::discover::Identity;

    fn attached(pid: u32) -> Attached {
        Attached { identity: Identity::of(pid as i32).unwrap(), memory: None }
    }

    #[test]
    fn a_command_has_the_build_id_of_the_file_that_is_executed() {
        let own = of_file(&std::env::current_exe().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink(std::env::current_exe().unwrap(), &link).unwrap();
        assert_eq!(build_id(Some(link.as_os_str()), &[]), own);
        let shell = of_file(Path::new("/bin/sh"));
        assert_eq!(build_id(Some(OsStr::new("sh")), &[]), shell, "by PATH");
        assert!(shell.is_some(), "distributions give one");
    }

    #[test]
    fn what_is_no_program_has_none_and_nobody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(
            build_id(Some(script.as_os_str()), &[]),
            None,
            "its interpreter is not the program"
        );
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(build_id(Some(pipe.as_os_str()), &[]), None);
        assert_eq!(build_id(Some(OsStr::new("ft-no-such-command")), &[]), None);
        assert_eq!(build_id(None, &[]), None);
        // As a file system that does not answer.
        let (_silent, answer) = mpsc::channel::<String>();
        assert_eq!(within(Duration::from_millis(1), move || answer.recv().ok()), None);
    }

    #[test]
    fn processes_have_one_if_they_execute_one_program() {
        let mut sleeps = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let own = std::process::id();
        let expected = of_file(&std::env::current_exe().unwrap());
        assert_eq!(build_id(None, &[attached(own), attached(own)]), expected);
        assert_eq!(build_id(None, &[attached(own), attached(sleeps.id())]), None);
        let ended = attached(sleeps.id());
        sleeps.kill().unwrap();
        sleeps.wait().unwrap();
        assert_eq!(build_id(None, &[ended]), None);
    }
}
