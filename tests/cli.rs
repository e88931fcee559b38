//! The binary: what bad input gets, and a recording without the kernel.
//!
//! Everything here runs without rights, `-k none`, but for what libraries say, of which those say most that load programs into
//! the kernel.

use ft_tests::gate;
use ft_tests::signal;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn agent(args: &[&str]) -> Output {
    Command::new(ft_tests::agent()).args(args).output().unwrap()
}

/// Runs the agent, which must fail with one sentence that contains `expected`; its exit status.
#[track_caller]
fn fails(args: &[&str], expected: &str) -> Option<i32> {
    let output = agent(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{args:?} succeeded");
    assert!(stderr.contains(expected), "{args:?}: {stderr}");
    assert!(output.status.code() == Some(2) || stderr.lines().count() == 1, "{args:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    output.status.code()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_bad_output_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("notes"), "mine").unwrap();
    let full = text(dir.path());
    fails(&["record", "-k", "none", "-o", full, "--", "true"], "is not empty; choose another");
    assert_eq!(fs::read_dir(full).unwrap().count(), 1);
    let file = format!("{full}/notes");
    fails(&["record", "-k", "none", "-o", &file, "--", "true"], "choose a directory");
    fails(&["record", "-k", "none", "-o", "/proc/x", "--", "true"], "choose a directory");
}

#[test]
fn a_recording_writes_a_page_and_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let (out, page) = (dir.path().join("trace"), dir.path().join("trace/report.html"));
    let record = |html: &str, json: &[&str]| {
        let args = ["record", "-k", "none", "-o", text(&out), "--html", html];
        agent(&[&args, json, &["--", "true"]].concat())
    };
    // Before anything is recorded.
    let refused = record("/no/such/directory/a.html", &[]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("name a file in a directory that you may write to"), "{error}");
    assert!(refused.stdout.is_empty() && !out.exists());

    let output = record(text(&page), &[]);
    // Behind what a command has printed to a file there is nothing else.
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    let last = said.lines().last().unwrap();
    assert!(last.starts_with(&format!("page      {} (", page.display())), "{said}");
    assert!(fs::read_to_string(&page).unwrap().contains("<section id=summary>"));
    fs::remove_dir_all(&out).unwrap();
    let output = record(text(&page), &["--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["html"], text(&page));
    assert!(page.exists());
}

#[test]
fn what_libraries_say_is_shown_as_rust_log_tells() {
    if !gate::recordable_or_skip() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let said = |level: &str| {
        let mut agent = Command::new(ft_tests::agent());
        agent.env("RUST_LOG", level).args(["record", "-o"]).arg(dir.path().join(level));
        let output = agent.args(["--", "true"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    // What aya has found out of the kernel, before it loads anything.
    let begin = "ft-agent: debug: BPF Feature Detection: ";
    let of_aya = |said: &str| {
        let text = said.split_once(begin).map(|(_, text)| text.split("ft-agent: ").next());
        text.flatten().is_some_and(|text| text.contains(" (aya::"))
    };
    let debug = said("debug");
    assert!(of_aya(&debug), "{debug}");
    let warn = said("warn");
    assert!(!warn.contains("ft-agent: debug: "), "{warn}");
}

#[test]
fn top_says_what_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    fails(&["top", text(dir.path())], "draws on a terminal, and this is none; add --json");
    fails(&["top", "--json", text(dir.path())], "nothing is recorded into");
    fails(&["top", "--json", "--share", "0", text(dir.path())], "is no percentage");
    fails(&["top", "--json", "-k", "none", "-p", "2147483647"], "2147483647");
}

#[test]
fn a_command_that_cannot_run_is_an_error_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let record =
        |command| fails(&["record", "-k", "none", "-o", text(&out), "--", command], "cannot run");
    // As env(1) and nohup(1) tell it.
    assert_eq!(record("ft-no-such-command"), Some(127));
    assert_eq!(record("/etc/passwd"), Some(126));
    assert!(!out.exists());
}

#[test]
fn words_are_the_commands_byte_by_byte_and_nothing_is_printed_among_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let word = b"a\xffb";
    let mut record = Command::new(ft_tests::agent());
    record.args(["record", "-k", "none", "-o", text(&out), "--", "printf", "%s"]);
    let output = record.arg(std::ffi::OsStr::from_bytes(word)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, word);
    assert!(fs::read_to_string(out.join("meta.json")).unwrap().contains("a\u{fffd}b"));
}

#[test]
fn a_command_that_fails_at_once_gives_its_status() {
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str, script: &str| {
        let out = dir.path().join(name);
        let output = agent(&["record", "-k", "none", "-o", text(&out), "--", "sh", "-c", script]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), stderr.contains("the recorded command failed"))
    };
    assert_eq!(run("a", "exit 3"), (Some(3), true));
    assert_eq!(run("b", "kill -9 $$"), (Some(137), true));
    assert_eq!(run("c", "true"), (Some(0), false));
}

#[test]
fn a_command_has_its_status_whatever_becomes_of_the_summary() {
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str, script: &str, stdout: Stdio| {
        let out = dir.path().join(name);
        let mut agent = Command::new(ft_tests::agent());
        agent.args(["record", "-k", "none", "-o", text(&out), "--json", "--", "sh", "-c", script]);
        let output = agent.stdout(stdout).stderr(Stdio::piped()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap().contains("cannot write"))
    };
    let gone = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(run("a", "exit 3", gone()), (Some(3), false));
    assert_eq!(run("b", "exit 3", full()), (Some(3), true));
    assert_eq!(run("c", "true", gone()), (Some(0), false));
    assert_eq!(run("d", "true", full()), (Some(1), true));
}

#[test]
fn a_process_that_is_gone_is_an_error() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id().to_string();
    child.wait().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    fails(&["record", "-k", "none", "-o", text(&out), "-p", &pid], "does not exist");
    fails(&["record", "-k", "none", "-o", text(&out), "-p", "0"], "does not exist");
    assert!(!out.exists());
}

#[test]
fn options_that_cannot_be_are_explained() {
    let check = |args: &[&str], expected| {
        let args = [&["record", "-k", "none"][..], args, &["--", "true"]].concat();
        fails(&args, expected);
        // As the help says.
        assert_eq!(agent(&args).status.code(), Some(2), "{args:?}");
    };
    check(&["-d", "soon"], "write for example 500ms");
    check(&["--segment-size", "big"], "write for example 256K");
    check(&["--segment-size", "1"], "--segment-size between");
    check(&["--segment-time", "1ms"], "--segment-time of");
    check(&["--ring-size", "1"], "--ring-size between");
    check(&["--kernel-buffer", "1"], "--kernel-buffer");
    check(&["--sample-rate", "0"], "--sample-rate between");
    let counters = ["cycles", "instructions", "cache-misses"];
    check(&counters.map(|name| ["--counter", name]).concat(), "two counters at most");
    check(&["--counter", "page-faults"], "--counter-calls");
    check(&["--on-full", "wait=2s"], "between 1ms and 1s");
    check(&["--on-full", "wait=soon"], "write for example 500ms");
    check(&["--on-full", "burst"], "neither discard nor wait");
    check(&["--reader", "timed=1us"], "between 10us and 100ms");
    check(&["--reader", "timed=soon"], "write for example 500ms");
    check(&["--reader", "timed"], "neither adaptive nor timed=TIME nor active nor waking");
    fails(&["record", "-k", "sched,nonsense", "--", "true"], "nonsense");
}

#[test]
fn a_damaged_trace_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let empty = text(dir.path());
    let missing = format!("{empty}/none");
    for command in [
        "convert",
        "analyze",
        "report",
        "locks",
        "waits",
        "preempted",
        "dispatch",
        "gaps",
        "events",
    ] {
        fails(&[command, empty], empty);
        fails(&[command, &missing], &missing);
    }
    let file = format!("{empty}/notes");
    fs::write(&file, "mine").unwrap();
    for command in ["analyze", "report", "locks", "events"] {
        fails(&[command, &file], "is not a trace");
    }
    fs::remove_file(&file).unwrap();
    let spool = dir.path().join("spool");
    fs::create_dir(&spool).unwrap();
    fs::write(spool.join("registry.ft"), "rubbish").unwrap();
    let output = agent(&["convert", empty]);
    assert!(!String::from_utf8(output.stderr).unwrap().contains("panicked"));
}

