//! Format strings of sites: text with placeholders where arguments go ([`mod@format`]), shown as Rust does it.
//!
//! The string comes from the traced
//! program: what is not a placeholder of an argument that the site has stays as it is, braces included.

use ft_user::layout::format::{self, Align, Spec};
use ft_user::layout::{ArgType, MAX_ARGS};

use super::time::Times;
use ft_trace::tables::{UserEvent, arg_name};

/// Types of arguments, as the table `sites` names them, with a question mark behind those that may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgKind {
    Unsigned,
    Signed,
    Float,
    Bool,
    Pointer,
    Tsc,
    /// A string, or bytes in hexadecimal.
    Text,
}

impl ArgKind {
    /// As a format sees it.
    fn as_type(self) -> ArgType {
        match self {
            ArgKind::Unsigned => ArgType::Unsigned,
            ArgKind::Signed => ArgType::Signed,
            ArgKind::Float => ArgType::Float,
            ArgKind::Bool => ArgType::Bool,
            ArgKind::Pointer => ArgType::Pointer,
            ArgKind::Tsc => ArgType::Tsc,
            ArgKind::Text => ArgType::Str,
        }
    }
}

/// An argument of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arg {
    pub(crate) name: String,
    pub(crate) kind: ArgKind,
    pub(crate) optional: bool,
}

/// The arguments of a site from its column `args`: `name:type, …`.
pub(crate) fn parse_args(args: &str) -> Vec<Arg> {
    let parse = |arg: &str| {
        let (name, kind) = arg.rsplit_once(':').unwrap_or((arg, ""));
        let value = kind.strip_suffix('?');
        let optional = value.is_some();
        let kind = match value.unwrap_or(kind) {
            "signed" => ArgKind::Signed,
            "float" => ArgKind::Float,
            "bool" => ArgKind::Bool,
            "pointer" => ArgKind::Pointer,
            "tsc" => ArgKind::Tsc,
            "str" | "bytes" => ArgKind::Text,
            _ => ArgKind::Unsigned,
        };
        Arg { name: name.to_owned(), kind, optional }
    };
    args.split(", ").filter(|arg| !arg.is_empty()).take(MAX_ARGS).map(parse).collect()
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Arg(usize, Spec),
}

/// A format string, parsed once for all events of its site.
#[derive(Debug)]
pub(crate) struct Template {
    args: Vec<Arg>,
    pieces: Vec<Piece>,
}

impl Template {
    /// Parses a format string.
    pub(crate) fn parse(format: &str, args: Vec<Arg>) -> Template {
        let (mut pieces, mut text) = (Vec::new(), String::new());
        let (mut rest, mut following) = (format, 0);
        while !rest.is_empty() {
            let (piece, behind) = format::next(rest);
            let found = match piece {
                format::Piece::Placeholder(which, spec) => {
                    placeholder(which, spec, &mut following, &args)
                }
                _ => None,
            };
            match (piece, found) {
                (_, Some((index, spec))) => {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                    pieces.push(Piece::Arg(index, spec));
                    rest = behind;
                }
                (format::Piece::Text(part) | format::Piece::Stray(part), _) => {
                    text.push_str(part);
                    rest = behind;
                }
                // There may be one within what looked like one.
                (format::Piece::Placeholder(..), None) => {
                    text.push('{');
                    rest = &rest[1..];
                }
            }
        }
        pieces.push(Piece::Text(text));
        Template { args, pieces }
    }

    /// `name=value …`, for a site without a format string.
    pub(crate) fn plain(args: Vec<Arg>) -> Template {
        let mut pieces = Vec::new();
        for (i, arg) in args.iter().enumerate() {
            let blank = if i == 0 { "" } else { " " };
            pieces.push(Piece::Text(format!("{blank}{}=", arg.name)));
            pieces.push(Piece::Arg(i, QUOTED));
        }
        Template { args, pieces }
    }

    /// The arguments.
    pub(crate) fn args(&self) -> &[Arg] {
        &self.args
    }

    /// Appends the text of an event.
    pub(crate) fn write(&self, event: &UserEvent, times: Times, out: &mut String) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Arg(i, spec) => value(event, *i, &self.args[*i], spec, times, out),
            }
        }
    }
}

