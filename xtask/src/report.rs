//! What a test run says at its end: a table, what failed, and how many tests that were.

use std::{fmt::Write as _, time::Instant};

use anyhow::{Result, bail};

use crate::programs::{Ended, MOST_FLAKY};

/// A group of tests.
#[derive(Debug, Default)]
pub(crate) struct Row {
    group: &'static str,
    pub(crate) passed: usize,
    failed: usize,
    pub(crate) seconds: u64,
    /// What failed, with what it said.
    failures: Vec<String>,
    /// How many tests failed and passed when they ran again, and what they said.
    flaky: Vec<(usize, String)>,
    /// What did not run, because the time was over.
    not_run: Vec<String>,
    /// What its time went to, where that is no program of tests.
    spent: Vec<String>,
}

impl Row {
    pub(crate) fn new(group: &'static str) -> Row {
        Row { group, ..Row::default() }
    }

    /// Adds what came of a program of tests.
    pub(crate) fn add(&mut self, ended: &Ended) {
        let Ended { name, tests: (passed, failed), error, ran, flaky, .. } = ended;
        if !ran {
            self.not_run(name);
        }
        self.passed += passed;
        self.failed += failed;
        let told = |why: &str| format!("{name}: {why}");
        self.failures.extend(error.as_deref().map(told));
        self.flaky.extend(flaky.iter().map(|(tests, why)| (*tests, told(why))));
    }

    /// Adds a check that is no program of tests.
    pub(crate) fn step(&mut self, name: &str, result: Result<()>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(error) => self.failed(name, &format!("{error:#}")),
        }
    }

    pub(crate) fn failed(&mut self, name: &str, why: &str) {
        self.failed += 1;
        self.failures.push(format!("{name}: {why}"));
    }

    /// Fails if something could not be had that the group installs.
    pub(crate) fn lacks(&mut self, names: &[&str]) {
        if !names.is_empty() {
            let names = names.join(", ");
            let why = format!(
                "{names} could not be had; see why above, check the network, and run it again"
            );
            self.failed("what it installs", &why);
        }
    }

    /// Names what there was no time for: it has neither passed nor failed.
    pub(crate) fn not_run(&mut self, name: &str) {
        self.not_run.push(name.to_owned());
    }

    /// Does something of which the table says how long it took.
    pub(crate) fn spending<T>(&mut self, what: &str, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        self.spent.push(format!("{what} {}", began.elapsed().as_secs()));
        done
    }

    /// Does something for this group, and adds the time that it takes.
    pub(crate) fn timed(&mut self, work: impl FnOnce(&mut Row)) {
        let began = Instant::now();
        work(self);
        self.seconds += began.elapsed().as_secs();
    }
}

/// All groups of a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
}

impl Report {
    /// Prints what failed, the table, and the sum alone on a line.
    ///
    /// # Errors
    ///
    /// When a test failed, more than [a few](MOST_FLAKY) passed only when they ran again, or none ran.
    pub(crate) fn print(&self) -> Result<()> {
        let (passed, failed) = self.sum();
        let not_run: usize = self.rows.iter().map(|row| row.not_run.len()).sum();
        let flaky: usize =
            self.rows.iter().flat_map(|row| &row.flaky).map(|(tests, _)| tests).sum();
        println!("{}{}\n{passed} passed, {failed} failed", self.failures(), self.table());
        if not_run > 0 {
            println!("NOT RUN, for there was no time left: {not_run}; they are named above");
        }
        if flaky > 0 {
            println!("FLAKY, failed and then passed alone: {flaky}; they are named above");
        }
        match (passed, failed) {
            (0, 0) => bail!("no test ran"),
            (_, 0) if flaky > MOST_FLAKY => {
                bail!("too many tests are flaky; they are named above")
            }
            (_, 0) => Ok(()),
            _ => bail!("tests failed; they are named above"),
        }
    }

    fn sum(&self) -> (usize, usize) {
        let sum = |of: fn(&Row) -> usize| self.rows.iter().map(of).sum();
        (sum(|row| row.passed), sum(|row| row.failed))
    }

    fn failures(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            for failure in &row.failures {
                let _ = writeln!(text, "failed in {}: {failure}", row.group);
            }
            for (_, failure) in &row.flaky {
                let _ = writeln!(text, "FLAKY in {}: {failure}", row.group);
            }
            for name in &row.not_run {
                let _ = writeln!(text, "NOT RUN in {}: {name}", row.group);
            }
        }
        text
    }

    fn table(&self) -> String {
        let mut text = format!("{:9} {:>6} {:>6} {:>8}", "group", "passed", "failed", "seconds");
        for Row { group, passed, failed, seconds, spent, .. } in &self.rows {
            let _ = write!(text, "\n{group:9} {passed:>6} {failed:>6} {seconds:>8}");
            if !spent.is_empty() {
                let _ = write!(text, "  ({})", spent.join(", "));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_a_table_and_what_failed() {
        let mut quick = Row::new("quick");
        let ended = |tests, error: Option<&str>| Ended {
            name: "tests cli".into(),
            tests,
            seconds: 3,
            error: error.map(str::to_owned),
            ran: true,
            flaky: None,
        };
        quick.add(&ended((23, 0), None));
        let mut page = Row { seconds: 7, ..Row::new("page") };
        let mut report = Report::default();
        page.step("it is drawn", Ok(()));
        page.spending("browser", || ());
        report.rows.push(quick);
        report.rows.push(page);
        assert_eq!(
            report.table(),
            "group     passed failed  seconds\nquick         23      0        0\npage           1      0        7  (browser 0)"
        );
        assert_eq!((report.sum(), report.failures()), ((24, 0), String::new()));
        report.print().expect("nothing failed");

        report.rows[1].add(&ended((1, 2), Some("exit status: 101")));
        assert_eq!(report.sum(), (25, 2));
        assert_eq!(report.failures(), "failed in page: tests cli: exit status: 101\n");
        report.print().expect_err("two failed");
        let late = Ended { ran: false, ..ended((0, 0), None) };
        report.rows[0].add(&late);
        assert!(report.failures().starts_with("NOT RUN in quick: tests cli\n"));
        assert_eq!(report.sum(), (25, 2));

        let mut row = Row::new("page");
        row.lacks(&[]);
        assert_eq!(row.failed, 0);
        row.lacks(&["npm", "Python readers"]);
        let report = Report { rows: vec![row] };
        let lacking = "failed in page: what it installs: npm, Python readers could not be had; ";
        assert!(report.failures().starts_with(lacking), "{}", report.failures());
        report.print().expect_err("tests that want them were skipped");

        let flaky = Ended { flaky: Some((1, "why".into())), ..ended((4, 0), None) };
        let mut report = Report::default();
        for number in 1..=MOST_FLAKY + 1 {
            let mut row = Row::new("truth");
            row.add(&flaky);
            report.rows.push(row);
            assert_eq!(report.print().is_ok(), number <= MOST_FLAKY);
        }
        assert!(report.failures().starts_with("FLAKY in truth: tests cli: why\n"));
        Report::default().print().expect_err("nothing ran");
    }
}
