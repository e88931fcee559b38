//! Where every span is kept: around what the reports name, or everywhere where the trace is small.
//!
//! Spans are kept up to a bound. A window that would take more than its share of it ends where that is used up; what a
//! window leaves is for those that follow.

use std::ops::Range;

use super::encode::{Bytes, Span};

/// Spans of all windows together.
///
/// Limit: a longer trace has them only around what the reports name and in `--from`/`--to`; a window that would take
/// more than its share ends early. The page states how much of the trace is there in full, by how much windows were
/// cut, and how many events have no text.
/// Shown by: `of_a_large_one_there_is_what_is_around_incidents`,
/// `a_window_ends_where_its_share_is_used_up_and_keeps_what_began_before`.
const MAX_SPANS: usize = 3 << 18;

/// Bytes of what events say, of all windows together.
///
/// Limit: as `MAX_SPANS`.
const MAX_WORDS: usize = 2 << 20;

/// Around an incident there is half of it on either side, and at least this many ns.
const MARGIN_NS: i64 = 50_000;

/// A window, and what lies in it.
#[derive(Debug)]
pub(super) struct Window {
    /// Where it should end.
    pub(super) wanted: i64,
    /// Where it is.
    pub(super) at: Range<i64>,
    lanes: Vec<Vec<Span>>,
    spans: usize,
    /// What its events say.
    words: Words,
}

/// Texts, each once.
#[derive(Debug, Default)]
struct Words {
    numbers: std::collections::HashMap<Box<str>, u32>,
    order: Vec<Box<str>>,
}

/// All windows.
#[derive(Debug)]
pub(super) struct Windows {
    windows: Vec<Window>,
    /// The first that no time has reached yet.
    next: usize,
    /// Spans that the newest window may keep.
    share: usize,
    /// Spans and bytes that are left.
    left: usize,
    words_left: usize,
    /// Events whose words had no room.
    pub(super) unsaid: u64,
}

impl Windows {
    /// Windows of `lanes` lanes around intervals, of a trace of `span` ns in which about `spans` spans are expected.
    pub(super) fn new(
        intervals: &[Range<i64>],
        wanted: Option<Range<i64>>,
        span: i64,
        spans: u64,
        lanes: usize,
    ) -> Windows {
        let places = if spans as usize <= MAX_SPANS {
            std::iter::once(0..span).collect()
        } else {
            places(intervals, wanted, span, spans as f64 / span as f64)
        };
        let window = |at: Range<i64>| Window {
            wanted: at.end,
            at,
            lanes: vec![Vec::new(); lanes],
            spans: 0,
            words: Words::default(),
        };
        let windows = places.into_iter().map(window).collect();
        Windows { windows, next: 0, share: 0, left: MAX_SPANS, words_left: MAX_WORDS, unsaid: 0 }
    }

    /// Opens the windows that have begun by `now`: each may keep an equal share of what is left.
    fn reach(&mut self, now: i64) {
        while self.next < self.windows.len() && self.windows[self.next].at.start <= now {
            let used = self.next.checked_sub(1).map_or(0, |last| self.windows[last].spans);
            self.left = self.left.saturating_sub(used);
            self.share = self.left / (self.windows.len() - self.next);
            self.next += 1;
        }
    }

    /// Whether a time lies in a window.
    pub(super) fn has(&mut self, t: i64) -> bool {
        self.reach(t);
        let i = self.windows.partition_point(|w| w.at.end <= t);
        self.windows.get(i).is_some_and(|w| w.at.contains(&t))
    }

    /// The number of a text in the window of `t`; 0 where there is no window, or no room.
    pub(super) fn word(&mut self, t: i64, text: &str) -> u32 {
        let i = self.windows.partition_point(|w| w.at.end <= t);
        let Some(words) = self.windows.get_mut(i).map(|w| &mut w.words) else { return 0 };
        if let Some(&n) = words.numbers.get(text) {
            return n;
        }
        if text.len() > self.words_left {
            self.unsaid += 1;
            return 0;
        }
        self.words_left -= text.len();
        words.order.push(text.into());
        let n = words.order.len() as u32;
        words.numbers.insert(text.into(), n);
        n
    }

    /// Keeps a span where it lies in windows; it came at `now`, and no span that ends before is yet to come.
    pub(super) fn add(&mut self, lane: usize, span: Span, now: i64) {
        self.reach(now);
        let first = self.windows.partition_point(|w| w.at.end <= span.from);
        for i in first..self.next {
            let newest = i + 1 == self.next;
            let window = &mut self.windows[i];
            if span.from >= window.at.end || span.to < window.at.start {
                continue;
            }
            // A span that began before a window's end and comes behind it must be there, or there would be a hole:
            // of these there are no more than a row has lanes.
            if newest && window.spans >= self.share && now < window.at.end {
                window.at.end = now.max(window.at.start);
                if span.from >= window.at.end {
                    continue;
                }
            }
            window.spans += 1;
            window.lanes[lane].push(span);
        }
    }

