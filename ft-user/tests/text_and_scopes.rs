//! Events with text and scopes, from the macros to what an agent reads.
#![cfg(not(ft_off))]

mod common;

use std::sync::Mutex;

use common::{Event, Memory, start, tid};
use ft_user::layout::{SHARED_WORDS, SiteKind, TEXT_CUT};
use ft_user::{Config, enable, event, scope};

/// One test at a time reads the memfd.
static READER: Mutex<()> = Mutex::new(());

/// The events of this thread that `body` writes.
fn recorded(config: Config, body: impl FnOnce()) -> Vec<Event> {
    let _one = READER.lock();
    start(config);
    enable("tas.*");
    let mut memory = Memory::own();
    memory.take();
    body();
    memory.take().into_iter().filter(|event| event.tid == tid()).collect()
}

#[test]
fn long_text_is_cut_and_marked() {
    let events = recorded(Config::default(), || {
        let long = "x".repeat(1000);
        event!("tas.long", before: u64 = 1, text: &str = &long, after: u64 = 2);
    });
    let [event] = &events[..] else { panic!("one event, not {events:?}") };
    // 38 words, less the two numbers and the length.
    assert_eq!(event.words.len(), 38);
    assert_eq!(event.words[..2], [1, (35 * 8) | TEXT_CUT]);
    assert!(event.words[2..37].iter().all(|word| word.to_ne_bytes() == *b"xxxxxxxx"));
    assert_eq!(event.words[37], 2);
    assert!(!event.shared);
}

#[test]
fn text_without_a_ring_is_cut_to_the_shared_one() {
    let events = recorded(Config::default(), || {
        // A thread past its end has no ring.
        ft_user::thread::clear(ft_user::thread::Claim::Over);
        event!("tas.shared", text: &str = &"y".repeat(200), after: u64 = 2);
        ft_user::thread::clear(ft_user::thread::Claim::Allowed);
    });
    let [event] = &events[..] else { panic!("one event, not {events:?}") };
    assert!(event.shared);
    assert_eq!(event.words[0], ((SHARED_WORDS as u64 - 2) * 8) | TEXT_CUT);
    assert_eq!(event.words[SHARED_WORDS - 1], 2);
}

#[test]
fn text_of_a_disabled_site_is_not_evaluated() {
    let mut evaluated = false;
    event!("off_tas.lazy", text: &str = { evaluated = true; "text" });
    assert!(!evaluated);
}

#[test]
fn scopes_nest_and_end_where_they_are_dropped() {
    fn leave_early(stop: bool) -> u64 {
        let _outer = scope!("tas.outer", stop: bool);
        if stop {
            return 1;
        }
        let _inner = scope!("tas.inner", text: &str = "deep"; "{text}");
        2
    }
    let events = recorded(Config::default(), || {
        assert_eq!(leave_early(true) + leave_early(false), 3);
        let unwound = std::panic::catch_unwind(|| {
            let _scope = scope!("tas.unwound");
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(unwound.is_err());
    });
    let told: Vec<_> = events.iter().map(|event| (&*event.name, event.kind)).collect();
    use SiteKind::{ScopeBegin, ScopeEnd};
    assert_eq!(
        told,
        [
            ("tas.outer", ScopeBegin),
            ("tas.outer", ScopeEnd),
            ("tas.outer", ScopeBegin),
            ("tas.inner", ScopeBegin),
            ("tas.inner", ScopeEnd),
            ("tas.outer", ScopeEnd),
            ("tas.unwound", ScopeBegin),
            ("tas.unwound", ScopeEnd),
        ]
    );
    assert_eq!((events[0].words[0], events[2].words[0]), (1, 0));
    assert_eq!(events[3].words[..2], [4, u64::from_ne_bytes(*b"deep\0\0\0\0")]);
}
