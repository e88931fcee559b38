//! Where a file system is that asks a program of some user (FUSE). Who looks a file up there, opens it or reads it waits for that program,
//! for ever if it likes. Not even SIGKILL ends the wait. So nobody looks, and such a file has no names.
//!
//! A list has what its process can reach. A file system that it has left (`umount -l`, `chroot`, another mount namespace) is not in it, nor
//! is one below another (overlayfs), nor one that comes after the list was read.

use std::fs::File;
use std::io::{self, Read as _};

/// Most of a list of mounts that is read, bytes, of some 150 for each. Who has more has no names.
///
/// Limit: as `MAX_WHOLE_BYTES` of `dir.rs`.
const MAX_BYTES: u64 = 4 << 20;

/// What is mounted, as a process has it (proc_pid_mountinfo(5)), as far as programs answer for it.
#[derive(Debug, Default)]
pub struct Mounts {
    /// Points below which programs answer.
    points: Vec<String>,
    /// Devices for which programs answer: major and minor number.
    devices: Vec<(u32, u32)>,
    /// The list could not be read, or not to its end.
    is_unknown: bool,
}

impl Mounts {
    /// Those of a process. Where its list cannot be read, a program may answer for anything.
    pub fn of(pid: i32) -> Mounts {
        Mounts::read(File::open(format!("/proc/{pid}/mountinfo")))
    }

    /// Our own.
    pub fn own() -> Mounts {
        Mounts::read(File::open("/proc/self/mountinfo"))
    }

    fn read(list: io::Result<File>) -> Mounts {
        let mut text = Vec::new();
        let read = list.and_then(|list| list.take(MAX_BYTES).read_to_end(&mut text));
        let is_unknown = read.is_err() || text.is_empty() || text.len() as u64 == MAX_BYTES;
        Mounts { is_unknown, ..Mounts::parse(&String::from_utf8_lossy(&text)) }
    }

    /// As a list says (proc_pid_mountinfo(5)); lines that are not as they should be are left out.
    pub fn parse(text: &str) -> Mounts {
        let mut mounts = Mounts::default();
        for line in text.lines() {
            let Some((own, rest)) = line.split_once(" - ") else { continue };
            let mut own = own.split(' ').skip(2);
            let (Some(device), Some(point)) = (own.next(), own.nth(1)) else { continue };
            if rest.starts_with("fuse") && !rest.starts_with("fusectl ") {
                let number = |text: &str| text.parse().ok();
                let device = device.split_once(':');
                mounts.devices.extend(device.and_then(|(a, b)| Some((number(a)?, number(b)?))));
                mounts.points.push(unescaped(point));
            }
        }
        mounts
    }

    /// Whether a program may be asked when an absolute path is looked up: one has a mount on the way, which another one may hide.
    pub fn ask_a_program_at(&self, path: &str) -> bool {
        let is_on_the_way = |point: &String| {
            let rest = path.strip_prefix(point.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.is_unknown || self.points.iter().any(is_on_the_way)
    }

    /// Whether a program may answer for files of this device.
    pub fn ask_a_program_of(&self, device: (u32, u32)) -> bool {
        self.is_unknown || self.devices.contains(&device)
    }

    /// Whether there is no such device.
    pub fn ask_no_program(&self) -> bool {
        !self.is_unknown && self.devices.is_empty()
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
}
