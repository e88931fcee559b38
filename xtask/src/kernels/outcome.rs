//! How a check of a guest went, by what it has left.

use std::fmt;

/// How a check went, and what of it is worth a few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok(String),
    Failed(String),
    Skipped(String),
    /// There was no time left for it.
    NotRun,
}

impl Outcome {
    /// In a table.
    pub(super) fn cell(&self) -> String {
        match self {
            Outcome::Ok(note) if note.is_empty() => "ok".into(),
            Outcome::Ok(note) => note.clone(),
            Outcome::Failed(_) => "**failed**".into(),
            Outcome::Skipped(reason) => format!("skipped: {reason}"),
            Outcome::NotRun => "not run".into(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Ok(note) if note.is_empty() => f.write_str("ok"),
            Outcome::Ok(note) => write!(f, "ok: {note}"),
            Outcome::Failed(why) => write!(f, "FAILED: {why}"),
            Outcome::Skipped(why) => write!(f, "skipped: {why}"),
            Outcome::NotRun => f.write_str("not run"),
        }
    }
}

/// How a check of the guest went.
pub(super) fn said(results: &str, name: &str, log: &str) -> Outcome {
    let line = results.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let last =
        || log.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("nothing said");
    match line.and_then(|line| line.split(' ').next()) {
        Some("0") => Outcome::Ok(String::new()),
        Some("124" | "137") => Outcome::Failed(format!("no end; {}", last())),
        Some(_) => {
            let panic = log.lines().skip_while(|line| !line.contains(" panicked at ")).nth(1);
            Outcome::Failed(panic.map_or_else(|| last().to_owned(), |line| line.trim().to_owned()))
        }
        None => Outcome::Failed("it did not run".into()),
    }
}

/// What `ft-agent doctor` found, but that an emulated CPU promises nothing of its counter.
pub(super) fn doctor(log: &str) -> Outcome {
    let wrong = |line: &&str| line.starts_with("FAIL  ") && !line.contains("time stamp counter");
    match log.lines().find(wrong) {
        Some(line) => Outcome::Failed(line.to_owned()),
        None if !log.contains("BPF programs") => Outcome::Failed("nothing said".into()),
        None => {
            let lacks =
                log.lines().find_map(|line| line.split_once(" not whole: ")?.0.split("  ").last());
            Outcome::Ok(lacks.map_or_else(String::new, |group| format!("no {}", group.trim())))
        }
    }
}

/// The kernel tests, with how many of them ran.
pub(super) fn kernel_tests(outcome: Outcome, log: &str, ledger: &str) -> Outcome {
    let Outcome::Ok(_) = outcome else { return outcome };
    let result = log.lines().find_map(|line| line.strip_prefix("test result: ok. "));
    let passed = result.and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok()).unwrap_or(0);
    let skipped = ledger.lines().filter(|line| line.starts_with("skipped ")).count();
    match passed.saturating_sub(skipped) {
        0 => Outcome::Failed("no test ran".into()),
        ran => Outcome::Ok(format!("{ran} of {passed}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_tells_why_it_failed() {
        let results = "doctor 0 2\ndemo 1 3\ncgroup 1 0\npreload 124 100\n";
        assert_eq!(said(results, "doctor", "all well"), Outcome::Ok(String::new()));
        assert_eq!(said(results, "demo", "a\nno room\n\n"), Outcome::Failed("no room".into()));
        let panic = "x\nthread 'y' panicked at z:1:\nleft: 1\nright: 2\n";
        assert_eq!(said(results, "demo", panic), Outcome::Failed("left: 1".into()));
        // A program that failed is not skipped, whatever it says.
        let old = "this kernel has no cgroup.ancestors, which it needs; use Linux 6.1 or newer";
        assert_eq!(said(results, "cgroup", old), Outcome::Failed(old.into()));
        assert!(
            matches!(said(results, "preload", ""), Outcome::Failed(why) if why.contains("no end"))
        );
        // A guest that died in between must not look like one that had nothing to say.
        assert_eq!(said(results, "groups", ""), Outcome::Failed("it did not run".into()));
    }

    #[test]
    fn the_doctor_may_miss_a_promise_of_the_counter_and_nothing_else() {
        let emulated = "ok    BPF programs  fine\nFAIL  time stamp counter  none\n";
        assert_eq!(doctor(emulated), Outcome::Ok(String::new()));
        let old =
            "warn  BPF programs             lock not whole: this kernel has no contention_end\n";
        assert_eq!(doctor(old), Outcome::Ok("no lock".into()));
        assert!(matches!(doctor("FAIL  BPF programs  refused\n"), Outcome::Failed(_)));
        assert!(matches!(doctor(""), Outcome::Failed(_)));
    }

    #[test]
    fn tests_that_did_not_run_are_not_counted() {
        // What a test prints stands before its end, or in its line.
        let log = "test a ... ok\ntest b ... ran b\nok\n\ntest result: ok. 2 passed; 0 failed\n";
        let ran = Outcome::Ok(String::new());
        assert_eq!(kernel_tests(ran.clone(), log, "ran a\n"), Outcome::Ok("2 of 2".into()));
        assert_eq!(
            kernel_tests(ran.clone(), log, "skipped b: old\n"),
            Outcome::Ok("1 of 2".into())
        );
        assert!(matches!(kernel_tests(ran.clone(), "", ""), Outcome::Failed(_)));
        let none = kernel_tests(ran, log, "skipped a: old\nskipped b: old\n");
        assert!(matches!(none, Outcome::Failed(_)));
    }
}
