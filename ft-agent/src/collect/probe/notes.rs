//! The marks that a program has for probes, by its notes (`<sys/sdt.h>` of SystemTap).

use object::{Object, ObjectSection};

/// Type of a note that tells of a mark.
const STAPSDT: u32 = 3;

/// A mark that a program has for probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) address: u64,
    pub(super) semaphore: u64,
    pub(super) provider: String,
    pub(super) name: String,
}

/// The marks that its notes tell of.
pub(super) fn marks<'d>(object: &impl Object<'d>) -> Vec<Mark> {
    let section = |name| object.section_by_name(name);
    let Some(data) = section(".note.stapsdt").and_then(|s| s.data().ok()) else {
        return Vec::new();
    };
    // An address is given next to that of this section, in case that both were moved.
    let base = section(".stapsdt.base").map(|s| s.address());
    parse_notes(data, base)
}

/// Reads notes: sizes of name and content, type; both padded to four bytes. What is cut short ends the list.
fn parse_notes(mut notes: &[u8], base: Option<u64>) -> Vec<Mark> {
    let mut marks = Vec::new();
    while let Some((mark, rest)) = next_note(notes, base) {
        marks.extend(mark);
        notes = rest;
    }
    marks
}

fn next_note(notes: &[u8], base: Option<u64>) -> Option<(Option<Mark>, &[u8])> {
    let word = |at: usize| Some(u32::from_le_bytes(*notes.get(at..)?.first_chunk()?));
    let (name_bytes, bytes, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
    let name = notes.get(12..12usize.checked_add(name_bytes)?)?;
    let begin = 12 + name_bytes.next_multiple_of(4);
    let content = notes.get(begin..begin.checked_add(bytes)?)?;
    let rest = notes.get(begin + bytes.next_multiple_of(4)..).unwrap_or_default();
    let mark = (name == b"stapsdt\0" && kind == STAPSDT).then(|| mark(content, base)).flatten();
    Some((mark, rest))
}

/// Address, that of the base, and of the semaphore; provider, name and arguments, each with its NUL.
fn mark(content: &[u8], base: Option<u64>) -> Option<Mark> {
    let address = |i: usize| Some(u64::from_le_bytes(*content.get(8 * i..)?.first_chunk()?));
    let moved = base.map_or(0, |base| base.wrapping_sub(address(1).unwrap_or(base)));
    let mut texts = content.get(24..)?.split(|&byte| byte == 0);
    let mut text = || Some(String::from_utf8_lossy(texts.next()?).into_owned());
    Some(Mark {
        address: address(0)?.wrapping_add(moved),
        semaphore: address(2)?,
        provider: text()?,
        name: text()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(provider: &str, name: &str, address: u64, semaphore: u64) -> Vec<u8> {
        let mut content: Vec<u8> =
            [address, 0x100, semaphore].into_iter().flat_map(u64::to_le_bytes).collect();
        content.extend(format!("{provider}\0{name}\08@%rax\0").bytes());
        let mut note: Vec<u8> =
            [8, content.len() as u32, STAPSDT].into_iter().flat_map(u32::to_le_bytes).collect();
        note.extend(b"stapsdt\0");
        note.extend(&content);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    #[test]
    fn marks_are_read_from_notes_that_may_be_damaged() {
        let notes = [note("http", "begin", 0x1000, 0), note("http", "end", 0x2000, 0x40)].concat();
        let found = parse_notes(&notes, Some(0x180));
        let mark = |name: &str, address, semaphore| Mark {
            address,
            semaphore,
            provider: "http".into(),
            name: name.into(),
        };
        assert_eq!(found, [mark("begin", 0x1080, 0), mark("end", 0x2080, 0x40)]);
        assert_eq!(parse_notes(&notes, None)[0].address, 0x1000);
        for length in 0..notes.len() {
            assert!(parse_notes(&notes[..length], None).len() <= 2);
        }
        for at in 0..notes.len() {
            let mut damaged = notes.clone();
            damaged[at] = 0xff;
            parse_notes(&damaged, None);
        }
    }
}
