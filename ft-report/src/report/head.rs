//! What every report begins with: which trace, how long, how far its clock and its coverage go.

use std::fmt;

use serde::Serialize;

use super::format::{count, dur, things};
use super::quality::{Quality, places};
use super::table::{cut, paragraph, width};
use ft_analysis::{RingWaits, Tally};
use ft_trace::spool::frame::MissingTracepoint;
use ft_trace::store::{Result, Trace};

/// Facts of a trace and of its quality.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Head {
    /// Directory of the trace.
    pub trace: String,
    /// End minus start, ns; null when the recording was killed.
    pub duration_ns: Option<i64>,
    /// Command that was recorded; empty when processes were attached to.
    pub command: Vec<String>,
    /// Host.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Kernel groups that were recorded.
    pub kernel_groups: Vec<String>,
    /// Tracepoints of these groups that the kernel does not have.
    pub missing: Vec<MissingTracepoint>,
    /// Events that were analysed.
    pub events: u64,
    /// Largest error of a user time, ns.
    pub clock_bound_ns: i64,
    /// User events compared with the scheduler's account.
    pub clock_checked: u64,
    /// Of these, outside their thread's running time by more than the bound.
    pub clock_violations: u64,
    /// User events that were lost.
    pub lost_user_events: u64,
    /// Kernel records that were lost.
    pub lost_kernel_records: u64,
    /// Times that a switch must have happened of which there is no record, and no loss was reported.
    pub missing_switches: u64,
    /// The clock's bound by segment, and where losses are.
    pub quality: Quality,
    /// What else a reader should know, in sentences.
    pub warnings: Vec<String>,
}

impl Head {
    /// Collects the head of a trace.
    ///
    /// # Errors
    ///
    /// When the tables `clock` and `loss` cannot be read.
    pub fn new(trace: &Trace, tally: &Tally) -> Result<Self> {
        let meta = trace.meta();
        let start = meta.start.window_from_ns.unwrap_or(meta.start.start_ns);
        let end = meta.end.as_ref().map_or(tally.last_ns, |end| end.ts);
        let quality = Quality::new(start, end, trace.rows(), trace.rows())?;
        let mut warnings: Vec<String> = meta.warnings.iter().map(ToString::to_string).collect();
        if tally.disordered > 0 {
            warnings.push(format!(
                "{} events came out of order and were not analysed; convert the recording again",
                count(tally.disordered)
            ));
        }
        if tally.unseen_switches + tally.ran_unseen > 0 {
            warnings.push(format!(
                "context switches are missing, and no loss was reported: {} times a CPU was left by another \
                 thread than the one that had got it last, {} times a thread recorded an event while it was \
                 switched out; intervals that this touches are marked lower bound or censored; compare with \
                 `perf sched record`",
                count(tally.unseen_switches),
                count(tally.ran_unseen)
            ));
        }
        if tally.doubtful_shares > 0 {
            warnings.push(format!(
                "{} times a thread had waited for a CPU and gone to another one before a missing switch showed \
                 that who had the first is not sure; what was finished by then is not marked",
                count(tally.doubtful_shares)
            ));
        }
        if !tally.ring_waits.is_none() {
            let RingWaits { waits, total_ns, longest_ns } = tally.ring_waits;
            warnings.push(format!(
                "threads of the recorded programs waited {} for room in their rings (--on-full wait), {} in all, {} at \
                 most: the programs were that much slower, and intervals that this touches are marked disturbed; \
                 larger rings (--ring-size) make it rarer",
                things(waits, "time"),
                dur(total_ns),
                dur(longest_ns)
            ));
        }
        if tally.unknown_sites > 0 {
            warnings.push(format!(
                "{} events are of sites that the trace does not describe, and were not analysed; see the \
                 losses of `directory`",
                count(tally.unknown_sites)
            ));
        }
        Ok(Head {
            trace: trace.dir().display().to_string(),
            duration_ns: meta.end.as_ref().map(|end| end.ts - meta.start.start_ns),
            command: meta.start.command.clone(),
            host: meta.start.host.clone(),
            kernel: meta.start.kernel.clone(),
            kernel_groups: meta.start.kernel_groups.clone(),
            missing: meta.start.missing.clone(),
            events: tally.events,
            clock_bound_ns: meta.clock.bound_ns,
            clock_checked: meta.clock.checked,
            clock_violations: meta.clock.violations,
            lost_user_events: tally.lost_user_events,
            lost_kernel_records: tally.lost_kernel_records,
            missing_switches: tally.unseen_switches + tally.ran_unseen,
            quality,
            warnings,
        })
    }
}

impl Head {
    /// A kernel group, and whether the kernel has all of it.
    fn group(&self, group: &str) -> String {
        let lacks = self.missing.iter().any(|missing| missing.group == group);
        if lacks { format!("{group} (incomplete)") } else { group.to_owned() }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let duration = self.duration_ns.map_or("interrupted".into(), dur);
        writeln!(f, "trace    {} ({duration}, {} events)", self.trace, count(self.events))?;
        let command = match &self.command[..] {
            [] => "none: attached".into(),
            words => cut(&words.join(" "), width(f).saturating_sub(9)),
        };
        writeln!(f, "command  {command}")?;
        let groups = match &self.kernel_groups[..] {
            [] => "not recorded".into(),
            groups => groups.iter().map(|g| self.group(g)).collect::<Vec<_>>().join(", "),
        };
        writeln!(f, "kernel   {groups} ({}, {})", cut(&self.host, 30), cut(&self.kernel, 40))?;
        let q = &self.quality;
        let mut clock = format!("right within {} ns", self.clock_bound_ns);
        if q.clock_segments > 0 {
            let (n, median) = (count(q.clock_segments), q.clock_bound_median_ns);
            clock += &format!(" (median of {n} segments {median} ns)");
        }
        clock += &match self.clock_checked {
            0 => ", not checked against the scheduler".into(),
            n => format!(
                "; {} of {} events outside their thread's running time",
                count(self.clock_violations),
                count(n)
            ),
        };
        if self.missing_switches > 0 && self.clock_checked > 0 {
            clock += ", not counting those where switches are missing";
        }
        paragraph(f, "clock    ", &clock)?;
        let mut loss = match (self.lost_user_events, self.lost_kernel_records) {
            (0, 0) => "none reported".into(),
            (user, kernel) => format!(
                "{} user events, {} kernel records at {}",
                count(user),
                count(kernel),
                places(q.loss_places)
            ),
        };
        let which = if self.missing.is_empty() { "all streams" } else { "what this kernel has" };
        loss += &match self.missing_switches {
            0 => format!("; {which} complete {} of the time", q.coverage_text()),
            _ => ", but switches are missing (see the warning)".into(),
        };
        paragraph(f, "loss     ", &loss)?;
        for place in &q.losses {
            paragraph(f, "         ", &place.text())?;
        }
        self.warnings.iter().try_for_each(|w| paragraph(f, "warning: ", w))
    }
}
