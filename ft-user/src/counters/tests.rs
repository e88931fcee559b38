//! The page of a counter, simulated.

use super::*;

/// A counter in register 3 of 48 bits.
fn page() -> Page {
    Page {
        index: 4.into(),
        offset: 1000.into(),
        enabled: 50.into(),
        running: 50.into(),
        capabilities: MAY_BE_READ.into(),
        width: 48.into(),
        ..Page::default()
    }
}

fn shown(value: u64, missed: u64) -> Option<Shown> {
    Some(Shown { value, missed })
}

#[test]
fn the_offsets_of_the_page_are_the_kernels() {
    use core::mem::offset_of;
    let offsets = [
        offset_of!(Page, lock),
        offset_of!(Page, index),
        offset_of!(Page, offset),
        offset_of!(Page, enabled),
        offset_of!(Page, running),
        offset_of!(Page, capabilities),
        offset_of!(Page, width),
    ];
    assert_eq!(offsets, [8, 12, 16, 24, 32, 40, 48]);
}

#[test]
fn a_counter_is_its_register_and_what_the_page_adds() {
    let in_register = |count: u64| {
        move |register| {
            assert_eq!(register, 3);
            count
        }
    };
    assert_eq!(page().shown(in_register(7)), shown(1007, 0));
    // The kernel starts a register below zero, so that it overflows after a while; bits above its width mean nothing.
    let below = (1 << 48) - 900;
    assert_eq!(page().shown(in_register(below)), shown(100, 0));
    assert_eq!(page().shown(in_register(below | 0xabcd << 48)), shown(100, 0));
    let wide = Page { width: 64.into(), ..page() };
    assert_eq!(wide.shown(in_register(u64::MAX)), shown(999, 0));
}

#[test]
fn what_is_in_no_register_or_may_not_be_read_is_not_asked_for() {
    let never = |register| panic!("register {register} is read");
    for page in [
        Page { index: 0.into(), ..page() },
        Page { capabilities: (!MAY_BE_READ).into(), ..page() },
        Page { width: 0.into(), ..page() },
        Page { width: 65.into(), ..page() },
        Page::default(),
    ] {
        assert_eq!(page.shown(never), None, "{page:?}");
    }
}

#[test]
fn a_page_that_changes_meanwhile_is_read_again() {
    let page = page();
    let calls = Cell::new(0);
    // An interrupt after the register was read moves the counter to another one.
    let found = page.shown(|register| {
        calls.set(calls.get() + 1);
        if calls.get() == 1 {
            page.lock.fetch_add(2, Relaxed);
            page.index.store(2, Relaxed);
            page.offset.store(5000, Relaxed);
        }
        u64::from(register)
    });
    assert_eq!((found, calls.get()), (shown(5001, 0), 2));
}

#[test]
fn a_page_that_always_changes_is_given_up() {
    let page = page();
    let calls = Cell::new(0);
    let found = page.shown(|_| {
        calls.set(calls.get() + 1);
        page.lock.fetch_add(2, Relaxed);
        0
    });
    assert_eq!((found, calls.get()), (None, ATTEMPTS));
}

#[test]
fn time_without_a_register_is_told_and_what_is_not_known_is_no_reading() {
    let shared = Page { enabled: 80.into(), ..page() };
    assert_eq!(shared.shown(|_| 0), shown(1000, 30));
    let [one, other] = [shown(7, 30), shown(9, 2)];
    assert_eq!(reading(500, [Some(one), Some(other)]), Some([532, 7, 9]));
    assert_eq!(reading(500, [Some(one), None]), Some([530, 7, NOT_COUNTED]));
    for not_known in [[Some(one), Some(None)], [Some(None), Some(other)], [None, None]] {
        assert_eq!(reading(500, not_known), None);
    }
    let [stretch, ..] = reading(u64::MAX, [Some(shown(7, 1 << 63)), None]).unwrap();
    assert!(stretch as i64 >= 0, "{stretch:#x} would be a refusal");
}

#[test]
fn an_event_of_a_signal_handler_in_the_middle_of_a_reading_is_not_counted() {
    BUSY.set(true);
    assert_eq!((read(), are_open()), (None, false));
    assert!(BUSY.get(), "whom it interrupts goes on");
    BUSY.set(false);
}
