//! The sites of the process: what a macro leaves in an object, and how it is found again.
//!
//! Each loaded object (executable, shared library, `dlopen`ed later) that embeds the crate has a note
//! in a `PT_NOTE` segment, [`NOTE_OWNER`] and [`NOTE_TYPE`], that tells where its section of
//! [`SiteRecord`]s lies. Nothing is registered when the program starts, and in Rust nothing needs a
//! relocation. (An object of C has a constructor too, which matters when it is loaded later.)

use core::sync::atomic::{AtomicU16, Ordering::Acquire};
use std::ops::Range;

use crate::Arg;
use crate::layout::{
    self, ArgType, MAX_ARGS, NOTE_OWNER, NOTE_TYPE, SiteKind, SiteMeta, SiteRecord, Str,
};
use crate::loader;

/// A trigger in the text of this process.
#[derive(Clone, Copy)]
pub struct SiteRef {
    /// Address of the trigger's first byte.
    pub trigger: usize,
    /// What it says.
    pub meta: &'static SiteMeta,
}

/// Calls `f` for each site of each loaded object.
///
/// Objects cannot be unloaded meanwhile; `f` must not load or unload any.
pub fn for_each(mut f: impl FnMut(SiteRef)) {
    // Nothing is allocated while the linker has its lock: an allocator may wait for that in another thread.
    let mut sections = Vec::with_capacity(OBJECTS);
    loop {
        let found = loader::without_unloading(|| {
            let found = find_sections(&mut sections);
            if found <= sections.capacity() {
                for_each_of(&sections, &mut f);
            }
            found
        });
        if found <= sections.capacity() {
            return;
        }
        sections = Vec::with_capacity(2 * found);
    }
}

/// Objects with sites for which there is room at first.
const OBJECTS: usize = 64;

/// The section of sites of a loaded object.
struct Section {
    sites: Range<usize>,
    /// Addresses in its file are less than this; 0 where it is loaded at these.
    in_file: usize,
}

fn for_each_of(sections: &[Section], f: &mut impl FnMut(SiteRef)) {
    for Section { sites, in_file } in sections {
        let size = size_of::<SiteRecord>();
        let count = sites.len() / size;
        for address in (0..count).map(|i| sites.start + i * size) {
            // SAFETY: the section of a loaded object consists of whole records, 4-aligned.
            let record = unsafe { &*(address as *const SiteRecord) };
            if record.bytes as usize != size || record.version != 1 {
                // Of another version of this crate: the stride is not ours to know.
                break;
            }
            let relative =
                |field: &i32| (field as *const i32 as usize).wrapping_add_signed(*field as isize);
            let meta = relative(&record.meta) as *const SiteMeta;
            // SAFETY: the record was made by the macro, whose `SiteMeta` is a static of the same object, or is the place of
            // one that may come at run time (`dynamic`), which has no size until it is whole.
            let meta = unsafe {
                let bytes = AtomicU16::from_ptr((&raw const (*meta).bytes).cast_mut());
                // SYNC: dynamic-site
                if bytes.load(Acquire) == 0 {
                    continue;
                }
                &*meta
            };
            if !meta.is_relocated(*in_file) {
                continue;
            }
            f(SiteRef { trigger: relative(&record.site), meta });
        }
    }
}

/// Finds that of each loaded object, as far as there is room; how many there are.
fn find_sections(sections: &mut Vec<Section>) -> usize {
    sections.clear();
    let mut found = 0;
    loader::find(|info| {
        found += add_sections(info, sections);
        false
    });
    found
}

/// Adds the section of one object, if it has a note; how many there are.
fn add_sections(info: &libc::dl_phdr_info, sections: &mut Vec<Section>) -> usize {
    let headers = loader::headers(info);
    let mut found = 0;
    for header in headers.iter().filter(|header| header.p_type == libc::PT_NOTE) {
        let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        // SAFETY: a note segment is mapped as a part of the object, `p_memsz` bytes of it.
        let notes =
            unsafe { core::slice::from_raw_parts(start as *const u8, header.p_memsz as usize) };
        for section in each_section_of(notes, start) {
            let inside = headers.iter().any(|load| {
                let from = (info.dlpi_addr as usize).wrapping_add(load.p_vaddr as usize);
                load.p_type == libc::PT_LOAD
                    && from <= section.start
                    && section.end <= from.wrapping_add(load.p_memsz as usize)
            });
            if inside && sections.iter().all(|other| other.sites != section) {
                let end = |load: &libc::Elf64_Phdr| load.p_vaddr.saturating_add(load.p_memsz);
                let loads = headers.iter().filter(|load| load.p_type == libc::PT_LOAD);
                let in_file =
                    if info.dlpi_addr == 0 { 0 } else { loads.map(end).max().unwrap_or(0) };
                found += 1;
                if sections.len() < sections.capacity() {
                    sections.push(Section { sites: section, in_file: in_file as usize });
                }
            }
        }
    }
    found
}

/// The sections of [`SiteRecord`]s that the notes in `notes`, mapped at `base`, speak of, also for
/// another process: any bytes are taken, and where a section lies is for the caller to check. Empty ones
/// are left out.
pub fn sections_of(notes: &[u8], base: usize) -> Vec<Range<usize>> {
    each_section_of(notes, base).collect()
}