#[test]
fn a_glob_without_a_match_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let output = agent(&["record", "-k", "none", "-o", text(&out), "-e", "no.*", "--", "true"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.contains("no site matches 'no.*'; no recorded process declared any"),
        "{stderr}"
    );
}

#[test]
fn the_duration_ends_a_recording_and_its_command() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let args = ["record", "-k", "none", "-d", "50ms", "-o", text(&out), "--", "sleep", "1000"];
    let output = agent(&args);
    assert!(output.status.success(), "{output:?}");
    assert!(out.join("meta.json").exists());
    assert!(!out.join("spool").exists());
    assert!(!out.join("agent.sock").exists());
}

#[test]
fn a_recording_may_stay_unconverted() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let output = agent(&["record", "-k", "none", "--no-convert", "-o", text(&out), "--", "true"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains(" 0 events lost"), "{said}");
    assert!(out.join("spool/registry.ft").exists() && !out.join("meta.json").exists());
    assert!(agent(&["convert", text(&out)]).status.success());
    assert!(!out.join("spool").exists() && out.join("meta.json").exists());
}

/// A recording that writes a byte to a pipe when its command runs.
fn running(out: &Path, script: &str) -> Child {
    let mut agent = Command::new(ft_tests::agent())
        .args(["record", "-k", "none", "-o", text(out), "--", "sh", "-c"])
        .arg(format!("echo up; {script}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut up = [0; 3];
    std::io::Read::read_exact(agent.stdout.as_mut().unwrap(), &mut up).unwrap();
    agent
}

/// The agent takes what it may have, before it needs it; the command has what the agent was started with.
#[test]
fn a_limit_of_descriptors_is_the_commands_and_not_the_agents() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let limits = "ulimit -Sn; ulimit -Hn";
    let run = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -Sn 12; {script}")]).arg(ft_tests::agent());
        let output = shell.args([text(&out), limits]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let expected = run(limits);
    assert!(expected.starts_with("12\n"), "{expected}");
    let said = run("exec \"$0\" record -k none -o \"$1\" -- sh -c \"$2\"");
    assert_eq!(said, expected);
}

#[test]
fn sigterm_ends_a_recording_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut agent = running(&out, "exec sleep 1000");
    signal::send(agent.id(), libc::SIGTERM);
    assert!(agent.wait().unwrap().success());
    assert!(out.join("meta.json").exists());
}

#[test]
fn a_killed_agent_leaves_a_spool_that_converts() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    // The command ends with the pipe, when the test drops it.
    let mut recording = running(&out, "read wait");
    signal::send(recording.id(), libc::SIGKILL);
    let stdin = recording.stdin.take();
    recording.wait().unwrap();
    drop(stdin);
    assert!(out.join("spool/registry.ft").exists());
    let output = agent(&["convert", text(&out)]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("was interrupted"), "{stderr}");
    assert!(out.join("meta.json").exists());
}

