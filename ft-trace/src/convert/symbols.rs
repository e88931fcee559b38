//! Addresses in the events of unmodified programs to functions, source lines and variables.
//!
//! An event of a function tells where it begins.
//! A lock event tells the address behind the call. Its byte before lies in the call, so that one is looked
//! up: in the mappings of the process, then in the file that was mapped, if it still has the build id
//! that it had then. Without a line table the symbol table gives the function, and without that the
//! object and the address in it remain. Inlined functions are left out: the function is the one whose
//! machine code called, and the line the one of its own source.
//!
//! A lock that is a static variable, or lies in one, has its name; one on a heap or a stack has none.
//!
//! These files belong to whoever was recorded: only regular ones are opened, and none that is mostly holes. They
//! are mapped to be read: a file that is cut short meanwhile ends the conversion with a `SIGBUS`, and it can be
//! repeated.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, ReadCache};

use super::registry::{Registry, Site};
use crate::build_id;
use crate::demangle::demangled;
use crate::ids::{Name, Pid};
use crate::spool::mapping::Mapping;
use crate::tables::{FutexCall, SymbolKind, SymbolRow, UserEvent};
use ft_user::layout::SLED_BYTES;

/// How far from a function's begin its first line is looked for.
const BEGIN_BYTES: u64 = 64;

/// Places, and locks, that are told apart in one segment.
const MAX_ADDRESSES: usize = 1 << 16;

/// Largest file in which names are looked up.
const MAX_FILE_BYTES: u64 = 8 << 30;

/// A file of this size may have holes without end.
const SMALL_BYTES: u64 = 64 << 20;

/// How much larger than its place on the disk a file can be that has no holes: some file systems compress.
const MAX_COMPRESSION: u64 = 32;

/// Functions that are followed into each other at one address.
const MAX_INLINED: usize = 64;

/// Functions of a file that are looked at for frame pointers, about.
const MAX_FUNCTIONS: usize = 256;

/// Smaller ones seldom need a frame.
const MIN_FUNCTION_BYTES: u64 = 64;

/// Addresses of one kind, with their processes.
pub(super) type Addresses = BTreeSet<(i32, i64)>;

/// The return addresses, the locks and the functions of the events of a segment.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) calls: Addresses,
    pub(super) locks: Addresses,
    pub(super) functions: Addresses,
    /// Process, lock and return address of late: most events repeat them.
    recent: [(i32, i64, i64); 32],
}

impl Seen {
    /// Takes note of an event.
    pub(super) fn note(&mut self, event: &UserEvent, site: &Site) {
        let pid = event.pid.0;
        if let (true, [Some(function), ..]) = (site.has_function, event.arg) {
            let recent = &mut self.recent[(function >> 4) as usize % 32];
            if std::mem::replace(recent, (pid, function, function)) != (pid, function, function)
                && self.functions.len() < MAX_ADDRESSES
            {
                self.functions.insert((pid, function));
            }
            return;
        }
        let (true, [Some(lock), Some(call), ..]) = (site.has_caller, event.arg) else { return };
        let recent = &mut self.recent[(call ^ lock >> 3) as usize % 32];
        if std::mem::replace(recent, (pid, lock, call)) == (pid, lock, call) {
            return;
        }
        for (set, address) in [(&mut self.locks, lock), (&mut self.calls, call)] {
            if set.len() < MAX_ADDRESSES {
                set.insert((pid, address));
            }
        }
    }
}

/// Where futexes lie that are called about.
pub(super) fn futexes(rows: &[FutexCall]) -> Addresses {
    let mut found = Addresses::new();
    let (mut before, futexes) = ((0, 0), rows.iter().filter(|call| !call.kind.is_semaphore()));
    for at in futexes.map(|call| (call.pid.0, call.address)) {
        if std::mem::replace(&mut before, at) != at && found.len() < MAX_ADDRESSES {
            found.insert(at);
        }
    }
    found
}

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
    by_file: HashMap<(String, String), Option<Program>>,
}

