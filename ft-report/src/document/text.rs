//! Sentences with typed values in them.

use super::value::{N, Typed, Value};
use crate::text;

/// A sentence: words and values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text(Vec<Piece>);

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Said as it is.
    Words(String),
    /// How a figure is drawn with characters: said where it is.
    Drawn(&'static str),
    /// Where more is said.
    See(See),
    /// Left to the renderer.
    Value(Value),
}

/// Another report, and the table of it that is meant ([`Table::anchor`](super::Table::anchor)), or none: a link, where they are
/// in the same page, and the command that prints the report everywhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct See(pub &'static str, pub &'static str);

impl IntoText for See {
    fn into_text(self) -> Text {
        Text(vec![Piece::See(self)])
    }
}

impl Text {
    /// A template in whose `{}` the parts go, in their order; [`text!`](crate::text) is the short form.
    pub fn new(template: &str, parts: Vec<Text>) -> Text {
        let mut text = Text::default();
        let mut parts = parts.into_iter();
        for (i, words) in template.split("{}").enumerate() {
            if i > 0 {
                text.0.extend(parts.next().unwrap_or_default().0);
            }
            if !words.is_empty() {
                text.0.push(Piece::Words(words.to_owned()));
            }
        }
        debug_assert!(parts.next().is_none(), "more parts than places: {template}");
        text
    }

    /// The same, followed by `more`.
    #[must_use]
    pub fn and(mut self, more: impl IntoText) -> Text {
        self.0.extend(more.into_text().0);
        self
    }

    /// The same, followed by how many there are of what, as far as there are any: ` (3 given up, 2 for semaphores)`.
    #[must_use]
    pub fn reasons(self, counts: &[(u64, &str)]) -> Text {
        let some = counts.iter().filter(|(n, _)| *n > 0);
        match Text::join(some.map(|(n, why)| text!("{} {}", N(*n), *why)), ", ") {
            Some(reasons) => text!("{} ({})", self, reasons),
            None => self,
        }
    }

    /// All of them, separated; `None` without any.
    pub fn join(texts: impl IntoIterator<Item = Text>, separator: &str) -> Option<Text> {
        texts.into_iter().reduce(|all, text| all.and(separator).and(text))
    }

    /// Words and values, in their order.
    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }
}

/// What can stand in a sentence.
pub trait IntoText {
    /// As a piece of one.
    fn into_text(self) -> Text;
}

impl<T: Typed> IntoText for T {
    fn into_text(self) -> Text {
        Text(vec![Piece::Value(self.value())])
    }
}

impl IntoText for Text {
    fn into_text(self) -> Text {
        self
    }
}

/// How a figure is drawn with characters.
#[derive(Clone, Copy, Debug)]
pub struct Drawn(pub &'static str);

impl IntoText for Drawn {
    fn into_text(self) -> Text {
        Text(vec![Piece::Drawn(self.0)])
    }
}

impl IntoText for &str {
    fn into_text(self) -> Text {
        Text(vec![Piece::Words(self.to_owned())])
    }
}

/// A [`Text`] from a template: `text!("{} held for {}", lock, Ns(5))`.
#[macro_export]
macro_rules! text {
    ($template:literal $(, $part:expr)* $(,)?) => {
        $crate::document::Text::new(
            $template,
            vec![$($crate::document::IntoText::into_text($part)),*],
        )
    };
}
