//! `ft-agent analyze` of traces in a catalogue.

use std::collections::BTreeSet;

use crate::abandoned::removes;
use crate::bring::{killing_at, started};
use crate::files::{Files, files};
use crate::proxy::{Fate, Gate, Proxy};
use crate::server::Server;
use crate::stage::{Stage, URL, objects};

/// Without the script for DuckDB, which is of the place where it was made, and the trace's row, which lies with it in a directory.
fn results(mut of: Files, recorded: &Files) -> Files {
    let is_row = |name: &str| name.ends_with(".parquet") && !name.contains('/');
    of.retain(|name, _| !recorded.contains_key(name) && name != "views.sql" && !is_row(name));
    of
}

/// One trace in a store, analysed: where it is, and what is there then.
fn analysed(server: &Server) -> (Stage, String, Files) {
    let stage = Stage::new(server.address);
    stage.stored_trace("preload", "trace");
    stage.says(&["convert", "trace", "--to", URL]);
    let [path] = &stage.traces(URL)[..] else { panic!("one trace") };
    stage.says(&["analyze", URL]);
    let whole = objects(server, path);
    (stage, path.clone(), whole)
}

#[test]
fn a_directory_and_a_store_get_the_same_bytes_each_time() {
    let Some(server) = Server::start() else { return };
    let stage = Stage::new(server.address);
    let recorded = stage.stored_trace("scenarios", "trace");
    stage.stored_trace("preload", "other");
    stage.says(&["convert", "trace", "other", "--to", URL]);
    stage.says(&["convert", "trace", "other", "--to", "fleet"]);
    let traces = stage.traces(URL);
    assert_eq!(traces, stage.traces("fleet"));
    let said = stage.says(&["analyze", URL]);
    assert_eq!(said.matches(": analysed, ").count(), 2, "{said}");
    let said = stage.says(&["analyze", "fleet"]);
    assert_eq!(said.matches(": analysed, ").count(), 2, "{said}");
    let of_store: Vec<Files> = traces.iter().map(|path| objects(&server, path)).collect();
    let of_directory = |path: &String| files(&stage.path("fleet").join(path));
    for (path, of_store) in traces.iter().zip(&of_store) {
        assert_eq!(results(of_directory(path), &recorded), results(of_store.clone(), &recorded));
        assert!(
            of_store.contains_key("critical_sections/part-00000.parquet"),
            "{:?}",
            of_store.keys()
        );
        assert!(of_store.contains_key("analysis.json"));
    }
    // As where it was recorded.
    stage.says(&["analyze", "trace"]);
    let here = results(files(&stage.path("trace")), &recorded);
    assert!(of_store.iter().any(|of_store| results(of_store.clone(), &recorded) == here));

    let said = stage.says(&["analyze", URL]);
    assert_eq!(said.matches(": was analysed already").count(), 2, "{said}");

    // The script for DuckDB is ours, also where nothing was to be analysed.
    let script = stage.path("fleet").join(&traces[0]).join("views.sql");
    let ours = std::fs::read_to_string(&script).unwrap();
    assert!(ours.contains("critical_sections"));
    std::fs::write(&script, "COPY (SELECT 1) TO 'anywhere'").unwrap();
    stage.says(&["analyze", "fleet"]);
    assert_eq!(std::fs::read_to_string(&script).unwrap(), ours);
    for (path, before) in traces.iter().zip(&of_store) {
        let marker = format!("/fleet/of/traces/{path}/analysis.json");
        assert!(server.asks("DELETE", &marker).starts_with("HTTP/1.1 204"));
        let said = stage.says(&["analyze", &format!("{URL}/{path}")]);
        assert_eq!(said.matches(": analysed, ").count(), 1, "{said}");
        assert_eq!(objects(&server, path), *before);
    }
    stage.says(&["report", &format!("fleet/{}", traces[0]), "time"]);
}

#[test]
fn only_the_tables_that_are_asked_for_are_stored() {
    let Some(server) = Server::start() else { return };
    let stage = Stage::new(server.address);
    let recorded = stage.stored_trace("preload", "trace");
    stage.says(&["convert", "trace", "--to", URL]);
    let [path] = &stage.traces(URL)[..] else { panic!("one trace") };
    let of = format!("{URL}/{path}");
    let tables = || -> BTreeSet<String> {
        let names = results(objects(&server, path), &recorded).into_keys();
        names.map(|name| name.split('/').next().unwrap().to_owned()).collect()
    };
    stage.says(&["analyze", &of, "--only", "critical_sections,gaps"]);
    assert_eq!(tables(), ["analysis.json", "critical_sections", "gaps"].map(Into::into).into());
    assert!(stage.says(&["analyze", &of, "--only", "gaps"]).contains("was analysed already"));
    stage.says(&["analyze", &of, "--only", "lock_waits"]);
    let three = ["analysis.json", "critical_sections", "gaps", "lock_waits"].map(Into::into);
    assert_eq!(tables(), three.into());
    stage.says(&["analyze", URL]);
    assert!(tables().len() > 20);
    assert!(
        stage
            .fails(&["analyze", &of, "--only", "nothing"])
            .contains("they are critical_sections, ")
    );
    assert!(stage.fails(&["analyze", "trace", "--only", "gaps"]).contains("leave it out"));
}

