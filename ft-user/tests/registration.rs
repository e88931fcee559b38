//! Registration and the environment: a process meets an agent, and does what both say.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::ffi::c_void;
use std::mem;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread;

use common::{Memory, memfds};
use ft_user::layout::{Hello, MAGIC, MEMFD_NAME, SEALS, VERSION};
use ft_user::{Agent, Mode};

fn tell(n: u64) {
    ft_user::event!("by-agent.tells", n: u64);
    ft_user::event!("by-environment.tells", n: u64);
    ft_user::event!("by-nobody.tells", n: u64);
}

#[test]
fn agent_and_environment_enable() {
    let directory = std::env::temp_dir().join(format!("ft-user-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let path = directory.join("agent.sock");
    let agent = listen(&path);
    // SAFETY: the only test of this process, and no other thread reads the environment.
    unsafe {
        std::env::set_var("FT_SOCKET", &path);
        std::env::set_var("FT_ENABLE", "by-environment.*,nothing.at.all");
        std::env::set_var("FT_RINGS", "7");
        std::env::set_var("FT_RING_SLOTS", "4096");
        std::env::set_var("FT_MODE", "overwrite");
    }
    let served = thread::spawn(move || serve(agent, b"by-agent.*"));
    let status = ft_user::init().unwrap();
    served.join().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();

    assert_eq!(status.agent, Agent::Registered);
    assert_eq!(status.enabled, 2);
    let config = status.config;
    assert_eq!((config.rings, config.ring_slots, config.mode), (7, 4096, Mode::Overwrite));
    tell(1);
    let names: Vec<_> = Memory::own().take().into_iter().map(|event| event.name).collect();
    assert_eq!(names, ["by-agent.tells", "by-environment.tells"]);
}

fn listen(path: &Path) -> libc::c_int {
    // SAFETY: the address is zero but for family and path, which fits.
    unsafe {
        let mut address: libc::sockaddr_un = mem::zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let bytes = path.as_os_str().as_bytes();
        assert!(bytes.len() < address.sun_path.len());
        for (place, &byte) in address.sun_path.iter_mut().zip(bytes) {
            *place = byte as libc::c_char;
        }
        let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
        let length = size_of_val(&address) as libc::socklen_t;
        assert_eq!(libc::bind(fd, (&raw const address).cast(), length), 0);
        assert_eq!(libc::listen(fd, 1), 0);
        fd
    }
}

/// Takes one registration as an agent does, and answers with `globs`.
fn serve(listener: libc::c_int, globs: &[u8]) {
    // SAFETY: every buffer is valid for the length that is told, and the control buffer is aligned.
    let (client, hello, memfd) = unsafe {
        let client = libc::accept(listener, std::ptr::null_mut(), std::ptr::null_mut());
        let mut hello: Hello = mem::zeroed();
        let mut control = [0u64; 8];
        let mut part =
            libc::iovec { iov_base: (&raw mut hello).cast(), iov_len: size_of::<Hello>() };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast::<c_void>();
        message.msg_controllen = size_of_val(&control) as _;
        assert_eq!(libc::recvmsg(client, &mut message, 0), size_of::<Hello>() as isize);
        let header = libc::CMSG_FIRSTHDR(&message);
        assert!(!header.is_null());
        assert_eq!((*header).cmsg_type, libc::SCM_RIGHTS);
        (client, hello, libc::CMSG_DATA(header).cast::<libc::c_int>().read_unaligned())
    };
    assert_eq!((hello.magic, hello.version, hello.flags), (MAGIC, VERSION, 0));
    // What came is the memfd, with its seals.
    let link = std::fs::read_link(format!("/proc/self/fd/{memfd}")).unwrap();
    assert!(link.to_str().unwrap().contains(MEMFD_NAME.to_str().unwrap()));
    let inode = |path: &Path| std::fs::metadata(path).unwrap().ino();
    let passed = format!("/proc/self/fd/{memfd}");
    assert!(memfds(std::process::id()).iter().all(|path| inode(path) == inode(Path::new(&passed))));
    // SAFETY: asks for the seals of a descriptor of our own.
    assert_eq!(unsafe { libc::fcntl(memfd, libc::F_GET_SEALS) } as u32 & SEALS, SEALS);

    let mut reply = MAGIC.to_ne_bytes().to_vec();
    reply.extend(VERSION.to_ne_bytes());
    reply.extend((globs.len() as u32).to_ne_bytes());
    reply.extend(globs);
    // SAFETY: `reply` is valid for its length; the descriptors are ours.
    unsafe {
        libc::send(client, reply.as_ptr().cast(), reply.len(), libc::MSG_NOSIGNAL);
        for fd in [client, memfd, listener] {
            libc::close(fd);
        }
    }
}
