//! A recording of `ft-load tasks`, and what is read of it: the *super-trace*, in which each event knows its task, its thread
//! and its CPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Deserializer, Value};

use crate::lab::Lab;
use crate::load::output;
use crate::recorded::{Reports, leading_json};

/// Where traces are written: no disk is measured.
const MEMORY: &str = "/dev/shm";

/// A trace, which goes with this.
#[derive(Debug)]
pub(super) struct Recording {
    dir: PathBuf,
    /// What the load has printed.
    pub(super) said: Value,
    /// What the agent has printed: how the recording ended.
    pub(super) told: Value,
}

impl Recording {
    /// Records `ft-load tasks` with these words, by the agent with those options.
    ///
    /// # Errors
    ///
    /// When the agent or the load is not there or fails.
    pub(super) fn of(lab: &Lab, options: &[&str], load: &str) -> Result<Recording> {
        let dir = Path::new(MEMORY).join(format!("ft-papers-tasks-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let mut recording = Recording { dir, said: Value::Null, told: Value::Null };
        let mut record = Command::new(lab.tool("ft-agent")?);
        record.args(["record", "--json", "-o"]).arg(&recording.dir).args(options).arg("--");
        record.arg(lab.tool("ft-load")?).arg("tasks").args(load.split_whitespace());
        let text = output(&mut record)?;
        let (said, rest) = leading_json(&text)?;
        let (told, _) = leading_json(rest).context("the agent says nothing of the recording")?;
        (recording.said, recording.told) = (said, told);
        Ok(recording)
    }

    /// How large it is, bytes, and how many events are missing of what the program wrote.
    pub(super) fn size(&self) -> (u64, u64) {
        let of = |name: &str| self.told[name].as_u64().unwrap_or(0);
        (of("spool_bytes"), of("lost"))
    }

    /// Makes tables of what was recorded without.
    pub(super) fn convert(&self, lab: &Lab) -> Result<()> {
        output(Command::new(lab.tool("ft-agent")?).arg("convert").arg(&self.dir)).map(drop)
    }

    /// Its reports of these names.
    pub(super) fn reports(&self, lab: &Lab, words: &[&str]) -> Result<Reports> {
        Reports::of(lab, &self.dir, words)
    }

    /// Its events, as `ft-agent events` with these options lists them.
    pub(super) fn events(&self, lab: &Lab, options: &[&str]) -> Result<Vec<Value>> {
        let mut events = Command::new(lab.tool("ft-agent")?);
        events.arg("events").arg(&self.dir).arg("--json").args(options);
        let text = output(&mut events)?;
        let events = Deserializer::from_str(&text).into_iter::<Value>();
        events.collect::<Result<_, _>>().context("the events' JSON")
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A time in which a task was polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Poll {
    /// The name of the task.
    pub(super) task: String,
    /// The worker that polled it.
    pub(super) worker: String,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    /// The CPUs on which it began and ended.
    pub(super) cpus: [i64; 2],
}

/// The polls of tasks that have a name, whole ones, in the order of their ends.
pub(super) fn polls(events: &[Value]) -> Vec<Poll> {
    let mut open: Vec<(i64, i64, Poll)> = Vec::new();
    let mut polls = Vec::new();
    for event in events {
        let number = |value: &Value| value.as_i64().unwrap_or(-1);
        let (ts, cpu, tid) = (number(&event["ts"]), number(&event["cpu"]), number(&event["tid"]));
        let task = number(&event["args"]["task"]);
        match event["event"].as_str() {
            Some("async.poll") => {
                // Number, name, and where it was made.
                let text = event["text"].as_str().unwrap_or_default();
                let Some(name) = text.split(' ').nth(1).filter(|name| *name != "at") else {
                    continue;
                };
                let worker = event["thread"].as_str().unwrap_or_default().to_owned();
                let poll = Poll {
                    task: name.to_owned(),
                    worker,
                    start_ns: ts,
                    end_ns: ts,
                    cpus: [cpu; 2],
                };
                open.push((tid, task, poll));
            }
            Some("async.polled") => {
                let Some(at) = open.iter().position(|(of, own, _)| (*of, *own) == (tid, task))
                else {
                    continue;
                };
                let (_, _, mut poll) = open.swap_remove(at);
                (poll.end_ns, poll.cpus[1]) = (ts, cpu);
                polls.push(poll);
            }
            _ => {}
        }
    }
    polls
}

/// The events of polls, of all tasks.
pub(super) const POLLS: [&str; 4] = ["-e", "async.poll", "-e", "async.polled"];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn polls_are_paired_by_thread_and_task() {
        let event = |ts: i64, cpu: i64, tid: i64, name: &str, task: i64, text: &str| {
            json!({ "ts": ts, "cpu": cpu, "tid": tid, "thread": format!("worker-{tid}"), "event": name, "text": text,
                "args": { "task": task } })
        };
        let polls = polls(&[
            event(1, 0, 7, "async.poll", 3, "3 work/0 at a.rs:1"),
            event(2, 1, 8, "async.poll", 4, "4 work/1 at a.rs:1"),
            event(3, 1, 8, "async.poll", 5, "5 at a.rs:2"),
            event(4, 1, 8, "async.polled", 5, "task=5"),
            event(5, 1, 7, "async.polled", 3, "task=3"),
            event(6, 1, 8, "async.polled", 9, "task=9"),
        ]);
        let work = Poll {
            task: "work/0".into(),
            worker: "worker-7".into(),
            start_ns: 1,
            end_ns: 5,
            cpus: [0, 1],
        };
        assert_eq!(polls, [work]);
    }
}
