//! The assembly does what the Rust form of the ring does, and what it promises to the compiler.

mod registers;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::layout::{LOSS_KEY, MARGIN_SLOTS, Mode, TEXT_CUT, commit};
use crate::reader::Uncommitted;
use crate::ring::MAX_WORDS;
use crate::test_ring::{Event, SLOTS, TestRing, drain};
use crate::text::{self, Pair};
use crate::thread::{self, Claim};
use crate::{event, layout, patch, site};

/// Switches the sites on whose name starts with `prefix`.
fn switch_on(prefix: &str) {
    let mut text = patch::Text::own().unwrap();
    site::for_each(|site| {
        if site.meta.name().starts_with(prefix) {
            text.set(site.trigger as u64, true).unwrap();
        }
    });
}

/// Key of the first site of this name.
fn key(name: &str) -> u32 {
    let mut key = None;
    site::for_each(|site| {
        if site.meta.name() == name {
            key.get_or_insert(site.meta as *const _ as usize as u32);
        }
    });
    key.expect("the site is in this program")
}

/// Runs `body` on a thread whose ring is `test`.
fn with_ring(test: &TestRing, body: impl FnOnce()) {
    // SAFETY: the ring outlives its use, which ends with `clear`.
    unsafe { thread::set(test.ring().control) };
    body();
    thread::clear(Claim::Over);
}

fn without_tsc(events: Vec<Event>) -> Vec<Event> {
    events.into_iter().map(|event| Event { tsc: 0, ..event }).collect()
}

/// Fires sites with zero to six arguments, in turn.
fn fire() {
    event!("arch_same.n0");
    event!("arch_same.n1", a: u64 = 11);
    event!("arch_same.n2", a: u64 = 21, b: u64 = 22);
    event!("arch_same.n3", a: u64 = 31, b: u64 = 32, c: u64 = 33);
    event!("arch_same.n4", a: u64 = 41, b: u64 = 42, c: u64 = 43, d: u64 = 44);
    event!("arch_same.n5", a: u64 = 51, b: u64 = 52, c: u64 = 53, d: u64 = 54, e: u64 = 55);
    event!("arch_same.n6", a: u64 = 61, b: i8 = -62, c: f64 = 63.5, d: u64 = 64, e: u64 = 65, f: u64 = 66);
}

/// Number of slots that `fire` takes.
const FIRE_SLOTS: u64 = 3 + 3 * 2 + 3;

#[test]
fn both_forms_write_the_same_slots() {
    switch_on("arch_same.");
    let (asm, rust) = (TestRing::new(Mode::Discard), TestRing::new(Mode::Discard));
    let (mut asm_reader, mut rust_reader) = (asm.reader(), rust.reader());
    // Enough rounds to wrap around with events across the end.
    for _ in 0..=2 * SLOTS / FIRE_SLOTS {
        with_ring(&asm, fire);
        let sixth = [61, -62i64 as u64, 63.5f64.to_bits(), 64, 65, 66];
        for n in 0..=6u64 {
            let words: Vec<u64> = (1..=n).map(|i| 10 * n + i).collect();
            rust.write(key(&format!("arch_same.n{n}")), if n == 6 { &sixth } else { &words });
        }
        let (a, asm_events) = drain(&mut asm_reader, &asm.ring(), Uncommitted::Wait);
        let (b, rust_events) = drain(&mut rust_reader, &rust.ring(), Uncommitted::Wait);
        assert_eq!(a, b);
        assert_eq!(a.slots, FIRE_SLOTS);
        assert!(asm_events.is_sorted_by_key(|event| event.tsc));
        assert_eq!(without_tsc(asm_events), without_tsc(rust_events));
    }
}

