// Two readers of a price list wait for its std::sync::Mutex, which an importer keeps while it sleeps.
use std::{
    hint::black_box,
    sync::Mutex,
    thread::{self, Builder},
    time::Duration,
};

#[path = "../common.rs"]
mod common;

static PRICES: Mutex<Vec<u64>> = Mutex::new(Vec::new());

#[inline(never)]
fn import() {
    let mut prices = PRICES.lock().unwrap();
    thread::sleep(Duration::from_millis(9));
    prices.push(1);
}

fn main() {
    let case = common::Case::new(1500);
    thread::scope(|scope| {
        let named = |name: String| Builder::new().name(name);
        named("importer".into())
            .spawn_scoped(scope, || {
                while case.going() {
                    thread::sleep(Duration::from_millis(21));
                    import();
                }
            })
            .unwrap();
        for i in 0..2 {
            named(format!("reader-{i}"))
                .spawn_scoped(scope, || {
                    while case.going() {
                        case.wait(|| black_box(PRICES.lock().unwrap().len()));
                        thread::sleep(Duration::from_micros(600));
                    }
                })
                .unwrap();
        }
    });
    case.truth("reader-", "mutex", "importer", "import");
}
