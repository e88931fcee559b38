//! An analysis that is interrupted or killed, wherever it is, leaves the tables of before or none, and the next
//! one makes the tables that an undisturbed one makes.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[path = "benches/analysis/trace.rs"]
mod trace;

/// Enough that every moment below comes before the end.
const ROUNDS: u64 = 300;

/// Every file of a trace and what it holds.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Analyses the trace and sends the signal as soon as `when` says so; the analysis may have ended before.
fn disturbed(dir: &Path, signal: i32, when: impl Fn() -> bool) -> Output {
    let mut agent = Command::new(ft_tests::agent());
    agent.arg("analyze").arg(dir).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: only a system call. Who runs the tests in the background may have had the signal ignored, which the agent
    // respects.
    unsafe {
        agent.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    let mut agent = agent.spawn().unwrap();
    while agent.try_wait().unwrap().is_none() && !when() {
        std::thread::yield_now();
    }
    // SAFETY: the process is ours and was not waited for, so its number is no other's.
    unsafe { libc::kill(agent.id() as i32, signal) };
    agent.wait_with_output().unwrap()
}

fn analyze(dir: &Path) {
    let output = disturbed(dir, 0, || true);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let holds = format!(" {} critical sections", trace::holds_of(ROUNDS));
    assert!(String::from_utf8_lossy(&output.stdout).contains(&holds), "{output:?}");
}

#[test]
fn the_tables_are_those_of_a_whole_run_or_those_of_before() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    trace::write(dir, ROUNDS, 10_000).unwrap();
    let fresh = contents(dir);
    analyze(dir);
    let whole = contents(dir);
    assert!(whole.len() > fresh.len());

    // At its first sign of life; when it writes; while it publishes; when the table of before is gone.
    let begun = || dir.join("gaps.tmp").exists();
    let writes = || dir.join("critical_sections.tmp/part-00000.parquet.tmp").exists();
    let publishes = || !dir.join("analysis.json").exists();
    let replaced = || !dir.join("critical_sections.tmp").exists() && publishes();
    let moments: [&dyn Fn() -> bool; 4] = [&begun, &writes, &publishes, &replaced];
    let interrupted = |when: &dyn Fn() -> bool| {
        let output = disturbed(dir, libc::SIGINT, when);
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => false,
            Some(130) => {
                assert!(said.starts_with("ft-agent: interrupted; ") && said.lines().count() == 1);
                true
            }
            status => panic!("{status:?} {said}"),
        }
    };
    // On a busy machine a run may be over before anybody has seen that it has begun.
    assert!((0..100).any(|_| interrupted(&begun)), "no run was interrupted before its end");
    for when in moments {
        interrupted(when);
        assert_eq!(contents(dir), whole, "nothing is half done");

        let output = disturbed(dir, libc::SIGKILL, when);
        let killed = output.status.signal() == Some(libc::SIGKILL);
        for table in ["critical_sections", "dispatch_latency", "gaps", "thread_time"] {
            let parts = |of: &[(PathBuf, Vec<u8>)]| -> Vec<_> {
                let its = of.iter().filter(|(path, _)| path.starts_with(dir.join(table)));
                its.cloned().collect()
            };
            let found = parts(&contents(dir));
            assert!(found.is_empty() && killed || found == parts(&whole), "half of {table}");
        }
        analyze(dir);
        assert_eq!(contents(dir), whole, "what was left is removed, and the tables are the same");
    }
}
