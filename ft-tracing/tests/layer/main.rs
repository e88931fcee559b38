//! What programs say with `tracing`, read back from the rings.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../../../ft-user/tests/common/mod.rs"]
mod common;
mod fields;

use std::cell::RefCell;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Waker};
use std::thread;

use common::{Event, Memory};
use ft_user::directory::Entry;
use ft_user::layout::{ABSENT, SiteKind, TEXT_CUT};
use ft_user::{ArgType, Config};
use tracing::{Instrument as _, Level, Span, debug, info, info_span, trace};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{Layer, registry};

/// One test at a time: they share the memfd of this process, and its reader.
fn stage() -> MutexGuard<'static, ()> {
    static STAGE: Mutex<()> = Mutex::new(());
    let turn = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    common::start(Config::default());
    turn
}

/// Runs `work` with the layer, on this thread, and tells the events whose name begins with `prefix`.
fn recorded(prefix: &str, work: impl FnOnce()) -> Vec<Event> {
    let mut memory = Memory::own();
    memory.take();
    ft_user::enable(&format!("{prefix}*"));
    tracing::subscriber::with_default(registry().with(ft_tracing::layer()), work);
    let mut events = memory.take();
    events.retain(|event| event.name.starts_with(prefix));
    events
}

/// Name, kind and first word of each.
fn outline(events: &[Event]) -> Vec<(&str, SiteKind, u64)> {
    events.iter().map(|e| (&*e.name, e.kind, e.words.first().copied().unwrap_or(0))).collect()
}

/// Arguments of the descriptions of a name, in the order of their coming, without that of the site itself.
fn forms(name: &str) -> Vec<Vec<(ArgType, String)>> {
    let memory = Memory::own();
    let metas = memory.directory().into_iter().filter_map(|entry| match entry {
        Entry::SiteMeta { name: found, args, .. } if found == name => {
            Some(args.into_iter().map(|(ty, name)| (ty, name.to_owned())).collect())
        }
        _ => None,
    });
    metas.collect()
}

/// The text whose length stands at `words[at]`.
fn text(words: &[u64], at: usize) -> String {
    let bytes = words[at + 1..].iter().flat_map(|word| word.to_ne_bytes());
    let length = (words[at] & !TEXT_CUT) as usize;
    String::from_utf8(bytes.take(length).collect()).unwrap()
}

#[test]
fn a_span_is_opened_entered_left_and_closed() {
    let _turn = stage();
    let events = recorded("nest::", || {
        let outer = info_span!(target: "nest::a", "outer", port = 80u16, name = "http");
        let _in_outer = outer.enter();
        info_span!(target: "nest::a", "inner").in_scope(|| {
            info!(target: "nest::b", bytes = -7, "read {}", "all");
        });
    });
    let [outer, inner] = [0, 2].map(|i: usize| events[i].words[0]);
    assert!(outer != inner);
    use SiteKind::{Event, ScopeBegin, ScopeEnd};
    assert_eq!(
        outline(&events),
        [
            ("nest::a.outer.open", Event, outer),
            ("nest::a.outer", ScopeBegin, outer),
            ("nest::a.inner.open", Event, inner),
            ("nest::a.inner", ScopeBegin, inner),
            ("nest::b.info", Event, 8),
            ("nest::a.inner", ScopeEnd, inner),
            ("nest::a.inner.close", Event, inner),
            ("nest::a.outer", ScopeEnd, outer),
            ("nest::a.outer.close", Event, outer),
        ]
    );
    // Numbers that may be absent have a word in front.
    assert_eq!(events[0].words[1..3], [ABSENT, 80]);
    assert_eq!(text(&events[0].words, 3), "http");
    assert_eq!(events[2].words[1..3], [8, outer]);
    assert_eq!(events[4].words[1], inner);
    assert_eq!(text(&events[4].words, 2), "read all");
    assert_eq!(events[4].words[4], -7i64 as u64);
    let names = |form: &[(ArgType, String)]| -> String {
        form.iter().map(|(ty, name)| format!("{name}:{ty:?} ")).collect()
    };
    let open = forms("nest::a.outer.open");
    assert_eq!(names(&open[0]), "span:Unsigned parent:OptionalUnsigned port:Unsigned name:Str ");
    let said = forms("nest::b.info");
    assert_eq!(names(&said[0]), "span:OptionalUnsigned fields:Str ", "of the site itself");
    assert_eq!(names(&said[1]), "span:OptionalUnsigned message:Str bytes:Signed ");
    assert_eq!((open.len(), said.len()), (1, 2));
}

