//! Who of a few comes most often.

use std::cmp::Reverse;
use std::collections::HashMap;

use ft_trace::ids::Name;

/// Different names that are counted; one that comes later is not.
///
/// Limit: a later one is not named.
/// Shown by: `the_most_frequent_is_found_among_the_first`.
const MAX_NAMES: usize = 64;

/// How often each name came.
#[derive(Clone, Debug, Default)]
pub struct Names(HashMap<Name, u64>);

impl Names {
    /// Counts a name.
    pub fn add(&mut self, name: Name) {
        if self.0.len() < MAX_NAMES || self.0.contains_key(&name) {
            *self.0.entry(name).or_default() += 1;
        }
    }

    /// How many different ones there are, of those that are counted.
    pub fn different(&self) -> u64 {
        self.0.len() as u64
    }

    /// The one that came most often, and how often; of equal ones the first by the alphabet.
    pub fn most(self) -> Option<(Name, u64)> {
        self.0.into_iter().max_by_key(|(name, n)| (*n, Reverse(name.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_is_found_among_the_first() {
        let most = |names: &[&str]| {
            let mut counted = Names::default();
            names.iter().for_each(|name| counted.add((*name).into()));
            counted.most().map(|(name, n)| (name.to_string(), n))
        };
        assert_eq!(most(&[]), None);
        assert_eq!(most(&["b", "a", "c", "a", "b"]), Some(("a".into(), 2)));
        let many: Vec<String> = (0..MAX_NAMES).map(|n| format!("{n:02}")).collect();
        let late = many.iter().map(String::as_str).chain(["late"; 3]).collect::<Vec<_>>();
        assert_eq!(most(&late), Some(("00".into(), 1)));
    }
}
