//! Finds the sites of a running process from outside, by the notes of its objects.
//!
//! The directory of a process lists the sites that were there when it started tracing, or last switched
//! any itself. This finds those of libraries that were loaded later, too: each mapping of the start of a
//! file is looked at as an ELF object, its notes lead to its section of [`SiteRecord`]s, and these to
//! their [`SiteMeta`]s.
//!
//! Rule: every address comes from the process, so every one is hostile. Nothing is dereferenced, only
//! read through `/proc/PID/mem`, where a wrong address is an error; lengths are bounded before a buffer
//! is made, and so are the numbers of objects, sections and records; a trigger must lie in the executable
//! part of the object that declares it, and its metadata in the object; a sled (`outside/sleds.rs`), which another object declares, in
//! what is executable at all. What does not hold is left out. The process
//! goes on meanwhile, so an object that is just being unloaded may be found in part: whoever writes to a trigger checks
//! its byte again.

mod sleds;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use ft_trace::bytes::{u16_at, u32_at, u64_at};
use ft_trace::mounts::Mounts;
use ft_user::directory::MAX_STRING_BYTES;
use ft_user::layout::{
    Arg, ArgType, MAX_ARGS, PAGE, SiteKind, SiteMeta, SiteRecord, Sled, TRIGGER_BYTES, commit,
};
use ft_user::site;

use super::maps;

/// Most objects of a process that are looked at.
///
/// Limit: as `MAX_SITES`.
const MAX_OBJECTS: usize = 1 << 12;

/// Most bytes of notes of an object that are read; usual are some 100.
///
/// Limit: as `MAX_SITES`.
const MAX_NOTES_BYTES: u64 = 64 << 10;

/// Most sections of an object that are looked at; usual is one.
///
/// Limit: as `MAX_SITES`.
const MAX_SECTIONS: usize = 16;

/// Most program headers of an object; usual are 10 to 14.
///
/// Limit: as `MAX_SITES`.
const MAX_HEADERS: usize = 64;

/// Most sites of a process, good ones or not. What is beyond is not looked for.
///
/// Limit: further sites are not listed and cannot be switched from outside; no figure depends on it.
/// Shown by: not shown: no figure.
pub const MAX_SITES: usize = 1 << 16;

/// Most bytes of text of all of them: one description can serve many triggers.
///
/// Limit: as `MAX_SITES`.
const MAX_TEXT_BYTES: usize = 16 << 20;

// elf(5), the 64-bit forms.
const ELF_HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const PF_X: u32 = 1;

/// A trigger and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Address of the trigger's first byte.
    pub address: u64,
    /// Address of the metadata; its low half is the [key](Site::key).
    pub meta: u64,
    /// What the site means.
    pub kind: SiteKind,
    /// Source line.
    pub line: u32,
    /// Dotted name.
    pub name: String,
    /// Source file.
    pub file: String,
    /// Format string, may be empty.
    pub format: String,
    /// Types and names of the arguments.
    pub args: Vec<(ArgType, String)>,
    /// It is a sled, and no trigger.
    pub sled: Option<Sled>,
}

impl Site {
    /// Key of its events.
    pub fn key(&self) -> u32 {
        commit::key(self.meta)
    }

    fn text_bytes(&self) -> usize {
        let args = self.args.iter().map(|(_, name)| name.len()).sum::<usize>();
        self.name.len() + self.file.len() + self.format.len() + args
    }
}

/// The sites of all objects that a process has mapped now that has these mounts, by address.
///
/// # Errors
///
/// When the process is gone, or its memory may not be read (ptrace(2), `PTRACE_MODE_READ` and `_ATTACH`).
pub fn sites(pid: i32, mounts: &Mounts) -> io::Result<Vec<Site>> {
    let maps = maps::read(pid)?;
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let slow = answered_by_programs(&maps, mounts);
    Ok(scan(&maps, &|at, buffer| {
        let end = at.saturating_add(buffer.len() as u64);
        let is_slow = slow.iter().any(|range| range.start < end && at < range.end);
        !is_slow && memory.read_exact_at(buffer, at).is_ok()
    }))
}

/// What is mapped of files for which programs answer: to read it may take for ever.
fn answered_by_programs(maps: &str, mounts: &Mounts) -> Vec<Range<u64>> {
    if mounts.ask_no_program() {
        return Vec::new();
    }
    let range = |line: &str| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let (major, minor) = fields.nth(2)?.split_once(':')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let device = (number(major)? as u32, number(minor)? as u32);
        mounts.ask_a_program_of(device).then_some(number(start)?..number(end)?)
    };
    maps.lines().filter_map(range).collect()
}

