//! Processes that the agent does not share everything with: another PID namespace, another view of the
//! files, another user; and families, whose members begin by fork and by exec.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ft_trace::store::Trace;
use ft_trace::tables::{CriticalSection, SchedSwitch, ThreadRow, UserEvent};
use ft_trace::warning::Warning;

use crate::harness::{self, Stage, gate};
use crate::holes::Holes;

/// A member of the subject's family, as it was recorded.
#[derive(Debug)]
struct Member {
    /// In the agent's PID namespace.
    pid: i32,
    tid: i32,
    /// In its own.
    inner: (i64, i64),
}

/// The four members, in the order of their appearance.
fn family(trace: &Trace) -> Vec<Member> {
    let events = trace.rows::<UserEvent>().map(|event| event.expect("a row"));
    let members = events.filter(|event| &*event.event == "family.member");
    let mut roles = Vec::new();
    let members = members.map(|event| {
        let number = |n: usize| event.arg[n].expect("a number");
        roles.push(number(0));
        Member { pid: event.pid.0, tid: event.tid.0, inner: (number(1), number(2)) }
    });
    let members: Vec<Member> = members.collect();
    assert_eq!(roles, [0, 1, 2, 3], "{members:?}");
    // A thread and what comes by exec are the same process, a forked child is not.
    let [first, thread, child, last] = &members[..] else { unreachable!() };
    assert_eq!([thread.pid, last.pid], [first.pid; 2], "{members:?}");
    assert_ne!(child.pid, first.pid, "{members:?}");
    assert_eq!((first.tid, child.tid, last.tid), (first.pid, child.pid, first.pid), "{members:?}");
    assert_ne!(thread.tid, first.tid, "{members:?}");
    members
}

