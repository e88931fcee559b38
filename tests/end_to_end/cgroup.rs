//! `--cgroup`: whoever is in a cgroup is recorded, and nobody else.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ft_agent::collect::cgroup::Cgroup;
use ft_trace::store::Trace;
use ft_trace::tables::{SchedWaking, TaskEvent, ThreadRow, UserEvent};

use crate::harness::{self, Stage, gate};
use crate::mounts;

/// A cgroup of this test with one below it, removed at the end.
struct Group {
    dir: PathBuf,
}

impl Group {
    /// Makes them, or reports why not.
    fn make() -> Option<Group> {
        let root = match Cgroup::open(Path::new("/")) {
            Ok(root) => root,
            Err(error) => {
                gate::skipped(&error.to_string());
                return None;
            }
        };
        let dir = root.directory().join(format!("feather-trace-test-{}", std::process::id()));
        match fs::create_dir_all(dir.join("below")) {
            Ok(()) => Some(Group { dir }),
            Err(error) => {
                gate::skipped(&format!("cannot make {}: {error}; run as root", dir.display()));
                None
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Fails while a process is in it, which a failed test may have left there.
        let _ = fs::remove_dir(self.dir.join("below")).and_then(|()| fs::remove_dir(&self.dir));
    }
}

/// A shell that enters a cgroup when told to, then runs what it is told, line by line.
struct Member {
    shell: Child,
}

impl Member {
    fn start() -> Member {
        let shell = Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Member { shell: shell.expect("a shell") }
    }

    /// Runs a line and waits until it is done.
    fn run(&mut self, line: &str) {
        let stdin = self.shell.stdin.as_mut().expect("piped");
        writeln!(stdin, "{line}\necho done").expect("the shell lives");
        let mut out = BufReader::new(self.shell.stdout.as_mut().expect("piped"));
        let mut answer = String::new();
        while answer != "done\n" {
            answer.clear();
            assert!(out.read_line(&mut answer).expect("text") > 0, "the shell ended");
        }
    }

    fn enter(&mut self, group: &Path) {
        self.run(&format!("echo $$ > {}/cgroup.procs", group.display()));
    }

    fn pid(&self) -> i32 {
        self.shell.id() as i32
    }

    fn end(mut self) {
        drop(self.shell.stdin.take());
        assert!(self.shell.wait().expect("wait").success());
    }
}

#[test]
fn who_is_in_a_cgroup_is_recorded_and_nobody_else() {
    let Some(group) = Group::make() else { return };
    // The default socket then belongs to this test's agent.
    let hidden = mounts::make_private().and_then(|()| mounts::tmpfs(Path::new("/run"), "1m", 0));
    if let Err(error) = hidden {
        gate::skipped(&format!("no mounts of its own: {error}"));
        return;
    }
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let family = format!("{} family", harness::subject().display());
    let (mut inside, mut comes, mut outside) = (Member::start(), Member::start(), Member::start());
    inside.enter(&group.dir.join("below"));

    let dir = stage.path("trace");
    let mut agent = harness::agent();
    agent.args(["record", "--cgroup"]).arg(&group.dir).arg("-o").arg(&dir);
    let agent = agent.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    // It serves the default socket when it records.
    let socket = Path::new(ft_user::layout::DEFAULT_SOCKET);
    while !dir.join("spool/segment-000000.ft").exists() || !socket.exists() {
        std::thread::yield_now();
    }
    comes.enter(&group.dir);
    for member in [&mut inside, &mut comes, &mut outside] {
        member.run(&family);
    }
    let members = [inside.pid(), comes.pid()];
    let stranger = outside.pid();
    for member in [inside, comes, outside] {
        member.end();
    }
    // SAFETY: a plain system call; the agent is our child and not yet waited for.
    assert_eq!(unsafe { libc::kill(agent.id() as i32, libc::SIGTERM) }, 0);
    harness::assert_success(&agent.wait_with_output().expect("the agent ends"));

    let trace = Trace::open(&dir).expect("a whole trace");
    let events = trace.rows::<UserEvent>().map(|row| row.expect("a row"));
    let roles = events.filter(|e| &*e.event == "family.member").map(|e| e.arg[0].expect("a role"));
    assert_eq!(roles.collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1, 2, 3], "two of three families");
    let wakings = trace.rows::<SchedWaking>().map(|row| row.expect("a row"));
    let woken: BTreeSet<i32> = wakings.map(|row| row.pid.0).collect();
    assert!(members.iter().all(|pid| woken.contains(pid)), "{members:?} in {woken:?}");
    let tasks = trace.rows::<TaskEvent>().map(|row| row.expect("a row"));
    let lived: BTreeSet<i32> = tasks.map(|row| row.pid.0).chain(woken).collect();
    assert!(!lived.contains(&stranger), "{stranger} in {lived:?}");
    let threads = trace.rows::<ThreadRow>().map(|row| row.expect("a row"));
    let observed: BTreeSet<i32> = threads.filter(|t| t.observed).map(|t| t.pid.0).collect();
    assert!(members.iter().all(|pid| observed.contains(pid)), "{members:?} in {observed:?}");
    assert!(!observed.contains(&stranger), "{stranger} in {observed:?}");
}

#[test]
fn a_path_that_is_no_cgroup_is_an_error() {
    let stage = Stage::enter();
    let mut agent = harness::agent();
    agent
        .args(["record", "-k", "none", "--cgroup", "/no/such/group", "-o"])
        .arg(stage.path("trace"));
    let output = agent.output().expect("the agent starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cgroup") && stderr.contains("; "), "{stderr}");
    assert!(!stage.path("trace").exists());
}
