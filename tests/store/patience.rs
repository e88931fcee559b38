//! How long a store is waited for that does not come to an end, and for how many traces.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::files::files;
use crate::proxy::{Fate, Proxy};
use crate::server::Server;
use crate::stage::{Stage, URL, objects};

/// As the environment of a user says it; ours is a minute.
const PATIENCE: (&str, &str) = ("AWS_READ_TIMEOUT", "5s");

/// One trace in a store, with a table of this many bytes that nothing reads.
fn brought(stage: &Stage, bytes: usize) -> String {
    stage.stored_trace("preload", "trace");
    fs::create_dir(stage.path("trace/ballast")).unwrap();
    fs::write(stage.path("trace/ballast/part-00000.parquet"), vec![7; bytes]).unwrap();
    stage.says(&["convert", "trace", "--to", URL]);
    let [path] = &stage.traces(URL)[..] else { panic!("one trace") };
    path.clone()
}

/// Without a bound on what comes in a time, this would take six hours.
#[test]
fn a_store_that_sends_a_byte_now_and_then_is_away() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    let path = brought(&stage, 200_000);
    let proxy = Proxy::start(server.address, |_, line| match line.contains("/ballast/") {
        true => Fate::Drip,
        false => Fate::Pass,
    });
    stage.endpoint = proxy.address;
    let output = stage.agent(&["analyze", URL]).env(PATIENCE.0, PATIENCE.1).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with(&format!("{path}: failed: cannot reach {URL}: ")), "{said}");
    assert!(said.contains("too little came of it in 5s"), "{said}");
    assert_eq!(files(&stage.path("tmp")).len(), 0, "no copy is left");
}

/// All of it takes longer than a store may say nothing, and it comes all the same. A busy machine may delay each piece by seconds.
#[test]
fn a_store_that_is_slow_is_not() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    brought(&stage, 12 * (64 << 10));
    let proxy = Proxy::start(server.address, |_, line| match line.contains("/ballast/") {
        true => Fate::Trickle,
        false => Fate::Pass,
    });
    stage.endpoint = proxy.address;
    let output = stage.agent(&["analyze", URL]).env(PATIENCE.0, "10s").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(": analysed, "), "{output:?}");
}

/// A request as a person writes it.
fn plain(line: &str) -> String {
    line.replace("%3D", "=").replace("%2F", "/")
}

/// Traces of several hosts in a catalogue.
pub(crate) fn hosts(stage: &Stage, url: &str, count: usize) -> Vec<String> {
    stage.stored_trace("preload", "trace");
    let meta = fs::read_to_string(stage.path("trace/meta.json")).unwrap();
    let (before, rest) = meta.split_once("\"host\": \"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    for host in 0..count {
        let of_host = format!("{before}\"host\": \"h{host}\"{after}");
        fs::write(stage.path("trace/meta.json"), of_host).unwrap();
        stage.says(&["convert", "trace", "--to", url]);
    }
    stage.traces(url)
}

#[test]
fn analyze_gives_up_a_store_that_went_away_once_and_not_at_each_trace() {
    const TRACES: usize = 6;
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    let traces = hosts(&stage, URL, TRACES);
    // The catalogue is listed; then comes no more.
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let proxy = Proxy::start(server.address, move |_, line| match plain(line).contains("host=") {
        true => {
            count.fetch_add(1, SeqCst);
            Fate::Fail
        }
        false if count.load(SeqCst) > 0 => Fate::Fail,
        false => Fate::Pass,
    });
    stage.endpoint = proxy.address;
    let output = stage.run(&["analyze", URL, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of: Vec<_> = answer["traces"].as_array().unwrap().iter().collect();
    assert_eq!(of.len(), TRACES);
    for (trace, path) in of.iter().zip(&traces) {
        assert_eq!((&trace["path"], &trace["outcome"]), (&path[..].into(), &"failed".into()));
        assert!(trace["why"].as_str().unwrap().starts_with("cannot reach "), "{trace}");
    }
    assert!((1..=8).contains(&asked.load(SeqCst)), "the first alone is asked for: {asked:?}");
}

/// What the store cannot read is one trace's, and does not keep the others.
#[test]
fn analyze_goes_on_where_a_store_fails_for_one_trace() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    let traces = hosts(&stage, URL, 3);
    let of_first = format!("{}/meta.json", traces[0]);
    let proxy =
        Proxy::start(server.address, move |_, line| match plain(line).contains(&of_first) {
            true => Fate::Fail,
            false => Fate::Pass,
        });
    stage.endpoint = proxy.address;
    let output = stage.run(&["analyze", URL]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with(&format!("{}: failed: cannot reach ", traces[0])), "{said}");
    assert_eq!(said.matches(": analysed, ").count(), 2, "{said}");
    stage.endpoint = server.address;
    assert!(stage.says(&["analyze", URL]).contains(&format!("{}: analysed, ", traces[0])));
    assert!(objects(&server, &traces[0]).contains_key("analysis.json"));
}
