//! `ft-agent record --preload`: a C program's locks, their depth, the places of its calls, and what the kernel
//! did during its holds; a server under load, with rings of the default size; processes that fork and execute.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ft_trace::Mark;
use ft_trace::spool::Spool;
use ft_trace::store::Trace;
use ft_trace::tables::{CriticalSection, LossOrigin, LossRow, SymbolRow};
use ft_trace::warning::Warning;

use ft_tests::built::preload as library;
use ft_tests::gate;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/ledger.c");

const NAPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/naps.c");

fn compile(program: &Path, options: &[&str]) {
    compile_from(SOURCE, program, options);
}

fn compile_from(source: &str, program: &Path, options: &[&str]) {
    let mut command = Command::new("cc");
    command.args(["-std=gnu17", "-g", "-O1", "-pthread", source, "-o"]).arg(program).args(options);
    assert!(command.status().expect("a C compiler, cc").success());
}

/// The agent that records a program, without the kernel.
fn recording(trace: &Path, library: &Path, program: &Path) -> Command {
    recording_with(&["-k", "none"], trace, library, program)
}

fn recording_with(options: &[&str], trace: &Path, library: &Path, program: &Path) -> Command {
    let mut command = Command::new(ft_tests::agent());
    command.args(["record", "--preload"]).args(options).arg("-o");
    command.arg(trace).arg("--").arg(program).env("FT_PRELOAD", library);
    command
}

fn record(trace: &Path, library: &Path, program: &Path) -> Output {
    recording(trace, library, program).output().unwrap()
}

/// Where a program of another package is; says so when it is not installed.
fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|p| p.is_file());
    if found.is_none() {
        gate::skipped(&format!("{program} is not installed (cargo xtask setup installs it)"));
    }
    found
}

/// The holds of a trace that lacks nothing.
fn holds(trace: &Path) -> Vec<CriticalSection> {
    let trace = Trace::open(trace).unwrap();
    assert!(trace.meta().lost.is_empty(), "{:?}", trace.meta().lost);
    assert_eq!(trace.meta().rejected, 0);
    trace.rows().map(|row| row.unwrap()).collect()
}

#[test]
fn locks_of_an_unmodified_program() {
    let directory = tempfile::tempdir().unwrap();
    let (program, trace) = (directory.path().join("ledger"), directory.path().join("trace"));
    compile(&program, &[]);
    let output = record(&trace, library(), &program);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "the program's own status: {errors}");

    let trace = Trace::open(&trace).unwrap();
    assert_eq!(trace.meta().rejected, 0);
    let sections: Vec<CriticalSection> = trace.rows().map(|row| row.unwrap()).collect();
    let mutexes: Vec<_> = sections.iter().filter(|s| &*s.kind == "mutex").collect();
    let transfers = |depth| mutexes.iter().filter(|s| s.depth == depth).count();
    assert_eq!((transfers(0), transfers(1)), (2000, 2000));
    let line = std::fs::read_to_string(SOURCE).unwrap();
    let line = 1 + line.lines().position(|l| l.contains("looks for")).unwrap();
    let inner = format!("transfer (ledger.c:{line})");
    let name = |depth| ["outer", "inner"][depth as usize];
    assert!(mutexes.iter().all(|s| &*s.lock_name == name(s.depth)), "{:?}", mutexes[0]);
    assert!(mutexes.iter().all(|s| (s.depth == 1) == (*s.place == inner)), "{:?}", mutexes[0]);
    // A semaphore that one thread posts and another takes makes no hold.
    assert!(sections.iter().all(|s| &*s.kind == "mutex"));

    let symbols: Vec<SymbolRow> = trace.rows().map(|row| row.unwrap()).collect();
    let functions: Vec<&str> = symbols.iter().map(|row| &*row.symbol).collect();
    assert!(
        ["transfer", "worker", "main"].iter().all(|name| functions.contains(name)),
        "{functions:?}"
    );
}

