//! Where a file system is that asks a program of some user (FUSE): who looks a file up there, opens it or reads it waits for that program,
//! for ever if it likes, and not even SIGKILL ends the wait. So nobody looks: such a file has no names.
//!
//! One that was unmounted while it was in use (`umount -l`) is in no list, and not known.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};

/// Most of a list of mounts that is read, bytes: some thousand are usual on large machines.
const MAX_BYTES: u64 = 16 << 20;

/// What is mounted, as a process has it (proc_pid_mountinfo(5)), as far as programs answer for it.
#[derive(Debug, Default)]
pub struct Mounts {
    /// Each point, and whether a program answers for what is there; later ones lie above earlier ones.
    points: Vec<(String, bool)>,
    /// Devices of which programs answer for: major and minor number.
    devices: Vec<(u32, u32)>,
}

impl Mounts {
    /// Those of a process; none where its list cannot be read.
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
        match read {
            Ok(_) => Mounts::parse(&String::from_utf8_lossy(&text)),
            Err(_) => Mounts::default(),
        }
    }

    fn parse(text: &str) -> Mounts {
        let mut mounts = Mounts::default();
        for line in text.lines() {
            let Some((own, rest)) = line.split_once(" - ") else { continue };
            let mut own = own.split(' ').skip(2);
            let (Some(device), Some(point)) = (own.next(), own.nth(1)) else { continue };
            let is_of_a_program = rest.starts_with("fuse") && !rest.starts_with("fusectl ");
            mounts.points.push((unescaped(point), is_of_a_program));
            if is_of_a_program {
                let number = |text: &str| text.parse().ok();
                let device = device.split_once(':');
                mounts.devices.extend(device.and_then(|(a, b)| Some((number(a)?, number(b)?))));
            }
        }
        mounts
    }

    /// Whether a program is asked when an absolute path is looked up, by the mounts on the way: of several at one point the last counts.
    pub fn ask_a_program_at(&self, path: &str) -> bool {
        let on_the_way = |point: &str| {
            path.strip_prefix(point.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let of_it = self.points.iter().filter(|(point, _)| on_the_way(point));
        let last: HashMap<&String, bool> = of_it.map(|(point, asks)| (point, *asks)).collect();
        last.values().any(|asks| *asks)
    }

    /// Whether a program answers for files of this device.
    pub fn ask_a_program_of(&self, device: (u32, u32)) -> bool {
        self.devices.contains(&device)
    }

    /// Whether there is any such device.
    pub fn ask_no_program(&self) -> bool {
        self.devices.is_empty()
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
            ("/mnt/lib.so", false),
            ("relative", false),
        ] {
            assert_eq!(mounts.ask_a_program_at(path), expected, "{path}");
        }
        let devices = [(0, 61), (0, 63), (0, 62), (0, 44), (254, 0)];
        let asked = devices.map(|device| mounts.ask_a_program_of(device));
        assert_eq!(asked, [true, true, false, false, false]);
        assert!(
            !Mounts::own().ask_a_program_at("/proc/self/exe") && Mounts::of(-1).ask_no_program()
        );
    }
}
