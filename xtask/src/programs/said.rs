//! What a program of tests has printed: how many passed, and what is told again of those that failed.

/// How many tests passed and how many failed, by what a program of tests printed. One that counts none is one test.
pub(super) fn counted(said: &str, has_failed: bool) -> (usize, usize) {
    let (passed, failed) = summed(said).unwrap_or((usize::from(!has_failed), 0));
    // One that ended otherwise than by a test that failed has failed, too.
    (passed, failed.max(usize::from(has_failed)))
}

/// The sums of the lines with which harnesses end; `None` without one.
pub(super) fn summed(said: &str) -> Option<(usize, usize)> {
    let counted = said.lines().filter_map(|line| {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |what: &str| -> Option<usize> {
            counts.split("; ").find_map(|part| part.split_once(what)?.0.trim().parse().ok())
        };
        Some((count(" passed")?, count(" failed")?))
    });
    counted.reduce(|sum, more| (sum.0 + more.0, sum.1 + more.1))
}

/// Lines of a failed test, or of the end of a program, that are told again at the end of a run.
const TOLD_AGAIN: usize = 60;

/// What a program of tests printed of each test that failed, and their names, or the last that it printed; indented. A run prints far
/// more than anybody reads, and its end is where one looks.
pub(super) fn failures(said: &str) -> String {
    const HEAD: &str = "\nfailures:\n";
    let Some((rest, names)) = said.rsplit_once(HEAD) else {
        let lines: Vec<&str> = said.trim().lines().collect();
        return indented(lines[lines.len().saturating_sub(TOLD_AGAIN)..].iter().copied());
    };
    let details = rest.split_once(HEAD).map_or("", |(_, details)| details);
    let tests = details.split("\n---- ").skip(1).map(|test| {
        let lines: Vec<&str> = test.trim_end().lines().collect();
        let more = lines.len().saturating_sub(TOLD_AGAIN);
        let cut = (more > 0).then(|| format!("… {more} lines more"));
        indented(lines.iter().copied().take(TOLD_AGAIN).chain(cut.as_deref()))
    });
    let names = names.lines().take_while(|line| !line.is_empty()).map(str::trim);
    format!("{}{}", tests.collect::<String>(), indented(std::iter::once("failed:").chain(names)))
}

fn indented<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.flat_map(|line| ["\n    ", line]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_as_their_harness_counts_them() {
        let two = "test result: ok. 3 passed; 0 failed; 1 ignored\n\ntest result: FAILED. 2 passed; 1 failed: [\"x\"]\n";
        assert_eq!(counted(two, true), (5, 1));
        assert_eq!(counted("test result: ok. 3 passed; 0 failed; 0 ignored", false), (3, 0));
        // Killed behind the last test, and another kind of program.
        assert_eq!(counted("test result: ok. 3 passed; 0 failed; 0 ignored", true), (3, 1));
        assert_eq!((counted("done\n", false), counted("", true)), ((1, 0), (0, 1)));
    }

    #[test]
    fn what_failed_is_told_again() {
        let many: String = (0..100).map(|line| format!("{line}\n")).collect();
        let said = format!(
            "running 3 tests\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\n{many}\n---- b stdout ----\nleft: 1\n\n\
             \nfailures:\n    a\n    b\n\ntest result: FAILED. 1 passed\n"
        );
        let told = failures(&said);
        assert!(told.starts_with("\n    a stdout ----\n    0\n"), "{told}");
        assert!(
            told.contains("\n    58\n    … 41 lines more\n    b stdout ----\n    left: 1\n"),
            "{told}"
        );
        assert!(told.ends_with("left: 1\n    failed:\n    a\n    b"), "{told}");
        // Of tests of another kind the end.
        let told = failures(&many);
        assert!(told.starts_with("\n    40\n") && told.ends_with("\n    99"), "{told}");
        assert_eq!(failures("x\n\nfailures:\n    silent\n"), "\n    failed:\n    silent");
    }
}
