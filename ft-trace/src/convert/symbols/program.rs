//! What the file of a program or library says of the addresses in it.

use std::cell::OnceCell;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use addr2line::Loader;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, ReadCache};

use crate::demangle::demangled;
use crate::spool::mapping::Mapping;

/// Functions that are followed into each other at one address.
const MAX_INLINED: usize = 64;

/// Functions of a file that are looked at for frame pointers, about.
const MAX_FUNCTIONS: usize = 256;

/// Smaller ones seldom need a frame.
const MIN_FUNCTION_BYTES: u64 = 64;

/// What a file says about an address; empty and 0 where it says nothing.
#[derive(Debug, Default)]
pub(in crate::convert) struct Symbol {
    pub(in crate::convert) name: String,
    pub(in crate::convert) file: String,
    pub(in crate::convert) line: u32,
}

/// A program or library.
pub(in crate::convert) struct Program {
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
pub(super) struct Function {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) name: String,
}

impl Program {
    /// A file that was proved to be the one that is meant.
    pub(super) fn of(opened: File) -> Option<Program> {
        // It is this file, whatever has its name.
        let path = format!("/proc/self/fd/{}", opened.as_raw_fd()).into();
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
    pub(in crate::convert) fn address(&self, offset: u64) -> Option<u64> {
        let inside =
            |&&(start, size, _): &&(u64, u64, u64)| offset >= start && offset - start < size;
        let (start, _, address) = self.segments.iter().find(inside)?;
        address.checked_add(offset - start)
    }

    /// Where the file's address 0 lies in the process. A mapping begins with a page, a segment need not,
    /// so the end of another one may stand in it too: the one that fills it most counts.
    pub(super) fn base(&self, mapping: &Mapping) -> Option<u64> {
        let end = mapping.offset.saturating_add(mapping.end.saturating_sub(mapping.start));
        let common = |&&(start, size, _): &&(u64, u64, u64)| {
            end.min(start.saturating_add(size)).saturating_sub(start.max(mapping.offset))
        };
        let segment = self.segments.iter().max_by_key(common).filter(|s| common(s) > 0)?;
        let &(offset, _, address) = segment;
        Some(mapping.start.wrapping_sub(mapping.offset).wrapping_add(offset).wrapping_sub(address))
    }

    /// The variable that `at` is, or lies in: `name`, or `name+0x10`.
    pub(super) fn variable(&self, at: u64) -> Option<String> {
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
    pub(in crate::convert) fn frames(&self, at: u64) -> Vec<Symbol> {
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
    pub(super) fn functions(&self) -> &[Function] {
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
    pub(in crate::convert) fn framed(&self) -> (u32, u32) {
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

    pub(super) fn function(&self, at: u64) -> Symbol {
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
