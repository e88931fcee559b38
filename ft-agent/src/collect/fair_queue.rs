//! A queue in which each user has a line of its own: they take turns.

use std::collections::VecDeque;

/// Items that wait, first in first out for each user. It does not bound itself: see [`super::shares`].
#[derive(Debug)]
pub struct FairQueue<T> {
    /// None is empty. The first has the next turn.
    lines: VecDeque<(u32, VecDeque<T>)>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        FairQueue { lines: VecDeque::new() }
    }
}

impl<T> FairQueue<T> {
    /// Appends an item of `user`.
    pub fn push(&mut self, user: u32, item: T) {
        match self.lines.iter_mut().find(|line| line.0 == user) {
            Some((_, line)) => line.push_back(item),
            None => self.lines.push_back((user, VecDeque::from([item]))),
        }
    }

    /// The next item.
    pub fn pop(&mut self) -> Option<T> {
        self.pop_of(|_| true).map(|(_, item)| item)
    }

    /// The next item of a user whose turn it may be.
    pub fn pop_of(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<(u32, T)> {
        let at = self.lines.iter().position(|line| may(line.0))?;
        let (user, mut line) = self.lines.remove(at)?;
        let item = line.pop_front()?;
        if !line.is_empty() {
            self.lines.push_back((user, line));
        }
        Some((user, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_take_turns() {
        let mut queue = FairQueue::default();
        for (user, item) in [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (2, "b2")] {
            queue.push(user, item);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
    }

    #[test]
    fn who_may_not_have_a_turn_waits() {
        let mut queue = FairQueue::default();
        queue.push(1, "a");
        queue.push(2, "b");
        assert_eq!(queue.pop_of(|user| user != 1), Some((2, "b")));
        assert_eq!(queue.pop_of(|user| user != 1), None);
        assert_eq!(queue.pop(), Some("a"));
        assert_eq!(queue.pop(), None);
    }
}
