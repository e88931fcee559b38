//! What a format of a site may say: the placeholders of Rust's own formats (`core::fmt`), as far as they refer to the arguments.
//!
//! ```text
//! placeholder = "{" [position | name] [":" spec] "}"       neither: the next argument; "{{" and "}}" are braces
//! spec        = [[fill] ("<" | "^" | ">")] ["+"] ["#"] ["0"] [width] ["." precision] ["?" | "x" | "X" | "o" | "b" | "e" | "E" | "p"]
//! ```
//!
//! A number is a position and never a name. A width and a precision are numbers, not arguments. A signed number in another base is
//! that of 64 bits. [`check`] refuses at compile time what cannot be shown.

use super::ArgType;

/// Where a text stands in a width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// At its begin.
    Left,
    /// In its middle.
    Center,
    /// At its end.
    Right,
}

/// How a value is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// What fills a width.
    pub fill: char,
    /// `None`: numbers on the right, all else on the left.
    pub align: Option<Align>,
    /// Numbers have a sign, also where it is `+`.
    pub plus: bool,
    /// Numbers of another base have its prefix.
    pub alternate: bool,
    /// Numbers are filled with zeros behind sign and prefix.
    pub zero: bool,
    /// Characters at least.
    pub width: Option<u16>,
    /// Digits behind the point; of a text, characters at most.
    pub precision: Option<u16>,
    /// The letter at the end; 0 if there is none.
    pub letter: u8,
}

impl Spec {
    /// As without a specification.
    pub const PLAIN: Spec = Spec {
        fill: ' ',
        align: None,
        plus: false,
        alternate: false,
        zero: false,
        width: None,
        precision: None,
        letter: 0,
    };

    /// Reads what stands behind the colon; `None` if it is not what a specification is.
    pub const fn parse(text: &str) -> Option<Spec> {
        let bytes = text.as_bytes();
        let (mut spec, mut at) = (Spec::PLAIN, 0);
        // A fill is any character, but only before an alignment.
        if let Some((first, length)) = first_char(bytes)
            && length < bytes.len()
            && let Some(align) = align(bytes[length])
        {
            (spec.fill, spec.align, at) = (first, Some(align), length + 1);
        } else if !bytes.is_empty()
            && let Some(align) = align(bytes[0])
        {
            (spec.align, at) = (Some(align), 1);
        }
        (spec.plus, at) = take(bytes, at, b'+');
        (spec.alternate, at) = take(bytes, at, b'#');
        (spec.zero, at) = take(bytes, at, b'0');
        (spec.width, at) = match digits(bytes, at) {
            Some(found) => found,
            None => return None,
        };
        let has_precision;
        (has_precision, at) = take(bytes, at, b'.');
        if has_precision {
            (spec.precision, at) = match digits(bytes, at) {
                Some((Some(precision), at)) => (Some(precision), at),
                _ => return None,
            };
        }
        if at < bytes.len() {
            if !matches!(bytes[at], b'?' | b'x' | b'X' | b'o' | b'b' | b'e' | b'E' | b'p') {
                return None;
            }
            (spec.letter, at) = (bytes[at], at + 1);
        }
        if at == bytes.len() { Some(spec) } else { None }
    }

    /// Whether a value of this type can be shown so.
    pub const fn suits(&self, ty: ArgType) -> bool {
        match self.letter {
            0 | b'?' => true,
            b'e' | b'E' => {
                matches!(ty.value(), ArgType::Unsigned | ArgType::Signed | ArgType::Float)
            }
            b'p' => matches!(ty.value(), ArgType::Pointer),
            _ => matches!(ty.value(), ArgType::Unsigned | ArgType::Signed | ArgType::Pointer),
        }
    }
}

const fn take(bytes: &[u8], at: usize, wanted: u8) -> (bool, usize) {
    if at < bytes.len() && bytes[at] == wanted { (true, at + 1) } else { (false, at) }
}

const fn align(byte: u8) -> Option<Align> {
    match byte {
        b'<' => Some(Align::Left),
        b'^' => Some(Align::Center),
        b'>' => Some(Align::Right),
        _ => None,
    }
}

