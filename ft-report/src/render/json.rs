//! Documents as JSON: the values for programs, and beside them what people see, typed.
//!
//! ```json
//! {
//!   "schema": "ft-report/1",
//!   "trace": {"duration_ns": 1234567890, …},
//!   "sections": {
//!     "locks": {
//!       "title": "critical sections, from acquisition to release",
//!       "values": {"holds": 4, …},
//!       "blocks": [
//!         {"paragraph": "4 holds, …"},
//!         {"table": {
//!           "title": "Hold times",
//!           "columns": [{"title": "lock", "kind": "lock"}, {"title": "total", "kind": "duration-ns"}],
//!           "rows": [{"cells": ["book", 6700], "mark": "exact"}],
//!           "omitted": 0
//!         }},
//!         {"figure": {"title": "…", "cumulative": {"axis": "up to", "steps": [[100, 0], …], …}}}
//!       ]
//!     }
//!   }
//! }
//! ```
//!
//! *values* is the interface: within a version of the schema, keys are added and never renamed. *blocks* is what the text
//! shows, for viewers that want to draw it without knowing the section: its titles and sentences may change.
//! A histogram has the lower edge and the count of each bin that is not empty; the one from 10 ms on has all that is longer.
//! Durations are whole nanoseconds (averages have fractions), shares go from 0 to 1, a change of 0.05 is 5 % more, what is not known is null.

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use super::text::sentence;
use crate::document::{
    Block, Column, Data, Document, Figure, Kind, Link, Row, Section, Step, Table, Text, Value,
};
use crate::stats::Tail;

/// Name and version of the shape.
pub const SCHEMA: &str = "ft-report/1";

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Sections<'a>(&'a [Section]);
        impl Serialize for Sections<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|section| (section.name, section)))
            }
        }
        let mut fields = serializer.serialize_struct("Document", 3)?;
        fields.serialize_field("schema", SCHEMA)?;
        fields.serialize_field("trace", &self.head.values)?;
        fields.serialize_field("sections", &Sections(&self.sections))?;
        fields.end()
    }
}

impl Serialize for Section {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Section", 3)?;
        fields.serialize_field("title", self.title)?;
        fields.serialize_field("values", &self.values)?;
        fields.serialize_field("blocks", &self.brief().collect::<Vec<_>>())?;
        fields.end()
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Block::Paragraph { label, text, .. } => {
                if !label.is_empty() {
                    map.serialize_entry("label", label)?;
                }
                map.serialize_entry("paragraph", text)?;
            }
            Block::Warning(text) => map.serialize_entry("warning", text)?,
            Block::Table(table) => map.serialize_entry("table", table)?,
            Block::Figure(figure) => map.serialize_entry("figure", figure)?,
        }
        map.end()
    }
}

/// On one line.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&sentence(self))
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Table", 4)?;
        fields.serialize_field("title", &self.title)?;
        fields.serialize_field("columns", &self.columns)?;
        fields.serialize_field("rows", &self.brief().collect::<Vec<_>>())?;
        fields.serialize_field("omitted", &self.omitted())?;
        fields.end()
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Column", 2)?;
        fields.serialize_field("title", &self.title)?;
        fields.serialize_field("kind", &self.kind)?;
        fields.end()
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Row", 2)?;
        fields.serialize_field("cells", &self.cells)?;
        fields.serialize_field("mark", &self.mark)?;
        fields.end()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = |serializer: S, name: &str| match name {
            "" => serializer.serialize_none(),
            name => serializer.serialize_str(name),
        };
        match self {
            Value::Missing => serializer.serialize_none(),
            Value::Word(word) | Value::Link(Link { word, .. }) | Value::Place(word) => {
                serializer.serialize_str(word)
            }
            Value::Thread(thread) if thread.idle => serializer.serialize_str("(idle)"),
            Value::Thread(thread) => name(serializer, &thread.name),
            Value::Lock(lock) => name(serializer, &lock.name),
            // An i64 of more than 2^53 loses nothing that a clock could tell.
            Value::Duration(ns) if ns.fract() == 0.0 => serializer.serialize_i64(*ns as i64),
            Value::Duration(ns) => serializer.serialize_f64(*ns),
            Value::Interval(interval) => serializer.serialize_i64(interval.dur_ns),
            Value::Nanoseconds(n) | Value::Number(n) => serializer.serialize_i64(*n),
            Value::Count(n) | Value::Quantity(n, _) => serializer.serialize_u64(*n),
            Value::Share(_, ..=0) => serializer.serialize_none(),
            Value::Share(part, whole) => serializer.serialize_f64(*part as f64 / *whole as f64),
            // JSON has no infinity: serde_json writes null.
            Value::Change(n) | Value::Rate(n) | Value::Probability(n) => {
                serializer.serialize_f64(*n)
            }
            Value::Mark(mark) => mark.serialize(serializer),
        }
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("title", &self.title)?;
        match &self.data {
            Data::Bars { axis, counted, bars, .. } => {
                let data = serde_json::json!({"axis": axis, "counted": counted, "bars": bars});
                map.serialize_entry("bars", &data)?;
            }
            Data::Cumulative { axis, counted, steps, bins, .. } => {
                let total: u64 = steps.iter().map(|step| step.count).sum();
                let edges = Step::cumulative(steps);
                let steps: Vec<_> =
                    edges.filter_map(|(step, below)| Some((step.to_ns?, below))).collect();
                let data = serde_json::json!({
                    "axis": axis, "counted": counted, "steps": steps, "total": total, "bins_100ns": bins,
                });
                map.serialize_entry("cumulative", &data)?;
            }
            Data::Tails { of: (axis, kind), tails } => {
                map.serialize_entry("tails", &Tails { axis, kind: *kind, tails })?;
            }
            // Their data is among the values of the section.
            Data::Histograms { .. }
            | Data::Stacks { .. }
            | Data::Matrix { .. }
            | Data::OverTime { .. }
            | Data::Flames { .. } => {}
        }
        map.end()
    }
}

#[derive(serde::Serialize)]
struct Tails<'a> {
    axis: &'a str,
    kind: Kind,
    tails: &'a [(Value, u64, Tail)],
}
