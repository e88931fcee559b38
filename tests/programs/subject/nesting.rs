//! One thread takes four locks inside each other, `rounds` times; every second round releases them in
//! the order of acquisition, which is legal and must not confuse the depth.

use ft_user::sync::Mutex;

/// Prints the holds that each depth must show.
pub(crate) fn run(rounds: u64) -> String {
    let locks: Vec<Mutex<u64>> =
        ["outer", "second", "third", "inner"].map(|name| Mutex::named(name, 0)).into();
    for round in 0..rounds {
        let mut held: Vec<_> =
            locks.iter().map(|lock| lock.lock().expect("not poisoned")).collect();
        held.iter_mut().for_each(|value| **value += 1);
        if round % 2 == 0 {
            while held.pop().is_some() {}
        } else {
            held.into_iter().for_each(drop);
        }
    }
    // Twice as many that are not nested.
    for _ in 0..2 * rounds {
        *locks[3].lock().expect("not poisoned") += 1;
    }
    format!("{{\"depths\":[{},{rounds},{rounds},{rounds}]}}", 3 * rounds)
}