/// A number, if there is one; `None` if it is too large.
const fn digits(bytes: &[u8], mut at: usize) -> Option<(Option<u16>, usize)> {
    let (from, mut number) = (at, 0u32);
    while at < bytes.len() && bytes[at].is_ascii_digit() {
        number = number * 10 + (bytes[at] - b'0') as u32;
        if number > 1000 {
            return None;
        }
        at += 1;
    }
    Some((if at > from { Some(number as u16) } else { None }, at))
}

/// The first character of UTF-8, and its length.
const fn first_char(bytes: &[u8]) -> Option<(char, usize)> {
    if bytes.is_empty() {
        return None;
    }
    let (length, mut code) = match bytes[0] {
        b if b < 0x80 => (1, b as u32),
        b if b < 0xe0 => (2, (b & 0x1f) as u32),
        b if b < 0xf0 => (3, (b & 0x0f) as u32),
        b => (4, (b & 0x07) as u32),
    };
    if bytes.len() < length {
        return None;
    }
    let mut i = 1;
    while i < length {
        code = code << 6 | (bytes[i] & 0x3f) as u32;
        i += 1;
    }
    match char::from_u32(code) {
        Some(first) => Some((first, length)),
        None => None,
    }
}

/// What stands in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A text.
    Text(&'a str),
    /// A placeholder: what stands before the colon, and behind it.
    Placeholder(&'a str, &'a str),
    /// A brace that is neither.
    Stray(&'a str),
}

/// The first piece of a format that is not empty, and the rest.
pub const fn next(format: &str) -> (Piece<'_>, &str) {
    let bytes = format.as_bytes();
    let mut at = 0;
    while at < bytes.len() && bytes[at] != b'{' && bytes[at] != b'}' {
        at += 1;
    }
    if at > 0 {
        let (text, rest) = format.split_at(at);
        return (Piece::Text(text), rest);
    }
    if bytes.len() > 1 && bytes[1] == bytes[0] {
        let (brace, rest) = format.split_at(1);
        return (Piece::Text(brace), rest.split_at(1).1);
    }
    if bytes[0] == b'{' {
        let (mut end, mut colon) = (1, 0);
        while end < bytes.len() && bytes[end] != b'}' {
            // An argument of C++ may have `::` in its name.
            let is_path = bytes[end] == b':'
                && (bytes[end - 1] == b':' || end + 1 < bytes.len() && bytes[end + 1] == b':');
            if bytes[end] == b':' && colon == 0 && !is_path {
                colon = end;
            }
            end += 1;
        }
        if end < bytes.len() {
            let (inner, rest) = format.split_at(end);
            let (which, spec) = if colon > 0 {
                let (which, spec) = inner.split_at(colon);
                (which.split_at(1).1, spec.split_at(1).1)
            } else {
                (inner.split_at(1).1, "")
            };
            return (Piece::Placeholder(which, spec), rest.split_at(1).1);
        }
    }
    let (brace, rest) = format.split_at(1);
    (Piece::Stray(brace), rest)
}

/// The position that a placeholder names, if it is a number.
pub const fn position(which: &str) -> Option<usize> {
    match digits(which.as_bytes(), 0) {
        Some((Some(number), end)) if end == which.len() => Some(number as usize),
        _ => None,
    }
}

/// Refuses a format that cannot be shown with these arguments.
///
/// # Panics
///
/// So that the constant in which it is called does not compile.
#[doc(hidden)]
pub const fn check(format: &str, args: &[(&str, ArgType)]) {
    if let Some(fault) = fault(format, args) {
        panic!("{}", fault);
    }
}

/// Why a format cannot be shown with these arguments, if it cannot. C compilers do not say so, so readers of traces do.
pub const fn fault(format: &str, args: &[(&str, ArgType)]) -> Option<&'static str> {
    let (mut rest, mut following) = (format, 0);
    while !rest.is_empty() {
        let piece;
        (piece, rest) = next(rest);
        match piece {
            Piece::Text(_) => {}
            Piece::Stray(_) => {
                return Some(
                    "a format has a brace that is no placeholder; `{{` and `}}` are braces",
                );
            }
            Piece::Placeholder(which, spec) => {
                let index = if which.is_empty() {
                    following += 1;
                    following - 1
                } else {
                    index(which, args)
                };
                if index >= args.len() {
                    return Some("a format refers to an argument that the event does not have");
                }
                let Some(spec) = Spec::parse(spec) else {
                    return Some(
                        "a placeholder of a format is `{name:spec}`, with numbers for width and precision",
                    );
                };
                if !spec.suits(args[index].1) {
                    return Some(
                        "an argument of this type cannot be shown as its placeholder says",
                    );
                }
            }
        }
    }
    None
}

