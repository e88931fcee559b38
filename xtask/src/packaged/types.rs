//! An object's types (BTF) in one order.
//!
//! LLVM keeps types that are only declared in a map by their addresses (`FixupDerivedTypes`, lib/Target/BPF/BTFDebug.h), which depend on how long
//! the paths of the sources are. So the same sources and the same compiler make objects that differ in the order of these types and
//! of the names, and in nothing else. (include/uapi/linux/btf.h; Documentation/bpf/btf.rst of the kernel, sections
//! "BTF type and string encoding" and ".BTF.ext section".)

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result, bail};

/// Puts the names of the section `.BTF`, and the types that are only declared, in the order of the alphabet, and changes what refers to
/// them there and in `.BTF.ext`. Both stay as long as they are.
///
/// # Errors
///
/// When a section is cut short, or is not understood.
pub(super) fn sort(btf: &mut [u8], ext: &mut [u8]) -> Result<()> {
    let header = Words(btf);
    let length = header.at(4)? as usize;
    let word = |at| header.at(at).map(|word| word as usize);
    let types = length + word(8)?;
    let types = types..types + word(12)?;
    let names = length + word(16)?;
    let names = names..names + word(20)?;
    let moved = sort_names(btf.get_mut(names).context("the names are cut short")?)?;
    let mut types = Words(btf.get_mut(types).context("the types are cut short")?);
    let mut ext = Words(ext);
    let (references, starts) = in_types(&types)?;
    let (to_names, to_types): (Vec<_>, Vec<_>) =
        references.into_iter().partition(|(what, _)| *what == Refers::ToName);
    to_names.into_iter().try_for_each(|(_, at)| types.replace(at, &moved))?;
    // Those that change their places are equally long, and refer to no type: what does stays where it is.
    let moved_types = sort_declared(&mut types, &starts)?;
    to_types.into_iter().try_for_each(|(_, at)| types.replace(at, &moved_types))?;
    for (what, at) in in_ext(&ext)? {
        ext.replace(at, if what == Refers::ToName { &moved } else { &moved_types })?;
    }
    Ok(())
}

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refers {
    ToName,
    ToType,
}

/// A word that refers to something, by the byte at which it begins.
type Reference = (Refers, usize);

/// Where something was, and is.
type Moved = HashMap<u32, u32>;

/// `BTF_KIND_FWD`.
const DECLARED: u32 = 7;

fn sort_names(names: &mut [u8]) -> Result<Moved> {
    let text = names.strip_suffix(b"\0").context("the last name has no end")?.to_vec();
    let each: Vec<&[u8]> = text.split(|byte| *byte == 0).collect();
    // The first is that of what has none.
    let sorted: BTreeSet<&[u8]> = each.iter().copied().collect();
    if sorted.len() != each.len() || !each[0].is_empty() {
        bail!("the names are not different ones behind an empty one");
    }
    let starts = |of: &mut dyn Iterator<Item = &[u8]>| -> Vec<u32> {
        let start = |next: &mut u32, name: &[u8]| {
            Some(std::mem::replace(next, *next + name.len() as u32 + 1))
        };
        of.scan(0, start).collect()
    };
    let before = starts(&mut each.iter().copied());
    let after = starts(&mut sorted.iter().copied());
    let after: HashMap<&[u8], u32> = sorted.iter().copied().zip(after).collect();
    let moved = each.iter().zip(before).map(|(name, before)| (before, after[name])).collect();
    let bytes = sorted.iter().flat_map(|name| name.iter().chain(b"\0"));
    names.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    Ok(moved)
}

/// Sorts what is only declared among its places; their names are in order.
fn sort_declared(types: &mut Words<'_>, starts: &[usize]) -> Result<Moved> {
    let mut declared = Vec::new();
    for (start, id) in starts.iter().zip(1..) {
        let words = [types.at(*start)?, types.at(start + 4)?];
        if kind(words[1]) == DECLARED {
            declared.push((words, id, *start));
        }
    }
    let mut sorted = declared.clone();
    sorted.sort_unstable();
    // No type, and those that stay.
    let mut moved: Moved = (0..=starts.len() as u32).map(|id| (id, id)).collect();
    for ((_, place, start), (words, id, _)) in declared.into_iter().zip(sorted) {
        moved.insert(id, place);
        types.set(start, words[0])?;
        types.set(start + 4, words[1])?;
    }
    Ok(moved)
}

fn kind(info: u32) -> u32 {
    info >> 24 & 0x1f
}

/// The words of types that refer to something, and where each type begins.
fn in_types(types: &Words<'_>) -> Result<(Vec<Reference>, Vec<usize>)> {
    use Refers::{ToName, ToType};

    let (mut references, mut starts) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < types.0.len() {
        starts.push(at);
        let info = types.at(at + 4)?;
        let members = (info & 0xffff) as usize;
        references.push((ToName, at));
        // By the kind (`BTF_KIND_…`): whether its third word is a type; how many members follow, of how many bytes, and what refers.
        let (of_type, count, bytes, referring): (bool, usize, usize, &[Reference]) =
            match kind(info) {
                7 | 16 => (false, 0, 0, &[]),
                2 | 8..=12 | 18 => (true, 0, 0, &[]),
                1 => (false, 1, 4, &[]),
                14 | 17 => (true, 1, 4, &[]),
                3 => (false, 1, 12, &[(ToType, 0), (ToType, 4)]),
                4 | 5 => (false, members, 12, &[(ToName, 0), (ToType, 4)]),
                6 => (false, members, 8, &[(ToName, 0)]),
                13 => (true, members, 8, &[(ToName, 0), (ToType, 4)]),
                15 => (false, members, 12, &[(ToType, 0)]),
                19 => (false, members, 12, &[(ToName, 0)]),
                other => bail!("there is no kind {other} of type"),
            };
        if of_type {
            references.push((ToType, at + 8));
        }
        at += 12;
        for _ in 0..count {
            references.extend(referring.iter().map(|(what, within)| (*what, at + within)));
            at += bytes;
        }
    }
    Ok((references, starts))
}

