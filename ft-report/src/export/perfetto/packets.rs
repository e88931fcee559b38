//! Packets out, names interned.

use std::collections::HashMap;
use std::io::Write;

use prost::Message;

use super::proto::{
    DebugAnnotation, INCREMENTAL_STATE_CLEARED, Interned, InternedData, NEEDS_INCREMENTAL_STATE,
    Trace, TracePacket, TracePacketDefaults, TrackDescriptor, TrackEvent, Value, clock, kind,
};
use crate::export::Result;

/// Sequence of the track events, which alone have interned names.
const SEQUENCE: u32 = 1;

/// Names of one kind that are interned at a time; then numbers begin anew.
///
/// Limit: nothing: numbering starts again.
/// Shown by: `numbers_of_names_begin_anew_and_stay_true`.
const MAX_INTERNED: usize = if cfg!(test) { 1 << 12 } else { 1 << 16 };

/// A text as Perfetto takes it: its results are separated by NUL.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}

/// Names with numbers.
#[derive(Default)]
struct Names {
    known: HashMap<Box<str>, u64>,
    /// That was not written yet.
    new: Vec<Interned>,
}

impl Names {
    fn number(&mut self, name: &str) -> u64 {
        if let Some(&number) = self.known.get(name) {
            return number;
        }
        // 0 is no number.
        let number = self.known.len() as u64 + 1;
        self.known.insert(name.into(), number);
        self.new.push(Interned { iid: Some(number), name: Some(clean(name)) });
        number
    }
}

/// Arguments of a slice or an instant.
#[derive(Default)]
pub(super) struct Notes(Vec<(Box<str>, Value)>);

impl Notes {
    /// Adds an argument.
    pub(super) fn add(&mut self, name: &str, value: Value) -> &mut Notes {
        self.0.push((name.into(), value));
        self
    }

    /// Adds a text, unless it is empty.
    pub(super) fn text(&mut self, name: &str, text: &str) -> &mut Notes {
        if text.is_empty() { self } else { self.add(name, Value::String(clean(text))) }
    }

    /// Adds a number.
    pub(super) fn int(&mut self, name: &str, n: i64) -> &mut Notes {
        self.add(name, Value::Int(n))
    }

    /// Adds a number that is not 0.
    pub(super) fn some(&mut self, name: &str, n: i64) -> &mut Notes {
        if n == 0 { self } else { self.int(name, n) }
    }
}

/// A slice or an instant.
pub(super) struct Shape<'a> {
    pub(super) category: &'a str,
    pub(super) track: u64,
    pub(super) name: &'a str,
    pub(super) notes: Notes,
}

/// An end of a flow.
#[derive(Clone, Copy)]
pub(super) enum Flow {
    Begins(u64),
    Ends(u64),
}

/// Writes packets.
pub(super) struct Packets<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    categories: Names,
    names: Names,
    notes: Names,
    /// The next packet says that nothing is interned.
    fresh: bool,
}

