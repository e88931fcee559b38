//! How often a store is asked, and for how many bytes: what a store that is far away, and one that is paid for, costs.

use std::collections::BTreeSet;
use std::fs;

use crate::files::files;
use crate::proxy::{Fate, Gate, Proxy, Traffic};
use crate::said;
use crate::server::Server;
use crate::stage::{Stage, URL, objects};

/// Traces that are fetched at once, and requests for them.
const TRACES_AT_ONCE: usize = 8;
const REQUESTS_AT_ONCE: usize = 4 * TRACES_AT_ONCE;

/// Requests that stores have paid for as such (to write, and to list), those to read, and to remove.
fn told(step: &str, traffic: &Traffic) {
    let Traffic { sent, received, .. } = traffic;
    let [writes, lists] = [&["PUT", "POST"][..], &["LIST"]].map(|of| traffic.of(of));
    let [reads, removes] = [&["GET", "HEAD"][..], &["DELETE"]].map(|of| traffic.of(of));
    said::measured(&format!(
        "requests to a store, a trace {step}: {writes} write, {lists} list, {reads} read, {removes} remove; {sent} bytes sent, {received} received"
    ));
}

/// Of each step of *many hosts*, of one trace. Nothing here depends on how fast anything is.
#[test]
fn each_step_asks_a_store_so_often() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    let recorded = stage.stored_trace("scenarios", "trace");
    let proxy = Proxy::start(server.address, |_, _| Fate::Pass);
    stage.endpoint = proxy.address;
    let bytes = |of: &crate::files::Files| of.values().map(Vec::len).sum::<usize>();

    stage.says(&["convert", "trace", "--to", URL]);
    let brought = proxy.traffic();
    told(&format!("of {} objects is brought", recorded.len()), &brought);
    // Each file once, and the row.
    assert_eq!(brought.of(&["PUT"]), recorded.len() + 1);
    let row =
        server.objects("of/traces/traces/").into_iter().map(|name| server.object(&name).len());
    assert_eq!(brought.sent, bytes(&recorded) + row.sum::<usize>());
    // What is not of files: whether the store is there, whether the trace is, whether it is being removed (before the files and
    // after the row), and which files are there (before them, after them, and after the row).
    assert_eq!(brought.count(), recorded.len() + 1 + 7);

    stage.says(&["convert", "trace", "--to", URL]);
    assert_eq!(proxy.traffic().count(), 3, "what is there is asked for once: its row, and it");

    stage.says(&["analyze", URL]);
    let analysed = proxy.traffic();
    let [path] = &stage.traces(URL)[..] else { panic!("one trace") };
    proxy.traffic();
    let results =
        objects(&server, path).into_iter().filter(|(name, _)| !recorded.contains_key(name));
    let results: crate::files::Files = results.collect();
    told(&format!("gets its {} results", results.len()), &analysed);
    assert_eq!((analysed.of(&["PUT"]), analysed.sent), (results.len(), bytes(&results)));
    let scripts = recorded.keys().filter(|name| *name == "views.sql").count();
    // The catalogue's row; the row's being there, and each file but the script for DuckDB.
    assert_eq!(analysed.of(&["GET", "HEAD"]), 2 + recorded.len() - scripts);
    // One of the lists is that of the parts, which are to be those that were written.
    assert_eq!((analysed.of(&["LIST"]), analysed.of(&["DELETE"])), (5, 1));

    stage.says(&["analyze", URL]);
    let again = proxy.traffic();
    told("is found to be analysed", &again);
    // The catalogue's row; and what its results say of themselves: of which version, and which tables there are.
    assert_eq!((again.of(&["LIST"]), again.of(&["GET"]), again.count()), (3, 2, 5));

    stage.says(&["fleet", URL]);
    let asked = proxy.traffic();
    told("is asked of by `ft-agent fleet`", &asked);
    let histograms = results.iter().filter(|(name, _)| name.starts_with("histograms/"));
    let parts = histograms.clone().count();
    // Its row, that this is there, what it and its results say of themselves, and the histograms.
    let requests = (asked.of(&["LIST"]), asked.of(&["GET", "HEAD"]), asked.count());
    assert_eq!(requests, (2, 4 + parts, 6 + parts));
    assert!(asked.received < bytes(&recorded) / 2, "{} bytes", asked.received);
}

/// A store that takes its time: it answers no question for histograms before eight traces are asked for. One after the
/// other nothing would come of it; and no more are under way than are said to be.
#[test]
fn several_traces_are_fetched_at_once_and_say_what_they_say_one_by_one() {
    let Some(server) = Server::start() else { return };
    let mut stage = Stage::new(server.address);
    stage.stored_trace("preload", "trace");
    let meta = fs::read_to_string(stage.path("trace/meta.json")).unwrap();
    let (before, rest) = meta.split_once("\"host\": \"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    let traces = TRACES_AT_ONCE + 3;
    for host in 0..traces {
        let of_host = format!("{before}\"host\": \"h{host}\"{after}");
        fs::write(stage.path("trace/meta.json"), of_host).unwrap();
        stage.says(&["convert", "trace", "--to", "fleet"]);
    }
    stage.says(&["analyze", "fleet"]);
    let stored = stage.path("fleet");
    let paths: BTreeSet<String> = stage.traces("fleet").into_iter().collect();
    for path in &paths {
        stage.says(&["convert", stored.join(path).to_str().unwrap(), "--to", URL]);
    }
    let gate = Gate::new(TRACES_AT_ONCE);
    let proxy = Proxy::start(server.address, move |_, line| {
        if line.starts_with("GET ") && line.contains("/histograms/") {
            gate.pass();
        }
        Fate::Pass
    });
    stage.endpoint = proxy.address;
    let of_store = stage.says(&["fleet", URL, "--json"]);
    assert_eq!(of_store, stage.says(&["fleet", "fleet", "--json"]));
    let said: serde_json::Value = serde_json::from_str(&of_store).unwrap();
    assert_eq!(said["trace"]["traces"], traces);
    let asked = proxy.traffic();
    // As many as there are files: nothing is fetched twice.
    assert_eq!(asked.of(&["GET"]), 4 * traces);
    let most = asked.most_at_once;
    assert!((TRACES_AT_ONCE..=REQUESTS_AT_ONCE).contains(&most), "{most} at once");
    let answers = asked.count();
    said::measured(&format!(
        "`ft-agent fleet` of {traces} traces in a store: {answers} requests, at most {most} at once"
    ));
    assert_eq!(files(&stage.path("tmp")).len(), 0, "no copy is left");
}
