//! `/proc/PID/maps`: where the program text of a process lies. Its names are whatever the process likes, so this must
//! neither panic nor read without end. No library does that: the crate `procfs` reads a list of mappings to its end, gives up
//! all of it if one name is not UTF-8, and panics where it cuts names like `/SYSV…`. Here a malformed line is left out.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;

use ft_trace::spool::mapping::Mapping;
use ft_trace::vdso;

/// Longest file that is taken, bytes: a process can make as many mappings as its limits allow.
///
/// Limit: as `MAX_MAPS_BYTES` of `proof.rs`.
pub(super) const MAX_MAPS_BYTES: u64 = 4 << 20;

/// Most mappings that are taken; large programs have some hundreds. Addresses in the others have no names.
///
/// Limit: as `MAX_MAPS_BYTES` of `proof.rs`.
const MAX_MAPPINGS: usize = 4096;

/// The text of `/proc/PID/maps`, or the beginning of one that is very long. A file's name may be any bytes:
/// what is no UTF-8 reads as replacement characters.
///
/// # Errors
///
/// When the process is gone, or may not be looked at.
pub fn read(pid: i32) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(format!("/proc/{pid}/maps"))?.take(MAX_MAPS_BYTES).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What the kernel puts behind the path of a file that nobody can open by it any more (proc_pid_maps(5)).
const DELETED: &str = " (deleted)";

/// Executable mappings of files, and that of the vDSO. Lines that are not as in proc_pid_maps(5) are left out.
pub fn parse(text: &str) -> impl Iterator<Item = Mapping> {
    let mappings = text.lines().filter_map(|line| {
        // The path is the rest of the line: it may have spaces.
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let (rights, offset) = (fields.next()?, fields.next()?);
        let (inode, path) = (fields.nth(1)?, fields.next()?.trim_start());
        if !rights.contains('x') || !(path.starts_with('/') || path == vdso::NAME) {
            return None;
        }
        let (path, is_gone) = match path.strip_suffix(DELETED) {
            Some(path) => (path, true),
            None => (path, false),
        };
        let [start, end, offset] =
            [start, end, offset].map(|number| u64::from_str_radix(number, 16).ok());
        Some(Mapping {
            start: start?,
            end: end?,
            offset: offset?,
            path: path.to_owned(),
            inode: inode.parse().unwrap_or(0),
            is_gone,
            ..Mapping::default()
        })
    });
    mappings.take(MAX_MAPPINGS)
}

/// The executable ranges in text of the form of `/proc/PID/maps` (proc_pid_maps(5)).
pub fn executable(maps: &str) -> Vec<Range<u64>> {
    let range = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        (rest.as_bytes().get(2) == Some(&b'x')).then_some(number(start)?..number(end)?)
    };
    maps.lines().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_files_are_taken() {
        let text = "\
55e0-55f0 r--p 00000000 08:01 17                     /usr/bin/x
55f0-5600 r-xp 00001000 08:01 17                     /usr/bin/x
7f00-7f10 r-xp 00002000 08:01 18                     /opt/a b/lib c.so
7f10-7f20 r-xp 00000000 08:01 19                     /tmp/gone (deleted)
7f20-7f30 rwxp 00000000 00:00 0
7f30-7f40 r-xp 00000000 00:00 0                      [vdso]
7f40-7f50 r-xp 00000000 00:00 0                      [vsyscall]
nonsense
";
        let found: Vec<_> = parse(text).collect();
        let mapping = |start, offset, path: &str, inode| Mapping {
            start,
            end: start + 0x10,
            offset,
            path: path.into(),
            inode,
            ..Mapping::default()
        };
        assert_eq!(found[0], mapping(0x55f0, 0x1000, "/usr/bin/x", 17));
        assert_eq!(found[1], mapping(0x7f00, 0x2000, "/opt/a b/lib c.so", 18));
        assert_eq!(found[2], Mapping { is_gone: true, ..mapping(0x7f10, 0, "/tmp/gone", 19) });
        assert_eq!(found[3], mapping(0x7f30, 0, "[vdso]", 0));
        assert_eq!(found.len(), 4);
    }

    /// Names that a process gives to its files.
    #[test]
    fn a_name_that_looks_like_something_else_harms_nothing() {
        let line = |name: &str| format!("1-2 r-xp 00000000 08:01 17 {name}\n");
        for name in ["/SYSV", "[stack:", "[stack:x]", "[", "/SYSV\u{fffd}1234567", "/a\\012b"] {
            let text = line(name) + &line("/x");
            let paths: Vec<String> = parse(&text).map(|mapping| mapping.path).collect();
            assert_eq!(paths.last().map(String::as_str), Some("/x"), "{name}");
            assert_eq!(paths.len() == 2, name.starts_with('/'), "{name}");
        }
    }

    #[test]
    fn no_more_are_taken_than_large_programs_have() {
        let text = "1-2 r-xp 00000000 08:01 17 /x\n".repeat(MAX_MAPPINGS + 1);
        assert_eq!(parse(&text).count(), MAX_MAPPINGS);
    }
}
