//! Whether `record --counter` has something to count.

use std::{fs, io};

use ft_user::counters::Open;
use ft_user::layout::COUNTERS;

use super::Check;

pub(super) fn check() -> Check {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    found(
        Open::new(&COUNTERS[0], false).map(Open::close),
        paranoid.and_then(|level| level.trim().parse().ok()),
    )
}

/// By what became of a counter of the agent's own, and `perf_event_paranoid`, which from 3 on keeps users out (a patch of Debian's
/// and others; the kernel's own levels end at 2).
fn found(opened: Result<(), i32>, paranoid: Option<i32>) -> Check {
    const NAME: &str = "hardware counters";
    const ALLOW: &str = "allow them for `record --counter`: sysctl kernel.perf_event_paranoid=2";
    match opened {
        Ok(()) if paranoid.is_some_and(|level| level > 2) => {
            Check::warn(NAME, "there are some, for programs of root alone", ALLOW)
        }
        Ok(()) => Check::ok(NAME, "there are some, and programs may read them"),
        Err(libc::EOPNOTSUPP) => Check::warn(
            NAME,
            "there are some, and programs may not read them without a system call",
            "for `record --counter`, write 1 to /sys/bus/event_source/devices/cpu/rdpmc, or add --counter-calls",
        ),
        Err(libc::ENOENT) => Check::warn(
            NAME,
            "none, as in most virtual machines",
            "`record --counter` and `--switch-counter` need a machine that has some; those of the kernel can be read with --counter-calls, and at \
             switches",
        ),
        Err(libc::EACCES | libc::EPERM) => {
            Check::warn(NAME, "not for this user, or not in this container", ALLOW)
        }
        Err(errno) => Check::warn(
            NAME,
            format!("cannot be opened: {}", io::Error::from_raw_os_error(errno)),
            "run where perf_event_open is allowed for `record --counter`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Status;
    use super::*;

    #[test]
    fn who_may_read_counters() {
        let check = |opened, paranoid, expected: &str, status| {
            let check = found(opened, paranoid);
            assert!(check.found.contains(expected), "{}", check.found);
            assert_eq!(check.status, status);
            assert_eq!(check.remedy.is_empty(), status == Status::Ok);
        };
        check(Ok(()), Some(2), "programs may read them", Status::Ok);
        check(Ok(()), None, "programs may read them", Status::Ok);
        check(Ok(()), Some(3), "root alone", Status::Warn);
        check(Err(libc::ENOENT), Some(2), "none", Status::Warn);
        check(Err(libc::EOPNOTSUPP), Some(2), "may not read them without", Status::Warn);
        check(Err(libc::EACCES), Some(3), "not for this user", Status::Warn);
        check(Err(libc::ENOSYS), Some(2), "cannot be opened", Status::Warn);
    }
}
