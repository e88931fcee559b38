//! `ft-load npt`: a loop that nothing should interrupt, and how long each of its passes took.
//!
//! The Non-Preempt Test of Beamonte and Dagenais ("Linux Low-Latency Tracing for Multicore Hard Real-Time Systems", 2015,
//! section 4.1): a thread on one CPU, with locked memory and a real-time priority where asked for, takes the time from
//! the start of each pass to that of the next. A trace point in the loop shows what tracing adds.
//!
//! Unlike the original it does not switch interrupts off, and by default it measures the frequency of the time stamp
//! counter for 2 ms instead of taking the CPU's from `/proc/cpuinfo`, which is another one where the CPU's changes.
//!
//! # Events
//!
//! | event | arguments | written |
//! |---|---|---|
//! | `gap.begin`, `gap.seen`, `gap.end` | those of [`ft_user::gap`]; the threshold is `--peak` | around all passes; a gap that begins behind `npt.begin` is a peak |
//! | `npt.begin` | `loops`; `own`, the cycles of a pass that nothing disturbs; `hz` of the counter; `warm_up`, `peak_ns`, `priority` or null | when the warm-up is over |
//! | `npt.pass` | `pass` | in each pass, from 0 on, with `--tracepoint` (at most `--rate` a second); in those of the warm-up, too |
//! | `npt.peak` | `pass`, `cycles` | behind the `gap.seen` of a peak |
//! | `npt.end` | `passes`, `peaks`, `bins` | 20 ms behind the last pass, so that there is room for it |
//! | `npt.bin` | `from`, `to`, `passes` | then, for each of so many bins of the histogram, whose passes took `from` cycles or more, and fewer than `to` |
//!
//! Of these the agent makes the tables `loop_histogram` and `loop_peaks`, and the report `npt`.

mod measure;
mod options;
mod pass_lengths;
mod print;
mod record;
mod wake;

pub use measure::{Measured, Plan, measure};

use crate::{Error, Output};

/// Runs `ft-load npt` with these words behind its name.
///
/// # Errors
///
/// A sentence for what the command line gets wrong, or the machine refuses; then no pass was made.
pub fn run(words: &[String]) -> Result<Output, Error> {
    let Some((plan, json, recorded)) = options::read(words)? else {
        return Ok(Output::new(format!("{}\n", options::HELP)));
    };
    if let Some(recorded) = recorded {
        return Err(recorded.instead(&options::words(&plan, json)));
    }
    let measured = measure(&plan)?;
    Ok(Output::new(match json {
        true => print::json(&plan, &measured),
        false => print::text(&plan, &measured),
    }))
}
