//! `ft-load tasks`: programs of async tasks, whose executor schedules them on workers, which the kernel schedules.
//!
//! Those of Danjean, Wacrenier and Namyst, "An Efficient Multi-level Trace Toolkit for Multi-threaded Applications" (2005), on
//! tasks of today. Each says what came out, so that a recording can be held against it.
//!
//! # Events
//!
//! | event | arguments | written |
//! |---|---|---|
//! | `async.*` | as `ft_user::task` has them | by each task |
//! | `fn.executor::*`, `fn.tree::*`, `fn.solver::*`, `fn.costs::*` | as `ft_user::function` has them | by each call of these functions |
//! | `tasks.sent`, `tasks.received` | `message`, from 0 on | before a message is sent; as soon as the task `daemon` has it |

mod costs;
mod executor;
mod messages;
mod solver;
mod tree;
mod turns;

use crate::args::Words;
use crate::{Error, Output, json};
use executor::Queues;
use messages::Listener;

const HELP: &str = "\
ft-load tasks PROGRAM [OPTIONS]

Programs of async tasks on an executor with workers:

  turns    tasks that compute for a while, and then let others run, --tasks of them
  tree     a complete binary tree of tasks, each of which waits for two: little work, and many tasks
  solver   a sparse matrix is decomposed, by blocks of 32 by 32: much work, and few tasks
  costs    what a traced function costs, beside a system call and a buffered write

      --workers N        threads that poll tasks, 1 to 64 (default 4)
      --queues KIND      shared: a task that is due is polled by whoever is free (default); own: by who polled it last, unless
                         another one would be idle
      --tasks N          of turns (default 20)
      --quantum TIME     how long a task computes in its turn (default 1ms)
      --time TIME        for how long they take turns (default 1s)
      --listener KIND    a task beside them waits for messages that come now and then: asks, by a call that does not block, in
                         its turn; woken, by a thread that blocks, before all others
      --height N         of the tree, 0 to 20 (default 12)
      --blocks N         of a row of the matrix, 1 to 200 (default 20)
      --goes N           how often costs are taken (default 1000)

It prints JSON.

Examples:
  ft-agent record -- ft-load tasks turns --queues own
  ft-agent record -- ft-load tasks turns --listener asks
  ft-agent report trace reactivity --from event:tasks.sent --to event:tasks.received --key message";

/// Workers that may be asked for.
///
/// Limit: more are refused.
/// Shown by: `every_option_is_read_and_refused`.
const MOST_WORKERS: usize = 64;

/// Tasks that may be asked for.
///
/// Limit: as `MOST_WORKERS`.
const MOST_TASKS: usize = 10_000;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    turns: turns::Plan,
    height: u32,
    blocks: usize,
    goes: usize,
}

/// Runs `ft-load tasks` with these words behind its name.
///
/// # Errors
///
/// A sentence for what the command line gets wrong, or the machine refuses.
pub fn run(words: &[String]) -> Result<Output, Error> {
    let help = || Ok(Output::new(format!("{HELP}\n")));
    let Some((program, rest)) = words.split_first() else {
        return Err(Error::usage("no program is named; `ft-load tasks --help` lists them"));
    };
    if ["-h", "--help"].contains(&program.as_str()) {
        return help();
    }
    let Some(plan) = read(rest)? else { return help() };
    let Plan { turns: turns::Plan { workers, queues, .. }, height, blocks, goes } = plan;
    // Without an agent nothing is recorded, and the events are written nowhere. Beside the workers are this thread and those of
    // the network.
    let rings = workers as u32 + 3;
    ft_user::init_with(ft_user::Config { rings, ..ft_user::Config::default() }).ok();
    Ok(Output::new(match program.as_str() {
        "turns" => json(&turns::run(plan.turns)?),
        "tree" => json(&tree::run(workers, queues, height)?),
        "solver" => json(&solver::run(workers, queues, blocks)?),
        "costs" => json(&costs::run(goes)?),
        _ => {
            return Err(Error::usage(format!(
                "there is no program `{}`; `ft-load tasks --help` lists them",
                program.escape_debug()
            )));
        }
    }))
}

