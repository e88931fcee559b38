//! How one field of a row becomes columns, and back.
//!
//! | field | column | Arrow | Parquet |
//! |---|---|---|---|
//! | [`Nanos`], `i64` | one | `int64` | `INT64` |
//! | [`Tid`], [`Pid`], [`Cpu`], [`SiteId`], `i32` | one | `int32` | `INT32` |
//! | `bool` | one | `bool` | `BOOLEAN` |
//! | [`Name`], [words](crate::words) | one | `dictionary<int32, utf8>` | `BYTE_ARRAY (STRING)` |
//! | `Option` of these, `Option<f64>` | one, nullable | the same; `double` | the same; `DOUBLE` |
//! | `[Option<T>; N]` | `name0` … | nullable | |
//! | `Option<Decomposition>` | its eight fields | `int64`, nullable, null together | |
//!
//! Builders of nullable columns do nothing for a null: the nulls before a value are added with the
//! value, so a column that is empty costs nothing however many rows there are.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, PrimitiveArray, builder::PrimitiveBuilder, cast::AsArray,
    new_null_array,
};
use arrow_schema::{DataType, Field};

use serde_json::{Map, Value};

use super::about::About;
use super::name_column::{NameBuilder, NamePool, NameReader, name_type};
use crate::ids::{Cpu, Name, Nanos, Pid, SiteId, Tid};
use crate::tables::{Counts, Decomposition, Unit};

/// Arrays of one batch, taken from the left as fields bind theirs.
pub type Arrays<'a> = std::slice::Iter<'a, ArrayRef>;

/// A field of a row.
pub trait Column: Sized {
    /// Collects values.
    type Builder: Default;
    /// Typed access to the arrays of one batch.
    type Reader;
    /// Unit of the numbers, where it follows from the type.
    const UNIT: Option<Unit> = None;

    /// Appends the columns of a field with this name.
    fn describe(name: &str, out: &mut Vec<Field>);
    /// Appends one value.
    fn push(&self, builder: &mut Self::Builder);
    /// Takes the arrays out of the builder, `rows` long, and leaves it empty.
    fn finish(builder: &mut Self::Builder, rows: usize, out: &mut Vec<ArrayRef>);
    /// Finds the field's arrays; `None` when they are missing or of another type.
    fn bind(arrays: &mut Arrays<'_>, names: &mut NamePool) -> Option<Self::Reader>;
    /// The value of one row, which must be within the batch.
    fn get(reader: &Self::Reader, row: usize) -> Self;
    /// Adds the value to a JSON object.
    fn show(&self, name: &str, unit: Option<Unit>, out: &mut Map<String, Value>);
    /// The value as a sort key, where the field can be one.
    fn key(&self) -> i64 {
        0
    }
}

/// An integer, or a newtype of one, that is never null.
macro_rules! integer {
    ($ty:ty, $unit:expr, $arrow:ty, $native:ty, |$value:ident| $get:expr, $make:expr) => {
        impl Column for $ty {
            type Builder = Vec<$native>;
            type Reader = PrimitiveArray<$arrow>;
            const UNIT: Option<Unit> = $unit;

            fn describe(name: &str, out: &mut Vec<Field>) {
                out.push(Field::new(name, <$arrow>::DATA_TYPE, false));
            }
            #[inline]
            fn push(&self, builder: &mut Self::Builder) {
                let $value = *self;
                builder.push($get);
            }
            fn finish(builder: &mut Self::Builder, _rows: usize, out: &mut Vec<ArrayRef>) {
                let values = std::mem::take(builder);
                out.push(Arc::new(PrimitiveArray::<$arrow>::new(values.into(), None)));
            }
            fn bind(arrays: &mut Arrays<'_>, _: &mut NamePool) -> Option<Self::Reader> {
                arrays.next()?.as_primitive_opt::<$arrow>().cloned()
            }
            #[inline]
            fn get(reader: &Self::Reader, row: usize) -> Self {
                $make(reader.value(row))
            }
            fn show(&self, name: &str, unit: Option<Unit>, out: &mut Map<String, Value>) {
                let $value = *self;
                out.insert(name.to_owned(), number(i64::from($get), unit));
            }
            #[inline]
            fn key(&self) -> i64 {
                let $value = *self;
                i64::from($get)
            }
        }
    };
}

integer!(i64, None, Int64Type, i64, |v| v, std::convert::identity);
integer!(Nanos, Some(Unit::Ns), Int64Type, i64, |v| v.0, Nanos);
integer!(i32, None, Int32Type, i32, |v| v, std::convert::identity);
integer!(Tid, Some(Unit::Tid), Int32Type, i32, |v| v.0, Tid);
integer!(Pid, Some(Unit::Pid), Int32Type, i32, |v| v.0, Pid);
integer!(Cpu, Some(Unit::Cpu), Int32Type, i32, |v| v.0, Cpu);
integer!(SiteId, Some(Unit::Site), Int32Type, i32, |v| v.0, SiteId);

/// An address is unsigned for whoever reads JSON.
fn number(value: i64, unit: Option<Unit>) -> Value {
    if unit == Some(Unit::Address) { Value::from(value as u64) } else { Value::from(value) }
}

impl Column for bool {
    type Builder = Vec<bool>;
    type Reader = BooleanArray;