    /// The windows, once all has come, in the order of time.
    pub(super) fn finish(mut self) -> Vec<Window> {
        self.windows.retain(|w| !w.at.is_empty());
        self.windows
    }
}

impl Window {
    /// As bytes: what its events say, then these of its lanes.
    pub(super) fn encode(&mut self, lanes: impl IntoIterator<Item = usize>) -> Bytes {
        let mut bytes = Bytes::default();
        bytes.number(self.words.order.len() as u64);
        self.words.order.iter().for_each(|text| bytes.text(text));
        for lane in lanes {
            bytes.lane(&mut self.lanes[lane], &self.at);
        }
        bytes
    }

    /// It ends before it should.
    pub(super) fn is_cut(&self) -> bool {
        self.at.end < self.wanted
    }

    /// Spans in it.
    pub(super) fn spans(&self) -> usize {
        self.spans
    }

    #[cfg(test)]
    pub(super) fn lane(&self, lane: usize) -> &[Span] {
        &self.lanes[lane]
    }
}

/// Windows around intervals, apart and in the order of time. One in which more spans are expected than its share is two,
/// around its begin and its end.
fn places(
    intervals: &[Range<i64>],
    wanted: Option<Range<i64>>,
    span: i64,
    density: f64,
) -> Vec<Range<i64>> {
    let room = (MAX_SPANS as f64 / (intervals.len().max(1) as f64) / density) as i64;
    let mut places = Vec::new();
    for at in intervals {
        let margin = ((at.end - at.start) / 2).max(MARGIN_NS).min((room / 4).max(MARGIN_NS));
        let (from, to) = (at.start - margin, at.end + margin);
        if to - from > room {
            let half = (room / 2).max(2 * MARGIN_NS);
            places.extend([from..from + half, to - half..to]);
        } else {
            places.push(from..to);
        }
    }
    places.extend(wanted);
    places.iter_mut().for_each(|p| *p = p.start.max(0)..p.end.min(span));
    places.retain(|p| !p.is_empty());
    places.sort_by_key(|p| p.start);
    let mut apart: Vec<Range<i64>> = Vec::new();
    for place in places {
        match apart.last_mut() {
            Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
            _ => apart.push(place),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::Mark;

    fn span(from: i64, to: i64) -> Span {
        Span { from, to, kind: 0, mark: Mark::Exact, a: 0, b: 0 }
    }

    #[test]
    fn a_small_trace_is_there_as_a_whole() {
        let mut windows = Windows::new(&[5..6, 7..9], None, 1000, 100, 1);
        windows.add(0, span(0, 700), 700);
        windows.add(0, span(700, 1000), 1000);
        let windows = windows.finish();
        assert_eq!(
            (windows.len(), windows[0].at.clone(), windows[0].is_cut()),
            (1, 0..1000, false)
        );
        assert_eq!(windows[0].lane(0).len(), 2);
    }

    #[test]
    fn of_a_large_one_there_is_what_is_around_incidents() {
        let second = 1_000_000_000;
        let intervals =
            [second..second + 1000, 2 * second..2 * second + 500, second + 900..second + 2000];
        let mut windows = Windows::new(&intervals, None, 10 * second, 10 * MAX_SPANS as u64, 1);
        let places: Vec<_> = windows.windows.iter().map(|w| w.at.clone()).collect();
        assert_eq!(places.len(), 2);
        assert!(places[0].contains(&second) && places[0].contains(&(second + 1999)));
        assert!(places[0].end < places[1].start);
        assert!(!windows.has(0) && windows.has(second) && !windows.has(second + second / 2));
        windows.add(0, span(0, 5 * second), 5 * second);
        windows.add(0, span(second + 5, second + 6), 5 * second);
        let windows = windows.finish();
        assert_eq!(windows.iter().map(|w| w.lane(0).len()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn an_incident_that_is_too_full_is_there_at_its_begin_and_its_end() {
        let at = 1_000_000..900_000_000;
        let places = places(std::slice::from_ref(&at), None, 1_000_000_000, 1.0);
        assert_eq!(places.len(), 2);
        assert!(places[0].contains(&1_000_000) && places[1].contains(&900_000_000));
    }

    #[test]
    fn a_window_ends_where_its_share_is_used_up_and_keeps_what_began_before() {
        let second = 1_000_000_000;
        let at = second..2 * second;
        let mut windows =
            Windows::new(std::slice::from_ref(&at), None, 10 * second, 2 * MAX_SPANS as u64, 2);
        windows.windows.truncate(1);
        let begin = windows.windows[0].at.start;
        let end = windows.windows[0].at.end;
        for i in 0..=MAX_SPANS as i64 {
            windows.add(0, span(begin + i, begin + i + 1), begin + i + 1);
        }
        windows.add(1, span(begin, end + 5), end + 5);
        windows.add(1, span(end - 1, end + 5), end + 5);
        let windows = windows.finish();
        let [window] = &windows[..] else { panic!("{windows:?}") };
        assert!(window.is_cut());
        assert_eq!(window.at.end, begin + MAX_SPANS as i64 + 1);
        assert_eq!(window.lane(1), [span(begin, end + 5)]);
    }
}
