//! What every report begins with: which trace, how long, how far its clock and its coverage go.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::Serialize;

use super::Input;
use super::quality::Quality;
use super::recording::Recording;
use crate::document::{IntoText, N, Ns, Of, Section, Text, Word};
use crate::stats::Window;
use crate::stats::counted::is_time;
use crate::text;
use ft_analysis::{Counting, RingWaits, Samples, Tally};
use ft_trace::spool::frame::{MissingTracepoint, Refused, StartAt};
use ft_trace::store::{HostClockMeta, Meta, Result, Row as _, Trace};
use ft_trace::tables::{HostClockState, LossRow};
use ft_trace::warning::Warning;

/// Facts of a trace and of its quality.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Head {
    /// Directory of the trace.
    pub trace: String,
    /// End minus start, ns; null when the recording was killed.
    pub duration_ns: Option<i64>,
    /// Command that was recorded; empty when processes were attached to.
    pub command: Vec<String>,
    /// All threads of the system were observed.
    #[serde(skip)]
    pub system_wide: bool,
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
    /// How far the time of day of the host can be off; missing where the kernel was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_of_day: Option<HostClockMeta>,
    /// When it was to begin, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<StartAt>,
    /// What threads counted, and which could not; missing where nobody asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counting: Option<Counting>,
    /// User events that were lost.
    pub lost_user_events: u64,
    /// Kernel records that were lost.
    pub lost_kernel_records: u64,
    /// Times that a switch must have happened of which there is no record, and no loss was reported.
    pub missing_switches: u64,
    /// What the recorded processes have started could not register.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unreachable: bool,
    /// A preload library was to reach all programs, and only the kernel's records would tell which it has not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unreached_unknown: bool,
    /// Processes that could not register.
    #[serde(skip_serializing_if = "is_none")]
    pub refused: u64,
    /// Samples that are missing, and no loss counts them.
    #[serde(skip_serializing_if = "Samples::is_none")]
    pub samples: Samples,
    /// What the recording itself did; missing in a trace that does not say who recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
    /// Who may read it; missing where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<Readers>,
    /// The clock's bound by segment, and where losses are.
    pub quality: Quality,
    /// What else a reader should know, in sentences.
    pub warnings: Vec<Text>,
}

/// Who may read the files of a trace, by the owner and the rights of its `meta.json`; what is above them on the way may allow less.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Readers {
    /// Number of the user whose they are.
    pub user: u32,
    /// Members of their group, too.
    pub group: bool,
    /// Everybody.
    pub all: bool,
}

impl Readers {
    fn of(trace: &Path) -> Option<Readers> {
        let facts = fs::metadata(trace.join("meta.json")).ok()?;
        let may = |bit| facts.mode() & bit != 0;
        Some(Readers { user: facts.uid(), group: may(0o040), all: may(0o004) })
    }

    fn text(self) -> Text {
        let Readers { user, group, all } = self;
        match (all, group) {
            (true, _) => text!("readable by all users of this machine"),
            (false, true) => {
                text!("readable by user {} and the group of the files", Word(&user.to_string()))
            }
            (false, false) => text!("readable by user {} alone", Word(&user.to_string())),
        }
    }
}

impl Head {
    /// Collects the head of a trace.
    ///
    /// # Errors
    ///
    /// When the tables `clock` and `loss` cannot be read.
    pub fn read(input: Input<'_>) -> Result<Self> {
        let Input { trace, tally, .. } = input;
        let meta = trace.meta();
        let Window { from_ns, to_ns } = input.window();
        let quality = Quality::new(from_ns, to_ns, trace.rows(), trace.rows())?;
        Ok(Head {
            trace: trace.dir().display().to_string(),
            duration_ns: meta.end.as_ref().map(|end| end.ts - meta.start.start_ns),
            command: meta.start.command.clone(),
            system_wide: meta.start.system_wide,
            host: meta.start.host.clone(),
            kernel: meta.start.kernel.clone(),
            kernel_groups: meta.start.kernel_groups.clone(),
            missing: meta.start.missing.clone(),
            events: tally.events.saturating_sub(rows_of_losses(meta)),
            clock_bound_ns: meta.clock.bound_ns,
            clock_checked: meta.clock.checked,
            clock_violations: meta.clock.violations,
            time_of_day: meta.clock.host,
            start_at: meta.start.start_at.clone().filter(|_| meta.start.window_from_ns.is_none()),
            counting: (!meta.start.counters.is_empty())
                .then(|| Counting { names: meta.start.counters.clone(), ..tally.counting.clone() }),
            lost_user_events: tally.lost_user_events,
            lost_kernel_records: tally.lost_kernel_records,
            missing_switches: tally.unseen_switches + tally.ran_unseen,
            unreachable: meta.start.unreachable.is_some(),
            unreached_unknown: meta.start.preload && meta.start.kernel_groups.is_empty(),
            refused: refused(&meta.warnings),
            samples: tally.samples,
            recording: Recording::read(input),
            readers: Readers::of(trace.dir()),
            quality,
            warnings: warnings(trace, tally),
        })
    }
}

