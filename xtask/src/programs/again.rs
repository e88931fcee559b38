//! A second run of a test that failed, alone, when all others have ended. What passes then is flaky: it is named with its failure, and a
//! run with more than [a few](MOST) of these fails. A wrong row of a recording is not tried again.

use std::time::Duration;

use super::said::summed;
use super::{Ended, Program};

/// Flaky tests of a run that passes: two, of some 2,400. A third is no accident of a busy machine.
pub(crate) const MOST: usize = 2;

/// The longest that a second run may take.
pub(super) const LIMIT: Duration = Duration::from_secs(5 * 60);

/// How long after the last program has ended a second run may begin. A program that ran late leaves as much time for it as another.
const WITHIN: Duration = Duration::from_secs(8 * 60);

/// What a failure tells that compared a recording with a second implementation (`tests/common/oracle.rs`).
const WRONG_ROWS: &str = "a second implementation disagrees";

/// Statuses of a program that has run all of its tests, of which some failed: that of Rust's harness, and that of our own.
const FAILED: [i32; 2] = [101, 1];

/// The tests that failed, by what their program printed. None if it has not run all of them to their end: then it does not name as many as
/// it counts, or has another status (`code`; none of one that was killed).
pub(super) fn failed(said: &str, code: Option<i32>) -> Vec<String> {
    let name = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(name.to_owned())
    };
    let names: Vec<String> = said.lines().filter_map(name).collect();
    let is_whole = code.is_some_and(|code| FAILED.contains(&code))
        && summed(said).is_some_and(|(_, failed)| failed == names.len());
    if is_whole && !said.contains(WRONG_ROWS) { names } else { Vec::new() }
}

/// Whether tests that failed do not run again, `since` the last program has ended: as many as `failed` are no accident, and a run has an
/// end.
pub(super) fn is_hopeless(failed: usize, since: Duration) -> bool {
    failed > MOST || since >= WITHIN
}

/// What came of a program of which the tests `failed` run again by `alone`.
pub(super) fn run(
    program: &Program,
    ended: Ended,
    failed: Vec<String>,
    alone: impl Fn(&Program) -> Ended,
) -> Ended {
    if failed.is_empty() {
        return ended;
    }
    let count = failed.len();
    let name = format!("{} again", program.name);
    let arguments = ["--exact".to_owned()].into_iter().chain(failed).collect();
    let second = alone(&Program { name, arguments, ..program.clone() });
    let seconds = ended.seconds + second.seconds;
    if second.error.is_some() || second.tests != (count, 0) {
        return Ended { seconds, ..ended };
    }
    let tests = (ended.tests.0 + count, 0);
    let flaky = ended.error.map(|error| (count, error));
    Ended { tests, seconds, error: None, flaky, ..ended }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(tests: (usize, usize), error: Option<&str>) -> Ended {
        let (name, error) = ("tests x".to_owned(), error.map(str::to_owned));
        Ended { name, tests, seconds: 3, error, ran: true, flaky: None }
    }

    fn program() -> Program {
        Program {
            name: "tests x".into(),
            executable: "/bin/false".into(),
            package: "/".into(),
            arguments: Vec::new(),
        }
    }

    #[test]
    fn the_tests_that_failed_are_those_that_their_program_names() {
        let begun =
            "running 3 tests\ntest a ... ok\ntest m::b ... FAILED\ntest c-with-kernel ... FAILED\n";
        let said = format!("{begun}\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n");
        for code in FAILED {
            assert_eq!(failed(&said, Some(code)), ["m::b", "c-with-kernel"]);
        }
        for (said, code, why) in [
            (&*said, None, "it was killed when it had ended"),
            (&said, Some(0), "it has another status"),
            (&said, Some(66), "a sanitizer ended it"),
            (begun, Some(101), "it died at a later test"),
            (&said.replace("2 failed", "3 failed"), Some(101), "one has no name"),
            (&format!("{said}{WRONG_ROWS}: oracle"), Some(101), "a row is wrong"),
            ("", Some(101), "it died"),
        ] {
            assert!(failed(said, code).is_empty(), "{why}");
        }
    }

    #[test]
    fn what_passes_alone_is_flaky_and_what_fails_again_has_failed() {
        let first = || ended((7, 1), Some("why"));
        let passes = |asked: &Program| {
            assert_eq!(asked.arguments, ["--exact", "m::b"]);
            assert_eq!(asked.name, "tests x again");
            ended((1, 0), None)
        };
        let once = run(&program(), first(), vec!["m::b".into()], passes);
        assert_eq!((once.tests, once.error, once.flaky), ((8, 0), None, Some((1, "why".into()))));
        assert_eq!(once.seconds, 6);

        let fails = |_: &Program| ended((0, 1), Some("again"));
        let twice = run(&program(), first(), vec!["m::b".into()], fails);
        assert_eq!((twice.tests, twice.error, twice.flaky), ((7, 1), Some("why".into()), None));
        // A name that selects nothing has not passed.
        let nothing = run(&program(), first(), vec!["gone".into()], |_| ended((0, 0), None));
        assert_eq!(nothing.tests, (7, 1));
    }

    #[test]
    fn few_run_again_however_late_their_program_has_ended() {
        assert!(!is_hopeless(MOST, Duration::ZERO));
        assert!(is_hopeless(MOST + 1, Duration::ZERO), "more are no accident");
        // All have their time, one after the other: only after them it is over.
        assert!(!is_hopeless(MOST, LIMIT * (MOST as u32 - 1)));
        assert!(is_hopeless(1, WITHIN), "a run has an end");
    }

    #[test]
    fn what_died_is_not_run_again() {
        let never = |_: &Program| -> Ended { panic!("it runs again") };
        assert_eq!(run(&program(), ended((0, 1), Some("x")), Vec::new(), never).tests, (0, 1));
    }
}
