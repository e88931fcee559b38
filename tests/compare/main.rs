//! `ft-agent compare`: its error rate and its power on recordings of a program whose slowdown is known, and its figures
//! beside those of a second implementation with SciPy (`python/compare.py`).

use ft_tests::built;
use ft_tests::gate;
#[allow(dead_code, reason = "each test binary uses its own part")]
use ft_tests::oracle;
mod rates;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ft_report::analyze;
use ft_report::compare::permute::{self, Chance, Row, Sides};
use ft_report::compare::{Run, slices};
use ft_trace::store::Trace;
use serde_json::{Value, json};

fn agent() -> Command {
    let mut command = Command::new(ft_tests::agent());
    command.stdin(Stdio::null());
    command
}

fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the agent starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

/// Turns of the loop in a hold of `book`, as the program is, and by how much slower versions are.
const TURNS: u64 = 4_000;

/// Records `subject spins` once, without the kernel: no rights are needed.
fn record(dir: &Path, turns: u64) {
    record_with("none", dir, turns);
}

fn record_with(kernel: &str, dir: &Path, turns: u64) {
    static SUBJECT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let subject = SUBJECT.get_or_init(|| built::example("ft-tests", "subject"));
    let mut record = agent();
    record.args(["record", "-k", kernel, "-o"]).arg(dir).arg("--").arg(subject);
    let (status, _, errors) = output(record.args(["spins", &turns.to_string(), "300"]));
    assert_eq!(status, Some(0), "{errors}");
}

fn read(dir: &Path, slices: usize) -> Run {
    let trace = Trace::open(dir).expect("a trace");
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let tally = analyze::ensure(&trace, go_on).expect("analysed");
    Run::read(&trace, &tally, slices).expect("read")
}

/// `ft-agent compare` of these traces; exit status and JSON.
fn compare(a: &[PathBuf], b: &[PathBuf], conditions: &[&str]) -> (Option<i32>, Value) {
    let mut command = agent();
    command.arg("compare").args(a).arg("--against").args(b).arg("--json");
    conditions.iter().for_each(|condition| _ = command.args(["--fail-if", condition]));
    let (status, json, errors) = output(&mut command);
    (status, serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}{errors}")))
}

/// Runs `python/compare.py`; false where there is no SciPy.
fn python_agrees(what: &str, input: &Value) -> bool {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), input.to_string()).expect("written");
    let args = [Path::new(what), file.path()];
    let Some(output) = oracle::python("python/compare.py", &args) else { return false };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    gate::measured(&format!("compared by SciPy, too: {}", said.trim()));
    true
}

#[test]
fn a_slowdown_is_found_and_the_same_program_is_called_different_as_seldom_as_stated() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str, i: usize| dir.path().join(format!("{name}-{i}"));
    // In turns: what happens on the machine meanwhile happens to both.
    for i in 0..8 {
        record(&path("same", i), TURNS);
        // So much that it shows on a machine that has other work, too; less is what `compare-rates` finds.
        record(&path("slow", i), TURNS * 3);
    }
    let set = |name: &str| (0..8).map(|i| path(name, i)).collect::<Vec<_>>();
    let (same, slow) = (set("same"), set("slow"));

    let conditions = ["hold book median > +20%", "hold ledger median > +50%"];
    let (status, found) = compare(&same, &slow, &conditions);
    assert_eq!(status, Some(3), "{found}");
    let values = &found["sections"]["compare"]["values"];
    let verdicts = values["conditions"].as_array().expect("a list").iter();
    let met: Vec<bool> = verdicts.map(|c| c["met"].as_bool().expect("known")).collect();
    assert_eq!(met, [true, false], "{values}");
    let row = |rows: &Value| {
        let is =
            |r: &&Value| r["name"] == "book" && r["quantity"] == "median" && r["class"] == "hold";
        let whole = |r: &&Value| r["place"] == "" && r["thread"] == "";
        rows.as_array().expect("rows").iter().find(|r| is(r) && whole(r)).expect("a row").clone()
    };
    let book = row(&values["rows"]);
    assert_eq!(book["differs"], true, "{book}");
    let change = book["change"].as_f64().expect("known");
    assert!((0.5..8.0).contains(&change), "{book}");

    // Over all ways to call four of the eight recordings A, which are pairs of sets of one program.
    let runs: Vec<Run> = same.iter().map(|dir| read(dir, slices(4, 4))).collect();
    let named = rates::splits(8, 4).filter(|split| rates::names_any(&runs, split)).count();
    assert!(named <= 3, "{named} of 70, more than 5 %");
    gate::measured(&format!(
        "compare: {named} of all 70 pairs of 4 and 4 recordings of one program name any row; three times as long in \
         a lock: {:+.1} % of its median, at least {:+.1} %",
        100.0 * change,
        100.0 * book["at_least"].as_f64().unwrap_or(f64::NAN)
    ));

    // All labelings of four and four, anew from the tables.
    let (status, found) = compare(&same[..4], &slow[..4], &[]);
    assert_eq!(status, Some(0));
    python_agrees("traces", &found);
}

