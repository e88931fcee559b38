//! Writer half of the directory: wait-free, allocates nothing.

use core::ops::Range;
use core::panic::Location;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use core::{slice, str};

use super::MAX_STRING_BYTES;
use crate::layout::{DIR_BYTES, DirEntry, Header, MAX_ARGS, SiteMeta, Str, dir_kind};

/// The directory of this process, mapped.
#[derive(Clone, Copy)]
pub(crate) struct Directory {
    base: *mut u8,
    head: &'static AtomicU64,
    dropped: &'static AtomicU32,
}

impl Directory {
    /// The directory of the memfd whose first page is `header`.
    ///
    /// # Safety
    ///
    /// `base` points to `DIR_BYTES` writable bytes, aligned to 8 and zero where `header.dir_head` has
    /// not been yet, and they stay mapped as long as anybody writes.
    pub(crate) unsafe fn new(base: *mut u8, header: &'static Header) -> Self {
        Directory { base, head: &header.dir_head, dropped: &header.dir_dropped }
    }

    /// Writes the metadata of a site; where, if there was room.
    pub(crate) fn meta(&self, key: u32, meta: &'static SiteMeta) -> Option<Range<u32>> {
        // SAFETY: `args` and `arg_count` of a `SiteMeta` describe an immutable static slice.
        let args = unsafe { slice::from_raw_parts(meta.args, meta.arg_count as usize) };
        let args = &args[..args.len().min(MAX_ARGS)];
        let strings = [&meta.name, &meta.file, &meta.format].map(text);
        let args_bytes: usize = args.iter().map(|arg| 1 + string_bytes(text(&arg.name))).sum();
        let bytes = 12 + strings.map(string_bytes).iter().sum::<usize>() + args_bytes;
        self.append(dir_kind::META, bytes, |entry| {
            entry.u32(key);
            entry.bytes(&meta.kind.to_ne_bytes());
            entry.bytes(&[args.len() as u8, 0]);
            entry.u32(meta.line);
            strings.iter().for_each(|string| entry.string(string));
            for arg in args {
                entry.bytes(&[arg.ty]);
                entry.string(text(&arg.name));
            }
        })
    }

    /// Writes where a trigger is in the text; where that is, if there was room.
    pub(crate) fn site(&self, key: u32, address: usize) -> Option<Range<u32>> {
        self.append(dir_kind::SITE, 16, |entry| {
            entry.u32(key);
            entry.u32(0);
            entry.bytes(&(address as u64).to_ne_bytes());
        })
    }

    /// Appends what stands in these bytes of another directory, entries that are whole. In a forked child, which alone knows of this
    /// directory; where that may be is returned.
    pub(crate) fn copy(&self, from: &Directory, part: Range<u32>) -> Option<Range<u32>> {
        let bytes = part.end - part.start;
        let start = self.head.fetch_add(bytes.into(), Relaxed);
        if start + u64::from(bytes) > DIR_BYTES {
            self.dropped.fetch_add(1, Relaxed);
            return None;
        }
        // SAFETY: both ranges are inside of their directories, which are different mappings; the entries do not change any more.
        unsafe {
            let to = self.base.add(start as usize);
            to.copy_from_nonoverlapping(from.base.add(part.start as usize), bytes as usize);
        }
        Some(start as u32..start as u32 + bytes)
    }

    /// Calls `f` with the address of each trigger that these bytes describe, which were written by this process as whole entries, and to
    /// which whoever has the memfd can write.
    pub(crate) fn triggers(&self, part: Range<u32>, f: &mut impl FnMut(u64)) {
        let (header, site) = (size_of::<DirEntry>(), size_of::<DirEntry>() + 16);
        let (mut at, end) = (part.start as usize, part.end as usize);
        while at + header <= end {
            // SAFETY: inside of the directory, and a multiple of 8.
            let entry = unsafe { &*self.base.add(at).cast::<DirEntry>() };
            let bytes = entry.bytes.load(Relaxed) as usize;
            if bytes < header || !bytes.is_multiple_of(8) || bytes > end - at {
                return;
            }
            if entry.kind.load(Relaxed) == dir_kind::SITE && bytes >= site {
                // SAFETY: as above; behind the key and the state.
                f(unsafe { self.base.add(at + header + 8).cast::<u64>().read_volatile() });
            }
            at += bytes;
        }
    }

