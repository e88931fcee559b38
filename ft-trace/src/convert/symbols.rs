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
    for (kind, addresses) in
        [(SymbolKind::Call, calls), (SymbolKind::Lock, locks), (SymbolKind::Function, functions)]
    {
        for (pid, address) in addresses {
            let Some(mappings) = registry.mappings.get(&Pid(pid)) else { continue };
            let begin = queries.len();
            let query =
                |what, address| move |mapping| Query { pid: Pid(pid), mapping, what, address };
            match kind {
                SymbolKind::Call => {
                    let call = (address as u64).wrapping_sub(1);
                    queries.extend(only_mapping(mappings, call).map(query(What::Call, call)));
                }
                SymbolKind::Lock => {
                    let near = nearest(mappings, address as u64).into_iter();
                    queries.extend(near.map(query(What::Variable, address as u64)));
                }
                SymbolKind::Function => {
                    let at = address as u64;
                    queries.extend(only_mapping(mappings, at).map(query(What::Function, at)));
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

/// Mappings of the files in which a lock can lie. The data of a file lies above its text, below that of the next file.
fn nearest(mappings: &[Mapping], address: u64) -> Vec<&Mapping> {
    let mut below: Vec<_> =
        mappings.iter().filter(|m| m.has_file() && m.start <= address).collect();
    below.sort_by_key(|mapping| std::cmp::Reverse(mapping.start));
    let mut nearest: Vec<&Mapping> = Vec::new();
    for mapping in below {
        let base = |m: &Mapping| m.start.wrapping_sub(m.offset);
        let is_same = |m: &&Mapping| m.path == mapping.path && base(m) == base(mapping);
        if !nearest.iter().any(is_same) {
            nearest.push(mapping);
        }
        if nearest.len() == NEAREST_FILES {
            break;
        }
    }
    nearest
}

/// The mapping that holds an address. If a process has had two files there, one after the other, it is not
/// known which one was meant.
pub(super) fn only_mapping(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let mut found = mappings.iter().filter(|m| (m.start..m.end).contains(&address));
    let first = found.next()?;
    let base = |m: &Mapping| m.start.wrapping_sub(m.offset);
    let same = |m: &Mapping| {
        (base(m), &m.path, &m.build_id) == (base(first), &first.path, &first.build_id)
    };
    found.all(same).then_some(first)
}

#[cfg(test)]
mod tests;
