//! Maps that just-in-time compilers leave in `/tmp/perf-PID.map` (node's `--perf-basic-prof`, Java's
//! `-XX:+DumpPerfMapAtExit`, Python's `-X perf`): lines of address, size and name, the first two hexadecimal
//! (Linux: tools/perf/Documentation/jit-interface.txt).
//!
//! Whether such a file may speak for a process is proved first ([`proof`](super::proof)). It is not read to its end if
//! that is far, and one is kept at a time.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;

use crate::demangle::{MAX_NAME_BYTES, cut};

/// Most that is read of a map, bytes.
///
/// Limit: as `MAX_INLINED` of `program.rs`.
const MAX_BYTES: u64 = 64 << 20;

/// What a compiler has said of its code.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    text: Vec<u8>,
    /// By address: size, of those at one address in the order of the lines, and where in the text the name is.
    code: Vec<(u64, u64, Range<u32>)>,
}

impl PerfMap {
    pub(super) fn read(file: &File) -> io::Result<PerfMap> {
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text)?;
        Ok(PerfMap::parse(text))
    }

    pub(super) fn parse(text: Vec<u8>) -> PerfMap {
        let mut code = Vec::new();
        let mut begin = 0;
        for line in text.split(|&byte| byte == b'\n') {
            code.extend(PerfMap::line(line).map(|(at, size, name)| {
                let name = begin + name..begin + line.len();
                (at, size, name.start as u32..name.end as u32)
            }));
            begin += line.len() + 1;
        }
        // Stable: of those that begin at one address, the one that was written last is the last.
        code.sort_by_key(|(at, ..)| *at);
        PerfMap { text, code }
    }

    /// Where its functions begin.
    #[cfg(fuzzing)]
    pub(super) fn begins(&self) -> Vec<u64> {
        self.code.iter().map(|(at, ..)| *at).collect()
    }

    /// Address, size, and where the name begins.
    fn line(line: &[u8]) -> Option<(u64, u64, usize)> {
        let mut words = line.splitn(3, |&byte| byte == b' ');
        let mut number = || {
            let word = std::str::from_utf8(words.next()?).ok()?;
            u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
        };
        let (at, size) = (number()?, number()?);
        let name = words.next()?;
        (size > 0).then_some((at, size, line.len() - name.len()))
    }

    /// The function whose code is at an address. Code that was moved leaves its old place to others: the one that begins
    /// nearest counts.
    pub(super) fn find(&self, address: u64) -> Option<String> {
        let behind = self.code.partition_point(|(at, ..)| *at <= address);
        let (at, size, name) = self.code.get(behind.checked_sub(1)?)?;
        let name = &self.text[name.start as usize..name.end as usize];
        (address - at < *size).then(|| cut(name, MAX_NAME_BYTES).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(map: &PerfMap, address: u64) -> String {
        map.find(address).unwrap_or_else(|| "(nothing)".to_owned())
    }

    #[test]
    fn the_newest_code_at_an_address_counts() {
        let text = "1000 10 old name\n0x2000 20 LazyCompile:*f /a b.js:1\n1000 8 new\n";
        let map = PerfMap::parse(text.into());
        assert_eq!(found(&map, 0x1007), "new");
        assert_eq!(found(&map, 0x1008), "(nothing)");
        assert_eq!(found(&map, 0x201f), "LazyCompile:*f /a b.js:1");
        assert_eq!(found(&map, 0xfff), "(nothing)");
        assert_eq!(PerfMap::default().find(0), None);
    }

    #[test]
    fn any_text_is_survived() {
        let text = "\n \nx y z\n10\n10 20\nffffffffffffffff ffffffffffffffff end\n10 0 empty\n";
        let map = PerfMap::parse(text.into());
        assert_eq!(found(&map, u64::MAX), "end");
        assert_eq!(found(&map, 0x10), "(nothing)");
        let long = PerfMap::parse(format!("1 1 {}", "\u{e4}".repeat(MAX_NAME_BYTES)).into());
        assert_eq!(found(&long, 1), "\u{e4}".repeat(MAX_NAME_BYTES / 2));
        assert_eq!(found(&PerfMap::parse(b"1 1 \xff\xfe".to_vec()), 1), "\u{fffd}\u{fffd}");
    }
}
