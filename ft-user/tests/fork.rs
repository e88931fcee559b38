//! Fork: the child has a memfd of its own, and the parent's stays the parent's.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::*;

use common::{Memory, memfds};

fn tell(n: u64) {
    ft_user::event!("fork.tells", n: u64);
}

#[test]
fn child_writes_to_a_memfd_of_its_own() {
    static NAMED: ft_user::sync::Mutex<()> = ft_user::sync::Mutex::named("before-fork", ());
    common::start(ft_user::Config::default());
    ft_user::enable("fork.*");
    ft_user::enable("lock.*");
    tell(1);
    drop(NAMED.lock());
    let mut parent = Memory::own();
    parent.take();

    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    // SAFETY: the child writes events, uses the socket, and ends without running destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        tell(2);
        drop(NAMED.lock());
        // Grandchildren too.
        // SAFETY: as above.
        let grandchild = unsafe { libc::fork() };
        tell(if grandchild == 0 { 3 } else { 4 });
        theirs.write_all(&std::process::id().to_ne_bytes()).ok();
        // Until the parent has looked.
        theirs.read_exact(&mut [0]).ok();
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(0) };
    }
    tell(5);
    let values = |events: Vec<common::Event>| -> Vec<u64> {
        let mine = events.into_iter().filter(|event| event.name == "fork.tells");
        mine.map(|event| event.words[0]).collect()
    };
    assert_eq!(values(parent.take()), [5]);
    for _ in 0..2 {
        let mut pid = [0; 4];
        ours.read_exact(&mut pid).unwrap();
        let pid = u32::from_ne_bytes(pid);
        assert_eq!(memfds(pid).len(), 1, "the parent's is closed");
        let mut memory = Memory::of(pid);
        assert_eq!(memory.header().pid, pid);
        let names = memory.directory().into_iter().filter(|entry| {
            matches!(entry, ft_user::directory::Entry::Name { text: "before-fork", .. })
        });
        assert_eq!(names.count(), 1, "numbers given before the fork are explained");
        let ring = memory.rings().next().unwrap();
        assert_eq!(ring.generation.load(Relaxed), 1);
        let expected: &[u64] = if pid == child as u32 { &[2, 4] } else { &[3] };
        assert_eq!(values(memory.take()), expected);
    }
    ours.write_all(&[0; 2]).unwrap();
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    tell(6);
    assert_eq!(values(parent.take()), [6]);
}
