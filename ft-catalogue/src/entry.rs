//! The row of a trace.
//!
//! Each row is a file of its own: two writers need not agree on a common one, and a writer that is killed leaves none half written.

use ft_trace::ids::Name;
use ft_trace::store::catalogue::{Origin, Table};
use ft_trace::store::{Meta, Trace};
use ft_trace::tables::{BinaryRow, HostClockState, Unit};
use serde_json::Value;

use crate::key::start_ns;
use crate::{Key, Labels};

macro_rules! entry {
    ($($(#[doc = $meaning:literal])* $field:ident: $ty:ty $(as $unit:ident)?,)*) => {
        /// What a trace is: a row of the table `traces`.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Entry {
            $($(#[doc = $meaning])* pub $field: $ty,)*
        }

        ft_trace::row!("traces", "`traces`: one trace of a catalogue.", Entry {
            $($field: $ty => entry!(@unit $($unit)?), concat!($($meaning, "\n"),*),)*
        });
    };
    (@unit) => { None };
    (@unit $unit:ident) => { Some(Unit::$unit) };
}

entry! {
    /// Start of its window, CLOCK_REALTIME ns, by the clock of its host.
    start_ns: i64 as Number,
    /// End minus start, ns; null where the recording was killed.
    duration_ns: Option<i64> as Ns,
    /// Where it lies, from the root of the catalogue on: `host=…/date=…/trace=…`.
    path: Name,
    /// Its name, the last of these.
    trace: Name,
    /// Host, as it calls itself.
    host: Name,
    /// Boot, as in `/proc/sys/kernel/random/boot_id`.
    boot_id: Name,
    /// Release of the kernel.
    kernel: Name,
    /// Model of the CPU.
    cpu_model: Name,
    /// Possible CPUs.
    cpus: i32 as Count,
    /// It is a virtual machine.
    hypervisor: bool,
    /// File name of the command's first word; empty where processes were attached to.
    program: Name,
    /// Build id of that program in hexadecimal digits, or of the one that all attached processes executed; empty where there is none,
    /// as of a script, or it is not known.
    build_id: Name,
    /// Command, its words separated by spaces.
    command: Name,
    /// Labels, an object of JSON.
    labels: Name,
    /// The recording ended as it should, and nothing of it was damaged.
    complete: bool,
    /// How far the kernel knew the time of day of the host; `unknown` where it was not asked.
    clock: HostClockState,
    /// How far CLOCK_REALTIME can have been off, ns; null where that is not known.
    clock_bound_ns: Option<i64> as Ns,
    /// Events of applications and records of the kernel.
    events: i64 as Count,
    /// Events and records that were lost.
    lost: i64 as Count,
    /// CPU time of the agent while it recorded, ns; null where it was killed.
    agent_cpu_ns: Option<i64> as Ns,
    /// What an event cost a program, as measured at the start, ns.
    event_cost_ns: Option<f64> as Ns,
    /// Size of its files when it was brought, bytes.
    bytes: i64 as Count,
    /// Version of its tables.
    schema_version: i32 as Number,
    /// Version of the agent that recorded it.
    agent_version: Name,
}

impl Entry {
    /// What a row is, and what its columns mean.
    pub fn table() -> Table {
        Table::of::<Entry>(Origin::Catalogue)
    }

    /// Of a whole trace, whose files have so many bytes.
    pub(crate) fn of(key: &Key, trace: &Trace, bytes: u64, labels: &Labels) -> Entry {
        let meta = trace.meta();
        let start = &meta.start;
        let clamp = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let end = meta.end.as_ref();
        let program = program(meta);
        let host = meta.clock.host;
        let from_ns = start.window_from_ns.unwrap_or(start.start_ns);
        let events = ft_trace::event::Event::TABLES.iter().filter(|table| **table != "loss");
        let rows = events.filter_map(|table| Some(meta.tables.get(*table)?.rows));
        Entry {
            start_ns: start_ns(meta),
            duration_ns: end.map(|end| end.ts.saturating_sub(from_ns)),
            path: key.path().into(),
            trace: key.trace.as_str().into(),
            host: start.host.as_str().into(),
            boot_id: start.boot_id.as_str().into(),
            kernel: start.kernel.as_str().into(),
            cpu_model: start.cpu_model.as_str().into(),
            cpus: i32::try_from(start.cpus).unwrap_or(i32::MAX),
            hypervisor: start.hypervisor,
            build_id: match &start.build_id {
                Some(id) => id.as_str().into(),
                None => of_call_chains(trace, program),
            },
            program: program.into(),
            command: start.command.join(" ").into(),
            labels: serde_json::to_string(labels).unwrap_or_default().into(),
            complete: meta.complete,
            clock: host.map_or(HostClockState::Unknown, |host| host.state),
            clock_bound_ns: host.and_then(|host| host.bound_ns),
            events: clamp(rows.fold(0, u64::saturating_add)),
            lost: clamp(meta.lost_total()),
            agent_cpu_ns: end.and_then(|end| end.agent_cpu_ns),
            event_cost_ns: start.event_cost_ns,
            bytes: clamp(bytes),
            schema_version: i32::try_from(meta.schema_version).unwrap_or(i32::MAX),
            agent_version: start.agent_version.as_str().into(),
        }
    }

    /// Where the trace lies, if its row says what it must: a catalogue of somebody else can say anything.
    pub fn key(&self) -> Option<Key> {
        Key::of_path(&self.path).filter(|key| *key.trace == *self.trace)
    }

    /// The labels; none where they are not what they should be.
    pub fn labels(&self) -> Labels {
        serde_json::from_str::<Value>(&self.labels)
            .ok()
            .and_then(|labels| serde_json::from_value(labels).ok())
            .unwrap_or_default()
    }
}

/// File name of the command's first word.
fn program(meta: &Meta) -> &str {
    let first = meta.start.command.first().map_or("", String::as_str);
    first.rsplit('/').next().unwrap_or_default()
}

/// The build id of the program as call chains tell it, if the trace has exactly one of a file of this name. An older agent
/// told nothing else.
fn of_call_chains(trace: &Trace, program: &str) -> Name {
    let mut found: Option<Name> = None;
    if program.is_empty() || !trace.has::<BinaryRow>() {
        return "".into();
    }
    for row in trace.rows::<BinaryRow>().map_while(|row| row.ok()) {
        if row.object.rsplit('/').next() == Some(program) && !row.build_id.is_empty() {
            match &found {
                Some(other) if *other != row.build_id => return "".into(),
                _ => found = Some(row.build_id),
            }
        }
    }
    found.unwrap_or_else(|| "".into())
}