#[test]
fn a_directory_with_a_long_path_gets_its_socket_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x".repeat(100));
    assert!(UnixDatagram::bind(out.join("agent.sock")).is_err());
    let script = "test -S \"$FT_SOCKET\"";
    let output = agent(&["record", "-k", "none", "-o", text(&out), "--", "sh", "-c", script]);
    assert!(output.status.success(), "{output:?}");
}

/// A trace of a program that does nothing.
fn trace(dir: &Path) -> String {
    let out = dir.join("trace");
    let args = ["record", "-k", "none", "-o", text(&out), "--json", "--", "true"];
    let output = agent(&args);
    assert!(output.status.success(), "{output:?}");
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["exit_code"], &line["interrupted"]), (&0.into(), &false.into()));
    line["trace"].as_str().unwrap().to_owned()
}

#[test]
fn sections_are_chosen_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let print = |args: &[&str]| {
        let output = agent(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let json = |args: &[&str]| -> serde_json::Value { serde_json::from_str(&print(args)).unwrap() };
    let keys = |value: &serde_json::Value| value.as_object().unwrap().len();

    // In the order of the command line, each once.
    let (gaps, locks) = (print(&["gaps", &trace]), print(&["locks", &trace]));
    let both = print(&["report", &trace, "gaps", "locks", "gaps"]);
    let (head, section) = locks.split_once("\n\n").unwrap();
    assert_eq!(both, format!("{gaps}\n{section}"));
    let (whole, findings) = (print(&["report", &trace]), print(&["findings", &trace]));
    assert!(both.starts_with(head) && whole.starts_with(&findings));
    // As text, nothing is said of what was not recorded unless it is named.
    assert!(!whole.contains("LOCKS") && section.starts_with("LOCKS"), "{whole}");

    let both = json(&["report", &trace, "gaps", "locks", "--json"]);
    let all = json(&["report", &trace, "--json"]);
    assert_eq!(both["schema"], "ft-report/1");
    let (sections, whole) = (&both["sections"], &all["sections"]);
    assert_eq!((keys(sections), &sections["gaps"]), (2, &whole["gaps"]));
    let short = json(&["locks", &trace, "--json"]);
    assert_eq!((keys(&short["sections"]), &short["trace"]), (1, &both["trace"]));
    assert_eq!(short["sections"]["locks"], sections["locks"]);
}

#[test]
fn a_section_that_does_not_exist_is_told_from_those_that_do() {
    let output = agent(&["report", "trace", "locks", "nonsense"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with(
            "ft-agent: there is no section 'nonsense'; the sections of a report are findings, summary, locks, "
        ),
        "{stderr}"
    );
    // As of every command line that cannot be.
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1));
    assert_eq!(agent(&["record", "-k", "nonsense", "--", "true"]).status.code(), Some(2));
    assert_eq!(agent(&["nonsense"]).status.code(), Some(2));
    assert_eq!(agent(&["report", "/none"]).status.code(), Some(1));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    for args in [&["report", &trace][..], &["report", &trace, "--json"], &["events", &trace]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut agent = Command::new(ft_tests::agent());
        let output = agent.args(args).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && stderr.is_empty(), "{args:?}: {stderr}");
    }
    // A full disk is one.
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut agent = Command::new(ft_tests::agent());
    let output = agent.args(["report", &trace, "--json"]).stdout(full).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("cannot write the output") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn events_of_programs_that_have_none_are_said_to_be_none() {
    let dir = tempfile::tempdir().unwrap();
    let trace = trace(dir.path());
    let said = |args: &[&str]| String::from_utf8(agent(args).stderr).unwrap();
    let hint = "note: no program has recorded an event; -k lists what the kernel did\n";
    assert_eq!([said(&["events", &trace]), said(&["events", &trace, "-k"])], [hint, ""]);
}

