//! What a catalogue takes as it grows: traces brought, listed, analysed, and asked of by `ft-agent fleet`.
//!
//! ```text
//! cargo bench -p ft-tests --bench fleet                     of 10, 100 and 1,000 traces
//! cargo bench -p ft-tests --bench fleet -- 10 50            of so many, ascending
//! ```
//!
//! The traces are the recordings that are stored for the tests, as of other hosts: four of each. They and the catalogue lie
//! below `TMPDIR`, 1.6 MB a trace. Each step is the agent itself, a process of its own; a time is its CPU time, memory the largest resident
//! set of one process, and bytes are what it asked the kernel to read and write, whether or not a disk did.

mod cost;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cost::{Cost, measured};

const RECORDINGS: [&str; 4] = ["killed", "preload", "scenarios", "system"];

fn main() {
    // As a test, which cargo runs without `--bench`: that every step works, and not what it takes.
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_bench = args.iter().any(|arg| arg == "--bench");
    let sizes: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    match (is_bench, sizes.is_empty()) {
        (true, true) => table(&[10, 100, 1000]),
        (true, false) => table(&sizes),
        // `cargo test NAME` gives the name to every binary, and a list is of tests that have a name.
        (false, _) if args.is_empty() => table(&[3, 6]),
        (false, _) => {}
    }
}

/// Prints a line for each number of traces. They are added to one catalogue, so that each step meets what it has done already.
fn table(sizes: &[usize]) {
    let folder = tempfile::tempdir().expect("a directory");
    let stage = folder.path();
    RECORDINGS.iter().for_each(|recording| unpack(recording, stage));
    println!(
        "| traces (hosts) | in the catalogue | brought, each | analysed, each | again | listed | holds by kernel | wake-ups by neighbour |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut there = 0;
    for size in sizes.iter().copied() {
        let brought: Cost = (there..size).map(|nth| bring(nth, stage)).sum();
        let new = size.saturating_sub(there) as u64;
        there = size;
        let run = |args: &[&str]| measured(agent().args(args).current_dir(stage));
        let (analysed, said) = run(&["analyze", "fleet"]);
        assert_eq!(said.matches(": analysed, ").count() as u64, new, "{said}");
        let (again, said) = run(&["analyze", "fleet"]);
        assert_eq!(said.matches(": was analysed already").count(), size, "{said}");
        let (listed, said) = run(&["catalogue", "fleet"]);
        assert!(said.contains(&format!("{size} traces, ")), "{said}");
        let hosts = size.div_ceil(RECORDINGS.len());
        let head = format!("{size} traces of {hosts} host");
        let asked = [["hold", "kernel"], ["dispatch", "neighbour"]].map(|[of, by]| {
            let (cost, said) = run(&["fleet", "fleet", "--of", of, "--by", by]);
            assert!(said.replace(',', "").contains(&head), "{said}");
            cost
        });
        println!(
            "| {size} ({hosts}) | {} | {} | {} | {again} | {listed} | {} | {} |",
            cost::bytes(bytes(&stage.join("fleet"))),
            brought.of_each(new),
            analysed.of_each(new),
            asked[0],
            asked[1],
        );
    }
}

fn agent() -> Command {
    Command::new(ft_tests::agent())
}

/// A recording as a trace, not analysed.
fn unpack(recording: &str, stage: &Path) {
    let spools = Path::new(env!("CARGO_MANIFEST_DIR")).join("stored/spools");
    let spool = stage.join(recording).join("spool");
    fs::create_dir_all(&spool).expect("a directory");
    for entry in fs::read_dir(spools.join(recording)).expect("a stored recording") {
        let packed = entry.expect("an entry").path();
        let bytes = fs::read(&packed).expect("a part of a spool");
        let bytes = zstd::decode_all(&bytes[..]).expect("packed by zstd");
        fs::write(spool.join(packed.file_stem().expect("a name")), bytes).expect("unpacked");
    }
    measured(agent().args(["convert", recording]).current_dir(stage));
}

/// Brings the nth trace, under the name of a host that has none of this recording yet.
fn bring(nth: usize, stage: &Path) -> Cost {
    let (recording, host) = (RECORDINGS[nth % RECORDINGS.len()], nth / RECORDINGS.len());
    let meta = stage.join(recording).join("meta.json");
    let recorded = fs::read_to_string(&meta).expect("a converted recording");
    let (before, rest) = recorded.split_once("\"host\": \"").expect("a host");
    let (_, after) = rest.split_once('"').expect("its end");
    fs::write(&meta, format!("{before}\"host\": \"h{host}\"{after}")).expect("another host");
    measured(agent().args(["convert", recording, "--to", "fleet"]).current_dir(stage)).0
}

/// Of all files.
fn bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry"));
    let size = |path: PathBuf| match path.is_dir() {
        true => bytes(&path),
        false => path.metadata().expect("a file").len(),
    };
    entries.map(|entry| size(entry.path())).sum()
}
