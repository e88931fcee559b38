//! What a file says of its functions and its marks.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ft_trace::demangle::demangled;
use ft_trace::foreign_file::regular;
use ft_user::glob;
use ft_user::patch::state;
use object::elf::STT_GNU_IFUNC;
use object::{
    Architecture, Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SymbolFlags,
    SymbolKind,
};

use super::binary::Binary;
use super::notes::{Mark, marks};
use super::{MAX_PROBED, ProbeError};
use crate::collect::kernel::{release, version};

/// Names that are suggested where one is not found.
const NEAR: usize = 5;

/// What returns more than once, or not to where it was called.
const RETURNS: [&str; 9] = [
    "setjmp",
    "_setjmp",
    "__sigsetjmp",
    "sigsetjmp",
    "vfork",
    "__vfork",
    "getcontext",
    "swapcontext",
    "makecontext",
];

/// A program or library.
pub(super) struct Elf {
    path: PathBuf,
    file: File,
    /// Where parts of the file lie in its own address space: offset, size, address.
    segments: Vec<(u64, u64, u64)>,
    sections: Vec<String>,
    imports: Vec<String>,
    /// Functions by name and address.
    functions: Vec<(String, u64)>,
    /// It has no symbols but those for the dynamic linker.
    stripped: bool,
    marks: Vec<Mark>,
}

impl Elf {
    /// Reads a file, and its debug symbols if they are installed.
    pub(super) fn open(binary: &Binary) -> Result<Elf, ProbeError> {
        let path = &binary.path;
        let bad = || ProbeError::NotElf(path.clone());
        let file = binary.open().ok_or_else(bad)?;
        let cache = ReadCache::new(&file);
        let object = object::File::parse(&cache).map_err(|_| bad())?;
        if object.architecture() != Architecture::X86_64 {
            return Err(bad());
        }
        let segment = |s: object::Segment<'_, '_, _>| {
            let (offset, size) = s.file_range();
            (offset, size, s.address())
        };
        let own: Vec<_> = functions(object.symbols());
        let debug = debug_symbols(&object);
        let stripped = own.is_empty() && debug.is_empty();
        let mut all = own;
        all.extend(debug);
        all.extend(functions(object.dynamic_symbols()));
        let imports = object.dynamic_symbols().filter(ObjectSymbol::is_undefined);
        let imports = imports.filter_map(|s| Some(s.name().ok()?.to_owned())).collect();
        let sections = object.sections().filter_map(|s| Some(s.name().ok()?.to_owned())).collect();
        let (segments, marks) = (object.segments().map(segment).collect(), marks(&object));
        drop(cache);
        Ok(Elf {
            path: path.to_owned(),
            file,
            segments,
            sections,
            imports,
            functions: all,
            stripped,
            marks,
        })
    }

    /// It is made by Go.
    pub(super) fn is_go(&self) -> bool {
        self.sections.iter().any(|name| name.ends_with(".gopclntab"))
    }

    /// Its code throws exceptions, or panics.
    pub(super) fn unwinds(&self) -> bool {
        let throws = |name: &String| {
            let name = name.split('@').next().unwrap_or_default();
            matches!(name, "__cxa_throw" | "_Unwind_RaiseException")
        };
        self.imports.iter().any(throws)
    }

    /// Functions that fit, by name, and their offsets in the file.
    pub(super) fn functions(
        &self,
        wanted: &str,
        wish: &str,
    ) -> Result<Vec<(String, u64)>, ProbeError> {
        if self.functions.is_empty() {
            return Err(ProbeError::NoSymbols(self.path.clone()));
        }
        let is_glob = wanted.contains(['*', '?']);
        // Of several names for one function the first counts.
        let mut found: BTreeMap<u64, String> = BTreeMap::new();
        let part = own_part(wanted);
        for (symbol, address) in self.functions.iter().filter(|(s, _)| s.contains(part)) {
            let Some(name) = Names::of(symbol) else { continue };
            let Some(offset) = self.offset(*address).filter(|_| name.fit(wanted)) else { continue };
            let refused = if RETURNS.contains(&&*name.stem) {
                Some(ProbeError::Returns as fn(String) -> ProbeError)
            } else {
                self.begins_with_event(offset)
                    .then_some(ProbeError::Traced as fn(String) -> ProbeError)
            };
            match refused {
                Some(_) if is_glob => continue,
                Some(reason) => return Err(reason(name.stem)),
                None => _ = found.entry(offset).or_insert(name.stem),
            }
            if found.len() > MAX_PROBED {
                return Err(ProbeError::TooMany(wish.to_owned()));
            }
        }
        match found.is_empty() {
            true => Err(ProbeError::NoFunction {
                wish: wish.to_owned(),
                near: self.near(wanted),
                stripped: self.stripped,
            }),
            false => Ok(found.into_iter().map(|(offset, name)| (name, offset)).collect()),
        }
    }

