//! What a reader should know of the quality of the data, with a remedy.
//!
//! A warning never stops anything. It stands in `meta.json` and is printed under the reports that it
//! concerns.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use ft_user::layout::{MAX_RING_SLOTS, Slot};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::number;
use crate::spool::frame::{MissingTracepoint, Refused, Start};
use crate::store::Fault;
use crate::store::told;
use crate::tables::LossOrigin;

/// One warning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "warning", rename_all = "kebab-case")]
pub enum Warning {
    /// The recording was killed, or has failed.
    #[error(
        "the recording was interrupted, or could not be written to its end, as on a full disk: what the agent had not yet copied is \
         missing; end it with Ctrl-C or --duration, and leave it room"
    )]
    NotEnded,
    /// Parts of tables are not read, because they are not those that were written. Never stored.
    #[error(
        "this trace is not whole: {what}; what it has of {tables} is missing in all that follows"
    )]
    LeftOut {
        /// The first of them, and how many there are.
        what: String,
        /// Their tables.
        tables: String,
    },
    /// A file of the spool is cut short or damaged.
    #[error(
        "{file} is damaged at byte {offset} ({reason}): {} bytes from there on were left out; \
         if the agent was not killed, check the disk",
        number::count(*bytes)
    )]
    SpoolDamaged {
        /// File, relative to the trace.
        file: String,
        /// Where it begins.
        offset: u64,
        /// Bytes left out.
        bytes: u64,
        /// Why.
        reason: String,
    },
    /// A segment has no usable clock sample.
    #[error(
        "{file} holds no clock sample: its user events could not be placed in time and were left out; \
         record again"
    )]
    NoClock {
        /// File, relative to the trace.
        file: String,
    },
    /// Processes that were named embed `ft-user`, and what they start cannot register.
    #[error(
        "{reason}: events of what the recorded processes start from now on are missing, and only the kernel's view of it is there; end the other \
         recording first, or start the program with `record -- CMD`"
    )]
    Unreachable {
        /// Why.
        reason: String,
    },
    /// Something was lost.
    #[error("{} events were lost ({origin}): {}", number::count(*count), loss_remedy(origin, *ring_bytes))]
    Loss {
        /// A word of [`LossOrigin`].
        origin: String,
        /// How many.
        count: u64,
        /// Rings of this size, bytes, would have been enough, as far as can be estimated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ring_bytes: Option<u64>,
    },
    /// Events were begun and never finished.
    #[error(
        "{} events were begun and never finished ({origin}): larger rings do not help; their thread was in the middle of \
         them when it was killed, was interrupted by a signal handler that did not come back (siglongjmp), or was switched to another \
         stack for good: block the signal around code that is left in this way, or leave it by another way",
        number::count(*count)
    )]
    Unfinished {
        /// `ring` or `shared-ring`.
        origin: String,
        /// How many, at least.
        count: u64,
    },
    /// The kernel lacks tracepoints of a group that was asked for.
    #[error(
        "this kernel ({kernel}) has no {} {}: the trace lacks what they record of the group {group}, and no loss \
         counts it; {}",
        if group == "section" { "traceable function" } else { "tracepoint" },
        tracepoints.join(", "),
        missing_remedy(group)
    )]
    MissingTracepoints {
        /// Group.
        group: String,
        /// Tracepoints of it that are missing.
        tracepoints: Vec<String>,
        /// Release of the kernel.
        kernel: String,
    },
    /// The preload library was not loaded into programs of the run.
    #[error(
        "--preload did not trace {}, whose locks are not in the trace: {}",
        runs_of(*runs, *of), untraced(programs)
    )]
    Untraced {
        /// How many runs.
        runs: u64,
        /// Of how many that ended during the recording.
        of: u64,
        /// The programs, most frequent first.
        programs: Vec<UntracedProgram>,
    },
    /// The kernel's clock is not the TSC.
    #[error(
        "the clock source of this kernel is {clock}, so it may not trust the TSC, by which the events of applications \
         are placed in time: they can be wrong, or be left out at the end; see `dmesg | grep -i tsc`, and use a machine \
         whose clock source is tsc (the boot option tsc=reliable selects it)"
    )]
    ClockSource {
        /// Its clock source.
        clock: String,
    },
    /// The CPU does not vouch for its TSC.
    #[error(
        "the CPU does not announce {}, so its TSC, by which the events of applications are placed in time, may change \
         its rate or stand still: they can be wrong, or be left out at the end; use a CPU, or a type of virtual machine, \
         with an invariant TSC",
        lacks.join(" and ")
    )]
    TscFlags {
        /// Flags that are not in `/proc/cpuinfo`.
        lacks: Vec<String>,
    },
    /// The clock samples make no clock.
    #[error("{} slots of {file} could not be placed in time and were left out: {reason}", number::count(*slots))]
    NoTsc {
        /// File, relative to the trace.
        file: String,
        /// How many, of 32 bytes in rings of a thread and 128 in shared ones: an event takes one or more.
        slots: u64,
        /// Why.
        reason: String,
    },
    /// Formats of sites cannot be shown with the arguments.
    #[error(
        "{}: {fault}; its events are listed with the placeholder as it stands; correct it in the program",
        formats_of(event, *more)
    )]
    Format {
        /// Event of the first such site.
        event: String,
        /// Other such sites.
        more: u64,
        /// What the first one lacks.
        fault: String,
    },
    /// Slots or kernel records were not valid.
    #[error(
        "{} slots or records were not valid and were left out: a process wrote over its rings, \
         or was built with another version of ft-user; rebuild it with this version",
        number::count(*count)
    )]
    Rejected {
        /// How many.
        count: u64,
    },
    /// Registrations were refused.
    #[error("{0}")]
    Refused(Refused),
    /// Files of a user could not be read for names.
    #[error(
        "functions and variables in {file}{}{} have no names in processes of {}, since {reason}: look at the file, \
         which is damaged or made to harm who reads it, and record again without it",
        match files {
            0 | 1 => String::new(),
            files => format!(", and in {} more files", number::count(files - 1)),
        },
        owner.map(|owner| format!(" of the user with number {owner}")).unwrap_or_default(),
        user.map_or("a user who is not known".into(), |user| format!("the user with number {user}"))
    )]
    NoNames {
        /// Owner of the files; `None` where nobody looked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<u32>,
        /// User of the processes that have mapped them; `None` where that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<u32>,
        /// The first of them.
        file: String,
        /// How many they are.
        files: u64,
        /// Why the first has none.
        reason: String,
    },
    /// More is mounted than is read.
    #[error(
        "functions and variables have no names in processes that see more mounts than are read: which of their files a program of some user \
         answers for is not known, so none is looked at; unmount what is not needed (/proc/PID/mountinfo lists it), and record again"
    )]
    Mounts,
    /// Stacks of a user's processes had more addresses than are looked up.
    #[error(
        "call chains of processes of {} end early, or go on by frame pointers alone: what lay on their stacks were more different addresses \
         of functions than are looked up; record fewer of this user's processes at once",
        user.map_or("a user who is not known".into(), |user| format!("the user with number {user}"))
    )]
    Unwound {
        /// The user; `None` where that is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<u32>,
    },
    /// Threads whose number is not known.
    #[error(
        "{} threads ended before the agent could ask for their number: they stand under minus the \
         number that they had in their PID namespace, and the kernel's records of them, if there are any, \
         under another; record the kernel, too, or let threads of a container live for some milliseconds",
        number::count(*threads)
    )]
    Unnumbered {
        /// How many.
        threads: u64,
    },
    /// Times were taken from beyond the clock samples.
    #[error(
        "{} events lie up to {} outside the clock samples: their times are \
         extrapolated, with an error of up to {}; they were recorded before the first sample, or after the last that is left",
        number::count(*events), number::dur(*distance_ns), number::dur(*bound_ns)
    )]
    Extrapolated {
        /// How many.
        events: u64,
        /// Largest distance.
        distance_ns: i64,
        /// Largest bound.
        bound_ns: i64,
    },
    /// The wall clock was set during the recording.
    #[error(
        "CLOCK_REALTIME was set by {} during the recording: convert ts with the offsets of \
         the table `clock`, not with the one of meta.json",
        number::dur(*step_ns)
    )]
    ClockSet {
        /// How far.
        step_ns: i64,
    },
    /// The machine was suspended during the recording.
    #[error(
        "the machine was suspended for {} during the recording: CLOCK_MONOTONIC stood \
         still meanwhile; intervals across it are too short",
        number::dur(*asleep_ns)
    )]
    Suspended {
        /// How long.
        asleep_ns: i64,
    },
    /// Clock samples that were left out.
    #[error(
        "{} clock samples were interrupted and left out; on a busy machine this is normal",
        number::count(*count)
    )]
    WideSamples {
        /// How many.
        count: u64,
    },
    /// Events of threads that were not running.
    #[error(
        "{} of {} events lie up to {} outside the time in which the kernel says \
         that their thread ran, beyond the clock bound of {}: do not trust intervals \
         shorter than that",
        number::count(*count), number::count(*checked), number::dur(*worst_ns), number::dur(*bound_ns)
    )]
    ClockViolations {
        /// How many.
        count: u64,
        /// Of how many.
        checked: u64,
        /// Largest distance.
        worst_ns: i64,
        /// The bound.
        bound_ns: i64,
    },
}

