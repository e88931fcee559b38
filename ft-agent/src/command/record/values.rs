//! What options of `record` take that is neither a number nor a path.

use std::time::Duration;

use ft_agent::cpus;
use ft_agent::record::Reader;
use ft_report::units;
use ft_user::layout::{COUNTERS, Counter};

/// How long a thread whose ring is full waits for room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OnFull(pub(super) Option<Duration>);

/// How long that is for `--on-full wait`: ten times what the agent takes at most to look again, when it gets a CPU.
const FULL_WAIT: Duration = Duration::from_millis(10);

/// Reads the word after `--on-full`.
pub(super) fn on_full(text: &str) -> std::result::Result<OnFull, String> {
    let wait = match text.split_once('=') {
        None if text == "discard" => None,
        None if text == "wait" => Some(FULL_WAIT),
        Some(("wait", time)) => Some(units::duration(time)?),
        _ => return Err(format!("'{text}' is neither discard nor wait nor wait=TIME")),
    };
    Ok(OnFull(wait))
}

/// The numbers after `--agent-cpus`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cpus(pub(super) Vec<u32>);

/// Reads a list like `0,2-3`.
pub(super) fn list_of_cpus(text: &str) -> std::result::Result<Cpus, String> {
    let listed = cpus::parse_strictly(text);
    listed.map(Cpus).ok_or_else(|| format!("'{text}' is no list of CPUs, such as 0,2-3"))
}

/// Reads a name after `--counter`.
pub(super) fn counter(name: &str) -> std::result::Result<&'static Counter, String> {
    Counter::named(name).ok_or_else(|| {
        let names: Vec<&str> = COUNTERS.iter().map(|counter| counter.name).collect();
        format!("there is no such counter; choose of {}", names.join(", "))
    })
}

/// Reads the word after `--reader`.
pub(super) fn reader(text: &str) -> std::result::Result<Reader, String> {
    match text.split_once('=') {
        None if text == "adaptive" => Ok(Reader::Adaptive),
        None if text == "active" => Ok(Reader::Active),
        None if text == "waking" => Ok(Reader::Waking),
        Some(("timed", time)) => Ok(Reader::Timed(units::duration(time)?)),
        _ => Err(format!("'{text}' is neither adaptive nor timed=TIME nor active nor waking")),
    }
}
