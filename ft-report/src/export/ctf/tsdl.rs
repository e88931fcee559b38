//! The text of the file `metadata`: what the packets' bytes mean, in TSDL (Common Trace Format 1.8.3, section 7).
//!
//! Names in it may come from traced programs. Those of events and enumerators are string literals; those of fields have
//! to be identifiers, so what no identifier can hold becomes `_` there.

use std::collections::HashSet;
use std::fmt::Write;

use ft_trace::store::Meta;

use crate::export::text::visible;

/// Integers are little-endian and begin at any byte.
const TYPES: &str = "\
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := pointer_t;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := double_t;
typealias string { encoding = UTF8; } := text_t;
enum boolean_t : uint8_t { \"false\" = 0, \"true\" = 1 };
";

/// What stands at the begin of each packet and event; `packet.rs` writes it. The fields of the packet context have
/// LTTng's names.
const PACKET: &str = "\
struct packet_context {
	time_t timestamp_begin;
	time_t timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	uint64_t packet_seq_num;
	uint64_t events_discarded;
	int32_t cpu_id;
};

struct event_header {
	uint32_t id;
	time_t timestamp;
};

";

/// A class of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Channel {
    /// Events of the kernel.
    Kernel,
    /// Events of applications: each says who has written it.
    User,
}

impl Channel {
    /// `stream_id` of its packets.
    pub(super) fn id(self) -> u32 {
        self as u32
    }
}

/// Event classes, declared one by one as events of them come up.
#[derive(Default)]
pub(super) struct Metadata {
    enums: String,
    events: String,
    next: u32,
}

impl Metadata {
    /// Declares a class of events with its fields, each with its type, and returns its number.
    pub(super) fn event<'f>(
        &mut self,
        channel: Channel,
        name: &str,
        fields: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> u32 {
        let id = self.next;
        self.next += 1;
        let (name, stream) = (literal(name), channel.id());
        // Writing into a `String` does not fail.
        let _ = write!(self.events, "event {{\n\tname = {name};\n\tid = {id};\n");
        let _ = write!(self.events, "\tstream_id = {stream};\n\tfields := struct {{\n");
        let mut identifiers = Identifiers::default();
        for (name, ty) in fields {
            let _ = writeln!(self.events, "\t\t{ty} {};", identifiers.of(name));
        }
        self.events += "\t};\n};\n\n";
        id
    }

    /// Declares an enumeration of a type of integers.
    pub(super) fn enumeration<'n>(
        &mut self,
        name: &str,
        ty: &str,
        values: impl IntoIterator<Item = (u64, &'n str)>,
    ) {
        let _ = writeln!(self.enums, "enum {name} : {ty} {{");
        for (value, label) in values {
            let _ = writeln!(self.enums, "\t{} = {value},", literal(label));
        }
        self.enums += "};\n\n";
    }

    /// The whole text.
    pub(super) fn text(&self, trace: &Meta) -> String {
        let mut text = String::from("/* CTF 1.8 */\n\n");
        text += TYPES;
        text += "\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tbyte_order = le;\n";
        text += "\tpacket.header := struct {\n\t\tuint32_t magic;\n\t\tuint32_t stream_id;\n\t};\n};\n\n";
        environment(trace, &mut text);
        clock(trace, &mut text);
        text += PACKET;
        for (channel, context) in
            [(Channel::Kernel, ""), (Channel::User, "int32_t _pid; int32_t _tid; ")]
        {
            let _ = write!(text, "stream {{\n\tid = {};\n", channel.id());
            text += "\tpacket.context := struct packet_context;\n\tevent.header := struct event_header;\n";
            if !context.is_empty() {
                let _ = writeln!(text, "\tevent.context := struct {{ {context}}};");
            }
            text += "};\n\n";
        }
        text + &self.enums + &self.events
    }
}