/// A program into which the preload library was not loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntracedProgram {
    /// Its name, as the kernel cuts it to 15 bytes; several programs can have it.
    pub name: String,
    /// How often it ran so, for this reason.
    pub runs: u64,
    /// Why, with the remedy, by what was seen of it while it ran; null when nobody has looked at it.
    pub reason: Option<String>,
}

/// Programs that are named in a warning; all are in meta.json.
const NAMED_PROGRAMS: usize = 5;

/// The format of a site, of so many more.
fn formats_of(event: &str, more: u64) -> String {
    match more {
        0 => format!("format of {event}"),
        more => format!("format of {event} (and of {} more)", number::count(more)),
    }
}

/// So many runs of programs, of those that there were.
fn runs_of(runs: u64, of: u64) -> String {
    match (number::count(runs), number::count(of)) {
        (_, of) if of == "1" => "the only program that ran".into(),
        (runs, of) if runs == of => format!("any of the {of} runs of programs"),
        (runs, of) => format!("{runs} of {of} runs of programs"),
    }
}

/// Why a program was not traced of which nothing was seen.
const UNSEEN: &str = "perhaps it is statically linked, runs with the rights of its owner or group (set-user-ID), ended before the library was \
                      loaded, had its environment cleared, as by `env -i`, or had no descriptor, memory or file size left for the \
                      library's buffer; link it dynamically, run it as a user with these rights, let it keep LD_PRELOAD, or raise its limits \
                      (`ulimit -a`)";

