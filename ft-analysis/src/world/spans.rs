//! Intervals that overlap and end one by one; each knows what happened since its start.
//!
//! **Rule.** What happens is counted once, in the span that began last. So each span has what happened from its own
//! start to the start of the next one, and what a span saw in all is what it and all later ones have. When a span ends,
//! what it had goes to the one before it, which goes on; when the oldest ends, nobody needs it any more.
//!
//! An event costs the same however many spans are open, and memory grows with what is told apart between two
//! starts, not with the number of events. Rejected: to count for every open span (a lock with a hundred waiters would pay
//! a hundred times for each turn); to keep the events themselves (a wait of a million turns would keep a million).

/// What is counted in a span.
pub(crate) trait Count: Default {
    /// Adds what was counted in a later span.
    fn merge(&mut self, later: &Self);
}

/// An open interval.
#[derive(Debug)]
pub(crate) struct Span<W, C> {
    pub(crate) who: W,
    pub(crate) since: i64,
    /// Until the next one began.
    count: C,
}

/// The open intervals, in the order of their starts.
#[derive(Debug)]
pub(crate) struct Spans<W, C>(Vec<Span<W, C>>);

impl<W, C> Default for Spans<W, C> {
    fn default() -> Self {
        Spans(Vec::new())
    }
}

impl<W: PartialEq, C: Count> Spans<W, C> {
    /// `who` begins at `since`, which is not before the start of any other.
    pub(crate) fn begin(&mut self, who: W, since: i64) {
        self.0.push(Span { who, since, count: C::default() });
    }

    /// What is counted now: for all that are open.
    pub(crate) fn now(&mut self) -> Option<&mut C> {
        self.0.last_mut().map(|span| &mut span.count)
    }

    /// What is counted for all that began with the newest of `who` or before it.
    pub(crate) fn since(&mut self, who: &W) -> Option<&mut C> {
        let i = self.position(who)?;
        Some(&mut self.0[i].count)
    }

    /// Counts something that lasted `from .. to`: `add` gets the part of it that belongs in each count.
    pub(crate) fn spread(&mut self, from: i64, to: i64, mut add: impl FnMut(&mut C, i64, i64)) {
        let mut to = to;
        for span in self.0.iter_mut().rev() {
            let start = span.since.max(from);
            if start < to {
                add(&mut span.count, start, to);
                to = start;
            }
            if span.since <= from {
                break;
            }
        }
    }

    /// The newest of `who`.
    fn position(&self, who: &W) -> Option<usize> {
        self.0.iter().rposition(|span| span.who == *who)
    }

    /// When the newest of `who` began, and what was counted since, piece by piece.
    pub(crate) fn seen_by(&self, who: &W) -> Option<(i64, impl Iterator<Item = &C> + Clone)> {
        let spans = &self.0[self.position(who)?..];
        Some((spans.first()?.since, spans.iter().map(|span| &span.count)))
    }

    /// The newest of `who` ends.
    pub(crate) fn end(&mut self, who: &W) {
        let Some(i) = self.position(who) else { return };
        let ended = self.0.remove(i);
        if let Some(before) = i.checked_sub(1) {
            self.0[before].count.merge(&ended.count);
        }
    }

    /// Those that are open.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Span<W, C>> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Text(String);

    impl Count for Text {
        fn merge(&mut self, later: &Self) {
            self.0 += &later.0;
        }
    }

    fn seen(spans: &Spans<char, Text>, who: char) -> Option<String> {
        Some(spans.seen_by(&who)?.1.map(|text| &*text.0).collect())
    }

    #[test]
    fn each_knows_what_happened_since_its_start() {
        // a [--1--2--3--]
        // b    [--2--3--4--]     and again from 5 on
        // c          [--4--]
        let mut spans = Spans::default();
        let tell = |spans: &mut Spans<char, Text>, text| {
            if let Some(count) = spans.now() {
                count.0 += text;
            }
        };
        tell(&mut spans, "0");
        spans.begin('a', 0);
        tell(&mut spans, "1");
        spans.begin('b', 1);
        tell(&mut spans, "2");
        tell(&mut spans, "3");
        assert_eq!(seen(&spans, 'a').as_deref(), Some("123"));
        spans.end(&'a');
        spans.begin('c', 3);
        tell(&mut spans, "4");
        assert_eq!(seen(&spans, 'b').as_deref(), Some("234"));
        assert_eq!(seen(&spans, 'c').as_deref(), Some("4"));
        spans.end(&'c');
        assert_eq!(seen(&spans, 'b').as_deref(), Some("234"), "the earlier one keeps it");
        spans.end(&'b');
        assert_eq!((seen(&spans, 'b'), spans.iter().count()), (None, 0));
        spans.end(&'b');
    }

    #[test]
    fn what_is_counted_since_a_start_is_seen_by_those_that_began_before_it() {
        let mut spans = Spans::default();
        ('a'..='c').zip(0..).for_each(|(who, since)| spans.begin(who, since));
        if let Some(Text(text)) = spans.since(&'b') {
            *text += "1";
        }
        assert!(spans.since(&'d').is_none());
        spans.end(&'b');
        assert_eq!(seen(&spans, 'a').as_deref(), Some("1"));
        assert_eq!(seen(&spans, 'c').as_deref(), Some(""));
    }

    #[test]
    fn what_lasts_is_cut_at_the_starts() {
        let mut spans = Spans::default();
        spans.begin('a', 10);
        spans.begin('b', 20);
        spans.begin('c', 20);
        spans.begin('d', 30);
        let mut all = Vec::new();
        spans.spread(15, 35, |_: &mut Text, from, to| all.push((from, to)));
        assert_eq!(all, [(30, 35), (20, 30), (15, 20)]);
        all.clear();
        spans.spread(5, 12, |_, from, to| all.push((from, to)));
        assert_eq!(all, [(10, 12)], "before the first, nobody looks");
    }
}