#[test]
fn a_study_has_the_options_of_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("notes");
    fs::write(&notes, "mine").unwrap();
    fails(&["study", "-d", "soon", "--", "true"], "write for example 500ms");
    fails(&["study", "-d", "1s", "trace"], "--help");
    fails(&["study", "-o", text(dir.path()), "--", "true"], "is not empty; choose another");
}

#[test]
fn doctor_gives_a_verdict_per_check() {
    let output = agent(&["doctor", "--json"]);
    let checks: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed = checks.as_array().unwrap().iter().any(|c| c["status"] == "fail");
    assert_eq!(output.status.success(), !failed);
}

#[test]
fn shells_complete_what_there_is() {
    for shell in ["bash", "zsh", "fish"] {
        let output = agent(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && script.contains("flight-recorder"), "{script}");
        assert!(script.contains("preempted"), "the sections of a report");
        // Not every shell is everywhere.
        let check = Command::new(shell).args(["-n", "/dev/stdin"]).stdin(Stdio::piped()).spawn();
        if let Ok(mut check) = check {
            std::io::Write::write_all(&mut check.stdin.take().unwrap(), script.as_bytes()).unwrap();
            assert!(check.wait().unwrap().success(), "{shell}");
        }
    }
    fails(&["completions", "csh"], "possible values: bash");
}

#[test]
fn a_trigger_that_could_never_fire_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let record = ["record", "-k", "none", "--flight-recorder", "1s", "-o", text(&out)];
    let when = ["--when", "dispatch > 1ms", "--", "true"];
    fails(&[&record[..], &when].concat(), "add sched to -k");
    assert!(!out.exists());
}

#[test]
fn what_is_counted_over_a_recording_has_no_window_and_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let record = ["record", "-k", "default,section", "--flight-recorder", "1s", "-o", text(&out)];
    fails(&[&record[..], &["--", "true"]].concat(), "leave it out of -k");
    assert!(!out.exists());
}
