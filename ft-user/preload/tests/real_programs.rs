//! Programs of Debian's packages do under the library, with all events on, what they do without it.
//!
//! A program that is not installed is left out, and the test says so (`cargo xtask setup` installs all).

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../../tests/common/said.rs"]
mod said;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::{Event, Memory};
use ft_user::layout::SiteKind;

/// Whether all of these programs are installed; says what is missing.
fn installed(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        !std::env::split_paths(&path).any(|directory| directory.join(program).exists())
    });
    missing.inspect(|program| said::skipped(&format!("{program} is not installed"))).is_none()
}

fn traced(command: &mut Command) -> &mut Command {
    let library = std::env::current_exe().unwrap().with_file_name("libft_preload.so");
    command.env("LD_PRELOAD", library).env("FT_ENABLE", "lock.*").env("FT_SOCKET", "/nonexistent")
}

/// A directory of its own, empty.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-files"));
    fs::remove_dir_all(&path).ok();
    fs::create_dir_all(&path).unwrap();
    path
}

/// Runs a command plain and traced; exit, output and errors must be equal. Returns the output.
fn same(make: impl Fn() -> Command) -> Vec<u8> {
    let mut plain = make();
    let Output { status, stdout, stderr } = plain.output().unwrap();
    let other = traced(&mut make()).output().unwrap();
    assert_eq!(status, other.status, "{plain:?}");
    assert_eq!(String::from_utf8_lossy(&stderr), String::from_utf8_lossy(&other.stderr));
    assert!(stdout == other.stdout, "{plain:?} writes something else");
    assert!(status.success(), "{plain:?}");
    stdout
}

/// Five megabytes that compress, but not to nothing.
fn text() -> Vec<u8> {
    let mut state = 1u32;
    let mut text = Vec::new();
    while text.len() < 5_000_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        writeln!(text, "line {} {:x}", text.len(), state >> 20).unwrap();
    }
    text
}

#[test]
fn compressors_with_threads() {
    let directory = directory("compressors");
    let file = directory.join("text");
    fs::write(&file, text()).unwrap();
    for (program, threads) in [("pigz", "-p4"), ("xz", "-T4"), ("zstd", "-T4")] {
        if !installed(&[program]) {
            continue;
        }
        let packed = same(|| {
            let mut command = Command::new(program);
            // Blocks of a size that gives each thread several.
            let more: &[&str] = match program {
                "pigz" => &["-n"],
                "xz" => &["-1", "--block-size=500000"],
                _ => &["-q", "-B500000"],
            };
            command.arg(threads).args(more).arg("-c").arg(&file);
            command
        });
        assert!(packed.len() > 100_000);
        let packed_file = directory.join(program);
        fs::write(&packed_file, packed).unwrap();
        let unpacked = same(|| {
            let mut command = Command::new(program);
            command.args(["-d", "-c"]).stdin(fs::File::open(&packed_file).unwrap());
            command
        });
        assert!(unpacked == fs::read(&file).unwrap(), "{program}");
    }
}

#[test]
fn database_in_a_file() {
    if !installed(&["sqlite3"]) {
        return;
    }
    let directory = directory("sqlite");
    let script = "PRAGMA journal_mode=WAL; CREATE TABLE t(a, b);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
            INSERT INTO t SELECT i, hex(i * 7919) FROM n;
        CREATE INDEX i ON t(b); SELECT count(*), sum(a), max(b) FROM t;";
    let output = same(|| {
        let file = directory.join("base");
        fs::remove_file(&file).ok();
        let mut command = Command::new("sqlite3");
        command.arg(file).arg(script);
        command
    });
    assert!(String::from_utf8_lossy(&output).contains("20000|200010000|"));
}

#[test]
fn processes_that_fork_and_execute() {
    if !installed(&["make", "pigz"]) {
        return;
    }
    let directory = directory("make");
    fs::write(directory.join("text"), text()).unwrap();
    let rules = "all: $(foreach n,1 2 3 4 5 6,$n.gz)\n%.gz: text\n\t@pigz -n -p2 -c text > $@\n";
    fs::write(directory.join("Makefile"), rules).unwrap();
    same(|| {
        for n in 1..=6 {
            fs::remove_file(directory.join(format!("{n}.gz"))).ok();
        }
        let mut command = Command::new("make");
        command.args(["-j4", "-C"]).arg(&directory).arg("--no-print-directory");
        command
    });
    let first = fs::read(directory.join("1.gz")).unwrap();
    assert!((2..=6).all(|n| fs::read(directory.join(format!("{n}.gz"))).unwrap() == first));
}

