//! A catalogue of sixteen traces of four hosts, each a recording of its own: those that are stored, and twelve of this program.

use std::fs;
use std::hint::spin_loop;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use ft_user::scope;
use ft_user::sync::Mutex;

const STORED: [&str; 4] = ["killed", "preload", "scenarios", "system"];

const HOSTS: usize = 4;

/// Of the build that they are labelled with; each host has one of each, and a third.
const BUILDS: [&str; 3] = ["1.4", "1.5", "1.5"];

/// How long the recorded program holds a lock, µs.
const HELD: &str = "FT_HELD_US";

pub(crate) fn agent(args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(ft_tests::agent());
    command.args(args).current_dir(folder).output().unwrap()
}

/// Brings them into `fleet`, below this folder. One is damaged there: of `h2`, and its `meta.json` is missing.
pub(crate) fn bring(folder: &Path) {
    for (host, recording) in STORED.into_iter().enumerate() {
        unpack(recording, folder);
        brought(&folder.join(recording), host, &["--label", "build=1.4"]);
    }
    for host in 0..HOSTS {
        for (nth, build) in BUILDS.into_iter().enumerate() {
            let trace = folder.join(format!("h{host}-{nth}"));
            record(&trace, build, host);
            brought(
                &trace,
                host,
                &["--label", &format!("build={build}"), "--label", "ring=canary"],
            );
        }
    }
    let mut traces: Vec<PathBuf> = Vec::new();
    for date in fs::read_dir(folder.join("fleet/host=h2")).unwrap() {
        let of_date = fs::read_dir(date.unwrap().path()).unwrap();
        traces.extend(of_date.map(|trace| trace.unwrap().path()));
    }
    // The last one is of today, and no stored one.
    fs::remove_file(traces.iter().max().unwrap().join("meta.json")).unwrap();
}

fn unpack(recording: &str, folder: &Path) {
    let spools = Path::new(env!("CARGO_MANIFEST_DIR")).join("stored/spools");
    let spool = folder.join(recording).join("spool");
    fs::create_dir_all(&spool).unwrap();
    for entry in fs::read_dir(spools.join(recording)).unwrap() {
        let packed = entry.unwrap().path();
        let bytes = zstd::decode_all(&fs::read(&packed).unwrap()[..]).unwrap();
        fs::write(spool.join(packed.file_stem().unwrap()), bytes).unwrap();
    }
    convert(recording, folder);
}

/// The later build holds its lock longer, and one host does more than all others.
fn record(trace: &Path, build: &str, host: usize) {
    let held = if build == "1.4" { 20 } else { 60 };
    let held = if host == HOSTS - 1 { 20 * held } else { held };
    let recorded = Command::new(ft_tests::agent())
        .args(["record", "-k", "none", "--no-convert", "-o"])
        .arg(trace)
        .arg("--")
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "recordings::is_recorded"])
        .env(HELD, held.to_string())
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{recorded:?}");
    convert(trace.file_name().unwrap().to_str().unwrap(), trace.parent().unwrap());
}

/// Without its results, as a host that has little time brings it.
fn convert(trace: &str, folder: &Path) {
    let converted = agent(&["convert", trace], folder);
    assert!(converted.status.success(), "{converted:?}");
}

/// As from this host.
fn brought(trace: &Path, host: usize, labels: &[&str]) {
    let meta = trace.join("meta.json");
    let recorded = fs::read_to_string(&meta).unwrap();
    let (before, rest) = recorded.split_once("\"host\": \"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    fs::write(&meta, format!("{before}\"host\": \"h{host}\"{after}")).unwrap();
    let (folder, name) = (trace.parent().unwrap(), trace.file_name().unwrap().to_str().unwrap());
    let put = agent(&[&["convert", name, "--to", "fleet"], labels].concat(), folder);
    assert!(put.status.success(), "{put:?}");
}

static BOOK: Mutex<u64> = Mutex::named("book", 0);
static LEDGER: Mutex<u64> = Mutex::named("ledger", 0);

fn work(held: Duration) {
    for n in 0..100 {
        let _scope = scope!("fleet.order");
        let until = Instant::now() + held;
        let mut book = BOOK.lock().unwrap();
        while Instant::now() < until {
            spin_loop();
        }
        *book += 1;
        if n % 4 == 0 {
            *LEDGER.lock().unwrap() += *book;
        }
    }
}

#[test]
#[ignore = "is what the tests beside it record"]
fn is_recorded() {
    let Ok(held) = std::env::var(HELD) else { return };
    let held = Duration::from_micros(held.parse().unwrap());
    ft_user::init().unwrap();
    std::thread::scope(|threads| {
        for name in ["left", "right"] {
            std::thread::Builder::new()
                .name(name.into())
                .spawn_scoped(threads, || work(held))
                .unwrap();
        }
    });
}
