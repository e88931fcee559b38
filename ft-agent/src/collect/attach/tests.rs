use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, inotify, memfd_create};

use super::*;
use crate::collect::geometry::tests::good;

/// A memfd with these bytes at its start.
pub(crate) fn memfd(header: &[u8], bytes: u64, seals: u32) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("feather-trace", flags).unwrap());
    file.set_len(bytes).unwrap();
    file.write_all_at(header, 0).unwrap();
    fcntl_add_seals(&file, SealFlags::from_bits_retain(seals)).unwrap();
    file.into()
}

#[test]
fn a_good_memfd_is_mapped_and_locked() {
    let (header, bytes) = good();
    let fd = memfd(&header, bytes, SEALS);
    let memory = Memory::attach(fd.as_fd()).unwrap();
    assert_eq!(memory.ring(1).len(), u64::from(memory.geometry().ring_slots));
    assert_eq!(memory.shared().1.len(), 64);
    assert!(matches!(Memory::attach(fd.as_fd()), Err(Refusal::Taken)));
    assert!(memory.is(fd.as_fd()) && !memory.is(memfd(&header, bytes, SEALS).as_fd()));
    drop(memory);
    Memory::attach(fd.as_fd()).unwrap();
}

#[test]
fn each_missing_seal_is_refused() {
    let (header, bytes) = good();
    // Sealed against further seals, the others cannot be added later either.
    for seals in [0, 1, 2, 4, 2 | 4, 1 | 2, 1 | 4] {
        let fd = memfd(&header, bytes, seals);
        let refusal = Memory::attach(fd.as_fd()).unwrap_err();
        assert!(matches!(refusal, Refusal::Seals(s) if s == seals), "{refusal}");
    }
}

#[test]
fn what_is_no_memory_is_refused_before_it_is_opened() {
    let refusal = |fd: &OwnedFd| Memory::attach(fd.as_fd()).unwrap_err();
    let plain = tempfile::NamedTempFile::new().unwrap();
    let path = |flags| open(plain.path(), flags, Mode::empty()).unwrap();
    let sent = [path(OFlags::RDWR), path(OFlags::PATH)];
    let opened = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&opened, plain.path(), inotify::WatchFlags::OPEN).unwrap();
    for fd in sent {
        assert!(matches!(refusal(&fd), Refusal::NotMemory), "{}", refusal(&fd));
    }
    let events = |opened: &OwnedFd| rustix::io::read(opened, &mut [0; 1024]);
    assert_eq!(events(&opened), Err(rustix::io::Errno::AGAIN));
    path(OFlags::RDONLY);
    assert!(events(&opened).is_ok_and(|bytes| bytes > 0), "what is opened is seen");
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
    let huge = memfd_create("feather-trace", flags | MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&huge, 16 << 20).unwrap();
    fcntl_add_seals(&huge, SealFlags::from_bits_retain(SEALS)).unwrap();
    assert!(matches!(refusal(&huge), Refusal::HugePages));
}

#[test]
fn a_memfd_is_not_opened_for_more_than_its_sender_may() {
    let (header, bytes) = good();
    let fd = memfd(&header, bytes, SEALS);
    let own = format!("/proc/self/fd/{}", fd.as_raw_fd());
    for (flags, expected) in [(OFlags::RDONLY, "Access"), (OFlags::PATH, "NotMemory")] {
        let less = open(own.as_str(), flags, Mode::empty()).unwrap();
        let refusal = Memory::attach(less.as_fd()).unwrap_err();
        assert_eq!(format!("{refusal:?}"), expected);
    }
}

/// Waits for nobody: the lease would be broken after 45 s (proc_sys_fs(5), lease-break-time).
#[test]
fn a_lease_is_not_waited_for() {
    let (header, bytes) = good();
    let fd = memfd(&header, bytes, SEALS);
    // Against those who open it for writing.
    let own = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let lessor = open(own, OFlags::RDONLY, Mode::empty()).unwrap();
    // SAFETY: plain system calls on a descriptor of our own; to ignore a signal calls nothing. The holder is
    // told by SIGIO, which would end this process.
    unsafe {
        libc::signal(libc::SIGIO, libc::SIG_IGN);
        assert_eq!(libc::fcntl(lessor.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK), 0);
    }
    assert!(matches!(Memory::attach(fd.as_fd()), Err(Refusal::Leased)));
}

#[test]
fn what_was_not_written_takes_no_memory() {
    let (header, bytes) = good();
    let memory = Memory::attach(memfd(&header, bytes, SEALS).as_fd()).unwrap();
    let slots = u64::from(memory.geometry().ring_slots);
    let before = memory.resident_bytes();
    assert!(!memory.is_claimed(1));
    assert_eq!([0, 5, slots - 1].map(|from| memory.backed_slots(1, from)), [0; 3]);
    assert_eq!([0, 5].map(|from| memory.unbacked_slots(1, from)), [slots, slots - 5]);
    assert_eq!(memory.backed_shared(3), 0);
    assert_eq!(memory.resident_bytes(), before);
    // The third page of slots; there are 128 in each.
    let third = memory.slot_range(1, 300).0 as u64;
    memory.map.file.write_all_at(&[1], third).unwrap();
    assert_eq!(memory.resident_bytes(), before + PAGE);
    assert_eq!([255, 256, 300].map(|from| memory.backed_slots(1, from)), [0, 128, 84]);
    assert_eq!([0, 300].map(|from| memory.unbacked_slots(1, from)), [256, 0]);
    memory.ring(1).control.tid.store(1, Relaxed);
    assert!(memory.is_claimed(1) && !memory.is_claimed(0));
    memory.shared().1[33].marker.store(1, Relaxed);
    assert_eq!([31, 32, 40].map(|position| memory.backed_shared(position)), [0, 32, 24]);
}

/// No memfd that is attached can do this; other memory that fails looks the same.
#[test]
fn a_fault_is_survived() {
    let (header, bytes) = good();
    let fd = memfd(&header, bytes, 0);
    let geometry = Geometry::check(&header, bytes).unwrap();
    let file = File::from(fd.try_clone().unwrap());
    let memory = Memory::map(file, geometry).unwrap();
    let head = |memory: &Memory| memory.ring(1).control.head.load(Relaxed);
    memory.ring(1).control.head.store(7, Relaxed);
    assert_eq!((head(&memory), memory.has_faulted()), (7, false));
    rustix::fs::ftruncate(&fd, 0).unwrap();
    assert_eq!((head(&memory), memory.has_faulted()), (0, true));
    // Nothing is shared any more, and nothing faults again.
    memory.ring(0).control.tail.store(1, Relaxed);
    assert_eq!(memory.header().rings_used.load(Relaxed), 0);
}

#[test]
fn short_and_malformed_files_are_refused() {
    let refusal = |fd: OwnedFd| Memory::attach(fd.as_fd()).unwrap_err();
    let (header, bytes) = good();
    let short = refusal(memfd(&[], 0, SEALS));
    assert!(matches!(short, Refusal::Header(Malformed::Short)), "{short}");
    let larger = refusal(memfd(&header, bytes + 1, SEALS));
    assert!(matches!(larger, Refusal::Header(Malformed::Field { .. })), "{larger}");
    let zeros = refusal(memfd(&[], bytes, SEALS));
    assert!(matches!(zeros, Refusal::Header(Malformed::Magic)), "{zeros}");
}