impl Programs {
    /// The file of a mapping, if it is still there.
    pub(super) fn get(&mut self, mapping: &Mapping) -> Option<&Program> {
        if !mapping.has_file() {
            return None;
        }
        let key = (mapping.path.clone(), mapping.build_id.clone());
        let open = || Program::open(&mapping.path, &mapping.build_id);
        self.by_file.entry(key).or_insert_with(open).as_ref()
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

/// The mapping that holds an address. If a process has had two things there, one after the other, it is not
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

/// What a file says about an address; empty and 0 where it says nothing.
#[derive(Debug, Default)]
pub(super) struct Symbol {
    pub(super) name: String,
    pub(super) file: String,
    pub(super) line: u32,
}

/// A program or library.
pub(super) struct Program {
    path: PathBuf,
    /// Where parts of the file lie in its own address space: offset, size, address.
    segments: Vec<(u64, u64, u64)>,
    /// Variables by address: address, size, name.
    variables: Vec<(u64, u64, String)>,
    /// Functions by address, once they are asked for.
    functions: OnceCell<Vec<Function>>,
    /// Opened for the first return address.
    loader: OnceCell<Option<Loader>>,
    /// What `path` may be another name of.
    file: File,
}

/// A function as the symbol table has it.
struct Function {
    address: u64,
    size: u64,
    name: String,
}

/// What is read of a file takes about as much memory, and a file with holes takes nothing of whoever made it.
fn is_worth_reading(file: &File) -> bool {
    const BLOCK_BYTES: u64 = 512;
    let Ok(metadata) = file.metadata() else { return false };
    let there = metadata.blocks().saturating_mul(BLOCK_BYTES);
    metadata.len() <= MAX_FILE_BYTES.min(SMALL_BYTES.max(there.saturating_mul(MAX_COMPRESSION)))
}

impl Program {
    /// Opens a file, if it is the one with this build id.
    fn open(path: &str, build_id: &str) -> Option<Program> {
        let path = Path::new(path);
        let opened = build_id::regular(path).filter(is_worth_reading)?;
        if build_id::of_opened(&opened).unwrap_or_default() != build_id {
            return None;
        }
        // From here on it is this file, whatever has its name; unless there is a package of its debugging
        // information beside it, which is found by the name.
        let package = path.with_added_extension("dwp");
        let path = match build_id::regular(&package) {
            Some(_) => path.to_owned(),
            None => format!("/proc/self/fd/{}", opened.as_raw_fd()).into(),
        };
        let file = ReadCache::new(&opened);
        let object = object::File::parse(&file).ok()?;
        let segment = |s: object::Segment<'_, '_, _>| {
            let (offset, size) = s.file_range();
            (offset, size, s.address())
        };
        let symbols = object.symbols().chain(object.dynamic_symbols());
        let mut variables: Vec<_> = symbols
            .filter(|s| s.kind() == object::SymbolKind::Data && s.is_definition() && s.size() > 0)
            .filter_map(|s| Some((s.address(), s.size(), s.name().ok()?.to_owned())))
            .collect();
        variables.sort_unstable();
        let segments = object.segments().map(segment).collect();
        let (functions, loader) = (OnceCell::new(), OnceCell::new());
        Some(Program { path, segments, variables, functions, loader, file: opened })
    }

    /// The address that the file gives to the byte at this offset.
    pub(super) fn address(&self, offset: u64) -> Option<u64> {
        let inside =
            |&&(start, size, _): &&(u64, u64, u64)| offset >= start && offset - start < size;
        let (start, _, address) = self.segments.iter().find(inside)?;
        address.checked_add(offset - start)
    }

    /// Where the file's address 0 lies in the process. A mapping begins with a page, a segment need not,
    /// so the end of another one may stand in it too: the one that fills it most counts.
    fn base(&self, mapping: &Mapping) -> Option<u64> {
        let end = mapping.offset.saturating_add(mapping.end.saturating_sub(mapping.start));
        let common = |&&(start, size, _): &&(u64, u64, u64)| {
            end.min(start.saturating_add(size)).saturating_sub(start.max(mapping.offset))
        };
        let segment = self.segments.iter().max_by_key(common).filter(|s| common(s) > 0)?;
        let &(offset, _, address) = segment;
        Some(mapping.start.wrapping_sub(mapping.offset).wrapping_add(offset).wrapping_sub(address))
    }

    /// The variable that `at` is, or lies in: `name`, or `name+0x10`.
    fn variable(&self, at: u64) -> Option<String> {
        let behind = self.variables.partition_point(|&(address, ..)| address <= at);
        let (address, size, name) = self.variables.get(behind.checked_sub(1)?)?;
        let name = demangled(name);
        match at - address {
            0 => Some(name),
            inside if inside < *size => Some(format!("{name}+{inside:#x}")),
            _ => None,
        }
    }

    fn loader(&self) -> Option<&Loader> {
        self.loader.get_or_init(|| Loader::new(&self.path).ok()).as_ref()
    }

    /// The function at an address, and those that are inlined there, from the outermost on; empty when nothing is known.
    pub(super) fn frames(&self, at: u64) -> Vec<Symbol> {
        let mut found: Vec<Symbol> = Vec::new();
        if let Some(mut frames) = self.loader().and_then(|loader| loader.find_frames(at).ok()) {
            while let Ok(Some(frame)) = frames.next() {
                let Some(Ok(name)) = frame.function.as_ref().map(|name| name.demangle()) else {
                    continue;
                };
                let location = frame.location.as_ref();
                found.push(Symbol {
                    name: name.into_owned(),
                    file: location.and_then(|l| l.file).unwrap_or_default().to_owned(),
                    line: location.and_then(|l| l.line).unwrap_or(0),
                });
                if found.len() == MAX_INLINED {
                    break;
                }
            }
        }
        if found.is_empty() {
            let function = self.functions().partition_point(|function| function.address <= at);
            let function = function.checked_sub(1).map(|i| &self.functions()[i]);
            // What has no size may end anywhere; what lies behind the end of one is another, which has no name.
            let holds = |f: &&Function| f.size == 0 || at - f.address < f.size;
            let name = function.filter(holds).map(|f| demangled(&f.name));
            found.extend(name.map(|name| Symbol { name, ..Symbol::default() }));
        }
        found.reverse();
        found
    }

    /// Functions of the symbol tables, by address.
    fn functions(&self) -> &[Function] {
        self.functions.get_or_init(|| {
            let file = ReadCache::new(&self.file);
            let Ok(object) = object::File::parse(&file) else { return Vec::new() };
            let symbols = object.symbols().chain(object.dynamic_symbols());
            let mut functions: Vec<_> = symbols
                .filter(|s| s.kind() == object::SymbolKind::Text && s.is_definition())
                .filter_map(|s| {
                    let (address, size) = (s.address(), s.size());
                    Some(Function { address, size, name: s.name().ok()?.to_owned() })
                })
                .collect();
            // Of several names, the largest function last, which is the one that is found.
            functions
                .sort_by(|a, b| (a.address, a.size, &b.name).cmp(&(b.address, b.size, &a.name)));
            functions
        })
    }

    /// How many functions were looked at, and how many of them keep a frame pointer, by their first instructions:
    /// `push %rbp; mov %rsp,%rbp`, perhaps behind `endbr64`.
    pub(super) fn framed(&self) -> (u32, u32) {
        const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
        const FRAME: &[u8] = &[0x55, 0x48, 0x89, 0xe5];
        let large = || self.functions().iter().filter(|f| f.size >= MIN_FUNCTION_BYTES);
        let step = large().count() / MAX_FUNCTIONS + 1;
        let (mut looked_at, mut framed) = (0, 0);
        for function in large().step_by(step) {
            let mut code = [0; 8];
            let Some(offset) = self.offset(function.address) else { continue };
            if self.file.read_exact_at(&mut code, offset).is_err() {
                continue;
            }
            looked_at += 1;
            framed += u32::from(code.strip_prefix(ENDBR64).unwrap_or(&code).starts_with(FRAME));
        }
        (looked_at, framed)
    }

    /// Where in the file the byte at this address is.
    fn offset(&self, at: u64) -> Option<u64> {
        let inside = |&&(_, size, address): &&(u64, u64, u64)| at >= address && at - address < size;
        let (offset, _, address) = self.segments.iter().find(inside)?;
        offset.checked_add(at - address)
    }

    fn function(&self, at: u64) -> Symbol {
        let Some(loader) = self.loader() else { return Symbol::default() };
        line_symbol(loader, at).unwrap_or_else(|| {
            let name = loader.find_symbol(at).unwrap_or_default();
            Symbol { name: demangled(name), ..Symbol::default() }
        })
    }
}

/// From the debugging information: the outermost of the functions that are inlined into each other.
fn line_symbol(loader: &Loader, at: u64) -> Option<Symbol> {
    let mut frames = loader.find_frames(at).ok()?;
    let mut outermost = None;
    while let Ok(Some(frame)) = frames.next() {
        outermost = Some(frame);
    }
    let frame = outermost?;
    let location = frame.location.as_ref();
    Some(Symbol {
        name: frame.function.as_ref()?.demangle().ok()?.into_owned(),
        file: location.and_then(|l| l.file).unwrap_or_default().to_owned(),
        line: location.and_then(|l| l.line).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests;