    fn describe(name: &str, out: &mut Vec<Field>) {
        out.push(Field::new(name, DataType::Boolean, false));
    }
    fn push(&self, builder: &mut Self::Builder) {
        builder.push(*self);
    }
    fn finish(builder: &mut Self::Builder, _rows: usize, out: &mut Vec<ArrayRef>) {
        out.push(Arc::new(BooleanArray::from(std::mem::take(builder))));
    }
    fn bind(arrays: &mut Arrays<'_>, _: &mut NamePool) -> Option<Self::Reader> {
        arrays.next()?.as_boolean_opt().cloned()
    }
    fn get(reader: &Self::Reader, row: usize) -> Self {
        reader.value(row)
    }
    fn show(&self, name: &str, _: Option<Unit>, out: &mut Map<String, Value>) {
        out.insert(name.to_owned(), Value::from(*self));
    }
}

/// Builder of a nullable column, with the nulls at its end not yet in it.
pub struct Sparse<T: ArrowPrimitiveType> {
    rows: usize,
    values: Option<PrimitiveBuilder<T>>,
}

impl<T: ArrowPrimitiveType> Default for Sparse<T> {
    fn default() -> Self {
        Sparse { rows: 0, values: None }
    }
}

impl<T: ArrowPrimitiveType> Sparse<T> {
    #[inline]
    fn push(&mut self, value: Option<T::Native>) {
        if let Some(value) = value {
            let values = self.values.get_or_insert_with(PrimitiveBuilder::new);
            let missing = self.rows - arrow_array::builder::ArrayBuilder::len(values);
            if missing > 0 {
                values.append_nulls(missing);
            }
            values.append_value(value);
        }
        self.rows += 1;
    }

    fn finish(&mut self, rows: usize) -> ArrayRef {
        let Sparse { values, .. } = std::mem::take(self);
        let Some(mut values) = values else { return new_null_array(&T::DATA_TYPE, rows) };
        values.append_nulls(rows - arrow_array::builder::ArrayBuilder::len(&values));
        Arc::new(values.finish())
    }
}

macro_rules! nullable {
    ($native:ty, $arrow:ty, $json:expr) => {
        impl Column for Option<$native> {
            type Builder = Sparse<$arrow>;
            type Reader = PrimitiveArray<$arrow>;

            fn describe(name: &str, out: &mut Vec<Field>) {
                out.push(Field::new(name, <$arrow>::DATA_TYPE, true));
            }
            #[inline]
            fn push(&self, builder: &mut Self::Builder) {
                builder.push(*self);
            }
            fn finish(builder: &mut Self::Builder, rows: usize, out: &mut Vec<ArrayRef>) {
                out.push(builder.finish(rows));
            }
            fn bind(arrays: &mut Arrays<'_>, _: &mut NamePool) -> Option<Self::Reader> {
                arrays.next()?.as_primitive_opt::<$arrow>().cloned()
            }
            #[inline]
            fn get(reader: &Self::Reader, row: usize) -> Self {
                reader.is_valid(row).then(|| reader.value(row))
            }
            fn show(&self, name: &str, unit: Option<Unit>, out: &mut Map<String, Value>) {
                let json: fn($native, Option<Unit>) -> Value = $json;
                out.insert(name.to_owned(), self.map_or(Value::Null, |value| json(value, unit)));
            }
        }
    };
}

nullable!(i64, Int64Type, number);
nullable!(i32, Int32Type, |value, unit| number(value.into(), unit));
nullable!(f64, Float64Type, |value, _| Value::from(value));

impl Column for Name {
    type Builder = NameBuilder;
    type Reader = NameReader;

