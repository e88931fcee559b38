//! `/proc/PID/maps`: where the program text of a process lies.
//!
//! Read when a process is registered, before it goes on, and again now and then, since it may load
//! libraries; told only when it has changed. What a process loads and unloads between two readings is
//! not seen.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};

use object::{Object as _, ReadCache};

use crate::spool::mapping::{Mapping, Mappings};

/// Longest file that is taken, bytes: a process can make as many mappings as its limits allow.
const MAX_MAPS_BYTES: u64 = 4 << 20;

/// Files whose build ids are kept; then the cache starts anew.
const MAX_FILES: usize = 4096;

/// What was read of the processes.
#[derive(Debug, Default)]
pub struct Maps {
    /// Mappings of each process as they were told last, without build ids.
    told: HashMap<i32, Vec<Mapping>>,
    /// By path and the identity of the file: device and inode as the kernel prints them.
    build_ids: HashMap<(String, String), String>,
}

impl Maps {
    /// Reads the mappings of a process; `None` when they are those of the last time, or cannot be read.
    pub fn look(&mut self, pid: i32, ts: i64) -> Option<Mappings> {
        let (mappings, files): (Vec<_>, Vec<_>) = parse(&read(pid).ok()?).unzip();
        if mappings.is_empty() || self.told.get(&pid) == Some(&mappings) {
            return None;
        }
        self.told.insert(pid, mappings.clone());
        let mut told = mappings;
        for (mapping, file) in told.iter_mut().zip(files) {
            mapping.build_id = self.build_id(pid, &mapping.path, file);
        }
        Some(Mappings { pid, ts, mappings: told })
    }

    /// Forgets a process that has ended.
    pub fn forget(&mut self, pid: i32) {
        self.told.remove(&pid);
    }

    fn build_id(&mut self, pid: i32, path: &str, file: String) -> String {
        if self.build_ids.len() >= MAX_FILES {
            self.build_ids.clear();
        }
        let read = || read_build_id(&format!("/proc/{pid}/root{path}"));
        let known = self.build_ids.entry((path.to_owned(), file));
        known.or_insert_with(|| read().unwrap_or_default()).clone()
    }
}

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

/// Executable mappings of files, and which file it is. Lines that are not as in proc_pid_maps(5) are left
/// out, and so are files that are gone.
pub fn parse(text: &str) -> impl Iterator<Item = (Mapping, String)> {
    text.lines().filter_map(|line| {
        // The path is the rest of the line: it may have spaces.
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let (rights, offset) = (fields.next()?, fields.next()?);
        let file = format!("{} {}", fields.next()?, fields.next()?);
        let path = fields.next()?.trim_start();
        if !rights.contains('x') || !path.starts_with('/') || path.ends_with(" (deleted)") {
            return None;
        }
        let [start, end, offset] =
            [start, end, offset].map(|number| u64::from_str_radix(number, 16).ok());
        let (path, build_id) = (path.to_owned(), String::new());
        Some((Mapping { start: start?, end: end?, offset: offset?, path, build_id }, file))
    })
}

/// The build id of an ELF file in hexadecimal digits. Only regular files are opened: a device or a pipe
/// could keep us waiting.
pub(crate) fn read_build_id(path: &str) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let file = ReadCache::new(File::open(path).ok()?);
    let id = object::File::parse(&file).ok()?.build_id().ok()??.to_vec();
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
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
nonsense
";
        let found: Vec<_> = parse(text).collect();
        let mapping = |start, offset, path: &str| Mapping {
            start,
            end: start + 0x10,
            offset,
            path: path.into(),
            build_id: String::new(),
        };
        assert_eq!(found[0], (mapping(0x55f0, 0x1000, "/usr/bin/x"), "08:01 17".into()));
        assert_eq!(found[1], (mapping(0x7f00, 0x2000, "/opt/a b/lib c.so"), "08:01 18".into()));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn only_changes_are_told() {
        let pid = std::process::id() as i32;
        let mut maps = Maps::default();
        let own = maps.look(pid, 5).unwrap();
        assert_eq!((own.pid, own.ts), (pid, 5));
        let here = only_changes_are_told as *const () as u64;
        let mine = own.mappings.iter().find(|m| (m.start..m.end).contains(&here)).unwrap();
        assert_eq!(std::path::Path::new(&mine.path), std::env::current_exe().unwrap());
        assert_eq!(mine.build_id, read_build_id(&mine.path).unwrap_or_default());
        assert_eq!(maps.look(pid, 6), None);
        maps.forget(pid);
        assert!(maps.look(pid, 7).is_some());
        assert_eq!(maps.look(-1, 8), None);
    }

    #[test]
    fn what_is_no_program_has_no_build_id() {
        assert_eq!(read_build_id("/dev/zero"), None);
        assert_eq!(read_build_id("/proc/self/maps"), None);
        assert_eq!(read_build_id("/nonexistent"), None);
    }
}
