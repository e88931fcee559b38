//! `SIGKILL` at an instant that nobody chose: of the application, and of the agent.

use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ft_trace::store::Trace;

use crate::counting::{last_number, progress, reach};
use crate::harness::{self, Stage};

fn start(stage: &Stage, limit: &str) -> Child {
    std::fs::write(stage.path("progress"), [0; 8]).expect("progress file");
    harness::agent()
        .args(["record", "-k", "none", "-o"])
        .arg(stage.path("trace"))
        .arg("--")
        .arg(harness::subject())
        .arg("endless")
        .arg(stage.path("progress"))
        .arg(limit)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the agent starts")
}

/// The subject, found as the child of the agent.
fn child_of(agent: &Child) -> i32 {
    let path = format!("/proc/{0}/task/{0}/children", agent.id());
    let by_kernel = std::fs::read_to_string(path).unwrap_or_default();
    if let Some(pid) = by_kernel.split_whitespace().next() {
        return pid.parse().expect("pid");
    }
    // The agent may have spawned it from another of its threads.
    let tasks = std::fs::read_dir(format!("/proc/{}/task", agent.id())).expect("tasks");
    tasks
        .filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("children")).ok())
        .find_map(|c| c.split_whitespace().next().map(|p| p.parse().expect("pid")))
        .expect("the agent has a child")
}

fn sigkill(pid: i32) {
    // SAFETY: a plain system call; the process is the test's own grandchild.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
}

#[test]
fn a_killed_application_loses_none_of_its_committed_events() {
    let stage = Stage::enter();
    for round in 0..5u64 {
        let agent = start(&stage, "1000000000");
        reach(&stage.path("progress"), 20_000 + round * 7_919);
        sigkill(child_of(&agent));
        let output = agent.wait_with_output().expect("the agent ends");
        let committed = progress(&stage.path("progress"));
        assert!(!output.status.success(), "the status of the command is the agent's");
        let trace = Trace::open(&stage.path("trace")).expect("a whole trace");
        let last = last_number(&trace);
        assert!(
            last == committed || last == committed + 1,
            "{committed} committed (one more may be, unpublished), {last} recorded"
        );
        std::fs::remove_dir_all(stage.path("trace")).expect("remove");
    }
}

#[test]
fn a_killed_agent_leaves_all_that_it_spooled_and_does_not_harm_the_application() {
    let stage = Stage::enter();
    let mut agent = start(&stage, "1000000");
    reach(&stage.path("progress"), 50_000);
    let application = child_of(&agent);
    agent.kill().expect("kill");
    agent.wait().expect("wait");
    let at_death = progress(&stage.path("progress"));
    // It fills its ring, discards the rest, and comes to its end.
    reach(&stage.path("progress"), 1_000_000);
    let patience = Instant::now();
    while Path::new(&format!("/proc/{application}")).exists() && !is_zombie(application) {
        assert!(patience.elapsed() < Duration::from_secs(300), "the application hangs");
        sleep(Duration::from_millis(10));
    }

    assert!(Trace::open(&stage.path("trace")).is_err(), "an unfinished trace says so");
    let convert =
        harness::agent().arg("convert").arg(stage.path("trace")).output().expect("starts");
    harness::assert_success(&convert);
    let trace = Trace::open(&stage.path("trace")).expect("a whole trace");
    let last = last_number(&trace);
    assert!(last > 0 && last <= at_death + 1, "{last} of {at_death}");
    assert!(!stage.path("trace").join("spool").exists(), "everything is converted");
}

fn is_zombie(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}
