//! Stored recordings, converted and analysed again: rows and figures must be those of before.
//!
//! What is compared, how a change is accepted and how a new name is declared: `README.md` beside this file.

mod golden;
mod narrow;
mod pages;
mod rename;
mod stage;
mod tables;
mod whole;

use ft_tests::gate;
use ft_tests::oracle as recomputed;

use golden::Golden;
use stage::Stage;

/// Everything that the agent makes of one recording.
fn check(recording: &str) {
    let stage = Stage::unpack(recording);
    let golden = Golden::of(recording);

    golden.text("convert.txt", &stage.agent(&["convert", "trace"]));
    golden.text("analyze.txt", &stage.agent(&["analyze", "trace"]));
    golden.json("meta.json", &stage.json_without_parts("meta.json"));
    golden.json("analysis.json", &stage.json_without_parts("analysis.json"));
    golden.tables("tables.txt", &tables::of(&stage.trace()));

    let mut reports = Vec::new();
    for report in
        ["locks", "waits", "preempted", "what-if", "dispatch", "gaps", "agreement", "time", "study"]
    {
        let json = stage.agent(&[report, "trace", "--json"]);
        golden.json(&format!("{report}.json"), &json);
        golden.text(&format!("{report}.txt"), &stage.agent(&[report, "trace"]));
        reports.push((report, json));
    }
    golden.json("scopes.json", &stage.agent(&["report", "trace", "scopes", "--json"]));
    golden.text("scopes.txt", &stage.agent(&["report", "trace", "scopes"]));
    golden.json("requests.json", &stage.agent(&["report", "trace", "requests", "--json"]));
    golden.text("requests.txt", &stage.agent(&["report", "trace", "requests"]));
    // The report of all is what the single ones are.
    let all: serde_json::Value =
        serde_json::from_str(&stage.agent(&["report", "trace", "--json"])).expect("JSON");
    for (report, single) in reports.iter().filter(|(report, _)| *report != "study") {
        let single: serde_json::Value = serde_json::from_str(single).expect("JSON");
        assert_eq!(single["trace"], all["trace"], "{recording}: `{report}`");
        let (single, whole) = (&single["sections"][report], &all["sections"][report]);
        assert_eq!(single, whole, "{recording}: `{report}` and its section of `report`");
    }

    golden.json("counts.json", &stage.agent(&["events", "trace", "-k", "--list-events", "--json"]));
    golden.json("active.json", &stage.agent(&["events", "trace", "--active-time", "--json"]));
    golden.listing("events.txt", &stage.agent(&["events", "trace", "-k"]));
    golden.listing("events.json", &stage.agent(&["events", "trace", "-k", "--json"]));
    golden.compare();
    if let Some(found) =
        recomputed::python("stored/figures.py", &[&stage.trace(), &stage::golden(recording)])
    {
        let text = String::from_utf8_lossy(&found.stdout);
        assert!(found.status.success(), "{text}{}", String::from_utf8_lossy(&found.stderr));
        gate::measured(&format!("recomputed of the reports of {recording}: {}", text.trim()));
    }
    recomputed::agrees(&format!("the stored recording {recording}"), &stage.trace());
}

#[test]
fn scenarios_with_all_kernel_groups() {
    check("scenarios");
}

#[test]
fn pthread_locks_of_an_unmodified_program() {
    check("preload");
}

#[test]
fn the_whole_system_with_losses() {
    check("system");
}

#[test]
fn a_recording_whose_agent_was_killed() {
    check("killed");
}

/// What no recording has a value of cannot be seen to change.
#[test]
fn all_columns_but_those_that_are_named_have_values() {
    let mut filled = std::collections::BTreeMap::new();
    for recording in stage::recordings() {
        let stage = Stage::unpack(&recording);
        stage.agent(&["convert", "trace"]);
        stage.agent(&["analyze", "trace"]);
        for (column, values) in tables::of(&stage.trace()).different() {
            let most = filled.entry(column).or_insert(0);
            *most = values.max(*most);
        }
    }
    let constant = filled.iter().filter(|(_, values)| **values < 2);
    let lines: Vec<String> = constant.map(|(column, n)| format!("{column} {n}\n")).collect();
    let golden = Golden::of("");
    golden.text("constant.txt", &lines.concat());
    golden.compare();
}