    /// Functions whose names are nearest.
    fn near(&self, wanted: &str) -> Vec<String> {
        let wanted = wanted.trim_matches(['*', '?']).to_lowercase();
        let names = self.functions.iter().filter_map(|(symbol, _)| Some(Names::of(symbol)?.stem));
        let mut near: Vec<(usize, String)> = names
            .filter_map(|name| {
                let lower = name.to_lowercase();
                let inside = lower.contains(&wanted) || lower.len() > 3 && wanted.contains(&lower);
                // They are apart by that at least.
                let near = 2 * lower.len().abs_diff(wanted.len()) <= wanted.len();
                let apart = (inside || near).then(|| distance(&lower, &wanted))?;
                (inside || 2 * apart <= wanted.len()).then_some((apart, name))
            })
            .collect();
        near.sort();
        near.dedup();
        near.into_iter().take(NEAR).map(|(_, name)| name).collect()
    }

    /// Where a mark lies in the file: in several places, if the function that has it was inlined.
    pub(super) fn marks(
        &self,
        provider: &str,
        name: &str,
        wish: &str,
    ) -> Result<Vec<u64>, ProbeError> {
        let own = |mark: &&Mark| mark.provider == provider && mark.name == name;
        let found: Vec<&Mark> = self.marks.iter().filter(own).collect();
        if found.iter().any(|mark| mark.semaphore != 0) {
            return Err(ProbeError::Semaphore(format!("{provider}:{name}")));
        }
        let offsets: Vec<u64> = found.iter().filter_map(|m| self.offset(m.address)).collect();
        if !offsets.is_empty() {
            return Ok(offsets);
        }
        let mut near: Vec<String> =
            self.marks.iter().map(|mark| format!("{}:{}", mark.provider, mark.name)).collect();
        near.sort_by_cached_key(|mark| distance(mark, &format!("{provider}:{name}")));
        near.dedup();
        near.truncate(NEAR);
        Err(ProbeError::NoMark { wish: wish.to_owned(), near })
    }

    /// The offset in the file of what it has at an address.
    fn offset(&self, address: u64) -> Option<u64> {
        let inside = |&&(_, size, start): &&(u64, u64, u64)| {
            (start..start.saturating_add(size)).contains(&address)
        };
        let (offset, _, start) = self.segments.iter().find(inside)?;
        offset.checked_add(address - start)
    }

    /// Whether a trigger stands there ([`ft_user::event!`]): in a file it is off.
    fn begins_with_event(&self, offset: u64) -> bool {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, offset).is_ok() && state(bytes) == Some(false)
    }

    /// Whether the kernel lets the CPU do the instruction by a single step; pushes, jumps, calls and nops it does itself, since
    /// Linux 6.18 nops of five bytes, too (`arch_uprobe_analyze_insn`, arch/x86/kernel/uprobes.c).
    pub(super) fn is_stepped(&self, offset: u64) -> bool {
        let mut bytes = [0; 5];
        if self.file.read_exact_at(&mut bytes, offset).is_err() {
            return true;
        }
        match bytes {
            [0x50..=0x57 | 0x70..=0x7f | 0x90 | 0xe8 | 0xe9 | 0xeb, ..]
            | [0x40..=0x4f, 0x50..=0x57, ..]
            | [0x0f, 0x80..=0x8f, ..] => false,
            [0x0f, 0x1f, 0x44, 0, 0] => version(&release()).is_none_or(|version| version < (6, 18)),
            _ => true,
        }
    }
}

/// The names of a function.
struct Names<'s> {
    symbol: &'s str,
    /// As its language has it, with its parameters.
    whole: String,
    /// Without them, and without what the compiler has added for a copy of it.
    stem: String,
}