fn each_section_of(notes: &[u8], base: usize) -> impl Iterator<Item = Range<usize>> {
    let bounds = ours(notes, base, NOTE_TYPE).filter_map(|(desc, at)| {
        let start = at.wrapping_add_signed(word(desc, 0)? as isize);
        let stop = at.wrapping_add(4).wrapping_add_signed(word(desc, 4)? as isize);
        Some(start..stop)
    });
    let is_sound = |section: &Range<usize>| {
        section.start < section.end && section.start.is_multiple_of(align_of::<SiteRecord>())
    };
    bounds.filter(is_sound)
}

/// The places of the [`SledTable`](layout::SledTable)s that they speak of, in the same way.
pub fn sled_tables_of(notes: &[u8], base: usize) -> Vec<usize> {
    let place = |(desc, at): (&[u8], usize)| Some(at.wrapping_add_signed(word(desc, 0)? as isize));
    ours(notes, base, layout::SLEDS_NOTE).filter_map(place).collect()
}

fn word(desc: &[u8], at: usize) -> Option<i32> {
    desc.get(at..)?.first_chunk().copied().map(i32::from_ne_bytes)
}

/// The descriptors of our notes of a kind, and where they are mapped.
fn ours(mut notes: &[u8], base: usize, wanted: u32) -> impl Iterator<Item = (&[u8], usize)> {
    let end = base.wrapping_add(notes.len());
    // A note: length of owner, length of descriptor, type, owner, descriptor; both padded to four
    // bytes (elf(5)).
    let next = move || {
        let (&[a, b, c, d, e, f, g, h, i, j, k, l], rest) = notes.split_first_chunk()?;
        let owner_len = u32::from_ne_bytes([a, b, c, d]) as usize;
        let desc_len = u32::from_ne_bytes([e, f, g, h]) as usize;
        let kind = u32::from_ne_bytes([i, j, k, l]);
        let owner_end = owner_len.next_multiple_of(4);
        let owner = rest.get(..owner_len)?;
        let desc = rest.get(owner_end..)?.get(..desc_len)?;
        let desc_at = end.wrapping_sub(rest.len()).wrapping_add(owner_end);
        notes = rest.get(owner_end + desc_len.next_multiple_of(4)..).unwrap_or_default();
        Some((owner, kind, desc, desc_at))
    };
    core::iter::from_fn(next)
        .filter(move |&(owner, kind, ..)| owner == NOTE_OWNER && kind == wanted)
        .map(|(_, _, desc, at)| (desc, at))
}

impl SiteMeta {
    /// Whether the dynamic linker has made addresses of what its file has: another thread may be loading the object, whose constructor
    /// asks for its sites again. Those of an address in the file are less than `in_file`.
    fn is_relocated(&self, in_file: usize) -> bool {
        let is = |place: *const usize| {
            // SAFETY: a word of a loaded object, that the linker may write meanwhile.
            unsafe { place.read_volatile() >= in_file }
        };
        let text = |text: &Str| text.len == 0 || is((&raw const text.ptr).cast());
        [&self.name, &self.file, &self.format].into_iter().all(text)
            && (self.arg_count == 0
                || is((&raw const self.args).cast()) && self.args().iter().all(|it| text(&it.name)))
    }

    /// Name of the event, `category.name`.
    pub fn name(&self) -> &'static str {
        self.name.get()
    }

    /// Names and types of the arguments.
    pub fn args(&self) -> &'static [layout::Arg] {
        // SAFETY: made by the macro from a static array of as many arguments.
        unsafe { core::slice::from_raw_parts(self.args, self.arg_count as usize) }
    }
}

impl Str {
    pub(crate) const fn new(text: &'static str) -> Str {
        Str { ptr: text.as_ptr(), len: text.len() as u64 }
    }

    /// The text. That of a C program may be no UTF-8, and then reads as one replacement character.
    pub fn get(&self) -> &'static str {
        // SAFETY: made from a string literal, by a macro or by `new`.
        let bytes = unsafe { core::slice::from_raw_parts(self.ptr, self.len as usize) };
        core::str::from_utf8(bytes).unwrap_or("\u{fffd}")
    }
}

/// Number of arguments of a site; more than [`MAX_ARGS`] do not compile.
#[doc(hidden)]
pub const fn count(args: &[&str]) -> usize {
    assert!(args.len() <= MAX_ARGS, "an event carries at most six arguments");
    args.len()
}

/// Bytes of the code that passes so many arguments, as a power of two (`arch::frame`): up to 60 with three, up to 78 with six.
#[doc(hidden)]
pub const fn out_of_line_size(args: usize) -> u32 {
    if args > 3 { 7 } else { 6 }
}

/// Whether its events say that the thread has got what another one has given, so that their time must lie behind that:
/// acquisitions of locks, and ends of waits.
#[doc(hidden)]
pub const fn is_ordered(meta: &SiteMeta) -> bool {
    use SiteKind::{CondWake, LockAcquire, WaitEnd};
    meta.kind == LockAcquire as u16 || meta.kind == CondWake as u16 || meta.kind == WaitEnd as u16
}

