//! The callsites of the program: each has a switch, and the events that it writes.
//!
//! A table that only grows, open addressing: to find a callsite takes no lock, and neither does adding one, since whoever
//! comes second to a place finds there what the first has put. `tracing` keeps nothing of ours with a callsite, so every
//! event, and every step of a span, looks here.

use std::hash::{Hash as _, Hasher};
use std::sync::OnceLock;

use ft_user::ArgType;
use ft_user::dynamic::{self, Description, Kind, SWITCHES, Switch, Values};
use tracing_core::callsite::Identifier;
use tracing_core::{Level, Metadata};

use crate::shapes::{Record, Shapes};

/// Twice as many places as there can be switches.
static TABLE: [OnceLock<&'static Callsite>; 2 * SWITCHES] =
    [const { OnceLock::new() }; 2 * SWITCHES];

/// A callsite that has a switch.
pub(crate) struct Callsite {
    identity: Identity,
    /// Made by who first comes here; none if there is no room for it.
    switch: OnceLock<Option<Switch>>,
    place: Place,
    /// Of an event: itself. Of a span: that it is made.
    main: Shapes,
    /// What else happens to a span, described when it first does.
    record: Shapes,
    end: Later,
    close: Later,
    follows: Later,
}

/// An event that is described when it is first written; none if there is no room for it.
type Later = OnceLock<Option<dynamic::Event>>;

/// What every event of a callsite is called, and where it is.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

const SPAN: (&str, ArgType) = ("span", ArgType::Unsigned);
const IN_SPAN: (&str, ArgType) = ("span", ArgType::OptionalUnsigned);
const PARENT: (&str, ArgType) = ("parent", ArgType::OptionalUnsigned);
const FOLLOWS: (&str, ArgType) = ("follows", ArgType::Unsigned);

/// The callsite of these metadata, if it is known.
#[inline]
pub(crate) fn find(metadata: &Metadata<'_>) -> Option<&'static Callsite> {
    let identity = Identity::of(metadata);
    for place in identity.places() {
        match place.get() {
            Some(callsite) if callsite.identity == identity => return Some(callsite),
            Some(_) => {}
            None => return None,
        }
    }
    None
}

/// The same; it becomes known if it was not. `None` when there is no room for more.
#[inline]
pub(crate) fn of(metadata: &'static Metadata<'static>) -> Option<&'static Callsite> {
    let callsite = find(metadata).or_else(|| add(metadata))?;
    callsite.switch().map(|_| callsite)
}

#[cold]
fn add(metadata: &'static Metadata<'static>) -> Option<&'static Callsite> {
    let identity = Identity::of(metadata);
    let new: &'static Callsite = Box::leak(Box::new(Callsite::new(metadata)));
    for place in identity.places() {
        // What stands there already may be this one: another thread came first.
        let found = place.get_or_init(|| new);
        if found.identity == identity {
            return Some(found);
        }
    }
    None
}

impl Callsite {
    fn new(metadata: &'static Metadata<'static>) -> Callsite {
        let (span, main) = match metadata.is_span() {
            true => (".open", [SPAN, PARENT].as_slice()),
            false => ("", [IN_SPAN].as_slice()),
        };
        const ONE: &[(&str, ArgType)] = &[SPAN];
        Callsite {
            identity: Identity::of(metadata),
            switch: OnceLock::new(),
            place: Place {
                name: name(metadata),
                file: metadata.file().unwrap_or_default().to_owned(),
                line: metadata.line().unwrap_or_default(),
            },
            main: Shapes::new(span, main),
            record: Shapes::new(".record", ONE),
            end: Later::new(),
            close: Later::new(),
            follows: Later::new(),
        }
    }

    /// Its switch, of which the event of a span is that it is entered, and that of an event its form without types.
    #[inline]
    fn switch(&self) -> Option<Switch> {
        *self.switch.get_or_init(|| self.make_switch())
    }

    #[cold]
    fn make_switch(&self) -> Option<Switch> {
        let (kind, args) = match self.main.is_of_span() {
            true => (Kind::Begin, [SPAN].as_slice()),
            false => (Kind::Event, [IN_SPAN, crate::shapes::FIELDS].as_slice()),
        };
        let switch = Switch::new(&self.place.describe(kind, &self.place.name, args));
        if switch.is_none() {
            let Place { name, file, line } = &self.place;
            ft_user::event!(
                "ft_tracing.refused", name: &String, file: &String, line: u32 = *line;
                "no room for {name} at {file}:{line}"
            );
        }
        switch
    }

