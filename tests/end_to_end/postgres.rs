//! Every statement of pgbench is a request whose parts and whose critical path sum to it, and the oracle finds them anew.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{FutexEnd, FutexKind, FutexWait, PathPiece, Request};

use crate::harness::{self, Stage, agent, assert_success, gate};
use crate::probes::{Ended, RECORDINGS, is_whole, requests};
use crate::recomputed::agrees;

/// Clients, and transactions of each: of pgbench's own kind, whose rows are few, so that they wait for each other's.
const CLIENTS: &str = "4";
const TRANSACTIONS: &str = "30";

/// Statements of these, of seven each; pgbench asks some more before.
const LEAST: usize = 4 * 30 * 7;

/// As the user of Debian's package: the server refuses to be root's.
fn as_its_user(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", program]);
    command.current_dir("/");
    command
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    assert_success(&output);
    output
}

/// The server's processes wait for each other's light-weight locks at semaphores that they share, each of which is a futex: who
/// posted is who was waited for. Returns how many such waits there are, which no test decides.
fn posted(trace: &Trace) -> usize {
    let waits: Vec<FutexWait> = trace.rows().map(|row| row.expect("a row")).collect();
    let woken = waits.iter().filter(|r| (r.end, r.mark) == (FutexEnd::Woken, Mark::Exact));
    for wait in woken.clone() {
        // Each has one thread.
        assert!(wait.waker_pid.is_some_and(|pid| pid != wait.pid.0), "{wait:?}");
        assert_eq!(
            (wait.waker_tid, wait.waker_call),
            (wait.waker_pid, Some(FutexKind::Wake)),
            "{wait:?}"
        );
    }
    woken.count()
}

#[test]
fn statements_of_pgbench_tile_to_the_nanosecond() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let installed = |path: &Path| path.join("bin/postgres").exists();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let versions = versions.map(|entry| entry.expect("an entry").path());
    let Some(version) = versions.filter(|path| installed(path)).max() else {
        return gate::skipped("postgres is not installed (Debian: postgresql)");
    };
    if !harness::has_probes() {
        return gate::skipped("the kernel tells no program which probe has called it (Linux 5.15)");
    }
    let program = |name: &str| version.join("bin").join(name).to_str().expect("UTF-8").to_owned();
    // The stage's own folder is root's.
    let home = tempfile::TempDir::new().expect("a folder");
    let path = |name: &str| home.path().join(name).to_str().expect("UTF-8").to_owned();
    run(Command::new("chown").arg("postgres").arg(home.path()));
    run(as_its_user(&program("initdb")).args(["--no-sync", "-A", "trust", "-D", &path("data")]));
    for _ in 0..RECORDINGS {
        let dir = stage.path("trace");
        let log = fs::File::create(stage.path("log")).expect("a file");
        let mut record = agent();
        // Once for each statement of the simple protocol; the functions around it have no symbols.
        let probe = format!("{}:PortalRun", program("postgres"));
        record.args(["record", "-k", "default,futex", "--probe", &probe, "-o"]).arg(&dir).arg("--");
        // As `as_its_user` has it.
        record.args(["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        record.args([&program("postgres"), "-D", &path("data"), "-k", &path("")]);
        record.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "log_statement=all"]);
        record.stdout(Stdio::null()).stderr(log);
        let mut recording = Ended(record.spawn().expect("the agent starts"));
        let is_ready = || {
            let mut ask = as_its_user(&program("pg_isready"));
            ask.args(["-q", "-h", &path("")]).status().expect("it starts").success()
        };
        while !is_ready() {
            assert_eq!(
                recording.0.try_wait().expect("it is a child"),
                None,
                "the server has ended"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        let pgbench = |options: &[&str]| {
            let mut pgbench = as_its_user(&program("pgbench"));
            run(pgbench.args(["-h", &path(""), "-U", "postgres"]).args(options).arg("postgres"))
        };
        pgbench(&["-i", "-q", "-n"]);
        pgbench(&["-n", "-c", CLIENTS, "-j", "2", "-t", TRANSACTIONS]);
        let pid = fs::read_to_string(path("data/postmaster.pid")).expect("its number");
        run(Command::new("kill").args(["-INT", pid.lines().next().expect("a line")]));
        let log = || fs::read_to_string(stage.path("log")).expect("the log");
        assert!(recording.0.wait().expect("it ends").success(), "{}", log());
        let trace = harness::open(&dir);
        if !is_whole(&trace) {
            fs::remove_dir_all(&dir).expect("a folder");
            continue;
        }
        let found = requests(&trace);
        assert_eq!(found.len(), 1, "{:?}", found.keys());
        let found: Vec<&Request> = found.values().flatten().collect();
        // One for each statement that the server has logged.
        let logged = log().lines().filter(|line| line.contains("LOG:  statement: ")).count();
        assert_eq!(found.len(), logged);
        assert!(found.len() >= LEAST, "{}", found.len());
        let pieces: Vec<PathPiece> = trace.rows().map(|row| row.expect("a row")).collect();
        let elsewhere = pieces.iter().filter(|piece| piece.depth > 0).count();
        assert!(elsewhere > 0, "no statement has waited for another thread");
        agrees("pgbench", &dir);
        gate::measured(&format!(
            "{} statements of pgbench are requests, with {} pieces, {elsewhere} of them of other threads; {} waits at \
             semaphores, each ended by another process that posted",
            found.len(),
            pieces.len(),
            posted(&trace)
        ));
        return;
    }
    panic!("records were lost in all of {RECORDINGS} recordings");
}