/// Where the starts of files lie in `maps` (proc_pid_maps(5)): this changes when a process loads or unloads an
/// object.
pub fn objects(maps: &str) -> Vec<u64> {
    maps.lines().filter_map(object_start).take(MAX_OBJECTS).collect()
}

/// See [`scan`].
type Read<'a> = dyn Fn(u64, &mut [u8]) -> bool + 'a;

/// The sites of the objects in `maps`, which has the form of `/proc/PID/maps` (proc_pid_maps(5)), by
/// address. `read` fills a buffer from an address of the process; false when that cannot be done.
pub fn scan(maps: &str, read: &Read<'_>) -> Vec<Site> {
    let (mut sites, mut left) =
        (Vec::new(), Left { records: MAX_SITES, text_bytes: MAX_TEXT_BYTES });
    let text = maps::executable(maps);
    for start in maps.lines().filter_map(object_start).take(MAX_OBJECTS) {
        if let Some(object) = Object::at(start, read) {
            object.sites(read, &mut left, &mut sites);
            object.sleds(&text, read, &mut left, &mut sites);
        }
    }
    sites.sort_by_key(|site| site.address);
    sites.dedup_by_key(|site| site.address);
    sites
}

/// Where a line of maps places the first byte of a file.
fn object_start(line: &str) -> Option<u64> {
    let mut fields = line.split_whitespace();
    let (start, _) = fields.next()?.split_once('-')?;
    let [permissions, offset, _device, inode] = [(); 4].map(|()| fields.next().unwrap_or_default());
    let first = u64::from_str_radix(offset, 16) == Ok(0);
    // The vdso has no inode, and no sites.
    let file = inode.parse::<u64>().is_ok_and(|inode| inode != 0);
    (permissions.starts_with('r') && first && file)
        .then(|| u64::from_str_radix(start, 16).ok())
        .flatten()
}

/// What may still be looked at of a process.
struct Left {
    records: usize,
    text_bytes: usize,
}

/// A mapped ELF object.
struct Object {
    /// Mapped parts.
    loads: Vec<Range<u64>>,
    /// Those with program text.
    text: Vec<Range<u64>>,
    notes: Vec<Range<u64>>,
}

impl Object {
    /// The object whose first byte is mapped at `start`; `None` when there is none.
    fn at(start: u64, read: &Read<'_>) -> Option<Object> {
        let mut header = [0; ELF_HEADER_BYTES];
        // Magic, 64-bit, little-endian.
        if !read(start, &mut header) || !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let count = usize::from(u16_at(&header, 56)?);
        if usize::from(u16_at(&header, 54)?) != PROGRAM_HEADER_BYTES || count > MAX_HEADERS {
            return None;
        }
        let mut table = vec![0; count * PROGRAM_HEADER_BYTES];
        if !read(start.checked_add(u64_at(&header, 32)?)?, &mut table) {
            return None;
        }
        let headers: Vec<Header> =
            table.chunks_exact(PROGRAM_HEADER_BYTES).filter_map(Header::read).collect();
        // The part that holds the start of the file tells how far the object was moved.
        let first = headers.iter().find(|h| h.kind == PT_LOAD && h.offset < PAGE)?;
        let moved = start.wrapping_sub(first.address & !(PAGE - 1));
        let place = |h: &Header| {
            let from = moved.wrapping_add(h.address);
            Some(from..from.checked_add(h.bytes)?)
        };
        let of = |kind, flags| {
            let wanted = move |h: &&Header| h.kind == kind && h.flags & flags == flags;
            headers.iter().filter(wanted).filter_map(place).collect()
        };
        Some(Object { loads: of(PT_LOAD, 0), text: of(PT_LOAD, PF_X), notes: of(PT_NOTE, 0) })
    }

    /// Adds the sites of this object, and takes the records that it has looked at from `left`.
    fn sites(&self, read: &Read<'_>, left: &mut Left, found: &mut Vec<Site>) {
        let mut metas = HashMap::new();
        for section in self.sections(read) {
            let size = size_of::<SiteRecord>() as u64;
            for at in section.clone().step_by(size_of::<SiteRecord>()) {
                if left.records == 0 || section.end - at < size {
                    break;
                }
                left.records -= 1;
                // Of another version of ft-user: the stride is not ours to know.
                let Some((trigger, meta)) = record(at, read) else { break };
                if !inside(&self.text, trigger, TRIGGER_BYTES)
                    || !inside(&self.loads, meta, size_of::<SiteMeta>() as u64)
                {
                    continue;
                }
                let known = metas.entry(meta).or_insert_with(|| describe(meta, read));
                let Some(site) = known else { continue };
                let Some(rest) = left.text_bytes.checked_sub(site.text_bytes()) else { return };
                left.text_bytes = rest;
                found.push(Site { address: trigger, ..site.clone() });
            }
        }
    }

