//! What tests say of themselves (`tests/common/said.rs`): cargo shows no output of tests that pass, and one that could not run must
//! not look like one that did.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use anyhow::{Context, Result, bail};

use crate::workspace::target_dir;

/// The file that tests write to, and what they have told.
pub(crate) struct Ledger {
    pub(crate) file: PathBuf,
    pub(crate) reported: String,
}

impl Ledger {
    /// # Errors
    ///
    /// When the file cannot be written.
    pub(crate) fn new() -> Result<Ledger> {
        let file = target_dir().join("kernel-tests.log");
        fs::create_dir_all(target_dir())?;
        fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Ledger { file, reported: String::new() })
    }

    /// What tells a test where the file is.
    pub(crate) fn variable(&self) -> (&'static str, PathBuf) {
        ("FT_KERNEL_TEST_LOG", self.file.clone())
    }

    /// Reads what they have told.
    pub(crate) fn read(&mut self) {
        self.reported = fs::read_to_string(&self.file).unwrap_or_default();
    }

    /// How many ran, which were skipped, and what was measured.
    pub(crate) fn counted(&self) -> Counted<'_> {
        Counted::from_ledger(&self.reported)
    }
}

/// What the tests on the kernel reported.
pub(crate) struct Counted<'a> {
    pub(crate) ran: usize,
    /// Each `NAME: REASON`.
    skipped: Vec<&'a str>,
    /// Figures of tests that compare with a known truth, or with other programs.
    measured: Vec<&'a str>,
}

impl<'a> Counted<'a> {
    /// Each line is `ran NAME`, `skipped NAME: REASON` or `measured FIGURE`.
    fn from_ledger(ledger: &'a str) -> Self {
        Counted {
            // One that runs again is the same.
            ran: ledger.lines().filter(|it| it.starts_with("ran ")).collect::<BTreeSet<_>>().len(),
            skipped: ledger.lines().filter_map(|line| line.strip_prefix("skipped ")).collect(),
            measured: ledger.lines().filter_map(|line| line.strip_prefix("measured ")).collect(),
        }
    }

    pub(crate) fn summary(&self) -> String {
        let mut text = format!("kernel tests: {} ran, {} skipped", self.ran, self.skipped.len());
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in &self.skipped {
            let (name, reason) = line.split_once(": ").unwrap_or((line, ""));
            reasons.entry(reason).or_default().push(name);
        }
        for (reason, names) in reasons {
            text += &match names[..] {
                [name] => format!("\n  skipped {name}: {reason}"),
                [first, ..] => {
                    format!("\n  skipped {first} and {} more: {reason}", names.len() - 1)
                }
                [] => String::new(),
            };
        }
        for figure in &self.measured {
            text += "\n  ";
            text += figure;
        }
        text
    }

    /// Fails if fewer than `least` ran though this process `may` record the kernel.
    ///
    /// # Errors
    ///
    /// Says how many ran, and how many had to.
    pub(crate) fn at_least(&self, least: usize, may: bool) -> Result<()> {
        if may && self.ran < least {
            bail!(
                "{} tests ran on the kernel, and with these rights at least {least} have to; see why the others were skipped",
                self.ran
            );
        }
        Ok(())
    }
}

/// Whether this process may record the kernel: it has the capabilities, and its numbers of processes are the kernel's.
pub(crate) fn may_record() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    // The inode of the first PID namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO).
    let is_first = fs::read_link("/proc/self/ns/pid")
        .is_ok_and(|namespace| namespace.as_os_str() == "pid:[4026531836]");
    is_first && has_capabilities(&status)
}

/// Whether a process with this `status` may load programs that trace (include/uapi/linux/capability.h).
fn has_capabilities(status: &str) -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    const PERFMON_AND_BPF: u64 = 1 << 38 | 1 << 39;
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & SYS_ADMIN != 0 || mask & PERFMON_AND_BPF == PERFMON_AND_BPF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_named_with_their_reason() {
        let counted = Counted::from_ledger(
            "ran a\nskipped b: no CAP_BPF\nmeasured x: 5 ns\nran c\nskipped d: no CAP_BPF\nskipped e: no cc\n",
        );
        assert_eq!(
            counted.summary(),
            "kernel tests: 2 ran, 3 skipped\n  skipped b and 1 more: no CAP_BPF\n  skipped e: no cc\n  x: 5 ns"
        );
    }

    #[test]
    fn with_rights_a_number_of_tests_has_to_run() {
        let counted = Counted::from_ledger("ran a\nran b\nskipped c: why\n");
        assert!(counted.at_least(2, true).is_ok() && counted.at_least(3, false).is_ok());
        let error = counted.at_least(3, true).expect_err("two are too few").to_string();
        assert!(error.starts_with("2 tests ran") && error.contains("at least 3"), "{error}");
    }

    #[test]
    fn rights_are_those_of_root_or_two_capabilities() {
        for (mask, expected) in [
            ("000001ffffffffff", true),
            ("000000c000000000", true),
            ("0000004000000000", false),
            ("0000000000200000", true),
            ("00000000a80425fb", false),
            ("0000000000000000", false),
        ] {
            let status = format!("Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t{mask}\n");
            assert_eq!(has_capabilities(&status), expected, "{mask}");
        }
        assert!(!has_capabilities(""));
    }
}
