//! An agent's end of the registration socket.

#![allow(dead_code, reason = "each test uses its part")]

use std::ffi::c_void;
use std::fs::File;
use std::mem;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use ft_user::layout::{Hello, MAGIC, NO_ANSWER, VERSION};

use super::Memory;

/// A socket at which processes register.
pub(crate) struct Listener(OwnedFd);

impl Listener {
    pub(crate) fn at(path: &Path) -> Listener {
        let (address, length) = address(path);
        // SAFETY: the address is as long as is said, and the descriptor is new.
        unsafe {
            let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
            assert_eq!(libc::bind(fd, (&raw const address).cast(), length), 0);
            assert_eq!(libc::listen(fd, 4096), 0);
            Listener(OwnedFd::from_raw_fd(fd))
        }
    }

    /// Takes one registration, and answers with `globs` who waits for it. What it said, and its memfd.
    pub(crate) fn serve(&self, globs: &[u8]) -> (Hello, File) {
        // SAFETY: every buffer is valid for the length that is told, and the control buffer is aligned; descriptors are new.
        let (client, hello, memfd) = unsafe {
            let null = std::ptr::null_mut();
            let client =
                libc::accept4(self.0.as_raw_fd(), null, std::ptr::null_mut(), libc::SOCK_CLOEXEC);
            let client = OwnedFd::from_raw_fd(client);
            let mut hello: Hello = mem::zeroed();
            let mut control = [0u64; 8];
            let mut part =
                libc::iovec { iov_base: (&raw mut hello).cast(), iov_len: size_of::<Hello>() };
            let mut message: libc::msghdr = mem::zeroed();
            message.msg_iov = &mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast::<c_void>();
            message.msg_controllen = size_of_val(&control) as _;
            let flags = libc::MSG_CMSG_CLOEXEC;
            let bytes = libc::recvmsg(client.as_raw_fd(), &mut message, flags);
            assert_eq!(bytes, size_of::<Hello>() as isize);
            let header = libc::CMSG_FIRSTHDR(&message);
            assert!(!header.is_null());
            assert_eq!((*header).cmsg_type, libc::SCM_RIGHTS);
            let memfd = libc::CMSG_DATA(header).cast::<libc::c_int>().read_unaligned();
            (client, hello, File::from_raw_fd(memfd))
        };
        if hello.flags & NO_ANSWER == 0 {
            let mut reply = MAGIC.to_ne_bytes().to_vec();
            reply.extend(VERSION.to_ne_bytes());
            reply.extend((globs.len() as u32).to_ne_bytes());
            reply.extend(globs);
            let (data, flags) = (reply.as_ptr().cast(), libc::MSG_NOSIGNAL);
            // SAFETY: `reply` is valid for its length.
            unsafe { libc::send(client.as_raw_fd(), data, reply.len(), flags) };
        }
        (hello, memfd)
    }
}

/// Registers as a process that waits for no answer.
pub(crate) fn register(path: &Path, memfd: &File, flags: u32) {
    let hello = Hello { magic: MAGIC, version: VERSION, flags: NO_ANSWER | flags };
    // SAFETY: buffers are valid for the lengths that are told, and the control buffer is aligned.
    unsafe {
        let (address, length) = address(path);
        let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
        let socket = OwnedFd::from_raw_fd(fd);
        assert_eq!(libc::connect(fd, (&raw const address).cast(), length), 0);
        let mut part = libc::iovec {
            iov_base: (&raw const hello).cast_mut().cast(),
            iov_len: size_of::<Hello>(),
        };
        let mut control = [0u64; 3];
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as _;
        libc::CMSG_DATA(header).cast::<libc::c_int>().write_unaligned(memfd.as_raw_fd());
        let sent = libc::sendmsg(socket.as_raw_fd(), &message, 0);
        assert_eq!(sent, size_of::<Hello>() as isize);
    }
}

fn address(path: &Path) -> (libc::sockaddr_un, libc::socklen_t) {
    // SAFETY: all of it may be zero.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    assert!(bytes.len() < address.sun_path.len());
    for (place, &byte) in address.sun_path.iter_mut().zip(bytes) {
        *place = byte as libc::c_char;
    }
    (address, size_of_val(&address) as libc::socklen_t)
}

/// A flag of a registration that no process sends.
const THE_LAST: u32 = 1 << 31;

/// Takes the memfds of all processes that register.
pub(crate) struct Agent {
    pub(crate) path: PathBuf,
    memories: Arc<Mutex<Vec<Memory>>>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    pub(crate) fn new(name: &str) -> Agent {
        let path = std::env::temp_dir().join(format!("ft-{}-{name}.sock", std::process::id()));
        let listener = Listener::at(&path);
        let memories = Arc::<Mutex<Vec<Memory>>>::default();
        let found = Arc::clone(&memories);
        let thread = std::thread::spawn(move || {
            loop {
                let (hello, memfd) = listener.serve(b"");
                if hello.flags & THE_LAST != 0 {
                    break;
                }
                found.lock().unwrap().push(Memory::map(&memfd));
            }
        });
        Agent { path, memories, thread: Some(thread) }
    }

    /// All that have registered by now.
    pub(crate) fn memories(mut self) -> Vec<Memory> {
        let memfd = std::fs::File::open("/dev/null").unwrap();
        register(&self.path, &memfd, THE_LAST);
        self.thread.take().unwrap().join().unwrap();
        std::fs::remove_file(&self.path).unwrap();
        std::mem::take(&mut *self.memories.lock().unwrap())
    }
}
