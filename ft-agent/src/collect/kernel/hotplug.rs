//! CPUs that went offline, as the kernel tells: one that is online again cannot be told from one that never went by
//! looking at the list of those that are.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recvfrom, socket_with};

/// Of the groups of the kernel's events of devices, that of the kernel's own ones (lib/kobject_uevent.c).
const OF_THE_KERNEL: u32 = 1;

/// Longest message: `UEVENT_BUFFER_SIZE` (include/linux/kobject.h), and what is before it.
///
/// Limit: cannot be reached: the kernel's own are at most 2048 (`UEVENT_BUFFER_SIZE`), and the CPU that went offline is
/// named in the first ones.
/// Shown by: `a_message_tells_of_a_cpu_that_went_offline_or_of_something_else`.
const MAX_MESSAGE_BYTES: usize = 4096;

/// A socket on which the kernel tells of devices that come and go (netlink(7)); none where nobody has to know, and where it may
/// not be opened.
#[derive(Default)]
pub(super) struct Hotplug(Option<OwnedFd>);

/// CPUs that went offline.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Gone {
    cpus: Vec<u32>,
    /// Messages were lost: any may have gone.
    any: bool,
}

impl Hotplug {
    /// Listens from now on.
    pub(super) fn listen() -> Hotplug {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listen = || {
            let socket = socket_with(
                AddressFamily::NETLINK,
                SocketType::DGRAM,
                flags,
                Some(KOBJECT_UEVENT),
            )?;
            bind(&socket, &SocketAddrNetlink::new(0, OF_THE_KERNEL)).map(|()| socket)
        };
        Hotplug(listen().ok())
    }

    /// Those that have gone since the last call, whether or not they are back.
    pub(super) fn gone(&self) -> Gone {
        let mut gone = Gone::default();
        let Some(socket) = &self.0 else { return gone };
        let mut message = [0; MAX_MESSAGE_BYTES];
        loop {
            match recvfrom(socket, &mut message[..], RecvFlags::empty()) {
                Ok((read, _, from)) => {
                    let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
                    // Processes with the right may send to this group, too.
                    if from.is_some_and(|from| from.pid() == 0) {
                        gone.cpus.extend(offline(&message[..read]));
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => gone.any = true,
                Err(_) => return gone,
            }
        }
    }
}

impl Gone {
    pub(super) fn has(&self, cpu: u32) -> bool {
        self.any || self.cpus.contains(&cpu)
    }

    pub(super) fn is_nobody(&self) -> bool {
        !self.any && self.cpus.is_empty()
    }
}

/// The CPU that went offline, if that is what a message tells: `offline@/devices/system/cpu/cpu1`, and variables.
fn offline(message: &[u8]) -> Option<u32> {
    let head = message.split(|&byte| byte == 0).next()?;
    let cpu = head.strip_prefix(b"offline@/devices/system/cpu/cpu")?;
    std::str::from_utf8(cpu).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_tells_of_a_cpu_that_went_offline_or_of_something_else() {
        let check = |message: &[u8], cpu| assert_eq!(offline(message), cpu, "{message:?}");
        check(b"offline@/devices/system/cpu/cpu1\0ACTION=offline\0SEQNUM=7\0", Some(1));
        check(b"offline@/devices/system/cpu/cpu255", Some(255));
        check(b"online@/devices/system/cpu/cpu1\0ACTION=online\0", None);
        check(b"offline@/devices/system/memory/memory32\0", None);
        check(b"offline@/devices/system/cpu/cpu\0", None);
        check(b"offline@/devices/system/cpu/cpu99999999999\0", None);
        check(b"libudev\0", None);
        check(b"", None);
    }

    #[test]
    fn nobody_goes_where_nobody_is_told_of() {
        assert!(Hotplug::default().gone().is_nobody());
        assert!(!Gone { any: true, ..Gone::default() }.is_nobody());
        assert!(Gone { any: true, ..Gone::default() }.has(5));
        assert!(!Gone { cpus: vec![3], any: false }.has(5));
    }
}
