//! A program under a number that is chosen for it.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// A child that runs.
pub(crate) struct Numbered {
    pid: i32,
    said: PipeReader,
}

/// Starts a program of this user and group under this number (clone3(2), `set_tid`; CAP_CHECKPOINT_RESTORE), with these
/// arguments and this environment.
///
/// # Errors
///
/// `EEXIST` when another has the number.
pub(crate) fn start(
    number: i32,
    user: u32,
    arguments: &[&Path],
    environment: &[String],
) -> io::Result<Numbered> {
    let words: Vec<CString> =
        arguments.iter().map(|word| c_string(word.as_os_str().as_bytes())).collect();
    let variables: Vec<CString> =
        environment.iter().map(|text| c_string(text.as_bytes())).collect();
    let (words, variables) = (pointers(&words), pointers(&variables));
    let nothing = File::open("/dev/null")?;
    let (said, says) = io::pipe()?;
    let numbers = [number];
    // SAFETY: all zeros are the defaults.
    let mut how: libc::clone_args = unsafe { std::mem::zeroed() };
    how.exit_signal = libc::SIGCHLD as u64;
    how.set_tid = numbers.as_ptr() as u64;
    how.set_tid_size = 1;
    // SAFETY: a fork; the child makes system calls only, with what was made before.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const how, size_of_val(&how)) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: as above; all strings and lists of them end in NUL.
            unsafe {
                libc::dup2(nothing.as_raw_fd(), 0);
                libc::dup2(says.as_raw_fd(), 1);
                libc::chdir(c"/".as_ptr());
                libc::setgroups(0, ptr::null());
                if libc::setgid(user) == 0 && libc::setuid(user) == 0 {
                    libc::execve(words[0], words.as_ptr(), variables.as_ptr());
                }
                libc::_exit(127)
            }
        }
        pid => Ok(Numbered { pid: pid as i32, said }),
    }
}

fn c_string(bytes: &[u8]) -> CString {
    CString::new(bytes).expect("no NUL")
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    let strings = strings.iter().map(|text| CStr::as_ptr(text));
    strings.chain([ptr::null()]).collect()
}

impl Numbered {
    /// Waits for its end; what it has said.
    pub(crate) fn end(mut self) -> String {
        let mut text = String::new();
        self.said.read_to_string(&mut text).expect("a pipe");
        // SAFETY: waits for a child of ours.
        assert_eq!(unsafe { libc::waitpid(self.pid, ptr::null_mut(), 0) }, self.pid);
        text
    }
}
