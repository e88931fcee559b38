//! What a program says of itself: its async tasks and its functions.

use super::{Answers, NAMED};
use crate::document::{Ns, Of, Section, Share, Word};
use crate::sections::tasks::TaskName;
use crate::text;

impl Answers {
    /// Nothing where the program has none.
    pub(super) fn tasks(&self, s: &mut Section) {
        let tasks = &self.tasks;
        let Some(longest) = tasks.longest.first() else { return };
        let sum =
            |of: fn(&TaskName) -> i64| tasks.names.iter().map(of).fold(0, i64::saturating_add);
        let (lives, unknown) = (sum(|n| n.lives_ns), sum(|n| n.unknown_ns));
        let unknown = (unknown > 0).then(|| text!(", unknown {}", Share(unknown, lives)));
        s.answer(
            "tasks",
            "tasks",
            text!(
                "{}, {} in all: polled {}, queued {}, waiting {}{}; the longest poll {} of '{}'",
                Of(tasks.counts.tasks, "task"),
                Ns(lives),
                Share(sum(|n| n.polled_ns), lives),
                Share(sum(|n| n.queued_ns), lives),
                Share(sum(|n| n.waiting_ns), lives),
                unknown.unwrap_or_default(),
                longest.interval(),
                Word(&longest.name)
            ),
        );
        for b in tasks.behind.iter().take(NAMED) {
            s.say(text!(
                "'{}' queued {} behind '{}': {}, at most {}",
                Word(&b.name),
                Of(b.times, "time"),
                Word(&b.behind),
                Ns(b.total_ns),
                Ns(b.longest_ns)
            ));
        }
    }

    /// Nothing where the program has none.
    pub(super) fn functions(&self, s: &mut Section) {
        let functions = &self.functions;
        if functions.functions.is_empty() {
            return;
        }
        let entered = functions.counts.entered;
        if functions.timed().next().is_none() {
            let calls = text!("{} of which no end is recorded", Of(entered, "call"));
            s.answer("functions", "functions", calls);
            return;
        }
        s.answer(
            "functions",
            "functions",
            text!(
                "{}, {} inside the outermost",
                Of(functions.counts.calls, "call"),
                Ns(functions.self_ns)
            ),
        );
        for f in functions.timed().take(NAMED) {
            s.say(text!(
                "{} of it in '{}' itself, in {}",
                Share(f.own.ns, functions.self_ns),
                Word(&f.name),
                Of(f.calls, "call")
            ));
        }
        if entered > 0 {
            s.say(text!("besides, {} of which no end is recorded", Of(entered, "call")));
        }
    }
}
