//! A conversion whose readers of others' files are killed: it goes on, and nothing but names and what is found by them is another.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use ft_trace::store::Trace;
use ft_trace::tables::{CallChain, Sample};
use ft_trace::warning::Warning;
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{Stage, succeed};

/// Conversions that lose a reader; or as many as `FT_KILLS` says.
const ROUNDS: u32 = 5;

/// Conversions until one loses names, beyond these.
const MOST_IDLE: u32 = 40;

/// What is made of what readers say: functions, variables, chains, what has one, and how many functions of a file can be left.
const NAMED: [&str; 6] = ["frames", "symbols", "stacks", "call_chains", "samples", "binaries"];

#[test]
fn a_conversion_whose_readers_are_killed_loses_names_alone() {
    let Some(stage) = Stage::enter() else { return };
    stage.record("ways", &["-k", "default,profile", "--stack-min", "500us", "--no-convert"]);
    let recorded = stage.trace();
    let whole = recorded.with_file_name("whole");
    let began = Instant::now();
    convert(&stage, &recorded, &whole, None);
    let span = began.elapsed();
    let (tables, chained) = (tables(&whole), chained(&whole));
    assert!(tables.len() > 10 && chained.0.len() > 10 && chained.1.len() > 10);

    let rounds = std::env::var("FT_KILLS").map_or(ROUNDS, |text| text.parse().expect("a number"));
    let (mut round, mut lost) = (0, 0);
    // One that is killed when it has nothing to do costs nothing.
    while round < rounds || lost == 0 {
        assert!(round < rounds + MOST_IDLE, "each of {round} had nothing to do");
        let copy = recorded.with_file_name("copy");
        convert(&stage, &recorded, &copy, Some(span * (round % rounds) / rounds));
        let warnings = Trace::open(&copy).expect("a trace").meta().warnings.clone();
        lost += usize::from(warnings.iter().any(|w| matches!(w, Warning::NoNames { .. })));
        round += 1;
        assert!(self::tables(&copy) == tables, "{:?}", differing(&self::tables(&copy), &tables));
        assert!(self::chained(&copy) == chained, "rows with a chain");
        fs::remove_dir_all(copy).expect("removed");
    }
}

/// Converts a copy of a recording. The first reader that is there so long after the begin is killed.
fn convert(stage: &Stage, recorded: &Path, copy: &Path, after: Option<Duration>) {
    succeed(std::process::Command::new("cp").arg("-a").arg(recorded).arg(copy));
    let mut agent = stage.agent("convert");
    agent.arg(copy).stdout(Stdio::null()).stderr(Stdio::piped());
    let began = Instant::now();
    let mut agent = agent.spawn().expect("it starts");
    let of_threads = PathBuf::from(format!("/proc/{}/task", agent.id()));
    let mut is_killed = false;
    while agent.try_wait().expect("a child").is_none() {
        if !is_killed && after.is_some_and(|after| began.elapsed() >= after) {
            let threads = fs::read_dir(&of_threads).into_iter().flatten().flatten();
            let children = threads.filter_map(|thread| {
                fs::read_to_string(thread.path().join("children"))
                    .ok()?
                    .split(' ')
                    .next()?
                    .parse()
                    .ok()
            });
            let first = children.filter_map(Pid::from_raw).next();
            is_killed = first.is_some_and(|reader| kill_process(reader, Signal::KILL).is_ok());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = agent.wait_with_output().expect("it has ended");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// The files of the tables that have no names, with what is in them.
fn tables(trace: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let tables = fs::read_dir(trace).expect("a trace").map(|entry| entry.expect("an entry").path());
    let has_none = |path: &PathBuf| NAMED.iter().all(|name| !path.ends_with(name));
    let parts = tables.filter(has_none).filter_map(|table| fs::read_dir(table).ok()).flatten();
    let parts = parts.map(|part| part.expect("an entry").path());
    let parts = parts.filter(|part| part.extension().is_some_and(|end| end == "parquet"));
    let told = |part: &PathBuf| part.strip_prefix(trace).expect("a part of it").to_owned();
    parts.map(|part| (told(&part), fs::read(&part).expect("a part"))).collect()
}

fn differing<'t>(
    a: &'t BTreeMap<PathBuf, Vec<u8>>,
    b: &BTreeMap<PathBuf, Vec<u8>>,
) -> Vec<&'t PathBuf> {
    a.keys().filter(|name| a.get(*name) != b.get(*name)).collect()
}

/// The rows that have a chain, without it: it is found by the files, too.
fn chained(trace: &Path) -> (Vec<CallChain>, Vec<Sample>) {
    let trace = Trace::open(trace).expect("a trace");
    let chains = trace.rows::<CallChain>().map(|row| CallChain {
        stack: None,
        user: 0,
        cut: false,
        ..row.expect("a row")
    });
    let samples = trace.rows::<Sample>().map(|row| Sample {
        stack: None,
        user: 0,
        cut: false,
        ..row.expect("a row")
    });
    (chains.collect(), samples.collect())
}