/// Those of functions, lines and relocations.
fn in_ext(ext: &Words<'_>) -> Result<Vec<Reference>> {
    use Refers::{ToName, ToType};

    let header = ext.at(4)? as usize;
    // Where they are in a record.
    let tables: [(usize, &[Reference]); 3] =
        [(8, &[(ToType, 4)]), (16, &[(ToName, 4), (ToName, 8)]), (24, &[(ToType, 4), (ToName, 8)])];
    let mut references = Vec::new();
    for (place, referring) in tables.into_iter().filter(|(place, _)| place + 8 <= header) {
        let mut at = header + ext.at(place)? as usize;
        let end = at + ext.at(place + 4)? as usize;
        if at == end {
            continue;
        }
        let bytes = ext.at(at)? as usize;
        at += 4;
        while at < end {
            references.push((ToName, at));
            let records = ext.at(at + 4)?;
            at += 8;
            for _ in 0..records {
                ext.at(at)?;
                references.extend(referring.iter().map(|(what, within)| (*what, at + within)));
                at += bytes;
            }
        }
    }
    Ok(references)
}

/// Little-endian words, by the byte at which they begin.
struct Words<'a>(&'a mut [u8]);

impl Words<'_> {
    fn at(&self, at: usize) -> Result<u32> {
        let bytes = self.0.get(at..at + 4).context("it is cut short")?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    fn set(&mut self, at: usize, word: u32) -> Result<()> {
        let bytes = self.0.get_mut(at..at + 4).context("it is cut short")?;
        bytes.copy_from_slice(&word.to_le_bytes());
        Ok(())
    }

    fn replace(&mut self, at: usize, moved: &Moved) -> Result<()> {
        let before = self.at(at)?;
        let after = moved.get(&before).with_context(|| format!("nothing begins at {before}"))?;
        self.set(at, *after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Names, where of them are that of a structure, its member, and two declared types; the first or the second of these is what the member
    /// and the function that `ext` tells of have as their type.
    fn object(
        names: &str,
        [structure, member, first, second]: [u32; 4],
        of: u32,
    ) -> (Vec<u8>, Vec<u8>) {
        let declared = |name| [name, DECLARED << 24, 0];
        let types = [&[structure, 4 << 24 | 1, 4, member, of, 0][..], &declared(first)];
        let types = [types.concat(), declared(second).to_vec()].concat();
        let mut btf = bytes(&[0x0001_eb9f, 24, 0, 48, 48, names.len() as u32]);
        btf.extend(bytes(&types));
        btf.extend(names.as_bytes());
        let ext = [0x0001_eb9f, 24, 0, 20, 20, 28, 8, structure, 1, 0, of];
        let lines = [16, structure, 1, 0, member, member, 0];
        (btf, [bytes(&ext), bytes(&lines)].concat())
    }

    /// One whose names and declared types stand in another order.
    fn others() -> [(Vec<u8>, Vec<u8>); 2] {
        let a = object("\0zone\0size\0u32\0text\0", [1, 6, 11, 15], 2);
        let b = object("\0u32\0text\0zone\0size\0", [10, 15, 5, 1], 3);
        [a, b]
    }

    #[test]
    fn objects_that_differ_in_their_order_alone_are_the_same() {
        let [mut a, mut b] = others();
        assert!(a.0 != b.0 && a.1 != b.1);
        for (btf, ext) in [&mut a, &mut b] {
            sort(btf, ext).unwrap();
        }
        // `text` comes before `u32`, which is the member's type.
        let expected = object("\0size\0text\0u32\0zone\0", [15, 1, 6, 11], 3);
        assert_eq!((&a, &b), (&expected, &expected));
        // A member of another type is another object.
        let (mut other, mut ext) = object("\0u32\0text\0zone\0size\0", [10, 15, 5, 1], 2);
        sort(&mut other, &mut ext).unwrap();
        assert!(other != b.0 && ext != b.1);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let [_, (whole, ext)] = others();
        for (at, word) in [(24, 3), (28, 20 << 24), (40, 4), (8, 4000), (20, 4000)] {
            let mut damaged = whole.clone();
            damaged[at..at + 4].copy_from_slice(&bytes(&[word]));
            assert!(sort(&mut damaged, &mut ext.clone()).is_err(), "{word} at {at}");
        }
        for len in 0..whole.len() {
            assert!(sort(&mut whole[..len].to_vec(), &mut ext.clone()).is_err(), "{len} bytes");
        }
        for len in 0..ext.len() - 4 {
            assert!(sort(&mut whole.clone(), &mut ext[..len].to_vec()).is_err(), "{len} bytes");
        }
    }
}