/// Whether the arguments are passed in pairs: one of them is text, or may be absent.
#[doc(hidden)]
pub const fn has_pairs(args: &[ArgType]) -> bool {
    let mut i = 0;
    while i < args.len() {
        if args[i].is_text() || args[i].is_optional() {
            return true;
        }
        i += 1;
    }
    false
}

/// Name and type of one argument of a site.
#[doc(hidden)]
pub const fn arg<T: Arg>(name: &'static str) -> layout::Arg {
    layout::Arg { name: Str::new(name), ty: T::TYPE as u8, _pad: [0; 7] }
}

/// Metadata of a site. A name without a dot does not compile.
#[doc(hidden)]
pub const fn meta(
    kind: SiteKind,
    name: &'static str,
    (file, line): (&'static str, u32),
    format: &'static str,
    args: &'static [layout::Arg],
) -> SiteMeta {
    assert!(has_category(name), "the name of an event is `category.name`");
    SiteMeta {
        bytes: size_of::<SiteMeta>() as u16,
        kind: kind as u16,
        line,
        name: Str::new(name),
        file: Str::new(file),
        format: Str::new(format),
        args: args.as_ptr(),
        arg_count: args.len() as u64,
    }
}

/// Whether something stands before and after the first dot.
#[doc(hidden)]
pub const fn has_category(name: &str) -> bool {
    let name = name.as_bytes();
    let mut i = 0;
    while i < name.len() {
        if name[i] == b'.' {
            return i > 0 && i + 1 < name.len();
        }
        i += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: usize = 0x10000;

    /// A note, its owner padded.
    fn note(owner: &[u8], kind: u32, desc: &[i32]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [owner.len() as u32, 4 * desc.len() as u32, kind] {
            note.extend(word.to_ne_bytes());
        }
        note.extend(owner);
        note.resize(note.len().next_multiple_of(4), 0);
        note.extend(desc.iter().flat_map(|word| word.to_ne_bytes()));
        note
    }

    fn of_sites() -> Vec<u8> {
        note(NOTE_OWNER, NOTE_TYPE, &[0x100, 0x11c])
    }

    #[test]
    fn note_is_found_among_others() {
        // The descriptor stands 28 bytes into the note; each bound is relative to itself.
        let section = |at: usize| BASE + at + 28 + 0x100..BASE + at + 32 + 0x11c;
        let other = note(b"GNU\0", 3, &[1, 2, 3]);
        let odd = note(b"Go\0", 4, &[7]);
        assert_eq!(sections_of(&of_sites(), BASE), [section(0)]);
        assert_eq!(
            sections_of(&[other.clone(), odd, of_sites()].concat(), BASE),
            [section(28 + 20)]
        );
        assert_eq!(
            sections_of(&[of_sites(), other, of_sites()].concat(), BASE),
            [section(0), section(36 + 28)]
        );
    }

    #[test]
    fn the_note_of_sleds_is_no_note_of_sites() {
        let of_sleds = note(NOTE_OWNER, layout::SLEDS_NOTE, &[0x100]);
        let both = [of_sites(), of_sleds.clone()].concat();
        assert_eq!(sled_tables_of(&both, BASE), [BASE + 36 + 28 + 0x100]);
        assert_eq!(sections_of(&both, BASE).len(), 1);
        assert_eq!(sled_tables_of(&of_sites(), BASE), []);
        for keep in 0..of_sleds.len() {
            assert_eq!(sled_tables_of(&of_sleds[..keep], BASE), [], "cut after {keep} bytes");
        }
    }

    #[test]
    fn note_of_something_else_is_passed_over() {
        for other in [
            note(b"FeatherTracf\0", NOTE_TYPE, &[0x100, 0x11c]),
            note(NOTE_OWNER, NOTE_TYPE + 1, &[0x100, 0x11c]),
            note(NOTE_OWNER, NOTE_TYPE, &[0x100]),
            // An empty section, one that ends before it begins, and one that is not aligned.
            note(NOTE_OWNER, NOTE_TYPE, &[0x100, 0xfc]),
            note(NOTE_OWNER, NOTE_TYPE, &[0x100, 0]),
            note(NOTE_OWNER, NOTE_TYPE, &[0x101, 0x11c]),
        ] {
            assert_eq!(sections_of(&other, BASE), []);
        }
    }

    #[test]
    fn damaged_notes_are_survived() {
        let whole = of_sites();
        for keep in 0..whole.len() {
            assert_eq!(sections_of(&whole[..keep], BASE), [], "cut after {keep} bytes");
        }
        for at in [0, 4] {
            let mut long = whole.clone();
            long[at..at + 4].fill(0xff);
            assert_eq!(sections_of(&long, BASE), []);
        }
    }

    #[test]
    fn name_needs_a_category() {
        for (name, expected) in [
            ("a.b", true),
            ("a.b.c", true),
            ("a", false),
            ("", false),
            (".b", false),
            ("a.", false),
        ] {
            assert_eq!(has_category(name), expected, "{name:?}");
        }
    }
}