    /// Writes what a name's number stands for.
    pub(crate) fn name(&self, id: u32, text: &str) {
        let _ = self.append(dir_kind::NAME, 4 + string_bytes(text), |entry| {
            entry.u32(id);
            entry.string(text);
        });
    }

    /// Writes what a place's number stands for.
    pub(crate) fn place(&self, id: u32, place: &Location<'_>) {
        let _ = self.append(dir_kind::PLACE, 12 + string_bytes(place.file()), |entry| {
            entry.u32(id);
            entry.u32(place.line());
            entry.u32(place.column());
            entry.string(place.file());
        });
    }

    /// Reserves an entry, has its `bytes` of content written, and makes it visible. Where it stands; `None` when there was no room.
    fn append(
        &self,
        kind: u32,
        bytes: usize,
        content: impl FnOnce(&mut Sink<'_>),
    ) -> Option<Range<u32>> {
        let header = size_of::<DirEntry>();
        let size = (header + bytes).next_multiple_of(8);
        let start = self.head.fetch_add(size as u64, Relaxed);
        if start > DIR_BYTES - size as u64 {
            self.dropped.fetch_add(1, Relaxed);
            return None;
        }
        // SAFETY: `start + size <= DIR_BYTES`, and the reservation gave this range to this call alone.
        let at = unsafe { self.base.add(start as usize) };
        // SAFETY: as above; `start` is a multiple of 8, as every size is. The header is atomic, and the
        // content does not overlap it.
        let (entry, to) =
            unsafe { (&*at.cast::<DirEntry>(), slice::from_raw_parts_mut(at.add(header), bytes)) };
        entry.bytes.store(size as u32, Relaxed);
        let mut sink = Sink(to);
        content(&mut sink);
        debug_assert!(sink.0.is_empty(), "the entry is shorter than was said");
        // SYNC: directory-entry (with the acquire fence of the agent before it copies the directory).
        entry.kind.store(kind, Release);
        Some(start as u32..start as u32 + size as u32)
    }
}

/// What is not yet written of an entry's content.
struct Sink<'a>(&'a mut [u8]);

impl Sink<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        let (to, rest) = core::mem::take(&mut self.0).split_at_mut(bytes.len());
        to.copy_from_slice(bytes);
        self.0 = rest;
    }

    fn u32(&mut self, n: u32) {
        self.bytes(&n.to_ne_bytes());
    }

    fn string(&mut self, text: &str) {
        let text = cut(text);
        self.bytes(&(text.len() as u16).to_ne_bytes());
        self.bytes(text.as_bytes());
    }
}

/// What an entry tells of a string.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_STRING_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Bytes of a string in an entry.
fn string_bytes(text: &str) -> usize {
    size_of::<u16>() + cut(text).len()
}

