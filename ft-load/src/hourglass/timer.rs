//! What wakes a thread: the timers of Hourglass, section 3.3, as Linux has them today.
//!
//! | name | here |
//! |---|---|
//! | `NATIVE` | `nanosleep` of what is left: late by its own delay, and by timer slack (50 µs) for ordinary threads |
//! | `HR` | `clock_nanosleep` to a time of `CLOCK_MONOTONIC` |
//! | `TIMERFD` | a timer file to a time of `CLOCK_MONOTONIC`; not of the paper |
//! | `RTC` | ticks of the real-time clock, `/dev/rtc0` (rtc(4)), of which one thread can have one |
//! | `MM` | those of Windows: refused |

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use crate::Error;
use crate::clock::monotonic_ns;

/// What wakes a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A relative sleep.
    Native,
    /// An absolute sleep.
    Hr,
    /// An absolute timer that is read.
    Timerfd,
    /// Periodic ticks of the real-time clock.
    Rtc,
}

impl Timer {
    /// Reads a name.
    ///
    /// # Errors
    ///
    /// For those of Windows, and for unknown ones.
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        Ok(match text {
            "NATIVE" => Timer::Native,
            "HR" => Timer::Hr,
            "TIMERFD" => Timer::Timerfd,
            "RTC" => Timer::Rtc,
            "MM" => {
                return Err(Error::usage(
                    "MM means the multimedia timers of Windows, which Linux does not have; use HR",
                ));
            }
            _ => {
                return Err(Error::usage(format!(
                    "there is no timer `{}`; use NATIVE, HR, TIMERFD or RTC",
                    text.escape_debug()
                )));
            }
        })
    }
}

/// A timer that is ready to use.
#[derive(Debug)]
pub(super) enum Sleeper {
    Native,
    Hr,
    Timerfd(File),
    Rtc(File),
}

/// `_IOW('p', 0x0c, unsigned long)` and `_IO('p', 0x05)` (linux/rtc.h).
const RTC_IRQP_SET: libc::c_ulong = 0x4008_700c;
const RTC_PIE_ON: libc::c_ulong = 0x7005;

/// The rate of the paper, and the lowest that everybody may have (`/proc/sys/dev/rtc/max-user-freq`).
const RTC_HZ: [libc::c_ulong; 5] = [1024, 512, 256, 128, 64];

impl Sleeper {
    /// Opens what the timer needs.
    ///
    /// # Errors
    ///
    /// Where the machine does not have it, or somebody else does.
    pub(super) fn open(timer: Timer) -> Result<Self, Error> {
        Ok(match timer {
            Timer::Native => Sleeper::Native,
            Timer::Hr => Sleeper::Hr,
            Timer::Timerfd => Sleeper::Timerfd(timerfd()?),
            Timer::Rtc => Sleeper::Rtc(rtc()?),
        })
    }

    /// Sleeps until `CLOCK_MONOTONIC` is at least `due_ns`; returns at once where it is.
    ///
    /// # Errors
    ///
    /// When the timer fails, which only the real-time clock does.
    pub(super) fn sleep_until(&mut self, due_ns: u64) -> Result<(), Error> {
        match self {
            Sleeper::Native => loop {
                let left = due_ns.saturating_sub(monotonic_ns());
                if left == 0 {
                    return Ok(());
                }
                let time = timespec(left);
                // SAFETY: a valid time; nobody wants to know what is left.
                unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
            },
            Sleeper::Hr => {
                sleep_until(due_ns);
                Ok(())
            }
            Sleeper::Timerfd(file) => {
                let due = libc::itimerspec { it_interval: timespec(0), it_value: timespec(due_ns) };
                let (fd, absolute) = (file.as_raw_fd(), libc::TFD_TIMER_ABSTIME);
                // SAFETY: a valid time, for a descriptor that is open as long as the file.
                unsafe {
                    libc::timerfd_settime(fd, absolute, &raw const due, std::ptr::null_mut())
                };
                let mut count = [0; 8];
                while monotonic_ns() < due_ns {
                    file.read_exact(&mut count).map_err(|e| failed("the timer file", &e))?;
                }
                Ok(())
            }
            Sleeper::Rtc(file) => {
                let mut tick = [0; 8];
                while monotonic_ns() < due_ns {
                    file.read_exact(&mut tick).map_err(|e| failed("/dev/rtc0", &e))?;
                }
                Ok(())
            }
        }
    }
}

/// Sleeps until `CLOCK_MONOTONIC` is at least `due_ns`.
pub(super) fn sleep_until(due_ns: u64) {
    let due = timespec(due_ns);
    loop {
        let (clock, absolute) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
        // SAFETY: a valid time; of an absolute one nothing is left.
        let answer =
            unsafe { libc::clock_nanosleep(clock, absolute, &raw const due, std::ptr::null_mut()) };
        if answer != libc::EINTR {
            return;
        }
    }
}

fn timespec(ns: u64) -> libc::timespec {
    let (seconds, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
    libc::timespec { tv_sec: seconds as i64, tv_nsec: ns as i64 }
}

fn timerfd() -> Result<File, Error> {
    // SAFETY: takes no pointer.
    let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
    if fd < 0 {
        return Err(failed("a timer file", &io::Error::last_os_error()));
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

fn rtc() -> Result<File, Error> {
    let file = File::open("/dev/rtc0").map_err(|error| {
        Error::refused(match error.raw_os_error() {
            Some(libc::EBUSY) => {
                "/dev/rtc0 is in use, and only one thread can have it; use HR for the others".into()
            }
            Some(libc::EACCES) => "/dev/rtc0 may not be read; run it as root, or use HR".into(),
            _ => format!("this machine has no timer RTC (/dev/rtc0: {error}); use HR"),
        })
    })?;
    let fd = file.as_raw_fd();
    // SAFETY: the request takes a number.
    let set = |hz: &libc::c_ulong| unsafe { libc::ioctl(fd, RTC_IRQP_SET, *hz) } == 0;
    // SAFETY: the request takes nothing. Closing the file ends the ticks.
    if !RTC_HZ.iter().any(set) || unsafe { libc::ioctl(fd, RTC_PIE_ON, 0) } != 0 {
        let error = io::Error::last_os_error();
        return Err(Error::refused(format!(
            "the real-time clock of this machine makes no periodic ticks ({error}); use HR"
        )));
    }
    Ok(file)
}

fn failed(what: &str, error: &io::Error) -> Error {
    Error::refused(format!("{what} cannot be waited for ({error}); use HR"))
}
