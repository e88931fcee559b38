//! Maps that just-in-time compilers leave in `/tmp/perf-PID.map` (node's `--perf-basic-prof`, Java's
//! `-XX:+DumpPerfMapAtExit`, Python's `-X perf`): lines of address, size and name, the first two hexadecimal
//! (Linux: tools/perf/Documentation/jit-interface.txt).
//!
//! Whether such a file may speak for a process is proved first ([`proof`](super::proof)). It is not read to its end if
//! that is far.

use std::fs::File;
use std::io::Read as _;

use super::proof;
use crate::ids::Pid;
use crate::spool::mapping::Mapping;

/// Most that is read of a map, bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Most that is kept of a name, bytes.
const MAX_NAME_BYTES: usize = 1024;

/// What a compiler has said of its code.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    /// By address: size, and which line it was, of which the last one counts; name.
    code: Vec<(u64, u64, String)>,
}

impl PerfMap {
    /// That of a process of this user that had mapped these, empty where there is none that can be believed.
    pub(super) fn of(pid: Pid, user: Option<u32>, mappings: &[Mapping]) -> PerfMap {
        let read = |file: File| {
            let mut text = Vec::new();
            file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
            Some(PerfMap::parse(&String::from_utf8_lossy(&text)))
        };
        proof::perf_map(pid, user, mappings).and_then(read).unwrap_or_default()
    }

    fn parse(text: &str) -> PerfMap {
        let line = |line: &str| {
            let (at, rest) = line.split_once(' ')?;
            let (size, name) = rest.split_once(' ')?;
            let number =
                |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
            let (at, size) = (number(at)?, number(size)?);
            let end = name.floor_char_boundary(MAX_NAME_BYTES.min(name.len()));
            (size > 0).then(|| (at, size, name[..end].to_owned()))
        };
        let mut code: Vec<_> = text.lines().filter_map(line).collect();
        // Stable: of those that begin at one address, the one that was written last is the last.
        code.sort_by_key(|(at, ..)| *at);
        PerfMap { code }
    }

    /// The function whose code is at an address. Code that was moved leaves its old place to others: the one that begins
    /// nearest counts.
    pub(super) fn find(&self, address: u64) -> Option<&str> {
        let behind = self.code.partition_point(|(at, ..)| *at <= address);
        let (at, size, name) = self.code.get(behind.checked_sub(1)?)?;
        (address - at < *size).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_code_at_an_address_counts() {
        let map =
            PerfMap::parse("1000 10 old name\n0x2000 20 LazyCompile:*f /a b.js:1\n1000 8 new\n");
        assert_eq!(map.find(0x1007), Some("new"));
        assert_eq!(map.find(0x1008), None);
        assert_eq!(map.find(0x201f), Some("LazyCompile:*f /a b.js:1"));
        assert_eq!(map.find(0xfff), None);
        assert_eq!(PerfMap::default().find(0), None);
    }

    #[test]
    fn any_text_is_survived() {
        let text = "\n \nx y z\n10\n10 20\nffffffffffffffff ffffffffffffffff end\n10 0 empty\n";
        let map = PerfMap::parse(text);
        assert_eq!(map.find(u64::MAX), Some("end"));
        assert_eq!(map.find(0x10), None);
        let long = PerfMap::parse(&format!("1 1 {}", "\u{e4}".repeat(MAX_NAME_BYTES)));
        assert!(long.find(1).unwrap().len() <= MAX_NAME_BYTES);
    }
}
