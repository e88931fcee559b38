//! What threads share of tasks: the counter of their numbers, and the table that numbers their names and places. (Their wakers
//! do not change.)

use std::collections::BTreeSet;
use std::sync::Arc;

use loom::sync::atomic::Ordering::Relaxed;

use crate::atomic::{Access, AtomicU64, Role, calm, strike_after};
use crate::numbers::Numbers;
use crate::table::{Number, Table};
use crate::{explore, fails, fails_in_steps};

/// Two threads take numbers, one of them with a signal handler that takes one, too.
fn numbers_of_tasks(before_access: u32) {
    explore(3, move || {
        let numbers = Arc::new(Numbers(AtomicU64::new(Role::Numbers, 1)));
        let take = |numbers: &Arc<Numbers>| {
            let numbers = numbers.clone();
            move || numbers.next()
        };
        let by_handler = Arc::new(std::sync::Mutex::new(None));
        let (first, handler, theirs) = (take(&numbers), take(&numbers), by_handler.clone());
        let thread = loom::thread::spawn(move || {
            strike_after(before_access, move || *theirs.lock().unwrap() = Some(handler()));
            let own = [first(), first()];
            calm();
            own
        });
        let other = take(&numbers)();
        let mut all = thread.join().unwrap().to_vec();
        all.push(other);
        all.extend(by_handler.lock().unwrap().take());
        let distinct: BTreeSet<u64> = all.iter().copied().collect();
        assert!(distinct.len() == all.len() && !distinct.contains(&0), "{all:?}");
    });
}

#[test]
fn each_task_has_a_number_of_its_own() {
    (0..2).for_each(numbers_of_tasks);
}

/// A table of four.
type Names = Table<4>;

fn names() -> Arc<Names> {
    let word = || AtomicU64::new(Role::Numbers, 0);
    Arc::new(Names { keys: std::array::from_fn(|_| word()), used: word() })
}

/// The number of a key, and whether this call has inserted it.
fn number(names: &Names, key: u64) -> (u32, bool) {
    match names.number(key) {
        Number::Known(number) => (number, false),
        Number::New(number) => (number, true),
        Number::Full => panic!("there is room"),
    }
}

/// Two keys that are looked for in the same slot first.
const RIVALS: [u64; 2] = [1, 14];

/// Two threads look up both, in opposite orders, one of them with a signal handler that forks: what it knows by then is what its child
/// finds.
fn names_of_two_threads(before_access: u32) {
    explore(2, move || {
        let names = names();
        let [own, theirs] = [(); 2].map(|()| names.clone());
        let thread = loom::thread::spawn(move || {
            strike_after(before_access, move || {
                let (known, _) = number(&theirs, RIVALS[0]);
                assert!(theirs.iter().any(|entry| entry == (known, RIVALS[0])), "{known}");
            });
            let numbers = RIVALS.map(|key| number(&own, key));
            calm();
            numbers
        });
        let [second, first] = [RIVALS[1], RIVALS[0]].map(|key| number(&names, key));
        let found = [[first, second], thread.join().unwrap()];
        let [one, other] = found.map(|both| both.map(|(number, _)| number));
        assert!(one == other && one[0] != one[1] && !one.contains(&0), "{found:?}");
        let entries: BTreeSet<_> = names.iter().collect();
        assert_eq!(entries, BTreeSet::from([(one[0], RIVALS[0]), (one[1], RIVALS[1])]));
        // Who inserts a key writes what it stands for; a handler may have done it.
        for at in 0..2 {
            let inserted = found.iter().filter(|both| both[at].1).count();
            assert!(inserted <= 1, "{found:?}");
        }
    });
}

#[test]
fn threads_and_handlers_agree_on_the_numbers_of_names() {
    explore(0, || {
        let [one, other] = RIVALS.map(|key| number(&names(), key));
        assert_eq!(one, other, "rivals");
    });
    (0..6).for_each(names_of_two_threads);
}

#[test]
fn each_ordering_is_needed() {
    for access in [Access::Modify, Access::Load] {
        let weakening = (Role::Numbers, access, Relaxed);
        let model = || (0..6).for_each(names_of_two_threads);
        assert!(fails(weakening, model), "{weakening:?} makes no difference");
    }
}

#[test]
fn to_modify_words_in_one_step_is_needed() {
    assert!(fails_in_steps(Role::Numbers, || numbers_of_tasks(9)), "of numbers");
    assert!(fails_in_steps(Role::Numbers, || names_of_two_threads(99)), "of names");
}
