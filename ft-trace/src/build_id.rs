//! What the files that a process has mapped say of themselves: their build ids, and which addresses are theirs.
//!
//! A file holds what a program wrote: of it a few hundred bytes are read, at most `MAX_NOTES_BYTES`.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::foreign_file::ForeignFile;
use crate::spool::mapping::Mapping;

/// Most bytes of notes that are read; usual are some 100.
///
/// Limit: as `MAX_MAPS_BYTES` of `proof.rs`.
const MAX_NOTES_BYTES: u64 = 64 << 10;

/// Most program headers that are looked at; usual are 10 to 14.
///
/// Limit: as `MAX_MAPS_BYTES` of `proof.rs`.
const MAX_HEADERS: u64 = 64;

/// Longest build id that is taken, bytes; usual are 16 or 20.
///
/// Limit: as `MAX_MAPS_BYTES` of `proof.rs`.
const MAX_ID_BYTES: usize = 64;

// elf(5), the 64-bit forms.
const ELF_HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;

/// Build id, and the address that the file gives to the first byte of the mapping; empty and `None` where the file
/// says neither, or cannot be read.
pub fn of_mapped(file: &ForeignFile, mapping: &Mapping) -> (String, Option<u64>) {
    let Some(file) = file.open() else { return Default::default() };
    let headers = program_headers(&file).unwrap_or_default();
    let id = of_headers(&file, &headers).unwrap_or_default();
    (id, address(&headers, mapping))
}

/// The build id in the notes of a 64-bit ELF file, in hexadecimal digits.
pub fn of_opened(file: &File) -> Option<String> {
    of_headers(file, &program_headers(file)?)
}

/// A program header, as far as it is needed here.
struct ProgramHeader {
    kind: u32,
    offset: u64,
    address: u64,
    bytes: u64,
    align: u64,
}

fn read_at(file: &File, offset: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    file.read_exact_at(&mut buffer, offset).ok().map(|()| buffer)
}

/// The first program headers of a 64-bit ELF file.
fn program_headers(file: &File) -> Option<Vec<ProgramHeader>> {
    let header = read_at(file, 0, ELF_HEADER_BYTES)?;
    // Magic, 64-bit, little-endian.
    if !header.starts_with(b"\x7fELF\x02\x01")
        || usize::from(u16_at(&header, 54)?) != PROGRAM_HEADER_BYTES
    {
        return None;
    }
    let (table, count) = (u64_at(&header, 32)?, u64::from(u16_at(&header, 56)?));
    let header = |number| {
        let offset = table.checked_add(number * PROGRAM_HEADER_BYTES as u64)?;
        let header = read_at(file, offset, PROGRAM_HEADER_BYTES)?;
        Some(ProgramHeader {
            kind: u32_at(&header, 0)?,
            offset: u64_at(&header, 8)?,
            address: u64_at(&header, 16)?,
            bytes: u64_at(&header, 32)?,
            align: u64_at(&header, 48)?,
        })
    };
    Some((0..count.min(MAX_HEADERS)).map_while(header).collect())
}

fn of_headers(file: &File, headers: &[ProgramHeader]) -> Option<String> {
    let mut left = MAX_NOTES_BYTES;
    for header in headers.iter().filter(|header| header.kind == PT_NOTE) {
        let Some(rest) = left.checked_sub(header.bytes) else { continue };
        left = rest;
        let align = if header.align == 8 { 8 } else { 4 };
        let notes = read_at(file, header.offset, header.bytes as usize);
        if let Some(id) = notes.and_then(|notes| build_id(&notes, align)) {
            return Some(id);
        }
    }
    None
}

/// The address of the first byte of a mapping by its segment. A mapping begins with a page, a segment need not, so the
/// end of another one may stand in it too: the one that fills it most counts.
fn address(headers: &[ProgramHeader], mapping: &Mapping) -> Option<u64> {
    let end = mapping.offset.saturating_add(mapping.end.saturating_sub(mapping.start));
    let common = |header: &&ProgramHeader| {
        let last = end.min(header.offset.saturating_add(header.bytes));
        last.saturating_sub(header.offset.max(mapping.offset))
    };
    let segments = headers.iter().filter(|header| header.kind == PT_LOAD);
    let segment = segments.max_by_key(common).filter(|segment| common(segment) > 0)?;
    Some(mapping.offset.wrapping_sub(segment.offset).wrapping_add(segment.address))
}