#[test]
fn both_forms_write_the_same_optional_arguments() {
    switch_on("arch_same_option.");
    let test = TestRing::new(Mode::Discard);
    let some = |word| Pair { word, extent: 0 };
    let none = Pair { word: 0, extent: crate::arg::NONE };
    let text = "there";
    let there = Pair { word: text.as_ptr() as u64, extent: text.len() as u64 };
    for n in [Some(0u64), None, Some(u64::MAX)] {
        with_ring(&test, || {
            event!("arch_same_option.six", a: Option<u64> = n, b: Option<i8> = Some(-1), c: Option<f32> = None,
                d: u64 = 7, e: Option<&str> = Some(text), f: Option<&[u8]> = None);
            event!("arch_same_option.one", n: Option<u64>);
            event!("arch_same_option.full", n: Option<u64>, a: Option<u8> = Some(1), b: Option<u8> = Some(2),
                c: Option<u8> = Some(3), d: Option<u8> = Some(4), text: &str = &letters(8 * 27));
        });
        let first = n.map_or(none, some);
        let types = [
            site::arg::<Option<u64>>("a"),
            site::arg::<Option<i8>>("b"),
            site::arg::<Option<f32>>("c"),
            site::arg::<u64>("d"),
            site::arg::<Option<&str>>("e"),
            site::arg::<Option<&[u8]>>("f"),
        ];
        let six = encoded(&types, &[first, some(u64::MAX), none, some(7), there, none]);
        let (_, events) = drain(&mut test.reader(), &test.ring(), Uncommitted::Wait);
        let [.., of_six, of_one, of_full] = &events[..] else { panic!("no events") };
        assert_eq!(of_six.words[..six.len()], six);
        let one = encoded(&types[..1], &[first]);
        assert_eq!(
            (of_one.key, &of_one.words[..one.len()]),
            (key("arch_same_option.one"), &one[..])
        );
        let long = letters(8 * 27);
        let numbers = if n.is_some() { 10 } else { 9 };
        assert_eq!(text_of(&of_full.words[numbers..]), long.as_bytes());
    }
}

/// The text at the front of a payload.
fn text_of(words: &[u64]) -> Vec<u8> {
    let length = (words[0] & !TEXT_CUT) as usize;
    words[1..].iter().flat_map(|word| word.to_ne_bytes()).take(length).collect()
}

#[test]
fn text_is_in_the_event() {
    switch_on("arch_text.");
    let test = TestRing::new(Mode::Discard);
    with_ring(&test, || {
        let path = String::from("/index.html");
        // What is borrowed from a temporary lives until it is written.
        event!("arch_text.one", path: &str = &format!("{path}?q=1"));
        event!("arch_text.mixed", id: u64 = 7, path: &str = &path, body: &[u8] = b"ab", last: f64 = 1.5);
        let (a, b, c, d, e) = ("a", "b", "c", "d", "e");
        event!("arch_text.six", a: &str, b: &str, c: &str, d: &str, e: &str, f: &str = "f" ; "{a}");
    });
    let (_, events) = drain(&mut test.reader(), &test.ring(), Uncommitted::Wait);
    let [one, mixed, six] = &events[..] else { panic!("three events, not {events:?}") };
    assert_eq!(text_of(&one.words), b"/index.html?q=1");
    assert_eq!((mixed.key, mixed.words[0]), (key("arch_text.mixed"), 7));
    assert_eq!(text_of(&mixed.words[1..]), b"/index.html");
    assert_eq!((text_of(&mixed.words[4..]), mixed.words[6]), (b"ab".to_vec(), 1.5f64.to_bits()));
    let texts: Vec<_> = six.words.chunks(2).take(6).map(text_of).collect();
    assert_eq!(texts, [b"a", b"b", b"c", b"d", b"e", b"f"]);
}

/// Text of `length` letters that differ.
fn letters(length: usize) -> String {
    (0..length).map(|i| (b'!' + (i % 90) as u8) as char).collect()
}

/// The payload as Rust makes it.
fn encoded(args: &[layout::Arg], pairs: &[Pair]) -> Vec<u64> {
    let mut words = [0; MAX_WORDS];
    // SAFETY: the pairs are those of borrowed texts.
    let used = unsafe { text::encode(args, pairs, &mut words) };
    words[..used].to_vec()
}

