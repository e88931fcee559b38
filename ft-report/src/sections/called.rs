//! The call chains of the few rows that a report shows, each as short as distinguishes it from those of the others.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::Input;
use crate::code::{self, Frame};
use ft_trace::ids::Name;
use ft_trace::store::Result;

/// The call chain of a row; without a number the row has none.
#[derive(Clone, Debug, Default)]
pub struct Called {
    stack: Option<i64>,
    /// It is that of a waker: an interrupt that struck a thread has woken somebody, not the thread.
    wakes: bool,
    functions: Vec<Name>,
    /// Functions from the innermost to the first of the program's own code, whose line is known.
    own: usize,
    way: String,
}

/// All functions of user space, the innermost first; of an interrupt that wakes, that it was one.
impl Serialize for Called {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(self.functions.iter().map(|name| &**name))
    }
}

impl Called {
    /// Of this number in `stacks`; `Called::name` finds out what that means.
    pub fn of(stack: Option<i64>) -> Called {
        Called { stack, ..Called::default() }
    }

    /// Of a waker.
    pub fn of_waker(stack: Option<i64>) -> Called {
        Called { stack, wakes: true, ..Called::default() }
    }

    /// Whether it has no functions.
    pub fn is_unknown(&self) -> bool {
        self.functions.is_empty()
    }

    /// As many functions as distinguish it from the others of the report.
    pub fn way(&self) -> Option<&str> {
        (!self.is_unknown()).then_some(&*self.way)
    }

    /// Finds the functions of all rows of a report.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub(super) fn name<'a>(
        input: Input<'_>,
        rows: impl IntoIterator<Item = &'a mut Called>,
    ) -> Result<()> {
        let mut rows: Vec<&mut Called> = rows.into_iter().collect();
        if rows.iter().all(|row| row.stack.is_none()) {
            return Ok(());
        }
        let code = input.code()?;
        rows.iter_mut().for_each(|row| row.look(&code.chain(row.stack)));
        tell_apart(&mut rows);
        Ok(())
    }

    fn look(&mut self, chain: &[&Frame]) {
        if self.wakes && code::in_interrupt(chain) {
            self.functions = vec!["an interrupt".into()];
            return;
        }
        let user = || chain.iter().filter(|frame| !frame.kernel);
        self.functions = user().map(|frame| frame.label.clone()).collect();
        // The lines of Rust's own library are those of its builders.
        let own = |f: &&Frame| !f.place.is_empty() && !f.place.starts_with("/rustc/");
        self.own = user().position(own).map_or(0, |i| i + 1);
    }
}

fn tell_apart(rows: &mut [&mut Called]) {
    let chains: BTreeSet<Vec<Name>> = rows.iter().map(|row| row.functions.clone()).collect();
    let chains: Vec<Vec<Name>> = chains.into_iter().collect();
    let shown = code::distinguishing(&chains.iter().map(|c| &c[..]).collect::<Vec<_>>());
    for row in rows {
        let at = chains.binary_search(&row.functions);
        let shown = at.map_or(0, |at| shown[at]).max(row.own);
        row.way = code::way(&row.functions, shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(functions: &str, own: usize) -> Called {
        let functions = functions.split_whitespace().map(Name::from).collect();
        Called { functions, own, ..Called::default() }
    }

    #[test]
    fn rows_of_one_chain_are_as_short_as_one_row() {
        let mut rows =
            [row("wait lock trade main", 0), row("wait lock trade main", 0), row("read main", 0)];
        tell_apart(&mut rows.each_mut());
        assert_eq!(
            rows.each_ref().map(|row| row.way()),
            [Some("wait < …"), Some("wait < …"), Some("read < …")]
        );
    }

    #[test]
    fn a_chain_goes_on_to_the_code_of_the_program_and_to_where_it_differs() {
        let mut rows = [row("wait lock trade one", 3), row("wait lock trade two", 3), row("", 0)];
        tell_apart(&mut rows.each_mut());
        let ways = rows.each_ref().map(|row| row.way());
        assert_eq!(
            ways,
            [Some("wait < lock < trade < one"), Some("wait < lock < trade < two"), None]
        );
    }
}
