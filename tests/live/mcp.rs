//! `ft-agent mcp` as a client has it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use ft_trace::store::Trace;
use ft_trace::tables::SchedSwitch;
use serde_json::{Value, json};

use crate::gate;

/// A server, and the number of the last request.
struct Server {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Server {
    fn start() -> Server {
        let mut command = Command::new(ft_tests::agent());
        command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take().unwrap());
        let mut server = Server { process, input, output: BufReader::new(output), asked: 0 };
        let client = json!({ "name": "test", "version": "0" });
        let version = "2025-06-18";
        let hello = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let answer = server.ask("initialize", hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "feather-trace");
        server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input.as_ref().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "{method}: the server has ended");
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], id);
        answer
    }

    /// What a tool answers, or how it refuses.
    fn tool(&mut self, name: &str, arguments: Value) -> Result<Value, String> {
        let answer = self.ask("tools/call", json!({ "name": name, "arguments": arguments }));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        match answer["result"]["isError"].as_bool() {
            Some(false) => Ok(serde_json::from_str(&text).unwrap()),
            _ => Err(format!("{text} {}", answer["error"])),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_tools_are_four() {
    let mut server = Server::start();
    let answer = server.ask("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["findings", "query", "record", "report"]);
    // It ends with its client.
    server.input = None;
    assert!(server.process.wait().unwrap().success());
}

/// The kernel is recorded where it can be; then a row of a query is one that the table has.
#[test]
fn a_recording_is_made_and_read() {
    let is_recordable = gate::recordable_or_skip();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let trace = trace.to_str().unwrap();
    let mut server = Server::start();
    // What a command ends with is not how its recording does.
    let command = ["sh", "-c", "sleep 0.05; sleep 0.05; exit 7"];
    let recorded = json!({ "command": command, "trace": trace });
    let recorded = server.tool("record", recorded).unwrap();
    assert_eq!(recorded["trace"]["command"], json!(command));
    assert_eq!(server.tool("findings", json!({ "trace": trace })).unwrap(), recorded);
    let sections = server.tool("report", json!({ "trace": trace, "sections": ["time"] })).unwrap();
    assert!(sections["sections"].to_string().contains("time"), "{sections}");

    if is_recordable {
        rows_are_as_many_as_were_asked_for(&mut server, trace);
    }
    let exists = server.tool("record", json!({ "command": ["true"], "trace": trace }));
    assert!(exists.unwrap_err().contains("exists"));
    let without_end = server.tool("record", json!({ "pids": [1], "trace": "/nonexistent/trace" }));
    assert!(without_end.unwrap_err().contains("how long"));
    let none = server.tool("findings", json!({ "trace": "/nonexistent" })).unwrap_err();
    assert!(none.contains("/nonexistent is not a trace"), "{none}");
}

fn rows_are_as_many_as_were_asked_for(server: &mut Server, trace: &str) {
    let all = Trace::open(Path::new(trace)).unwrap().rows::<SchedSwitch>();
    let sleeps: Vec<i64> = all
        .map(Result::unwrap)
        .filter(|row| &*row.next_comm == "sleep")
        .map(|row| row.ts.0)
        .collect();
    assert!(sleeps.len() >= 2, "each wakes up");
    let mut query = json!({
        "trace": trace, "table": "sched_switch", "where": { "next_comm": "sleep" }, "columns": ["ts"],
    });
    let rows = |answer: &Value| -> Vec<i64> {
        let rows = answer["rows"].as_array().unwrap().iter();
        rows.map(|row| row["ts"].as_i64().unwrap()).collect()
    };
    let whole = server.tool("query", query.clone()).unwrap();
    assert_eq!((rows(&whole), &whole["all"]), (sleeps.clone(), &json!(true)));
    query["rows"] = json!(1);
    let one = server.tool("query", query.clone()).unwrap();
    assert_eq!((rows(&one), &one["all"]), (sleeps[..1].to_vec(), &json!(false)));
    query["from"] = json!(sleeps[1]);
    let later = server.tool("query", query).unwrap();
    assert_eq!(rows(&later), sleeps[1..2]);

    let tables = server.tool("query", json!({ "trace": trace })).unwrap();
    assert!(tables["sched_switch"].is_string());
    let columns = json!({ "trace": trace, "table": "sched_switch", "rows": 0 });
    let columns = server.tool("query", columns).unwrap();
    assert_eq!(columns["columns"][0]["name"], "ts");
    let none = server.tool("query", json!({ "trace": trace, "table": "nix" })).unwrap_err();
    assert!(none.contains("no table 'nix'"), "{none}");
    for unknown in [json!({ "where": { "nix": 1 } }), json!({ "columns": ["ts", "nix"] })] {
        let mut query = json!({ "trace": trace, "table": "sched_switch" });
        query.as_object_mut().unwrap().extend(unknown.as_object().unwrap().clone());
        let error = server.tool("query", query).unwrap_err();
        assert!(error.contains("sched_switch has no column 'nix'"), "{error}");
    }
}
