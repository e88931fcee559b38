//! What a figure leaves out is said beside it.

use super::super::preempted::PreemptedReport;
use super::*;

/// A report in lines without an end.
fn line(section: &crate::document::Section) -> String {
    format!("{section:1000}")
}

#[test]
fn holders_of_semaphores_are_none_of_those_that_were_held_up() {
    let report =
        |semaphores| PreemptedReport { kernel: true, semaphores, ..PreemptedReport::default() };
    let said =
        "3 holds of semaphores, whose holders could have run and did not, are not among them";
    assert!(line(&report(3).section()).contains(said), "{}", line(&report(3).section()));
    assert!(!line(&report(0).section()).contains("semaphore"));
    let (rows, tally) = run(true, TIMELINE);
    let mut answers = answers_of(rows, &tally);
    assert!(!line(&answers.section()).contains("semaphore"));
    answers.preempted.semaphores = 1;
    let text = line(&answers.section());
    assert!(text.contains("nobody waited for it; 1 hold of semaphores not among them"), "{text}");
}

#[test]
fn waits_for_semaphores_are_told_where_there_are_no_others() {
    let (rows, mut tally) = run(true, "0 0 .>a S\n10 0 a>. X");
    tally.incomplete.semaphore_waits = 372;
    let text = line(&answers_of(rows, &tally).waits.section());
    let said = "372 waits for semaphores, which nobody in particular holds, are not among them";
    assert!(
        text.contains("No acquisition of a traced lock found it taken.") && text.contains(said),
        "{text}"
    );
}

#[test]
fn a_wait_that_nobody_can_be_blamed_for_says_so() {
    let waits = |release: i64| {
        let timeline = format!(
            "0 0 .>a S
             0 1 .>b S
             10 acquire a L
             20 wait b L
             {release} release a L
             120 acquire b L
             130 release b L"
        );
        let (rows, tally) = run(true, &timeline);
        line(&answers_of(rows, &tally).waits.section())
    };
    let free = waits(30);
    assert!(free.contains("(nobody): most of the time, nobody is known to have held"), "{free}");
    let row = free.lines().find(|line| line.starts_with("  b  ") && line.contains("(nobody)"));
    assert!(row.is_some_and(|row| row.contains("100 ns")), "{free}");
    assert!(!waits(80).contains("(nobody)"), "{}", waits(80));
}

/// The same trace has another number of each.
#[test]
fn what_ifs_count_holds_and_preemptions_times() {
    let document = document(
        true,
        "0 0 .>a S
         10 acquire a K
         20 acquire a L
         30 0 a>X R
         40 0 X>a S
         50 0 a>X R
         60 0 X>a S
         70 0 a>X R
         80 0 X>a S
         90 release a L
         100 release a K",
    );
    let [preempted, what_if] = [2, 3].map(|i: usize| line(&document.sections[i]));
    assert!(preempted.contains("3 intervals"), "{preempted}");
    let said = "2 holds in which the holder could have run and did not. Each counts once, however often its holder lost the \
                CPU, and so does each of nested holds; `ft-agent preempted` counts the times instead, each once.";
    assert!(what_if.contains(said), "{what_if}");
}

/// Where the kernel was not recorded, no part of any time is known; none is 0.
#[test]
fn parts_are_not_known_without_the_kernel() {
    fn parts<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
        match value {
            Value::Array(all) => all.iter().for_each(|value| parts(value, found)),
            Value::Object(all) => all.iter().for_each(|(name, value)| match name.as_str() {
                "parts" | "preempted_holds" | "asleep_ns" => found.push(value),
                _ => parts(value, found),
            }),
            _ => {}
        }
    }
    for (kernel, known) in [(true, true), (false, false)] {
        let document = serde_json::to_value(document(kernel, CONTENDED)).expect("JSON");
        let sections = &document["sections"];
        for section in ["locks", "waits"] {
            let mut found = Vec::new();
            parts(&sections[section]["values"], &mut found);
            let nulls = found.iter().filter(|part| part.is_null()).count();
            assert!(
                if known { nulls < found.len() } else { nulls == found.len() && nulls > 0 },
                "{section}: {found:?}"
            );
        }
    }
    let gaps =
        serde_json::to_value(document(false, "0 0 .>a S\n1000 poll a 0\n2000 gap a 0 1500 1900"))
            .expect("JSON");
    let poller = &gaps["sections"]["gaps"]["values"]["pollers"][0];
    assert!(poller["gaps"] == 1 && poller["parts"].is_null(), "{poller}");
}
