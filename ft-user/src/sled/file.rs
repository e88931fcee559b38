//! What the file of an object tells that is not mapped: where its sections of sleds lie, and what its functions are called.
//!
//! The file may be another one by now, or damaged: what is read is bounded, and an object without sleds costs three reads.

use std::ops::Range;

use crate::kernel::File;

/// Most bytes of a table of symbols, and of their names, that are read: of larger ones the functions are unnamed.
///
/// Limit: all its functions are switched as `fn.unnamed`; the long one by the beginning of its name; reports have the
/// full names.
/// Shown by: `a_long_name_is_cut_between_characters`.
const MAX_SYMBOL_BYTES: u64 = 256 << 20;

/// Most bytes of a name that are kept.
///
/// Limit: as `MAX_SYMBOL_BYTES`.
const MAX_NAME_BYTES: usize = 1024;

// elf(5), the 64-bit forms.
const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const SHF_ALLOC: u64 = 2;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

/// Sleds and symbols of a file.
pub(super) struct Contents {
    /// Addresses of the section `xray_instr_map`, relative to where the object is loaded; empty where there is none.
    pub(super) map: Range<u64>,
    /// The same of `__patchable_function_entries`.
    pub(super) entries: Range<u64>,
    pub(super) symbols: Symbols,
}

/// Names of functions by their addresses.
#[derive(Default)]
pub(super) struct Symbols {
    /// Address, and where the name stands; by address, several names of one in the order of the file.
    by_address: Vec<(u64, u32)>,
    names: Vec<u8>,
}

/// What is used of a section header.
struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    bytes: u64,
    link: u32,
}

impl Contents {
    /// What the file tells, if it is that of an object with these headers and there are sleds.
    pub(super) fn of(file: &File, headers: &[libc::Elf64_Phdr]) -> Option<Contents> {
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0).ok()?;
        // Magic, 64-bit, little-endian.
        if !header.starts_with(b"\x7fELF\x02\x01") || !has_headers(file, &header, headers)? {
            return None;
        }
        if usize::from(half(&header, 58)?) != SECTION_BYTES {
            return None;
        }
        let bytes = u64::from(half(&header, 60)?) * SECTION_BYTES as u64;
        let table = read(file, long(&header, 40)?, bytes)?;
        let sections: Vec<Section> =
            table.chunks_exact(SECTION_BYTES).filter_map(Section::of).collect();
        let names = sections.get(usize::from(half(&header, 62)?))?;
        let names = read(file, names.offset, names.bytes)?;
        let named = |name| {
            let is_it = |section: &&Section| {
                section.flags & SHF_ALLOC != 0 && text(&names, section.name as usize) == Some(name)
            };
            let section = sections.iter().find(is_it)?;
            Some(section.address..section.address.checked_add(section.bytes)?)
        };
        let [map, entries] = ["xray_instr_map", "__patchable_function_entries"].map(named);
        if map.is_none() && entries.is_none() {
            return None;
        }
        let [map, entries] = [map, entries].map(Option::unwrap_or_default);
        let of_kind = |kind| sections.iter().find(|section| section.kind == kind);
        // What was stripped has the second alone.
        let symbols = of_kind(SHT_SYMTAB).or_else(|| of_kind(SHT_DYNSYM));
        let symbols = symbols
            .and_then(|symbols| Symbols::of(file, symbols, sections.get(symbols.link as usize)?));
        Some(Contents { map, entries, symbols: symbols.unwrap_or_default() })
    }
}

impl Symbols {
    fn of(file: &File, table: &Section, names: &Section) -> Option<Symbols> {
        let (table, names) =
            (read(file, table.offset, table.bytes)?, read(file, names.offset, names.bytes)?);
        let function = |symbol: &[u8]| {
            let is_function = matches!(symbol[4] & 0xf, STT_FUNC | STT_GNU_IFUNC);
            let is_here = is_function && half(symbol, 6)? != 0;
            is_here.then_some((long(symbol, 8)?, word(symbol, 0)?))
        };
        let mut by_address: Vec<_> =
            table.chunks_exact(SYMBOL_BYTES).filter_map(function).collect();
        by_address.sort_by_key(|&(address, _)| address);
        Some(Symbols { by_address, names })
    }

