//! The forms of an event: the types of its fields, which `tracing` knows only when it records them.
//!
//! A description in the trace has types. So each combination of fields and types that occurs at a callsite is an event of
//! its own, of the same name and place; nearly always there is one.

use std::sync::OnceLock;

use ft_user::ArgType;
use ft_user::dynamic::{Event, Kind, Values};
use tracing_core::Metadata;
use tracing_core::field::Visit;

use crate::callsites::Place;
use crate::fields::{Fields, Form, REST};

/// Forms that a callsite may have; whatever is of another is written as text.
///
/// Limit: events of further combinations have them as text, in `fields`.
/// Shown by: `a_callsite_of_too_many_forms_writes_text`.
const FORMS: usize = 3;

/// Fields as text, where they have no types, or no room of their own.
pub(crate) const FIELDS: (&str, ArgType) = ("fields", ArgType::Str);

/// What visits the fields of an event or a span.
pub(crate) type Record<'a> = &'a dyn Fn(&mut dyn Visit);

/// The forms of one event.
pub(crate) struct Shapes {
    suffix: &'static str,
    /// Arguments in front of the fields.
    fixed: &'static [(&'static str, ArgType)],
    forms: [OnceLock<(Form, Option<Event>)>; FORMS],
    untyped: OnceLock<Option<Event>>,
}

impl Shapes {
    pub(crate) const fn new(
        suffix: &'static str,
        fixed: &'static [(&'static str, ArgType)],
    ) -> Shapes {
        let untyped = OnceLock::new();
        Shapes { suffix, fixed, forms: [const { OnceLock::new() }; FORMS], untyped }
    }

    /// Whether they are of a span.
    pub(crate) fn is_of_span(&self) -> bool {
        !self.suffix.is_empty()
    }

    /// Writes an event with what `fixed` adds and `record` visits.
    pub(crate) fn write(
        &self,
        place: &Place,
        metadata: &Metadata<'_>,
        fixed: impl Fn(&mut Values),
        record: Record<'_>,
        untyped: impl Fn() -> Option<Event>,
    ) {
        let mut fields = Fields::typed(metadata, &fixed);
        record(&mut fields);
        let form = fields.form();
        let event = self.forms.iter().find_map(|known| {
            let known = known.get_or_init(|| (form, self.describe(place, metadata, form)));
            (known.0 == form).then_some(known.1)
        });
        match event {
            Some(Some(event)) => _ = event.write(fields.values()),
            // No room to describe it, or one form too many.
            Some(None) | None => {
                let Some(event) = untyped() else { return };
                let mut fields = Fields::untyped(&fixed);
                record(&mut fields);
                event.write(fields.values());
            }
        }
    }

    /// Their form without types.
    pub(crate) fn untyped(&self, place: &Place) -> Option<Event> {
        *self.untyped.get_or_init(|| {
            let args: Vec<_> = self.fixed.iter().copied().chain([FIELDS]).collect();
            place.event(Kind::Event, self.suffix, &args)
        })
    }

    fn describe(&self, place: &Place, metadata: &Metadata<'_>, form: Form) -> Option<Event> {
        let names: Vec<&str> = metadata.fields().iter().map(|field| field.name()).collect();
        let field = |(index, ty): (u8, ArgType)| match index {
            REST => FIELDS,
            index => (names.get(usize::from(index)).copied().unwrap_or_default(), ty),
        };
        let args: Vec<_> = self.fixed.iter().copied().chain(form.fields().map(field)).collect();
        place.event(Kind::Event, self.suffix, &args)
    }
}
