//! The subjects but those of LTTng: what is measured, each in a process of its own. See [`usage`].

mod calls;
mod contended;
mod deep;
mod helpers;
mod locks;
mod off;
mod on;
mod ping_pong;
mod shared;
mod tasks;

use ft_costs::{cold, event_loop, produce};
use ft_user::event;

fn usage() -> ! {
    eprintln!(
        "usage: subject off | on | two | cold | loop none|on | rate THREADS RATE SECONDS | shared
               | pthread off|on | locks off|on | tasks off|on
               | ping-pong | deep switch|spin | helpers
               | calls futex|other|fault | contended"
    );
    std::process::exit(2)
}

/// The event that the loops with one event a pass call.
#[inline(never)]
fn two_words(a: u64, b: u64) {
    event!("costs.two_words", a: u64, b: u64);
}

#[inline(never)]
fn nothing(a: u64, b: u64) {
    std::hint::black_box((a, b));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<f64>().unwrap_or_else(|_| usage());
    let start = || {
        ft_user::init().expect("tracing starts");
        ft_user::thread_init();
    };
    match words[..] {
        ["off"] => off::measure(),
        ["on"] => {
            start();
            on::one_thread();
        }
        ["two"] => {
            start();
            on::two_threads();
        }
        ["cold"] => {
            start();
            cold::measure("cold", two_words);
            cold::measure_floor();
        }
        ["loop", "none"] => event_loop::measure(nothing),
        ["loop", "on"] => {
            start();
            event_loop::measure(two_words);
        }
        ["rate", threads, rate, seconds] => {
            start();
            produce::run(two_words, number(threads) as usize, number(rate), number(seconds));
        }
        ["shared"] => shared::measure(),
        ["pthread", state] => locks::pthread(state == "on"),
        ["locks", state] => {
            start();
            locks::rust(state == "on");
        }
        ["tasks", state] => {
            start();
            tasks::measure(state == "on");
        }
        ["ping-pong"] => ping_pong::measure(),
        ["deep", "switch"] => deep::switch(),
        ["deep", "spin"] => deep::spin(),
        ["helpers"] => helpers::measure(),
        ["calls", "futex"] => calls::futex(),
        ["calls", "other"] => calls::other(),
        ["calls", "fault"] => calls::fault(),
        ["contended"] => contended::measure(),
        _ => usage(),
    }
}
