//! A trace of which a part is not what was written: every command refuses it and names the part, or goes on without it where that
//! is asked for, and says so.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Output};

use super::stage::Stage;

/// What happens to a part, and what is said of it.
type Harm = (fn(&Path, &Path), &'static str);

const HARMS: [Harm; 5] = [
    (|part, _| fs::remove_file(part).unwrap(), "part-00000.parquet is missing ("),
    (
        |part, _| {
            let bytes = fs::metadata(part).unwrap().len();
            fs::File::options().write(true).open(part).unwrap().set_len(bytes / 2).unwrap();
        },
        "part-00000.parquet has ",
    ),
    (
        |part, _| assert!(fs::copy(part, part.with_file_name("part-00777.parquet")).is_ok()),
        "part-00777.parquet was not written with the others of its table",
    ),
    // Of another recording.
    (|part, other| assert!(fs::copy(other, part).is_ok()), "part-00000.parquet has "),
    // The same rows with another footer.
    (
        |part, _| {
            let bytes = fs::read(part).unwrap();
            let key = b"feather_trace.loss";
            let at = bytes.windows(key.len()).rposition(|found| found == key).unwrap();
            let file = fs::File::options().write(true).open(part).unwrap();
            file.write_all_at(b"t", (at + key.len() - 1) as u64).unwrap();
        },
        "part-00000.parquet is another file than was written",
    ),
];

fn made(recording: &str) -> Stage {
    let stage = Stage::unpack(recording);
    stage.agent(&["convert", "trace"]);
    stage.agent(&["analyze", "trace"]);
    stage
}

fn agent(folder: &Path, args: &[&str]) -> Output {
    Command::new(ft_tests::agent()).args(args).current_dir(folder).output().unwrap()
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Fails, naming the part and what helps, in one line.
fn refused(folder: &Path, args: &[&str], wrong: &str, remedy: &str) {
    let output = agent(folder, args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{args:?} goes on: {said}");
    assert!(output.stdout.is_empty(), "{args:?} prints something");
    assert!(said.contains(wrong) && said.contains(remedy), "{args:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
}

#[test]
fn a_trace_is_read_whole_or_refused() {
    let (stage, other) = (made("scenarios"), made("preload"));
    for (table, is_recorded) in [("user_events", true), ("critical_sections", false)] {
        let part = format!("{table}/part-00000.parquet");
        for (harm, what) in HARMS {
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path();
            copy(&stage.trace(), &at.join("trace"));
            harm(&at.join("trace").join(&part), &other.trace().join(&part));
            let wrong = format!("the trace trace is not whole: {table}/{what}");
            let remedy = match is_recorded {
                true => "; bring the trace again from where it was recorded, or ",
                false => "; run `ft-agent analyze trace`, which makes its results anew, or ",
            };
            copy(&stage.trace(), &at.join("whole"));
            let commands: [&[&str]; 8] = [
                &["report", "trace"],
                &["findings", "trace"],
                &["locks", "trace", "--json"],
                &["events", "trace"],
                &["export", "trace", "-f", "perfetto", "-o", "out"],
                &["compare", "whole", "trace"],
                &["study", "trace"],
                &["analyze", "trace"],
            ];
            // All commands open a trace in one way, so one harm will do for most of them.
            let some = if what.contains("missing") { &commands[..] } else { &commands[..1] };
            for command in some.iter().filter(|c| is_recorded || c[0] != "analyze") {
                refused(at, command, &wrong, remedy);
            }
            refused(at, &["convert", "trace", "--to", "fleet"], &wrong, remedy);
            let rest: [&[&str]; 3] = [
                &["report", "trace", "--incomplete"],
                &["events", "trace", "--incomplete"],
                &["findings", "trace", "--incomplete"],
            ];
            for command in rest {
                let output = agent(at, command);
                let said = String::from_utf8(output.stderr).unwrap();
                assert!(output.status.success(), "{command:?}: {said}");
                assert!(
                    said.contains(&format!("warning: this trace is not whole: {table}/{what}")),
                    "{said}"
                );
            }
            if !is_recorded {
                assert!(agent(at, &["analyze", "trace"]).status.success(), "the remedy");
                assert!(agent(at, &["report", "trace"]).status.success(), "helps");
            }
        }
    }
}

/// A trace of a catalogue whose results lost a part is analysed again, and so is one of which a table was not asked for before.
#[test]
fn a_catalogue_makes_results_whole_again() {
    let stage = made("scenarios");
    let at = stage.trace().parent().unwrap().to_owned();
    stage.agent(&["convert", "trace", "--to", "fleet"]);
    let json = stage.agent(&["catalogue", "fleet", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let trace = format!("fleet/{}", json["traces"][0]["path"].as_str().unwrap());
    let outcome = |args: &[&str]| {
        let text = stage.agent(&[&["analyze", "fleet"], args].concat());
        let words = ["was analysed already", "analysed, "];
        words.into_iter().find(|word| text.contains(word)).unwrap_or_else(|| panic!("{text}"))
    };
    assert_eq!(outcome(&[]), "was analysed already");
    for (harm, _) in HARMS.into_iter().filter(|(_, what)| !what.contains("another")) {
        harm(
            &at.join(&trace).join("critical_sections/part-00000.parquet"),
            &at.join(&trace).join("gaps/part-00000.parquet"),
        );
        assert!(!agent(&at, &["report", &trace]).status.success());
        // Of a table alone, the broken one goes, and is not taken for a smaller one.
        assert_eq!(outcome(&["--only", "gaps"]), "was analysed already");
        assert_eq!(outcome(&[]), "analysed, ");
        assert_eq!(outcome(&[]), "was analysed already");
        assert!(agent(&at, &["report", &trace]).status.success());
    }
    fs::remove_file(at.join(&trace).join("critical_sections/part-00000.parquet")).unwrap();
    fs::remove_dir_all(at.join(&trace).join("gaps")).unwrap();
    assert_eq!(outcome(&["--only", "gaps"]), "analysed, ");
    assert!(agent(&at, &["events", &trace]).status.success(), "what is there is whole");
    assert!(!at.join(&trace).join("critical_sections/part-00000.parquet").exists());
}
