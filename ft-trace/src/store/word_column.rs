//! Columns of [words](crate::words): the same `dictionary<int32, utf8>` as names, without a string in memory.

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int32Array, cast::AsArray};
use arrow_schema::Field;
use serde_json::{Map, Value};

use super::about;
use super::column::{Arrays, Column};
use super::name_column::{NamePool, dictionary, name_type};
use crate::tables::Unit;
use crate::words::Word;

/// Collects words.
pub struct WordBuilder<W> {
    rows: usize,
    /// One key a row, -1 for null; nulls at the end are not yet in it.
    keys: Vec<i32>,
    /// What the keys mean: the words in the order in which they first came.
    values: Vec<W>,
    /// The key of each word, by its index; -1 as long as it has none.
    key_of: Vec<i32>,
}

impl<W> Default for WordBuilder<W> {
    fn default() -> Self {
        WordBuilder { rows: 0, keys: Vec::new(), values: Vec::new(), key_of: Vec::new() }
    }
}

impl<W: Word> WordBuilder<W> {
    #[inline]
    fn push(&mut self, word: Option<W>) {
        if let Some(word) = word {
            let key = match self.key_of.get(word.index()) {
                Some(&key) if key >= 0 => key,
                _ => self.key(word),
            };
            self.keys.resize(self.rows, -1);
            self.keys.push(key);
        }
        self.rows += 1;
    }

    fn key(&mut self, word: W) -> i32 {
        self.key_of.resize(W::ALL.len(), -1);
        let key = self.values.len() as i32;
        self.values.push(word);
        self.key_of[word.index()] = key;
        key
    }

    fn finish(&mut self, rows: usize) -> ArrayRef {
        let WordBuilder { keys, values, .. } = std::mem::take(self);
        dictionary(keys, values.into_iter().map(W::word).collect(), rows)
    }
}

/// The words of one batch.
pub struct WordReader<W> {
    keys: Int32Array,
    values: Vec<W>,
}

impl<W: Word> WordReader<W> {
    fn bind(array: &ArrayRef) -> Option<WordReader<W>> {
        let array = array.as_dictionary_opt::<Int32Type>()?;
        let values = array.values().as_string_opt::<i32>()?;
        let values = values.iter().map(|text| W::of(text.unwrap_or_default())).collect();
        Some(WordReader { keys: array.keys().clone(), values })
    }

    #[inline]
    fn get(&self, row: usize) -> Option<W> {
        self.keys.is_valid(row).then(|| self.values[self.keys.value(row) as usize])
    }
}

impl<W: Word> Column for W {
    type Builder = WordBuilder<W>;
    type Reader = WordReader<W>;

    fn describe(name: &str, out: &mut Vec<Field>) {
        let mut column = Field::new(name, name_type(), false);
        about::add(&mut column, about::WORDS, about::words::<W>());
        out.push(column);
    }
    #[inline]
    fn push(&self, builder: &mut Self::Builder) {
        builder.push(Some(*self));
    }
    fn finish(builder: &mut Self::Builder, rows: usize, out: &mut Vec<ArrayRef>) {
        out.push(builder.finish(rows));
    }
    fn bind(arrays: &mut Arrays<'_>, _: &mut NamePool) -> Option<Self::Reader> {
        WordReader::bind(arrays.next()?)
    }
    #[inline]
    fn get(reader: &Self::Reader, row: usize) -> Self {
        reader.get(row).unwrap_or_else(|| W::of(""))
    }
    fn show(&self, name: &str, _: Option<Unit>, out: &mut Map<String, Value>) {
        out.insert(name.to_owned(), Value::from(self.word()));
    }
}

impl<W: Word> Column for Option<W> {
    type Builder = WordBuilder<W>;
    type Reader = WordReader<W>;

    fn describe(name: &str, out: &mut Vec<Field>) {
        let mut column = Field::new(name, name_type(), true);
        about::add(&mut column, about::WORDS, about::words::<W>());
        out.push(column);
    }
    #[inline]
    fn push(&self, builder: &mut Self::Builder) {
        builder.push(*self);
    }
    fn finish(builder: &mut Self::Builder, rows: usize, out: &mut Vec<ArrayRef>) {
        out.push(builder.finish(rows));
    }
    fn bind(arrays: &mut Arrays<'_>, _: &mut NamePool) -> Option<Self::Reader> {
        WordReader::bind(arrays.next()?)
    }
    #[inline]
    fn get(reader: &Self::Reader, row: usize) -> Self {
        reader.get(row)
    }
    fn show(&self, name: &str, _: Option<Unit>, out: &mut Map<String, Value>) {
        out.insert(name.to_owned(), Value::from(self.map(W::word)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mark;
    use crate::ids::Name;
    use crate::store::name_column::NameBuilder;

    #[test]
    fn a_column_of_words_is_a_column_of_names_with_their_text() {
        let marks =
            [None, Some(Mark::Censored), Some(Mark::Exact), None, Some(Mark::Censored), None];
        for marks in [&marks[..], &marks[1..3], &marks[..1], &[]] {
            let (mut words, mut names) = (WordBuilder::default(), NameBuilder::default());
            for mark in marks {
                words.push(*mark);
                names.push(mark.map(|m| Name::from(m.word())).as_ref());
            }
            let array = words.finish(marks.len());
            assert_eq!(&array, &names.finish(marks.len()));
            let reader = WordReader::<Mark>::bind(&array).unwrap();
            let read: Vec<_> = (0..marks.len()).map(|row| reader.get(row)).collect();
            assert_eq!(read, marks);
        }
    }

    #[test]
    fn a_word_of_another_version_is_what_the_type_says() {
        let mut names = NameBuilder::default();
        names.push(Some(&"guessed".into()));
        let reader = WordReader::<Mark>::bind(&names.finish(1)).unwrap();
        assert_eq!(<Mark as Column>::get(&reader, 0), Mark::Censored);
    }
}
