//! The format: its events with their fields, the types of what is in it, and its lines.

use std::fmt::Write as _;

use crate::export::text::visible;

/// Declares the events of the format, by number, with their fields and the types of these.
macro_rules! events {
    ($($event:ident { $($field:ident: $ty:ident)* })*) => {
        #[derive(Clone, Copy)]
        pub(super) enum Kind { $($event,)* }

        /// `%EventDef` of each.
        pub(super) fn declare(text: &mut String) {
            $(
                let _ = writeln!(text, "%EventDef Paje{} {}", stringify!($event), Kind::$event as u32);
                $(let _ = writeln!(text, "% {} {}", stringify!($field), stringify!($ty));)*
                *text += "%EndEventDef\n";
            )*
        }
    };
}

events! {
    DefineContainerType { Alias: string Type: string Name: string }
    DefineStateType { Alias: string Type: string Name: string }
    DefineEventType { Alias: string Type: string Name: string }
    DefineVariableType { Alias: string Type: string Name: string Color: color }
    DefineLinkType {
        Alias: string Type: string StartContainerType: string EndContainerType: string Name: string
    }
    DefineEntityValue { Alias: string Type: string Name: string Color: color }
    CreateContainer { Time: date Alias: string Type: string Container: string Name: string }
    DestroyContainer { Time: date Type: string Name: string }
    PushState { Time: date Type: string Container: string Value: string Cause: string Mark: string }
    PopState { Time: date Type: string Container: string }
    NewEvent { Time: date Type: string Container: string Value: string Text: string }
    SetVariable { Time: date Type: string Container: string Value: double }
    AddVariable { Time: date Type: string Container: string Value: double }
    SubVariable { Time: date Type: string Container: string Value: double }
    StartLink {
        Time: date Type: string Container: string StartContainer: string Value: string Key: string
    }
    EndLink {
        Time: date Type: string Container: string EndContainer: string Value: string Key: string
    }
}

/// The types, and colours for what a thread does (red, green and blue, from 0 to 1).
pub(super) const TYPES: &[(Kind, &[&str])] = &[
    (Kind::DefineContainerType, &["M", "0", "machine"]),
    (Kind::DefineContainerType, &["C", "M", "CPU"]),
    (Kind::DefineContainerType, &["P", "M", "process"]),
    (Kind::DefineContainerType, &["T", "P", "thread"]),
    (Kind::DefineContainerType, &["A", "P", "async task"]),
    (Kind::DefineContainerType, &["L", "P", "lock"]),
    (Kind::DefineStateType, &["running", "C", "running"]),
    (Kind::DefineStateType, &["interrupt", "C", "interrupt"]),
    (Kind::DefineStateType, &["state", "T", "state"]),
    (Kind::DefineStateType, &["scope", "T", "scope"]),
    (Kind::DefineStateType, &["gap", "T", "gap"]),
    (Kind::DefineStateType, &["task", "A", "task"]),
    (Kind::DefineStateType, &["holder", "L", "holder"]),
    (Kind::DefineEventType, &["event", "T", "event"]),
    (Kind::DefineEventType, &["loss", "M", "loss"]),
    (Kind::DefineVariableType, &["holders", "L", "holders", "0.3 0.5 0.8"]),
    (Kind::DefineVariableType, &["waiters", "L", "waiters", "0.8 0.2 0.2"]),
    (Kind::DefineLinkType, &["wakeup", "M", "T", "T", "wake-up"]),
    (Kind::DefineLinkType, &["started", "M", "M", "T", "wake-up from idle"]),
    (Kind::DefineEntityValue, &["running", "state", "running", "0.3 0.7 0.3"]),
    (Kind::DefineEntityValue, &["preempted", "state", "preempted", "0.9 0.2 0.2"]),
    (Kind::DefineEntityValue, &["dispatch", "state", "dispatch", "1.0 0.6 0.1"]),
    (Kind::DefineEntityValue, &["blocked", "state", "blocked", "0.6 0.6 0.7"]),
    (Kind::DefineEntityValue, &["hardirq", "state", "hardirq", "0.6 0.3 0.7"]),
    (Kind::DefineEntityValue, &["softirq", "state", "softirq", "0.7 0.5 0.8"]),
    (Kind::DefineEntityValue, &["vector", "state", "vector", "0.8 0.7 0.9"]),
    (Kind::DefineEntityValue, &["polled", "task", "polled", "0.3 0.7 0.3"]),
    (Kind::DefineEntityValue, &["queued", "task", "queued", "1.0 0.6 0.1"]),
    (Kind::DefineEntityValue, &["unexplained", "state", "unexplained", "0.2 0.2 0.2"]),
];

/// A colour that is always the same for a name.
pub(super) fn color(name: &str) -> String {
    if name == "idle" {
        return "0.8 0.8 0.8".into();
    }
    // FNV-1a (RFC 9923).
    let hash = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let bits = name.bytes().fold(0x811c_9dc5, hash);
    let [red, green, blue] = [0, 8, 16].map(|shift| 3 + (bits >> shift) % 6);
    format!("0.{red} 0.{green} 0.{blue}")
}

/// Appends a line.
pub(super) fn write_line(out: &mut String, event: Kind, ns: Option<u64>, fields: &[&str]) {
    // Writing into a `String` does not fail.
    let _ = write!(out, "{}", event as u32);
    if let Some(ns) = ns {
        let _ = write!(out, " {}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    }
    for field in fields {
        // pajeng takes an empty text for no text.
        let field = if field.is_empty() { "-" } else { field };
        out.push_str(" \"");
        out.extend(field.chars().map(visible).map(|c| if c == '"' { '\'' } else { c }));
        out.push('"');
    }
    out.push('\n');
}