    /// The segments of notes of this object: address and bytes.
    fn notes(&self, read: &Read<'_>) -> Vec<(u64, Vec<u8>)> {
        let mut left = MAX_NOTES_BYTES;
        let notes = self.notes.iter().filter_map(|note| {
            let bytes = note.end - note.start;
            left = left.checked_sub(bytes)?;
            let mut notes = vec![0; bytes as usize];
            read(note.start, &mut notes).then_some((note.start, notes))
        });
        notes.collect()
    }

    /// The sections of sites that the notes of this object tell, each once, inside of the object.
    fn sections(&self, read: &Read<'_>) -> Vec<Range<u64>> {
        let mut sections = Vec::new();
        for (note, notes) in self.notes(read) {
            for section in site::sections_of(&notes, note as usize) {
                if sections.len() == MAX_SECTIONS {
                    return sections;
                }
                let section = section.start as u64..section.end as u64;
                let bytes = section.end - section.start;
                if inside(&self.loads, section.start, bytes) && !sections.contains(&section) {
                    sections.push(section);
                }
            }
        }
        sections
    }
}

/// What is used of a program header.
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    bytes: u64,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Header> {
        Some(Header {
            kind: u32_at(bytes, 0)?,
            flags: u32_at(bytes, 4)?,
            offset: u64_at(bytes, 8)?,
            address: u64_at(bytes, 16)?,
            bytes: u64_at(bytes, 40)?,
        })
    }
}

/// `bytes` bytes from `at` lie in one of the ranges.
fn inside(ranges: &[Range<u64>], at: u64, bytes: u64) -> bool {
    at.checked_add(bytes).is_some_and(|end| ranges.iter().any(|r| r.start <= at && end <= r.end))
}

/// Addresses of trigger and metadata from the record at `at`; `None` when it is none of this version.
fn record(at: u64, read: &Read<'_>) -> Option<(u64, u64)> {
    let mut bytes = [0; size_of::<SiteRecord>()];
    let whole = read(at, &mut bytes)
        && u16_at(&bytes, 0)? as usize == size_of::<SiteRecord>()
        && u16_at(&bytes, 2)? == 1;
    // Each is relative to its own field.
    let target = |offset: usize| {
        let distance = u32_at(&bytes, offset)? as i32;
        Some(at.wrapping_add(offset as u64).wrapping_add_signed(distance.into()))
    };
    if whole { Some((target(4)?, target(8)?)) } else { None }
}

/// The metadata at `meta`, with the trigger still missing.
fn describe(meta: u64, read: &Read<'_>) -> Option<Site> {
    // In the order of the fields of `SiteMeta`.
    const { assert!(size_of::<SiteMeta>() == 72 && size_of::<Arg>() == 24) };
    let mut bytes = [0; 72];
    if !read(meta, &mut bytes) || usize::from(u16_at(&bytes, 0)?) < bytes.len() {
        return None;
    }
    let text = |offset| string(u64_at(&bytes, offset)?, u64_at(&bytes, offset + 8)?, read);
    let count = usize::try_from(u64_at(&bytes, 64)?).ok().filter(|&n| n <= MAX_ARGS)?;
    let mut args = vec![0; count * size_of::<Arg>()];
    if !args.is_empty() && !read(u64_at(&bytes, 56)?, &mut args) {
        return None;
    }
    let arg = |arg: &[u8]| {
        Some((ArgType::from_u8(arg[16])?, string(u64_at(arg, 0)?, u64_at(arg, 8)?, read)?))
    };
    Some(Site {
        address: 0,
        meta,
        kind: SiteKind::from_u16(u16_at(&bytes, 2)?)?,
        line: u32_at(&bytes, 4)?,
        name: text(8)?,
        file: text(24)?,
        format: text(40)?,
        args: args.chunks_exact(size_of::<Arg>()).map(arg).collect::<Option<_>>()?,
        sled: None,
    })
}

fn string(at: u64, bytes: u64, read: &Read<'_>) -> Option<String> {
    let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes <= MAX_STRING_BYTES)?;
    let mut text = vec![0; bytes];
    if bytes > 0 && !read(at, &mut text) {
        return None;
    }
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests;