/// A server and its events.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts a traced server on a free port of the loopback, and waits until it answers.
    fn start(command: impl FnOnce(u16) -> Command) -> Server {
        // Free now; that another takes it before the server does is possible and improbable.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = command(port);
        // Room for what comes before the first reading, and while an unoptimised reader is slow.
        traced(&mut command).env("FT_RING_SLOTS", "1048576");
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let server = Server { process, port };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(20), "the server does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    /// Does `work` while the events are taken, as the agent takes them.
    fn events(&self, work: impl FnOnce()) -> Vec<Event> {
        let mut memory = Memory::of(self.process.id());
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut events = Vec::new();
                while !over.load(Relaxed) {
                    events.extend(memory.take());
                    std::thread::sleep(Duration::from_millis(1));
                }
                events.extend(memory.take());
                events
            });
            work();
            over.store(true, Relaxed);
            reader.join().unwrap()
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Acquisitions and releases of a program that goes on: what was acquired is released, but for what is held
/// at the begin and the end.
fn check_balance(events: &[Event], at_least: usize) {
    let count =
        |kinds: &[SiteKind]| events.iter().filter(|event| kinds.contains(&event.kind)).count();
    let acquired = count(&[SiteKind::LockAcquire, SiteKind::CondWake]);
    let released = count(&[SiteKind::LockRelease, SiteKind::CondWait]);
    assert!(acquired >= at_least, "{acquired} acquisitions");
    assert!(acquired.abs_diff(released) < 100, "{acquired} acquired, {released} released");
    assert!(events.iter().all(|event| event.name != "loss"), "nothing is lost");
}

#[test]
fn memcached_under_load() {
    if !installed(&["memcached"]) {
        return;
    }
    let mut server = Server::start(|port| {
        let mut command = Command::new("memcached");
        command.args(["-l", "127.0.0.1", "-t", "4", "-u", "nobody", "-p", &port.to_string()]);
        command
    });
    let port = server.port;
    let events = server.events(|| {
        std::thread::scope(|scope| {
            for client in 0..4 {
                scope.spawn(move || {
                    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
                    stream.set_nodelay(true).unwrap();
                    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
                    let mut send = |request: &str| stream.write_all(request.as_bytes()).unwrap();
                    let mut answer = || answers.next().unwrap().unwrap();
                    for i in 0..2000 {
                        send(&format!("set k{client}-{i} 0 0 5\r\n{i:05}\r\n"));
                        assert_eq!(answer(), "STORED");
                        send(&format!("get k{client}-{i}\r\n"));
                        assert_eq!(answer(), format!("VALUE k{client}-{i} 0 5"));
                        assert_eq!(answer(), format!("{i:05}"));
                        assert_eq!(answer(), "END");
                    }
                });
            }
        });
    });
    check_balance(&events, 4 * 2000 * 2);
    // SAFETY: our own child, not waited for yet.
    unsafe { libc::kill(server.process.id() as i32, libc::SIGTERM) };
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn redis_under_load_and_its_forked_child() {
    if !installed(&["redis-server", "redis-benchmark", "redis-cli"]) {
        return;
    }
    let directory = directory("redis");
    let mut server = Server::start(|port| {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
        command.args(["--io-threads", "2", "--io-threads-do-reads", "yes"]);
        command.args(["--port", &port.to_string(), "--dir"]).arg(&directory);
        command
    });
    let port = server.port.to_string();
    let ask = |arguments: &[&str]| {
        let output =
            Command::new("redis-cli").args(["-p", &port]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let events = server.events(|| {
        let load = ["-t", "set,get,lpush,lpop", "-n", "10000", "-c", "20", "-P", "4", "-q"];
        let benchmark = Command::new("redis-benchmark")
            .args(["-h", "127.0.0.1", "-p", &port])
            .args(load)
            .output()
            .unwrap();
        assert!(benchmark.status.success());
        assert_eq!(ask(&["set", "a", "b"]), "OK");
        assert_eq!(ask(&["get", "a"]), "b");
        // The child writes the data base and is a traced process of its own.
        assert_eq!(ask(&["bgsave"]), "Background saving started");
        let start = Instant::now();
        while !ask(&["info", "persistence"]).contains("rdb_bgsave_in_progress:0") {
            assert!(start.elapsed() < Duration::from_secs(20), "the child does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(ask(&["info", "persistence"]).contains("rdb_last_bgsave_status:ok"));
    });
    check_balance(&events, 100);
    ask(&["shutdown", "nosave"]);
    assert!(server.process.wait().unwrap().success());
}
