//! Models of the rings, and of what threads share of tasks: every interleaving of writers, a signal handler and the reader,
//! and every value that the memory model lets a load return (up to a bound of preemptions).
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p ft-user --test loom --release
//! ```
//!
//! `cargo xtask test` runs them, with the models and their engine optimised. The algorithms are the library's own files, compiled
//! here a second time: [`ring`], [`guard`], [`handover`], [`publish`], [`mod@wait`], [`reader`],
//! [`shared_ring`], [`numbers`] and [`table`] find loom's atomics in [`atomic`] and rings of few slots in [`layout`]. What they do
//! to payload is checked in one of two ways: where nobody may touch it at once (discard mode, the shared
//! ring), payload words are plain memory, and loom reports every access that is not ordered; where
//! racing is the idea (overwrite mode, a seqlock), they are atomics, and contents must fit together.
//!
//! A model that cannot fail proves nothing: each scene is also run with a single ordering weakened, and
//! must then fail (`each_ordering_is_needed`); of tasks, also with words that change in
//! two steps. To see one fail by hand, call `atomic::weaken` in a scene.

#![cfg(loom)]

mod atomic;
mod claims;
mod layout;
mod overwrite;
mod per_thread;
mod published;
mod shared;
mod tasks;

#[path = "../../src/guard.rs"]
#[allow(dead_code, unreachable_pub, reason = "the library's file; a model uses a part of it")]
mod guard;
#[path = "../../src/handover.rs"]
#[allow(dead_code, unreachable_pub, reason = "the library's file; a model uses a part of it")]
mod handover;
#[path = "../../src/task/numbers.rs"]
mod numbers;
#[path = "../../src/publish.rs"]
mod publish;
#[path = "../../src/reader.rs"]
#[allow(dead_code, unreachable_pub, reason = "the library's file; a model uses a part of it")]
mod reader;
#[path = "../../src/ring.rs"]
#[allow(dead_code, unreachable_pub, reason = "the library's file; a model uses a part of it")]
mod ring;
#[path = "../../src/shared_ring.rs"]
#[allow(dead_code, unreachable_pub, reason = "the library's file; a model uses a part of it")]
mod shared_ring;
#[path = "../../src/intern/table.rs"]
mod table;
#[path = "../../src/wait.rs"]
#[allow(dead_code, unreachable_pub, reason = "the library's file; a model uses a part of it")]
mod wait;

use std::panic::{AssertUnwindSafe, catch_unwind};

use atomic::{Role, Weakening};

/// Explores `scene`, with at most `preemptions` of a thread that could go on.
fn explore(preemptions: usize, scene: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.check(scene);
}

/// Whether `model` fails with one ordering weakened.
fn fails(weakening: Weakening, model: impl FnOnce()) -> bool {
    atomic::weaken(Some(weakening));
    let failed = panics(model);
    atomic::weaken(None);
    failed
}

/// Whether `model` fails where words of a role are modified in two steps.
fn fails_in_steps(role: Role, model: impl FnOnce()) -> bool {
    atomic::modify_in_steps(Some(role));
    let failed = panics(model);
    atomic::modify_in_steps(None);
    failed
}

fn panics(model: impl FnOnce()) -> bool {
    // The report of the failure is what we want to see, not to print.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let failed = catch_unwind(AssertUnwindSafe(model)).is_err();
    std::panic::set_hook(hook);
    failed
}