    /// Where the names of this address stand.
    fn at(&self, address: u64) -> impl Iterator<Item = u32> {
        let first = self.by_address.partition_point(|&(at, _)| at < address);
        let rest = &self.by_address[first..];
        rest.iter().take_while(move |&&(at, _)| at == address).map(|&(_, name)| name)
    }

    /// Whether a function begins at this address.
    pub(super) fn has(&self, address: u64) -> bool {
        self.at(address).next().is_some()
    }

    /// Whether one of the names of the function that begins at this address is one of these.
    pub(super) fn has_name_of(&self, address: u64, names: &[&str]) -> bool {
        let mut own = self.at(address).filter_map(|at| text(&self.names, at as usize));
        own.any(|name| names.contains(&name))
    }

    /// The name of the function that begins at this address, if it has one: of several the first in the file; cut to 1024
    /// bytes.
    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let name = text(&self.names, self.at(address).next()? as usize)?;
        let end =
            (0..=name.len().min(MAX_NAME_BYTES)).rev().find(|&end| name.is_char_boundary(end));
        Some(&name[..end?]).filter(|name| !name.is_empty())
    }
}

impl Section {
    fn of(header: &[u8]) -> Option<Section> {
        Some(Section {
            name: word(header, 0)?,
            kind: word(header, 4)?,
            flags: long(header, 8)?,
            address: long(header, 16)?,
            offset: long(header, 24)?,
            bytes: long(header, 32)?,
            link: word(header, 40)?,
        })
    }
}

/// Whether the file has the program headers that were mapped: it is still the one that was loaded, or of the same layout.
fn has_headers(file: &File, header: &[u8], headers: &[libc::Elf64_Phdr]) -> Option<bool> {
    let mapped = super::bytes(headers);
    if usize::from(half(header, 54)?) * usize::from(half(header, 56)?) != mapped.len() {
        return Some(false);
    }
    Some(read(file, long(header, 32)?, mapped.len() as u64)? == mapped)
}

fn read(file: &File, at: u64, bytes: u64) -> Option<Vec<u8>> {
    // More than the file has is not asked for, whatever it says.
    if bytes > MAX_SYMBOL_BYTES || at.checked_add(bytes)? > file.facts().ok()?.st_size as u64 {
        return None;
    }
    let mut found = vec![0; bytes as usize];
    file.read_exact_at(&mut found, at).ok()?;
    Some(found)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The text at `at`, up to its NUL.
fn text(names: &[u8], at: usize) -> Option<&str> {
    let rest = names.get(at..)?;
    core::str::from_utf8(rest.split(|&byte| byte == 0).next()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_addresses() {
        let names = b"\0first\0caf\xc3\xa9\0\xff\0".to_vec();
        let by_address = vec![(0x10, 1), (0x10, 7), (0x20, 7), (0x30, 13), (0x40, 0), (0x50, 99)];
        let symbols = Symbols { by_address, names };
        // Of several names one is told, and each is its own.
        let is = |name| symbols.has_name_of(0x10, &["other", name]);
        assert_eq!(["first", "café", "fir", ""].map(is), [true, true, false, false]);
        let name = |address| symbols.name(address);
        assert_eq!((name(0x10), name(0x20)), (Some("first"), Some("café")));
        // Between functions, no UTF-8, no name, and none in the table.
        assert_eq!([0x11, 0x30, 0x40, 0x50].map(name), [None; 4]);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let long = format!("a{}", "é".repeat(MAX_NAME_BYTES));
        let symbols = Symbols { by_address: vec![(0, 0)], names: long.clone().into_bytes() };
        let name = symbols.name(0).unwrap();
        assert_eq!((name.len(), long.starts_with(name)), (MAX_NAME_BYTES - 1, true));
    }

    #[test]
    fn a_file_that_is_cut_or_another_one_tells_nothing() {
        let exe = std::fs::read("/proc/self/exe").unwrap();
        let path = std::env::temp_dir().join(format!("ft-sled-file-{}", std::process::id()));
        for keep in [0, 3, 63, 64, 1000, exe.len() / 2, exe.len()] {
            std::fs::write(&path, &exe[..keep]).unwrap();
            let file = File::open(path.to_str().unwrap().as_bytes(), libc::O_RDONLY).unwrap();
            assert!(Contents::of(&file, &[]).is_none(), "{keep} bytes");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