    /// Waits, where another thread is just making the switch: it may be on from the start.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.switch().is_some_and(Switch::is_on)
    }

    /// An event occurred.
    pub(crate) fn occurred(&self, of: &Metadata<'_>, fixed: impl Fn(&mut Values), record: Record) {
        let untyped = || self.switch().map(Switch::event);
        self.main.write(&self.place, of, fixed, record, untyped);
    }

    /// A span was made.
    pub(crate) fn opened(&self, of: &Metadata<'_>, fixed: impl Fn(&mut Values), record: Record) {
        self.main.write(&self.place, of, fixed, record, || self.main.untyped(&self.place));
    }

    /// Fields of a span were recorded later.
    pub(crate) fn recorded(&self, of: &Metadata<'_>, fixed: impl Fn(&mut Values), record: Record) {
        self.record.write(&self.place, of, fixed, record, || self.record.untyped(&self.place));
    }

    /// A span was entered.
    pub(crate) fn entered(&self, span: u64) {
        write(self.switch().map(Switch::event), [span]);
    }

    /// A span was left.
    pub(crate) fn left(&self, span: u64) {
        write(self.later(&self.end, Kind::End, "", &[SPAN]), [span]);
    }

    /// A span was closed.
    pub(crate) fn closed(&self, span: u64) {
        write(self.later(&self.close, Kind::Event, ".close", &[SPAN]), [span]);
    }

    /// A span follows from another.
    pub(crate) fn follows(&self, span: u64, other: u64) {
        let event = self.later(&self.follows, Kind::Event, ".follows", &[SPAN, FOLLOWS]);
        write(event, [span, other]);
    }

    fn later(
        &self,
        event: &Later,
        kind: Kind,
        suffix: &str,
        args: &[(&str, ArgType)],
    ) -> Option<dynamic::Event> {
        *event.get_or_init(|| self.place.event(kind, suffix, args))
    }
}

impl Place {
    fn describe<'a>(
        &'a self,
        kind: Kind,
        name: &'a str,
        args: &'a [(&'a str, ArgType)],
    ) -> Description<'a> {
        Description { kind, name, file: &self.file, line: self.line, args }
    }

    /// Describes an event that is written while the switch of the callsite is on.
    pub(crate) fn event(
        &self,
        kind: Kind,
        suffix: &str,
        args: &[(&str, ArgType)],
    ) -> Option<dynamic::Event> {
        let name = format!("{}{suffix}", self.name);
        dynamic::Event::new(&self.describe(kind, &name, args))
    }
}

fn write<const N: usize>(event: Option<dynamic::Event>, numbers: [u64; N]) {
    if let Some(event) = event {
        let mut values = Values::new();
        for number in numbers {
            values.push(number);
        }
        event.write(&values);
    }
}

/// What the site of a callsite is called: its target is the category.
fn name(metadata: &Metadata<'_>) -> String {
    let target = match metadata.target().trim_start_matches('.') {
        "" => "tracing",
        target => target,
    };
    // The macros name an event by its place, which the site has anyway, and the bridge of `log` all alike.
    let is_named = !metadata.name().starts_with("event ") && target != "log";
    let own = match metadata.name() {
        "" => "unnamed",
        own if metadata.is_span() || is_named => own,
        _ => match *metadata.level() {
            Level::ERROR => "error",
            Level::WARN => "warn",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        },
    };
    format!("{target}.{own}")
}

/// Which callsite it is: its address, by which `tracing` itself tells callsites apart. Those of `log` have no size, and so
/// may all have one address; they differ in their level.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    address: u64,
    level: Level,
    is_span: bool,
}

impl Identity {
    #[inline]
    fn of(metadata: &Metadata<'_>) -> Identity {
        Identity {
            address: address(&metadata.callsite()),
            level: *metadata.level(),
            is_span: metadata.is_span(),
        }
    }

    /// The places where it may stand, in order.
    #[inline]
    fn places(self) -> impl Iterator<Item = &'static OnceLock<&'static Callsite>> {
        // Knuth's multiplicative hash, 2^64 / golden ratio.
        let first = self.address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (0..TABLE.len()).map(move |n| &TABLE[(first as usize).wrapping_add(n) % TABLE.len()])
    }
}

/// The address of a callsite: what its identifier hashes first.
#[inline]
fn address(identifier: &Identifier) -> u64 {
    let mut first = First(None);
    identifier.hash(&mut first);
    first.finish()
}

/// A "hash" that is the first number that is written to it.
struct First(Option<u64>);

impl Hasher for First {
    #[inline]
    fn finish(&self) -> u64 {
        self.0.unwrap_or_default()
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.0.get_or_insert(number as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(&number) = bytes.first_chunk() {
            self.0.get_or_insert(u64::from_ne_bytes(number));
        }
    }
}
