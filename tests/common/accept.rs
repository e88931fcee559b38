//! Whether what tests find takes the place of what they are held against.

#![allow(unreachable_pub, reason = "some have it as a module of their own")]

use std::ffi::OsStr;

/// `FT_ACCEPT=1` says so, and no other value: then what is found is written, to be read in the diff.
pub fn accepts() -> bool {
    is_yes(std::env::var_os("FT_ACCEPT").as_deref())
}

fn is_yes(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_accepted_but_by_a_one() {
        let yes = |value| is_yes(Some(OsStr::new(value)));
        assert!(yes("1") && !is_yes(None));
        assert!(!["", "0", "11", "1 ", "true"].into_iter().any(yes));
    }
}
