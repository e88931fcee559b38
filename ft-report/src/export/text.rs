//! Names and texts of applications, as formats have them.

use ft_trace::ids::Tid;
use ft_trace::legible::is_invisible;

/// Name and number of a thread, which tell it from others.
pub(super) fn thread(tid: Tid, name: &str) -> String {
    match tid.0 {
        0 => "idle".into(),
        _ => format!("{name} {tid}"),
    }
}

/// A character without power over a terminal or a reader, in formats that have no escapes for all of them: for a control character its
/// picture (U+2400 …), so `␀` for NUL, and `␊` for the end of a line; for an invisible one `\u{fffd}`.
pub(super) fn visible(char: char) -> char {
    match char {
        '\0'..='\x1f' => {
            char::from_u32(0x2400 + char as u32).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\x7f' => '\u{2421}',
        _ if char.is_control() || is_invisible(char) => char::REPLACEMENT_CHARACTER,
        _ => char,
    }
}