/// Rows that are analysed and are no events.
fn rows_of_losses(meta: &Meta) -> u64 {
    meta.tables.get(LossRow::TABLE).map_or(0, |table| table.rows)
}

/// What a reader should know before the figures.
fn warnings(trace: &Trace, tally: &Tally) -> Vec<Text> {
    let mut warnings: Vec<Text> =
        trace.meta().warnings.iter().map(|w| w.to_string().as_str().into_text()).collect();
    if tally.disordered > 0 {
        warnings.push(text!(
            "{} came out of order and were not analysed; convert the recording again",
            Of(tally.disordered, "event")
        ));
    }
    if tally.unseen_switches + tally.ran_unseen > 0 {
        let times = |n: u64, what| (n > 0).then(|| text!("{} {}", Of(n, "time"), what));
        let seen = [
            times(
                tally.unseen_switches,
                "a CPU was left by another thread than had come to it last",
            ),
            times(tally.ran_unseen, "a thread recorded an event while it was switched out"),
        ];
        warnings.push(text!(
            "context switches are missing, {} no loss was reported: {}; intervals that this touches are marked \
             lower bound or censored; compare with `perf sched record`",
            if tally.lost_kernel_records > 0 { "also where" } else { "although" },
            Text::join(seen.into_iter().flatten(), ", ").unwrap_or_default()
        ));
    }
    if !tally.samples.is_none() {
        warnings.push(text!(
            "{} are missing of about {}, and no loss counts them: another tracer's programs had the CPU when its clock struck, or the \
             virtual machine stood still; shares of time by samples are wrong by as much",
            Of(tally.samples.missing, "sample"),
            N(tally.samples.expected)
        ));
    }
    if tally.doubtful_shares > 0 {
        warnings.push(text!(
            "{} a thread waited for one CPU and moved to another before a missing switch showed that it is not known who \
             had the first; what was finished by then is not marked",
            Of(tally.doubtful_shares, "time")
        ));
    }
    if !tally.ring_waits.is_none() {
        let RingWaits { waits, total_ns, longest_ns } = tally.ring_waits;
        warnings.push(text!(
            "threads of the recorded programs waited {} for room in their rings (--on-full wait), {} in all, {} at \
             most: the programs were that much slower, and intervals that this touches are marked disturbed; \
             larger rings (--ring-size) make it rarer",
            Of(waits, "time"),
            Ns(total_ns),
            Ns(longest_ns)
        ));
    }
    if tally.unknown_sites > 0 {
        warnings.push(text!(
            "{} of sites that the trace does not describe were not analysed; see the losses of `directory`",
            Of(tally.unknown_sites, "event")
        ));
    }
    warnings
}

/// How far CLOCK_REALTIME can be off.
fn time_of_day(host: &HostClockMeta) -> Text {
    match (host.state, host.bound_ns) {
        (HostClockState::Synchronised, Some(bound_ns)) => {
            text!(
                "the host's clock is synchronised, right within {} by the kernel's account",
                Ns(bound_ns)
            )
        }
        (HostClockState::Synchronised | HostClockState::Unbounded, _) => text!(
            "the host's clock is synchronised; how far it can be off is not known, for the kernel was told an error of 0"
        ),
        (HostClockState::Unsynchronised, _) => {
            text!("the host's clock is not synchronised: how far it is off is not known")
        }
        (HostClockState::Unknown, _) => {
            text!("how far the host's clock can be off is not known: the kernel did not say")
        }
    }
}

