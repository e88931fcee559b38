//! Probes of programs that know nothing of tracing: their calls are requests, each of them, and nobody else's.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ft_trace::store::Trace;
use ft_trace::tables::{ProbeHit, ProbeKind, Request};
use serde_json::Value;

use crate::harness::{self, Stage, agent, assert_success, gate};
use crate::recomputed::agrees;

/// Rounds of the program.
const ROUNDS: usize = 50;

/// Recordings, at most, until one has lost no record.
pub(crate) const RECORDINGS: usize = 8;

/// Ends with the test, however that ends.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program that is probed.
fn compiled(stage: &Stage) -> PathBuf {
    compile(stage, "probes", "probes.c", &["-pthread"])
}

fn compile(stage: &Stage, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let program = stage.path(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu17", "-g", "-O1", "-o"]).arg(&program);
    compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(source));
    assert_success(&compiler.args(options).output().expect("a C compiler, cc"));
    program
}

/// The values of the report of requests.
fn report(dir: &Path) -> Value {
    let output = agent().arg("report").arg(dir).args(["requests", "--json"]).output();
    let output = output.expect("the agent starts");
    assert_success(&output);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["sections"]["requests"]["values"].clone()
}

pub(crate) fn requests(trace: &Trace) -> BTreeMap<String, Vec<Request>> {
    let mut found: BTreeMap<String, Vec<Request>> = BTreeMap::new();
    for request in trace.rows::<Request>() {
        let request = request.expect("a row");
        found.entry(request.kind.to_string()).or_default().push(request);
    }
    found
}

/// No record of the kernel was lost.
pub(crate) fn is_whole(trace: &Trace) -> bool {
    !trace.meta().lost.keys().any(|origin| origin.starts_with("kernel"))
}

#[test]
fn each_call_of_a_probed_function_is_a_request_with_its_own_time() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    if !harness::has_probes() {
        return gate::skipped("the kernel tells no program which probe has called it (Linux 5.15)");
    }
    let program = compiled(&stage);
    let path = program.to_str().expect("UTF-8");
    let names = ["outer", "leaf", "deep", "tail*", "lea?er", "leap", "usdt:ft:begin,end"];
    let probes = names.map(|name| format!("{path}:{name}"));
    // Probed as well, and nobody's business.
    let mut other = Command::new(&program);
    let other = other.arg("1000000000").stdout(Stdio::null()).spawn().expect("it starts");
    let _other = Ended(other);
    for _ in 0..RECORDINGS {
        let dir = stage.path("trace");
        let mut record = agent();
        record.args(["record", "-o"]).arg(&dir);
        probes.iter().for_each(|probe| _ = record.args(["--probe", probe]));
        let output = record.arg("--").arg(&program).arg(ROUNDS.to_string()).output();
        let output = output.expect("the agent starts");
        assert_success(&output);
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.starts_with('{')).expect("the program's truth");
        let trace = harness::open(&dir);
        if is_whole(&trace) {
            let output = agent().arg("report").arg(&dir).arg("requests").output();
            let output = output.expect("the agent starts");
            let said = String::from_utf8_lossy(&output.stdout).replace("\n  ", " ");
            assert!(said.contains("Each begin and end of probes:"), "{said}");
            assert!(said.contains("left without a recorded return"), "{said}");
            judge(&serde_json::from_str(line).expect("JSON"), &trace, &report(&dir));
            agrees("probes", &dir);
            return;
        }
        std::fs::remove_dir_all(&dir).expect("a folder");
    }
    panic!("records were lost in all of {RECORDINGS} recordings");
}