#[test]
fn both_forms_write_the_same_text() {
    switch_on("arch_same_text.");
    let (asm, rust) = (TestRing::new(Mode::Discard), TestRing::new(Mode::Discard));
    let (mut asm_reader, mut rust_reader) = (asm.reader(), rust.reader());
    let text = |text: &str| Pair { word: text.as_ptr() as u64, extent: text.len() as u64 };
    let number = |word| Pair { word, extent: 0 };
    // Up to texts that do not fit. Over some laps of the ring.
    for length in (0..=310).cycle().take(2000) {
        let whole = letters(length);
        let (left, right) = whole.split_at(length / 3);
        with_ring(&asm, || {
            event!("arch_same_text.one", text: &str = &whole);
            event!("arch_same_text.two", left: &[u8] = left.as_bytes(), n: u64 = 1, right: &str);
        });
        let one = encoded(&[site::arg::<&str>("text")], &[text(&whole)]);
        rust.write(key("arch_same_text.one"), &one);
        let args = [site::arg::<&[u8]>("a"), site::arg::<u64>("n"), site::arg::<&str>("b")];
        let two = encoded(&args, &[text(left), number(1), text(right)]);
        rust.write(key("arch_same_text.two"), &two);
        let (a, asm_events) = drain(&mut asm_reader, &asm.ring(), Uncommitted::Wait);
        let (b, rust_events) = drain(&mut rust_reader, &rust.ring(), Uncommitted::Wait);
        assert_eq!((a, asm_events.len()), (b, 2));
        assert!(asm_events.is_sorted_by_key(|event| event.tsc));
        assert_eq!(without_tsc(asm_events), without_tsc(rust_events), "{length} bytes");
    }
}

#[test]
fn text_is_read_to_its_end_and_no_further() {
    switch_on("arch_edge.");
    let test = TestRing::new(Mode::Discard);
    // SAFETY: a page of our own, and one behind it that faults.
    let page = unsafe {
        let (protection, flags) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let pages = libc::mmap(core::ptr::null_mut(), 8192, protection, flags, -1, 0);
        assert_ne!(pages, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(pages.byte_add(4096), 4096, libc::PROT_NONE), 0);
        core::slice::from_raw_parts(pages.cast::<u8>(), 4096)
    };
    for length in 0..=24 {
        with_ring(&test, || event!("arch_edge.event", text: &[u8] = &page[4096 - length..]));
    }
    let (_, events) = drain(&mut test.reader(), &test.ring(), Uncommitted::Wait);
    let lengths: Vec<u64> = events.iter().map(|event| event.words[0]).collect();
    assert!(lengths.into_iter().eq(0..=24));
}

#[test]
fn loss_is_counted_and_told() {
    switch_on("arch_loss.");
    let test = TestRing::new(Mode::Discard);
    let mut reader = test.reader();
    let capacity = SLOTS - MARGIN_SLOTS as u64;
    with_ring(&test, || {
        for i in 0..capacity + 5 {
            if i == capacity + 5 - 1 {
                drain(&mut reader, &test.ring(), Uncommitted::Wait);
            }
            event!("arch_loss.event", i: u64);
        }
    });
    let (_, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
    let [told, kept] = &events[..] else { panic!("a loss and an event, not {events:?}") };
    assert_eq!((told.key, told.words[1]), (LOSS_KEY, 4));
    assert!(told.words[0] <= told.tsc && told.tsc <= kept.tsc);
    assert_eq!(kept.words[0], capacity + 4);
    let control = test.ring().control;
    assert_eq!((control.lost.load(Relaxed), control.lost_pending.load(Relaxed)), (4, 0));
}

/// What a lost text costs does not depend on the text: that is not even read.
#[test]
fn text_that_finds_no_room_is_not_read() {
    switch_on("arch_unread.");
    let test = TestRing::new(Mode::Discard);
    let protect = |page: *const [u8], protection| {
        // SAFETY: a page of its own, which nobody reads without the right to, or that is what this test shows.
        let done = unsafe { libc::mprotect(page.cast_mut().cast(), 4096, protection) };
        assert_eq!(done, 0);
    };
    // SAFETY: a new page, which stays.
    let page: &[u8] = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let at = libc::mmap(core::ptr::null_mut(), 4096, libc::PROT_READ, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        core::slice::from_raw_parts(at.cast(), 4096)
    };
    let mut reader = test.reader();
    let lost = || test.ring().control.lost.load(Relaxed);
    with_ring(&test, || {
        // The first that is lost begins the loss.
        while lost() == 0 {
            event!("arch_unread.event", text: &[u8] = &page[..9]);
        }
        protect(page, libc::PROT_NONE);
        for length in [0, 9, 4096] {
            event!("arch_unread.event", text: &[u8] = &page[..length]);
        }
        protect(page, libc::PROT_READ);
        assert_eq!(lost(), 4);
        drain(&mut reader, &test.ring(), Uncommitted::Wait);
        event!("arch_unread.event", text: &[u8] = &page[..9]);
    });
    let (_, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
    let [told, kept] = &events[..] else { panic!("a loss and an event, not {events:?}") };
    assert_eq!((told.key, told.words[1], kept.words[0]), (LOSS_KEY, 4, 9));
}

#[test]
fn cpu_of_the_event_is_one_of_this_machine() {
    switch_on("arch_cpu.");
    let test = TestRing::new(Mode::Discard);
    with_ring(&test, || event!("arch_cpu.event"));
    let word = test.ring().slot(SLOTS).commit.load(Relaxed) as usize as u64;
    let cpu = commit::cpu(word) as u64;
    // SAFETY: no argument is a pointer.
    let known = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) } as u64;
    assert_eq!(super::rseq(super::RSEQ_CPU_END).is_some(), cpu != commit::CPU_UNKNOWN);
    assert!(cpu < known || cpu == commit::CPU_UNKNOWN, "CPU {cpu} of {known}");
}