    fn describe(name: &str, out: &mut Vec<Field>) {
        out.push(Field::new(name, name_type(), false));
    }
    #[inline]
    fn push(&self, builder: &mut Self::Builder) {
        builder.push(Some(self));
    }
    fn finish(builder: &mut Self::Builder, rows: usize, out: &mut Vec<ArrayRef>) {
        out.push(builder.finish(rows));
    }
    fn bind(arrays: &mut Arrays<'_>, names: &mut NamePool) -> Option<Self::Reader> {
        NameReader::bind(arrays.next()?, names)
    }
    #[inline]
    fn get(reader: &Self::Reader, row: usize) -> Self {
        reader.get(row).unwrap_or_default()
    }
    fn show(&self, name: &str, _: Option<Unit>, out: &mut Map<String, Value>) {
        out.insert(name.to_owned(), Value::from(&**self));
    }
}

impl Column for Option<Name> {
    type Builder = NameBuilder;
    type Reader = NameReader;

    fn describe(name: &str, out: &mut Vec<Field>) {
        out.push(Field::new(name, name_type(), true));
    }
    #[inline]
    fn push(&self, builder: &mut Self::Builder) {
        builder.push(self.as_ref());
    }
    fn finish(builder: &mut Self::Builder, rows: usize, out: &mut Vec<ArrayRef>) {
        out.push(builder.finish(rows));
    }
    fn bind(arrays: &mut Arrays<'_>, names: &mut NamePool) -> Option<Self::Reader> {
        NameReader::bind(arrays.next()?, names)
    }
    #[inline]
    fn get(reader: &Self::Reader, row: usize) -> Self {
        reader.get(row)
    }
    fn show(&self, name: &str, _: Option<Unit>, out: &mut Map<String, Value>) {
        out.insert(name.to_owned(), Value::from(self.as_deref()));
    }
}

impl<T, const N: usize> Column for [Option<T>; N]
where
    Option<T>: Column,
    [<Option<T> as Column>::Builder; N]: Default,
{
    type Builder = [<Option<T> as Column>::Builder; N];
    type Reader = Vec<<Option<T> as Column>::Reader>;

    fn describe(name: &str, out: &mut Vec<Field>) {
        for i in 0..N {
            Option::<T>::describe(&format!("{name}{i}"), out);
        }
    }
    #[inline]
    fn push(&self, builder: &mut Self::Builder) {
        for (value, builder) in self.iter().zip(builder) {
            value.push(builder);
        }
    }
    fn finish(builder: &mut Self::Builder, rows: usize, out: &mut Vec<ArrayRef>) {
        for builder in builder {
            Option::<T>::finish(builder, rows, out);
        }
    }
    fn bind(arrays: &mut Arrays<'_>, names: &mut NamePool) -> Option<Self::Reader> {
        (0..N).map(|_| Option::<T>::bind(arrays, names)).collect()
    }
    #[inline]
    fn get(reader: &Self::Reader, row: usize) -> Self {
        std::array::from_fn(|i| Option::<T>::get(&reader[i], row))
    }
    fn show(&self, name: &str, unit: Option<Unit>, out: &mut Map<String, Value>) {
        for (i, value) in self.iter().enumerate() {
            value.show(&format!("{name}{i}"), unit, out);
        }
    }
}

/// As `[Option<i64>; 3]`, with 0 for null.
impl Column for [i64; 3] {
    type Builder = <[Option<i64>; 3] as Column>::Builder;
    type Reader = <[Option<i64>; 3] as Column>::Reader;

