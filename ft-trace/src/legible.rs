//! Names for people to read, on terminals and pages: whoever made a name decides what is in it.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Neither seen nor without effect on what stands beside it: marks of direction, and characters of no width (Unicode's category
/// Cf, as far as it has such).
fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// A text in which control characters, which a terminal obeys, show as `?`, and invisible ones as their code points
/// (`\u{202e}`), so that two names that look alike are alike.
pub fn legible(text: &str) -> Cow<'_, str> {
    if !text.contains(|char: char| char.is_control() || is_invisible(char)) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            _ if char.is_control() => shown.push('?'),
            // Writing into a `String` does not fail.
            _ if is_invisible(char) => _ = write!(shown, "\\u{{{:x}}}", char as u32),
            _ => shown.push(char),
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_shown() {
        for (text, shown) in [
            ("worker \u{e4}\u{65e5}", "worker \u{e4}\u{65e5}"),
            ("a\u{202e} gpj.exe", "a\\u{202e} gpj.exe"),
            ("\u{200b}zero\u{feff}", "\\u{200b}zero\\u{feff}"),
            ("\u{1b}[31m\0", "?[31m?"),
            ("\\u{202e}", "\\u{202e}"),
        ] {
            assert_eq!(legible(text), shown);
            assert_eq!(legible(&legible(text)), shown, "no more when it is asked twice");
        }
    }
}
