//! Known shares of a program's time, with a lock held and without.

use std::process::Command;

use serde_json::Value;

use crate::gate;
use crate::oracle::python;
use crate::stage::{Stage, build_preload, succeed};

/// Samples a second.
const RATE: f64 = 997.0;

/// What lies in the interval for a share of samples with a probability of 99.99 %: a test must fail less often than an
/// interval of 99 % does. Wilson's, as in the report, which has another quantile. Samples that were not taken, since the host had
/// the CPU, may belong to any function: its time goes on.
fn is_likely(samples: f64, of: f64, share: f64, missing: f64) -> bool {
    const Z: f64 = 3.8906;
    // By its definition: the distance of the sample from the truth, in standard errors of the truth.
    (samples / of - share).abs() <= Z * (share * (1.0 - share) / of).sqrt() + missing / of
}

#[test]
fn shares_of_samples_are_those_of_the_program() {
    let Some(stage) = Stage::enter() else { return };
    build_preload();
    let truth =
        stage.record("shares", &["--preload", "-k", "default,profile", "--sample-rate", "997"]);
    let truth = |name: &str| truth[name].as_f64().expect("a number");
    let values = stage.report("profile");
    let rows = |table: &str| values[table].as_array().expect("rows").clone();
    let samples = |row: &Value| row["samples"].as_f64().expect("a number");
    let find = |table: &str, lock: Option<&str>, name: &str| {
        let is = |row: &&Value| match lock {
            Some(lock) => row["name"] == lock && row["function"] == name,
            None => row["name"] == name,
        };
        rows(table).iter().find(is).cloned().unwrap_or_else(|| panic!("{table} {name}: {values}"))
    };
    let all = values["samples"].as_f64().expect("a number");
    // What the program does besides is part of its time; that of its start is its own, too.
    assert!(all > 2000.0, "{all} samples of three seconds");
    let missing = (truth("all") / 1e9 * RATE - all).max(0.0);
    for (name, spent) in [
        ("alone", truth("alone")),
        ("holding", truth("holding")),
        ("either", truth("either") + truth("either_holding")),
    ] {
        let row = find("functions", None, name);
        let share = spent / truth("all");
        // With what struck it: an interrupt's time is the function's by the program's own clock.
        let n = row["with_callees"].as_f64().expect("a number");
        assert!(
            is_likely(n, all, share, missing),
            "{name}: {n} of {all} samples, {missing} missing, {share} of its time"
        );
        let n = samples(&row);
        let (least, most) = (row["at_least"].as_f64().unwrap(), row["at_most"].as_f64().unwrap());
        assert!(least < n / all && n / all < most && most - least < 0.12, "{row}");
    }
    let held = truth("holding") + truth("either_holding");
    let lock = find("locks", None, "lock");
    let n = samples(&lock);
    assert!(is_likely(n, all, held / truth("all"), missing), "lock held: {n} of {all}, {held}");
    // What it did while it held the lock; and nothing of what it did without it. Here a sample within an interrupt is the
    // interrupt's, of which a busy machine has many: what is judged is how the others are divided.
    let [holding, either] = ["holding", "either"].map(|name| find("held", Some("lock"), name));
    let of = samples(&holding) + samples(&either);
    let share = truth("holding") / held;
    assert!(is_likely(samples(&holding), of, share, missing), "{holding} and {either}, {share}");
    let whole = holding["of"].as_f64().expect("a number");
    assert!(of > 0.5 * whole && of <= whole, "{holding} and {either}");
    // Each grouping has every sample once, and says so when it is asked for alone.
    for (table, by) in [
        ("processes", "process"),
        ("threads", "thread"),
        ("functions", "function"),
        ("lines", "line"),
        ("innermost", "lock-held"),
    ] {
        let sum: f64 = rows(table).iter().map(samples).sum();
        assert!((sum - all).abs() < 0.5, "{table}: {sum} of {all}: {values}");
        let mut agent = stage.agent("report");
        let output = succeed(agent.arg(stage.trace()).args(["profile", "--by", by]));
        let text = String::from_utf8_lossy(&output.stdout);
        let total = text.lines().find(|line| line.trim_start().starts_with("all "));
        assert!(total.is_some_and(|line| line.contains("100 %")), "{text}");
    }
    recounted(&stage);
    let alone = rows("held").into_iter().find(|row| row["function"] == "alone");
    // At the border an event and a sample may be a clock bound apart.
    assert!(alone.is_none_or(|row| samples(&row) <= 2.0));
}

/// By another program, from the raw tables.
fn recounted(stage: &Stage) {
    let report = tempfile::NamedTempFile::new().expect("a file");
    let output = succeed(stage.agent("report").arg(stage.trace()).args(["profile", "--json"]));
    std::fs::write(report.path(), output.stdout).expect("it can be written");
    let Some(output) = python("python/profile.py", &[&stage.trace(), report.path()]) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let counted: Vec<&str> = said.lines().collect();
    assert_eq!(counted.len(), 9, "{said}");
    assert!(counted.iter().all(|line| !line.contains(": 0 rows")), "{said}");
    gate::measured(&format!("samples counted anew: {}", counted.join("; ")));
}

#[test]
fn a_grouping_needs_its_report() {
    let mut agent = Command::new(ft_tests::agent());
    let output =
        agent.args(["report", "/no/trace", "locks", "--by", "line"]).output().expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && error.contains("name the section `profile`"),
        "{error}"
    );
}

#[test]
fn the_judge_of_shares_would_see_a_wrong_one() {
    assert!(is_likely(1500.0, 3000.0, 0.5, 0.0));
    assert!(!is_likely(1650.0, 3000.0, 0.5, 0.0));
    assert!(!is_likely(1350.0, 3000.0, 0.5, 0.0));
    assert!(is_likely(1350.0, 3000.0, 0.5, 50.0));
}
