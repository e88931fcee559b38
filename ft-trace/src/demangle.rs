//! Names of symbols as their source has them. Whoever made a file has made its names: a short one can stand for gigabytes,
//! so that what is made of it is bounded as well.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// Longest name that is taken from a file, bytes; of a longer one the beginning.
///
/// Limit: as `MAX_INLINED` of `program.rs`.
pub const MAX_NAME_BYTES: usize = 1 << 10;

/// Longest mangled name that is read as such, bytes; usual are some hundred.
///
/// Limit: as `MAX_INLINED` of `program.rs`.
const MAX_MANGLED_BYTES: usize = 4 << 10;

/// Most that is made of a mangled name, bytes; what follows is left out.
///
/// Limit: as `MAX_INLINED` of `program.rs`.
pub const MAX_DEMANGLED_BYTES: usize = 4 << 10;

/// The name of a function or a variable of C, C++ or Rust. Only what a compiler has mangled is read as such: the variable
/// `m` of a C program would be the type `unsigned long`.
pub fn demangled(symbol: &[u8]) -> String {
    let is_mangled = symbol.len() <= MAX_MANGLED_BYTES
        && (symbol.starts_with(b"_Z") || symbol.starts_with(b"_R"));
    let mangled = std::str::from_utf8(symbol).ok().filter(|_| is_mangled);
    mangled.and_then(written).unwrap_or_else(|| cut(symbol, MAX_NAME_BYTES).into_owned())
}

/// What a compiler has mangled, as its language writes it.
fn written(symbol: &str) -> Option<String> {
    let mut out = Bounded(String::new());
    // An error is that of the bound.
    match rustc_demangle::try_demangle(symbol) {
        Ok(name) => _ = write!(out, "{name:#}"),
        Err(_) => {
            let name = cpp_demangle::Symbol::new(symbol).ok()?;
            let is_whole = name.structured_demangle(&mut out, &Default::default()).is_ok();
            // What cannot be written ends early, too.
            if !is_whole && out.0.len() < MAX_DEMANGLED_BYTES {
                return None;
            }
        }
    }
    Some(out.0)
}

/// The beginning of a text that may be any bytes.
pub fn cut(text: &[u8], most: usize) -> Cow<'_, str> {
    let begin = &text[..text.len().min(most)];
    // Of a character that was cut in two nothing is left.
    let whole = match std::str::from_utf8(begin) {
        Err(error) if error.error_len().is_none() && begin.len() < text.len() => {
            error.valid_up_to()
        }
        _ => begin.len(),
    };
    let cut = String::from_utf8_lossy(&begin[..whole]);
    match cut.len() > most {
        // What stands for invalid bytes is longer than they are.
        true => cut[..cut.floor_char_boundary(most)].to_owned().into(),
        false => cut,
    }
}

/// A text that takes so much and no more: who writes to it stops.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_DEMANGLED_BYTES - self.0.len();
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        // Full is what has no room for any character.
        let fits = text.len() <= room;
        if !fits {
            self.0.extend(std::iter::repeat_n('.', MAX_DEMANGLED_BYTES - self.0.len()));
        }
        if fits { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mangled_names_are_demangled() {
        let names = ["m", "a", "s", "_Z1mv", "_RNvC1a1f", "_ZN1a1b17h0123456789abcdefE"];
        let found = names.map(|name| demangled(name.as_bytes()));
        assert_eq!(found, ["m", "a", "s", "m()", "a::f", "a::b"]);
    }

    /// A name of 200 bytes that stands for 4 to the power of 14 types.
    #[test]
    fn a_name_that_explodes_is_cut() {
        let name = crate::convert::synthetic::program::exploding();
        assert!(demangled(name.as_bytes()).len() <= MAX_DEMANGLED_BYTES);
        let deep = "_Z1f".to_owned() + &"P".repeat(200) + "i";
        assert!(demangled(deep.as_bytes()).len() <= MAX_DEMANGLED_BYTES);
    }

    #[test]
    fn a_long_name_is_its_beginning() {
        let long = "\u{e4}".repeat(MAX_NAME_BYTES);
        assert_eq!(demangled(long.as_bytes()), "\u{e4}".repeat(MAX_NAME_BYTES / 2));
        let mangled = "_Z".to_owned() + &"x".repeat(20_000_000);
        assert_eq!(demangled(mangled.as_bytes()).len(), MAX_NAME_BYTES);
        assert_eq!(cut(b"a\xe4", 9), "a\u{fffd}");
        assert_eq!(cut(&[0xff; 9], 4), "\u{fffd}");
        assert_eq!(cut("a\u{e4}".as_bytes(), 2), "a");
    }
}
