//! What the file of a program or library says of the addresses in it.
//!
//! Whoever wrote the file wrote it to harm who reads it: names are bounded, as is what is inflated; depth by the stack, and
//! the rest by the memory and the time of the worker, which alone runs this.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

use addr2line::gimli::{Dwarf, DwarfPackage, EndianSlice, LittleEndian};
use addr2line::{Context, Frame, FrameIter, LookupContinuation, LookupResult, SplitDwarfLoad};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _};

use super::Symbol;
use super::rule::Rule;
use super::unwinding::{Addresses, Unwinding};
use crate::demangle::{MAX_NAME_BYTES, cut, demangled};
use crate::ids::Name;
use crate::spool::mapping::Mapping;

/// Most that is made of a file's compressed sections, bytes.
///
/// Limit: it has the names of its symbol table alone.
/// Shown by: `what_is_inflated_is_bounded`.
pub(super) const MAX_INFLATED_BYTES: u64 = 512 << 20;

/// Sections that are inflated; there are some 20 kinds, in a file and in its package.
///
/// Limit: as `MAX_INFLATED_BYTES`.
const MAX_SECTIONS: usize = 64;

/// Functions that are followed into each other at one address.
///
/// Limit: the innermost are left out; only a sample is checked; what follows has no names; the name is cut, or shown as
/// it is in the file.
/// Shown by: `any_text_is_survived`, `names_without_end_are_cut`, `a_long_name_is_its_beginning`.
pub(super) const MAX_INLINED: usize = 64;

/// Functions of a file that are looked at for what leads to their callers, about.
///
/// Limit: as `MAX_INLINED`.
const MAX_FUNCTIONS: usize = 256;

/// Smaller ones seldom need a frame.
const MIN_FUNCTION_BYTES: u64 = 64;

/// Texts that are kept, of names and files, each; then they are made again.
///
/// Limit: nothing: names take longer.
/// Shown by: no figure depends.
const MAX_KEPT: usize = 4096;

type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// Sections that were compressed.
pub(super) struct Inflated {
    sections: [OnceCell<Vec<u8>>; MAX_SECTIONS],
    taken: Cell<usize>,
    bytes: Cell<u64>,
}

impl Default for Inflated {
    fn default() -> Inflated {
        let sections = [const { OnceCell::new() }; MAX_SECTIONS];
        Inflated { sections, taken: Cell::new(0), bytes: Cell::new(0) }
    }
}

impl Inflated {
    /// How many sections there was an attempt to inflate.
    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.taken.get()
    }

    /// A section by its name, empty where it is none, or too large.
    fn section<'d>(&'d self, object: &object::File<'d>, name: Option<&str>) -> Slice<'d> {
        let data = name.and_then(|name| object.section_by_name(name)).and_then(|section| {
            let compressed = section.compressed_data().ok()?;
            if compressed.format == object::CompressionFormat::None {
                return Some(compressed.data);
            }
            let bytes = self.bytes.get().saturating_add(compressed.uncompressed_size);
            let place = self.sections.get(self.taken.get())?;
            if bytes > MAX_INFLATED_BYTES {
                return None;
            }
            self.bytes.set(bytes);
            self.taken.set(self.taken.get() + 1);
            let inflated = compressed.decompress().ok()?.into_owned();
            Some(&**place.get_or_init(|| inflated))
        });
        EndianSlice::new(data.unwrap_or_default(), LittleEndian)
    }
}

/// A program or library.
pub(super) struct Program<'d> {
    file: &'d [u8],
    object: object::File<'d>,
    /// Of its debugging information, where that is beside it.
    package: Option<object::File<'d>>,
    inflated: &'d Inflated,
    /// Where parts of the file lie in its own address space: offset, size, address.
    segments: Vec<(u64, u64, u64)>,
    /// Variables by address: address, size, name.
    variables: OnceCell<Vec<(u64, u64, &'d [u8])>>,
    /// Functions by address, once they are asked for.
    functions: OnceCell<Vec<Function<'d>>>,
    /// Read for the first return address.
    lines: OnceCell<Option<Lines<'d>>>,
    /// Read for the first frame that is left.
    unwinding: OnceCell<Unwinding<'d>>,
    /// What was made of names of functions. Neighbouring addresses are of the same ones, and to demangle one takes longer than to find it.
    names: RefCell<HashMap<&'d [u8], Name>>,
    /// The same of the names of files.
    files: RefCell<HashSet<Name>>,
}

/// A function as the symbol table has it.
pub(super) struct Function<'d> {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) name: &'d [u8],
}

/// Debugging information.
struct Lines<'d> {
    context: Context<Slice<'d>>,
    package: Option<DwarfPackage<Slice<'d>>>,
}

fn parse(file: &[u8]) -> Option<object::File<'_>> {
    object::File::parse(file).ok().filter(|object| object.is_64() && object.is_little_endian())
}