/// What was counted, by how many threads, and why not by others.
fn counters(counting: &Counting) -> Text {
    let Counting { names, threads, refused, errno } = counting;
    let time = names.iter().any(|name| is_time(name));
    let counted = text!(
        "{} in user space{}, by {}",
        Word(&names.join(", ")),
        if time { " (task-clock: all time on a CPU)" } else { "" },
        Of(*threads, "thread")
    );
    if *refused == 0 {
        return counted;
    }
    let error = io::Error::from_raw_os_error(*errno);
    let why = match error.kind() {
        ErrorKind::NotFound => "the machine has no such counter".to_owned(),
        ErrorKind::PermissionDenied => {
            "the kernel does not allow it (perf_event_paranoid, or for the pages of many perf_event_mlock_kb)".to_owned()
        }
        ErrorKind::Unsupported => {
            "programs may not read it without a call (--counter-calls)".to_owned()
        }
        _ => error.to_string(),
    };
    text!("{}; not by {}: {}", counted, Of(*refused, "thread"), &*why)
}

/// When it began, beside when it was to.
fn began(at: &StartAt) -> Text {
    let after = at.began_ns.saturating_sub(at.asked_ns);
    text!("{} after the time that was asked for, {}", Ns(after), Word(&at.asked))
}

impl Head {
    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("trace", "");
        let events = Of(self.events, "event");
        let trace = &*self.trace;
        s.item(
            "trace",
            match self.duration_ns {
                Some(ns) => text!("{} ({}, {})", trace, Ns(ns), events),
                None => text!("{} (interrupted, {})", trace, events),
            },
        );
        let command = self.command.join(" ");
        s.item(
            "command",
            match &*command {
                "" if self.system_wide => text!("none: every thread of the system"),
                "" => text!("none: attached"),
                command => text!("{}", Word(command)),
            },
        );
        let groups: Vec<Text> = self.kernel_groups.iter().map(|group| self.group(group)).collect();
        let groups = Text::join(groups, ", ").unwrap_or_else(|| text!("not recorded"));
        s.item("kernel", text!("{} ({}, {})", groups, Word(&self.host), Word(&self.kernel)));
        s.item("clock", self.clock());
        self.time_of_day.iter().for_each(|host| s.item("UTC", time_of_day(host)));
        self.start_at.iter().for_each(|at| s.item("began", began(at)));
        self.counting.iter().for_each(|counting| s.item("counters", counters(counting)));
        s.item("loss", self.loss());
        self.quality.losses.iter().for_each(|place| s.say(place.text()));
        self.recording.iter().for_each(|recording| recording.say(&mut s));
        self.readers.iter().for_each(|readers| s.item("files", readers.text()));
        self.warnings.iter().for_each(|warning| s.warn(warning.clone()));
        s.with(self)
    }

    /// A kernel group, and whether the kernel has all of it.
    fn group(&self, group: &str) -> Text {
        let lacks = self.missing.iter().any(|missing| missing.group == group);
        if lacks { text!("{} (incomplete)", group) } else { text!("{}", group) }
    }

    fn clock(&self) -> Text {
        let q = &self.quality;
        let mut clock = text!("right within {}", Ns(self.clock_bound_ns));
        if q.clock_segments > 0 {
            let (n, median) = (Of(q.clock_segments, "segment"), Ns(q.clock_bound_median_ns));
            clock = text!("{} (median of {} {})", clock, n, median);
        }
        if self.clock_checked == 0 {
            return clock.and(", not checked against the scheduler");
        }
        let switches = match self.missing_switches {
            0 => "",
            _ => ", not counting those where switches are missing",
        };
        text!(
            "{}; {} of {} outside their thread's running time{}",
            clock,
            N(self.clock_violations),
            Of(self.clock_checked, "event"),
            switches
        )
    }

    fn loss(&self) -> Text {
        let q = &self.quality;
        let loss = match (self.lost_user_events, self.lost_kernel_records) {
            (0, 0) if q.unknown_places > 0 => {
                text!("an unknown number at {}", Of(q.unknown_places, "place"))
            }
            (0, 0) => text!("none reported"),
            (user, kernel) => text!(
                "{}, {} at {}",
                Of(user, "user event"),
                Of(kernel, "kernel record"),
                Of(q.loss_places, "place")
            )
            .and(if q.unknown_places > 0 { ", and an unknown number" } else { "" }),
        };
        let which = if self.missing.is_empty() { "all streams" } else { "what this kernel has" };
        match (self.missing_switches, q.complete()) {
            (0, Some(share)) => text!("{}; {} complete {} of the time", loss, which, share),
            (0, None) => loss,
            _ => loss.and(", but switches are missing (see the warning)"),
        }
    }
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Processes that have asked to be recorded and were not.
fn refused(warnings: &[Warning]) -> u64 {
    let is_missing = |it: &&Refused| !(it.is_recorded || it.has_unnamed || it.has_not_asked);
    let refused = warnings.iter().filter_map(|warning| match warning {
        Warning::Refused(refused) => Some(refused),
        _ => None,
    });
    refused.filter(is_missing).map(|refused| refused.count).sum()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::render::text::sentence;

    #[test]
    fn what_was_counted_is_said_and_why_not() {
        let names = vec!["instructions".to_owned(), "cache-misses".to_owned()];
        let said = |threads, refused, errno| {
            let counting = Counting { names: names.clone(), threads, refused, errno };
            sentence(&counters(&counting)).to_string()
        };
        let counted = "instructions, cache-misses in user space, by";
        assert_eq!(said(3, 0, 0), format!("{counted} 3 threads"));
        for (errno, why) in [
            (2, "the machine has no such counter"),
            (13, "perf_event_paranoid"),
            (1, "perf_event_paranoid"),
            (95, "--counter-calls"),
            (24, "Too many open files"),
            (i32::MAX, "Unknown error"),
        ] {
            let text = said(0, 2, errno);
            let begin = format!("{counted} 0 threads; not by 2 threads: ");
            assert!(text.starts_with(&begin) && text.contains(why), "{text}");
        }
    }

    #[test]
    fn a_recording_of_the_whole_system_attached_to_nobody() {
        let text = |system_wide| Head { system_wide, ..Head::default() }.section().to_string();
        assert!(text(true).contains("none: every thread of the system"), "{}", text(true));
        assert!(text(false).contains("none: attached"), "{}", text(false));
    }

    #[test]
    fn who_may_read_a_trace_is_said() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Readers::of(dir.path()).is_none());
        let meta = dir.path().join("meta.json");
        fs::write(&meta, "").unwrap();
        let user = fs::metadata(&meta).unwrap().uid();
        for (mode, expected) in [
            (0o600, format!("readable by user {user} alone")),
            (0o640, format!("readable by user {user} and the group of the files")),
            (0o644, "readable by all users of this machine".to_owned()),
        ] {
            fs::set_permissions(&meta, fs::Permissions::from_mode(mode)).unwrap();
            let said = Readers::of(dir.path()).unwrap().text();
            assert_eq!(*sentence(&said), *expected, "{mode:o}");
        }
    }

    #[test]
    fn a_time_of_day_without_a_bound_has_no_figure() {
        let check = |state, bound_ns, expected: &str| {
            let host = HostClockMeta { state, bound_ns, tai_s: None, samples: 2 };
            assert_eq!(&*sentence(&time_of_day(&host)), expected);
        };
        check(
            HostClockState::Synchronised,
            Some(316_000),
            "the host's clock is synchronised, right within 316 µs by the kernel's account",
        );
        check(
            HostClockState::Unbounded,
            None,
            "the host's clock is synchronised; how far it can be off is not known, for the kernel was told an error of 0",
        );
        check(
            HostClockState::Unsynchronised,
            None,
            "the host's clock is not synchronised: how far it is off is not known",
        );
        check(
            HostClockState::Unknown,
            None,
            "how far the host's clock can be off is not known: the kernel did not say",
        );
    }
}
