//! What a column means, in the metadata of its Arrow field.
//!
//! | key | value |
//! |---|---|
//! | `unit` | a word of [`Unit`] |
//! | `meaning` | what the value is, from the documentation of the field |
//! | `words` | of a column of words, a line `word: meaning` for each |

use arrow_schema::Field;

use crate::tables::Unit;
use crate::words::Word;

/// Key of the unit.
pub const UNIT: &str = "unit";
/// Key of the meaning.
pub const MEANING: &str = "meaning";
/// Key of the words.
pub const WORDS: &str = "words";

/// What is said of a field of a row.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Unit, if it is a number.
    pub unit: Option<Unit>,
    /// Text of the field's documentation.
    pub meaning: &'static str,
}

impl About {
    /// Adds it to the columns of the field, where they have nothing of their own to say.
    pub fn add_to(self, columns: &mut [Field]) {
        for column in columns {
            if let Some(unit) = self.unit {
                add(column, UNIT, unit.word().into());
            }
            if !self.meaning.is_empty() {
                add(column, MEANING, plain(self.meaning));
            }
        }
    }
}

/// Adds one thing to a column, unless it is there.
pub(super) fn add(column: &mut Field, key: &str, value: String) {
    if !column.metadata().contains_key(key) {
        column.metadata_mut().insert(key.to_owned(), value);
    }
}

/// The lines `word: meaning` of a type of words.
pub(super) fn words<W: Word>() -> String {
    let line = |(word, meaning): (&W, &&str)| format!("{}: {}", word.word(), plain(meaning));
    W::ALL.iter().zip(W::MEANINGS).map(line).collect::<Vec<_>>().join("\n")
}

/// Documentation as one line without links.
pub(super) fn plain(doc: &str) -> String {
    let mut text = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    while let Some(end) = text.find("`](") {
        let close = text[end..].find(')').map_or(text.len(), |at| end + at + 1);
        text.replace_range(end + 1..close, "");
        if let Some(start) = text[..end].rfind("[`") {
            text.remove(start);
        }
    }
    text.replace("[`", "`").replace("`]", "`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meaning_has_no_links() {
        assert_eq!(
            plain(" [`Mark`](crate::Mark): `exact`\n  of [`Irq`], and [x](y).\n"),
            "`Mark`: `exact` of `Irq`, and [x](y)."
        );
    }
}