/// A future that is ready when it was polled so many times.
async fn after(polls: usize) {
    let mut left = polls;
    std::future::poll_fn(|_| {
        left -= 1;
        if left == 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[test]
fn stretches_of_a_task_are_held_together_by_its_number() {
    let _turn = stage();
    let subscriber = Arc::new(registry().with(ft_tracing::layer()));
    let mut memory = Memory::own();
    memory.take();
    ft_user::enable("moved*");
    let mut tasks: Vec<_> = tracing::subscriber::with_default(subscriber.clone(), || {
        (0..2u64)
            .map(|n| Box::pin(after(3).instrument(info_span!(target: "moved", "task", n))))
            .collect()
    });
    // Two tasks in turns, each poll on a thread of its own.
    for _ in 0..3 {
        for task in &mut tasks {
            let poll = || {
                let _ = task.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
            };
            let subscriber = subscriber.clone();
            thread::scope(|scope| {
                scope.spawn(|| tracing::subscriber::with_default(subscriber, poll));
            });
        }
    }
    tracing::subscriber::with_default(subscriber, || drop(tasks));
    let events = memory.take();
    let opened: Vec<_> = events.iter().filter(|e| e.name == "moved.task.open").collect();
    assert_eq!(opened.len(), 2);
    for open in opened {
        let own: Vec<_> =
            events.iter().filter(|e| e.words.first() == Some(&open.words[0])).collect();
        let of = |kind| own.iter().filter(|e| e.kind == kind).collect::<Vec<_>>();
        let (begins, ends) = (of(SiteKind::ScopeBegin), of(SiteKind::ScopeEnd));
        // `Instrumented` enters its span once more to drop what is in it.
        assert_eq!((begins.len(), ends.len()), (4, 4));
        for (begin, end) in begins.iter().zip(&ends) {
            assert!(begin.tid == end.tid && begin.tsc < end.tsc);
        }
        let mut threads: Vec<_> = begins.iter().map(|e| e.tid).collect();
        threads.sort_unstable();
        threads.dedup();
        assert!(threads.len() > 1, "thread numbers may be used again");
        assert_eq!(own.last().unwrap().name, "moved.task.close");
    }
}

#[test]
fn a_span_that_a_panic_or_a_cancellation_leaves_is_left_and_closed() {
    let _turn = stage();
    let events = recorded("left", || {
        let span = || info_span!(target: "left", "span");
        let panics = || span().in_scope(|| std::panic::resume_unwind(Box::new(())));
        let _: Box<dyn std::any::Any + Send> = std::panic::catch_unwind(panics).unwrap_err();
        // Dropped before it is ready, as whoever cancels a task does.
        let mut task = Box::pin(after(3).instrument(span()));
        assert!(task.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())).is_pending());
        drop(task);
    });
    let outline = outline(&events);
    let of = |number: u64| -> Vec<_> {
        let own = outline.iter().filter(|(_, _, span)| *span == number);
        own.map(|(name, kind, _)| (*name, *kind)).collect()
    };
    let mut spans: Vec<u64> = outline.iter().map(|(_, _, span)| *span).collect();
    spans.dedup();
    let [panicked, cancelled] = spans[..] else { panic!("two spans: {outline:?}") };
    let (open, close) = ("left.span.open", "left.span.close");
    let stretch = [("left.span", SiteKind::ScopeBegin), ("left.span", SiteKind::ScopeEnd)];
    let whole = |stretches: usize| {
        let mut whole = vec![(open, SiteKind::Event)];
        (0..stretches).for_each(|_| whole.extend(stretch));
        whole.push((close, SiteKind::Event));
        whole
    };
    assert_eq!(of(panicked), whole(1));
    // `Instrumented` enters its span once more to drop what is in it.
    assert_eq!(of(cancelled), whole(2));
}

/// Counts what it sees.
#[derive(Clone, Default)]
struct Seen(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Seen {
    fn on_event(&self, _: &tracing::Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn what_is_off_is_not_written_and_others_see_it_all_the_same() {
    let _turn = stage();
    let (seen, mut memory) = (Seen::default(), Memory::own());
    let evaluated = AtomicUsize::new(0);
    let say = || {
        let number = || evaluated.fetch_add(1, Relaxed);
        info!(target: "switched::off", n = number(), "said");
    };
    let names = |memory: &mut Memory| {
        let names = memory.take().into_iter().map(|event| event.name);
        names.filter(|name| name.starts_with("switched")).count()
    };
    let subscriber = registry().with(ft_tracing::layer()).with(seen.clone());
    tracing::subscriber::with_default(subscriber, || {
        say();
        assert_eq!((names(&mut memory), seen.0.load(Relaxed)), (0, 1));
        assert_eq!(ft_user::enable("switched::*"), 1);
        say();
        assert_eq!((names(&mut memory), seen.0.load(Relaxed)), (1, 2));
        assert_eq!(ft_user::disable("switched::*"), 1);
        say();
        assert_eq!((names(&mut memory), seen.0.load(Relaxed)), (0, 3));
    });
    let dispatch = tracing::Dispatch::new(registry().with(ft_tracing::layer_as_started()));
    tracing::dispatcher::with_default(&dispatch, || {
        let before = evaluated.load(Relaxed);
        say();
        ft_user::enable("switched::*");
        say();
        assert_eq!((names(&mut memory), evaluated.load(Relaxed)), (0, before), "as it was");
        tracing::callsite::rebuild_interest_cache();
        say();
        assert_eq!((names(&mut memory), evaluated.load(Relaxed)), (1, before + 1));
        ft_user::disable("switched::*");
        say();
        assert_eq!(names(&mut memory), 0);
    });
    drop(dispatch);
    // Alone, it keeps what is off from being evaluated.
    let before = evaluated.load(Relaxed);
    tracing::subscriber::with_default(ft_tracing::subscriber(), || {
        say();
        assert_eq!(evaluated.load(Relaxed), before);
        // As the agent does it: nobody tells `tracing`.
        let mut text = ft_user::patch::Text::own().unwrap();
        ft_user::site::for_each(|site| {
            if site.meta.name() == "switched::off.info" {
                text.set(site.trigger as u64, true).unwrap();
            }
        });
        say();
    });
    assert_eq!((names(&mut memory), evaluated.load(Relaxed)), (1, before + 1));
}

#[test]
fn a_span_that_is_made_while_off_stays_off() {
    let _turn = stage();
    let events = recorded("half.on", || {
        ft_user::disable("half.*");
        let span = info_span!(target: "half", "on");
        ft_user::enable("half.*");
        span.in_scope(|| ());
        let span = info_span!(target: "half", "on");
        ft_user::disable("half.*");
        span.in_scope(|| ());
    });
    assert_eq!(outline(&events).len(), 1);
    assert_eq!(events[0].name, "half.on.open");
}

#[test]
fn records_of_log_come_by_its_bridge() {
    let _turn = stage();
    tracing_log::LogTracer::init().unwrap();
    let events = recorded("log.", || {
        log::info!(target: "old::module", "said {}", 1);
        log::warn!("louder");
        log::debug!("quietly");
        ft_user::disable("log.debug");
        log::debug!("not at all");
    });
    let said: Vec<_> = events.iter().map(|e| (&*e.name, text(&e.words, 1))).collect();
    let expected = [("log.info", "said 1"), ("log.warn", "louder"), ("log.debug", "quietly")];
    assert_eq!(said, expected.map(|(name, text)| (name, text.to_owned())));
    assert_eq!(text(&events[0].words, 3), "old::module");
}

#[test]
fn spans_may_end_with_their_thread() {
    let _turn = stage();
    thread_local! {
        static KEPT: RefCell<Option<(tracing::span::EnteredSpan, tracing::Dispatch)>> =
            const { RefCell::new(None) };
    }
    let dispatch = tracing::Dispatch::new(registry().with(ft_tracing::layer()));
    let mut memory = Memory::own();
    memory.take();
    ft_user::enable("tls*");
    let with = dispatch.clone();
    let thread = thread::spawn(move || {
        tracing::dispatcher::with_default(&with, || {
            let span = info_span!(target: "tls", "kept").entered();
            KEPT.with(|kept| kept.replace(Some((span, with.clone()))));
        });
    });
    thread.join().unwrap();
    let events = memory.take();
    let names: Vec<_> = events.iter().map(|e| (&*e.name, e.kind)).collect();
    // Left and closed by a destructor of the thread.
    assert_eq!(names[0], ("tls.kept.open", SiteKind::Event));
    assert_eq!(names[1], ("tls.kept", SiteKind::ScopeBegin));
    assert_eq!(names.last(), Some(&("tls.kept.close", SiteKind::Event)), "{names:?}");
}

#[test]
fn causes_and_names_are_told() {
    let _turn = stage();
    let events = recorded("cause", || {
        let first = info_span!(target: "cause", "first");
        let second = tracing::debug_span!(target: "cause", parent: None, "second");
        second.follows_from(first.id());
        tracing::event!(name: "own.name", target: "cause", Level::ERROR, {});
        tracing::event!(target: "cause", parent: &second, Level::TRACE, {});
        Span::none().in_scope(|| ());
    });
    let [first, second, follows, named, plain, ..] = &events[..] else { panic!("{events:?}") };
    assert_eq!(follows.name, "cause.second.follows");
    assert_eq!(follows.words[..2], [second.words[0], first.words[0]]);
    assert_eq!((&*named.name, named.words[0]), ("cause.own.name", ABSENT));
    assert_eq!((&*plain.name, plain.words[1]), ("cause.trace", second.words[0]));
}

#[test]
fn many_threads_lose_nothing() {
    const THREADS: u64 = 4;
    const SPANS: u64 = 5000;
    let _turn = stage();
    let dispatch = tracing::Dispatch::new(registry().with(ft_tracing::layer()));
    let mut memory = Memory::own();
    memory.take();
    ft_user::enable("stress*");
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let dispatch = &dispatch;
            scope.spawn(move || {
                tracing::dispatcher::with_default(dispatch, || {
                    for n in 0..SPANS {
                        let span = info_span!(target: "stress", "span", thread, n);
                        span.in_scope(|| debug!(target: "stress", n, "inside"));
                        trace!(target: "other", "off");
                    }
                });
            });
        }
    });
    let events = memory.take();
    for name in ["span.open", "span.close", "debug"] {
        let found = events.iter().filter(|e| e.name == format!("stress.{name}")).count() as u64;
        assert_eq!(found, THREADS * SPANS, "{name}");
    }
    assert_eq!(
        events.iter().filter(|e| e.name == "stress.span").count() as u64,
        2 * THREADS * SPANS
    );
    assert!(!events.iter().any(|e| e.name == "loss" || e.name.starts_with("other")));
}
