//! Every experiment in its short form, on the running kernel: whatever it measures, its files and its rows belong
//! together. Nothing is said about how a figure should come out.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use ft_papers::experiment::named;
use ft_papers::{EXPERIMENTS, Experiment, Finding, Lab, page};

/// Of the papers' times; no run is shorter than a fifth of a second, nor repeated less than three times.
const SHORT: f64 = 0.001;

/// Runs an experiment, and checks what holds for all. `None`, reported as skipped, where it cannot run here.
fn short(id: &str, dir: &Path) -> Option<Finding> {
    let experiment = named(&[id.to_owned()]).unwrap()[0];
    if let Some(reason) = refused(experiment) {
        report(&format!("skipped {id}: {reason}"));
        return None;
    }
    report(&format!("ran {id}"));
    let lab = Lab::new(SHORT, &dir.join("results")).unwrap();
    let finding = (experiment.run)(&lab).unwrap_or_else(|error| panic!("{id}: {error:#}"));
    assert!(!finding.rows.is_empty() && !finding.values.is_empty() && !finding.how.is_empty());
    for name in &finding.values {
        let text = fs::read_to_string(dir.join("results").join(name)).unwrap();
        let columns = text.lines().next().unwrap().split(',').count();
        assert!(text.lines().count() > 1, "{name} is empty");
        assert!(text.lines().all(|line| line.split(',').count() == columns), "{name}");
    }
    for name in &finding.figures {
        let svg = fs::read_to_string(dir.join("results").join(name)).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{name}");
    }
    page::put(&dir.join("README.md"), "results", &lab, experiment, &finding).unwrap();
    let page = fs::read_to_string(dir.join("README.md")).unwrap();
    for row in &finding.rows {
        assert!(
            page.contains(&format!("| {} | {} | {} |", row.what, row.paper, row.ours)),
            "{row:?}"
        );
    }
    Some(finding)
}

/// Why an experiment cannot run here.
fn refused(experiment: &Experiment) -> Option<String> {
    // SAFETY: takes no pointer.
    if unsafe { libc::geteuid() } != 0 {
        return Some("real-time priorities are for root".into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    let missing = experiment.programs.iter().find(|name| !there(name))?;
    Some(format!("`{missing}` is not installed"))
}

/// Adds a line to the file that `cargo xtask test` reads.
fn report(line: &str) {
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("FT_KERNEL_TEST_LOG") {
        let mut file = OpenOptions::new().append(true).create(true).open(path).expect("test log");
        file.write_all(format!("{line}\n").as_bytes()).expect("test log");
    }
}

/// Columns of a table of values, by name.
fn columns<const N: usize>(dir: &Path, file: &str, names: [&str; N]) -> Vec<[String; N]> {
    let text = fs::read_to_string(dir.join("results").join(file)).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = names.map(|name| head.iter().position(|column| *column == name).expect("a column"));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split(',').collect();
            at.map(|n| words[n].to_owned())
        })
        .collect()
}

/// One after the other: real-time threads of two experiments would be in each other's way.
#[test]
fn every_experiment_runs_in_its_short_form() {
    let dir = tempfile::tempdir().unwrap();
    for experiment in EXPERIMENTS {
        let Some(finding) = short(experiment.id, dir.path()) else { continue };
        match experiment.id {
            "hourglass-fig3" => one_thread_at_a_time(dir.path()),
            "hourglass-table1" => counts_are_those_of_the_values(dir.path(), &finding),
            _ => {}
        }
    }
}

/// What Figure 3 draws is one CPU.
fn one_thread_at_a_time(dir: &Path) {
    let runs = columns(dir, "hourglass-fig3.csv", ["scenario", "start_ns", "end_ns", "cpu"]);
    for scenario in ["alone", "beside"] {
        let runs: Vec<_> = runs.iter().filter(|run| run[0] == scenario).collect();
        assert!(!runs.is_empty() && runs.iter().all(|run| run[3] == runs[0][3]));
        let ns = |text: &String| text.parse::<i64>().unwrap();
        assert!(runs.windows(2).all(|pair| ns(&pair[0][2]) <= ns(&pair[1][1])), "{scenario}");
    }
}

/// The samples later than 1, 5, 10 and 50 ms of Table 1, counted by other code.
fn counts_are_those_of_the_values(dir: &Path, finding: &Finding) {
    let late = columns(dir, "hourglass-table1.csv", ["scenario", "late_ns"]);
    for (row, scenario) in finding.rows.iter().zip(["alone", "contention"]) {
        let of = || late.iter().filter(|sample| sample[0] == scenario);
        let later =
            |ms: u64| of().filter(|s| s[1].parse::<u64>().unwrap() > ms * 1_000_000).count();
        let told = [1, 5, 10, 50].map(|ms| later(ms).to_string()).join(", ");
        assert_eq!(row.ours, format!("{told} of {}", of().count()));
    }
}