impl<'s> Names<'s> {
    /// `None` of a part of a function, which is not called.
    fn of(symbol: &'s str) -> Option<Names<'s>> {
        // The linker's version of it.
        let symbol = symbol.split('@').next().unwrap_or(symbol);
        if symbol.contains(".cold") || symbol.contains(".part.") || symbol.is_empty() {
            return None;
        }
        let base = symbol.find(".constprop.").or_else(|| symbol.find(".isra."));
        let base = &symbol[..base.unwrap_or(symbol.len())];
        let whole = demangled(base.as_bytes());
        const CALL: &str = "operator()";
        let own = whole.find(CALL).map_or(0, |at| at + CALL.len());
        let parameters = whole[own..].find('(').map(|at| own + at).filter(|&at| at > 0);
        let stem = whole[..parameters.unwrap_or(whole.len())].to_owned();
        Some(Names { symbol, whole, stem })
    }

    fn fit(&self, wanted: &str) -> bool {
        [self.symbol, &self.whole, &self.stem].iter().any(|name| glob::matches(wanted, name))
    }
}

/// What of a wanted name stands in the symbol, too, however its language writes symbols: the function's own name, as far as
/// it is one. Large programs have some 100,000 symbols, whose names take a second to read.
fn own_part(wanted: &str) -> &str {
    let stem = wanted.split(['(', '<']).next().unwrap_or_default();
    let part =
        stem.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').find(|p| !p.is_empty());
    // These two are abbreviated.
    part.filter(|part| !part.starts_with("operator") && *part != "closure").unwrap_or_default()
}

/// Functions among symbols. One that stands for others, which is chosen when the program starts, is none.
fn functions<'d>(symbols: impl Iterator<Item = impl ObjectSymbol<'d>>) -> Vec<(String, u64)> {
    let chosen = |flags| match flags {
        SymbolFlags::Elf { st_info, .. } => st_info.st_type() == STT_GNU_IFUNC,
        _ => false,
    };
    symbols
        .filter(|s| s.kind() == SymbolKind::Text && s.is_definition() && s.address() != 0)
        .filter(|s| !chosen(s.flags()))
        .filter_map(|s| Some((s.name().ok()?.to_owned(), s.address())))
        .collect()
}

/// Functions of the file's debug symbols, where they are installed for its build id: addresses are the same there.
fn debug_symbols<'d>(object: &impl Object<'d>) -> Vec<(String, u64)> {
    let Ok(Some(id)) = object.build_id() else { return Vec::new() };
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let Some((first, rest)) = digits.split_at_checked(2) else { return Vec::new() };
    let path = format!("/usr/lib/debug/.build-id/{first}/{rest}.debug");
    let Some(file) = regular(Path::new(&path)) else { return Vec::new() };
    let cache = ReadCache::new(&file);
    object::File::parse(&cache).map_or(Vec::new(), |object| functions(object.symbols()))
}

/// Characters to insert, leave out or replace between two texts (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_known_by_each_of_its_names() {
        let check = |symbol: &str, wanted: &str, expected| {
            let fits = Names::of(symbol).is_some_and(|names| names.fit(wanted));
            assert_eq!(fits, expected, "{symbol} {wanted}");
        };
        check("processCommand", "processCommand", true);
        check("processCommand", "processCommandAndReset", false);
        check("processCommand", "process*", true);
        check("SSL_read@@OPENSSL_3.0.0", "SSL_read", true);
        check("work.constprop.0", "work", true);
        check("work.isra.0", "work.isra.0", true);
        // Who jumps there has pushed no return address.
        check("work.cold", "work*", false);
        check("_Z4workid", "work", true);
        check("_Z4workid", "work(int, double)", true);
        check("_Z4workid", "_Z4workid", true);
        check("_ZN2ns4TypeclEi", "ns::Type::operator()", true);
    }

    #[test]
    fn a_function_of_c_is_called_what_it_is_called() {
        // As a mangled name each would be a type.
        for name in ["m", "i", "f"] {
            assert_eq!(Names::of(name).map(|names| names.stem).as_deref(), Some(name));
        }
    }

    #[test]
    fn what_a_symbol_must_have_of_a_name() {
        for (wanted, expected) in [
            ("processCommand", "processCommand"),
            ("ns::Type::work(int)", "work"),
            ("std::vec::Vec<T>::push", "Vec"),
            ("ns::Type::*", "Type"),
            ("*work?", "work"),
            ("Type::operator()", ""),
            ("*", ""),
        ] {
            assert_eq!(own_part(wanted), expected, "{wanted}");
        }
    }

    #[test]
    fn how_far_names_are_apart() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