/// Which argument it is; behind the last if there is none.
const fn index(which: &str, args: &[(&str, ArgType)]) -> usize {
    if let Some(position) = position(which) {
        return position;
    }
    let mut i = 0;
    while i < args.len() && !is_same(args[i].0.as_bytes(), which.as_bytes()) {
        i += 1;
    }
    i
}

/// Whether two names are the same: in C a name may be a call, and its blanks behind commas do not count.
const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i] != b[j] {
            return false;
        }
        let is_comma = a[i] == b',';
        (i, j) = (i + 1, j + 1);
        while is_comma && i < a.len() && a[i] == b' ' {
            i += 1;
        }
        while is_comma && j < b.len() && b[j] == b' ' {
            j += 1;
        }
    }
    i == a.len() && j == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_is_that_of_rust() {
        let spec = |text| Spec::parse(text);
        assert_eq!(spec(""), Some(Spec::PLAIN));
        let all = Spec {
            fill: 'ü',
            align: Some(Align::Center),
            plus: true,
            alternate: true,
            zero: true,
            width: Some(12),
            precision: Some(3),
            letter: b'x',
        };
        assert_eq!(spec("ü^+#012.3x"), Some(all));
        assert_eq!(
            spec(">8"),
            Some(Spec { align: Some(Align::Right), width: Some(8), ..Spec::PLAIN })
        );
        assert_eq!(spec("<<"), Some(Spec { fill: '<', align: Some(Align::Left), ..Spec::PLAIN }));
        for refused in ["z", "1$", ".*", ".", "x8", "#+", "99999", "<8>", " "] {
            assert_eq!(spec(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_format_is_cut_into_its_pieces() {
        let pieces = |mut rest: &'static str| {
            let mut found = Vec::new();
            while !rest.is_empty() {
                let (piece, behind) = next(rest);
                (rest, _) = (behind, found.push(piece));
            }
            found
        };
        use Piece::*;
        assert_eq!(
            pieces("a {0} {{{n:>8}}}"),
            [
                Text("a "),
                Placeholder("0", ""),
                Text(" "),
                Text("{"),
                Placeholder("n", ">8"),
                Text("}")
            ]
        );
        assert_eq!(pieces("{a::b:x}{"), [Placeholder("a::b", "x"), Stray("{")]);
        assert_eq!(pieces("}{}"), [Stray("}"), Placeholder("", "")]);
    }

    #[test]
    fn what_cannot_be_shown_is_refused() {
        let args = &[("id", ArgType::Unsigned), ("1", ArgType::Str), ("rate", ArgType::Float)];
        let refused =
            |format: &'static str| std::panic::catch_unwind(|| check(format, args)).is_err();
        for good in
            ["", "{0} {1} {2}", "{id:#010x} {rate:.2} {1:>8.3}", "{} {} {}", "{{}}", "{rate:e}"]
        {
            assert!(!refused(good), "{good}");
        }
        let call = &[("f(a, b)", ArgType::Signed)];
        assert_eq!(fault("{f(a,b)} {f(a,  b):x} {0}", call), None);
        assert!(fault("{f(a, c)}", call).is_some() && fault("{f(a,}", call).is_some());
        for bad in [
            "{",
            "}",
            "{3}",
            "{ids}",
            "{id:z}",
            "{rate:x}",
            "{1:x}",
            "{} {} {} {}",
            "{id:1$}",
            "{ id }",
        ] {
            assert!(refused(bad), "{bad}");
        }
    }
}