/// Trace Compass takes a trace for one of the Linux kernel by `domain` and `tracer_name`, and knows by the version which
/// names events and fields have.
fn environment(trace: &Meta, text: &mut String) {
    let start = &trace.start;
    let _ = writeln!(
        text,
        "env {{\n\thostname = {};\n\tdomain = \"kernel\";\n\tsysname = \"Linux\";\n\tkernel_release = {};\n\t\
         tracer_name = \"lttng-modules\";\n\ttracer_major = 2;\n\ttracer_minor = 13;\n\t\
         tracer_patchlevel = 0;\n\trecorded_by = {};\n}};\n",
        literal(&start.host),
        literal(&start.kernel),
        literal(&format!("Feather-Trace {}", start.agent_version)),
    );
}

/// Time stamps are CLOCK_MONOTONIC in ns; the offset makes them the time of day, as that was at the first sample.
fn clock(trace: &Meta, text: &mut String) {
    const SECOND: i64 = 1_000_000_000;
    let offset = trace.clock.realtime_offset_ns;
    *text += "clock {\n\tname = \"monotonic\";\n";
    if is_uuid(&trace.start.boot_id) {
        let _ = writeln!(text, "\tuuid = \"{}\";", trace.start.boot_id);
    }
    let _ = writeln!(
        text,
        "\tdescription = \"CLOCK_MONOTONIC\";\n\tfreq = {SECOND};\n\tprecision = {};\n\toffset_s = {};\n\toffset = {};\n}};\n",
        trace.clock.bound_ns.max(0),
        offset.div_euclid(SECOND),
        offset.rem_euclid(SECOND),
    );
    *text += "typealias integer {\n\tsize = 64; align = 8; signed = false; map = clock.monotonic.value;\n} := time_t;\n\n";
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths = groups.iter().map(|group| group.len());
    lengths.eq([8, 4, 4, 4, 12]) && groups.iter().all(|g| g.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// A string literal.
fn literal(text: &str) -> String {
    let mut literal = String::from('"');
    for char in text.chars().map(visible) {
        if matches!(char, '"' | '\\') {
            literal.push('\\');
        }
        literal.push(char);
    }
    literal + "\""
}

/// The identifiers of one structure. Each begins with `_`, which readers take away (section 7.3.1: names of the language
/// itself have to be told apart), and no two are equal.
#[derive(Default)]
struct Identifiers(HashSet<String>);

impl Identifiers {
    fn of(&mut self, name: &str) -> String {
        let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        // Readers leave a lone `_` as it is.
        let name = if name.is_empty() { "_" } else { name };
        let plain = format!("_{}", name.chars().map(fits).collect::<String>());
        let mut identifier = plain.clone();
        let mut number = 2;
        while !self.0.insert(identifier.clone()) {
            identifier = format!("{plain}_{number}");
            number += 1;
        }
        identifier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields_are_distinct_identifiers_whatever_they_were() {
        let mut identifiers = Identifiers::default();
        let names =
            ["id", "f(a,b)", "f[a,b]", "", "struct", "a b", "a_b", "a_b_2", "größe", "\";}"];
        let found = names.map(|name| identifiers.of(name));
        let expected = [
            "_id",
            "_f_a_b_",
            "_f_a_b__2",
            "__",
            "_struct",
            "_a_b",
            "_a_b_2",
            "_a_b_2_2",
            "_gr__e",
            "____",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn literals_end_only_where_they_should() {
        assert_eq!(literal("plain"), "\"plain\"");
        assert_eq!(literal("\"; }; \\"), r#""\"; }; \\""#);
        assert_eq!(literal("a\nb\0c\x1b\x7f\u{85}ü"), "\"a␊b␀c␛␡\u{fffd}ü\"");
    }

    #[test]
    fn the_clock_is_the_time_of_day_even_before_1970() {
        let mut meta = Meta::default();
        meta.clock.realtime_offset_ns = -1;
        let text = Metadata::default().text(&meta);
        assert!(text.contains("offset_s = -1;\n\toffset = 999999999;"), "{text}");
        assert!(!text.contains("uuid"), "an unknown boot has none");
    }
}
