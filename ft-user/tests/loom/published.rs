//! What one thread makes for all: the memfd, and each ring that is mapped; and what a child knows that is forked meanwhile.

use std::ptr;
use std::sync::Arc;

use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomic::{Access, AtomicPtr, AtomicU64, Role};
use crate::{explore, fails, publish};

/// What is made: plain memory, of which loom reports each access that is not ordered.
struct Made {
    content: AtomicU64,
}

/// Stands in a place whose address is not known yet. Odd, as is the address of what is not made yet.
const TAKEN: *mut Made = ptr::without_provenance_mut(1);

fn is_made(made: *mut Made) -> bool {
    !made.is_null() && made.addr() & 1 == 0
}

/// Two threads of which one makes it, as `mapped::map` does, and one that uses it if it is there.
fn two_makers_and_a_user() {
    explore(2, || {
        let place = Arc::new(AtomicPtr::new(ptr::null_mut()));
        let made = [0, 1].map(|_| Arc::new(Made { content: AtomicU64::new(Role::Payload, 0) }));
        let makers = made.clone().map(|made| {
            let place = place.clone();
            loom::thread::spawn(move || {
                let is_maker = publish::take(&place, TAKEN);
                if is_maker {
                    let address = Arc::as_ptr(&made).cast_mut();
                    publish::mark(&place, address.wrapping_byte_add(1));
                    made.content.store(7, Relaxed);
                    publish::publish(&place, address);
                }
                is_maker
            })
        });
        let seen = publish::see(&place);
        if is_made(seen) {
            // SAFETY: one of those above, which live until the end.
            assert_eq!(unsafe { &*seen }.content.load(Relaxed), 7);
        }
        let taken = makers.map(|maker| maker.join().unwrap());
        assert!(taken[0] != taken[1], "{taken:?}");
        assert!(is_made(publish::see(&place)));
    });
}

/// A child that is forked at any moment of `mapped::map` knows where what is mapped of the parent's memfd stands, and unmaps it.
fn child_of_another_threads_fork() {
    explore(2, || {
        let place = Arc::new(AtomicPtr::new(ptr::null_mut()));
        let made = Arc::new(Made { content: AtomicU64::new(Role::Payload, 0) });
        // What the kernel has mapped.
        let mapped = Arc::new(AtomicU64::new(Role::Kernel, 0));
        let maker = loom::thread::spawn({
            let (place, mapped, made) = (place.clone(), mapped.clone(), made.clone());
            move || {
                let address = Arc::as_ptr(&made).cast_mut();
                assert!(publish::take(&place, TAKEN));
                publish::mark(&place, address.wrapping_byte_add(1));
                mapped.store(1, Release);
                made.content.store(7, Relaxed);
                publish::publish(&place, address);
            }
        });
        if mapped.load(Acquire) == 1 {
            let known = publish::see(&place);
            assert_eq!(known.map_addr(|address| address & !1), Arc::as_ptr(&made).cast_mut());
        }
        maker.join().unwrap();
    });
}

#[test]
fn one_thread_makes_it_and_all_see_what_is_made() {
    two_makers_and_a_user();
}

#[test]
fn a_forked_child_knows_what_is_mapped() {
    child_of_another_threads_fork();
}

#[test]
fn each_ordering_is_needed() {
    for weakening in [(Role::Place, Access::Store, Relaxed), (Role::Place, Access::Load, Relaxed)] {
        assert!(fails(weakening, two_makers_and_a_user), "{weakening:?} makes no difference");
    }
    let kernel = (Role::Kernel, Access::Store, Relaxed);
    assert!(fails(kernel, child_of_another_threads_fork), "{kernel:?} makes no difference");
}
