//! Format strings of sites: text with `{name}` or `{0}` where an argument goes.
//!
//! `{name:x}` shows an integer in hexadecimal; `{{` and `}}` are braces. The string comes from the traced
//! program: what is not a placeholder of an argument that the site has stays as it is, braces included.

use std::fmt::Write;

use ft_user::layout::MAX_ARGS;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Hex,
    /// Texts in quotation marks.
    Quoted,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Arg(usize, Style),
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
        let mut rest = format;
        while let Some((before, brace)) = rest.find(['{', '}']).map(|at| rest.split_at(at)) {
            text.push_str(before);
            if brace.starts_with("{{") || brace.starts_with("}}") {
                text.push_str(&brace[..1]);
                rest = &brace[2..];
            } else if let Some((index, style, length)) = placeholder(brace, &args) {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Arg(index, style));
                rest = &brace[length..];
            } else {
                text.push_str(&brace[..1]);
                rest = &brace[1..];
            }
        }
        text.push_str(rest);
        pieces.push(Piece::Text(text));
        Template { args, pieces }
    }

    /// `name=value …`, for a site without a format string.
    pub(crate) fn plain(args: Vec<Arg>) -> Template {
        let mut pieces = Vec::new();
        for (i, arg) in args.iter().enumerate() {
            let blank = if i == 0 { "" } else { " " };
            pieces.push(Piece::Text(format!("{blank}{}=", arg.name)));
            pieces.push(Piece::Arg(i, Style::Quoted));
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
                Piece::Arg(i, style) => value(event, *i, &self.args[*i], *style, times, out),
            }
        }
    }
}

/// The placeholder at the start of `text`: number of its argument, style, length.
fn placeholder(text: &str, args: &[Arg]) -> Option<(usize, Style, usize)> {
    let inner = text.strip_prefix('{')?;
    let inner = &inner[..inner.find('}')?];
    let (name, style) = match inner.strip_suffix(":x") {
        Some(name) => (name, Style::Hex),
        None => (inner, Style::Plain),
    };
    let name = arg_name(name);
    let by_number = || name.parse().ok().filter(|&i| i < args.len());
    let index = args.iter().position(|arg| arg.name == name).or_else(by_number)?;
    Some((index, style, inner.len() + 2))
}

/// Appends argument `i`. One that is not there is `none` where it may be absent, else `?`: the event was too short for
/// it.
fn value(event: &UserEvent, i: usize, arg: &Arg, style: Style, times: Times, out: &mut String) {
    let missing = if arg.optional { "none" } else { "?" };
    // Writing into a `String` does not fail.
    let _ = match (arg.kind, event.arg[i]) {
        (ArgKind::Float, _) => match event.argf[i] {
            Some(value) => write!(out, "{value}"),
            None => out.write_str(missing),
        },
        (ArgKind::Text, _) => match (&event.argt[i], style) {
            (Some(text), Style::Quoted) => write!(out, "{:?}", &**text),
            (Some(text), _) => out.write_str(text),
            (None, _) => out.write_str(missing),
        },
        (_, None) => out.write_str(missing),
        (ArgKind::Pointer, Some(word)) => write!(out, "{word:#x}"),
        (ArgKind::Tsc, Some(ts)) => {
            times.write(ts, out);
            Ok(())
        }
        (ArgKind::Bool, Some(word @ 0..=1)) => write!(out, "{}", word == 1),
        (_, Some(word)) if style == Style::Hex => write!(out, "{word:#x}"),
        (ArgKind::Signed, Some(word)) => write!(out, "{word}"),
        (_, Some(word)) => write!(out, "{}", word as u64),
    };
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
        check("{at} {ok} {rate} {id:x}", "0x7fff0000 true 0.5 0xffffffffffffffff");
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
            "{}",
            "{:x}",
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
