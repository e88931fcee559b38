//! Loads whose truth is known, to evaluate a kernel, a scheduler's settings or a machine.
//!
//! ```
//! use ft_load::response::{Response, Task, analyse};
//!
//! // Two periodic tasks, the one of higher priority first: 3 ms of work every 8 ms, and 17 ms every 33 ms.
//! let ms = |n: u64| n * 1_000_000;
//! let task = |cost, period| Task { cost_ns: ms(cost), period_ns: ms(period), jitter_ns: 0, blocking_ns: 0 };
//! let bounds = analyse(&[task(3, 8), task(17, 33)], 0);
//! assert_eq!(bounds, [Response::Within(ms(3)), Response::Within(ms(29))]);
//!
//! // A thread that runs whenever it can, for 20 ms on this machine: when it ran, by its own account.
//! let words = ["-n", "1", "-d", "20ms", "-w", "CPU", "--summary"].map(String::from);
//! let output = ft_load::hourglass::run(&words)?;
//! print!("{}", output.text);
//! # assert!(!output.text.is_empty());
//! # Ok::<(), ft_load::Error>(())
//! ```
//!
//! - [`hourglass`] runs threads with a known load, which find out for themselves when they ran.
//! - [`npt`] runs a loop that nothing should interrupt, and takes the time of each pass.
//! - [`events`] writes events at a given rate.
//! - [`capacity`] finds the highest rate at which a recording of them loses nothing.
//! - [`tasks`] runs async tasks on an executor of its own.
//! - [`response`] computes how long the jobs of a set of tasks can take at worst, before anything runs.
//!
//! The command `ft-load` is this library and nothing else: a function per subcommand takes the words behind its name and
//! returns what to print.

mod agent;
mod args;
pub mod capacity;
mod clock;
mod cpus;
mod error;
pub mod events;
pub mod hourglass;
mod memory;
pub mod npt;
pub mod response;
pub mod stats;
pub mod tasks;
pub mod time;

pub use clock::{Clock, Reading};
pub use error::Error;
pub use stats::{Summary, Typical};

/// What a subcommand has to print.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// For standard output; whole lines.
    pub text: String,
    /// Sentences for standard error: what the reader of the text should know beside it.
    pub notes: Vec<String>,
}

impl Output {
    fn new(text: String) -> Self {
        Output { text, notes: Vec::new() }
    }
}

/// `value` as JSON that a person can read, with a newline.
fn json(value: &impl serde::Serialize) -> String {
    // Fails for maps without text keys alone, and there are none.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
