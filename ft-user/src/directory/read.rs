//! Reader half of the directory: hostile bytes in, entries or errors out.

use std::str;

use super::{MAX_ENTRY_BYTES, MAX_STRING_BYTES};
use crate::layout::{ArgType, MAX_ARGS, SiteKind, dir_kind};

/// Size of the header of an entry, `kind` and `bytes`.
const HEADER_BYTES: usize = 8;

/// One entry of a directory; strings borrow from the copy that was parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// Metadata of a site.
    SiteMeta {
        /// Key of its events ([`crate::layout::commit::key`]).
        key: u32,
        /// What the site means.
        kind: SiteKind,
        /// Source line.
        line: u32,
        /// Dotted name.
        name: &'a str,
        /// Source file.
        file: &'a str,
        /// Format string, may be empty.
        format: &'a str,
        /// Types and names of the arguments, at most [`MAX_ARGS`].
        args: Vec<(ArgType, &'a str)>,
    },
    /// A trigger in the text.
    Site {
        /// Key of its [`Entry::SiteMeta`].
        key: u32,
        /// Address of its first byte in the process.
        address: u64,
    },
    /// A name, of a lock for example.
    Name {
        /// Its number, not zero.
        id: u32,
        /// The name.
        text: &'a str,
    },
    /// A source place.
    Place {
        /// Its number, not zero.
        id: u32,
        /// Source line.
        line: u32,
        /// Column.
        column: u32,
        /// Source file.
        file: &'a str,
    },
}

/// Why bytes are not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The size of the entry is not a multiple of 8, or too small or too large: nothing behind it can
    /// be read.
    Size,
    /// The kind is unknown. The entry is skipped.
    Kind,
    /// The content does not fill the entry as it must: a length runs out of it, a number is out of its
    /// range, a string is not UTF-8. The entry is skipped.
    Content,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Malformed::Size => "a directory entry has an impossible size",
            Malformed::Kind => "a directory entry is of an unknown kind",
            Malformed::Content => "the content of a directory entry is damaged",
        })
    }
}

impl std::error::Error for Malformed {}

/// Reads the entries at the start of `bytes`, a copy of the directory or of what follows the last
/// [`Parser::consumed`].
///
/// It ends before the first entry that is not complete yet, and after [`Malformed::Size`].
pub fn parse(bytes: &[u8]) -> Parser<'_> {
    Parser { bytes, consumed: 0, broken: false }
}

/// Iterator over the entries of a directory, see [`parse`].
#[derive(Clone, Debug)]
pub struct Parser<'a> {
    bytes: &'a [u8],
    consumed: usize,
    broken: bool,
}

impl Parser<'_> {
    /// Bytes of the entries that were returned so far: where to go on when more is written.
    pub fn consumed(&self) -> usize {
        self.consumed
    }
}

impl<'a> Iterator for Parser<'a> {
    type Item = Result<Entry<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken {
            return None;
        }
        let rest = &self.bytes[self.consumed..];
        let (kind, after_kind) = rest.split_first_chunk()?;
        let (size, _) = after_kind.split_first_chunk()?;
        let kind = u32::from_ne_bytes(*kind);
        if kind == 0 {
            return None;
        }
        let size = u32::from_ne_bytes(*size) as usize;
        if !size.is_multiple_of(8) || !(HEADER_BYTES..=MAX_ENTRY_BYTES).contains(&size) {
            self.broken = true;
            return Some(Err(Malformed::Size));
        }
        // The copy ends inside of the entry: more of it may come with the next copy.
        let content = rest.get(HEADER_BYTES..size)?;
        self.consumed += size;
        Some(entry(kind, content))
    }
}

fn entry(kind: u32, content: &[u8]) -> Result<Entry<'_>, Malformed> {
    let mut fields = Fields(content);
    match kind {
        dir_kind::META => fields.meta(),
        dir_kind::SITE => fields.site(),
        dir_kind::NAME => fields.name(),
        dir_kind::PLACE => fields.place(),
        _ => return Err(Malformed::Kind),
    }
    .ok_or(Malformed::Content)
}

