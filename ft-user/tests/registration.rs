//! Registration and the environment: a process meets an agent, and does what both say.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::thread;

use common::agent::Listener;
use common::{Memory, memfds};
use ft_user::layout::{MAGIC, MEMFD_NAME, SEALS, VERSION};
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
    let agent = Listener::at(&path);
    // SAFETY: the only test of this process, and no other thread reads the environment.
    unsafe {
        std::env::set_var("FT_SOCKET", &path);
        std::env::set_var("FT_ENABLE", "by-environment.*,nothing.at.all");
        std::env::set_var("FT_RINGS", "7");
        std::env::set_var("FT_RING_SLOTS", "4096");
        std::env::set_var("FT_MODE", "overwrite");
    }
    let served = thread::spawn(move || agent.serve(b"by-agent.*"));
    let status = ft_user::init().unwrap();
    let (hello, memfd) = served.join().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();

    assert_eq!(status.agent, Agent::Registered);
    assert_eq!(status.enabled, 2);
    let config = status.config;
    assert_eq!((config.rings, config.ring_slots, config.mode), (7, 4096, Mode::Overwrite));
    tell(1);
    let names: Vec<_> = Memory::map(&memfd).take().into_iter().map(|event| event.name).collect();
    assert_eq!(names, ["by-agent.tells", "by-environment.tells"]);

    assert_eq!((hello.magic, hello.version, hello.flags), (MAGIC, VERSION, 0));
    // What came is the memfd, with its seals.
    let link = std::fs::read_link(format!("/proc/self/fd/{}", memfd.as_raw_fd())).unwrap();
    assert!(link.to_str().unwrap().contains(MEMFD_NAME.to_str().unwrap()));
    // SAFETY: asks for the seals of a descriptor of our own.
    let seals = unsafe { libc::fcntl(memfd.as_raw_fd(), libc::F_GET_SEALS) };
    assert_eq!(seals as u32 & SEALS, SEALS);

    // It is the agent's now: that of this test.
    let [only] = &memfds(std::process::id())[..] else { panic!("not one") };
    assert!(only.ends_with(memfd.as_raw_fd().to_string()));
    assert_eq!(std::fs::metadata(only).unwrap().ino(), memfd.metadata().unwrap().ino());
}