#[test]
fn thread_without_a_ring_knows_no_cpu() {
    assert_eq!(super::tls_cpu(), commit::CPU_UNKNOWN);
    assert!(super::tls_ring().is_null());
}

static STRUCK: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: libc::c_int) {
    let number = STRUCK.load(Relaxed);
    event!("arch_signal.handler", number: u64, a: u64 = 1, b: u64 = 2);
    STRUCK.store(number + 1, Relaxed);
}

/// A handler that writes events strikes a thread that writes events, anywhere.
#[test]
fn signal_handler_writes_in_between() {
    const EVENTS: u64 = 200_000;
    // Events of the handler that may wait to be read: a quarter of the smallest ring, two slots each.
    const UNREAD: u64 = 500;
    switch_on("arch_signal.");
    let (from_thread, from_handler) = (key("arch_signal.thread"), key("arch_signal.handler"));
    let test = TestRing::new(Mode::Discard);
    let mut reader = test.reader();
    // SAFETY: the handler is async-signal-safe: an event, and an atomic.
    unsafe { libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t) };
    // SAFETY: no argument.
    let target = unsafe { libc::pthread_self() };
    /// Ends the signals also when an assertion fails.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    let read = AtomicU64::new(0);
    let (mut thread, mut handler) = (0, 0);
    // The ring first: without one, the events of a handler go elsewhere.
    with_ring(&test, || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    if STRUCK.load(Relaxed) < read.load(Relaxed) + UNREAD {
                        // SAFETY: the target waits for this thread to end.
                        unsafe { libc::pthread_kill(target, libc::SIGUSR1) };
                    }
                    std::thread::yield_now();
                }
            });
            let _done = Done(&done);
            for i in 0..EVENTS {
                event!(
                    "arch_signal.thread",
                    i: u64, a: u64 = 1, b: u64 = 2, c: u64 = 3, d: u64 = 4, e: u64 = i + 5
                );
                if i % 100 < 99 {
                    continue;
                }
                let (drained, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
                assert_eq!((drained.skipped, drained.more), (0, false));
                for event in events {
                    let next = if event.key == from_thread {
                        assert_eq!(event.words[1..6], [1, 2, 3, 4, event.words[0] + 5]);
                        &mut thread
                    } else {
                        assert_eq!((event.key, &event.words[1..3]), (from_handler, &[1, 2][..]));
                        &mut handler
                    };
                    assert_eq!(event.words[0], *next);
                    *next += 1;
                }
                read.store(handler, Relaxed);
            }
        });
    });
    assert_eq!(thread, EVENTS);
    assert!(handler > 0, "no signal came");
    assert_eq!(test.ring().control.lost.load(Relaxed), 0);
}
