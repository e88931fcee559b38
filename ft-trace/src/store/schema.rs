//! What a table is: a row type with a name, a schema, a builder and a reader.
//!
//! The macro `table!` makes all of it from the declaration of the struct. The types of columns are
//! listed in [`super::column`]; every column is documented at its field in [`crate::tables`].

use arrow_schema::Schema;

#[doc(hidden)]
pub use arrow_array::ArrayRef;
#[doc(hidden)]
pub use arrow_schema::Field;
#[doc(hidden)]
pub use serde_json::{Map, Value};

use super::column::Arrays;
use super::name_column::NamePool;

/// Version of all tables and of `meta.json`. A reader refuses any other.
pub const SCHEMA_VERSION: u32 = 8;

/// A row of a table, or of a projection of one.
pub trait Row: Sized + 'static {
    /// Name of the table: its directory in the trace.
    const TABLE: &'static str;
    /// What a row of it is; empty for a projection.
    const ABOUT: &'static str;
    /// Collects rows.
    type Builder;
    /// Reads rows of one batch.
    type Reader;

    /// Columns, in their order in the table.
    fn columns() -> Vec<Field>;
    /// An empty builder.
    fn builder() -> Self::Builder;
    /// Appends this row.
    fn push(&self, builder: &mut Self::Builder);
    /// Takes the arrays, `rows` long, out of the builder.
    fn finish(builder: &mut Self::Builder, rows: usize) -> Vec<ArrayRef>;
    /// A reader of these arrays; `None` when they do not fit [`Row::columns`].
    fn bind(arrays: &mut Arrays<'_>, names: &mut NamePool) -> Option<Self::Reader>;
    /// Row number `row` of the batch.
    fn get(reader: &Self::Reader, row: usize) -> Self;
    /// First column, by which rows are sorted.
    fn key(&self) -> i64;

    /// The columns but these, as JSON by their names.
    fn fields_but(&self, but: &[&str]) -> Map<String, Value>;

    /// Arrow schema.
    fn schema() -> Schema {
        Schema::new(Self::columns())
    }
}

/// Makes a struct a [`Row`](trait@crate::store::Row) of the named table: of all its columns, or of some of them, which is
/// faster to read. Fields are named and ordered as the columns are.
#[macro_export]
macro_rules! row {
    ($table:literal, $row:ident { $($field:ident: $ty:ty),* $(,)? }) => {
        $crate::row!($table, "", $row { $($field: $ty => None, "",)* });
    };
    ($table:literal, $about:expr, $row:ident { $($field:ident: $ty:ty => $unit:expr, $meaning:expr,)* }) => {
        impl $crate::store::schema::Row for $row {
            const TABLE: &'static str = $table;
            const ABOUT: &'static str = $about;
            type Builder = ($(<$ty as $crate::store::column::Column>::Builder,)*);
            type Reader = ($(<$ty as $crate::store::column::Column>::Reader,)*);

            fn columns() -> Vec<$crate::store::schema::Field> {
                let mut columns = Vec::new();
                $(
                    let of = $crate::store::about::About {
                        unit: $unit.or(<$ty as $crate::store::column::Column>::UNIT),
                        meaning: $meaning,
                    };
                    let from = columns.len();
                    <$ty as $crate::store::column::Column>::describe(stringify!($field), &mut columns);
                    of.add_to(&mut columns[from..]);
                )*
                columns
            }
            fn builder() -> Self::Builder {
                ($(<$ty as $crate::store::column::Column>::Builder::default(),)*)
            }
            #[inline]
            fn push(&self, builder: &mut Self::Builder) {
                let ($($field,)*) = builder;
                $($crate::store::column::Column::push(&self.$field, $field);)*
            }
            fn finish(builder: &mut Self::Builder, rows: usize) -> Vec<$crate::store::schema::ArrayRef> {
                let mut arrays = Vec::new();
                let ($($field,)*) = builder;
                $(<$ty as $crate::store::column::Column>::finish($field, rows, &mut arrays);)*
                arrays
            }
            fn bind(
                arrays: &mut $crate::store::column::Arrays<'_>,
                names: &mut $crate::store::name_column::NamePool,
            ) -> Option<Self::Reader> {
                Some(($(<$ty as $crate::store::column::Column>::bind(arrays, names)?,)*))
            }
            #[inline]
            fn get(reader: &Self::Reader, row: usize) -> Self {
                let ($($field,)*) = reader;
                $row { $($field: <$ty as $crate::store::column::Column>::get($field, row),)* }
            }
            fn fields_but(
                &self,
                but: &[&str],
            ) -> $crate::store::schema::Map<String, $crate::store::schema::Value> {
                let mut fields = Default::default();
                $(
                    if !but.contains(&stringify!($field)) {
                        let unit = $unit.or(<$ty as $crate::store::column::Column>::UNIT);
                        $crate::store::column::Column::show(
                            &self.$field, stringify!($field), unit, &mut fields,
                        );
                    }
                )*
                fields
            }
            #[inline]
            fn key(&self) -> i64 {
                [$($crate::store::column::Column::key(&self.$field)),*][0]
            }
        }
    };
}

#[cfg(test)]
mod tests;