/// Of a child without a descriptor nothing can be recorded: its parent's trace says so.
#[test]
fn a_child_that_cannot_be_recorded_is_a_loss_of_unknown_number() {
    const PROGRAM: &str = "
        #include <fcntl.h>
        #include <pthread.h>
        #include <sys/resource.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        static void hold(void) { pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex); }
        int main(void) {
            struct rlimit few = {64, 64};
            setrlimit(RLIMIT_NOFILE, &few);
            while (open(\"/dev/null\", O_RDONLY) >= 0) ;
            pid_t child = fork();
            if (child < 0) return 2;
            if (child == 0) { for (int i = 0; i < 1000; i++) hold(); _exit(0); }
            int status = 0;
            if (waitpid(child, &status, 0) != child || status != 0) return 3;
            for (int i = 0; i < 10; i++) hold();
            return 0;
        }";
    let directory = tempfile::tempdir().unwrap();
    let (program, trace) = (directory.path().join("alone"), directory.path().join("trace"));
    let source = directory.path().join("alone.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-pthread", "-o"]).arg(&program).arg(&source);
    assert!(compile.status().expect("a C compiler, cc").success());
    let output = record(&trace, library(), &program);
    assert_eq!(output.status.code(), Some(0), "it forks, and its child ends well: {output:?}");
    let report = String::from_utf8_lossy(&output.stderr);
    let words: Vec<&str> = report.split_whitespace().collect();
    let report = words.join(" ");
    assert!(report.contains("a child that it has forked is not recorded"), "{report}");

    let trace = Trace::open(&trace).unwrap();
    let losses: Vec<LossRow> = trace.rows().map(|row| row.unwrap()).collect();
    let [loss] = &losses[..] else { panic!("{losses:?}") };
    assert_eq!((loss.origin, &*loss.what, loss.count), (LossOrigin::Child, "not recorded", 0));
    let holds: Vec<CriticalSection> = trace.rows().map(|row| row.unwrap()).collect();
    assert_eq!(holds.len(), 10);
    assert!(holds.iter().all(|hold| hold.mark == Mark::Exact), "the parent's own are whole");
}

/// What a thread holds when it is attached to was not seen to be acquired: depths are at least those that are counted.
#[test]
fn depths_of_what_was_attached_to_while_it_held_a_lock_are_lower_bounds() {
    const PROGRAM: &str = "
        #include <pthread.h>
        #include <stdio.h>
        static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
        int main(void) {
            pthread_mutex_lock(&outer);
            puts(\"held\"), fflush(stdout);
            getchar();
            for (int i = 0; i < 50; i++) pthread_mutex_lock(&inner), pthread_mutex_unlock(&inner);
            pthread_mutex_unlock(&outer);
            return 0;
        }";
    let directory = tempfile::tempdir().unwrap();
    let (program, mut trace) = (directory.path().join("outer"), directory.path().join("trace"));
    let source = directory.path().join("outer.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-pthread", "-o"]).arg(&program).arg(&source);
    assert!(compile.status().expect("a C compiler, cc").success());
    let mut traced = Command::new(&program);
    // It asks no agent to record it: that of another test would keep it.
    traced.env("FT_SOCKET", "/dev/null/none");
    traced.env("LD_PRELOAD", library()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut traced = traced.spawn().unwrap();
    let mut said = BufReader::new(traced.stdout.take().unwrap());
    said.read_line(&mut String::new()).unwrap();

    let traced_id = traced.id().to_string();
    let record = |trace: &Path| {
        let mut agent = Command::new(ft_tests::agent());
        agent.args(["record", "-k", "none", "-e", "lock.*", "-p", &traced_id, "-o"]);
        agent.arg(trace).stdout(Stdio::null()).spawn().unwrap()
    };
    let mut agent = record(&trace);
    // Who lists the sites before the recording has the process would keep it out.
    let has_it = |trace: &Path| {
        let registry = std::fs::read(Spool::of(trace).registry());
        registry.is_ok_and(|bytes| bytes.windows(13).any(|w| w == b"mutex_release"))
    };
    let is_on = || {
        let mut sites = Command::new(ft_tests::agent());
        let sites =
            sites.args(["sites", "--json", "-p", &traced.id().to_string()]).output().unwrap();
        let listing: serde_json::Value = serde_json::from_slice(&sites.stdout).unwrap();
        let mut events = listing["events"].as_array().unwrap().iter();
        events.any(|event| event["event"] == "lock.mutex_release" && event["on"] != 0)
    };
    let mut tries = 1;
    while !has_it(&trace) || !is_on() {
        if agent.try_wait().unwrap().is_some() {
            assert!(tries < 5, "the agent goes on");
            tries += 1;
            trace = directory.path().join(format!("trace-{tries}"));
            agent = record(&trace);
        }
    }
    drop(traced.stdin.take());
    assert!(traced.wait().unwrap().success());
    assert!(agent.wait().unwrap().success());

    let trace = Trace::open(&trace).unwrap();
    let holds: Vec<CriticalSection> = trace.rows().map(|row| row.unwrap()).collect();
    assert_eq!(holds.len(), 50);
    assert!(holds.iter().all(|hold| (hold.depth, hold.depth_mark) == (0, Mark::LowerBound)));
}

#[test]
fn holds_of_an_unmodified_program_have_the_parts_that_the_kernel_saw() {
    if !gate::recordable_or_skip() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (program, trace) = (directory.path().join("ledger"), directory.path().join("trace"));
    compile(&program, &[]);
    let output = recording_with(&[], &trace, library(), &program).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "the program's own status: {errors}");

    let trace = Trace::open(&trace).unwrap();
    assert_eq!(trace.meta().clock.violations, 0, "events outside of running intervals");
    let holds: Vec<CriticalSection> = trace.rows().map(|row| row.unwrap()).collect();
    assert_eq!(holds.len(), 4000);
    for hold in &holds {
        let parts = hold.parts.expect("a kernel stream was recorded");
        assert_eq!(parts.total_ns(), hold.dur, "{hold:?}");
        // Of a hold within one step of the counter both ends are read at the same time.
        let has_run = parts.running_ns > 0 || hold.dur == 0;
        assert!(parts.to_array().iter().all(|&ns| ns >= 0) && has_run, "{hold:?}");
    }
}

#[test]
fn a_static_program_is_out_of_reach() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("ledger");
    compile(&program, &["-static"]);
    let output = record(&directory.path().join("trace"), library(), &program);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("--preload does not reach") && errors.contains("statically"),
        "{errors}"
    );
    assert_eq!(output.status.code(), Some(7), "it runs all the same");
}

