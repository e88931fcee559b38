//! The command line of `ft-load response`, and what it prints.

use std::fmt::Write;

use serde::Serialize;

use super::{Response, Task, analyse, utilisation};
use crate::args::{Words, not_zero};
use crate::time::{Time, parse};
use crate::{Error, Output};

const HELP: &str = "\
ft-load response --task C,T[,J[,B]]… [--switch TIME] [--json]

How long the jobs of a set of tasks take at worst, under fixed-priority preemptive scheduling on one CPU
(SCHED_FIFO): from release to completion, whatever the phases. Tasks stand in the order of their priority,
the highest first.

  --task C,T[,J[,B]]…   a task: execution time C of a job, period T; release jitter J; time B for which a
                        task of lower priority can keep it waiting. Further tasks may follow
  --switch TIME         cost of a context switch, of which each job pays two (default 0)
  --json                print JSON

Times have units: 87.0us, 3ms, 1.5s.

Examples:
  ft-load response --task 3ms,8ms 17ms,33ms
  ft-load response --task 3ms,8ms --task 19ms,33ms,8ms --switch 5us";

/// A task beside its bound, as JSON has it.
#[derive(Serialize)]
struct Row {
    cost_ns: u64,
    period_ns: u64,
    jitter_ns: u64,
    blocking_ns: u64,
    /// `null` where there is no bound, or none was found.
    response_ns: Option<u64>,
    outcome: &'static str,
}

#[derive(Serialize)]
struct Answer {
    switch_ns: u64,
    utilisation: f64,
    tasks: Vec<Row>,
}

/// Runs `ft-load response` with these words behind its name.
///
/// # Errors
///
/// A sentence for what the command line gets wrong.
pub fn run(words: &[String]) -> Result<Output, Error> {
    let (mut tasks, mut switch_ns, mut json) = (Vec::new(), 0, false);
    let mut words = Words::new(words);
    while let Some(option) = words.option()? {
        match option {
            "--task" => {
                tasks.push(task(words.value("a task C,T[,J[,B]]")?)?);
                while let Some(text) = words.further() {
                    tasks.push(task(text)?);
                }
            }
            "--switch" => switch_ns = parse(words.value("a time")?)?,
            "--json" => json = true,
            "-h" | "--help" => return Ok(Output::new(format!("{HELP}\n"))),
            _ => return Err(words.unknown()),
        }
    }
    if tasks.is_empty() {
        return Err(Error::usage(
            "there is no task to analyse; name them, the highest priority first: --task 3ms,8ms 17ms,33ms",
        ));
    }
    let answer = answer(&tasks, switch_ns);
    Ok(Output::new(if json { crate::json(&answer) } else { text(&answer) }))
}

/// Reads `C,T[,J[,B]]`.
fn task(text: &str) -> Result<Task, Error> {
    let times: Vec<&str> = text.split(',').collect();
    let (cost, period, rest) = match times.as_slice() {
        [cost, period, rest @ ..] if rest.len() <= 2 => (*cost, *period, rest),
        _ => {
            return Err(Error::usage(format!(
                "`{}` is not a task; write execution time, period and perhaps jitter and blocking: 17ms,33ms,8ms,1ms",
                text.escape_debug()
            )));
        }
    };
    let (cost_ns, period_ns) = (not_zero(cost, parse(cost)?)?, not_zero(period, parse(period)?)?);
    if cost_ns > period_ns {
        return Err(Error::usage(format!(
            "a task cannot execute {cost} in every {period}; give `{text}` less work or a longer period"
        )));
    }
    let further = |n: usize| rest.get(n).map_or(Ok(0), |text| parse(text));
    Ok(Task { cost_ns, period_ns, jitter_ns: further(0)?, blocking_ns: further(1)? })
}

fn answer(tasks: &[Task], switch_ns: u64) -> Answer {
    let row = |(task, response): (&Task, Response)| {
        let (response_ns, outcome) = match response {
            Response::Within(ns) if ns <= task.period_ns => (Some(ns), "met"),
            Response::Within(ns) => (Some(ns), "can be missed"),
            Response::Unbounded => (None, "unbounded"),
            Response::NotFound => (None, "not found"),
        };
        let Task { cost_ns, period_ns, jitter_ns, blocking_ns } = *task;
        Row { cost_ns, period_ns, jitter_ns, blocking_ns, response_ns, outcome }
    };
    Answer {
        switch_ns,
        utilisation: utilisation(tasks, switch_ns),
        tasks: tasks.iter().zip(analyse(tasks, switch_ns)).map(row).collect(),
    }
}

fn text(answer: &Answer) -> String {
    let mut text =
        String::from("task          C          T          J          B   response  deadline\n");
    for (n, row) in answer.tasks.iter().enumerate() {
        let response = match row.response_ns {
            Some(ns) => Time(ns).to_string(),
            None => "-".to_owned(),
        };
        let verdict = match (row.outcome, row.response_ns) {
            ("met", Some(ns)) => format!("met, {} left", Time(row.period_ns - ns)),
            ("can be missed", Some(ns)) => format!("can be missed by {}", Time(ns - row.period_ns)),
            ("unbounded", _) => {
                "missed: this task and those above ask for more than all time".to_owned()
            }
            _ => "not known: too little time is left free to find a bound".to_owned(),
        };
        let [c, t, j, b] = [row.cost_ns, row.period_ns, row.jitter_ns, row.blocking_ns].map(Time);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{n:<4} {c:>10} {t:>10} {j:>10} {b:>10} {response:>10}  {verdict}");
    }
    let _ = write!(text, "utilisation {:.1} %", 100.0 * answer.utilisation);
    if answer.switch_ns != 0 {
        let _ = write!(text, ", two context switches of {} a job among it", Time(answer.switch_ns));
    }
    text.push('\n');
    text
}
