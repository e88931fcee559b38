//! `cargo xtask run-agent [-- ARGS of ft-agent record]`: sets up what it must, builds, records.
//!
//! Where the arguments name nothing to record it is the demo; where they name no directory it goes into
//! `trace/demo`, replacing the trace of the run before. Its report is a page, too: `report.html` in the trace.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::{
    build::{self, Profile},
    packaged, setup,
    steps::Steps,
    workspace::{line, root},
};

/// Sets up what is missing, builds, and hands over to the agent.
///
/// Runs as whoever calls it: without the rights for BPF the agent says what to do.
///
/// # Errors
///
/// When something cannot be built. What the agent itself reports is in the exit code.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    // Who looks for the first time need not wait for a compiler of BPF.
    let mut steps = if packaged::will_do() {
        println!(
            "The BPF programs are those that are checked in, of these sources; `cargo xtask setup` installs what builds them."
        );
        Steps::new(2)
    } else {
        let mut steps = Steps::new(4);
        steps.next("tools for the BPF programs", None);
        setup::run(&[]);
        build::bpf(&mut steps);
        steps
    };
    let is_demo = !has_option(args, SUBJECTS);
    let mut record = Command::new(build::agent(&mut steps, Profile::Quick, is_demo)?);
    record.arg("record");
    // The page lies in the trace, so it is decided here where that goes.
    let free = next(Path::new("."));
    let own = args.split(|arg| arg == "--").next().unwrap_or_default();
    if let Some(page) = page(args, &free) {
        record.arg("--html").arg(page);
    }
    if !is_demo && !has_option(own, &["-o", "--output"]) {
        record.arg("-o").arg(&free);
    }
    record.args(args);
    if is_demo {
        if !has_option(args, &["-o", "--output"]) {
            let trace = root().join("trace/demo");
            clear(&trace)?;
            record.arg("-o").arg(&trace);
        }
        record.arg("--").arg(Profile::Quick.dir().join("examples/demo"));
    }
    steps.next(&line(&record), None);
    let status = record.status().context("the agent could not be started")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Arguments of `record` that say what is recorded, or that nothing is.
const SUBJECTS: &[&str] = &["--", "-p", "--pid", "--cgroup", "-a", "--all", "-h", "--help"];

/// The next of `trace`, `trace-2`, `trace-3` and so on, behind all that are there: `ft-agent report` takes the last for the newest.
fn next(within: &Path) -> PathBuf {
    let entries = fs::read_dir(within).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| match entry.file_name().to_str()?.strip_prefix("trace")? {
        "" => Some(1),
        rest => rest.strip_prefix('-')?.parse::<u32>().ok(),
    };
    match entries.filter_map(number).max() {
        None => "trace".into(),
        Some(last) => format!("trace-{}", last.saturating_add(1)).into(),
    }
}

/// Where the page goes, unless the arguments say, or there will be none; `free` is the directory of a trace that has no name.
fn page(args: &[String], free: &Path) -> Option<PathBuf> {
    let own = args.split(|arg| arg == "--").next().unwrap_or_default();
    let without = ["--html", "--no-convert", "-h", "--help"];
    if has_option(own, &without) {
        return None;
    }
    let mut own = own.iter();
    let mut dir = None;
    while let Some(arg) = own.next() {
        match arg.strip_prefix("--output").or(arg.strip_prefix("-o")) {
            Some("") => dir = own.next().map(PathBuf::from),
            Some(value) => dir = Some(value.trim_start_matches('=').into()),
            None => {}
        }
    }
    let is_demo = !has_option(args, SUBJECTS);
    let usual = || if is_demo { root().join("trace/demo") } else { free.to_owned() };
    Some(dir.unwrap_or_else(usual).join("report.html"))
}

/// Whether one of the options is there, with or without its value in the same word.
fn has_option(args: &[String], options: &[&str]) -> bool {
    let is = |arg: &str, option: &str| match option.strip_prefix("--") {
        Some("") => arg == option,
        Some(_) => arg.split('=').next() == Some(option),
        None => arg.starts_with(option) && !arg.starts_with("--"),
    };
    args.iter().any(|arg| options.iter().any(|option| is(arg, option)))
}

/// Removes the trace of the run before, and nothing that is not a trace.
fn clear(trace: &Path) -> Result<()> {
    if !trace.exists() {
        return Ok(());
    }
    let is_trace = ["meta.json", "spool"].iter().any(|name| trace.join(name).exists());
    let is_empty = fs::read_dir(trace).is_ok_and(|mut entries| entries.next().is_none());
    if !is_trace && !is_empty {
        bail!("{} is not a trace, and would be overwritten; move it away", trace.display());
    }
    fs::remove_dir_all(trace).with_context(|| format!("cannot remove {}", trace.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lies_in_the_trace() {
        let page = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            page(&args, Path::new("trace-2"))
        };
        for line in ["-o x -- ls", "-ox -- ls", "--output x -- ls -o y", "--output=x -d 3s"] {
            assert_eq!(page(line), Some("x/report.html".into()), "{line}");
        }
        assert_eq!(page("-- ls"), Some("trace-2/report.html".into()));
        assert_eq!(page(""), Some(root().join("trace/demo/report.html")));
        for line in ["--html a -- ls", "--html=a", "--no-convert -- ls", "--help"] {
            assert_eq!(page(line), None, "{line}");
        }
    }

    #[test]
    fn a_recording_without_a_name_goes_where_there_is_none() {
        let dir = std::env::temp_dir().join(format!("ft-free-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        for name in ["trace", "trace-2", "trace-3"] {
            assert_eq!(next(&dir), PathBuf::from(name));
            fs::create_dir(dir.join(name)).unwrap();
        }
        // What lies between two is older than the second.
        fs::remove_dir(dir.join("trace-2")).unwrap();
        assert_eq!(next(&dir), PathBuf::from("trace-4"));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_demo_stands_in_for_what_is_not_named() {
        let names = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            has_option(&args, SUBJECTS)
        };
        for line in [
            "-- ls -l",
            "-o x -- ls",
            "-p 12",
            "-p12",
            "--pid=12",
            "--cgroup /x",
            "-a -d 1s",
            "--help",
        ] {
            assert!(names(line), "{line}");
        }
        for line in ["", "-o x", "-d 3s -k none", "--flight-recorder 2s", "-e order.*"] {
            assert!(!names(line), "{line}");
        }
    }
}
