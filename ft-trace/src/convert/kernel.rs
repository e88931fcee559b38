//! Kernel records to rows.

use ft_ebpf::{Header, read};

use crate::event::Event;
use crate::tables::record::{Decoder, KernelTable};
use crate::tables::*;

/// Declares [`KernelRows`]: a vector for each table that is made of kernel records.
macro_rules! kernel_rows {
    (
        first { $($first:tt)* }
        kernel { $($table:ident: $variant:ident($row:ident as $lean:ident),)* }
        kernel_alone { $($alone:ident: $alone_variant:ident($alone_row:ident),)* }
        last { $($last:tt)* }
    ) => {
        kernel_rows! { $($table: $row,)* $($alone: $alone_row,)* }

        impl KernelRows {
            /// What the analyses see of them, not sorted.
            pub(super) fn into_events(self) -> impl Iterator<Item = Event> {
                let events = std::iter::empty();
                $(let events = events.chain(self.$table.into_iter().map(|row| Event::$variant(row.into())));)*
                events
            }
        }
    };
    ($($table:ident: $row:ident,)*) => {
        /// Rows of the kernel stream of one segment, in the order of the records.
        #[derive(Default)]
        pub(super) struct KernelRows {
            $(pub(super) $table: Vec<$row>,)*
            /// Frames that held something unknown; the rest of such a frame is left out.
            pub(super) rejected: u64,
        }

        /// Tables of the kernel stream.
        pub(super) const TABLES: &[&str] = &[$(<$row as crate::store::Row>::TABLE),*];

        /// Size of the kernel record of this kind, without a call chain behind it; `None` when the kind is not known.
        pub fn kernel_record_bytes(kind: u16) -> Option<usize> {
            match kind {
                $(kind if <$row as KernelTable>::KINDS.contains(&kind) => {
                    Some(size_of::<<$row as KernelTable>::Record>())
                })*
                _ => None,
            }
        }

        /// Size of the kernel record at the start of `bytes` with all that belongs to it, as it says itself; `None` when
        /// its kind is not known or says what cannot be.
        pub fn kernel_record_len(bytes: &[u8]) -> Option<usize> {
            match read::<Header>(bytes)?.kind {
                $(kind if <$row as KernelTable>::KINDS.contains(&kind) => {
                    let record: <$row as KernelTable>::Record = read(bytes)?;
                    Some(size_of_val(&record) + <$row as KernelTable>::tail_bytes(&record)?)
                })*
                _ => None,
            }
        }

        impl KernelRows {
            /// Decodes the first record of `bytes`; returns its size, `None` when it is cut short or of a kind that
            /// is not known.
            #[inline]
            fn record(&mut self, kind: u16, bytes: &[u8], decoder: &mut Decoder) -> Option<usize> {
                match kind {
                    $(kind if <$row as KernelTable>::KINDS.contains(&kind) => {
                        let record: <$row as KernelTable>::Record = read(bytes)?;
                        let size = size_of_val(&record);
                        let end = size + <$row as KernelTable>::tail_bytes(&record)?;
                        let tail = bytes.get(size..end)?;
                        let row = <$row as KernelTable>::row_with(&record, tail, decoder);
                        decoder.threads.subject_of(&row);
                        self.$table.push(row);
                        Some(end)
                    })*
                    _ => None,
                }
            }

            /// Shows the rows of each table to `to`.
            pub(super) fn each<T: ForRows>(&mut self, to: &mut T) -> Result<(), T::Error> {
                $(to.rows(&mut self.$table)?;)*
                Ok(())
            }
        }
    };
}

/// What can be done with the rows of any table.
pub(super) trait ForRows {
    /// Why it cannot be done.
    type Error;
    /// Does it.
    fn rows<R: crate::store::Row>(&mut self, rows: &mut Vec<R>) -> Result<(), Self::Error>;
}

crate::event_tables!(kernel_rows);

impl KernelRows {
    /// Decodes the records of one frame.
    pub(super) fn decode(&mut self, mut bytes: &[u8], decoder: &mut Decoder) {
        while let Some(header) = read::<Header>(bytes) {
            let Some(size) = self.record(header.kind, bytes, decoder) else { break };
            bytes = &bytes[size..];
        }
        self.rejected += u64::from(!bytes.is_empty());
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::bytes as test_bytes;
