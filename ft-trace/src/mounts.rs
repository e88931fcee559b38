//! Where a file system is that asks a program of some user (FUSE). Who looks a file up there, opens it or reads it waits for that program,
//! for ever if it likes. Not even SIGKILL ends the wait. So nobody looks, and such a file has no names.
//!
//! A list has what its process can reach. A file system that it has left (`umount -l`, `chroot`, another mount namespace) is not in it, nor
//! is one below another (overlayfs), nor one that comes after the list was read.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead as _, BufReader, Read};

/// Most of a list of mounts that is read, bytes, of some 150 for each: what some users can mount together who are allowed a thousand
/// file systems each (`mount_max`, fuse.conf), behind the longest paths. Who has more has no names.
///
/// Limit: files of a process with more mounts have no names, and a warning says so.
/// Shown by: `a_list_beyond_all_bounds_is_unknown`, `a_long_list_is_read_to_its_end`.
const MAX_BYTES: u64 = 128 << 20;

/// What is mounted, as a process has it (proc_pid_mountinfo(5)), as far as programs answer for it.
#[derive(Debug, Default)]
pub struct Mounts {
    /// Hashes of the points below which programs answer: a user can make these long, and there is a list for each process.
    points: HashSet<u64>,
    hasher: RandomState,
    /// Devices for which programs answer: major and minor number.
    devices: HashSet<(u32, u32)>,
    /// The list could not be read, or not to its end.
    is_unknown: bool,
    /// Not to its end.
    is_cut: bool,
}

impl Mounts {
    /// Those of a process. Where its list cannot be read, a program may answer for anything.
    pub fn of(pid: i32) -> Mounts {
        Mounts::read(File::open(format!("/proc/{pid}/mountinfo")), MAX_BYTES)
    }

    /// Our own.
    pub fn own() -> Mounts {
        Mounts::read(File::open("/proc/self/mountinfo"), MAX_BYTES)
    }

    /// Line by line: of all these bytes those of one are held at a time.
    fn read(list: io::Result<impl Read>, most: u64) -> Mounts {
        let mut mounts = Mounts::default();
        let read = || -> io::Result<u64> {
            let (mut list, mut bytes) = (BufReader::new(list?.take(most)), 0);
            let mut line = Vec::new();
            loop {
                line.clear();
                match list.read_until(b'\n', &mut line)? {
                    0 => return Ok(bytes),
                    read => bytes += read as u64,
                }
                mounts.add(&String::from_utf8_lossy(&line));
            }
        };
        let bytes = read().unwrap_or(0);
        mounts.is_cut = bytes >= most;
        mounts.is_unknown = bytes == 0 || mounts.is_cut;
        mounts
    }

    /// As a list says (proc_pid_mountinfo(5)); lines that are not as they should be are left out.
    pub fn parse(text: &str) -> Mounts {
        let mut mounts = Mounts::default();
        text.lines().for_each(|line| mounts.add(line));
        mounts
    }

    fn add(&mut self, line: &str) {
        let Some((own, rest)) = line.split_once(" - ") else { return };
        if !rest.starts_with("fuse") || rest.starts_with("fusectl ") {
            return;
        }
        let mut own = own.split(' ').skip(2);
        let (Some(device), Some(point)) = (own.next(), own.nth(1)) else { return };
        let number = |text: &str| text.parse().ok();
        let device = device.split_once(':');
        self.devices.extend(device.and_then(|(a, b)| Some((number(a)?, number(b)?))));
        let point = unescaped(point);
        self.points.insert(self.hasher.hash_one(point.trim_end_matches('/')));
    }

    /// Whether a program may be asked when an absolute path is looked up: one has a mount on the way, which another one may hide.
    pub fn ask_a_program_at(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let mut ways = ends.map(|end| &path[..end]).filter(|_| path.starts_with('/'));
        self.is_unknown || ways.any(|way| self.points.contains(&self.hasher.hash_one(way)))
    }

