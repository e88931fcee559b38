//! A server of hyper and h2 under load, which knows of us by one line: what it says with `tracing` is in the trace, each
//! request once.

use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use ft_trace::store::Trace;
use ft_trace::tables::{LossRow, PathPiece, Request, Scope, SiteKind, SiteRow, TaskEnd, UserEvent};
use serde_json::Value;

use crate::harness::{self, Stage, assert_success, gate};
use crate::recomputed::agrees;
use crate::tasks;

const ORDERS: u64 = 400;

/// `ft-agent` with these arguments.
fn run(arguments: &[&str]) -> Output {
    harness::agent().args(arguments).output().expect("the agent starts")
}

/// Events of each name and kind.
fn counts(trace: &Trace) -> BTreeMap<(String, SiteKind), u64> {
    let mut counts = BTreeMap::new();
    for event in trace.rows::<UserEvent>() {
        let event = event.expect("a row");
        *counts.entry((event.event.to_string(), event.kind)).or_default() += 1;
    }
    counts
}

#[test]
fn each_request_that_a_server_of_hyper_served_is_a_span() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let server = harness::example("ft-tracing", "server");
    for listener in ["alone", "beside"] {
        let dir = stage.path(listener);
        let out = dir.to_str().expect("UTF-8");
        let mut record = harness::agent();
        record.args(["record", "-o", out, "--"]).arg(&server);
        let output = record.args([&*ORDERS.to_string(), listener]).output().expect("it starts");
        assert_success(&output);
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.starts_with('{')).expect("what was served");
        let truth: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(truth["served"].as_u64(), Some(ORDERS));

        let trace = harness::open(&dir);
        let losses: Vec<LossRow> = trace.rows().map(|row| row.expect("a row")).collect();
        assert!(losses.iter().all(|loss| loss.pid.0 < 0), "rings have room for all: {losses:?}");
        let counts = counts(&trace);
        let count = |name: &str, kind| counts.get(&(name.to_owned(), kind)).copied().unwrap_or(0);
        for (name, times) in [
            ("shop.order.open", 1),
            ("shop.order.close", 1),
            ("shop.info", 1),
            ("shop.price.open", 2),
            ("shop.price.close", 2),
        ] {
            assert_eq!(count(name, SiteKind::Event), times * ORDERS, "{name}");
        }
        let polls = count("shop.order", SiteKind::ScopeBegin);
        // It is polled before and after it yields, and left once more when it is dropped.
        assert!(polls >= 3 * ORDERS, "{polls}");
        assert_eq!(count("shop.order", SiteKind::ScopeEnd), polls);
        let others: u64 =
            counts.iter().filter(|((name, _), _)| name.starts_with("h2::")).map(|(_, n)| n).sum();
        assert!(others >= 10 * ORDERS, "{others} events of h2, which nobody has changed");
        assert!(!counts.keys().any(|(name, _)| name == "ft_tracing.refused"));
        typed(&trace);

        let mut request = vec!["report", out, "requests", "--json"];
        request.extend(["--request", "shop.order.open,shop.order.close", "--key", "span"]);
        assert_success(&run(&request));
        served_by_tasks(&Trace::open(&dir).expect("a whole trace"));
        tasks::in_task(&dir);
        // What the kernel lost may hide where a thread was in a scope.
        let stretches = losses.is_empty().then_some(polls);
        sums(&Trace::open(&dir).expect("a whole trace"), stretches);
        let what = format!("spans of a server of hyper, {listener}");
        if agrees(&what, &dir) {
            gate::measured(&format!("{what}: {ORDERS} requests, {others} events of h2"));
        }
    }
}

/// What tokio's runtime was given as tasks, each once.
fn served_by_tasks(trace: &Trace) {
    let lives = tasks::lives(trace);
    let of = |name: &str| lives.get(name).map_or(0, Vec::len);
    assert_eq!((of("listener"), of("connection"), of("client")), (1, 4, 4), "{lives:?}");
    let clients = || lives["client"].iter().map(|(task, _)| task);
    assert!(clients().all(|task| task.end == TaskEnd::Ready), "{lives:?}");
    // Each order is waited for once at least.
    let (polls, wakes) = (
        clients().map(|task| task.polls).sum::<i64>(),
        clients().map(|task| task.wakes).sum::<i64>(),
    );
    assert!(polls >= ORDERS as i64 && wakes >= ORDERS as i64, "{polls} polls, {wakes} wakes");
}

