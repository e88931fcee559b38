//! Signals and CPUs that the agent was started with: its command has the same.
//!
//! A shell sets them, as `nohup` and background jobs do. Everything here runs without rights: `-k none`.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ft_tests::signal;

/// A shell with these signals blocked, that runs `script` with the agent as `$AGENT`, in `dir`.
fn shell_blocking(signals: &'static [i32], dir: &Path, script: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).env("AGENT", ft_tests::agent()).current_dir(dir);
    let block = move || {
        // SAFETY: `set` is plain data, made by the calls before its use.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for &number in signals {
                libc::sigaddset(&mut set, number);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        }
        Ok(())
    };
    // SAFETY: these calls may stand in a signal handler, so between fork and exec, too.
    unsafe { shell.pre_exec(block) };
    shell
}

/// The same with one that does not matter to it.
fn shell(dir: &Path, script: &str) -> Command {
    shell_blocking(&[libc::SIGUSR2], dir, script)
}

/// The value of a line of `/proc/PID/status`.
fn mask(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
    u64::from_str_radix(line.trim(), 16).unwrap()
}

fn has(mask: u64, signal: i32) -> bool {
    mask >> (signal - 1) & 1 == 1
}

#[test]
fn the_command_has_the_signals_that_the_agent_was_started_with() {
    let dir = tempfile::tempdir().unwrap();
    let ignoring = ["", "HUP", "INT QUIT", "PIPE", "HUP INT QUIT TERM PIPE XFSZ CHLD TTOU"];
    for (n, ignored) in ignoring.into_iter().enumerate() {
        let status = |run: &str| {
            // Without a signal it does nothing.
            let script = format!("for s in {ignored}; do trap '' $s; done; {run}");
            let blocked = &[libc::SIGUSR2, libc::SIGCHLD];
            let output = shell_blocking(blocked, dir.path(), &script).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let text = String::from_utf8(output.stdout).unwrap();
            ["SigIgn:", "SigBlk:"].map(|name| mask(&text, name))
        };
        let itself = status("exec cat /proc/self/status");
        assert!([libc::SIGUSR2, libc::SIGCHLD].into_iter().all(|n| has(itself[1], n)), "blocked");
        assert_eq!(has(itself[0], libc::SIGPIPE), ignored.contains("PIPE"));
        let recorded = format!("exec $AGENT record -k none -o {n} -- cat /proc/self/status");
        assert_eq!(status(&recorded), itself, "{ignored}");
    }
}

#[test]
fn an_agent_with_cpus_of_its_own_leaves_all_to_its_command() {
    let dir = tempfile::tempdir().unwrap();
    let script = "export FIRST=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/self/status); \
                  grep Cpus_allowed_list /proc/self/status; exec $AGENT record -k none -o out --agent-cpus $FIRST -- \
                  sh -c 'grep -h Cpus_allowed_list /proc/self/status /proc/$PPID/status; echo first:$FIRST'";
    let output = shell(dir.path(), script).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lists: Vec<&str> =
        text.lines().map(|line| line.rsplit([':', '\t']).next().unwrap()).collect();
    let [all, command, agent, first, ..] = lists[..] else { panic!("{text}") };
    assert_eq!(command, all);
    assert_eq!(agent, first);
    let nowhere = shell(dir.path(), "$AGENT record -k none -o none --agent-cpus 8191 -- true")
        .output()
        .unwrap();
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("name some of those"), "{nowhere:?}");
}

#[test]
fn what_was_closed_is_closed_for_the_command() {
    let dir = tempfile::tempdir().unwrap();
    for (n, closed) in ["<&-", ">&- 2>&-", "<&- >&- 2>&-"].into_iter().enumerate() {
        let descriptors = |run: &str, file: &str| {
            let script = format!("exec {run} sh -c 'ls /proc/$$/fd > {file}' {closed}");
            assert!(shell(dir.path(), &script).status().unwrap().success(), "{script}");
            fs::read_to_string(dir.path().join(file)).unwrap()
        };
        let itself = descriptors("", "itself");
        let recorded = descriptors(&format!("$AGENT record -k none -o {n} --"), "recorded");
        assert_eq!(recorded, itself, "{closed}");
    }
}

/// A shell without job control ignores SIGINT and SIGQUIT in the background: Ctrl-C is meant for others.
#[test]
fn a_command_in_the_background_stays_there() {
    let dir = tempfile::tempdir().unwrap();
    let script = "$AGENT record -k none -o out -- cat /proc/self/status & wait $!";
    let text = String::from_utf8(shell(dir.path(), script).output().unwrap().stdout).unwrap();
    let ignored = mask(&text, "SigIgn:");
    assert!(has(ignored, libc::SIGINT) && has(ignored, libc::SIGQUIT), "{ignored:x}");
}

#[test]
fn an_ignored_signal_ends_no_recording() {
    let dir = tempfile::tempdir().unwrap();
    // The agent takes the place of the shell.
    let script = "trap '' INT HUP; exec $AGENT record -k none -o out -- \
                  sh -c ': > begun; n=0; while [ ! -e end -a $n -lt 2000 ]; do n=$((n + 1)); sleep 0.05; done; exit 7'";
    let mut shell = shell(dir.path(), script);
    let mut agent = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = agent.id();
    while !dir.path().join("begun").exists() {
        assert!(agent.try_wait().unwrap().is_none(), "it ended");
        std::thread::yield_now();
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let (caught, ignored) = (mask(&status, "SigCgt:"), mask(&status, "SigIgn:"));
    // The last two are the command's business: it may handle Ctrl-\\, or have the terminal for itself.
    for number in [libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGTTOU] {
        assert!(has(ignored, number) && !has(caught, number), "{number}");
        signal::send(pid, number);
    }
    assert!(has(caught, libc::SIGTERM));
    fs::write(dir.path().join("end"), "").unwrap();
    // A recording that was interrupted ends with 0.
    assert_eq!(agent.wait().unwrap().code(), Some(7));
}
