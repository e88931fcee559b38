//! Where the memory of a ring comes from: its own thread touches it first, so that it is of that thread's node.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::Ordering::*;
use std::sync::mpsc;

use common::{Memory, memfds, tid};
use ft_user::Config;
use ft_user::layout::PAGE;

const SLOTS: u32 = 1 << 12;
const SLOT_BYTES: u64 = 32;

/// Nodes of the pages, by the kernel's number for each; negative where there is no page (move_pages(2)).
fn nodes(start: *const u8, pages: u64) -> Vec<i32> {
    let addresses: Vec<_> =
        (0..pages).map(|page| start.wrapping_add((page * PAGE) as usize)).collect();
    let mut nodes = vec![0; addresses.len()];
    // SAFETY: without nodes to move to, it only writes as many numbers as there are addresses.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            addresses.len(),
            addresses.as_ptr(),
            std::ptr::null::<i32>(),
            nodes.as_mut_ptr(),
            0,
        )
    };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
    nodes
}

/// The part of the memfd with this ring's slots: bytes that are backed.
fn backed(memory: &Memory, number: u64) -> u64 {
    let [path] = &memfds(std::process::id())[..] else { panic!("not one memfd") };
    let file = File::open(path).unwrap();
    let (offset, stride) = (memory.header().rings_offset, memory.header().ring_stride);
    let (mut at, end) = (offset + number * stride + PAGE, offset + (number + 1) * stride);
    let mut bytes = 0;
    while at < end {
        // SAFETY: a descriptor of this function, of which nobody uses the position.
        let seek = |from: u64, what| unsafe { libc::lseek(file.as_raw_fd(), from as i64, what) };
        let Ok(data) = u64::try_from(seek(at, libc::SEEK_DATA)) else { break };
        let hole = seek(data, libc::SEEK_HOLE) as u64;
        bytes += hole.min(end).saturating_sub(data.min(end));
        at = hole;
    }
    bytes
}

fn node() -> i32 {
    let mut node = 0u32;
    // SAFETY: both places are valid or absent.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_getcpu,
            std::ptr::null::<u32>(),
            &raw mut node,
            std::ptr::null::<u8>(),
        )
    };
    assert_eq!(answer, 0);
    node as i32
}

/// Keeps this thread on the CPU that it has, and so on its node.
fn stay() {
    // SAFETY: a set is plain bits, and the calls write it or read it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu() as usize, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
    }
}

fn event(n: u64) {
    ft_user::event!("placement.tells", n: u64);
}

#[test]
fn the_thread_that_writes_a_ring_touches_it_first() {
    common::start(Config { ring_slots: SLOTS, rings: 4, ..Config::default() });
    ft_user::enable("placement.*");
    let mut memory = Memory::own();
    let ((go, orders), (tell, told)) = (mpsc::channel::<u64>(), mpsc::channel());
    let writer = std::thread::spawn(move || {
        stay();
        for events in orders {
            (0..events).for_each(event);
            tell.send((tid(), node())).unwrap();
        }
    });
    for (events, pages) in [(1, 1), (PAGE / SLOT_BYTES, 2), (5 * PAGE / SLOT_BYTES, 7)] {
        go.send(events).unwrap();
        let (tid, node) = told.recv().unwrap();
        // Whoever reads what is there backs no further page.
        assert_eq!(memory.take().len() as u64, events);
        let number = memory.rings().position(|ring| ring.tid.load(Relaxed) == tid).unwrap();
        assert_eq!(backed(&memory, number as u64), pages * PAGE);
        let ring = memory.rings().nth(number).unwrap();
        let slots = std::ptr::from_ref(ring).cast::<u8>().wrapping_add(PAGE as usize);
        assert_eq!(nodes(slots, pages), vec![node; pages as usize]);
    }
    drop(go);
    writer.join().unwrap();
}
