//! The subscriber of a whole program: what it says, and values that trace themselves.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../../ft-user/tests/common/mod.rs"]
mod common;

use std::fmt;

use common::{Event, Memory};
use ft_user::Config;
use tracing::{info, info_span};

fn text(event: &Event, at: usize) -> String {
    let bytes = event.words[at + 1..].iter().flat_map(|word| word.to_ne_bytes());
    String::from_utf8(bytes.take(event.words[at] as usize).collect()).unwrap()
}

struct Panics;

impl fmt::Debug for Panics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("so far")?;
        panic!("as it may");
    }
}

struct Traces;

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        info_span!(target: "hostile", "within").in_scope(|| info!(target: "hostile", "inner"));
        f.write_str("outer")
    }
}

#[test]
fn values_that_panic_or_trace_themselves_are_survived() {
    common::start(Config::default());
    tracing::subscriber::set_global_default(ft_tracing::subscriber()).unwrap();
    ft_user::enable("hostile*");
    std::panic::set_hook(Box::new(|_| ()));
    info!(target: "hostile", value = ?Panics, behind = 7);
    info!(target: "hostile", value = ?Traces);
    let _ = std::panic::take_hook();
    let mut memory = Memory::own();
    let events = memory.take();
    let names: Vec<_> = events.iter().map(|e| &*e.name).collect();
    let within = ["hostile.within.open", "hostile.within", "hostile.info", "hostile.within"];
    assert_eq!(names[..5], [["hostile.info"].as_slice(), &within].concat());
    assert_eq!(names[5..], ["hostile.within.close", "hostile.info"]);
    assert_eq!((text(&events[0], 1), events[0].words[3]), ("so far".into(), 7));
    assert_eq!(text(&events[3], 2), "inner");
    assert_eq!(text(&events[6], 1), "outer");

    // A callsite is described once.
    let before = memory.directory().len();
    for _ in 0..3 {
        info!(target: "hostile", value = ?Traces);
    }
    assert!(memory.directory().len() <= before + 4, "the callsite here, and its form");
}
