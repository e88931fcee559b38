//! New names of what a golden file has under old ones: `renamed.txt`.
//!
//! A line is `FILE: OLD -> NEW`. `OLD` alone, with nothing behind the arrow, is gone; `NEW` alone is new. In all
//! three, `*` stands for anything without `.`, `[` and `]`, and `**` for anything; what they stood for in `OLD` comes in
//! the same order in `NEW`.

use std::fs;

use crate::stage::home;

/// Name of the file.
const FILE: &str = "renamed.txt";

/// One line.
#[derive(Clone, Debug, PartialEq)]
struct Rule {
    file: String,
    old: String,
    new: String,
}

/// All lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Renamed(Vec<Rule>);

impl Renamed {
    /// Reads the file.
    pub(crate) fn read() -> Renamed {
        Renamed::parse(&fs::read_to_string(home().join(FILE)).expect("renamed.txt"))
    }

    fn parse(text: &str) -> Renamed {
        let lines =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rule = |line: &str| {
            let (file, names) = line.split_once(": ")?;
            let (old, new) = names.split_once("->")?;
            Some(Rule { file: file.into(), old: old.trim().into(), new: new.trim().into() })
        };
        let rules = lines.map(|line| {
            rule(line).unwrap_or_else(|| panic!("{FILE}: not FILE: OLD -> NEW: {line}"))
        });
        Renamed(rules.collect())
    }

    /// What `old` of a golden file is called now; `None` when it is gone. The first line that fits counts.
    pub(crate) fn now(&self, file: &str, old: &str) -> Option<String> {
        for rule in self.of(file).filter(|rule| !rule.old.is_empty()) {
            if let Some(parts) = matched(&rule.old, old) {
                return (!rule.new.is_empty()).then(|| filled(&rule.new, &parts));
            }
        }
        Some(old.to_owned())
    }

    /// Whether a name is declared to be new.
    pub(crate) fn is_new(&self, file: &str, name: &str) -> bool {
        self.of(file).any(|rule| rule.old.is_empty() && matched(&rule.new, name).is_some())
    }

    fn of<'a>(&'a self, file: &'a str) -> impl Iterator<Item = &'a Rule> {
        self.0.iter().filter(move |rule| matched(&rule.file, file).is_some())
    }
}

/// What the stars of a pattern stand for.
fn matched(pattern: &str, text: &str) -> Option<Vec<String>> {
    let Some(star) = pattern.find('*') else {
        return (pattern == text).then(Vec::new);
    };
    let rest = text.strip_prefix(&pattern[..star])?;
    let (any, behind) = match pattern[star..].strip_prefix("**") {
        Some(behind) => (true, behind),
        None => (false, &pattern[star + 1..]),
    };
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    for end in ends {
        if !any && rest[..end].contains(['.', '[', ']']) {
            break;
        }
        if let Some(mut parts) = matched(behind, &rest[end..]) {
            parts.insert(0, rest[..end].to_owned());
            return Some(parts);
        }
    }
    None
}

/// Puts the parts in the place of the stars.
fn filled(pattern: &str, parts: &[String]) -> String {
    let mut text = pattern.replace("**", "*");
    for part in parts {
        text = text.replacen('*', part, 1);
    }
    text
}

#[test]
fn names_are_mapped_line_by_line() {
    let renamed = Renamed::parse(
        "# a comment\n\
         tables.txt: gaps.cause -> gaps.reason\n\
         tables.txt: holds.* -> sections.*\n\
         tables.txt: gaps.inferred ->\n\
         *.json: locks.**.ns -> held.**.time.ns\n\
         *.json:  -> version\n",
    );
    for (file, old, new) in [
        ("tables.txt", "gaps.cause", Some("gaps.reason")),
        ("tables.txt", "gaps.causes", Some("gaps.causes")),
        ("tables.txt", "holds.dur", Some("sections.dur")),
        ("tables.txt", "holds", Some("holds")),
        ("tables.txt", "gaps.inferred", None),
        ("locks.json", "locks.all[3].ns", Some("held.all[3].time.ns")),
        ("locks.json", "gaps.cause", Some("gaps.cause")),
    ] {
        assert_eq!(renamed.now(file, old).as_deref(), new, "{old}");
    }
    assert!(renamed.is_new("locks.json", "version") && !renamed.is_new("tables.txt", "version"));
    assert_eq!(matched("a*c", "a.c"), None);
    assert_eq!(matched("*[*]", "x[7]"), Some(vec!["x".into(), "7".into()]));
}
