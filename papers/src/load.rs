//! Programs that run beside an experiment, and end with it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// A program that runs until this is dropped: then it is killed, with all that it has started.
#[derive(Debug)]
pub(crate) struct Load {
    child: Child,
}

impl Load {
    /// Starts it, in a process group of its own, without input and output.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub(crate) fn start(command: &mut Command) -> Result<Load> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        ends_with_us(command);
        let child = command.spawn().with_context(|| not_started(command))?;
        Ok(Load { child })
    }

    /// A script of the shell, which is run again and again.
    pub(crate) fn repeat(script: &str) -> Result<Load> {
        Load::start(Command::new("sh").args(["-c", &format!("while :; do {script}\ndone")]))
    }

    /// That it still runs: a load that has ended was none.
    pub(crate) fn check(&mut self, name: &str) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{name} ended too early ({status}); run it by hand to see why"),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // SAFETY: takes no pointer; the group is that of our child, which is not waited for yet, so its number is its own.
        unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
        let _ = self.child.wait();
    }
}

/// What a program prints on standard output, when it ends well.
///
/// # Errors
///
/// When it cannot be started or fails; then with its last words.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    ends_with_us(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| not_started(command))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let program = command.get_program().to_string_lossy();
        bail!("{program} failed ({}): {}", output.status, words.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Has a program killed when this one ends, for whatever reason.
fn ends_with_us(command: &mut Command) {
    // SAFETY: prctl is async-signal-safe and takes no pointer.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

fn not_started(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    format!("`{program}` cannot be started; `cargo xtask paper` installs it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_ends_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script =
            format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
        let mut load = Load::repeat(&script).unwrap();
        let pid: i32 = loop {
            load.check("it").unwrap();
            if let Ok(text) = std::fs::read_to_string(&file) {
                break text.trim().parse().unwrap();
            }
        };
        drop(load);
        // Gone, or dead and not collected yet by whoever inherited it.
        let state = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit(") ").next()?.chars().next()
        };
        for _ in 0..1000 {
            if state().is_none_or(|state| state == 'Z') {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{pid} still runs");
    }

    #[test]
    fn what_is_not_there_names_the_remedy() {
        let error = Load::start(&mut Command::new("no-such-program")).unwrap_err().to_string();
        assert!(error.contains("cargo xtask paper"), "{error}");
        let error = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(error.to_string().ends_with("why"), "{error}");
    }
}
