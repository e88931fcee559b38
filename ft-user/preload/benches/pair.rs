//! What an uncontended lock and unlock of a pthread mutex cost: plain, under the preload library off and
//! on, and under LTTng's wrapper in the same run.
//!
//! Each subject is this program again, as a child that knows nothing of either library, with a second
//! thread so that the C library locks as it must. The pair stands in a loop around a dependency
//! chain; the same loop without it is measured in turns and taken off. While events are on, they are drained
//! on the other core between the batches, and a round in which not all were read does not count.
//!
//! `cargo bench -p ft-preload --bench pair`

#[path = "pair/lttng.rs"]
mod lttng;
#[path = "pair/measure.rs"]
mod measure;
#[path = "../../tests/common/mod.rs"]
mod trace;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use measure::{Plan, Result};

/// Rounds over all subjects; a subject's figure is the median of its rounds.
const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(plan) = arguments.get(1).and_then(|text| text.parse::<Plan>().ok()) {
        println!("{}", measure::run(plan));
        return;
    }
    let library = library();
    let wrapper = lttng::wrapper();
    if wrapper.is_none() {
        println!("LTTng's wrapper is not installed (cargo xtask setup): its rows are missing");
    }
    let mut rows: [(&str, Vec<Result>); 5] =
        ["plain", "ft-preload off", "ft-preload on", "LTTng off", "LTTng on"]
            .map(|name| (name, Vec::new()));
    for _ in 0..ROUNDS {
        rows[0].1.extend(child(Plan::OFF, None, None));
        rows[1].1.extend(child(Plan::OFF, Some(&library), None));
        rows[2].1.extend(child(Plan::ON, Some(&library), Some(Duration::from_millis(2))));
        if let Some(wrapper) = &wrapper {
            rows[3].1.extend(child(Plan::OFF, Some(wrapper), None));
            let traced = lttng::session(|| child(Plan::ON_SLOWLY, Some(wrapper), None));
            rows[4].1.extend(traced.flatten());
        }
    }
    println!("{:16} {:>12} {:>12}", "pair", "minimum ns", "median ns");
    for (name, results) in &mut rows {
        if let Some(Result { minimum, median }) = measure::middle(results) {
            println!("{name:16} {minimum:12.2} {median:12.2}");
        }
    }
}

/// Measures in a child with this library before the C library. `drain` enables the events, and says how
/// often to take them.
fn child(plan: Plan, preload: Option<&Path>, drain: Option<Duration>) -> Option<Result> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.arg(plan.to_string()).stdout(Stdio::piped()).stdin(Stdio::null());
    // No agent and no LTTng daemon is waited for.
    command.env("FT_SOCKET", "/nonexistent").env("LTTNG_UST_REGISTER_TIMEOUT", "1000");
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    if drain.is_some() {
        command.env("FT_ENABLE", "lock.mutex_*");
    }
    let mut child = command.spawn().ok()?;
    let mut lines = BufReader::new(child.stdout.take()?).lines();
    lines.next()?.ok()?;
    if let Some(interval) = drain {
        let mut memory = trace::Memory::of(child.id());
        let mut events = 0;
        while child.try_wait().ok()?.is_none() {
            events += memory.take().len() as u64;
            std::thread::sleep(interval);
        }
        events += memory.take().len() as u64;
        if events != 2 * plan.pairs() {
            println!("a round does not count: the reader fell behind, and losing is cheaper");
            return None;
        }
    }
    let result = lines.next()?.ok()?.parse().ok();
    child.wait().ok()?;
    result
}

/// The library that Cargo has built for this program.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("the path of this program");
    program.with_file_name("libft_preload.so")
}
