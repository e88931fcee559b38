//! How many events of each kind there are in each bucket of the whole trace: what the page knows of events where it has no
//! window, or is too far away for one to be looked at.

use super::encode::Bytes;
use super::level::Level;

/// Events by kind and bucket. Of `kinds.rs` `MAX_KINDS` kinds in `level.rs` `MAX_BUCKETS` buckets they take 16 MiB.
#[derive(Debug)]
pub(super) struct Density {
    width: i64,
    count: usize,
    kinds: Vec<Box<[u32]>>,
}

impl Density {
    /// In the buckets of a level, of no event yet.
    pub(super) fn new(level: &Level) -> Density {
        Density { width: level.width(), count: level.count(), kinds: Vec::new() }
    }

    /// Counts an event. What lies outside of the trace is counted at its end, so that the sum of all buckets is that of
    /// all events.
    pub(super) fn add(&mut self, kind: u32, at: i64) {
        let kind = kind as usize;
        while self.kinds.len() <= kind {
            self.kinds.push(vec![0; self.count].into());
        }
        let bucket = ((at.max(0) / self.width) as usize).min(self.count - 1);
        let n = &mut self.kinds[kind][bucket];
        *n = n.saturating_add(1);
    }

    /// Appends a series for each kind, as rows of a level with one state have them.
    pub(super) fn encode(&self, bytes: &mut Bytes) {
        for buckets in &self.kinds {
            bytes.number(1);
            buckets.iter().for_each(|&n| bytes.number(n.into()));
            bytes.number(0);
        }
    }

    /// How many events of a kind there are in each bucket.
    #[cfg(test)]
    pub(super) fn of(&self, kind: usize) -> &[u32] {
        &self.kinds[kind]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_in_its_bucket_and_none_is_left_out() {
        let level = Level::new(40_960_000, 1, 1);
        let (width, last) = (level.width(), level.count() - 1);
        let mut counts = Density::new(&level);
        for at in [0, width - 1, width, 40_959_999, 50_000_000, -5] {
            counts.add(2, at);
        }
        let found: Vec<_> = counts.of(2).iter().enumerate().filter(|n| *n.1 > 0).collect();
        assert_eq!(found, [(0, &3), (1, &1), (last, &2)]);
        assert!(counts.of(0).iter().all(|n| *n == 0));
    }
}