    fn describe(name: &str, out: &mut Vec<Field>) {
        <[Option<i64>; 3]>::describe(name, out);
    }
    fn push(&self, builder: &mut Self::Builder) {
        self.map(Some).push(builder);
    }
    fn finish(builder: &mut Self::Builder, rows: usize, out: &mut Vec<ArrayRef>) {
        <[Option<i64>; 3]>::finish(builder, rows, out);
    }
    fn bind(arrays: &mut Arrays<'_>, names: &mut NamePool) -> Option<Self::Reader> {
        <[Option<i64>; 3]>::bind(arrays, names)
    }
    #[inline]
    fn get(reader: &Self::Reader, row: usize) -> Self {
        <[Option<i64>; 3]>::get(reader, row).map(Option::unwrap_or_default)
    }
    fn show(&self, name: &str, unit: Option<Unit>, out: &mut Map<String, Value>) {
        self.map(Some).show(name, unit, out);
    }
}

impl Column for Option<Counts> {
    type Builder = [Sparse<Int64Type>; 5];
    type Reader = Vec<PrimitiveArray<Int64Type>>;

    fn describe(_: &str, out: &mut Vec<Field>) {
        for (name, meaning) in Counts::COLUMNS {
            let from = out.len();
            Option::<i64>::describe(name, out);
            About { unit: Some(Unit::Count), meaning }.add_to(&mut out[from..]);
        }
    }
    fn push(&self, builder: &mut Self::Builder) {
        let counts = self.map_or([None; 5], Counts::to_array);
        for (builder, count) in builder.iter_mut().zip(counts) {
            builder.push(count);
        }
    }
    fn finish(builder: &mut Self::Builder, rows: usize, out: &mut Vec<ArrayRef>) {
        for builder in builder {
            out.push(builder.finish(rows));
        }
    }
    fn bind(arrays: &mut Arrays<'_>, names: &mut NamePool) -> Option<Self::Reader> {
        Counts::COLUMNS.iter().map(|_| Option::<i64>::bind(arrays, names)).collect()
    }
    fn get(reader: &Self::Reader, row: usize) -> Self {
        let count = |i: usize| Option::<i64>::get(&reader[i], row);
        Counts::from_array(std::array::from_fn(count))
    }
    fn show(&self, _: &str, _: Option<Unit>, out: &mut Map<String, Value>) {
        let counts = self.map_or([None; 5], Counts::to_array);
        for ((name, _), count) in Counts::COLUMNS.into_iter().zip(counts) {
            out.insert(name.to_owned(), Value::from(count));
        }
    }
}

impl Column for Option<Decomposition> {
    type Builder = [Sparse<Int64Type>; 9];
    type Reader = Vec<PrimitiveArray<Int64Type>>;

    fn describe(_: &str, out: &mut Vec<Field>) {
        for (name, meaning) in Decomposition::NAMES.into_iter().zip(Decomposition::MEANINGS) {
            let from = out.len();
            Option::<i64>::describe(name, out);
            About { unit: Some(Unit::Ns), meaning }.add_to(&mut out[from..]);
        }
    }
    fn push(&self, builder: &mut Self::Builder) {
        let parts = self.map(Decomposition::to_array);
        for (i, builder) in builder.iter_mut().enumerate() {
            builder.push(parts.map(|p| p[i]));
        }
    }
    fn finish(builder: &mut Self::Builder, rows: usize, out: &mut Vec<ArrayRef>) {
        for builder in builder {
            out.push(builder.finish(rows));
        }
    }
    fn bind(arrays: &mut Arrays<'_>, names: &mut NamePool) -> Option<Self::Reader> {
        Decomposition::NAMES.iter().map(|_| Option::<i64>::bind(arrays, names)).collect()
    }
    fn get(reader: &Self::Reader, row: usize) -> Self {
        let mut parts = [0; 9];
        for (part, column) in parts.iter_mut().zip(reader) {
            *part = Option::<i64>::get(column, row)?;
        }
        Some(Decomposition::from_array(parts))
    }
    fn show(&self, _: &str, _: Option<Unit>, out: &mut Map<String, Value>) {
        let parts = self.map(Decomposition::to_array);
        for (i, name) in Decomposition::NAMES.into_iter().enumerate() {
            out.insert(name.to_owned(), Value::from(parts.map(|p| p[i])));
        }
    }
}
