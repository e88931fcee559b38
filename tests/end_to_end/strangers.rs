//! `record -- CMD` records the command and what it starts; other programs with `ft-user` only with `--any`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use ft_trace::store::Trace;
use ft_trace::tables::{ThreadRow, UserEvent};

use crate::harness::{self, Stage, gate};
use crate::mounts;

/// The command waits for a line, and then runs a program that finds the agent by its own socket, one that finds it by the
/// default one, and one whose parent has ended.
const COMMAND: &str = r#"
    echo begun && read line
    "$0" family >"$1"
    env -u FT_SOCKET "$2" family >"$1"
    (env -u FT_SOCKET sh -c 'sleep 0.2; "$0" family >"$1"' "$3" "$1" &)
    sleep 1
"#;

/// Records the command beside a stranger; names of the programs that were recorded, how many of their processes were, and what the agent
/// said.
fn record(stage: &Stage, name: &str, options: &[&str]) -> (BTreeSet<String>, usize, String) {
    // A program has the name by which it is executed.
    let programs =
        ["own", "cleared", "orphan", "stranger"].map(|it| stage.path(&format!("{name}/{it}")));
    std::fs::create_dir(stage.path(name)).expect("a folder");
    programs.iter().for_each(|path| symlink(harness::subject(), path).expect("a link"));
    let [own, cleared, orphan, stranger] = programs;
    let (trace, said) = (stage.path(name).join("trace"), stage.path("said"));
    let mut agent = harness::agent();
    agent.arg("record").args(options).arg("-o").arg(&trace).args(["--", "sh", "-c", COMMAND]);
    agent.arg(own).arg(&said).arg(cleared).arg(orphan).stdin(Stdio::piped());
    let mut agent = agent.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut out = BufReader::new(agent.stdout.take().expect("piped"));
    out.read_line(&mut String::new()).expect("the command begins");
    while !Path::new(ft_user::layout::DEFAULT_SOCKET).exists() {
        std::thread::yield_now();
    }
    let ran = Command::new(stranger).arg("family").stdout(Stdio::null()).status();
    assert!(ran.expect("the stranger").success());
    drop(agent.stdin.take());
    std::io::copy(&mut out, &mut std::io::sink()).expect("its summary");
    let output = agent.wait_with_output().expect("the agent ends");
    harness::assert_success(&output);

    let trace = Trace::open(&trace).expect("a whole trace");
    let threads: Vec<ThreadRow> = trace.rows().map(|row| row.expect("a row")).collect();
    let events = trace.rows::<UserEvent>().map(|row| row.expect("a row"));
    let members: Vec<_> = events.filter(|event| &*event.event == "family.member").collect();
    let of = |tid| threads.iter().find(|thread| thread.tid == tid).map(|t| t.name.to_string());
    // One of each family has executed the program by another name.
    let names = members.iter().filter_map(|event| of(event.tid)).filter(|name| name != "exe");
    (names.collect(), members.len(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_a_command_starts_is_recorded_and_others_only_when_they_are_asked_for() {
    // The default socket then belongs to this test's agents.
    let hidden = mounts::make_private().and_then(|()| mounts::tmpfs(Path::new("/run"), "1m", 0));
    if let Err(error) = hidden {
        return gate::skipped(&format!("no mounts of its own: {error}"));
    }
    let Some(stage) = Stage::enter_with_kernel() else { return };
    for (name, kernel) in [("kernel", "sched,task"), ("none", "none")] {
        let (names, members, said) = record(&stage, name, &["-k", kernel]);
        assert_eq!(names, ["cleared", "orphan", "own"].map(str::to_owned).into(), "{kernel}");
        assert_eq!(members, 3 * 4, "{kernel}: of three families");
        let line = said.lines().find(|line| line.contains("'stranger'")).unwrap_or(&said);
        assert!(line.contains("not recorded; --any"), "{kernel}: {line}");
    }
    let (names, members, said) = record(&stage, "any", &["-k", "none", "--any"]);
    assert_eq!(names, ["cleared", "orphan", "own", "stranger"].map(str::to_owned).into());
    assert_eq!(members, 4 * 4);
    assert!(said.contains("'stranger'") && said.contains("recorded, too"), "{said}");
}
