//! Where a file system is that asks a program of some user (FUSE). Who looks a file up there, opens it or reads it waits for that program,
//! for ever if it likes. Not even SIGKILL ends the wait. So nobody looks, and such a file has no names.
//!
//! A list has what its process can reach. A file system that it has left (`umount -l`, `chroot`, another mount namespace) is not in it, nor
//! is one below another (overlayfs), nor one that comes after the list was read.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, StatxFlags, statx};

use crate::foreign_file::ForeignFile;

/// Most of a list of mounts that is read, bytes, of some 150 for each. A user can give its processes a list of any length, each another one.
///
/// Limit: files of a process with more mounts have no names, and a warning says so.
/// Shown by: `a_list_beyond_all_bounds_is_unknown`.
const MAX_BYTES: u64 = 4 << 20;

/// The same of our own list, which is that of most processes: what some users can mount together who are allowed a thousand file systems
/// each (`mount_max`, fuse.conf), behind the longest paths.
///
/// Limit: as `MAX_BYTES`.
/// Shown by: `a_long_list_is_read_to_its_end`.
const MAX_OWN_BYTES: u64 = 128 << 20;

/// What a byte of a list takes of a CPU, ns.
const NS_PER_BYTE: u64 = 25;

/// From where a process sees what is mounted: its mount namespace, and its root directory on its mount. Who sees it from the same place has
/// the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    namespace: u64,
    mount: u64,
    root: (u32, u32, u64),
}

impl View {
    /// That of a process; `None` if it is not told.
    pub fn of(pid: i32) -> Option<View> {
        let namespace = std::fs::metadata(format!("/proc/{pid}/ns/mnt")).ok()?.ino();
        let root = ForeignFile::behind(Path::new(&format!("/proc/{pid}/root"))).ok()?;
        let (flags, wanted) = (AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::MNT_ID);
        let stat = statx(root, "", flags, wanted | StatxFlags::INO).ok()?;
        let root = (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino);
        let is_whole = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        is_whole.then_some(View { namespace, mount: stat.stx_mnt_id, root })
    }

    /// Our own.
    pub fn own() -> Option<View> {
        View::of(std::process::id() as i32)
    }
}

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
    /// So much was read.
    bytes: u64,
}

impl Mounts {
    /// Those of a process. Where its list cannot be read, a program may answer for anything.
    pub fn of(pid: i32) -> Mounts {
        let is_ours = View::own().is_some_and(|own| View::of(pid) == Some(own));
        let most = if is_ours { MAX_OWN_BYTES } else { MAX_BYTES };
        Mounts::read(File::open(format!("/proc/{pid}/mountinfo")), most)
    }

    /// Our own.
    pub fn own() -> Mounts {
        Mounts::read(File::open("/proc/self/mountinfo"), MAX_OWN_BYTES)
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
        mounts.bytes = bytes;
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

    /// How much of the list was read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What that has taken of a CPU, about.
    pub fn cpu(&self) -> Duration {
        Duration::from_nanos(self.bytes.saturating_mul(NS_PER_BYTE))
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
        let mounts = Mounts::read(Ok(file), MAX_OWN_BYTES);
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
        assert_eq!((whole.bytes(), cut.bytes()), (LIST.len() as u64, LIST.len() as u64));
    }

    #[test]
    fn who_sees_the_same_mounts_has_one_view() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (own, its) = (View::own(), View::of(child.id() as i32));
        child.kill().and_then(|()| child.wait()).unwrap();
        assert!(own.is_some() && its == own);
        assert_eq!(View::of(-1), None);
    }
}
