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

/// Whether that holds in a forked child, where nobody else maps anything.
fn holds_in_a_child(what: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child of one thread of several takes no lock of another thread's, and ends at once.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(i32::from(!what()));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        status == 0
    }
}

/// A counter whose page shows nothing, and is not mapped in forked children.
fn opened() -> Open {
    let (bytes, flags) = (PAGE as usize, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe {
        let page = libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        assert_eq!(libc::madvise(page, bytes, libc::MADV_DONTFORK), 0);
        page
    };
    let open = Open { page: page.cast_const().cast(), descriptor: None };
    WERE_ASKED.store(true, Relaxed);
    OWN.set(Own { asked: Counting(1), since: 7, open: [Some(open), None] });
    open
}

fn is_mapped(open: Open) -> bool {
    // SAFETY: this asks about a page and changes nothing; where there is none, it fails.
    unsafe { libc::msync(open.page.cast_mut().cast(), PAGE as usize, libc::MS_ASYNC) == 0 }
}

#[test]
fn what_an_interrupted_reading_may_use_stays_mapped() {
    for is_under_way in [false, true] {
        assert!(holds_in_a_child(|| {
            let open = opened();
            UNDER_WAY.set(is_under_way);
            // As a handler does when the agent asks for nothing any more.
            let changed = change(Counting(0)) == Ok(());
            changed && is_mapped(open) == is_under_way && !are_open() && read_own().is_none()
        }));
    }
}

#[test]
fn in_a_forked_child_an_interrupted_reading_finds_a_page_that_shows_nothing() {
    let open = opened();
    for is_under_way in [false, true] {
        UNDER_WAY.set(is_under_way);
        assert!(holds_in_a_child(|| {
            forget();
            is_mapped(open) == is_under_way && !are_open()
        }));
    }
    UNDER_WAY.set(false);
    close();
}

#[test]
fn what_was_opened_meanwhile_is_left_as_it_is() {
    let open = opened();
    assert_eq!(change(Counting(1)), Ok(()));
    assert!(OWN.get().since == 7 && is_mapped(open));
    close();
}