#[test]
fn with_the_kernels_records_every_figure_is_found_again_in_the_tables() {
    if !gate::recordable_or_skip() {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let set =
        |name: &str| (0..4).map(|i| dir.path().join(format!("{name}-{i}"))).collect::<Vec<_>>();
    let (a, b) = (set("a"), set("b"));
    for (a, b) in a.iter().zip(&b) {
        record_with("sched,irq", a, TURNS);
        record_with("sched,irq", b, TURNS);
    }
    let (status, found) = compare(&a, &b, &[]);
    assert_eq!(status, Some(0), "{found}");
    let rows = found["sections"]["compare"]["values"]["rows"].as_array().expect("rows").iter();
    let classes: BTreeSet<&str> = rows.filter_map(|row| row["class"].as_str()).collect();
    for class in ["run", "hold", "dispatch", "scope", "time"] {
        assert!(classes.contains(class), "{class}: {classes:?}");
    }
    python_agrees("traces", &found);
}

#[test]
fn two_traces_are_compared_by_slices_and_directories_of_traces_are_sets() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name);
    for name in ["a/1", "a/2", "b/1", "b/2"] {
        std::fs::create_dir_all(path(name).parent().expect("a folder")).expect("made");
        record(&path(name), TURNS);
    }
    let compared = |a: &str, b: &str, more: &[&str]| {
        output(agent().arg("compare").args([path(a), path(b)]).args(more))
    };
    let (status, text, _) = compared("a/1", "b/1", &["--fail-if", "hold book rate > +100000%"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(status, Some(0), "{text}");
    for expected in
        ["slices of the recordings in time, 12 against 12", "are too few to tell", "not shown"]
    {
        assert!(words.contains(expected), "{expected}: {text}");
    }
    // A set of two a side is cut into as many slices.
    let (status, text, _) = compared("a", "b", &["--fail-if", "hold page median > 5%"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(status, Some(4), "what is not there is not judged: {text}");
    for expected in ["2 recordings", "12 against 12", "not judged: not on both sides"] {
        assert!(words.contains(expected), "{expected}: {text}");
    }
    // The same again, to the letter.
    assert_eq!(compared("a", "b", &["--json"]), compared("a", "b", &["--json"]));
    let page = path("page.html");
    let (status, said, errors) = compared("a", "b", &["--html", page.to_str().expect("text")]);
    assert_eq!(status, Some(0), "{errors}");
    assert!(said.contains("page.html"), "{said}");
    assert!(
        std::fs::read_to_string(&page).expect("a page").contains("what differs between A and B")
    );
}

#[test]
fn what_cannot_be_compared_gets_one_sentence() {
    let dir = tempfile::tempdir().expect("a folder");
    let here = dir.path().to_str().expect("text");
    let missing = format!("{here}/missing");
    let fails = |args: &[&str], status: i32, expected: &str| {
        let (code, _, errors) = output(agent().arg("compare").args(args));
        assert_eq!(code, Some(status), "{args:?}: {errors}");
        assert!(errors.contains(expected) && !errors.contains("panicked"), "{args:?}: {errors}");
        assert!(status == 2 || errors.lines().count() == 1, "{args:?}: {errors}");
    };
    fails(&[], 2, "--help");
    fails(&[here], 2, "write `ft-agent compare A B`");
    fails(&[here, here, here], 2, "write `ft-agent compare A B`");
    fails(&[here, here], 2, "is given twice");
    fails(&[here, "--against", here], 2, "is given twice");
    fails(&[here, &missing], 1, here);
    fails(&[&missing, here], 1, &missing);
    for condition in
        ["", "hold book p99 +10%", "hold book p98 > 10%", "hold book p99 > 10", "held x p99 > 1%"]
    {
        fails(
            &[here, &missing, "--fail-if", condition],
            2,
            "write for example 'hold book p99 > +10%'",
        );
    }
}

#[test]
fn scipy_finds_the_same_differences_of_made_up_rows() {
    let mut state = 88172645463325252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut case = |a: usize, b: usize, rows: usize, sides: Sides| {
        let mut row = |number: usize| {
            let mut value = |unit: usize| match number % 5 {
                0 => random() + if unit >= a { 0.5 } else { 0.0 },
                1 => (20.0 * random()).round(),
                2 => random().powi(-2),
                3 if random() < 0.2 => f64::NAN,
                _ => 1.0 + 1e-3 * random(),
            };
            Row {
                values: (0..a + b).map(&mut value).collect(),
                resolution: [0.0, 1e-3][number % 2],
            }
        };
        let rows: Vec<Row> = (0..rows).map(&mut row).collect();
        let chance = Chance::of(&rows, a, sides);
        let rows: Vec<Value> = rows
            .iter()
            .map(|row| {
                let d = permute::difference(row, a);
                json!({
                    "values": row.values, "resolution": row.resolution,
                    "by": d.by, "error": d.error, "p": chance.p(d.t()),
                })
            })
            .collect();
        let (both, labelings) = (sides == Sides::Both, chance.all.then_some(chance.labelings()));
        json!({"a": a, "both": both, "rows": rows, "labelings": labelings, "critical": chance.critical()})
    };
    let cases = json!([
        case(4, 4, 1, Sides::Both),
        case(3, 5, 1, Sides::Both),
        case(4, 4, 15, Sides::Both),
        case(5, 3, 15, Sides::Larger),
        case(1, 19, 10, Sides::Both),
        case(6, 5, 10, Sides::Both),
        // A fifth is left out at the ends of one side, and of both, which have too many labelings for a look at all.
        case(8, 4, 5, Sides::Both),
        case(12, 9, 20, Sides::Both),
    ]);
    python_agrees("rows", &cases);
}