/// As `{:?}`: texts in quotation marks.
const QUOTED: Spec = Spec { letter: b'?', ..Spec::PLAIN };

/// Which argument a placeholder shows, and how.
fn placeholder(
    which: &str,
    spec: &str,
    following: &mut usize,
    args: &[Arg],
) -> Option<(usize, Spec)> {
    let spec = Spec::parse(spec)?;
    let index = match format::position(which) {
        // A number is a position, also where an argument of C is a number and so is called like one.
        Some(position) => position,
        None if which.is_empty() => *following,
        None => {
            let name = arg_name(which);
            args.iter().position(|arg| arg.name == name)?
        }
    };
    args.get(index).filter(|arg| spec.suits(arg.kind.as_type()))?;
    *following += usize::from(which.is_empty());
    Some((index, spec))
}

/// Appends argument `i`. One that is not there is `none` where it may be absent, else `?`: the event was too short for
/// it.
fn value(event: &UserEvent, i: usize, arg: &Arg, spec: &Spec, times: Times, out: &mut String) {
    let missing = if arg.optional { "none" } else { "?" };
    let shown = match arg.kind {
        ArgKind::Float => event.argf[i].map(|value| float(value, spec, out)),
        ArgKind::Text => event.argt[i].as_deref().map(|text| match spec.letter {
            b'?' => fill_text(&format!("{text:?}"), spec, out),
            _ => fill_text(text, spec, out),
        }),
        kind => event.arg[i].map(|word| match (kind, word) {
            (ArgKind::Tsc, ts) => {
                let mut text = String::new();
                times.write(ts, &mut text);
                fill_text(&text, spec, out);
            }
            (ArgKind::Bool, 0..=1) => {
                fill_text(if word == 1 { "true" } else { "false" }, spec, out)
            }
            (ArgKind::Pointer, _) if matches!(spec.letter, 0 | b'?' | b'p') => {
                number(false, "0x", &format!("{word:x}"), &Spec { alternate: true, ..*spec }, out);
            }
            (ArgKind::Signed, _) => integer(word < 0, word.unsigned_abs(), word as u64, spec, out),
            _ => integer(false, word as u64, word as u64, spec, out),
        }),
    };
    if shown.is_none() {
        fill_text(missing, &Spec { precision: None, ..*spec }, out);
    }
}

/// Appends an integer of this size; `word` is what other bases show.
fn integer(negative: bool, size: u64, word: u64, spec: &Spec, out: &mut String) {
    match spec.letter {
        b'x' => number(false, "0x", &format!("{word:x}"), spec, out),
        b'X' => number(false, "0x", &format!("{word:X}"), spec, out),
        b'o' => number(false, "0o", &format!("{word:o}"), spec, out),
        b'b' => number(false, "0b", &format!("{word:b}"), spec, out),
        b'e' => number(negative, "", &format!("{size:e}"), spec, out),
        b'E' => number(negative, "", &format!("{size:E}"), spec, out),
        _ => number(negative, "", &size.to_string(), spec, out),
    }
}

fn float(value: f64, spec: &Spec, out: &mut String) {
    let size = value.abs();
    let digits = match (spec.letter, spec.precision.map(usize::from)) {
        (b'e', None) => format!("{size:e}"),
        (b'e', Some(n)) => format!("{size:.n$e}"),
        (b'E', None) => format!("{size:E}"),
        (b'E', Some(n)) => format!("{size:.n$E}"),
        (b'?', None) => format!("{size:?}"),
        (_, None) => format!("{size}"),
        (_, Some(n)) => format!("{size:.n$}"),
    };
    let is_number = value.is_finite();
    let spec = Spec { zero: spec.zero && is_number, plus: spec.plus && !value.is_nan(), ..*spec };
    number(value.is_sign_negative() && !value.is_nan(), "", &digits, &spec, out);
}