fn untraced(programs: &[UntracedProgram]) -> String {
    let one = |p: &UntracedProgram| match p.runs {
        1 => p.name.clone(),
        runs => format!("{}, {} times", p.name, number::count(runs)),
    };
    // Each reason once, behind all programs that have it.
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for program in programs.iter().take(NAMED_PROGRAMS) {
        let reason = program.reason.as_deref().unwrap_or(UNSEEN);
        match groups.iter_mut().find(|group| group.0 == reason) {
            Some(group) => group.1.push(one(program)),
            None => groups.push((reason, vec![one(program)])),
        }
    }
    let group = |(reason, names): (&str, Vec<String>)| {
        let each = if names.len() > 1 { "each: " } else { "" };
        format!("{} ({each}{reason})", names.join("; "))
    };
    let named: Vec<String> = groups.into_iter().map(group).collect();
    let more = match programs.len().saturating_sub(NAMED_PROGRAMS) {
        0 => String::new(),
        more => format!(" and {} more", number::count(more as u64)),
    };
    format!("{}{more}", named.join("; "))
}

impl Warning {
    /// What is not read of tables that were recorded, and of results.
    pub(crate) fn left_out(recorded: &[Fault], results: &[Fault]) -> Option<Warning> {
        let all: Vec<Fault> = recorded.iter().chain(results).cloned().collect();
        let tables: BTreeSet<&str> =
            all.iter().filter_map(|fault| Some(fault.file.split_once('/')?.0)).collect();
        let tables = tables.into_iter().collect::<Vec<_>>().join(", ");
        (!all.is_empty()).then(|| Warning::LeftOut { what: told(&all), tables })
    }

