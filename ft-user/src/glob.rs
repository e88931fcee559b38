//! Globs over dotted event names: `*` stands for any run of characters (dots too), `?` for one.
//!
//! Everything else stands for itself. The matcher allocates nothing and takes at most
//! `pattern × name` steps, so that a pattern from the agent cannot hold up the process.

/// Whether `name` matches `pattern` from its first character to its last.
///
/// ```
/// use ft_user::glob::matches;
/// assert!(matches("lock.*", "lock.mutex_acquire"));
/// assert!(!matches("lock.?", "lock.mutex_acquire"));
/// ```
pub fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // Where to go on when a literal does not fit: behind the last star, one more character of the
    // name given to it. An earlier star never needs to be tried again.
    let mut retry = None;
    loop {
        match pattern.next() {
            Some('*') => {
                retry = Some((pattern.clone(), name.clone()));
                continue;
            }
            None if name.as_str().is_empty() => return true,
            Some(wanted) => match name.next() {
                Some(found) if wanted == '?' || wanted == found => continue,
                // The name has ended, and only stars could match nothing.
                None => return false,
                Some(_) => {}
            },
            None => {}
        }
        let Some((behind_star, mut taken)) = retry.take() else { return false };
        if taken.next().is_none() {
            return false;
        }
        pattern = behind_star.clone();
        name = taken.clone();
        retry = Some((behind_star, taken));
    }
}

/// The globs of a list that is separated by commas, line feeds or blanks; empty ones are skipped.
pub fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', '\n', ' ', '\t']).filter(|glob| !glob.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{matches, split};

    #[test]
    fn table() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("a", "", false),
            ("*", "", true),
            ("*", "order.placed", true),
            ("**", "x", true),
            ("order.placed", "order.placed", true),
            ("order.placed", "order.placed2", false),
            ("order.placed2", "order.placed", false),
            ("order.*", "order.placed", true),
            ("order.*", "orders.placed", false),
            ("*.placed", "order.placed", true),
            ("*.placed", "order.placed.late", false),
            ("*a*b", "aab", true),
            ("*a*b", "aabc", false),
            ("a*b*c", "a.bb.bc", true),
            ("a*b*c", "a.bb.b", false),
            ("?", "", false),
            ("?", "ä", true),
            ("??", "ä", false),
            ("*?", "", false),
            ("*?", "abc", true),
            ("a?c", "abc", true),
            ("[a]", "a", false),
            ("a*", "b", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern:?} on {name:?}");
        }
    }

    #[test]
    fn many_stars_stay_cheap() {
        let pattern = "*a".repeat(200);
        let name = "a".repeat(199);
        assert!(!matches(&pattern, &name));
    }

    #[test]
    fn lists() {
        assert_eq!(split(" a.*,b\n\n,c\td ").collect::<Vec<_>>(), ["a.*", "b", "c", "d"]);
        assert_eq!(split("").count(), 0);
    }
}
