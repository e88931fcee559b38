//! Maps that just-in-time compilers leave in `/tmp/perf-PID.map` (node's `--perf-basic-prof`, Java's
//! `-XX:+DumpPerfMapAtExit`, Python's `-X perf`): lines of address, size and name, the first two hexadecimal
//! (Linux: tools/perf/Documentation/jit-interface.txt).
//!
//! Anybody can write such a file: only that of the process's own user or of root is read, only a regular one, and not to
//! its end if that is far. One who has another root directory leaves it there, under the number that it has in its own
//! namespace: that is read while it runs, which is seen by what it has mapped.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::build_id;
use crate::ids::Pid;
use crate::spool::mapping::Mapping;

/// Most that is read of a map, and of what its process has mapped, bytes.
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
        let own = || {
            let number = own_number(pid).filter(|_| runs_still(pid, mappings))?;
            build_id::regular_of(pid.0, &format!("/tmp/perf-{number}.map"))
        };
        let here = || build_id::regular(Path::new(&format!("/tmp/perf-{pid}.map")));
        own().or_else(here).and_then(|file| PerfMap::read(file, user)).unwrap_or_default()
    }

    fn read(file: File, user: Option<u32>) -> Option<PerfMap> {
        let owner = file.metadata().ok()?.uid();
        if owner != 0 && Some(owner) != user {
            return None;
        }
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
        Some(PerfMap::parse(&String::from_utf8_lossy(&text)))
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

/// The number of a process in its own namespace, the last of its numbers (proc_pid_status(5)).
fn own_number(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Whether who has this number now has something mapped where the process had it, so that it is this process.
fn runs_still(pid: Pid, mappings: &[Mapping]) -> bool {
    let Ok(maps) = File::open(format!("/proc/{pid}/maps")) else { return false };
    let mut text = Vec::new();
    let _ = maps.take(MAX_BYTES).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let place = |mapping: &Mapping| format!("{:08x}-{:08x} ", mapping.start, mapping.end);
    let had: HashSet<String> = mappings.iter().map(place).collect();
    text.lines().any(|line| line.find(' ').is_some_and(|at| had.contains(&line[..=at])))
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

    #[test]
    fn a_map_of_somebody_else_is_not_read() {
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"1000 10 f\n", 0).unwrap();
        let owner = file.metadata().unwrap().uid();
        let read = |user| PerfMap::read(file.try_clone().unwrap(), Some(user));
        assert!(read(owner).is_some());
        assert_eq!(read(owner + 1).is_some(), owner == 0, "root may speak for all");
    }

    #[test]
    fn a_process_is_known_by_what_it_has_mapped() {
        let own = Pid(std::process::id() as i32);
        assert_eq!(own_number(own), Some(std::process::id()), "as it calls itself");
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let text = maps.lines().find(|line| line.contains(" r-xp ")).unwrap();
        let (start, end) = text.split(' ').next().unwrap().split_once('-').unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = (number(start), number(end));
        let mapping = Mapping { start, end, ..Mapping::default() };
        assert!(runs_still(own, std::slice::from_ref(&mapping)));
        assert!(!runs_still(own, &[Mapping { end: end + 1, ..mapping.clone() }]));
        assert!(!runs_still(Pid(i32::MAX), &[mapping]));
    }
}