impl<'d> Program<'d> {
    /// `None` of what is no program of 64 bits.
    pub(super) fn new(
        file: &'d [u8],
        package: Option<&'d [u8]>,
        inflated: &'d Inflated,
    ) -> Option<Program<'d>> {
        let object = parse(file)?;
        let segment = |s: object::Segment<'_, '_>| {
            let (offset, size) = s.file_range();
            (offset, size, s.address())
        };
        let segments = object.segments().map(segment).collect();
        let package = package.and_then(parse);
        Some(Program {
            file,
            object,
            package,
            inflated,
            segments,
            variables: OnceCell::new(),
            functions: OnceCell::new(),
            lines: OnceCell::new(),
            unwinding: OnceCell::new(),
            names: RefCell::default(),
            files: RefCell::default(),
        })
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
    pub(super) fn base(&self, mapping: &Mapping) -> Option<u64> {
        let end = mapping.offset.saturating_add(mapping.end.saturating_sub(mapping.start));
        let common = |&&(start, size, _): &&(u64, u64, u64)| {
            end.min(start.saturating_add(size)).saturating_sub(start.max(mapping.offset))
        };
        let segment = self.segments.iter().max_by_key(common).filter(|s| common(s) > 0)?;
        let &(offset, _, address) = segment;
        Some(mapping.start.wrapping_sub(mapping.offset).wrapping_add(offset).wrapping_sub(address))
    }

    /// Address, size and name of the symbols of a kind.
    fn symbols(&self, kind: object::SymbolKind) -> impl Iterator<Item = (u64, u64, &'d [u8])> {
        let symbols = self.object.symbols().chain(self.object.dynamic_symbols());
        let symbols = symbols.filter(move |s| s.kind() == kind && s.is_definition());
        symbols.filter_map(|s| Some((s.address(), s.size(), s.name_bytes().ok()?)))
    }

    /// The variable that `at` is, or lies in: `name`, or `name+0x10`.
    pub(super) fn variable(&self, at: u64) -> Option<String> {
        let variables = self.variables.get_or_init(|| {
            let symbols = self.symbols(object::SymbolKind::Data);
            let mut variables: Vec<_> = symbols.filter(|(_, size, _)| *size > 0).collect();
            variables.sort_unstable();
            variables
        });
        let behind = variables.partition_point(|&(address, ..)| address <= at);
        let (address, size, name) = variables.get(behind.checked_sub(1)?)?;
        let name = demangled(name);
        match at - address {
            0 => Some(name),
            inside if inside < *size => Some(format!("{name}+{inside:#x}")),
            _ => None,
        }
    }