/// The build id among notes whose fields are aligned to `align` bytes.
fn build_id(mut notes: &[u8], align: usize) -> Option<String> {
    const NOTE_HEADER_BYTES: usize = 12;
    loop {
        let [name_bytes, bytes] = [u32_at(notes, 0)? as usize, u32_at(notes, 4)? as usize];
        let kind = u32_at(notes, 8)?;
        let name = notes.get(NOTE_HEADER_BYTES..NOTE_HEADER_BYTES.checked_add(name_bytes)?)?;
        let begin = (NOTE_HEADER_BYTES + name_bytes).checked_next_multiple_of(align)?;
        let end = begin.checked_add(bytes)?;
        let content = notes.get(begin..end)?;
        if name == b"GNU\0" && kind == NT_GNU_BUILD_ID && content.len() <= MAX_ID_BYTES {
            return Some(content.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(end.checked_next_multiple_of(align)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use object::Object as _;

    use super::*;
    use crate::foreign_file::regular;

    fn of_file(path: &Path) -> Option<String> {
        of_opened(&regular(path)?)
    }

    /// An ELF file with one program header, for notes of `bytes` bytes at 4096.
    fn elf(bytes: u64, notes: &[u8]) -> tempfile::NamedTempFile {
        let mut header = [0; ELF_HEADER_BYTES + PROGRAM_HEADER_BYTES];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[32..40].copy_from_slice(&(ELF_HEADER_BYTES as u64).to_le_bytes());
        header[54..56].copy_from_slice(&(PROGRAM_HEADER_BYTES as u16).to_le_bytes());
        header[56..58].copy_from_slice(&1u16.to_le_bytes());
        let segment = &mut header[ELF_HEADER_BYTES..];
        segment[..4].copy_from_slice(&PT_NOTE.to_le_bytes());
        segment[8..16].copy_from_slice(&4096u64.to_le_bytes());
        segment[32..40].copy_from_slice(&bytes.to_le_bytes());
        segment[48..56].copy_from_slice(&4u64.to_le_bytes());
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all_at(&header, 0).unwrap();
        file.as_file().write_all_at(notes, 4096).unwrap();
        file
    }

    fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for field in [name.len() as u32, content.len() as u32, kind] {
            note.extend(field.to_le_bytes());
        }
        for part in [name, content] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_id_of_this_program_is_the_one_that_others_read() {
        let own = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&own).unwrap();
        let expected = object::File::parse(&*bytes).unwrap().build_id().unwrap();
        let expected: Option<String> =
            expected.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect());
        assert_eq!(of_file(&own), expected);
    }

    #[test]
    fn an_address_is_that_of_the_segment_that_fills_the_mapping() {
        let load = |offset, bytes, address| ProgramHeader {
            kind: PT_LOAD,
            offset,
            address,
            bytes,
            align: 0x1000,
        };
        // As lld lays them out: the page at 0x1000 has the end of the one and the begin of the other.
        let headers = [load(0, 0x1200, 0x20_0000), load(0x1200, 0x3000, 0x20_2200)];
        let of = |offset, bytes| {
            let mapping = Mapping { start: 0, end: bytes, offset, ..Mapping::default() };
            address(&headers, &mapping)
        };
        assert_eq!(of(0, 0x2000), Some(0x20_0000));
        assert_eq!(of(0x1000, 0x4000), Some(0x20_2000));
        assert_eq!(of(0x3000, 0x1000), Some(0x20_4000));
        assert_eq!((of(0x8000, 0x1000), of(u64::MAX, u64::MAX)), (None, None));
    }

    #[test]
    fn an_id_is_found_behind_other_notes() {
        let mut notes = note(b"stapsdt\0", 3, &[1; 5]);
        notes.extend(note(b"GNU\0", 5, &[2; 16]));
        notes.extend(note(b"GNU\0", 3, &[0xab, 0, 1]));
        let file = elf(notes.len() as u64, &notes);
        assert_eq!(of_file(file.path()).as_deref(), Some("ab0001"));
    }

    #[test]
    fn what_is_too_long_is_not_read() {
        let note = note(b"GNU\0", 3, &[1; 20]);
        // A note of 3 GiB, sparse; nobody reads it to find that out.
        let file = elf(3 << 30, &note);
        file.as_file().set_len(4 << 30).unwrap();
        assert_eq!(of_file(file.path()), None);
        assert_eq!(build_id(&super::tests::note(b"GNU\0", 3, &[1; MAX_ID_BYTES + 1]), 4), None);
    }

    #[test]
    fn damaged_notes_have_no_id() {
        let whole = note(b"GNU\0", 3, &[7; 20]);
        for length in 0..whole.len() {
            assert_eq!(build_id(&whole[..length], 4), None, "{length}");
        }
        for at in 0..8 {
            let mut notes = whole.clone();
            notes[at] = 0xff;
            assert_eq!(build_id(&notes, 4), None, "{at}");
        }
        assert_eq!(of_file(elf(u64::MAX, &whole).path()), None);
    }
}
