//! Columns of low-cardinality strings: `dictionary<int32, utf8>`.
//!
//! Rows of one origin share their strings ([`Name`] is an `Arc`), so the builder first asks whether
//! it has seen the same allocation, and compares text only for a new one; the reader turns each
//! string of a batch into a shared [`Name`] once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, StringArray, cast::AsArray, new_null_array,
};
use arrow_schema::DataType;

use crate::ids::Name;

/// Allocations that a builder remembers; beyond it forgets them all and goes on comparing text.
const REMEMBERED: usize = 1 << 14;

/// Arrow type of the column.
pub(super) fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Collects names.
#[derive(Default)]
pub struct NameBuilder {
    rows: usize,
    /// One key a row, -1 for null; nulls at the end are not yet in it.
    keys: Vec<i32>,
    values: Vec<Name>,
    by_text: HashMap<Name, i32>,
    /// The name is kept with its address, so that the address cannot come to mean another.
    by_address: HashMap<usize, (Name, i32)>,
    /// The newest entry of `by_address` that was used.
    last: Option<(usize, i32)>,
}

impl NameBuilder {
    #[inline]
    pub(super) fn push(&mut self, name: Option<&Name>) {
        if let Some(name) = name {
            let address = name.as_ptr() as usize;
            let key = match self.last {
                Some((last, key)) if last == address => key,
                _ => self.key(address, name),
            };
            self.keys.resize(self.rows, -1);
            self.keys.push(key);
        }
        self.rows += 1;
    }

    fn key(&mut self, address: usize, name: &Name) -> i32 {
        let key = match self.by_address.get(&address) {
            Some((_, key)) => *key,
            None => {
                let key = *self.by_text.entry(name.clone()).or_insert_with(|| {
                    self.values.push(name.clone());
                    self.values.len() as i32 - 1
                });
                if self.by_address.len() >= REMEMBERED {
                    self.by_address.clear();
                }
                self.by_address.insert(address, (name.clone(), key));
                key
            }
        };
        self.last = Some((address, key));
        key
    }

    pub(super) fn finish(&mut self, rows: usize) -> ArrayRef {
        let NameBuilder { keys, values, .. } = std::mem::take(self);
        dictionary(keys, values, rows)
    }
}

/// A column of `rows` texts: a key for each, -1 for null, and the texts that the keys mean. Nulls at the end need no key.
pub(super) fn dictionary(
    mut keys: Vec<i32>,
    values: Vec<impl AsRef<str>>,
    rows: usize,
) -> ArrayRef {
    if values.is_empty() {
        return new_null_array(&name_type(), rows);
    }
    keys.resize(rows, -1);
    let keys = if keys.contains(&-1) {
        Int32Array::from_iter(keys.into_iter().map(|key| (key >= 0).then_some(key)))
    } else {
        Int32Array::from(keys)
    };
    let values = StringArray::from_iter_values(values);
    Arc::new(
        DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values))
            .expect("every key is an index into the values"),
    )
}

/// Bytes of a text that is read from a trace: twice what the agent writes of a path or a name. One that stands in all rows takes no room in
/// a file, and its length for each where it is written.
///
/// Limit: the rest is left out.
/// Shown by: `a_text_from_elsewhere_is_as_long_as_one_that_is_written`.
pub(super) const MAX_TEXT: usize = 8192;

/// As much of it as is read.
pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

/// Strings that were read already.
#[derive(Default)]
pub struct NamePool(HashSet<Name>);

impl NamePool {
    /// The shared name with this text. The pool forgets all when it holds very many, so that text
    /// arguments that never repeat do not fill the memory.
    pub fn get(&mut self, text: &str) -> Name {
        if let Some(name) = self.0.get(text) {
            return name.clone();
        }
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        let name: Name = text.into();
        self.0.insert(name.clone());
        name
    }
}

/// The names of one batch.
pub struct NameReader {
    keys: Int32Array,
    values: Vec<Name>,
}

impl NameReader {
    pub(super) fn bind(array: &ArrayRef, pool: &mut NamePool) -> Option<NameReader> {
        let array = array.as_dictionary_opt::<Int32Type>()?;
        let values = array.values().as_string_opt::<i32>()?;
        let values = values.iter().map(|text| pool.get(cut(text.unwrap_or_default()))).collect();
        Some(NameReader { keys: array.keys().clone(), values })
    }

    /// The name of a row; `None` for null.
    #[inline]
    pub(super) fn get(&self, row: usize) -> Option<Name> {
        self.keys.is_valid(row).then(|| self.values[self.keys.value(row) as usize].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_elsewhere_is_as_long_as_one_that_is_written() {
        let long = "ä".repeat(MAX_TEXT);
        let mut builder = NameBuilder::default();
        builder.push(Some(&long.as_str().into()));
        let read = NameReader::bind(&builder.finish(1), &mut NamePool::default()).unwrap();
        assert_eq!(*read.get(0).unwrap(), long[..MAX_TEXT]);
    }

    #[test]
    fn equal_text_is_one_entry_whatever_its_allocation() {
        let mut builder = NameBuilder::default();
        let (a, again): (Name, Name) = ("a".into(), "a".into());
        for name in [None, Some(&a), Some(&again), None, Some(&a), None] {
            builder.push(name);
        }
        let array = builder.finish(6);
        assert_eq!(array.as_dictionary::<Int32Type>().values().len(), 1);
        let reader = NameReader::bind(&array, &mut NamePool::default()).unwrap();
        let read: Vec<_> = (0..6).map(|row| reader.get(row)).collect();
        assert_eq!(read, [None, Some(a.clone()), Some(a.clone()), None, Some(a), None]);
    }

    #[test]
    fn a_column_of_nulls_and_an_empty_one_are_valid() {
        for rows in [0, 3] {
            let mut builder = NameBuilder::default();
            (0..rows).for_each(|_| builder.push(None));
            let array = builder.finish(rows);
            assert_eq!((array.len(), array.logical_null_count()), (rows, rows));
        }
    }

    #[test]
    fn more_names_than_are_remembered_keep_their_text() {
        let mut builder = NameBuilder::default();
        let rows = REMEMBERED + 10;
        for i in 0..rows {
            builder.push(Some(&Name::from(format!("n{i}"))));
        }
        let reader = NameReader::bind(&builder.finish(rows), &mut NamePool::default()).unwrap();
        assert!((0..rows).all(|i| *reader.get(i).unwrap() == *format!("n{i}")));
    }
}
