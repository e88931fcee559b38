//! Return addresses to functions and source lines.
//!
//! A lock event of an unmodified program tells the address behind the call. Its byte before lies in the
//! call, so that one is looked up: in the mappings of the process, then in the file that was mapped, if
//! it still has the build id that it had then. Without a line table the symbol table gives the function,
//! and without that the object and the address in it remain. Inlined functions are left out: the
//! function is the one whose machine code called, and the line the one of its own source.
//!
//! These files belong to whoever was recorded. They are mapped to be read: a file that is cut short
//! meanwhile ends the conversion with a `SIGBUS`, and it can be repeated.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use addr2line::{Loader, demangle_auto};
use object::{Object as _, ObjectSegment as _, ReadCache};

use super::registry::{Registry, Site};
use crate::collect::maps::read_build_id;
use crate::model::{Name, Pid};
use crate::spool::mapping::Mapping;
use crate::store::rows::{SymbolRow, UserEvent};

/// Places that are told apart in one segment; a program has one for each call of a lock function.
const MAX_CALLERS: usize = 1 << 16;

/// The return addresses of the events of a segment.
#[derive(Debug, Default)]
pub(super) struct Callers {
    addresses: BTreeSet<(i32, i64)>,
    last: (i32, i64),
}

impl Callers {
    /// Takes note of an event.
    pub(super) fn note(&mut self, event: &UserEvent, site: &Site) {
        if let (true, Some(address)) = (site.has_caller, event.arg[1])
            && self.last != (event.pid.0, address)
            && self.addresses.len() < MAX_CALLERS
        {
            self.last = (event.pid.0, address);
            self.addresses.insert(self.last);
        }
    }

    /// Process and address, sorted.
    pub(super) fn into_vec(self) -> Vec<(i32, i64)> {
        self.addresses.into_iter().collect()
    }
}

/// Rows of `symbols` for all addresses that lie in a mapping.
pub(super) fn rows(
    callers: impl Iterator<Item = (i32, i64)>,
    registry: &Registry,
) -> Vec<SymbolRow> {
    let callers: BTreeSet<(i32, i64)> = callers.collect();
    let mut objects = HashMap::new();
    let mut names: HashMap<String, Name> = HashMap::new();
    let row = |(pid, address): (i32, i64)| {
        let call = (address as u64).wrapping_sub(1);
        let mapping = only_mapping(registry.mappings.get(&Pid(pid))?, call)?;
        let key = (mapping.path.as_str(), mapping.build_id.as_str());
        let object = objects.entry(key).or_insert_with(|| Program::open(key.0, key.1));
        let offset = call - mapping.start + mapping.offset;
        let (at, symbol) = match object {
            Some(program) => {
                let at = program.address(offset).unwrap_or(offset);
                (at, program.symbol(at))
            }
            None => (offset, Symbol::default()),
        };
        let mut name = |text: String| -> Name {
            names.entry(text).or_insert_with_key(|text| text.as_str().into()).clone()
        };
        Some(SymbolRow {
            pid: Pid(pid),
            address,
            function: name(symbol.function),
            file: name(symbol.file),
            line: i32::try_from(symbol.line).unwrap_or(0),
            object: name(mapping.path.clone()),
            offset: at as i64 + 1,
        })
    };
    callers.into_iter().filter_map(row).collect()
}

/// The mapping that holds an address. If a process has had two things there, one after the other, it is not
/// known which one was meant.
fn only_mapping(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let mut found = mappings.iter().filter(|m| (m.start..m.end).contains(&address));
    let first = found.next()?;
    let base = |m: &Mapping| m.start.wrapping_sub(m.offset);
    let same = |m: &Mapping| {
        (base(m), &m.path, &m.build_id) == (base(first), &first.path, &first.build_id)
    };
    found.all(same).then_some(first)
}

