//! Traces that are brought, listed and removed.

use std::collections::BTreeMap;
use std::fs;
use std::process::Child;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use crate::files::files;
use crate::proxy::{Fate, Proxy};
use crate::server::Server;
use crate::stage::{Stage, URL, objects};

#[test]
fn a_trace_is_brought_listed_and_removed() {
    let Some(server) = Server::start() else { return };
    let stage = Stage::new(server.address);
    assert!(stage.fails(&["catalogue", URL]).contains("holds no traces; `ft-agent convert"));
    stage.says(&[
        "record",
        "-k",
        "none",
        "-o",
        "first",
        "--to",
        URL,
        "--label",
        "build=1.4",
        "--",
        "true",
    ]);
    let trace = files(&stage.path("first"));
    // Of more than one piece: it goes in several requests.
    stage.empty_trace("second");
    let large: Vec<u8> =
        (0..20_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    stage.enlarge("second", &large);
    stage.says(&["convert", "second", "--to", URL]);

    let traces = stage.traces(URL);
    assert_eq!(traces.len(), 2);
    let brought: Vec<_> = traces.iter().map(|path| objects(&server, path)).collect();
    assert!(brought.contains(&trace) && brought.contains(&files(&stage.path("second"))));
    let listed = stage.says(&["catalogue", URL]);
    assert!(listed.contains("build=1.4") && listed.contains("2 traces, "), "{listed}");

    let before = objects(&server, "");
    assert_eq!(before.len(), brought.iter().map(|files| files.len() + 1).sum::<usize>());
    let again = stage.run(&["convert", "first", "second", "--to", URL]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert_eq!(said.matches("was there already: s3://fleet/of/traces/host=").count(), 2, "{said}");
    assert_eq!(objects(&server, ""), before);

    let would = stage.says(&["catalogue", URL, "--older-than", "1us"]);
    assert!(would.ends_with("would be removed by --delete\n"), "{would}");
    assert_eq!(objects(&server, ""), before);
    stage.says(&["catalogue", URL, "--older-than", "1us", "--delete"]);
    assert_eq!(objects(&server, "").len(), 0);
    stage.says(&["convert", "first", "second", "--to", URL]);
    assert_eq!(stage.traces(URL), traces);
}

/// Each third request meets its fate; whatever that is, the catalogue is that of a good day.
#[test]
fn on_bad_days_nothing_is_lost_and_nothing_double() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    stage.empty_trace("trace");
    // One in several pieces, too.
    stage.enlarge("trace", &[7; 9 << 20]);
    let trace = files(&stage.path("trace"));
    for (day, fate) in [Fate::CutBefore, Fate::CutWithin, Fate::Fail, Fate::FailAfter, Fate::Slow]
        .into_iter()
        .enumerate()
    {
        let url = format!("s3://fleet/of/traces/{day}");
        let met = Mutex::new(BTreeMap::<String, usize>::new());
        let proxy = Proxy::start(server.address, move |nth, line| {
            let mut met = met.lock().unwrap();
            let often = met.entry(line.to_owned()).or_default();
            // Eight times in a row the same one would be more than an agent bears.
            if nth % 3 != 0 || *often == 4 {
                return Fate::Pass;
            }
            *often += 1;
            fate
        });
        stage.endpoint = proxy.address;
        stage.says(&["convert", "trace", "--to", &url]);
        let traces = stage.traces(&url);
        assert_eq!(traces.len(), 1, "{fate:?}");
        assert_eq!(objects(&server, &format!("{day}/{}", traces[0])), trace, "{fate:?}");
        assert_eq!(objects(&server, &day.to_string()).len(), trace.len() + 1, "{fate:?}");
        stage.says(&["catalogue", &url, "--older-than", "1us", "--delete"]);
        assert_eq!(objects(&server, &day.to_string()).len(), 0, "{fate:?}");
    }
}

/// Kills a process when its store has been asked so often; the request is done, or not.
pub(crate) fn killing_at(server: &Server, nth: usize, is_done: bool) -> (Proxy, Arc<AtomicI32>) {
    killing_when(server, move |request, _| request >= nth, is_done)
}

/// Kills a process when it asks its store this; the request is done, or not.
pub(crate) fn killing_when(
    server: &Server,
    is_it: impl Fn(usize, &str) -> bool + Send + Sync + 'static,
    is_done: bool,
) -> (Proxy, Arc<AtomicI32>) {
    let process = Arc::new(AtomicI32::new(0));
    let victim = process.clone();
    let proxy = Proxy::start(server.address, move |request, line| {
        if !is_it(request, line) {
            return Fate::Pass;
        }
        // It is started before its number is known here.
        let pid = loop {
            match victim.load(SeqCst) {
                0 => std::thread::yield_now(),
                pid => break pid,
            }
        };
        // SAFETY: a plain system call; a child of this test, which waits for it only when it has ended.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        if is_done { Fate::CutWithin } else { Fate::CutBefore }
    });
    (proxy, process)
}

pub(crate) fn started(child: Child, process: &AtomicI32) -> std::process::Output {
    process.store(child.id() as i32, SeqCst);
    child.wait_with_output().unwrap()
}

#[test]
fn whoever_is_killed_leaves_a_whole_trace_or_none() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    let trace = stage.empty_trace("trace");
    let mut killed = 0;
    // Each request of the first and the last of them, and some between.
    for nth in (1..8).chain((8..).step_by(15)) {
        let (proxy, process) = killing_at(&server, nth, nth % 2 == 0);
        stage.endpoint = proxy.address;
        let child = stage.agent(&["convert", "trace", "--to", URL]).spawn().unwrap();
        let output = started(child, &process);
        stage.endpoint = server.address;
        let rows = stage.traces(URL);
        for row in &rows {
            assert_eq!(objects(&server, row), trace, "at request {nth}");
        }
        if output.status.success() {
            assert_eq!(rows.len(), 1, "it has come to its end");
            break;
        }
        killed += 1;
        // All that is there in the end is from its beginning.
        if !rows.is_empty() || nth < 8 {
            stage.says(&["convert", "trace", "--to", URL]);
            stage.says(&["catalogue", URL, "--older-than", "1us", "--delete"]);
            assert_eq!(objects(&server, "").len(), 0, "at request {nth}");
        }
    }
    assert!(killed > 8, "{killed}");
}

