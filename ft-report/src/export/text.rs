//! Names and texts of applications in formats that have no escapes for all of them.

/// A character without power over a terminal or a reader: for a control character its picture (U+2400 …), so `␀` for NUL,
/// and `␊` for the end of a line.
pub(super) fn visible(char: char) -> char {
    match char {
        '\0'..='\x1f' => {
            char::from_u32(0x2400 + char as u32).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\x7f' => '\u{2421}',
        _ if char.is_control() => char::REPLACEMENT_CHARACTER,
        _ => char,
    }
}