    /// What a recording shows at its start.
    pub fn of_start(start: &Start) -> Vec<Warning> {
        let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for MissingTracepoint { group, tracepoint } in &start.missing {
            groups.entry(group).or_default().push(tracepoint.clone());
        }
        let missing = groups.into_iter().map(|(group, tracepoints)| Warning::MissingTracepoints {
            group: group.to_owned(),
            tracepoints,
            kernel: start.kernel.clone(),
        });
        let doubtful = clock::is_doubtful(&start.clock_source);
        let clock = doubtful.then(|| Warning::ClockSource { clock: start.clock_source.clone() });
        let lacks = Some(start.tsc_lacks.clone()).filter(|lacks| !lacks.is_empty());
        let flags = lacks.map(|lacks| Warning::TscFlags { lacks });
        let unreachable = start.unreachable.clone().map(|reason| Warning::Unreachable { reason });
        missing.chain(clock).chain(flags).chain(unreachable).collect()
    }
}

fn missing_remedy(group: &str) -> String {
    match group {
        "lock" => "use Linux 5.19 or later, or leave lock out of -k".into(),
        _ => format!("use a kernel that has them, or leave {group} out of -k"),
    }
}

/// The largest ring that there can be, bytes.
///
/// Limit: for a burst beyond it the warning says that no ring is large enough.
/// Shown by: `a_loss_names_the_ring_that_would_have_been_enough`.
const LARGEST_RING: u64 = MAX_RING_SLOTS as u64 * size_of::<Slot>() as u64;

fn loss_remedy(origin: &str, ring_bytes: Option<u64>) -> Cow<'static, str> {
    let remedy = match (LossOrigin::of(origin), ring_bytes) {
        (LossOrigin::Ring, Some(bytes)) if bytes <= LARGEST_RING => {
            let (number, unit) =
                if bytes < 1 << 20 { (bytes >> 10, "K") } else { (bytes >> 20, "M") };
            let slots = bytes / size_of::<Slot>() as u64;
            return format!(
                "rings of {number} {unit}iB would probably have been enough: record with --ring-size {number}{unit}, set \
                 FT_RING_SLOTS={slots} for a program that is started otherwise, or enable fewer events"
            )
            .into();
        }
        (LossOrigin::Ring, Some(_)) => "no ring is large enough for them: enable fewer events",
        (LossOrigin::Ring, None) => "enable fewer events, or give larger rings with --ring-size",
        (LossOrigin::SharedRing, _) => {
            "give more threads a ring with FT_RINGS, or enable fewer events"
        }
        (LossOrigin::Directory, _) => "name fewer locks and places",
        (LossOrigin::Tsc, _) => {
            "threads of a program may not read the time stamp counter; start it without PR_SET_TSC, or do not enable events \
             in these threads"
        }
        (LossOrigin::Site, _) => {
            "remove the probes, or detach the debuggers, that have changed the sites"
        }
        (LossOrigin::Child, _) => {
            "leave children a descriptor and a file size for their events, and the agent's socket in reach (chroot)"
        }
        (LossOrigin::KernelSkipped, _) => {
            "the kernel did not run a program that was running already on that CPU, which a larger buffer does not \
             change; mount tracefs (on Linux 7.0 and later), or record fewer kernel groups"
        }
        (LossOrigin::Kernel, _) => {
            "record fewer kernel groups, or give a larger buffer with --kernel-buffer"
        }
        (LossOrigin::Spool, _) => "check the disk, and record again",
        (LossOrigin::Agent, _) => "give the agent more CPU, or a faster disk",
    };
    remedy.into()
}

#[cfg(test)]
mod tests;
