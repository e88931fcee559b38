//! Addresses in the events of unmodified programs to functions, source lines and variables.
//!
//! An event of a function has the address where it begins.
//! A lock event has the address behind the call. Its byte before lies in the call, so that one is looked
//! up: in the mappings of the process, then in the file that was mapped, if it still has the build id
//! that it had then. Without a line table the symbol table gives the function, and without that the
//! object and the address in it remain. Inlined functions are left out: the function is the one whose
//! machine code called, and the line the one of its own source.
//!
//! A lock that is a static variable, or lies in one, has its name; one on a heap or a stack has none.
//!
//! These files belong to whoever was recorded: which ones they are is proved first ([`proof`](super::proof)). They
//! are mapped to be read: a file that is cut short meanwhile ends the conversion with a `SIGBUS`, and it can be
//! repeated.

mod program;
mod seen;

use std::collections::HashMap;

use super::proof;
use super::registry::Registry;
use crate::foreign_file::FileKey;
use crate::ids::{Name, Pid};
use crate::spool::mapping::Mapping;
use crate::tables::{SymbolKind, SymbolRow};
use ft_user::layout::SLED_BYTES;
pub(super) use program::{Program, Symbol};
pub(super) use seen::{Addresses, Seen, futexes};

/// How far from a function's begin its first line is looked for.
const BEGIN_BYTES: u64 = 64;

/// Rows of `symbols`: for all return addresses and functions that lie in a mapping, and for all locks in variables.
pub(super) fn rows(
    calls: Addresses,
    locks: Addresses,
    functions: Addresses,
    registry: &Registry,
) -> Vec<SymbolRow> {
    let mut programs = Programs::default();
    let calls = calls.into_iter().map(|at| (SymbolKind::Call, at));
    let locks = locks.into_iter().map(|at| (SymbolKind::Lock, at));
    let functions = functions.into_iter().map(|at| (SymbolKind::Function, at));
    let row = |(kind, (pid, address)): (SymbolKind, (i32, i64))| {
        let mappings = registry.mappings.get(&Pid(pid))?;
        let mut programs = programs.of(Pid(pid), registry);
        let (object, offset, symbol) = match kind {
            SymbolKind::Call => {
                let call = (address as u64).wrapping_sub(1);
                let mapping = only_mapping(mappings, call)?;
                let (at, symbol) = programs.call(mapping, call);
                (&mapping.path, at.wrapping_add(1), symbol)
            }
            SymbolKind::Lock => programs.variable(mappings, address as u64)?,
            SymbolKind::Function => {
                let mapping = only_mapping(mappings, address as u64)?;
                let (at, mut symbol) = programs.call(mapping, address as u64);
                // A sled at the begin, and what saves registers behind it, can be of no line (clang 14).
                if symbol.line == 0 {
                    let behind =
                        (SLED_BYTES..BEGIN_BYTES).map(|n| (address as u64).wrapping_add(n));
                    let mut behind = behind.map(|at| programs.call(mapping, at).1);
                    let is_its = |s: &Symbol| s.name == symbol.name && s.line != 0;
                    symbol = behind.find(is_its).unwrap_or(symbol);
                }
                (&mapping.path, at, symbol)
            }
        };
        Some(SymbolRow {
            pid: Pid(pid),
            address,
            kind,
            symbol: Name::from(symbol.name),
            file: Name::from(symbol.file),
            line: i32::try_from(symbol.line).unwrap_or(0),
            object: Name::from(object.as_str()),
            offset: offset as i64,
        })
    };
    let mut rows: Vec<_> = calls.chain(locks).chain(functions).filter_map(row).collect();
    rows.sort_by_key(|row| row.pid);
    rows
}

/// The files that are needed, each opened once.
#[derive(Default)]
pub(super) struct Programs {
    by_file: HashMap<(String, String, Option<FileKey>), Option<Program>>,
}

impl Programs {
    /// Those of one process.
    pub(super) fn of(&mut self, pid: Pid, registry: &Registry) -> OfProcess<'_> {
        OfProcess { programs: self, pid, user: registry.users.get(&pid).copied() }
    }
}

/// The files of a process.
pub(super) struct OfProcess<'p> {
    programs: &'p mut Programs,
    pid: Pid,
    user: Option<u32>,
}

impl OfProcess<'_> {
    /// The file of a mapping, if it is still there.
    pub(super) fn get(&mut self, mapping: &Mapping) -> Option<&Program> {
        if !mapping.has_file() {
            return None;
        }
        let key = (mapping.path.clone(), mapping.build_id.clone(), mapping.file);
        let open = || Program::of(proof::program(self.pid, self.user, mapping)?);
        self.programs.by_file.entry(key).or_insert_with(open).as_ref()
    }

    /// Address in the file's own address space of an address in a mapping of it, and what it says.
    fn call(&mut self, mapping: &Mapping, address: u64) -> (u64, Symbol) {
        let offset = address - mapping.start + mapping.offset;
        match self.get(mapping) {
            Some(program) => {
                let at = program.address(offset).unwrap_or(offset);
                (at, program.function(at))
            }
            None => (mapping.own_address(address).unwrap_or(offset), Symbol::default()),
        }
    }

    /// The variable at an address; `None` when it is in none, or when that is not known for sure.
    fn variable<'a>(
        &mut self,
        mappings: &'a [Mapping],
        address: u64,
    ) -> Option<(&'a String, u64, Symbol)> {
        let mut found: Option<(&Mapping, u64, Symbol)> = None;
        for mapping in mappings {
            // Data lies at a fixed distance from the text, as the program headers say.
            let Some(program) = self.get(mapping) else { continue };
            let Some(base) = program.base(mapping) else { continue };
            let at = address.wrapping_sub(base);
            let Some(name) = program.variable(at) else { continue };
            match &found {
                Some((other, other_at, _)) if (*other_at, &other.path) != (at, &mapping.path) => {
                    return None;
                }
                _ => found = Some((mapping, at, Symbol { name, ..Symbol::default() })),
            }
        }
        found.map(|(mapping, at, symbol)| (&mapping.path, at, symbol))
    }
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