    /// Whether a program may answer for files of this device.
    pub fn ask_a_program_of(&self, device: (u32, u32)) -> bool {
        self.is_unknown || self.devices.contains(&device)
    }

    /// Whether there is no such device.
    pub fn ask_no_program(&self) -> bool {
        !self.is_unknown && self.devices.is_empty()
    }

    /// Whether there are more than are read: then nothing is looked up.
    pub fn are_too_many(&self) -> bool {
        self.is_cut
    }
}

/// A path of which some characters are written as `\040`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = behind.first_chunk::<3>().and_then(|digits| {
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok().filter(|_| first == b'\\')
        });
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &behind[3..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:44 / /sys/fs/fuse/connections rw - fusectl fusectl rw
31 22 0:61 / /home/x/a\\040b rw,nosuid - fuse.sshfs host:/ rw
32 22 0:62 / /home/x/a\\040b/over rw - tmpfs tmpfs rw
33 22 0:63 / /mnt rw - fuse prog rw
34 33 0:64 / /mnt rw - tmpfs tmpfs rw
nonsense
";

    #[test]
    fn a_program_is_asked_where_its_file_system_is() {
        let mounts = Mounts::parse(LIST);
        for (path, expected) in [
            ("/usr/bin/x", false),
            ("/home/x/a b", true),
            ("/home/x/a b/lib.so", true),
            ("/home/x/a bc", false),
            ("/home/x/a b/over/lib.so", true),
            ("/sys/fs/fuse/connections/1", false),
            ("/mnt/lib.so", true),
            ("relative", false),
        ] {
            assert_eq!(mounts.ask_a_program_at(path), expected, "{path}");
        }
        let devices = [(0, 61), (0, 63), (0, 62), (0, 44), (254, 0)];
        let asked = devices.map(|device| mounts.ask_a_program_of(device));
        assert_eq!(asked, [true, true, false, false, false]);
        assert!(!Mounts::own().ask_a_program_at("/proc/self/exe"));
        assert!(Mounts::of(-1).ask_a_program_at("/x"), "nothing is known of it");
    }

    /// As with a thousand file systems of one user, whose paths are made of spaces.
    #[test]
    fn a_long_list_is_read_to_its_end() {
        use std::io::Write as _;

        let mut file = tempfile::tempfile().unwrap();
        let spaces = "\\040".repeat(4000);
        for i in 0..1000 {
            let point = format!("/home/x/{spaces}/{i}");
            writeln!(file, "{i} 22 1:{i} / {point} rw - fuse prog rw").unwrap();
        }
        file.write_all(LIST.as_bytes()).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mounts = Mounts::read(Ok(file), MAX_BYTES);
        let spaces = " ".repeat(4000);
        for (path, expected) in [
            ("/usr/bin/x", false),
            (&*format!("/home/x/{spaces}"), false),
            (&*format!("/home/x/{spaces}/999/lib.so"), true),
            ("/mnt/lib.so", true),
        ] {
            assert_eq!(mounts.ask_a_program_at(path), expected);
        }
        assert!(mounts.ask_a_program_of((1, 999)) && !mounts.ask_a_program_of((1, 1000)));
        assert!(!mounts.are_too_many());
    }

    #[test]
    fn a_list_beyond_all_bounds_is_unknown() {
        let read = |most| Mounts::read(Ok(LIST.as_bytes()), most);
        let (whole, cut) = (read(LIST.len() as u64 + 1), read(LIST.len() as u64));
        assert!(!whole.are_too_many() && !whole.ask_a_program_at("/usr/bin/x"));
        assert!(cut.are_too_many() && cut.ask_a_program_at("/usr/bin/x") && !cut.ask_no_program());
        let none = Mounts::read(Ok(&b""[..]), 100);
        assert!(none.ask_a_program_at("/x") && !none.are_too_many(), "it has ended");
    }
}
