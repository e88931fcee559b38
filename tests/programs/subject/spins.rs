//! Two threads hold one lock for as many turns of a loop as they are told, and another for as many as ever: a program
//! with a slowdown of a known size.

use std::hint::black_box;
use std::thread;

use ft_user::sync::Mutex;

static BOOK: Mutex<u64> = Mutex::named("book", 0);
static LEDGER: Mutex<u64> = Mutex::named("ledger", 0);

/// Turns of the loop in a hold of `ledger`, and between holds.
const TURNS: u64 = 2_000;

fn turn(turns: u64) -> u64 {
    (0..turns).fold(0, |sum, i| black_box(sum ^ i))
}

/// Both threads hold `book` for `turns` in each of `rounds`; prints these.
pub(crate) fn run(turns: u64, rounds: u64) -> String {
    let trade = |name: &str| {
        let trader = move || {
            for _ in 0..rounds {
                let _round = ft_user::scope!("spins.round");
                {
                    let mut book = BOOK.lock().expect("not poisoned");
                    *book ^= turn(turns);
                }
                turn(TURNS);
                {
                    let mut ledger = LEDGER.lock().expect("not poisoned");
                    *ledger ^= turn(TURNS);
                }
                turn(2 * TURNS);
            }
        };
        thread::Builder::new().name(name.into()).spawn(trader).expect("a thread starts")
    };
    let traders = ["trader-0", "trader-1"].map(trade);
    traders.into_iter().for_each(|trader| trader.join().expect("no trader panics"));
    format!("{{\"turns\":{turns},\"rounds\":{rounds}}}")
}
