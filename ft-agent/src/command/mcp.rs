//! `ft-agent mcp`: what a language model may do with recordings, by the Model Context Protocol on standard input and output.
//!
//! A tool is a command of this program, which runs with the rights of whoever started this one, and answers with the JSON that it prints.
//! There is no tool for anything else.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use ft_trace::store::catalogue::{self, Table};
use ft_trace::store::{Record, Trace};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::transport::stdio;
use rmcp::{ServerHandler, ServiceExt as _, schemars, tool, tool_handler, tool_router};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::CommandError;

/// Lets a language model record, and read recordings, by the Model Context Protocol on standard input and output.
///
/// It does so with the rights of whoever starts it. The tools are `record`, `findings`, `report` and `query`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

const EXAMPLES: &str = "\
Examples:
  ft-agent mcp                        what a client starts; a line of its configuration:
  {\"mcpServers\": {\"feather-trace\": {\"command\": \"ft-agent\", \"args\": [\"mcp\"]}}}";

/// Rows that one query may have: a model reads some hundred at best.
///
/// Limit: there are no more, and the answer says so.
/// Shown by: `a_recording_is_made_and_read`.
const MAX_ROWS: usize = 1000;

pub(crate) fn run(_: &Args) -> super::Result {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let served = Server.serve(stdio()).await.map_err(std::io::Error::other)?;
        served.waiting().await.map_err(std::io::Error::other)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What a tool answers: text, or one sentence that says what is wrong.
type Answer = Result<String, String>;

struct Server;

#[derive(Deserialize, schemars::JsonSchema)]
struct Recorded {
    /// The command to run and record, with its arguments; it is recorded until it ends. Empty where processes are named.
    #[serde(default)]
    command: Vec<String>,
    /// Numbers of processes that run already, instead of a command.
    #[serde(default)]
    pids: Vec<u32>,
    /// How long to record, s; needed for processes.
    seconds: Option<u32>,
    /// The directory of the trace, which must not exist.
    trace: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Found {
    /// The directory of the trace.
    trace: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Sections {
    /// The directory of the trace.
    trace: String,
    /// Sections of the report, such as locks, waits, time, wakeups, recording; all of them where none is named.
    #[serde(default)]
    sections: Vec<String>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Query {
    /// The directory of the trace.
    trace: String,
    /// The table; without one, the answer lists the tables.
    table: Option<String>,
    /// Rows at most. 0: the answer says what the columns of the table mean.
    #[serde(default = "hundred")]
    rows: usize,
    /// Only rows whose first column, in most tables a time in ns of CLOCK_MONOTONIC, is this or more.
    from: Option<i64>,
    /// Only rows whose first column is less than this.
    to: Option<i64>,
    /// Only rows whose columns have these values.
    #[serde(default, rename = "where")]
    matching: BTreeMap<String, Value>,
    /// These columns alone.
    #[serde(default)]
    columns: Vec<String>,
}

fn hundred() -> usize {
    100
}

#[tool_router(server_handler = false)]
impl Server {
    #[tool(
        description = "Records a command until it ends, or running processes for some seconds, and says what lost their time: the findings of the recording, as JSON."
    )]
    async fn record(&self, Parameters(recorded): Parameters<Recorded>) -> Answer {
        let Recorded { command, pids, seconds, trace } = recorded;
        let mut words = vec!["record".into(), "--json".into(), "--output".into(), trace.clone()];
        if let Some(seconds) = seconds {
            words.extend(["--duration".into(), format!("{seconds}s")]);
        } else if command.is_empty() {
            return Err("seconds: say for how long to record processes that run already".into());
        }
        words.extend(pids.iter().flat_map(|pid| ["--pid".into(), pid.to_string()]));
        if !command.is_empty() {
            words.push("--".into());
            words.extend(command);
        }
        if Path::new(&trace).exists() {
            return Err(format!("trace: {trace} exists; name another directory"));
        }
        let recorded = agent(&words).await;
        // A command that fails is recorded all the same.
        findings(trace).await.map_err(|error| recorded.err().unwrap_or(error))
    }

    #[tool(
        description = "What lost the time in a recording, the largest loss first, as JSON: whose time, how much, behind what, because of whom, where; and what the recording lacks."
    )]
    async fn findings(&self, Parameters(Found { trace }): Parameters<Found>) -> Answer {
        findings(trace).await
    }

    #[tool(description = "Sections of the report of a recording, as JSON.")]
    async fn report(
        &self,
        Parameters(Sections { trace, sections }): Parameters<Sections>,
    ) -> Answer {
        let words = ["report".into(), "--json".into(), "--".into(), trace].into_iter();
        agent(&words.chain(sections).collect::<Vec<_>>()).await
    }

    #[tool(
        description = "Rows of a table of a recording, as JSON; without a table, the tables; with 0 rows, what the columns of a table mean."
    )]
    async fn query(&self, Parameters(query): Parameters<Query>) -> Answer {
        let answered = tokio::task::spawn_blocking(move || rows(query));
        answered.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

#[tool_handler]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let own = Implementation::new("feather-trace", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(own)
            .with_instructions(
                "Feather-Trace records programs and the kernel on one clock, and says why something was slow. Record, read the \
                 findings first, then the sections that they name. All times are in ns.",
            )
    }
}

