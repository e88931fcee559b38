//! What a thread does: the execution models of Hourglass, section 3.2, by their names of appendix A.

use std::fmt;

use crate::Error;
use crate::args::{not_zero, number};
use crate::time::{Time, parse};

/// The largest array that a thread scans: 1 GiB.
///
/// Limit: as `MAX_THREADS` of `scenario.rs`.
const MAX_SCAN_KB: u64 = 1 << 20;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Runs whenever it can.
    Cpu {
        /// Reads through an array of this many KB meanwhile, line by line (`CPU_SCAN`).
        scan_kb: Option<u64>,
        /// Yields the CPU whenever it has had this much of it, ns (`CPU_YIELD`).
        yield_after_ns: Option<u64>,
    },
    /// Needs `amount_ns` of CPU time in each period, and sleeps until the next when it has had it.
    Periodic {
        /// CPU time, ns.
        amount_ns: u64,
        /// Length of a period, ns.
        period_ns: u64,
    },
    /// Needs `amount_ns` of CPU time in each period, and begins the next at once when it has had it.
    CpuPeriodic {
        /// CPU time, ns.
        amount_ns: u64,
        /// Length of a period, ns.
        period_ns: u64,
    },
    /// Sleeps for a period, again and again, and takes down how late it runs.
    Latency {
        /// Length of each sleep, ns.
        period_ns: u64,
    },
}

/// The values behind each name.
const FORMS: &str = "CPU, CPU_SCAN KB, CPU_YIELD AMOUNT, CPU_SCAN_YIELD KB AMOUNT, PERIODIC AMOUNT PERIOD, \
                     CPU_PERIODIC AMOUNT PERIOD or LAT PERIOD";

impl Workload {
    /// Reads a name; `value` hands out the words behind it, and says what it lacks.
    ///
    /// # Errors
    ///
    /// For an unknown name, for values that are missing or not what they should be, and for an amount that no period has.
    pub(super) fn read<'a>(
        name: &str,
        mut value: impl FnMut(&str) -> Result<&'a str, Error>,
    ) -> Result<Self, Error> {
        let mut time = |what: &str| {
            let text = value(what)?;
            not_zero(text, parse(text)?)
        };
        match name {
            "CPU" => Ok(Workload::Cpu { scan_kb: None, yield_after_ns: None }),
            "CPU_YIELD" => {
                Ok(Workload::Cpu { scan_kb: None, yield_after_ns: Some(time("an amount")?) })
            }
            "CPU_SCAN" | "CPU_SCAN_YIELD" => {
                let size = value("a size in KB")?;
                let scan_kb = Some(number(size, name, 1, MAX_SCAN_KB)?);
                let yields = name == "CPU_SCAN_YIELD";
                let mut amount = || {
                    let text = value("an amount")?;
                    not_zero(text, parse(text)?)
                };
                Ok(Workload::Cpu { scan_kb, yield_after_ns: yields.then(&mut amount).transpose()? })
            }
            "PERIODIC" => {
                let (amount_ns, period_ns) = (time("an amount")?, time("a period")?);
                fits(amount_ns, period_ns)?;
                Ok(Workload::Periodic { amount_ns, period_ns })
            }
            "CPU_PERIODIC" => {
                let (amount_ns, period_ns) = (time("an amount")?, time("a period")?);
                fits(amount_ns, period_ns)?;
                Ok(Workload::CpuPeriodic { amount_ns, period_ns })
            }
            "LAT" => Ok(Workload::Latency { period_ns: time("a period")? }),
            _ => Err(Error::usage(format!(
                "there is no workload `{}`; use {FORMS}",
                name.escape_debug()
            ))),
        }
    }
}

/// Whether the amount can be had in each period.
pub(super) fn fits(amount_ns: u64, period_ns: u64) -> Result<(), Error> {
    if amount_ns <= period_ns {
        return Ok(());
    }
    Err(Error::usage(format!(
        "no period of {} has {} in it; ask for less, or less often",
        Time(period_ns),
        Time(amount_ns)
    )))
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Workload::Cpu { scan_kb: None, yield_after_ns: None } => write!(f, "CPU"),
            Workload::Cpu { scan_kb: Some(kb), yield_after_ns: None } => write!(f, "CPU_SCAN {kb}"),
            Workload::Cpu { scan_kb: None, yield_after_ns: Some(ns) } => {
                write!(f, "CPU_YIELD {}", Time(ns))
            }
            Workload::Cpu { scan_kb: Some(kb), yield_after_ns: Some(ns) } => {
                write!(f, "CPU_SCAN_YIELD {kb} {}", Time(ns))
            }
            Workload::Periodic { amount_ns, period_ns } => {
                write!(f, "PERIODIC {} {}", Time(amount_ns), Time(period_ns))
            }
            Workload::CpuPeriodic { amount_ns, period_ns } => {
                write!(f, "CPU_PERIODIC {} {}", Time(amount_ns), Time(period_ns))
            }
            Workload::Latency { period_ns } => write!(f, "LAT {}", Time(period_ns)),
        }
    }
}