/// What a file says about an address; empty and 0 where it says nothing.
#[derive(Debug, Default)]
struct Symbol {
    function: String,
    file: String,
    line: u32,
}

/// A program or library.
struct Program {
    loader: Loader,
    /// Where parts of the file lie in its own address space: offset, size, address.
    segments: Vec<(u64, u64, u64)>,
}

impl Program {
    /// Opens a file, if it is the one with this build id.
    fn open(path: &str, build_id: &str) -> Option<Program> {
        if !Path::new(path).is_file() || read_build_id(path).unwrap_or_default() != build_id {
            return None;
        }
        let file = ReadCache::new(std::fs::File::open(path).ok()?);
        let segments = object::File::parse(&file)
            .ok()?
            .segments()
            .map(|s| (s.file_range().0, s.file_range().1, s.address()))
            .collect();
        Some(Program { loader: Loader::new(path).ok()?, segments })
    }

    /// The address that the file gives to the byte at this offset.
    fn address(&self, offset: u64) -> Option<u64> {
        let inside =
            |&&(start, size, _): &&(u64, u64, u64)| offset >= start && offset - start < size;
        let (start, _, address) = self.segments.iter().find(inside)?;
        address.checked_add(offset - start)
    }

    fn symbol(&self, address: u64) -> Symbol {
        self.line_symbol(address).unwrap_or_else(|| {
            let name = self.loader.find_symbol(address).unwrap_or_default();
            let function = demangle_auto(name.into(), None).into_owned();
            Symbol { function, ..Symbol::default() }
        })
    }

    /// From the debugging information: the outermost of the functions that are inlined into each other.
    fn line_symbol(&self, address: u64) -> Option<Symbol> {
        let mut frames = self.loader.find_frames(address).ok()?;
        let mut outermost = None;
        while let Ok(Some(frame)) = frames.next() {
            outermost = Some(frame);
        }
        let frame = outermost?;
        let function = frame.function.as_ref()?.demangle().ok()?.into_owned();
        let location = frame.location.as_ref();
        Some(Symbol {
            function,
            file: location.and_then(|l| l.file).unwrap_or_default().to_owned(),
            line: location.and_then(|l| l.line).unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::maps::Maps;

    fn mapping(start: u64, offset: u64, path: &str) -> Mapping {
        let (path, build_id) = (path.to_owned(), String::new());
        Mapping { start, end: start + 0x100, offset, path, build_id }
    }

    #[test]
    fn what_is_ambiguous_is_not_told() {
        let check = |mappings: &[Mapping], address, expected: Option<&str>| {
            assert_eq!(only_mapping(mappings, address).map(|m| m.path.as_str()), expected);
        };
        let (a, b) = (mapping(0x1000, 0, "/a"), mapping(0x1000, 0, "/b"));
        check(std::slice::from_ref(&a), 0x10ff, Some("/a"));
        check(std::slice::from_ref(&a), 0x1100, None);
        check(&[a.clone(), b], 0x1000, None);
        // Read twice while it grew.
        check(&[a, Mapping { end: 0x2000, ..mapping(0x1000, 0, "/a") }], 0x1001, Some("/a"));
    }

    #[test]
    fn own_function_is_found_by_its_address() {
        let own = Maps::default().look(std::process::id() as i32, 0).unwrap().mappings;
        let here = own_function_is_found_by_its_address as *const () as u64;
        let mapping = only_mapping(&own, here).unwrap();
        let program = Program::open(&mapping.path, &mapping.build_id).unwrap();
        let at = program.address(here - mapping.start + mapping.offset).unwrap();
        let symbol = program.symbol(at);
        assert!(symbol.function.contains("own_function_is_found"), "{symbol:?}");
        assert!(symbol.file.ends_with("symbols.rs") && symbol.line > 100, "{symbol:?}");
        assert!(Program::open(&mapping.path, "of another build").is_none());
        assert!(Program::open("/nonexistent", "").is_none());
    }
}