fn judge(truth: &Value, trace: &Trace, report: &Value) {
    let found = requests(trace);
    let n = |name: &str| truth[name].as_u64().expect("a number") as usize;
    let (deep, deepest, followed) = (n("deep"), n("deepest"), n("followed"));
    let counts: BTreeMap<&str, usize> = found.iter().map(|(k, r)| (k.as_str(), r.len())).collect();
    let expected = [
        ("probes:deep", ROUNDS * deep + followed),
        ("probes:ft:begin,end", 2 * ROUNDS),
        ("probes:leaf", 3 * ROUNDS),
        ("probes:outer", ROUNDS),
        ("probes:tail", ROUNDS),
        ("probes:tailed", ROUNDS),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
    // Of those that are left, the last one that `main` has called may go on for all that is known.
    let left = 2 * ROUNDS - 1 + deepest - followed;
    assert_eq!(report["counts"]["left"].as_u64(), Some(left as u64), "{report}");
    assert_eq!(report["counts"]["unpaired"]["begin_only"].as_u64(), Some(1), "{report}");
    assert_eq!(report["counts"]["unpaired"]["end_only"].as_u64(), Some(0), "{report}");

    // The program and the kernel read the same clock.
    let rounds = truth["outer"].as_array().expect("rounds").iter();
    assert_eq!(rounds.len(), ROUNDS);
    for (request, times) in found["probes:outer"].iter().zip(rounds) {
        let at = |i: usize| times[i].as_i64().expect("a time");
        let (begin, end) = (request.ts.0, request.ts.0 + request.dur);
        assert!(at(0) <= begin && begin <= at(1), "{request:?}\n{times}");
        assert!(at(2) <= end && end <= at(3), "{request:?}\n{times}");
        let within = |r: &&Request| begin < r.ts.0 && r.ts.0 + r.dur < end;
        assert_eq!(found["probes:leaf"].iter().filter(within).count(), 3);
    }
    // It sleeps, unless its time is over before it is off the CPU.
    let slept = |request: &&Request| request.path_timer_ns.is_some_and(|ns| ns > 0);
    let slept = found["probes:outer"].iter().filter(slept).count();
    assert!(slept > ROUNDS / 2, "{slept} of {ROUNDS}");
    // Calls of a function lie within each other.
    for calls in found["probes:deep"][..ROUNDS * deep].chunks(deep) {
        for pair in calls.windows(2) {
            let (outer, inner) = (&pair[0], &pair[1]);
            assert!(outer.ts < inner.ts && inner.ts.0 + inner.dur < outer.ts.0 + outer.dur);
        }
    }
    // Every hit is one of these.
    let hits: Vec<ProbeHit> = trace.rows().map(|row| row.expect("a row")).collect();
    let all = |kind| hits.iter().filter(|hit| hit.kind == kind).count();
    let ended = counts.values().sum::<usize>();
    assert_eq!((all(ProbeKind::Begin), all(ProbeKind::End)), (ended + left + 1, ended));
    let pids: Vec<_> = hits.iter().map(|hit| hit.pid).collect();
    assert!(pids.iter().all(|pid| *pid == pids[0]), "one program is observed");

    let costs = report["probes"].as_array().expect("what is probed");
    assert_eq!(costs.len(), expected.len() + 2, "leaper and leap, too: {costs:?}");
    for (probe, request) in costs.iter().filter_map(|p| Some((p, found.get(p["name"].as_str()?)?)))
    {
        let least = request.iter().map(|r| r.dur).min().expect("some") as f64;
        let within = probe["within_ns"].as_f64().expect("it was measured");
        gate::measured(&format!(
            "{}: {within:.0} ns within each, {least:.0} at least",
            probe["name"]
        ));
    }
    let costs = costs.iter().map(|probe| probe["cost_ns"].as_f64());
    let costs: Vec<f64> = costs.map(|ns| ns.expect("it was measured")).collect();
    assert!(costs.iter().all(|ns| *ns > 0.0), "{costs:?}");
    let (least, most) =
        (costs.iter().copied().reduce(f64::min), costs.into_iter().reduce(f64::max));
    gate::measured(&format!(
        "a begin and an end of a probe take {:.0} to {:.0} ns here",
        least.expect("some"),
        most.expect("some")
    ));
}

#[test]
fn as_many_commands_of_redis_are_probed_as_redis_says() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let there = |program: &str| Path::new("/usr/bin").join(program).exists();
    if !["redis-server", "redis-benchmark", "redis-cli"].into_iter().all(there) {
        return gate::skipped("redis is not installed (Debian: redis-server)");
    }
    if !harness::has_probes() {
        return gate::skipped("the kernel tells no program which probe has called it (Linux 5.15)");
    }
    let socket = stage.path("socket");
    let socket = socket.to_str().expect("UTF-8");
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(["-s", socket]).args(args).output();
        let output = output.expect("it starts");
        assert_success(&output);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for _ in 0..RECORDINGS {
        let dir = stage.path("trace");
        let mut record = agent();
        record.args(["record", "--probe", "redis-server:processCommand", "-o"]).arg(&dir);
        record.args(["--", "redis-server", "--port", "0", "--save", "", "--unixsocket", socket]);
        let mut recording = Ended(record.stdout(Stdio::null()).spawn().expect("the agent starts"));
        wait_for(socket);
        run("redis-benchmark", &["-n", "3000", "-c", "5", "-t", "set,lpush,ping", "-q"]);
        let said = run("redis-cli", &["info", "everything"]);
        let pid = value(&said, "process_id:").expect("its number");
        assert_success(&Command::new("kill").arg(pid).output().expect("it starts"));
        assert!(recording.0.wait().expect("it ends").success());
        let trace = harness::open(&dir);
        if !is_whole(&trace) {
            std::fs::remove_dir_all(&dir).expect("a folder");
            continue;
        }
        let found = requests(&trace);
        let counted = found.get("redis-server:processCommand").map_or(0, Vec::len);
        // Its answer is about all before it.
        assert_eq!(counted, commands(&said) + 1, "{said}");
        assert!(counted > 9000, "{counted}");
        assert_eq!(found.len(), 1, "{:?}", found.keys());
        agrees("redis", &dir);
        gate::measured(&format!("{counted} commands of redis, by its own count and by probes"));
        return;
    }
    panic!("records were lost in all of {RECORDINGS} recordings");
}

