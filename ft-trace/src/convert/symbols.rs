//! Addresses in the events of unmodified programs to functions, source lines and variables.
//!
//! An event of a function has the address where it begins.
//! A lock event has the address behind the call. Its byte before lies in the call, so that one is looked
//! up: in the mappings of the process, then in the file that was mapped, if it is still there ([`names`](super::names)).
//! Without a line table the symbol table gives the function, and without that the
//! object and the address in it remain. Inlined functions are left out: the function is the one whose
//! machine code called, and the line the one of its own source.
//!
//! A lock that is a static variable, or lies in one, has its name; one on a heap or a stack has none.

mod seen;

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{BTreeSet, HashMap};

use super::names::{Answer, Names, Query, Symbol, What};
use super::registry::Registry;
use crate::ids::{Name, Pid};
use crate::spool::mapping::Mapping;
use crate::tables::{SymbolKind, SymbolRow};
pub(super) use seen::{Addresses, Seen, futexes};

/// Files in which a lock can lie: those whose text is mapped nearest below it.
const NEAREST_FILES: usize = 4;

/// What a row is made of: the queries of an address, which are some in a row.
struct Wanted {
    pid: i32,
    kind: SymbolKind,
    address: i64,
    queries: std::ops::Range<usize>,
}

/// Rows of `symbols`: for all return addresses and functions that lie in a mapping, and for all locks in variables.
pub(super) fn rows(
    calls: Addresses,
    locks: Addresses,
    functions: Addresses,
    registry: &Registry,
    names: &mut Names<'_>,
) -> Vec<SymbolRow> {
    let (mut wanted, mut queries) = (Vec::new(), Vec::new());
    let mut places = HashMap::new();
    for (kind, addresses) in
        [(SymbolKind::Call, calls), (SymbolKind::Lock, locks), (SymbolKind::Function, functions)]
    {
        for (pid, address) in addresses {
            let Some(mappings) = registry.mappings.get(&Pid(pid)) else { continue };
            let (layout, texts) =
                places.entry(pid).or_insert_with(|| (Layout::of(mappings), Texts::of(mappings)));
            let begin = queries.len();
            let query =
                |what, address| move |mapping| Query { pid: Pid(pid), mapping, what, address };
            match kind {
                SymbolKind::Call => {
                    let call = (address as u64).wrapping_sub(1);
                    queries.extend(layout.only_mapping(call).map(query(What::Call, call)));
                }
                SymbolKind::Lock => {
                    let near = texts.nearest(address as u64).iter().copied();
                    queries.extend(near.map(query(What::Variable, address as u64)));
                }
                SymbolKind::Function => {
                    let at = address as u64;
                    queries.extend(layout.only_mapping(at).map(query(What::Function, at)));
                }
            }
            wanted.push(Wanted { pid, kind, address, queries: begin..queries.len() });
        }
    }
    let answers = names.ask(&queries);
    let row = |wanted: Wanted| {
        let Wanted { pid, kind, address, queries: its } = wanted;
        let (queries, answers) = (&queries[its.clone()], &answers[its]);
        let (object, offset, symbol) = match kind {
            SymbolKind::Lock => variable(queries, answers)?,
            _ => {
                let (query, answer) = (queries.first()?, answers.first()?);
                let behind = u64::from(kind == SymbolKind::Call);
                let symbol = answer.symbols.first().cloned().unwrap_or_default();
                (&query.mapping.path, own_address(query, answer).wrapping_add(behind), symbol)
            }
        };
        Some(SymbolRow {
            pid: Pid(pid),
            address,
            kind,
            symbol: symbol.name,
            file: symbol.file,
            line: i32::try_from(symbol.line).unwrap_or(0),
            object: Name::from(object.as_str()),
            offset: offset as i64,
        })
    };
    let mut rows: Vec<_> = wanted.into_iter().filter_map(row).collect();
    rows.sort_by_key(|row| row.pid);
    rows
}

/// The address in the file's own address space: as the file says, or said when the mapping was read, or else its offset.
pub(super) fn own_address(query: &Query<'_>, answer: &Answer) -> u64 {
    let Query { mapping, address, .. } = query;
    // What a spool from elsewhere says need not fit.
    let offset = address.wrapping_sub(mapping.start).wrapping_add(mapping.offset);
    answer.at.or_else(|| mapping.own_address(*address)).unwrap_or(offset)
}

