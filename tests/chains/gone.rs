//! Programs whose files have gone before anybody could look at them, or that have gone themselves.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ft_report::code::Code;
use ft_trace::build_id;
use ft_trace::foreign_file::regular;
use ft_trace::spool::Spool;
use ft_trace::store::Trace;
use ft_trace::tables::{CallChain, FrameRow, StackRow, UNSEEN};
use tempfile::TempDir;

use crate::registry::has_mapping;
use crate::stage::{Stage, succeed, succeeded, truth};

const OPTIONS: [&str; 4] = ["-k", "default,stack", "--stack-min", "500us"];

/// The recording has seen that this file is mapped and has gone.
fn has_seen_it_gone(spool: &Spool, path: &Path) -> bool {
    has_mapping(spool, |m| Path::new(&m.path) == path && m.is_gone).unwrap_or(false)
}

/// The functions at addresses of a program, by the copy of it that was kept.
fn looked_up(program: &Path, offsets: &[i64]) -> Vec<String> {
    let mut addr2line = Command::new("addr2line");
    addr2line.arg("-f").arg("-e").arg(program).args(offsets.iter().map(|at| format!("{at:x}")));
    let output = succeed(&mut addr2line);
    let text = String::from_utf8(output.stdout).expect("names");
    text.lines().step_by(2).map(str::to_owned).collect()
}

/// Records a program that has lost its file to `other`, or to nobody; what lies at its addresses must be found in a copy.
fn check(stage: &Stage, other: Option<&Path>) {
    let program = stage.compile("gone");
    let folder = TempDir::new().expect("a folder");
    let [kept, end] = ["kept", "end"].map(|name| folder.path().join(name));
    fs::copy(&program, &kept).expect("a copy");
    let mut agent = stage.agent("record");
    agent.args(OPTIONS).arg("-o").arg(stage.trace()).arg("--").arg(&program).arg(&end);
    agent.arg(other.unwrap_or(Path::new("")));
    let mut running =
        agent.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let spool = Spool::of(&stage.trace());
    while !has_seen_it_gone(&spool, &program) {
        assert_eq!(running.try_wait().expect("it can be asked"), None, "it goes on until its end");
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::write(&end, "").expect("a file");
    let output = succeeded(running.wait_with_output().expect("it ends"), &agent);
    let pid = truth(&output)["napper"].as_i64().expect("a number") as i32;

    let expected = build_id::of_opened(&regular(&kept).expect("the copy"));
    let expected = expected.expect("the linker was asked for one");
    let trace = Trace::open(&stage.trace()).expect("a trace");
    let frames: Vec<FrameRow> = trace.rows::<FrameRow>().map(|row| row.expect("a row")).collect();
    let of_it = |row: &&FrameRow| Path::new(&*row.object) == program;
    for row in frames.iter().filter(of_it) {
        assert_eq!((&*row.build_id, &*row.function), (&*expected, ""), "{row:?}");
    }
    // The innermost four functions of user space of a nap.
    let chains = trace.rows::<CallChain>().map(|row| row.expect("a row"));
    let chains: HashSet<i64> =
        chains.filter(|row| row.pid.0 == pid).filter_map(|row| row.stack).collect();
    let stacks: Vec<StackRow> = trace.rows::<StackRow>().map(|row| row.expect("a row")).collect();
    let naps = chains.iter().filter(|stack| {
        let user = stacks.iter().filter(|row| row.stack == **stack && row.pid.0 == pid);
        let at = |row: &StackRow| {
            let mut found = frames.iter().filter(of_it);
            found.find(|f| (f.pid, f.address) == (row.pid, row.address)).map(|f| f.offset)
        };
        let offsets: Option<Vec<i64>> = user.take(4).map(at).collect();
        offsets.is_some_and(|offsets| {
            looked_up(&kept, &offsets) == ["nap_four", "nap_three", "nap_two", "nap_one"]
        })
    });
    assert!(naps.count() > 0, "{chains:?} {frames:?}");
    let values = stage.report("stacks");
    let nameless = values["quality"]["nameless"].as_array().expect("a list");
    assert!(nameless.iter().any(|n| n["build_id"] == expected.as_str()), "{nameless:?}");
    let text = succeed(stage.agent("report").arg(stage.trace()).arg("stacks"));
    assert!(String::from_utf8_lossy(&text.stdout).contains(&expected));
    fs::remove_dir_all(stage.trace()).expect("a folder");
}

#[test]
fn what_has_deleted_or_replaced_itself_is_known_by_its_build_id() {
    let Some(stage) = Stage::enter() else { return };
    check(&stage, None);
    let other: PathBuf = stage.compile("ways");
    check(&stage, Some(&other));
}

#[test]
fn processes_that_ended_before_they_were_looked_at_are_counted() {
    let Some(stage) = Stage::enter() else { return };
    let program = stage.compile("gone");
    let mut agent = stage.agent("record");
    agent.args(OPTIONS).arg("-o").arg(stage.trace());
    agent.args(["--", "sh", "-c", "for i in $(seq 30); do \"$0\"; done"]);
    succeed(agent.arg(&program));
    let trace = Trace::open(&stage.trace()).expect("a trace");
    let code = Code::read(&trace).expect("tables");
    let rows = trace.rows::<CallChain>().map(|row| row.expect("a row"));
    let (mut unseen, mut named) = (HashSet::new(), HashSet::new());
    for row in rows.filter(|row| row.kind != ft_trace::tables::ChainKind::Wake) {
        let chain = code.chain(row.stack);
        if chain.iter().any(|frame| &*frame.object == UNSEEN) {
            // Nothing is said of one function that is not known of all.
            let user = chain.iter().filter(|frame| !frame.kernel);
            assert!(user.clone().all(|f| &*f.object == UNSEEN && !f.named), "{chain:?}");
            assert!(user.clone().all(|f| f.label.starts_with("0x")), "{chain:?}");
            unseen.insert((row.tid.0, row.ts));
        } else if chain.iter().any(|frame| &*frame.label == "nap_four") {
            named.insert(row.tid.0);
        }
    }
    // Which of them were looked at in time is luck; each is one or the other.
    let short: HashSet<i32> = unseen.iter().map(|(tid, _)| *tid).chain(named).collect();
    assert!(short.len() >= 25, "{} of 30 processes have a chain", short.len());
    let values = stage.report("stacks");
    assert_eq!(values["quality"]["unseen"].as_u64(), Some(unseen.len() as u64), "{values}");
}
