//! The `tracing` ecosystem in Feather-Trace: spans and events of any program that is instrumented with [`tracing`], and
//! of the libraries that it uses, unchanged.
//!
//! ```
//! tracing::subscriber::set_global_default(ft_tracing::subscriber()).ok();
//! ```
//!
//! That line is all; a program that has other layers adds [`layer()`] to them. Each callsite of `tracing` is a site as those of `ft_user::event!` are: off until somebody asks for it
//! (`FT_ENABLE='hyper*'`, `ft-agent record`, `ft-agent enable -p PID 'hyper*'` in a program that runs), written to the
//! thread's ring, and put on one clock with what the kernel did.
//!
//! # What is written
//!
//! A site is named by its target, a dot, and for a span its name; for an event its level, or the name that the program
//! gave it (`event!(name: "…")`).
//!
//! | what happens | event | kind | arguments |
//! |---|---|---|---|
//! | an event | `hyper::proto.debug` | event | `span?`, fields |
//! | a span is made | `shop.order.open` | event | `span`, `parent?`, fields |
//! | it is entered, and left | `shop.order` | begin and end of a scope | `span` |
//! | a field is recorded later | `shop.order.record` | event | `span`, fields |
//! | another span is named as its cause | `shop.order.follows` | event | `span`, `follows` |
//! | it is closed | `shop.order.close` | event | `span` |
//!
//! A span of an async task is entered and left with every poll, on whatever thread: each stretch is a scope, and the number
//! `span` holds them together. So a span is a request (`ft-agent report DIR requests --request
//! shop.order.open,shop.order.close --key span`), of which the report says what it waited for, on which threads. A span that
//! is made while its site is off stays off; one that is on writes what happens to it until its site is off.
//!
//! # Fields
//!
//! `i64`, `u64`, `f64`, `bool`, strings and bytes keep their types; all else is formatted (`Debug`, `Display`, errors, 128 bits)
//! into a buffer on the stack. A field without a value is no argument. An event carries six arguments, 304 bytes in all:
//!
//! - Fields that have no room, because a callsite declares more than six with `span` and `parent`, go into one last argument,
//!   `fields`, as text: `name=value name=value`.
//! - Text beyond 304 bytes is cut and marked, as everywhere in Feather-Trace; a `Debug` that writes more is stopped there.
//! - Types are those of the values, which `tracing` makes known only when it records. A callsite may have three forms (other types,
//!   or other fields that have values); whatever differs from all of them is written as text, in `fields`.
//! - A `Debug` that panics leaves what it has written before, and the program goes on.
//!
//! # Limits
//!
//! 1024 callsites, counted when they are first hit; of each more, one event `ft_tracing.refused` has the place, and its
//! events are not written. The table `sites` has an event twice: as the site, with its fields as text, and with each form.
//! Numbers of spans are those of `tracing_subscriber::Registry`, which can use one again when its
//! span is closed. A span must be left on the thread that entered it, as `tracing` demands anyway. Not for signal handlers:
//! neither is `tracing`.
//!
//! # `log`
//!
//! `tracing_log::LogTracer::init()` brings what programs write with `log`: five sites, `log.error` to `log.trace`, with the
//! target, file and line of each record as fields.
//!
//! # What it costs
//!
//! An event that is on some 130 ns, and a span 340, of which 80 are the registry's own; 5 ns what is off. The README compares
//! that with others (`cargo bench -p ft-tracing`).
//!
//! [`tracing`]: https://docs.rs/tracing

#![forbid(unsafe_code)]

mod callsites;
mod fields;
mod layer;
mod shapes;

pub use layer::{RingLayer, Switched, layer, layer_as_started, subscriber};
