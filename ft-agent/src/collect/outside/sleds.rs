//! The sleds of clang and of gcc that a process has found in itself, by the table to which a note leads ([`SledTable`]).
//!
//! Such a table can say anything. A sled must lie where text is, and whoever switches it looks whether its bytes are those of a
//! sled that calls, and is of the function that the table says.

use std::ops::Range;

use ft_trace::bytes::{u32_at, u64_at};
use ft_user::layout::{SLED_BYTES, SiteKind, Sled, SledEntry, SledKind, SledTable};
use ft_user::site;

use super::{Left, Object, Read, Site, inside, string};

/// Most tables of an object that are looked at; usual is one.
///
/// Limit: as `MAX_SITES` of `outside.rs`.
const MAX_TABLES: usize = 4;

/// Entries that are read at once.
const ENTRIES: u64 = 1024;

impl Object {
    /// Adds the sleds that this object tells, and takes what it has looked at from `left`.
    pub(super) fn sleds(
        &self,
        text: &[Range<u64>],
        read: &Read<'_>,
        left: &mut Left,
        found: &mut Vec<Site>,
    ) {
        let notes = self.notes(read);
        let tables = notes.iter().flat_map(|(at, notes)| site::sled_tables_of(notes, *at as usize));
        for table in tables.take(MAX_TABLES) {
            if inside(&self.loads, table as u64, size_of::<SledTable>() as u64) {
                of_table(table as u64, text, read, left, found);
            }
        }
    }
}

/// Adds the sleds of a table; the rest is left out where something cannot be read.
fn of_table(
    table: u64,
    text: &[Range<u64>],
    read: &Read<'_>,
    left: &mut Left,
    found: &mut Vec<Site>,
) -> Option<()> {
    let mut head = [0; size_of::<SledTable>()];
    // Its number of entries comes before their address, as the process stores them the other way round.
    if !read(table, &mut head) || u64_at(&head, 0)? != 1 {
        return None;
    }
    let [meta, count, entries] = [u64_at(&head, 8)?, u64_at(&head, 16)?, u64_at(&head, 24)?];
    let entry_bytes = size_of::<SledEntry>() as u64;
    let mut name = (0, 0, String::new());
    for first in (0..count.min(left.records as u64)).step_by(ENTRIES as usize) {
        let part = (count - first).min(ENTRIES).min(left.records as u64);
        let mut bytes = vec![0; (part * entry_bytes) as usize];
        let at = entries.checked_add(first * entry_bytes)?;
        if !read(at, &mut bytes) {
            return None;
        }
        for entry in bytes.chunks_exact(entry_bytes as usize) {
            left.records -= 1;
            let place = (u64_at(entry, 16)?, u32_at(entry, 24)?);
            // Those of one function follow each other.
            if (name.0, name.1) != place {
                name = (place.0, place.1, string(place.0, place.1.into(), read)?);
            }
            let kind = u8::try_from(u32_at(entry, 28)?).ok().and_then(SledKind::from_u8)?;
            let sled = Sled { address: u64_at(entry, 0)?, function: u64_at(entry, 8)?, kind };
            if !inside(text, sled.address, SLED_BYTES) {
                continue;
            }
            left.text_bytes = left.text_bytes.checked_sub(name.2.len())?;
            found.push(Site {
                address: sled.address,
                meta,
                // Begins and ends are switched together, and listed as one.
                kind: match kind {
                    SledKind::Entry => SiteKind::FunctionCalled,
                    _ => SiteKind::FunctionEnter,
                },
                line: 0,
                name: name.2.clone(),
                file: String::new(),
                format: String::new(),
                args: Vec::new(),
                sled: Some(sled),
            });
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: u64 = 0x1000;
    const ENTRIES_AT: u64 = 0x2000;
    const NAME: u64 = 0x8000;
    const TEXT: Range<u64> = 0x10_000..0x20_000;

    /// A memory with a table of `count` entries, of which these are there, and with one name.
    fn scan(count: u64, entries: &[SledEntry], left: &mut Left) -> Vec<Site> {
        let words = [1, 0x7000, count, ENTRIES_AT].map(u64::to_ne_bytes).concat();
        let entry = |e: &SledEntry| {
            let words = [e.address, e.function, e.name].map(u64::to_ne_bytes).concat();
            [words, e.name_bytes.to_ne_bytes().to_vec(), e.kind.to_ne_bytes().to_vec()].concat()
        };
        let entries: Vec<u8> = entries.iter().flat_map(entry).collect();
        let parts = [(TABLE, words), (ENTRIES_AT, entries), (NAME, b"fn.leaf".to_vec())];
        let read = move |at: u64, buffer: &mut [u8]| {
            let part = parts.iter().find_map(|(start, bytes)| {
                let from = usize::try_from(at.checked_sub(*start)?).ok()?;
                bytes.get(from..from.checked_add(buffer.len())?)
            });
            part.is_some_and(|part| {
                buffer.copy_from_slice(part);
                true
            })
        };
        let mut found = Vec::new();
        of_table(TABLE, &[TEXT], &read, left, &mut found);
        found
    }

    fn left() -> Left {
        Left { records: 100, text_bytes: 1000 }
    }

    fn entry(address: u64, kind: u32) -> SledEntry {
        SledEntry { address, function: 0x10_000, name: NAME, name_bytes: 7, kind }
    }

    #[test]
    fn the_sleds_of_a_table_are_sites_of_their_functions() {
        let found = scan(2, &[entry(0x10_000, 0), entry(0x10_040, 1)], &mut left());
        let of = |site: &Site| (site.address, &*site.name.to_owned() == "fn.leaf", site.sled);
        let sled = |address, kind| Some(Sled { address, function: 0x10_000, kind });
        let expected = [
            (0x10_000, true, sled(0x10_000, SledKind::Begin)),
            (0x10_040, true, sled(0x10_040, SledKind::Return)),
        ];
        assert_eq!(found.iter().map(of).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_lies_outside_of_text_or_cannot_be_read_is_left_out() {
        let found =
            scan(3, &[entry(0xffff, 0), entry(0x20_000 - 10, 0), entry(0x10_000, 0)], &mut left());
        assert_eq!(found.len(), 1);
        // More are told than there are; no such kind; a name that is not there.
        assert_eq!(scan(u64::MAX, &[entry(0x10_000, 0)], &mut left()), []);
        assert_eq!(scan(1, &[entry(0x10_000, 9)], &mut left()), []);
        assert_eq!(scan(1, &[SledEntry { name: 9, ..entry(0x10_000, 0) }], &mut left()), []);
    }

    #[test]
    fn a_table_takes_no_more_than_a_process_has() {
        let entries = [entry(0x10_000, 0); 50];
        let mut few = Left { records: 30, ..left() };
        assert_eq!(scan(50, &entries, &mut few).len(), 30);
        assert_eq!(few.records, 0);
        let mut short = Left { text_bytes: 20, ..left() };
        assert_eq!(scan(50, &entries, &mut short).len(), 2);
    }
}