/// What is there is not sent again, and what is there of the right size with other contents is.
#[test]
fn a_trace_goes_on_where_it_ended() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    let trace = stage.empty_trace("trace");
    let puts = Arc::new(AtomicUsize::new(0));
    let count = puts.clone();
    let proxy = Proxy::start(server.address, move |_, line| {
        if line.starts_with("PUT ") {
            // Half of the files, and then nothing any more.
            if count.fetch_add(1, SeqCst) >= 20 {
                return Fate::Fail;
            }
        }
        Fate::Pass
    });
    stage.endpoint = proxy.address;
    let why = stage.fails(&["convert", "trace", "--to", URL, "--label", "note=a b"]);
    assert!(why.contains("cannot reach s3://fleet/of/traces: "), "{why}");
    let again = "the trace is whole in trace: after that, run `ft-agent convert trace --to \
                 s3://fleet/of/traces --label 'note=a b'`";
    assert!(why.contains(again), "{why}");
    assert_eq!(stage.traces(URL).len(), 0);
    assert_eq!(files(&stage.path("trace")), trace);
    let there = objects(&server, "host=");
    assert!(there.len() >= 16 && there.len() < trace.len(), "{}", there.len());

    let sent = Arc::new(Mutex::new(Vec::new()));
    let lines = sent.clone();
    let proxy = Proxy::start(server.address, move |_, line| {
        if line.starts_with("PUT ") {
            lines.lock().unwrap().push(line.to_owned());
        }
        Fate::Pass
    });
    stage.endpoint = proxy.address;
    stage.says(&["convert", "trace", "--to", URL]);
    let sent = sent.lock().unwrap().len();
    assert_eq!(sent, trace.len() - there.len() + 1, "what was missing, and the row");
    assert_eq!(objects(&server, &stage.traces(URL)[0]), trace);
}