    fn lines(&self) -> Option<&Lines<'d>> {
        let read = || {
            let section = |name| Ok::<_, Infallible>(self.inflated.section(&self.object, name));
            let Ok(mut dwarf) = Dwarf::load(|id| section(Some(id.name())));
            dwarf.populate_abbreviations_cache(
                addr2line::gimli::AbbreviationsCacheStrategy::Duplicates,
            );
            let empty = EndianSlice::new(&[][..], LittleEndian);
            let package = self.package.as_ref().and_then(|package| {
                let section = |name| Ok(self.inflated.section(package, name));
                let load = |id: addr2line::gimli::SectionId| section(id.dwo_name());
                DwarfPackage::load::<_, addr2line::gimli::Error>(load, empty).ok()
            });
            Some(Lines { context: Context::from_dwarf(dwarf).ok()?, package })
        };
        self.lines.get_or_init(read).as_ref()
    }

    /// The functions at an address, from the innermost on.
    fn find(&self, at: u64) -> Option<FrameIter<'_, Slice<'d>>> {
        // It looks up to the address behind it, and the last one has none.
        let lines = self.lines().filter(|_| at < u64::MAX)?;
        let mut found = lines.context.find_frames(at);
        loop {
            match found {
                LookupResult::Output(frames) => return frames.ok(),
                LookupResult::Load { load, continuation } => {
                    found = continuation.resume(lines.split(&load));
                }
            }
        }
    }

    /// The function at an address, and those that are inlined there, from the outermost on; empty when nothing is known.
    pub(super) fn frames(&self, at: u64) -> Vec<Symbol> {
        let mut found: Vec<Symbol> = Vec::new();
        if let Some(mut frames) = self.find(at) {
            while let Ok(Some(frame)) = frames.next() {
                found.extend(self.symbol(&frame));
                if found.len() == MAX_INLINED {
                    break;
                }
            }
        }
        if found.is_empty() {
            let name = self.symbol_at(at).map(|name| self.name(name));
            found.extend(name.map(|name| Symbol { name, ..Symbol::default() }));
        }
        found.reverse();
        found
    }

    /// The name that the symbol table has for an address.
    fn symbol_at(&self, at: u64) -> Option<&'d [u8]> {
        let function = self.functions().partition_point(|function| function.address <= at);
        let function = &self.functions()[function.checked_sub(1)?];
        // What has no size may end anywhere; what lies behind the end of one is another, which has no name.
        (function.size == 0 || at - function.address < function.size).then_some(function.name)
    }

    /// Functions of the symbol tables, by address.
    pub(super) fn functions(&self) -> &[Function<'d>] {
        self.functions.get_or_init(|| {
            let symbols = self.symbols(object::SymbolKind::Text);
            let mut functions: Vec<_> =
                symbols.map(|(address, size, name)| Function { address, size, name }).collect();
            // Of several names, the largest function last, which is the one that is found.
            functions.sort_by(|a, b| (a.address, a.size, b.name).cmp(&(b.address, b.size, a.name)));
            functions
        })
    }

    /// How many functions were looked at, and of how many the caller is found: where there is a rule, or they keep a frame pointer by
    /// their first instructions, `push %rbp; mov %rsp,%rbp`, perhaps behind `endbr64`.
    pub(super) fn framed(&self) -> (u32, u32) {
        const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
        const FRAME: &[u8] = &[0x55, 0x48, 0x89, 0xe5];
        let large = || self.functions().iter().filter(|f| f.size >= MIN_FUNCTION_BYTES);
        let step = large().count() / MAX_FUNCTIONS + 1;
        let (mut looked_at, mut framed) = (0, 0);
        for function in large().step_by(step) {
            let offset = self.offset(function.address).and_then(|at| usize::try_from(at).ok());
            let code = offset.and_then(|at| self.file.get(at..)?.get(..8));
            let Some(code) = code else { continue };
            looked_at += 1;
            let has_frame = code.strip_prefix(ENDBR64).unwrap_or(code).starts_with(FRAME);
            framed += u32::from(has_frame || self.rule(function.address).is_some());
        }
        (looked_at, framed)
    }

    /// How a frame is left at an address; `None` where nothing is said of it.
    pub(super) fn rule(&self, at: u64) -> Option<Rule> {
        let unwinding = self.unwinding.get_or_init(|| {
            let data = |name| self.inflated.section(&self.object, Some(name));
            let address = |name| self.object.section_by_name(name).map_or(0, |s| s.address());
            let addresses = Addresses {
                eh_frame: address(".eh_frame"),
                text: address(".text"),
                got: address(".got"),
            };
            Unwinding::new(data(".eh_frame"), data(".debug_frame"), addresses)
        });
        unwinding.rule(at)
    }

    /// Where in the file the byte at this address is.
    fn offset(&self, at: u64) -> Option<u64> {
        let inside = |&&(_, size, address): &&(u64, u64, u64)| at >= address && at - address < size;
        let (offset, _, address) = self.segments.iter().find(inside)?;
        offset.checked_add(at - address)
    }

    /// The outermost of the functions that are inlined into each other at an address; else what the symbol table has.
    pub(super) fn function(&self, at: u64) -> Symbol {
        let mut outermost = None;
        if let Some(mut frames) = self.find(at) {
            while let Ok(Some(frame)) = frames.next() {
                outermost = Some(frame);
            }
        }
        outermost.as_ref().and_then(|frame| self.symbol(frame)).unwrap_or_else(|| {
            let name = self.symbol_at(at).map(|name| self.name(name)).unwrap_or_default();
            Symbol { name, ..Symbol::default() }
        })
    }

    fn symbol(&self, frame: &Frame<'_, Slice<'d>>) -> Option<Symbol> {
        let name = self.name(frame.function.as_ref()?.name.slice());
        let location = frame.location.as_ref();
        let file = location.and_then(|l| l.file).unwrap_or_default();
        Some(Symbol {
            name,
            file: self.file(file.as_bytes()),
            line: location.and_then(|l| l.line).unwrap_or(0),
        })
    }

    /// A function's name as its source has it.
    fn name(&self, mangled: &'d [u8]) -> Name {
        let mut names = self.names.borrow_mut();
        if names.len() >= MAX_KEPT {
            names.clear();
        }
        names.entry(mangled).or_insert_with(|| demangled(mangled).into()).clone()
    }

    /// A file's name.
    fn file(&self, name: &[u8]) -> Name {
        let name = cut(name, MAX_NAME_BYTES);
        let mut files = self.files.borrow_mut();
        if let Some(file) = files.get(&*name) {
            return file.clone();
        }
        if files.len() >= MAX_KEPT {
            files.clear();
        }
        let file = Name::from(name);
        files.insert(file.clone());
        file
    }
}

impl<'d> Lines<'d> {
    /// What a unit's own file would say, from the package; a file that has the name is not opened.
    fn split(&self, load: &SplitDwarfLoad<Slice<'d>>) -> Option<Arc<Dwarf<Slice<'d>>>> {
        self.package.as_ref()?.find_cu(load.dwo_id, &load.parent).ok()?.map(Arc::new)
    }
}