async fn findings(trace: String) -> Answer {
    agent(&["report".into(), "--json".into(), "--".into(), trace, "findings".into()]).await
}

/// What this program prints with these words, or why it fails.
async fn agent(words: &[String]) -> Answer {
    let spawned = tokio::process::Command::new("/proc/self/exe")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let agent = spawned.map_err(|error| error.to_string())?;
    let recording = Recording(agent.id());
    let output = agent.wait_with_output().await.map_err(|error| error.to_string())?;
    std::mem::forget(recording);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// A process of this program that nobody waits for any more when this is dropped: it ends its recording.
struct Recording(Option<u32>);

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(pid) = self.0.and_then(|pid| Pid::from_raw(pid as i32)) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

/// The answer to a query.
fn rows(query: Query) -> Result<String, CommandError> {
    let tables = catalogue::tables();
    let Some(name) = query.table else {
        let list = |table: &Table| (table.name.to_owned(), table.about.as_str().into());
        return Ok(Value::Object(tables.iter().map(list).collect()).to_string());
    };
    let table = tables.into_iter().find(|table| table.name == name);
    let table = table.ok_or(CommandError::UnknownTable(name))?;
    if query.rows == 0 {
        return Ok(serde_json::to_string(&table).map_err(std::io::Error::from)?);
    }
    let is_named = |name: &str| {
        query.matching.contains_key(name) || query.columns.iter().any(|column| column == name)
    };
    let known: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
    if let Some(unknown) =
        query.matching.keys().chain(&query.columns).find(|column| !known.contains(&&***column))
    {
        return Err(CommandError::UnknownColumn { table: table.name, column: unknown.clone() });
    }
    let wants = |column: &str| query.columns.is_empty() || is_named(column);
    let keys = query.from.unwrap_or(i64::MIN)..query.to.unwrap_or(i64::MAX);
    let (mut rows, mut is_whole) = (Vec::new(), true);
    let is_meant =
        |row: &Record| query.matching.iter().all(|(column, is)| row.get(column) == Some(is));
    let add = |mut row: Record| {
        if is_meant(&row) {
            if rows.len() == query.rows.min(MAX_ROWS) {
                is_whole = false;
                return ControlFlow::Break(());
            }
            if !query.columns.is_empty() {
                row.retain(|column, _| query.columns.contains(column));
            }
            rows.push(row);
        }
        ControlFlow::Continue(())
    };
    let trace = Trace::open(Path::new(&query.trace))?;
    table.records(&trace, keys, wants, add)?;
    Ok(json!({ "rows": rows, "all": is_whole }).to_string())
}
