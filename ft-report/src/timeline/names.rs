//! Names that spans refer to by number, each once.

use std::collections::HashMap;

/// Names of one page.
///
/// Limit: further names are empty, counted on the page; longer ones are cut; further kinds are `(others)`.
/// Shown by: `names_that_do_not_fit_are_counted`, `kinds_that_do_not_fit_are_others`.
const MAX_NAMES: usize = 1 << 15;

/// Bytes of a name; what a program calls itself may be longer.
///
/// Limit: as `MAX_NAMES`.
const MAX_NAME_BYTES: usize = 200;

/// Numbered names; 0 is the empty one.
#[derive(Debug)]
pub(super) struct Names {
    numbers: HashMap<Box<str>, u32>,
    order: Vec<Box<str>>,
    /// Spans whose name had no room.
    pub(super) unnamed: u64,
}

impl Default for Names {
    fn default() -> Self {
        Names { numbers: HashMap::from([("".into(), 0)]), order: vec!["".into()], unnamed: 0 }
    }
}

impl Names {
    /// The number of a name; 0 for one that has no room any more.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        let name = cut(name);
        if let Some(&n) = self.numbers.get(name) {
            return n;
        }
        if self.order.len() >= MAX_NAMES {
            self.unnamed += 1;
            return 0;
        }
        let n = self.order.len() as u32;
        self.numbers.insert(name.into(), n);
        self.order.push(name.into());
        n
    }

    /// All of them, by number.
    pub(super) fn all(&self) -> &[Box<str>] {
        &self.order
    }
}

/// As much of a name as is kept.
pub(super) fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_long_ones_are_cut_between_characters() {
        let mut names = Names::default();
        assert_eq!(
            [names.number(""), names.number("a"), names.number("b"), names.number("a")],
            [0, 1, 2, 1]
        );
        let long = names.number(&"ü".repeat(150));
        assert_eq!(names.all()[long as usize].chars().count(), MAX_NAME_BYTES / 2);
    }

    #[test]
    fn names_that_do_not_fit_are_counted() {
        let mut names = Names::default();
        for i in 0..MAX_NAMES + 10 {
            names.number(&i.to_string());
        }
        assert_eq!((names.all().len(), names.unnamed), (MAX_NAMES, 11));
    }
}
