//! The page of a report, in a browser: what it shows, how it answers, and that it needs nothing and nobody.
//!
//! The tests themselves are scripts for Node (`*.test.js`), which drive Debian's Chromium; this program makes the pages
//! that they look at. `cargo xtask test page` sets up what they need.

use ft_tests::built;
use ft_tests::gate;
use ft_tests::oracle;
#[path = "../chains/stage.rs"]
#[allow(dead_code, reason = "asks no report")]
mod recorded;
#[path = "../stored/stage.rs"]
#[allow(dead_code, reason = "needs no goldens")]
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use ft_trace::store::Trace;
use ft_trace::tables::{LoadRun, UserEvent};
use stage::Stage;
use tempfile::TempDir;

/// Where the scripts are.
fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("page")
}

/// Node, where it and all that the scripts need are there.
fn node_or_skip() -> Option<Command> {
    let Some(node) = std::env::var_os("FT_NODE") else {
        gate::skipped("FT_NODE is not set; run `cargo xtask test page`");
        return None;
    };
    gate::ran();
    let mut node = Command::new(node);
    node.current_dir(home());
    Some(node)
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let [stdout, stderr] =
        [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout
}

/// A command of the agent.
fn agent(command: &str) -> Command {
    let mut agent = Command::new(ft_tests::agent());
    agent.arg(command).stdin(Stdio::null());
    agent
}

/// A recording with its page.
fn page_of(recording: &str) -> (Stage, PathBuf) {
    let stage = Stage::unpack(recording);
    stage.agent(&["convert", "trace"]);
    stage.agent(&["report", "trace", "--html", "page.html"]);
    let page = stage.trace().with_file_name("page.html");
    (stage, page)
}

/// One browser at a time: each takes as many CPUs as it finds.
static TURN: Mutex<()> = Mutex::new(());

/// The tests whose outcome depends on the recording; the others show what a page can do, and one page shows that.
const OF_THE_DATA: [&str; 9] = [
    "the page opens from a file",
    "no two rows of a grouping",
    "a figure is of what is chosen",
    "tables have the sums",
    "the ruler over the whole trace",
    "a link shows the hold or the wait",
    "links of the tables lead",
    "each kind of event is counted",
    "something is drawn",
];

/// Shows the page of a recording to the browser: all tests, or those of [`OF_THE_DATA`].
fn look_at(recording: &str, is_all: bool) {
    let Some(mut node) = node_or_skip() else { return };
    let (stage, page) = page_of(recording);
    if let Some(tables) = oracle::python("page/tables.py", &[&stage.trace()]) {
        assert!(tables.status.success(), "{}", String::from_utf8_lossy(&tables.stderr));
        node.env("FT_TABLES", String::from_utf8(tables.stdout).expect("UTF-8"));
    }
    if let Some(tables) = oracle::python("page/timeline.py", &[&stage.trace()]) {
        assert!(tables.status.success(), "{}", String::from_utf8_lossy(&tables.stderr));
        node.env("FT_TIMELINE", String::from_utf8(tables.stdout).expect("UTF-8"));
    }
    node.args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
        .env("FT_PAGE", page)
        .env("FT_TRACE", stage.trace());
    let mut tests: Vec<PathBuf> = fs::read_dir(home())
        .expect("the scripts")
        .map(|entry| entry.expect("a script").path())
        .filter(|path| path.to_string_lossy().ends_with(".test.js"))
        .collect();
    tests.sort();
    if !is_all {
        node.args(OF_THE_DATA.map(|name| format!("--test-name-pattern={name}")));
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let said = succeeds(node.args(tests));
    // Four of them compare with tables that a Python reads.
    let wanted = OF_THE_DATA.len() - if std::env::var_os("FT_PYTHON").is_some() { 0 } else { 4 };
    let passed = said.lines().find_map(|line| line.split_once("pass ")?.1.trim().parse().ok());
    assert!(passed.is_some_and(|n: usize| n >= wanted), "too few tests ran: {said}");
    for line in said.lines().filter_map(|line| line.trim().strip_prefix("measured ")) {
        gate::measured(&format!("page of {recording}: {line}"));
    }
}

/// Runs one script on a page.
fn run(node: &mut Command, script: &str, page: &Path) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    succeeds(node.args(["--test", "--test-reporter=spec", script]).env("FT_PAGE", page));
}

/// Runs one script on the page of the scenarios.
fn run_on_scenarios(script: &str) {
    let Some(mut node) = node_or_skip() else { return };
    let (_stage, page) = page_of("scenarios");
    run(&mut node, script, &page);
}

#[test]
fn scenarios_in_a_browser() {
    look_at("scenarios", true);
}

#[test]
fn pthread_locks_in_a_browser() {
    look_at("preload", false);
}

#[test]
fn losses_in_a_browser() {
    look_at("system", false);
}

#[test]
fn a_recording_without_an_end_in_a_browser() {
    look_at("killed", false);
}

#[test]
fn every_figure_of_the_papers_is_in_a_page_with_its_data() {
    run_on_scenarios("figures.js");
}

#[test]
fn every_row_of_the_longest_leads_to_its_place_in_the_timeline() {
    run_on_scenarios("links.js");
}

#[test]
fn what_the_tables_have_is_drawn_where_and_when_they_say() {
    let Some(mut node) = node_or_skip() else { return };
    let (stage, page) = page_of("system");
    let Some(tables) = oracle::python("page/drawing.py", &[&stage.trace()]) else { return };
    assert!(tables.status.success(), "{}", String::from_utf8_lossy(&tables.stderr));
    let drawn = page.with_file_name("drawn.json");
    fs::write(&drawn, tables.stdout).expect("written");
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    node.args(["--test", "--test-reporter=spec", "drawing.js"]);
    succeeds(node.env("FT_PAGE", page).env("FT_DRAWN", drawn));
}

/// Events of one thread of which a page has not every detail.
const MANY: usize = 450_000;

#[test]
fn an_interval_that_is_asked_for_is_there_in_full_and_what_is_not_is_said() {
    let Some(mut node) = node_or_skip() else { return };
    let folder = TempDir::new().expect("a folder");
    let [dir, page, asked] =
        ["trace", "page.html", "asked.json"].map(|name| folder.path().join(name));
    let many = MANY.to_string();
    let mut record = agent("record");
    record.args(["-k", "none", "--ring-size", "64M", "-o"]).arg(&dir).arg("--");
    record.arg(built::example("ft-tests", "subject"));
    succeeds(record.args(["flood", &many]));
    let trace = Trace::open(&dir).expect("a trace");
    let events = trace.rows::<UserEvent>().map(|event| event.expect("an event").ts.0);
    let times: Vec<i64> = events.collect();
    assert_eq!(times.len(), MANY, "none was lost");
    // From one to another, where the thread was preempted least: there are events in each part of the time between.
    let some = MANY / 100;
    let took = |first: &usize| times[first + some] - times[*first];
    let first = (some..MANY - some).step_by(some).min_by_key(took).expect("one");
    let last = first + some;
    let start = trace.meta().start.start_ns;
    let [from, to] = [times[first], times[last]].map(|at| format!("{}ns", at - start));
    let mut report = agent("report");
    report.arg(&dir).args(["--from", &from, "--to", &to, "--html"]);
    succeeds(report.arg(&page));
    // Two events can have one time.
    let (from, to) = (times[first], times[last]);
    let within: Vec<i64> = times.iter().copied().filter(|ts| (from..to).contains(ts)).collect();
    let told = serde_json::json!({"from": from, "to": to, "times": within});
    fs::write(&asked, told.to_string()).expect("written");
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    node.args(["--test", "--test-reporter=spec", "interval.js"]);
    succeeds(node.env("FT_PAGE", page).env("FT_ASKED", asked));
}

/// Of workers that share a CPU: each sees in its gaps when it did not run.
#[test]
fn without_the_kernel_runs_are_drawn_as_their_table_has_them() {
    let Some(mut node) = node_or_skip() else { return };
    let folder = TempDir::new().expect("a folder");
    let [dir, page, told] =
        ["trace", "page.html", "runs.json"].map(|name| folder.path().join(name));
    let load = built::build(&["--package", "ft-load"]).join("ft-load");
    let mut record = agent("record");
    record.args(["-k", "none", "-o"]).arg(&dir).arg("--html").arg(&page).arg("--").arg(load);
    succeeds(record.args(["hourglass", "-n", "3", "-d", "2s", "--cpu", "0", "--summary"]));
    let trace = Trace::open(&dir).expect("a trace");
    let runs = trace.rows::<LoadRun>().map(|run| run.expect("a run"));
    let runs: Vec<_> = runs.map(|r| (r.pid.0, r.tid.0, r.ts.0, r.dur, r.cpu.0)).collect();
    assert!(runs.len() > 3, "{runs:?}");
    fs::write(&told, serde_json::to_string(&runs).expect("JSON")).expect("written");
    run(node.env("FT_RUNS", told), "runs.js", &page);
}

/// Of the traces of two hosts in a catalogue, with a page for each.
#[test]
fn a_cell_of_a_fleet_leads_to_the_interval_in_the_page_of_its_trace() {
    let Some(mut node) = node_or_skip() else { return };
    let stage = Stage::unpack("scenarios");
    stage::unpack("preload", &stage.trace().with_file_name("other"));
    for trace in ["trace", "other"] {
        stage.agent(&["convert", trace, "--to", "fleet"]);
    }
    stage.agent(&["analyze", "fleet"]);
    stage.agent(&["fleet", "fleet", "--html", "fleet.html", "--pages", "2"]);
    let page = stage.trace().with_file_name("fleet.html");
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    succeeds(node.args(["--test", "--test-reporter=spec", "fleet.js"]).env("FT_PAGE", page));
}

/// Of a program that waits for locks and is preempted while it holds one.
#[test]
fn flame_graphs_in_a_browser() {
    let Some(mut node) = node_or_skip() else { return };
    let Some(stage) = recorded::Stage::enter() else { return };
    recorded::build_preload();
    let options = ["--preload", "-k", "default,stack,profile", "--stack-min", "500us"];
    stage.record("locks", &options);
    let page = stage.trace().with_extension("html");
    recorded::succeed(stage.agent("report").arg(stage.trace()).arg("--html").arg(&page));
    run(&mut node, "flames.js", &page);
}

#[test]
fn the_scripts_are_typed() {
    let Some(mut node) = node_or_skip() else { return };
    succeeds(node.args(["node_modules/typescript/bin/tsc", "--project", "."]));
}

/// The sections of a page, by their names.
fn sections(page: &Path) -> Vec<String> {
    let page = fs::read_to_string(page).expect("a page");
    let name = |tag: &str| tag.split('>').next().expect("a tag").to_owned();
    page.split("<section id=").skip(1).map(name).collect()
}

#[test]
fn a_page_of_one_request_has_its_path_and_its_time() {
    let (stage, page) = page_of("scenarios");
    stage.agent(&["report", "trace", "requests", "--of", "0", "--html", "page.html"]);
    let found = sections(&page);
    assert!(
        ["request", "timeline"].iter().all(|name| found.iter().any(|s| s == name)),
        "{found:?}"
    );
    assert!(found.iter().all(|name| name != "locks"), "{found:?}");
}

#[test]
fn a_page_is_of_the_sections_that_are_asked_for() {
    let (stage, page) = page_of("preload");
    let all = sections(&page);
    assert_eq!((&*all[0], all.len() > 9), ("findings", true), "{all:?}");
    stage.agent(&["report", "trace", "waits", "locks", "--html", "page.html"]);
    let named: Vec<_> =
        sections(&page).into_iter().filter(|name| name != "timeline" && name != "trace").collect();
    assert_eq!(named, ["waits", "locks"]);
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let (stage, page) = page_of("preload");
    let before = fs::read(&page).expect("a page");
    for wrong in ["/dev/null", "no/such/directory/page.html", "trace"] {
        let output = Command::new(ft_tests::agent())
            .args(["report", "trace", "--html", wrong])
            .current_dir(stage.trace().parent().expect("a folder"))
            .output()
            .expect("the agent starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("name a file in a directory that you may write to"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert_eq!(fs::read(&page).expect("a page"), before);
}
