//! Threads that hit a callsite for the first time at once.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../../ft-user/tests/common/mod.rs"]
mod common;
mod made;

use std::sync::Barrier;
use std::thread;

use common::Memory;
use ft_user::Config;
use made::make;
use tracing::{Event, dispatcher};

#[test]
fn what_is_on_from_the_start_is_written_from_the_first_hit_on() {
    const THREADS: usize = 4;
    const CALLSITES: usize = 500;
    common::start(Config::default());
    ft_user::enable("made*");
    tracing::subscriber::set_global_default(ft_tracing::subscriber()).unwrap();
    let callsites: Vec<_> = (0..CALLSITES).map(|_| make()).collect();
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for metadata in &callsites {
                    barrier.wait();
                    // As the macros ask.
                    if dispatcher::get_default(|dispatch| dispatch.enabled(metadata)) {
                        Event::dispatch(metadata, &metadata.fields().value_set(&[]));
                    }
                }
            });
        }
    });
    let events = Memory::own().take();
    let written = events.iter().filter(|event| event.name == "made.info").count();
    assert_eq!(written, THREADS * CALLSITES);
}