fn text(s: &Str) -> &'static str {
    // SAFETY: a `Str` of a `SiteMeta` describes an immutable static string.
    unsafe { str::from_utf8_unchecked(slice::from_raw_parts(s.ptr, s.len as usize)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::{Entry, MAX_ENTRY_BYTES, parse};
    use crate::layout::{Arg, ArgType, SiteKind};

    /// A directory on the heap, leaked: tests are few.
    fn directory() -> (Directory, &'static [u64]) {
        let memory = Vec::leak(vec![0u64; DIR_BYTES as usize / 8]);
        // SAFETY: all of `Header` may be zero.
        let header = Box::leak(Box::new(unsafe { core::mem::zeroed::<Header>() }));
        let base = memory.as_mut_ptr().cast();
        // SAFETY: `memory` is zero, large enough, aligned to 8 and never freed.
        (unsafe { Directory::new(base, header) }, memory)
    }

    fn bytes(memory: &[u64]) -> &[u8] {
        // SAFETY: any `u64` is eight bytes, and nobody writes any more.
        unsafe { slice::from_raw_parts(memory.as_ptr().cast(), size_of_val(memory)) }
    }

    const fn string(s: &'static str) -> Str {
        Str { ptr: s.as_ptr(), len: s.len() as u64 }
    }

    #[test]
    fn round_trip() {
        static ARGS: [Arg; 2] = [
            Arg { name: string("id"), ty: ArgType::Unsigned as u8, _pad: [0; 7] },
            Arg { name: string("who"), ty: ArgType::Str as u8, _pad: [0; 7] },
        ];
        static META: SiteMeta = SiteMeta {
            bytes: size_of::<SiteMeta>() as u16,
            kind: SiteKind::LockWait as u16,
            line: 7,
            name: string("lock.wait"),
            file: string("a.rs"),
            format: string("{id}"),
            args: ARGS.as_ptr(),
            arg_count: 2,
        };
        let (directory, memory) = directory();
        let here = Location::caller();
        directory.meta(64, &META);
        directory.site(64, 0x5555_0000_1234);
        directory.name(3, "accounts");
        directory.place(9, here);
        directory.name(4, "");

        let expected = [
            Entry::SiteMeta {
                key: 64,
                kind: SiteKind::LockWait,
                line: 7,
                name: "lock.wait",
                file: "a.rs",
                format: "{id}",
                args: vec![(ArgType::Unsigned, "id"), (ArgType::Str, "who")],
            },
            Entry::Site { key: 64, address: 0x5555_0000_1234 },
            Entry::Name { id: 3, text: "accounts" },
            Entry::Place { id: 9, line: here.line(), column: here.column(), file: file!() },
            Entry::Name { id: 4, text: "" },
        ];
        let mut parser = parse(bytes(memory));
        for entry in expected {
            assert_eq!(parser.next(), Some(Ok(entry)));
        }
        assert_eq!(parser.next(), None);
        assert_eq!(parser.consumed() as u64, directory.head.load(Relaxed));
    }

    #[test]
    fn long_strings_are_cut_at_a_character() {
        let (directory, memory) = directory();
        directory.name(1, &"ä".repeat(5000));
        directory.name(2, &("x".to_owned() + &"ä".repeat(5000)));
        let lengths: Vec<_> = parse(bytes(memory))
            .map(|entry| match entry {
                Ok(Entry::Name { text, .. }) => text.len(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(lengths, [4096, 4095]);
    }

    #[test]
    fn full_directory_drops_and_counts() {
        let (directory, memory) = directory();
        let text = "x".repeat(MAX_STRING_BYTES);
        let fit = DIR_BYTES as usize / (MAX_STRING_BYTES + 16);
        const { assert!(MAX_STRING_BYTES + 16 <= MAX_ENTRY_BYTES) };
        for id in 1..=fit as u32 + 3 {
            directory.name(id, &text);
        }
        assert_eq!(parse(bytes(memory)).filter(Result::is_ok).count(), fit);
        assert_eq!(directory.dropped.load(Relaxed), 3);
    }

    #[test]
    fn many_writers_lose_nothing() {
        let (directory, memory) = directory();
        let directory = &Shared(directory);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for n in 1..=100 {
                        directory.0.name(thread * 100 + n, "n");
                    }
                });
            }
        });
        let mut ids: Vec<_> = parse(bytes(memory))
            .map(|entry| match entry {
                Ok(Entry::Name { id, text: "n" }) => id,
                other => panic!("{other:?}"),
            })
            .collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(1..=400));
    }

    struct Shared(Directory);
    // SAFETY: `append` gives each call bytes of its own.
    unsafe impl Sync for Shared {}
}