#[test]
fn two_at_once_do_no_harm() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    let trace = stage.empty_trace("trace");
    let proxy = Proxy::start(server.address, |nth, _| match nth % 5 {
        0 => Fate::Slow,
        _ => Fate::Pass,
    });
    stage.endpoint = proxy.address;
    let children: Vec<Child> =
        (0..3).map(|_| stage.agent(&["convert", "trace", "--to", URL]).spawn().unwrap()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let traces = stage.traces(URL);
    assert_eq!(traces.len(), 1);
    assert_eq!(objects(&server, &traces[0]), trace);
    assert_eq!(objects(&server, "").len(), trace.len() + 1);
}

/// Removed and brought at once: in the end it is there whole, or not at all.
#[test]
fn removing_and_bringing_at_once_leave_all_or_nothing() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    let trace = stage.empty_trace("trace");
    for round in 0..6 {
        stage.endpoint = server.address;
        stage.says(&["convert", "trace", "--to", URL]);
        let slow = Proxy::start(server.address, move |nth, _| match (nth + round) % 2 {
            0 => Fate::Slow,
            _ => Fate::Pass,
        });
        stage.endpoint = slow.address;
        let remove = ["catalogue", URL, "--older-than", "1us", "--delete"];
        let removes = stage.agent(&remove).spawn().unwrap();
        let mut brought = false;
        while !brought {
            let output = stage.run(&["convert", "trace", "--to", URL]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // Until its row has gone it is there already; then it is being removed.
            brought = said.contains("brought to");
            let known =
                brought || said.contains("was there already") || said.contains("is being removed");
            assert!(known, "{said}");
        }
        assert!(removes.wait_with_output().unwrap().status.success());
        let traces = stage.traces(URL);
        assert_eq!(traces.len(), 1);
        assert_eq!(objects(&server, &traces[0]), trace);
        assert_eq!(objects(&server, "").len(), trace.len() + 1);
        stage.says(&remove);
    }
}

#[test]
fn while_the_store_is_away_traces_wait_here() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    // A port that nobody listens at.
    stage.endpoint = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let record =
        ["record", "-k", "none", "-o", "one", "--to", URL, "--label", "build=1", "--", "true"];
    let why = stage.fails(&record);
    assert!(why.contains("warning: cannot reach s3://fleet/of/traces: "), "{why}");
    assert!(
        why.contains("run `ft-agent convert one --to s3://fleet/of/traces --label build=1`"),
        "{why}"
    );
    stage.says(&["report", "one", "time"]);
    stage.empty_trace("two");
    assert!(stage.fails(&["convert", "one", "two", "--to", URL]).contains("cannot reach"));

    stage.endpoint = server.address;
    fs::create_dir(stage.path("none")).unwrap();
    let why = stage.fails(&["convert", "none", "one", "two", "--to", URL]);
    assert!(why.contains("1 of 3 traces failed"), "{why}");
    assert_eq!(stage.traces(URL).len(), 2);

    // What no store can do is reported before anything is recorded.
    let record =
        ["record", "-k", "none", "-o", "three", "--to", "s3://no.such.bucket/x", "--", "true"];
    let why = stage.fails(&record);
    assert!(why.contains("check the bucket, and AWS_ACCESS_KEY_ID"), "{why}");
    assert!(!stage.path("three").exists());
}

/// It answers before the recording begins, and no more when that is over.
#[test]
fn what_was_recorded_while_the_store_went_away_is_brought_by_the_next_command() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    let proxy = Proxy::start(server.address, |nth, _| match nth {
        1 => Fate::Pass,
        _ => Fate::Fail,
    });
    stage.endpoint = proxy.address;
    let record = ["record", "-k", "none", "-o", "trace", "--to", URL, "--label", "build=1"];
    let why = stage.fails(&[&record[..], &["--", "true"]].concat());
    assert!(!why.contains("warning: cannot reach"), "it was there at first: {why}");
    let again = "ft-agent convert trace --to s3://fleet/of/traces --label build=1";
    assert!(why.contains(&format!("run `{again}`")), "{why}");
    assert_eq!(objects(&server, "").len(), 0);
    let trace = files(&stage.path("trace"));

    stage.endpoint = server.address;
    let words: Vec<&str> = again.split(' ').skip(1).collect();
    stage.says(&words);
    let [path] = &stage.traces(URL)[..] else { panic!("one trace") };
    assert_eq!(objects(&server, path), trace);
    let listed = stage.says(&["catalogue", URL]);
    assert!(listed.contains("build=1"), "{listed}");
}
