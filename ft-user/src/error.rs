//! Why tracing did not start.

use std::fmt;

/// Why [`init`](crate::init) did not start tracing. The application is unharmed and goes on untraced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitError {
    /// The environment variable of this name has a value that cannot be understood.
    Variable(&'static str),
    /// The file size limit leaves no room for the buffers: this many bytes are allowed.
    FileSizeLimit(u64),
    /// A system call failed: its name and `errno`.
    System(&'static str, i32),
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            InitError::Variable(name) => {
                let values = match name {
                    "FT_MODE" => "`discard` or `overwrite`",
                    "FT_SOCKET" => "a path of fewer than 108 bytes",
                    _ => "a whole number",
                };
                write!(f, "{name} has a value that cannot be understood; set it to {values}")
            }
            InitError::FileSizeLimit(bytes) => write!(
                f,
                "the file size limit of {bytes} bytes leaves no room for the trace buffers; raise it \
                 (`ulimit -f`), or set FT_RING_SLOTS lower"
            ),
            InitError::System(call, errno) => {
                let error = std::io::Error::from_raw_os_error(errno);
                let remedy = match errno {
                    libc::ENOMEM | libc::ENOSPC => "set FT_RING_SLOTS or FT_RINGS lower",
                    libc::EDEADLK => {
                        "the parent was switching sites or loading a library in another thread; fork again"
                    }
                    libc::ENOTSUP => {
                        "load the library with dlopen, for a namespace has keys of its own"
                    }
                    libc::EMFILE | libc::ENFILE => "raise the limit of open files (`ulimit -n`)",
                    libc::ENOSYS | libc::EPERM | libc::EACCES => {
                        "allow this system call in the process's seccomp or security profile"
                    }
                    _ => "Linux 3.17 or later is needed",
                };
                write!(f, "{call} for the trace buffers failed: {error}; {remedy}")
            }
        }
    }
}

impl std::error::Error for InitError {}