#[test]
fn without_the_library_nothing_is_run() {
    let directory = tempfile::tempdir().unwrap();
    let output =
        record(&directory.path().join("trace"), Path::new("/nonexistent"), Path::new("true"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("FT_PRELOAD"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_study_of_a_program_counts_every_critical_section() {
    let directory = tempfile::tempdir().unwrap();
    let (program, trace) = (directory.path().join("ledger"), directory.path().join("trace"));
    compile(&program, &[]);
    let study = |args: &[&str]| {
        let mut agent = Command::new(ft_tests::agent());
        agent.arg("study").args(args).env("FT_PRELOAD", library()).output().unwrap()
    };
    let [out, command] = [&trace, &program].map(|path| path.to_str().unwrap());
    let output = study(&["-o", out, "--", command]);
    assert_eq!(output.status.code(), Some(7), "the program's own status");
    let text = String::from_utf8(output.stdout).unwrap();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    let not_nested = "not nested 50.0 % over 70 % over 85 %, loaded more often";
    for expected in [not_nested, "0 2,000 50.0 %", "1 2,000 50.0 %"] {
        assert!(lines.iter().any(|line| line.starts_with(expected)), "{expected}\n{text}");
    }
    let json: serde_json::Value = serde_json::from_slice(&study(&["--json", out]).stdout).unwrap();
    assert_eq!(json["sections"]["study"]["values"]["depths"], serde_json::json!([2000, 2000]));
}

#[test]
fn server_under_load() {
    /// Of each client.
    const REQUESTS: usize = 500;
    let Some(memcached) = installed("memcached") else { return };
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut agent = recording(&trace, library(), &memcached)
        // -A: it ends on request.
        .args(["-A", "-l", "127.0.0.1", "-t", "2", "-u", "nobody", "-p", &port.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let connect = || loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return stream,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(300), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    std::thread::scope(|scope| {
        for client in 0..2 {
            scope.spawn(move || {
                let mut stream = connect();
                stream.set_nodelay(true).unwrap();
                let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
                for i in 0..REQUESTS {
                    let request = format!("set k{client}-{i} 0 0 5\r\n{i:05}\r\n");
                    stream.write_all(request.as_bytes()).unwrap();
                    assert_eq!(answers.next().unwrap().unwrap(), "STORED");
                }
            });
        }
    });
    connect().write_all(b"shutdown\r\n").unwrap();
    assert!(agent.wait().unwrap().success(), "the server's own status");

    let holds = holds(&trace);
    assert!(holds.len() > 2 * REQUESTS);
    assert!(holds.iter().all(|hold| hold.dur >= 0 && hold.place.contains('+')), "{:?}", holds[0]);
}

#[test]
fn processes_that_fork_and_execute() {
    let (Some(make), Some(_)) = (installed("make"), installed("pigz")) else { return };
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    std::fs::write(directory.path().join("text"), "a line to pack\n".repeat(100_000)).unwrap();
    let rules = "all: 1.gz 2.gz 3.gz 4.gz\n%.gz: text\n\tpigz -n -p2 -c text > $@\n";
    std::fs::write(directory.path().join("Makefile"), rules).unwrap();
    let status = recording(&trace, library(), &make)
        .arg("-j4")
        .arg("-C")
        .arg(directory.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let packed = |n| std::fs::read(directory.path().join(format!("{n}.gz"))).unwrap();
    assert!((2..=4).all(|n| packed(n) == packed(1)));

    let holds = holds(&trace);
    let processes: HashSet<_> = holds.iter().map(|hold| hold.pid).collect();
    assert!(processes.len() >= 4, "each pigz is a process of its own: {processes:?}");
}

/// AddressSanitizer's library refuses to come behind another one; the sanitizer that is linked in comes first.
#[test]
fn locks_of_a_program_with_address_sanitizer() {
    for linked in ["-shared-libasan", "-static-libasan"] {
        let directory = tempfile::tempdir().unwrap();
        let (program, trace) = (directory.path().join("ledger"), directory.path().join("trace"));
        // gcc links the shared library unless told otherwise, and knows no word for it.
        let options = ["-fsanitize=address", linked];
        let given = if linked == "-shared-libasan" { &options[..1] } else { &options[..] };
        compile(&program, given);
        let output = record(&trace, library(), &program);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{linked}: the program's own status: {errors}");
        let mutexes = holds(&trace).iter().filter(|s| &*s.kind == "mutex").count();
        assert_eq!(mutexes, 4000, "{linked}");
    }
}

/// Programs that a script starts, into which the dynamic linker does not load the library.
#[test]
fn programs_that_were_not_reached_are_named() {
    if !gate::recordable_or_skip() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (foreign, trace) = (at("setuid"), at("trace"));
    compile(&at("reached"), &[]);
    compile_from(NAPS, &at("cleared"), &[]);
    compile_from(NAPS, &at("fixed"), &["-static"]);
    std::fs::copy(at("cleared"), at("roomless")).unwrap();
    std::fs::copy(at("cleared"), &foreign).unwrap();
    // Another program has the name where a shell looks first.
    std::fs::create_dir(at("namesakes")).unwrap();
    std::fs::copy(at("fixed"), at("namesakes").join("cleared")).unwrap();
    // Not root's rights but those of `nobody`: another user's all the same.
    std::os::unix::fs::chown(&foreign, Some(65534), Some(65534)).unwrap();
    std::fs::set_permissions(&foreign, std::fs::Permissions::from_mode(0o4755)).unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = "reached; setuid & fixed & fixed & env -i \"$CLEARED\" & (ulimit -f 8; exec roomless) & wait; true";
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{path}", at("namesakes").display(), directory.path().display());
    let output = Command::new(ft_tests::agent())
        .args(["record", "--preload", "-o"])
        .arg(&trace)
        .args(["--", "sh", "-c", script])
        .env("FT_PRELOAD", library())
        .env("CLEARED", at("cleared"))
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let trace = Trace::open(&trace).unwrap();
    let untraced = trace.meta().warnings.iter().find_map(|warning| match warning {
        Warning::Untraced { runs, of, programs } => Some((*runs, *of, programs.clone())),
        _ => None,
    });
    let (runs, of, programs) = untraced.expect("a warning");
    // The shell, `env`, and its six; `true` is its own.
    assert_eq!((runs, of), (5, 8), "{programs:?}");
    for (name, runs, reason) in [
        ("fixed", 2, "it is statically linked"),
        ("setuid", 1, "rights of its owner"),
        ("cleared", 1, "environment cleared"),
        // Whether a look comes before the library is there, or behind it.
        ("roomless", 1, "file size left"),
    ] {
        let of_name = || programs.iter().filter(|program| program.name == name);
        assert_eq!(of_name().map(|program| program.runs).sum::<u64>(), runs, "{programs:?}");
        // Nobody may have looked at one in time.
        let mut reasons = of_name().filter_map(|program| program.reason.as_deref());
        assert!(reasons.all(|told| told.contains(reason)), "{programs:?}");
    }
    assert!(programs.iter().any(|program| program.reason.is_some()), "{programs:?}");
}

/// Each program leaves its rings behind; nothing of it is to be switched any more.
#[test]
fn a_process_that_executes_one_program_after_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let (script, trace) = (directory.path().join("chain"), directory.path().join("trace"));
    // Long enough that the processes are looked at between two of its programs.
    let next = "[ $1 -ge 30 ] && exit; n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done; \
                exec sh $0 $(($1 + 1))";
    std::fs::write(&script, next).unwrap();
    let output = Command::new(ft_tests::agent())
        .args(["record", "--preload", "-k", "none", "-o"])
        .arg(&trace)
        .args(["--", "sh"])
        .arg(&script)
        .arg("0")
        .env("FT_PRELOAD", library())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("stay off"), "{said}");
}