fn read(words: &[String]) -> Result<Option<Plan>, Error> {
    let mut words = Words::new(words);
    let mut turns = turns::Plan {
        workers: 4,
        queues: Queues::Shared,
        tasks: 20,
        quantum_ns: 1_000_000,
        time_ns: 1_000_000_000,
        listener: None,
    };
    let (mut height, mut blocks, mut goes) = (12, 20, 1000);
    while let Some(option) = words.option()? {
        match option {
            "--workers" => turns.workers = words.number("a number of workers", 1, MOST_WORKERS)?,
            "--queues" => {
                turns.queues =
                    one_of(&mut words, [("shared", Queues::Shared), ("own", Queues::Own)])?;
            }
            "--tasks" => turns.tasks = words.number("a number of tasks", 1, MOST_TASKS)?,
            "--quantum" => turns.quantum_ns = words.time("a time")?,
            "--time" => turns.time_ns = words.time("a time")?,
            "--listener" => {
                let kinds = [("asks", Listener::Asks), ("woken", Listener::Woken)];
                turns.listener = Some(one_of(&mut words, kinds)?);
            }
            "--height" => height = words.number("a height", 0, 20)?,
            "--blocks" => blocks = words.number("a number of blocks", 1, 200)?,
            "--goes" => goes = words.number("a number", 1, 1_000_000)?,
            "-h" | "--help" => return Ok(None),
            _ => return Err(words.unknown()),
        }
    }
    // A round of all turns, and the pauses that are made of it, are times that a clock can add.
    if turns.time_ns > crate::events::LONGEST_NS || turns.quantum_ns > turns.time_ns {
        return Err(Error::usage(
            "tasks take turns for an hour at most, and a turn is no longer than that; give a shorter --time or --quantum",
        ));
    }
    Ok(Some(Plan { turns, height, blocks, goes }))
}

/// The kind of that name.
fn one_of<T>(words: &mut Words<'_>, kinds: [(&str, T); 2]) -> Result<T, Error> {
    let [first, second] = [kinds[0].0, kinds[1].0];
    let word = words.value("a kind")?;
    kinds.into_iter().find(|(name, _)| *name == word).map(|(_, kind)| kind).ok_or_else(|| {
        Error::usage(format!("`{}` is no kind; write {first} or {second}", word.escape_debug()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(line: &str) -> Result<Output, Error> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        run(&words)
    }

    #[test]
    fn every_option_is_read_and_refused() {
        let words: Vec<String> =
            "--workers 2 --queues own --tasks=3 --quantum 5us --time 2ms --listener woken --height 4 --blocks 5 --goes 6"
                .split(' ')
                .map(str::to_owned)
                .collect();
        let turns = turns::Plan {
            workers: 2,
            queues: Queues::Own,
            tasks: 3,
            quantum_ns: 5_000,
            time_ns: 2_000_000,
            listener: Some(Listener::Woken),
        };
        assert_eq!(read(&words), Ok(Some(Plan { turns, height: 4, blocks: 5, goes: 6 })));
        assert!(ran("turns --help").unwrap().text.contains("--queues KIND"));
        for (line, remedy) in [
            ("", "--help` lists them"),
            ("trees", "--help` lists them"),
            ("tree --height 21", "use 0 to 20"),
            ("tree --workers 65", "use 1 to 64"),
            ("turns --tasks 10001", "use 1 to 10000"),
            ("turns --queues mine", "write shared or own"),
            ("turns --quantum 2s --time 1s", "a shorter --time or --quantum"),
            ("turns --frobnicate", "--help lists them"),
        ] {
            let error = ran(line).unwrap_err().to_string();
            assert!(error.contains(remedy) && !error.contains('\n'), "{line}: {error}");
        }
    }

    /// Of each kind of listener, every message that was sent is received once, in order, and nothing of the last one is left.
    #[test]
    fn every_message_is_received() {
        for listener in ["asks", "woken"] {
            for queues in ["shared", "own"] {
                let line = format!(
                    "turns --workers 2 --tasks 4 --quantum 100us --time 50ms --listener {listener} --queues {queues}"
                );
                let seen: serde_json::Value =
                    serde_json::from_str(&ran(&line).unwrap().text).unwrap();
                let messages = seen["messages"].as_array().unwrap();
                for (n, message) in messages.iter().enumerate() {
                    assert_eq!(message["message"], n, "{line}");
                    assert!(
                        message["sent_ns"].as_u64() <= message["received_ns"].as_u64(),
                        "{line}"
                    );
                }
                assert_eq!(seen["tasks"].as_array().unwrap().len(), 4);
            }
        }
    }
}