/// Appends a number: its sign, the prefix of its base if that is asked for, its digits.
fn number(negative: bool, prefix: &str, digits: &str, spec: &Spec, out: &mut String) {
    let sign = match (negative, spec.plus) {
        (true, _) => "-",
        (false, true) => "+",
        (false, false) => "",
    };
    let prefix = if spec.alternate { prefix } else { "" };
    let width = usize::from(spec.width.unwrap_or(0));
    let zeros = width.saturating_sub(sign.len() + prefix.len() + digits.chars().count());
    if spec.zero {
        out.extend([sign, prefix]);
        out.extend(std::iter::repeat_n('0', zeros));
        out.push_str(digits);
    } else {
        fill(&format!("{sign}{prefix}{digits}"), spec, Align::Right, out);
    }
}

/// Appends a text, of which the precision says how much.
fn fill_text(text: &str, spec: &Spec, out: &mut String) {
    match spec.precision.and_then(|most| text.char_indices().nth(most.into())) {
        Some((end, _)) => fill(&text[..end], spec, Align::Left, out),
        None => fill(text, spec, Align::Left, out),
    }
}

fn fill(text: &str, spec: &Spec, usual: Align, out: &mut String) {
    let missing = spec.width.map_or(0, |n| usize::from(n).saturating_sub(text.chars().count()));
    let before = match spec.align.unwrap_or(usual) {
        Align::Left => 0,
        Align::Center => missing / 2,
        Align::Right => missing,
    };
    out.extend(std::iter::repeat_n(spec.fill, before));
    out.push_str(text);
    out.extend(std::iter::repeat_n(spec.fill, missing - before));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::TimeStyle;
    use crate::listing::tests::user;
    use ft_trace::store::Meta;

    const ARGS: &str = "id:unsigned, delta:signed, at:pointer, ok:bool, rate:float, who:str";

    fn event() -> UserEvent {
        let mut event = user(5, 0, "order.placed");
        event.arg = [Some(-1), Some(-7), Some(0x7fff_0000), Some(1), None, None];
        event.argf[4] = Some(0.5);
        event.argt[5] = Some("a\n\"b".into());
        event
    }

    fn show(template: &Template, event: &UserEvent) -> String {
        let mut text = String::new();
        template.write(event, Times::new(TimeStyle::Absolute, &Meta::default()), &mut text);
        text
    }

    #[track_caller]
    fn check(format: &str, expected: &str) {
        assert_eq!(show(&Template::parse(format, parse_args(ARGS)), &event()), expected);
    }

    #[test]
    fn placeholders_show_the_argument_by_its_type() {
        check("order {id} by {who}", "order 18446744073709551615 by a\n\"b");
        check("{0}{1}", "18446744073709551615-7");
        check("{at} {ok} {rate} {id:x}", "0x7fff0000 true 0.5 ffffffffffffffff");
        check("{} {} {:x}", "18446744073709551615 -7 7fff0000");
        check("{{id}} }}{{", "{id} }{");
        check("grüße {delta}!", "grüße -7!");
        check("", "");
    }

    #[test]
    fn what_is_no_placeholder_stays_as_it_is() {
        for hostile in [
            "{nope}",
            "{6}",
            "{99999999999999999999}",
            "{-1}",
            "{id",
            "id}",
            "{",
            "}",
            "{id:z}",
            "{ id }",
            "{id:x:x}",
            "{ü}",
            "%s %n {",
            "}{",
            "{\u{301}}",
        ] {
            check(hostile, hostile);
        }
        check("{{{id", "{{id");
        check("{nope{delta}}", "{nope-7}");
    }

    #[test]
    fn a_number_is_a_position_also_where_arguments_are_called_like_numbers() {
        let args = parse_args("1:signed, fd:signed, 0:signed");
        let mut event = user(5, 0, "a.b");
        event.arg = [Some(1), Some(9), Some(0), None, None, None];
        assert_eq!(
            show(&Template::parse("state {0} of fd {1}, {2}", args), &event),
            "state 1 of fd 9, 0"
        );
    }

    /// Whatever Rust shows with a specification, so do we.
    #[test]
    fn what_a_specification_means_is_what_it_means_to_rust() {
        macro_rules! same {
            ($($spec:literal)*) => {
                [$((
                    concat!("{0", $spec, "} {1", $spec, "}"),
                    format!(concat!("{0", $spec, "} {1", $spec, "}"), u64::MAX, -7i64),
                )),*]
            };
        }
        let integers = same!(
            "" ":5" ":<5" ":^5" ":>5" ":*^9" ":05" ":+" ":+06" ":x" ":#x" ":#X" ":08x" ":#010x" ":o" ":#b" ":e"
            ":<05" ":ü>7" ":?" ":#?" ":1" ":30" ":E" ":+e"
        );
        for (format, expected) in integers {
            check(format, &expected);
        }
        macro_rules! floats {
            ($($spec:literal)*) => {
                [$((concat!("{4", $spec, "}"), format!(concat!("{0", $spec, "}"), 0.5f64))),*]
            };
        }
        let all = floats!("" ":.2" ":8.3" ":<8.1" ":08.2" ":+.1" ":e" ":.3e" ":?" ":.0" ":^9" ":E");
        for (format, expected) in all {
            check(format, &expected);
        }
        macro_rules! texts {
            ($($spec:literal)*) => {
                [$((
                    concat!("{5", $spec, "}|{3", $spec, "}"),
                    format!(concat!("{0", $spec, "}|{1", $spec, "}"), "a\n\"b", true),
                )),*]
            };
        }
        for (format, expected) in texts!("" ":8" ":>8" ":^9" ":-<6" ":.2" ":>6.3") {
            check(format, &expected);
        }
        check("{at:#x} {at:x} {at:>12} {at:p}", "0x7fff0000 7fff0000   0x7fff0000 0x7fff0000");
    }

    #[test]
    fn random_formats_never_panic() {
        let parts = ["{", "}", "{{", "}}", "id", "0", ":x", "ü", " ", "{id}", "\0", "999"];
        let mut seed = 1u64;
        for _ in 0..2000 {
            let mut format = String::new();
            for _ in 0..12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                format += parts[(seed >> 33) as usize % parts.len()];
            }
            show(&Template::parse(&format, parse_args(ARGS)), &event());
        }
    }

    #[test]
    fn without_a_format_every_argument_has_its_name() {
        let plain = show(&Template::plain(parse_args(ARGS)), &event());
        assert_eq!(
            plain,
            "id=18446744073709551615 delta=-7 at=0x7fff0000 ok=true rate=0.5 \
             who=\"a\\n\\\"b\""
        );
        assert_eq!(show(&Template::plain(parse_args("")), &event()), "");
    }

    #[test]
    fn arguments_that_are_missing_show_as_a_question_mark() {
        let args = parse_args("a:float, b:str, c:unsigned, t:tsc");
        let mut event = user(5, 0, "a.b");
        assert_eq!(show(&Template::plain(args.clone()), &event), "a=? b=? c=? t=?");
        event.arg[3] = Some(1_500_000_000);
        assert_eq!(show(&Template::parse("{t}", args), &event), "1.500000000");
    }

    #[test]
    fn what_may_be_absent_shows_as_none() {
        let args = parse_args("a:float?, b:str?, c:unsigned?, d:signed?");
        let mut event = user(5, 0, "a.b");
        event.arg[3] = Some(-1);
        assert_eq!(show(&Template::plain(args.clone()), &event), "a=none b=none c=none d=-1");
        event.argt[1] = Some("none".into());
        assert_eq!(show(&Template::plain(args), &event), "a=none b=\"none\" c=none d=-1");
    }

    #[test]
    fn an_argument_may_be_a_call() {
        let name = arg_name("f(a,  b)");
        let args = parse_args(&format!("{name}:signed, s:str"));
        assert_eq!(args.iter().map(|arg| &*arg.name).collect::<Vec<_>>(), ["f(a,b)", "s"]);
        let mut event = user(5, 0, "a.b");
        event.arg[0] = Some(7);
        assert_eq!(show(&Template::parse("{f(a, b)} {0}", args), &event), "7 7");
    }

    #[test]
    fn odd_descriptions_of_arguments_are_survived() {
        let names = |args: &str| -> Vec<String> {
            parse_args(args).into_iter().map(|arg| arg.name).collect()
        };
        assert_eq!(names("a:b:signed, plain, :, "), ["a:b", "plain", ""]);
        assert_eq!(names("a, b, c, d, e, f, g, h").len(), MAX_ARGS);
    }
}
