//! Functions with the attribute `function`, each of which measures itself, and its caller around it.
//!
//! ```text
//! round ─┬─ works ──── Steps::climbs ─ climbs ─ climbs ──── sleeps ──── unwinds ─┬─ panics
//!        └───────────────────────────────────────────────────────────────────────┴───────
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{catch_unwind, resume_unwind};
use std::thread;

use serde_json::{Value, json};

use crate::sched;

const WORK_NS: i64 = 100_000;
const SLEEP_NS: i64 = 300_000;
const DEPTH: u32 = 3;

/// What is known of a function.
#[derive(Clone, Copy, Default)]
struct Truth {
    calls: i64,
    /// Between the first and the last reading of the clock inside of its outermost calls.
    inside: i64,
    /// Between two around them.
    around: i64,
    /// Between when it went to sleep and when it was to be woken.
    asleep: i64,
}

thread_local! {
    static TRUTH: RefCell<BTreeMap<&'static str, Truth>> = RefCell::default();
}

fn tell(function: &'static str, change: impl FnOnce(&mut Truth)) {
    TRUTH.with_borrow_mut(|truth| change(truth.entry(function).or_default()));
}

/// Within the function.
fn inside<T>(function: &'static str, work: impl FnOnce() -> T) -> T {
    let from = sched::now_ns();
    tell(function, |truth| truth.calls += 1);
    let result = work();
    tell(function, |truth| truth.inside += sched::now_ns() - from);
    result
}

/// Around it.
fn around<T>(function: &'static str, call: impl FnOnce() -> T) -> T {
    let from = sched::now_ns();
    let result = call();
    tell(function, |truth| truth.around += sched::now_ns() - from);
    result
}

#[ft_user::function]
fn works() {
    inside("works", || sched::spin_until(sched::now_ns() + WORK_NS));
}

#[ft_user::function]
fn sleeps() {
    inside("sleeps", || {
        let from = sched::now_ns();
        tell("sleeps", |truth| truth.asleep += SLEEP_NS);
        sched::sleep_until(from + SLEEP_NS);
    });
}

struct Steps(u32);

impl Steps {
    #[ft_user::function("Steps::climbs")]
    fn climbs(&mut self) {
        let is_outermost = self.0 == DEPTH;
        let mut climb = || {
            sched::spin_until(sched::now_ns() + WORK_NS);
            if let Some(less) = self.0.checked_sub(1) {
                self.0 = less;
                self.climbs();
            }
        };
        if is_outermost {
            inside("Steps::climbs", climb);
        } else {
            tell("Steps::climbs", |truth| truth.calls += 1);
            climb();
        }
    }
}

#[ft_user::function]
fn panics() {
    inside("panics", || sched::spin_until(sched::now_ns() + WORK_NS));
    // No hook that prints.
    resume_unwind(Box::new(()));
}

#[ft_user::function]
fn unwinds() {
    inside("unwinds", || around("panics", || catch_unwind(panics).expect_err("it panics")));
}

#[ft_user::function]
fn round() {
    inside("round", || {
        around("works", works);
        around("Steps::climbs", || Steps(DEPTH).climbs());
        around("sleeps", sleeps);
        around("unwinds", unwinds);
    });
}

/// Prints the thread, and for each function its calls, and the times inside of it, around it and asleep.
pub(crate) fn run(rounds: u64) -> String {
    thread::scope(|scope| {
        let thread = sched::on_stage(scope, "ft-functions", 10, || {
            for _ in 0..rounds {
                around("round", round);
                // So that others have their share of the CPU.
                sched::sleep_until(sched::now_ns() + WORK_NS);
            }
            (sched::gettid(), TRUTH.take())
        });
        let (tid, truth) = thread.join().expect("the functions");
        let row = |(name, truth): (&str, Truth)| {
            let Truth { calls, inside, around, asleep } = truth;
            (name.to_owned(), json!([calls, inside, around, asleep]))
        };
        let functions: serde_json::Map<String, Value> = truth.into_iter().map(row).collect();
        json!({ "tid": tid, "functions": functions }).to_string()
    })
}
