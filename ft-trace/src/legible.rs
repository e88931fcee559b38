//! Names for people to read, on terminals and pages: whoever made a name decides what is in it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

/// Neither seen nor without effect on what stands beside it: marks of direction, characters of no width, fillers, what chooses how
/// others look (Unicode's `Default_Ignorable_Code_Point`, and those of category Cf that show nothing), and what looks like a space and is
/// none (category Zs, and the empty pattern of Braille).
pub fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{a0}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{1680}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2000}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3000}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e01ef}'
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

/// Writes a value as JSON in which control and invisible characters are escaped, so that a terminal obeys none and a reader of JSON has
/// all.
///
/// # Errors
///
/// When `out` has one.
pub fn write_json(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    Ok(serde_json::to_writer(Escaping(out), value)?)
}

/// The same, indented.
///
/// # Errors
///
/// When `out` has one.
pub fn write_json_pretty(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    Ok(serde_json::to_writer_pretty(Escaping(out), value)?)
}

/// Passes on JSON, of which each piece consists of whole characters. Where one is to be escaped it is in a text: there is no other place for
/// it.
struct Escaping<W>(W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_escaped = |char: char| char >= '\x7f' && (char.is_control() || is_invisible(char));
        let text = std::str::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData)?;
        if !text.contains(is_escaped) {
            self.0.write_all(bytes)?;
            return Ok(bytes.len());
        }
        for char in text.chars() {
            let mut units = [0; 2];
            match is_escaped(char) {
                true => char
                    .encode_utf16(&mut units)
                    .iter()
                    .try_for_each(|unit| write!(self.0, "\\u{unit:04x}"))?,
                false => write!(self.0, "{char}")?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_all_and_a_terminal_obeys_none() {
        let text = "q\u{9b}31m\u{202e}\u{e0041} \u{1b}\u{7f}\u{e4}\u{65e5} \u{1d174}";
        let mut json = Vec::new();
        write_json(&mut json, &[text]).unwrap();
        let json = String::from_utf8(json).unwrap();
        assert_eq!(
            json,
            "[\"q\\u009b31m\\u202e\\udb40\\udc41 \\u001b\\u007f\u{e4}\u{65e5} \\ud834\\udd74\"]"
        );
        assert_eq!(serde_json::from_str::<[String; 1]>(&json).unwrap(), [text]);
    }

    #[test]
    fn what_cannot_be_seen_is_shown() {
        for (text, shown) in [
            ("worker \u{e4}\u{65e5}", "worker \u{e4}\u{65e5}"),
            ("a\u{202e} gpj.exe", "a\\u{202e} gpj.exe"),
            ("\u{200b}zero\u{feff}", "\\u{200b}zero\\u{feff}"),
            ("\u{1b}[31m\0", "?[31m?"),
            ("\\u{202e}", "\\u{202e}"),
            (" a\u{a0}\u{2800} \u{3000}", " a\\u{a0}\\u{2800} \\u{3000}"),
        ] {
            assert_eq!(legible(text), shown);
            assert_eq!(legible(&legible(text)), shown, "no more when it is asked twice");
        }
    }
}
