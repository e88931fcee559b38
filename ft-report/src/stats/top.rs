//! Keeps the largest few of many.

/// The items with the largest keys.
#[derive(Clone, Debug)]
pub struct Top<T>(Vec<(i64, T)>);

impl<T> Default for Top<T> {
    fn default() -> Self {
        Top(Vec::new())
    }
}

impl<T> Top<T> {
    /// Takes the item if its key is among the `most` largest so far; of equal ones the first stays.
    pub fn offer(&mut self, most: usize, key: i64, item: impl FnOnce() -> T) {
        if self.0.len() == most && self.0.last().is_none_or(|(least, _)| *least >= key) {
            return;
        }
        let at = self.0.partition_point(|(k, _)| *k >= key);
        self.0.truncate(most.saturating_sub(1));
        self.0.insert(at.min(self.0.len()), (key, item()));
    }

    /// The items, largest key first.
    pub fn into_sorted(self) -> Vec<T> {
        self.0.into_iter().map(|(_, item)| item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_stay_in_order() {
        let mut top = Top::default();
        for (i, key) in [3, 9, 1, 9, 5, 2].into_iter().enumerate() {
            top.offer(3, key, || (key, i));
        }
        assert_eq!(top.into_sorted(), [(9, 1), (9, 3), (5, 4)]);
    }

    #[test]
    fn room_for_none_keeps_none() {
        let mut top = Top::default();
        top.offer(0, 1, || ());
        assert!(top.into_sorted().is_empty());
    }
}
