//! Callsites that are made while a program runs.

use std::sync::OnceLock;

use tracing::field::FieldSet;
use tracing::metadata::Kind;
use tracing::subscriber::Interest;
use tracing::{Level, Metadata, callsite};

/// One of them, as a program that generates code has them.
struct Made(OnceLock<Metadata<'static>>);

impl callsite::Callsite for Made {
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &Metadata<'_> {
        self.0.get().expect("made")
    }
}

pub(crate) fn make() -> &'static Metadata<'static> {
    let made: &'static Made = Box::leak(Box::new(Made(OnceLock::new())));
    let fields = FieldSet::new(&[], callsite::Identifier(made));
    let place = (Some("made.rs"), Some(7), None);
    made.0.get_or_init(|| {
        Metadata::new(
            "event here",
            "made",
            Level::INFO,
            place.0,
            place.1,
            place.2,
            fields,
            Kind::EVENT,
        )
    })
}