/// Waits until a server listens.
fn wait_for(socket: &str) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while std::os::unix::net::UnixStream::connect(socket).is_err() {
        assert!(Instant::now() < deadline, "nobody listens at {socket}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What stands behind a word at the begin of a line.
fn value<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(word)).map(str::trim)
}

/// The commands that redis has executed or refused: `cmdstat_set:calls=3,usec=…,rejected_calls=0,…`.
fn commands(info: &str) -> usize {
    let stats = info.lines().filter(|line| line.starts_with("cmdstat_"));
    let counts = stats.flat_map(|line| line.trim().split([':', ',']).skip(1));
    let of = |field: &str| {
        let (name, count) = field.split_once('=')?;
        ["calls", "rejected_calls"].contains(&name).then(|| count.parse::<usize>().ok())?
    };
    counts.filter_map(of).sum()
}

/// While a probed function goes on, and another file's probed one is called within it all the time, the kernel waits for the
/// first to return before a probe of it is gone (Linux 6.13).
#[test]
fn probes_of_a_function_that_nobody_leaves_are_gone_with_the_agent() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    if !harness::has_probes() {
        return gate::skipped("the kernel tells no program which probe has called it (Linux 5.15)");
    }
    let library = compile(&stage, "libinner.so", "nested.c", &["-DINNER", "-shared", "-fPIC"]);
    let linked = library.to_str().expect("UTF-8");
    let program = compile(&stage, "nested", "nested.c", &[linked]);
    let probes = [(&program, "outer"), (&library, "inner")];
    for is_killed in [false, true] {
        let mut nested = Command::new(&program);
        let nested = nested.arg("1000000").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut nested = Ended(nested.spawn().expect("it starts"));
        let mut record = agent();
        record.args(["record", "-o"]).arg(stage.path("trace"));
        let options = probes.map(|(file, name)| format!("--probe={}:{name}", file.display()));
        record.args(options).args(["--", "sh", "-c", "echo recorded; cat"]);
        let record = record.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut recording = Ended(record.spawn().expect("the agent starts"));
        assert_eq!(line(&mut recording), "recorded");
        nested.0.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
        assert_eq!(line(&mut nested), "entered");
        if is_killed {
            recording.0.kill().expect("it runs");
        }
        drop(recording.0.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(300);
        while recording.0.try_wait().expect("it is a child").is_none() {
            if Instant::now() > deadline {
                // Or nobody could end the agent.
                drop(nested);
                panic!("the agent waits for a function to return");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(nested.0.try_wait().expect("it is a child").is_none(), "it is still in `outer`");
        let _ = std::fs::remove_dir_all(stage.path("trace"));
    }
}

/// The next line that it prints.
fn line(of: &mut Ended) -> String {
    let mut line = String::new();
    let mut byte = [0];
    let stdout = of.0.stdout.as_mut().expect("a pipe");
    while stdout.read(&mut byte).expect("it can be read") == 1 && byte != *b"\n" {
        line.push(char::from(byte[0]));
    }
    line
}

/// The second of two sentences is the remedy; and what would crash a program is refused.
#[test]
fn what_cannot_be_probed_is_said_in_a_sentence() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let program = compiled(&stage);
    let path = program.to_str().expect("UTF-8");
    let check = |probe: &str, options: &[&str], expected: &str| {
        let mut record = agent();
        record.args(["record", "-o"]).arg(stage.path("none")).args(["--probe", probe]);
        let output = record.args(options).args(["--", "true"]).output().expect("the agent starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!stage.path("none").exists(), "nothing is left behind");
    };
    check(&format!("{path}:outre"), &[], "the nearest are: outer");
    check(&format!("{path}:usdt:ft:begin,finish"), &[], "the nearest are: ft:begin");
    check("no-such-program:f", &[], "there is no file `no-such-program`");
    check("libc.so.6:setjmp", &[], "returns more than once");
    check("outer", &[], "names no probe");
    if harness::has_probes() {
        check(&format!("{path}:outer"), &["-k", "default,lock"], "cannot be recorded together");
    }
    let stripped = stage.path("stripped");
    let mut strip = Command::new("strip");
    assert_success(&strip.arg("-o").args([&stripped, &program]).output().expect("binutils"));
    check(&format!("{}:outer", stripped.display()), &[], "has no symbols");
}
