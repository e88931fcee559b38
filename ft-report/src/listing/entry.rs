//! One event of any table, and the stream of all of them.

use std::ops::Range;

use ft_trace::event::{Event, LeanUserEvent};
use ft_trace::event_tables;
use ft_trace::ids::Nanos;
use ft_trace::store::Trace;
use ft_trace::stream::{Merged, Timed};
use ft_trace::tables::*;

/// Which events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    User,
    Kernel,
    Both,
}

/// Declares [`Entry`] and what is read of a trace for it.
macro_rules! entries {
    (
        first { $($first:ident: $first_variant:ident($first_row:ident as $first_lean:ident),)* }
        kernel { $($field:ident: $variant:ident($row:ident as $lean:ident),)* }
        kernel_alone { $($alone:ident: $alone_variant:ident($alone_row:ident),)* }
        last { $($last:ident: $last_variant:ident($last_row:ident as $last_lean:ident),)* }
    ) => {
        entries! {
            @entry $($first_variant($first_row))* $($variant($row))* $($alone_variant($alone_row))*
            $($last_variant($last_row))*
        }

        impl Entry {
            /// What the analyses see of it; `None` for what they do not.
            pub(crate) fn lean(&self) -> Option<Event> {
                Some(match self {
                    $(Entry::$first_variant(e) => Event::$first_variant(e.clone().into()),)*
                    $(Entry::$variant(e) => Event::$variant(e.clone().into()),)*
                    $(Entry::$alone_variant(_) => return None,)*
                    $(Entry::$last_variant(e) => Event::$last_variant(LeanUserEvent::from(e)),)*
                })
            }
        }

        /// Names of the kernel's events, as far as they are known beforehand.
        pub(super) fn kernel_names<'a>() -> impl Iterator<Item = &'a str> {
            let names = [$($row::names(),)* $($alone_row::names(),)*];
            names.into_iter().flatten().map(|name| -> &'a str { name })
        }

        /// Whether an event of the kernel can have a name that fits.
        pub(super) fn of_kernel(fits: &dyn Fn(&str) -> bool) -> bool {
            $($row::can_be(fits))||* $(|| $alone_row::can_be(fits))*
        }

        /// The events whose time lies in `window`, in order, and the losses.
        pub(crate) fn entries(
            trace: &Trace,
            streams: Streams,
            window: Range<i64>,
        ) -> Merged<Entry> {
            let mut merged = Merged::default();
            $(merged = merged.with_any(trace, &window, Entry::$first_variant);)*
            if streams != Streams::User {
                $(merged = merged.with_any(trace, &window, Entry::$variant);)*
                $(merged = merged.with_any(trace, &window, Entry::$alone_variant);)*
            }
            if streams != Streams::Kernel {
                // A trace without this table is damaged: the reader says so.
                $(merged = merged.with(trace.rows_within(window.clone()), Entry::$last_variant);)*
            }
            merged
        }
    };
    (@entry $($variant:ident($row:ident))*) => {
        /// One event.
        #[expect(clippy::large_enum_variant, reason = "most events of a trace are of the largest variant")]
        #[derive(Clone, Debug)]
        pub(crate) enum Entry {
            $($variant($row),)*
        }

        impl Timed for Entry {
            fn ts(&self) -> Nanos {
                match self {
                    $(Entry::$variant(e) => e.ts,)*
                }
            }
        }

        impl std::ops::Deref for Entry {
            type Target = dyn Listed;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Entry::$variant(e) => e,)*
                }
            }
        }
    };
}

event_tables!(entries);
