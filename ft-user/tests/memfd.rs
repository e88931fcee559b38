//! What a process makes when tracing starts.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::sync::atomic::Ordering::*;

use common::{Memory, memfds, tid};
use ft_user::directory::Entry;
use ft_user::layout::{MAGIC, Mode, VERSION, ring_state};
use ft_user::{Agent, Config};

fn place_order(id: u64) {
    ft_user::event!("order.placed", id: u64, qty: u32 = 3; "order {id}");
}

#[test]
fn start_makes_one_memfd_that_explains_itself() {
    assert_eq!(ft_user::disable("*"), 0, "nothing is switched before the start");
    // Nobody listens there, whatever runs on this machine.
    // SAFETY: the only test of this process, and no other thread reads the environment.
    unsafe { std::env::set_var("FT_SOCKET", "/nonexistent/agent.sock") };
    let config = Config { ring_slots: 5000, rings: 3, mode: Mode::Discard };
    let status = ft_user::init_with(config).unwrap();
    assert_eq!(status.config, Config { ring_slots: 8192, ..config });
    assert_eq!((status.agent, status.enabled, status.refused), (Agent::Absent, 0, 0));
    assert!(status.sites > 0);
    assert_eq!(ft_user::init().unwrap(), status, "a second call changes nothing");

    let [path] = &memfds(std::process::id())[..] else { panic!("not one memfd") };
    let info = path.to_str().unwrap().replace("/fd/", "/fdinfo/");
    let flags = std::fs::read_to_string(info).unwrap();
    let flags = flags.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
    let flags = i32::from_str_radix(flags.trim(), 8).unwrap();
    assert_ne!(flags & libc::O_CLOEXEC, 0, "exec leaks nothing");
    let number: u64 = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
    assert!(number >= 128, "{number} is a number that programs use");

    let mut memory = Memory::own();
    let header = memory.header();
    assert_eq!((header.magic.load(Acquire), header.version), (MAGIC, VERSION));
    assert_eq!((header.ring_count, header.ring_slots), (3, 8192));
    assert_eq!(header.rings_used.load(Relaxed), 0, "no event, no ring");
    assert_eq!(header.dir_dropped.load(Relaxed), 0);

    let directory = memory.directory();
    let key = directory.iter().find_map(|entry| match entry {
        Entry::SiteMeta { key, name: "order.placed", file, format, args, .. } => {
            assert_eq!((*file, *format), (file!(), "order {id}"));
            assert_eq!(args.iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["id", "qty"]);
            Some(*key)
        }
        _ => None,
    });
    let sites = directory.iter().filter(|e| matches!(e, Entry::Site { .. })).count();
    assert_eq!(sites, status.sites);
    assert!(directory.iter().any(|e| matches!(e, Entry::Site { key: k, .. } if Some(*k) == key)));

    place_order(1);
    let on = ft_user::enable("order.*");
    assert!(on > 0);
    assert_eq!(memory.header().sites_enabled.load(Relaxed) as usize, on);
    place_order(2);
    assert_eq!(ft_user::disable("order.placed"), on);
    place_order(3);
    let events = memory.take();
    let [event] = &events[..] else { panic!("{events:?}") };
    assert_eq!((event.tid, &event.words[..2], event.shared), (tid(), &[2, 3][..], false));

    let ring = memory.rings().next().unwrap();
    assert_eq!(ring.state.load(Relaxed), ring_state::LIVE);
    assert_eq!(ring.generation.load(Relaxed), 1);
    let name = ring.name.each_ref().map(|word| word.load(Relaxed).to_ne_bytes()).concat();
    let name = String::from_utf8(name).unwrap();
    // The test harness names its threads after the tests, and the kernel keeps 15 bytes.
    assert_eq!(name.trim_end_matches('\0'), "start_makes_one");
}
