//! How names become SQL.
//!
//! Names of events and arguments are whatever a program says. In DuckDB an identifier between `"` can be any text but an
//! empty one; a line of it, though, could be taken for a command by who reads the file line by line (`.shell` does what it
//! says), and NUL ends it. So control characters are replaced, and each name stays within one line.

use std::borrow::Cow;
use std::collections::HashSet;

/// What stands for a control character.
const REPLACEMENT: char = '\u{fffd}';

/// An identifier for any name.
pub(super) fn identifier(name: &str) -> String {
    let name = if name.is_empty() { "unnamed" } else { name };
    format!("\"{}\"", one_line(name).replace('"', "\"\""))
}

/// A string.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", one_line(text).replace('\'', "''"))
}

fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        text.replace(char::is_control, &REPLACEMENT.to_string()).into()
    } else {
        text.into()
    }
}

/// A path as a pattern that matches this path alone.
pub(super) fn pattern(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '*' | '?' | '[' => pattern.extend(['[', c, ']']),
            c => pattern.push(c),
        }
    }
    pattern
}

/// Names that must differ, and do for SQL only if they do so in other than their case.
#[derive(Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// The name as an identifier; with a number where it was given before.
    pub(super) fn unique(&mut self, name: &str) -> String {
        let first = identifier(name);
        if self.0.insert(first.to_lowercase()) {
            return first;
        }
        let numbered = (2..).map(|n| identifier(&format!("{name}_{n}")));
        let mut free = numbered.filter(|name| self.0.insert(name.to_lowercase()));
        free.next().expect("there is always another number")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_identifier_on_one_line() {
        assert_eq!(identifier("order.placed"), r#""order.placed""#);
        assert_eq!(identifier(r#"a"; DROP TABLE x; --"#), r#""a""; DROP TABLE x; --""#);
        assert_eq!(identifier("a\n.shell id\0"), "\"a\u{fffd}.shell id\u{fffd}\"");
        assert_eq!(identifier(""), "\"unnamed\"");
        assert_eq!(literal("it's\r\n"), "'it''s\u{fffd}\u{fffd}'");
    }

    #[test]
    fn names_that_differ_in_case_alone_get_numbers() {
        let mut names = Names::default();
        let found = ["ts", "TS", "ts_2", "ts", "\n", "\0"].map(|name| names.unique(name));
        let expected = ["ts", "TS_2", "ts_2_2", "ts_3", "\u{fffd}", "\u{fffd}_2"];
        assert_eq!(found, expected.map(|name| format!("\"{name}\"")));
    }

    #[test]
    fn a_pattern_matches_its_path_alone() {
        assert_eq!(pattern("/a[1]/*?"), "/a[[]1]/[*][?]");
    }
}