/// Runs the agent in a PID namespace of its own.
fn in_namespace(unshare: &[&str], args: &[&str]) -> (bool, String) {
    let agent = ft_tests::agent();
    let output = Command::new("unshare").arg("-pf").args(unshare).arg(agent).args(args).output();
    let output = output.expect("unshare starts");
    (output.status.success(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn an_agent_in_a_namespace_never_mixes_numbers() {
    if !namespaces() {
        return;
    }
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let dir = stage.path("trace");
    let (dir, subject) =
        (dir.to_str().expect("UTF-8"), harness::subject().to_str().expect("UTF-8"));
    let refused = |unshare: &[&str], args: &[&str], expected: &str| {
        let (succeeded, stderr) = in_namespace(unshare, args);
        assert!(!succeeded && stderr.contains(expected) && stderr.lines().count() == 1, "{stderr}");
    };
    refused(&["--mount-proc"], &["record", "-o", dir, "--", "true"], "with `-k none`");
    let foreign = "`mount -t proc proc /proc`";
    refused(&[], &["record", "-k", "none", "-o", dir, "--", "true"], foreign);
    refused(&[], &["enable", "-p", "1", "*"], foreign);
    assert!(!Path::new(dir).exists());
    // All that it sees it calls by the same numbers.
    let alone = ["record", "-k", "none", "-o", dir, "--", subject, "family"];
    let (succeeded, stderr) = in_namespace(&["--mount-proc"], &alone);
    assert!(succeeded, "{stderr}");
    for member in family(&Trace::open(Path::new(dir)).expect("a whole trace")) {
        assert_eq!((i64::from(member.pid), i64::from(member.tid)), member.inner);
    }
}

/// Whose sessions an agent cannot see it cannot tell to be its own; it serves them all the same.
#[test]
fn a_session_that_began_outside_of_the_agents_namespace_is_nobodys() {
    if !namespaces() {
        return;
    }
    gate::ran();
    let stage = Stage::enter();
    let program = subject_for_all(&stage);
    let dir = stage.path("trace");
    let other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let words = [dir.to_str().expect("UTF-8"), "--", program.to_str().expect("UTF-8"), "family"];
    let args = [&["record", "-k", "none", "-o"], &words[..2], &other, &words[2..]].concat();
    let (succeeded, stderr) = in_namespace(&["--mount-proc"], &args);
    assert!(succeeded, "{stderr}");
    family(&Trace::open(&dir).expect("a whole trace"));
}

/// Whether this machine lets us make namespaces; reports it.
pub(crate) fn namespaces() -> bool {
    let made = Command::new("unshare").args(["-pfm", "--mount-proc", "true"]).output();
    match made {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            gate::skipped(&format!("no namespaces ({reason}); run as root"));
            false
        }
        Err(error) => {
            gate::skipped(&format!("no unshare ({error}); install util-linux"));
            false
        }
    }
}

#[test]
fn fork_and_exec_begin_anew() {
    let stage = Stage::enter();
    let (truth, dir) = stage.record(&["-k", "none"], &["family"]);
    // None is kept once an agent has it.
    assert_eq!(truth["memfds"], 0);
    for member in family(&Trace::open(&dir).expect("a whole trace")) {
        assert_eq!((i64::from(member.pid), i64::from(member.tid)), member.inner);
    }
}

#[test]
fn children_that_end_at_once_are_recorded() {
    let stage = Stage::enter();
    let (truth, dir) = stage.record(&["-k", "none"], &["brief"]);
    let trace = Trace::open(&dir).expect("a whole trace");
    let events = trace.rows::<UserEvent>().map(|event| event.expect("a row"));
    let mut children: Vec<i64> = Vec::new();
    for event in events.filter(|event| &*event.event == "family.brief") {
        let pid = event.arg[1].expect("a number");
        assert_eq!((i64::from(event.pid.0), i64::from(event.tid.0)), (pid, pid));
        children.push(event.arg[0].expect("a number"));
    }
    let all = truth["children"].as_i64().expect("a number");
    assert_eq!(children, (0..all).collect::<Vec<_>>());
    let names: BTreeSet<_> = trace.rows::<ThreadRow>().map(|t| t.expect("a row").process).collect();
    assert_eq!(names, BTreeSet::from(["subject".into()]));
}

#[test]
fn a_container_is_recorded_under_our_numbers() {
    if !namespaces() {
        return;
    }
    let Some(stage) = Stage::enter_with_kernel() else { return };
    // It sees the agent's socket at another place, and nothing else of the agent's.
    let script = r#"
        mount -t tmpfs none /run && touch /run/agent.sock && mount --bind "$FT_SOCKET" /run/agent.sock
        mount -t tmpfs none "$1" && FT_SOCKET=/run/agent.sock exec "$0" family"#;
    let dir = stage.path("trace");
    let output = harness::agent()
        .args(["record", "-o"])
        .arg(&dir)
        .args(["--", "unshare", "-pfm", "--mount-proc", "sh", "-ec", script])
        .args([harness::subject(), &stage.path("")])
        .output()
        .expect("the agent starts");
    harness::assert_success(&output);

    let trace = harness::open(&dir);
    let members = family(&trace);
    let inner: Vec<(i64, i64)> = members.iter().map(|member| member.inner).collect();
    assert_eq!(inner[0], (1, 1));
    assert!(
        inner.iter().all(|&(pid, tid)| pid < 10 && tid < 10),
        "numbers of a container: {inner:?}"
    );

    // The kernel speaks of the same threads.
    let ours: BTreeSet<(i32, i32)> =
        members.iter().map(|member| (member.pid, member.tid)).collect();
    let switches = trace.rows::<SchedSwitch>().map(|row| row.expect("a row"));
    let switched: BTreeSet<_> = switches.map(|row| (row.prev_pid.0, row.prev_tid.0)).collect();
    assert!(ours.is_subset(&switched), "{ours:?}");
    let threads = trace.rows::<ThreadRow>().map(|row| row.expect("a row"));
    let known: BTreeSet<_> = threads.filter(|t| t.observed).map(|t| (t.pid.0, t.tid.0)).collect();
    assert!(ours.is_subset(&known), "{ours:?} in {known:?}");
    let holds = trace.rows::<CriticalSection>().map(|row| row.expect("a row"));
    let slept: Vec<_> = holds
        .filter(|hold| &*hold.lock_name == "house")
        .map(|hold| {
            assert!(hold.parts.expect("a kernel stream").blocked_ns > 0, "{hold:?}");
            (hold.pid.0, hold.tid.0)
        })
        .collect();
    assert_eq!(slept, members.iter().map(|m| (m.pid, m.tid)).collect::<Vec<_>>());
}

#[test]
fn brief_threads_of_a_container_get_their_numbers_from_the_kernel() {
    if !namespaces() {
        return;
    }
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let dir = stage.path("trace");
    let mut agent = harness::agent();
    agent.args(["record", "-o"]).arg(&dir).args(["--", "unshare", "-pf", "--mount-proc"]);
    let output = agent.arg(harness::subject()).arg("brief").output().expect("the agent starts");
    harness::assert_success(&output);

    let trace = harness::open(&dir);
    let events = trace.rows::<UserEvent>().map(|event| event.expect("a row"));
    let threads = events.filter(|event| &*event.event == "family.brief_thread");
    let numbers: Vec<(i64, i64, i64)> =
        threads.map(|e| (e.arg[0].expect("a number"), e.tid.0.into(), e.ts.0)).collect();
    let (known, unknown): (Vec<_>, Vec<_>) = numbers.iter().partition(|(_, tid, _)| *tid > 0);
    assert!(known.len() >= 40 && numbers.len() == 50, "{numbers:?}");
    // Only one that was struck by the loss of a switch has none.
    let holes = Holes::of(&trace);
    for (inner, tid, ts) in &unknown {
        assert!(*tid == -inner && holes.touch(*ts, *ts), "{inner} at {ts}: {tid}");
    }
    // Both namespaces number threads in the order of their begin.
    assert!(known.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{known:?}");
    let warned = trace.meta().warnings.iter().find_map(|warning| match warning {
        Warning::Unnumbered { threads } => Some(*threads),
        _ => None,
    });
    assert_eq!(warned.unwrap_or(0), unknown.len() as u64);
}

#[test]
fn a_process_of_another_user_registers() {
    let stage = Stage::enter();
    // SAFETY: takes no pointer.
    if unsafe { libc::geteuid() } != 0 {
        return gate::skipped("only root can become another user; run as root");
    }
    gate::ran();
    let program = subject_for_all(&stage);
    // The trace is nobody else's.
    let closed = stage.path("closed");
    fs::create_dir(&closed).expect("a folder");
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).expect("permissions");
    let dir = closed.join("trace");
    let output = harness::agent()
        .args(["record", "-k", "none", "-o"])
        .arg(&dir)
        .args(["--", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program)
        .arg("family")
        .output()
        .expect("the agent starts");
    harness::assert_success(&output);
    family(&Trace::open(&dir).expect("a whole trace"));
}

/// A copy of the subject that everybody may run, in a folder that everybody may enter.
fn subject_for_all(stage: &Stage) -> PathBuf {
    let program = stage.path("subject");
    fs::copy(harness::subject(), &program).expect("copy");
    for path in [stage.path(""), program.clone()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("permissions");
    }
    program
}
