//! The rows that the analyses make.

use ft_trace::result_tables;
use ft_trace::tables;

/// Declares a vector for each table of results.
macro_rules! rows {
    ($($table:ident: $row:ident,)*) => {
        /// Rows that are finished, of each table in the order in which their intervals ended.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Rows {
            $(#[doc = concat!("Of `", stringify!($table), "`.")] pub $table: Vec<tables::$row>,)*
        }

        impl Rows {
            /// How many there are, of all tables.
            pub fn len(&self) -> usize {
                0 $(+ self.$table.len())*
            }
        }
    };
}

result_tables!(rows);

impl Rows {
    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
