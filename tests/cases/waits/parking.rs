// A requester parks until the resolver, which computes, unparks it.
use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread::{self, Builder},
    time::Duration,
};

#[path = "../common.rs"]
mod common;

static ASKED: AtomicBool = AtomicBool::new(false);
static ANSWERED: AtomicBool = AtomicBool::new(false);
static OVER: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn resolve() {
    common::compute_answer(Duration::from_millis(4));
}

fn main() {
    let case = common::Case::new(1500);
    thread::scope(|scope| {
        let requester = Builder::new().name("requester".into()).spawn_scoped(scope, || {
            let resolver = Builder::new().name("resolver".into());
            let me = thread::current();
            let resolver = resolver.spawn(move || {
                while !OVER.load(SeqCst) {
                    if ASKED.swap(false, SeqCst) {
                        resolve();
                        ANSWERED.store(true, SeqCst);
                        me.unpark();
                    }
                    thread::park();
                }
            });
            let resolver = resolver.unwrap();
            while case.going() {
                ASKED.store(true, SeqCst);
                resolver.thread().unpark();
                case.wait(|| {
                    while !ANSWERED.swap(false, SeqCst) {
                        thread::park();
                    }
                });
                thread::sleep(Duration::from_millis(3));
            }
            OVER.store(true, SeqCst);
            resolver.thread().unpark();
            resolver.join().unwrap();
        });
        requester.unwrap().join().unwrap();
    });
    case.truth("requester", "parking", "resolver", "resolve");
}