impl<'a> Packets<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Packets<'a> {
        Packets {
            out,
            buffer: Vec::new(),
            categories: Names::default(),
            names: Names::default(),
            notes: Names::default(),
            fresh: true,
        }
    }

    /// Writes a packet that refers to nothing.
    pub(super) fn write(&mut self, packet: TracePacket) -> Result<()> {
        self.buffer.clear();
        // A `Trace` of one packet; concatenated, they are one of all.
        Trace { packet: vec![packet] }.encode(&mut self.buffer).expect("a vector grows");
        Ok(self.out.write_all(&self.buffer)?)
    }

    /// Tells of a track.
    pub(super) fn describe(&mut self, track: TrackDescriptor) -> Result<()> {
        self.write(TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(track),
            ..TracePacket::default()
        })
    }

    /// Writes a slice.
    pub(super) fn slice(&mut self, from: i64, to: i64, shape: Shape<'_>) -> Result<()> {
        let track_uuid = Some(shape.track);
        let event = self.event(kind::SLICE_BEGIN, shape);
        self.put(from, event)?;
        let end = TrackEvent { r#type: Some(kind::SLICE_END), track_uuid, ..TrackEvent::default() };
        self.put(to, end)
    }

    /// Writes an instant.
    pub(super) fn instant(&mut self, at: i64, shape: Shape<'_>, flow: Option<Flow>) -> Result<()> {
        let mut event = self.event(kind::INSTANT, shape);
        match flow {
            Some(Flow::Begins(id)) => event.flow_ids.push(id),
            Some(Flow::Ends(id)) => event.terminating_flow_ids.push(id),
            None => {}
        }
        self.put(at, event)
    }

    fn event(&mut self, r#type: u32, shape: Shape<'_>) -> TrackEvent {
        let full = |names: &Names| names.known.len() >= MAX_INTERNED;
        if full(&self.categories) || full(&self.names) || full(&self.notes) {
            (self.categories, self.names, self.notes) = Default::default();
            self.fresh = true;
        }
        let note = |(name, value): (Box<str>, Value)| DebugAnnotation {
            name_iid: Some(self.notes.number(&name)),
            value: Some(value),
        };
        TrackEvent {
            debug_annotations: shape.notes.0.into_iter().map(note).collect(),
            category_iids: vec![self.categories.number(shape.category)],
            r#type: Some(r#type),
            name_iid: Some(self.names.number(shape.name)),
            track_uuid: Some(shape.track),
            ..TrackEvent::default()
        }
    }

    fn put(&mut self, at: i64, event: TrackEvent) -> Result<()> {
        let take = |names: &mut Names| std::mem::take(&mut names.new);
        let new = InternedData {
            event_categories: take(&mut self.categories),
            event_names: take(&mut self.names),
            debug_annotation_names: take(&mut self.notes),
        };
        let fresh = std::mem::take(&mut self.fresh);
        let cleared = if fresh { INCREMENTAL_STATE_CLEARED } else { 0 };
        let defaults = TracePacketDefaults { timestamp_clock_id: Some(clock::MONOTONIC) };
        self.write(TracePacket {
            timestamp: Some(at.max(0) as u64),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(NEEDS_INCREMENTAL_STATE | cleared),
            interned_data: Some(new).filter(|new| *new != InternedData::default()),
            trace_packet_defaults: fresh.then_some(defaults),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packets that `write` writes.
    fn packets(write: impl FnOnce(&mut Packets<'_>) -> Result<()>) -> Vec<TracePacket> {
        let mut bytes = Vec::new();
        write(&mut Packets::new(&mut bytes)).unwrap();
        Trace::decode(&*bytes).unwrap().packet
    }

    #[test]
    fn numbers_of_names_begin_anew_and_stay_true() {
        // Twice as many names as are interned at a time, and the first one again.
        let n = 2 * MAX_INTERNED + 1;
        let name = |i: usize| format!("name {}", i % (n - 1));
        let packets = packets(|out| {
            (0..n).try_for_each(|i| {
                let shape =
                    Shape { category: "event", track: 1, name: &name(i), notes: Notes::default() };
                out.instant(0, shape, None)
            })
        });
        let (mut known, mut begun) = (HashMap::new(), 0);
        for (i, packet) in packets.iter().enumerate() {
            if packet.sequence_flags.unwrap_or(0) & INCREMENTAL_STATE_CLEARED != 0 {
                known.clear();
                begun += 1;
                assert!(packet.trace_packet_defaults.is_some(), "the clock is told again");
            }
            let new = packet.interned_data.iter().flat_map(|data| &data.event_names);
            known.extend(new.map(|e| (e.iid, e.name.clone())));
            let event = packet.track_event.as_ref().unwrap();
            assert_eq!(known[&event.name_iid], Some(name(i)));
            assert!(known.len() <= MAX_INTERNED);
        }
        assert_eq!((packets.len(), begun), (n, 3));
    }

    #[test]
    fn no_text_has_the_character_that_separates_results() {
        let packets = packets(|out| {
            let mut notes = Notes::default();
            notes.text("a\0b", "c\0d").text("empty", "");
            out.slice(5, 7, Shape { category: "x\0", track: 1, name: "\0", notes })
        });
        assert_eq!(packets.len(), 2, "begin and end");
        let text = format!("{packets:?}");
        assert!(text.contains("a␀b") && text.contains("c␀d") && !text.contains("\\0"), "{text}");
        let event = packets[0].track_event.as_ref().unwrap();
        assert_eq!(event.debug_annotations.len(), 1);
    }
}