/// What of an entry is not read yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn meta(&mut self) -> Option<Entry<'a>> {
        let key = self.u32()?;
        let kind = SiteKind::from_u16(u16::from_ne_bytes(self.array()?))?;
        let [arg_count, _] = self.array()?;
        let line = self.u32()?;
        let (name, file, format) = (self.string()?, self.string()?, self.string()?);
        if usize::from(arg_count) > MAX_ARGS {
            return None;
        }
        let args = (0..arg_count)
            .map(|_| {
                let [ty] = self.array()?;
                Some((ArgType::from_u8(ty)?, self.string()?))
            })
            .collect::<Option<_>>()?;
        Some(Entry::SiteMeta { key, kind, line, name, file, format, args })
    }

    fn site(&mut self) -> Option<Entry<'a>> {
        let key = self.u32()?;
        let _state = self.u32()?;
        Some(Entry::Site { key, address: u64::from_ne_bytes(self.array()?) })
    }

    fn name(&mut self) -> Option<Entry<'a>> {
        Some(Entry::Name { id: self.id()?, text: self.string()? })
    }

    fn place(&mut self) -> Option<Entry<'a>> {
        let (id, line, column) = (self.id()?, self.u32()?, self.u32()?);
        Some(Entry::Place { id, line, column, file: self.string()? })
    }

    fn id(&mut self) -> Option<u32> {
        self.u32().filter(|&id| id != 0)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.array()?))
    }

    fn string(&mut self) -> Option<&'a str> {
        let length = usize::from(u16::from_ne_bytes(self.array()?));
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        if length > MAX_STRING_BYTES {
            return None;
        }
        str::from_utf8(text).ok()
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry with a correct header.
    fn raw(kind: u32, content: &[u8]) -> Vec<u8> {
        let size = (HEADER_BYTES + content.len()).next_multiple_of(8);
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend((size as u32).to_ne_bytes());
        bytes.extend(content);
        bytes.resize(size, 0);
        bytes
    }

    fn name(id: u32, length: u16, text: &[u8]) -> Vec<u8> {
        raw(dir_kind::NAME, &[&id.to_ne_bytes()[..], &length.to_ne_bytes(), text].concat())
    }

    fn check(bytes: &[u8], expected: &[Result<Entry<'_>, Malformed>], consumed: usize) {
        let mut parser = parse(bytes);
        assert_eq!(parser.by_ref().collect::<Vec<_>>(), expected);
        assert_eq!(parser.consumed(), consumed);
    }

    #[test]
    fn unwritten_entry_ends_what_can_be_read() {
        let good = name(1, 1, b"a");
        let entry = Ok(Entry::Name { id: 1, text: "a" });
        check(&[], &[], 0);
        check(&[0; 64], &[], 0);
        check(&[good.clone(), vec![0; 16]].concat(), std::slice::from_ref(&entry), 16);
        for cut in 0..16 {
            check(&good[..cut], &[], 0);
        }
    }

    #[test]
    fn damaged_content_is_skipped() {
        let good = name(2, 1, b"b");
        let entry = Ok(Entry::Name { id: 2, text: "b" });
        let damaged = [
            name(0, 1, b"a"),
            name(1, 2000, b"abc"),
            name(1, 1, &[0xff]),
            raw(dir_kind::NAME, &[]),
            raw(dir_kind::SITE, &[0; 8]),
            raw(dir_kind::META, &[0xff; 100]),
        ];
        for bytes in damaged {
            let expected = [Err(Malformed::Content), entry.clone()];
            check(&[&bytes[..], &good].concat(), &expected, bytes.len() + 16);
        }
        let long = name(1, 4104, &[b'x'; 4104]);
        check(&long, &[Err(Malformed::Content)], long.len());
        let unknown = raw(77, &[1, 2, 3]);
        check(&[&unknown[..], &good].concat(), &[Err(Malformed::Kind), entry], 32);
    }

    #[test]
    fn a_site_has_no_more_arguments_than_there_can_be() {
        for (count, is_good) in [(MAX_ARGS, true), (MAX_ARGS + 1, false)] {
            let mut meta =
                [1u32.to_ne_bytes(), [0, 0, count as u8, 0], 7u32.to_ne_bytes()].concat();
            // Name, file and format are empty, as are the names of the arguments.
            meta.extend([0; 6]);
            meta.extend([ArgType::Unsigned as u8, 0, 0].repeat(count));
            let bytes = raw(dir_kind::META, &meta);
            let found: Vec<_> = parse(&bytes).collect();
            let has = |entry: &Entry<'_>| matches!(entry, Entry::SiteMeta { args, .. } if args.len() == count);
            assert_eq!(found[0].as_ref().is_ok_and(has), is_good, "{found:?}");
            assert_eq!(found[0] == Err(Malformed::Content), !is_good, "{found:?}");
        }
    }

    #[test]
    fn impossible_size_ends_the_directory() {
        for size in [0, 4, 12, MAX_ENTRY_BYTES as u32 + 8, u32::MAX] {
            let mut bytes = name(1, 1, b"a");
            bytes[4..8].copy_from_slice(&size.to_ne_bytes());
            bytes.resize(100_000, 1);
            check(&bytes, &[Err(Malformed::Size)], 0);
        }
    }

    #[test]
    fn any_bytes_are_survived() {
        let mut state = 1u64;
        let mut bytes: Vec<u8> = Vec::new();
        for _ in 0..2000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let r = (state >> 33) as u32;
            bytes.extend(raw(r % 5 + 1, &state.to_le_bytes().repeat((r >> 8) as usize % 6)));
        }
        assert_eq!(parse(&bytes).count(), 2000);
    }
}
