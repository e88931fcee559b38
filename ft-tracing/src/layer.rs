//! The layer, and how it is kept from what is off.

use ft_user::dynamic::Values;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::{Interest, Subscriber};
use tracing_core::{Event, Metadata};
use tracing_subscriber::filter::Filtered;
use tracing_subscriber::layer::{Context, Filter, Layered, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use crate::callsites::{self, Callsite};

/// A subscriber that does nothing else: what is off costs a look at its switch, and no more.
///
/// Starts Feather-Trace as `ft_user::init` does, unless the program has done so. Where that fails, and where no agent asks
/// for anything, nothing is written.
///
/// Layers can be put on it, but see only what is switched on here; [`layer()`] is for programs that have others.
///
/// ```
/// tracing::subscriber::with_default(ft_tracing::subscriber(), || tracing::info!(answer = 42, "hello"));
/// ```
pub fn subscriber() -> Layered<RingLayer, Registry> {
    ft_user::init().ok();
    tracing_subscriber::registry().with(RingLayer { is_alone: true })
}

/// A layer beside others, which see what they would see without it.
///
/// Starts Feather-Trace as [`subscriber`] does. What is off is not written, but made: with filters of single layers,
/// `tracing-subscriber` evaluates the fields of an event, and gives a span its place in the registry, whenever a filter may
/// change its mind. Where that is too much, and nobody will switch sites while the program runs, see [`layer_as_started`].
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// let subscriber = tracing_subscriber::registry().with(ft_tracing::layer());
/// tracing::subscriber::with_default(subscriber, || tracing::info!(answer = 42, "hello"));
/// ```
pub fn layer<S>() -> Filtered<RingLayer, Switched, S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    filtered(Switched { as_started: false })
}

/// As [`layer()`], for sites that stay as they are when the program begins to use them: what is off then costs as much as
/// without a subscriber, unless another layer wants it.
///
/// That is for `FT_ENABLE` and for recordings that start the program. What is enabled later, from inside or outside, is seen
/// after [`tracing_core::callsite::rebuild_interest_cache`], which any thread of the program may call; what is disabled, at
/// once.
pub fn layer_as_started<S>() -> Filtered<RingLayer, Switched, S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    filtered(Switched { as_started: true })
}

fn filtered<S>(filter: Switched) -> Filtered<RingLayer, Switched, S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    ft_user::init().ok();
    RingLayer { is_alone: false }.with_filter(filter)
}

/// Passes the callsites that are on. See [`layer()`].
#[derive(Debug)]
pub struct Switched {
    as_started: bool,
}

impl<S> Filter<S> for Switched {
    #[inline]
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        is_on(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        match callsites::of(metadata) {
            Some(callsite) if callsite.is_on() || !self.as_started => Interest::sometimes(),
            _ => Interest::never(),
        }
    }
}

/// Whether a callsite is on. Asked each time, so that it can be switched from outside, with no thread in the program that
/// would have to tell `tracing`.
#[inline]
fn is_on(metadata: &Metadata<'_>) -> bool {
    // The bridge of `log` asks for callsites that it has not registered. The layer gets to know them, and asks itself.
    callsites::find(metadata).is_none_or(Callsite::is_on)
}

/// Writes spans and events to the ring of their thread. See [`subscriber`] and [`layer()`].
#[derive(Debug)]
pub struct RingLayer {
    /// No other layer is there, that would want what is off.
    is_alone: bool,
}

/// The callsite of a span, while it is on.
fn span_on<S>(id: &Id, context: &Context<'_, S>) -> Option<&'static Callsite>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    context.metadata(id).and_then(callsites::find).filter(|callsite| callsite.is_on())
}

impl<S> Layer<S> for RingLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.is_alone {
            false => Interest::always(),
            true if callsites::of(metadata).is_some() => Interest::sometimes(),
            true => Interest::never(),
        }
    }

    #[inline]
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        !self.is_alone || is_on(metadata)
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(callsite) = callsites::of(event.metadata()).filter(|callsite| callsite.is_on())
        else {
            return;
        };
        let span = context.event_span(event).map(|span| span.id().into_u64());
        let fixed = |values: &mut Values| {
            values.push(span);
        };
        callsite.occurred(event.metadata(), fixed, &|visit| event.record(visit));
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(callsite) = callsites::of(attributes.metadata()).filter(|c| c.is_on()) else {
            return;
        };
        let parent = context.span(id).and_then(|span| span.parent());
        let parent = parent.map(|parent| parent.id().into_u64());
        let fixed = |values: &mut Values| {
            values.push(id.into_u64());
            values.push(parent);
        };
        callsite.opened(attributes.metadata(), fixed, &|visit| attributes.record(visit));
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        if let Some(metadata) = context.metadata(id)
            && let Some(callsite) = span_on(id, &context)
        {
            let fixed = |values: &mut Values| {
                values.push(id.into_u64());
            };
            callsite.recorded(metadata, fixed, &|visit| record.record(visit));
        }
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        if let Some(callsite) = span_on(id, &context) {
            callsite.follows(id.into_u64(), follows.into_u64());
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(callsite) = span_on(id, &context) {
            callsite.entered(id.into_u64());
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some(callsite) = span_on(id, &context) {
            callsite.left(id.into_u64());
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(callsite) = span_on(&id, &context) {
            callsite.closed(id.into_u64());
        }
    }
}
