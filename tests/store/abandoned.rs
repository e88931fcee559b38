//! What somebody began in a store, and did not finish.

use crate::bring::{killing_when, started};
use crate::server::Server;
use crate::stage::{Stage, URL, objects};

/// Of one object, or of several.
pub(crate) fn removes(_: usize, line: &str) -> bool {
    line.starts_with("DELETE ") || line.starts_with("POST ") && line.contains("?delete")
}

/// One trace without its row, and one whose removal is announced; the third is whole.
#[test]
fn what_was_begun_a_day_ago_and_not_finished_is_removed() {
    for days in [0, 2] {
        let Some(server) = Server::start_behind(days) else { return };
        let mut stage = Stage::new(server.address);
        let delete = |age| ["catalogue", URL, "--older-than", age, "--delete"];

        stage.empty_trace("brought");
        stage.says(&["convert", "brought", "--to", URL]);
        let brought = stage.traces(URL).remove(0);
        let (_, name) = brought.rsplit_once("trace=").unwrap();
        let row = format!("/fleet/of/traces/traces/{name}.parquet");
        assert!(server.asks("DELETE", &row).starts_with("HTTP/1.1 204"));

        stage.empty_trace("removed");
        stage.says(&["convert", "removed", "--to", URL]);
        let (proxy, process) = killing_when(&server, removes, false);
        stage.endpoint = proxy.address;
        let output = started(stage.agent(&delete("1us")).spawn().unwrap(), &process);
        assert!(!output.status.success(), "it was killed");
        stage.endpoint = server.address;
        let announced = objects(&server, "removing");
        assert_eq!(announced.len(), 1, "{announced:?}");

        let whole = stage.empty_trace("whole");
        stage.says(&["convert", "whole", "--to", URL]);
        let before = objects(&server, "");
        let output = stage.run(&delete("720h"));
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        let after = objects(&server, "");
        if days == 0 {
            assert_eq!((&*said, &after), ("", &before), "somebody may be at it");
            continue;
        }
        assert!(said.contains("removed 2 that were begun a day ago and not finished"), "{said}");
        let traces = stage.traces(URL);
        assert_eq!(traces.len(), 1);
        assert_eq!(objects(&server, &traces[0]), whole);
        assert_eq!(after.len(), whole.len() + 1, "{:?}", after.keys());
    }
}