#[test]
fn one_that_fails_is_told_and_does_not_keep_the_others() {
    let Some(server) = Server::start() else { return };
    let stage = Stage::new(server.address);
    stage.stored_trace("preload", "bad");
    stage.says(&["convert", "bad", "--to", URL]);
    let bad = stage.traces(URL).remove(0);
    stage.stored_trace("scenarios", "good");
    stage.says(&["convert", "good", "--to", URL]);
    let lost = format!("/fleet/of/traces/{bad}/meta.json");
    assert!(server.asks("DELETE", &lost).starts_with("HTTP/1.1 204"));
    let output = stage.run(&["analyze", URL, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 of 2 traces failed"));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut outcomes: Vec<(&str, &str)> = Vec::new();
    for trace in answer["traces"].as_array().unwrap() {
        outcomes.push((trace["outcome"].as_str().unwrap(), trace["why"].as_str().unwrap_or("")));
    }
    outcomes.sort_unstable();
    let [("analysed", ""), ("failed", why)] = outcomes[..] else { panic!("{answer}") };
    assert!(why.contains("meta.json"), "{why}");
    let none = format!("{URL}/host=x/date=2026-11-21/trace=20261121T104500Z-c7c061a6b51c7ba7");
    assert!(
        String::from_utf8_lossy(&stage.run(&["analyze", &none]).stdout)
            .contains("the catalogue has no trace host=x/")
    );
    assert_eq!(files(&stage.path("tmp")).len(), 0, "nothing is left where it was worked on");
}

#[test]
fn a_killed_task_loses_nothing() {
    let Some(server) = Server::start() else { return };
    let (mut stage, path, whole) = analysed(&server);
    let marker = format!("/fleet/of/traces/{path}/analysis.json");
    let mut killed = 0;
    for nth in (1..).step_by(9) {
        assert!(server.asks("DELETE", &marker).starts_with("HTTP/1.1 204"));
        let (proxy, process) = killing_at(&server, nth, nth % 2 == 0);
        stage.endpoint = proxy.address;
        let child = stage.agent(&["analyze", URL]).spawn().unwrap();
        let output = started(child, &process);
        stage.endpoint = server.address;
        if output.status.success() {
            break;
        }
        killed += 1;
        let is_done = server.objects(&format!("of/traces/{path}/analysis.json")).len() == 1;
        if is_done {
            assert_eq!(objects(&server, &path), whole, "its marker says that it is done");
        }
        stage.says(&["analyze", URL]);
        assert_eq!(objects(&server, &path), whole, "at request {nth}");
    }
    assert!(killed > 5, "{killed}");
}

/// As where an engine takes an executor for lost that is only slow: all have the same results, and any may be the last.
#[test]
fn several_that_store_the_results_of_one_trace_at_once_leave_it_whole() {
    const AT_ONCE: usize = 3;
    let Some(server) = Server::start() else { return };
    let (mut stage, path, whole) = analysed(&server);
    let recorded = files(&stage.path("trace"));
    for round in 0..3 {
        // All results of an earlier time are there, or none.
        let of_results = whole.keys().filter(|name| !recorded.contains_key(*name));
        for name in of_results.filter(|name| round == 1 || *name == "analysis.json") {
            let gone = server.asks("DELETE", &format!("/fleet/of/traces/{path}/{name}"));
            assert!(gone.starts_with("HTTP/1.1 204"));
        }
        // None stores anything before all are about to: the first thing is that the trace no longer counts as analysed.
        let gate = Gate::new(AT_ONCE);
        let proxy = Proxy::start(server.address, move |nth, line| {
            if removes(nth, line) {
                gate.pass();
            }
            if (nth + round) % 2 == 0 { Fate::Slow } else { Fate::Pass }
        });
        stage.endpoint = proxy.address;
        let analyze = ["analyze", &format!("{URL}/{path}")];
        let agents: Vec<_> = (0..AT_ONCE).map(|_| stage.agent(&analyze).spawn().unwrap()).collect();
        for agent in agents {
            let output = agent.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains(": analysed, "), "{said}");
        }
        stage.endpoint = server.address;
        assert_eq!(objects(&server, &path), whole);
        assert!(stage.says(&["analyze", URL]).contains("was analysed already"));
    }
}
