//! Labels: what whoever brings a trace knows of it.

use std::collections::BTreeMap;
use std::str::FromStr;

/// Bytes of a name, and of a value, at most.
///
/// Limit: it is refused.
/// Shown by: `a_label_has_a_name_and_a_value`.
const MAX_NAME_BYTES: usize = 64;
/// Longest value of a label, bytes.
///
/// Limit: as `MAX_NAME_BYTES`.
const MAX_VALUE_BYTES: usize = 256;

/// Labels by name.
pub type Labels = BTreeMap<String, String>;

/// A label, `build=1.4.2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Letters, digits, `_`, `.` and `-`; up to 64 of them.
    pub name: String,
    /// Up to 256 bytes without control characters.
    pub value: String,
}

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Label, String> {
        let wrong =
            || format!("'{}' is no label; write for example build=1.4.2", text.escape_debug());
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let fits = (1..=MAX_NAME_BYTES).contains(&name.len()) && value.len() <= MAX_VALUE_BYTES;
        if !fits || !name.chars().all(is_name) || value.contains(char::is_control) {
            return Err(wrong());
        }
        Ok(Label { name: name.to_owned(), value: value.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_a_name_and_a_value() {
        let label: Label = "build.id=a=b ü".parse().unwrap();
        assert_eq!((&*label.name, &*label.value), ("build.id", "a=b ü"));
        assert_eq!("empty=".parse::<Label>().unwrap().value, "");
        let (long_name, long_value) =
            (format!("{}=", "n".repeat(65)), format!("n={}", "v".repeat(257)));
        for wrong in [
            "",
            "=",
            "=x",
            "build",
            "a b=c",
            "ä=c",
            "a=b\n",
            "a=\u{1b}[2J",
            &long_name,
            &long_value,
        ] {
            assert!(wrong.parse::<Label>().unwrap_err().ends_with("write for example build=1.4.2"));
        }
    }
}