/// Fields are columns of their types, and each order was recorded once.
fn typed(trace: &Trace) {
    let sites: Vec<SiteRow> = trace.rows().map(|row| row.expect("a row")).collect();
    let site = |name: &str, args: &str| {
        sites.iter().find(|site| &*site.event == name && &*site.args == args).map(|site| site.site)
    };
    let open =
        site("shop.order.open", "span:unsigned, parent:unsigned?, order:unsigned, method:str")
            .unwrap_or_else(|| panic!("{sites:?}"));
    let mut orders: Vec<i64> = trace
        .rows::<UserEvent>()
        .map(|event| event.expect("a row"))
        .filter(|event| event.site == open)
        .inspect(|event| assert_eq!(event.argt[3].as_deref(), Some("GET")))
        .map(|event| event.arg[2].expect("a number"))
        .collect();
    orders.sort_unstable();
    assert!(orders.into_iter().eq(0..ORDERS as i64));
}

/// A span is a request, whose critical path sums to it; its stretches are scopes whose parts do.
fn sums(trace: &Trace, stretches: Option<u64>) {
    let mut pieces: BTreeMap<i64, i64> = BTreeMap::new();
    for piece in trace.rows::<PathPiece>() {
        let piece = piece.expect("a row");
        *pieces.entry(piece.request).or_default() += piece.dur;
    }
    let requests = trace.rows::<Request>().map(|row| row.expect("a row"));
    let requests: Vec<_> = requests.filter(|request| request.key.is_some()).collect();
    assert_eq!(requests.len() as u64, ORDERS);
    let walked =
        requests.iter().filter_map(|request| Some((pieces.get(&request.request)?, request)));
    let walked: Vec<_> = walked.collect();
    assert!(!walked.is_empty(), "no critical path was stored");
    assert!(walked.into_iter().all(|(sum, request)| *sum == request.dur));
    let scopes = trace.rows::<Scope>().map(|row| row.expect("a row"));
    let scopes: Vec<_> = scopes.filter(|scope| &*scope.event == "shop.order").collect();
    assert!(stretches.is_none_or(|polls| scopes.len() as u64 == polls));
    assert!(!scopes.is_empty());
    for scope in scopes {
        assert_eq!(scope.parts.expect("a kernel stream").total_ns(), scope.dur);
    }
}

/// A server that serves until this is dropped.
struct Server(Child);

impl Server {
    fn start() -> Server {
        let mut server = Command::new(harness::example("ft-tracing", "server"));
        // Whoever else records on this machine has no part in it.
        server.args(["1000000000", "alone"]).env("FT_SOCKET", "/dev/null/none");
        Server(server.stdout(Stdio::null()).spawn().expect("the server starts"))
    }

    /// Triggers that are on, and all, of the sites of this name.
    fn state(&self, name: &str) -> Option<(u64, u64)> {
        let output = run(&["sites", "--json", "-p", &self.0.id().to_string()]);
        let listing: Value = serde_json::from_slice(&output.stdout).ok()?;
        let events = listing["events"].as_array()?;
        let event = events.iter().find(|event| event["event"] == name)?;
        Some((event["on"].as_u64()?, event["triggers"].as_u64()?))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn callsites_of_a_server_that_runs_are_switched_and_recorded_from_outside() {
    let stage = Stage::enter();
    let server = Server::start();
    let pid = server.0.id().to_string();
    // A callsite is known when it was first hit.
    let hit = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        server.state("shop.order").is_some() && server.state("shop.info").is_some()
    });
    assert!(hit, "no request was served");
    assert_eq!(server.state("shop.order"), Some((0, 1)));
    assert_success(&run(&["enable", "-p", &pid, "shop.*"]));
    assert_eq!(server.state("shop.order"), Some((1, 1)));
    assert_success(&run(&["disable", "-p", &pid, "shop.*"]));
    assert_eq!(server.state("shop.order"), Some((0, 1)));

    let dir = stage.path("attached");
    let mut record = harness::agent();
    record.args(["record", "-k", "none", "-e", "shop.*", "-p", &pid, "-o"]).arg(&dir);
    let mut recording = record.stdout(Stdio::null()).spawn().expect("the agent starts");
    let on = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        server.state("shop.info") == Some((1, 1))
    });
    assert!(on, "the recording does not enable what it was asked for");
    std::thread::sleep(Duration::from_millis(200));
    // SAFETY: takes no pointer; the child is ours, and not waited for yet.
    assert_eq!(unsafe { libc::kill(recording.id() as i32, libc::SIGTERM) }, 0);
    assert!(recording.wait().expect("it ends").success());
    assert_eq!(server.state("shop.order"), Some((0, 1)), "off again");
    let counts = counts(&Trace::open(&dir).expect("a whole trace"));
    let opened = counts[&("shop.order.open".to_owned(), SiteKind::Event)];
    assert!(opened > 0 && counts.keys().all(|(name, _)| name.starts_with("shop.")), "{counts:?}");
}