/// The variable at an address; `None` when it is in none, or when that is not known for sure.
fn variable<'m>(queries: &[Query<'m>], answers: &[Answer]) -> Option<(&'m String, u64, Symbol)> {
    let mut found: Option<(&'m String, u64, Symbol)> = None;
    for (query, answer) in queries.iter().zip(answers) {
        let (Some(at), [symbol]) = (answer.at, &answer.symbols[..]) else { continue };
        let path = &query.mapping.path;
        match &found {
            Some((other, other_at, _)) if (*other_at, *other) != (at, path) => return None,
            _ => found = Some((path, at, symbol.clone())),
        }
    }
    found
}

/// Where a mapping has its file: those of one file that lie as far apart as in it have it at one place.
fn place(mapping: &Mapping) -> (u64, &str) {
    (mapping.start.wrapping_sub(mapping.offset), &mapping.path)
}

/// The files in which a lock can lie. The data of a file lies above its text, below that of the next file.
struct Texts<'m>(Vec<(u64, Vec<&'m Mapping>)>);

impl<'m> Texts<'m> {
    fn of(mappings: &'m [Mapping]) -> Texts<'m> {
        let mut by_start: Vec<_> = mappings.iter().rev().filter(|m| m.has_file()).collect();
        by_start.sort_by_key(|mapping| mapping.start);
        let mut texts: Vec<(u64, Vec<&Mapping>)> = Vec::new();
        for mapping in by_start {
            let below = texts.last().map_or(&[][..], |(_, below)| below);
            let others = below.iter().copied().filter(|other| place(other) != place(mapping));
            let nearest = std::iter::once(mapping).chain(others).take(NEAREST_FILES).collect();
            texts.push((mapping.start, nearest));
        }
        Texts(texts)
    }

    /// Mappings of the nearest of them, the nearest first.
    fn nearest(&self, address: u64) -> &[&'m Mapping] {
        let behind = self.0.partition_point(|&(start, _)| start <= address);
        behind.checked_sub(1).map_or(&[], |at| &self.0[at].1)
    }
}

/// Which mapping of a process holds which addresses: from each of these on, the one, or none that is known. It takes a look-up the
/// logarithm of their number, of which a process can have many.
pub(super) struct Layout<'m>(Vec<(u64, Option<&'m Mapping>)>);

impl<'m> Layout<'m> {
    pub(super) fn of(mappings: &'m [Mapping]) -> Layout<'m> {
        let whole = mappings.iter().enumerate().filter(|(_, m)| m.start < m.end);
        let mut borders: Vec<_> =
            whole.flat_map(|(i, m)| [(m.start, true, i), (m.end, false, i)]).collect();
        borders.sort_unstable();
        // Those that are there, by their places in the list; and how many there are of each file and place.
        let (mut there, mut files) = (BTreeSet::new(), BTreeMap::new());
        let mut layout = Vec::new();
        for at in borders.chunk_by(|a, b| a.0 == b.0) {
            for &(_, begins, i) in at {
                let file = files.entry((place(&mappings[i]), &mappings[i].build_id));
                match (begins, file) {
                    (true, file) => {
                        there.insert(i);
                        *file.or_insert(0) += 1;
                    }
                    (false, Entry::Occupied(mut file)) => {
                        there.remove(&i);
                        *file.get_mut() -= 1;
                        if *file.get() == 0 {
                            file.remove();
                        }
                    }
                    (false, Entry::Vacant(_)) => {}
                }
            }
            let first = there.first().filter(|_| files.len() == 1);
            layout.push((at[0].0, first.map(|&first| &mappings[first])));
        }
        Layout(layout)
    }

    /// The mapping that holds an address. If a process has had two files there, one after the other, it is not
    /// known which one was meant.
    pub(super) fn only_mapping(&self, address: u64) -> Option<&'m Mapping> {
        let behind = self.0.partition_point(|&(start, _)| start <= address);
        self.0[behind.checked_sub(1)?].1
    }
}

#[cfg(test)]
mod tests;
