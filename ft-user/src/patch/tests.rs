use super::*;
use crate::site;

/// The form of code that a test may patch without disturbing another: its own site.
fn site_named(name: &str) -> u64 {
    let mut found = None;
    site::for_each(|site| found = found.or((site.meta.name() == name).then_some(site.trigger)));
    found.expect("the site is in this program") as u64
}

fn found(address: u64) -> [u8; 4] {
    let mut found = [0; 4];
    Memory::own().unwrap().read_exact_at(&mut found, address).unwrap();
    found
}

#[test]
fn site_goes_on_and_off() {
    crate::event!("patch.on_and_off");
    let at = site_named("patch.on_and_off");
    let mut text = Text::own().unwrap();
    assert!(!text.set(at, false).unwrap());
    assert!(text.set(at, true).unwrap());
    assert_eq!(found(at), TRIGGER_ON.to_le_bytes());
    assert!(!text.set(at, true).unwrap());
    assert!(text.set(at, false).unwrap());
    assert_eq!(found(at), TRIGGER_OFF.to_le_bytes());
}

#[test]
fn what_is_on_for_an_agent_goes_off_with_it_unless_somebody_else_wants_it() {
    crate::event!("patch.lent");
    let at = site_named("patch.lent");
    let mut text = Text::own().unwrap();
    assert!(!text.take_back(at).unwrap());
    assert!(text.lend(at).unwrap());
    assert_eq!((found(at), state(found(at))), (TRIGGER_LENT.to_le_bytes(), Some(true)));
    assert!(!text.lend(at).unwrap());
    assert!(text.take_back(at).unwrap());
    assert_eq!(found(at), TRIGGER_OFF.to_le_bytes());
    // It was on, and is on.
    assert!(text.lend(at).unwrap());
    assert!(!text.set(at, true).unwrap());
    assert_eq!(found(at), TRIGGER_ON.to_le_bytes());
    assert!(!text.lend(at).unwrap());
    assert!(!text.take_back(at).unwrap());
    assert_eq!(found(at), TRIGGER_ON.to_le_bytes());
    assert!(text.set(at, false).unwrap());
    assert!(text.lend(at).unwrap());
    assert!(text.set(at, false).unwrap());
}

#[test]
fn text_within_an_event_is_written_too() {
    crate::event!("patch.within");
    let at = site_named("patch.within");
    assert!(Text::own().unwrap().lend(at).unwrap());
    assert!(Text::own_within_event().unwrap().take_back(at).unwrap());
    assert_eq!(found(at), TRIGGER_OFF.to_le_bytes());
}

#[test]
fn anything_else_is_refused_and_kept() {
    // One bit of each byte differs; a breakpoint on one of these; the form of another tool.
    static DATA: [u32; 6] = [
        TRIGGER_OFF ^ 1,
        TRIGGER_OFF ^ 1 << 8,
        TRIGGER_OFF ^ 1 << 18,
        TRIGGER_ON ^ 1 << 31,
        (TRIGGER_ON ^ 1 << 18) & !0xff | 0xcc,
        0xe9,
    ];
    let mut text = Text::own().unwrap();
    for cell in &DATA {
        let (at, bytes) = (cell as *const u32 as u64, cell.to_le_bytes());
        let error = text.set(at, true).unwrap_err();
        assert!(
            matches!(error, PatchError::NotATrigger { address, found } if address == at && found == bytes)
        );
        assert!(error.to_string().contains(&format!("{at:#x} are {bytes:02x?}")));
        assert_eq!(found(at), bytes);
    }
    assert!(matches!(text.set(0, true), Err(PatchError::NotText { address: 0 })));
}

#[test]
fn a_site_under_a_breakpoint_is_switched_and_stays_so_when_it_goes() {
    crate::event!("patch.breakpoint");
    let at = site_named("patch.breakpoint");
    let memory = Memory::own().unwrap();
    let under = |form: u32| [&[BREAKPOINT][..], &form.to_le_bytes()[1..]].concat();
    let mut text = Text::own().unwrap();
    // As a debugger does, and the kernel where it probes.
    memory.write_all_at(&[BREAKPOINT], at).unwrap();
    for switched in [true, false] {
        let error = text.set(at, true).unwrap_err();
        let expected = PatchError::Breakpoint { address: at, switched };
        assert_eq!(format!("{error:?}"), format!("{expected:?}"), "its events can be missing");
        assert_eq!(found(at)[..], under(TRIGGER_ON));
    }
    assert!(text.set(at, false).unwrap());
    assert_eq!(found(at)[..], under(TRIGGER_OFF));
    assert!(!text.set(at, false).unwrap());
    memory.write_all_at(&TRIGGER_OFF.to_le_bytes()[..1], at).unwrap();
    assert_eq!(found(at), TRIGGER_OFF.to_le_bytes());
}

/// Memory that is text, with these bytes; never executed.
fn page_of_text(bytes: &[u8]) -> u64 {
    use libc::{MAP_ANONYMOUS, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE};
    let (page, none) = (PAGE as usize, std::ptr::null_mut());
    // SAFETY: a new page at an address of the kernel's choice, which only this test knows.
    unsafe {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS;
        let at = libc::mmap(none, page, PROT_READ | PROT_WRITE, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        at.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len());
        assert_eq!(libc::mprotect(at, page, PROT_READ | PROT_EXEC), 0);
        at as u64
    }
}

/// Has `membarrier` end with this error number, or with 0, in the calling thread.
fn forbid_membarrier(errno: u32) {
    // linux/seccomp.h, linux/bpf_common.h: load the number of the call; is it that one; return.
    let filter = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        filter(0x20, 0, 0, 0),
        filter(0x15, 0, 1, libc::SYS_membarrier as u32),
        filter(0x06, 0, 0, libc::SECCOMP_RET_ERRNO | errno),
        filter(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
    // SAFETY: the program is valid, and concerns this thread alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
}

#[test]
fn sleds_are_prepared_only_where_all_cores_are_known_to_have_serialised() {
    let bare = [0xeb, 9, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0];
    let prepare = |forbidden: Option<u32>| {
        let address = page_of_text(&bare);
        let sled = Sled { address, function: address, kind: SledKind::Begin };
        // Of a thread of its own, so the process has several.
        let thread = std::thread::spawn(move || {
            forbidden.into_iter().for_each(forbid_membarrier);
            let mut text = Text::own().unwrap();
            let count = text.prepare(&mut Preparation::of(vec![(sled, address + 64)]));
            (count, text.set_sled(sled, true))
        });
        let (count, switched) = thread.join().unwrap();
        let mut found = [0; SLED_BYTES as usize];
        Memory::own().unwrap().read_exact_at(&mut found, address).unwrap();
        (count, switched, sled.state(found))
    };
    let (count, switched, state) = prepare(None);
    assert_eq!((count, switched.unwrap(), state), (1, true, Some(SledState::On)));
    // Refused; and as a filter does it that means well.
    for errno in [libc::EPERM, 0] {
        let (count, switched, state) = prepare(Some(errno as u32));
        assert_eq!((count, state), (0, Some(SledState::Bare)), "{errno}");
        let reason = switched.unwrap_err();
        assert!(matches!(reason, PatchError::Unprepared { .. }), "{reason}");
        assert!(reason.to_string().contains("membarrier"), "{reason}");
    }
}

/// Two copies of this crate in one process know nothing of each other's locks.
#[test]
fn two_that_write_to_one_page_leave_it_as_it_was() {
    let at = page_of_text(&[0; 16]);
    let write = |first: u64, times: u32| {
        for n in 1..=times {
            write_unprotected(at + first, &n.to_le_bytes()).unwrap();
        }
    };
    let times = 2000u32;
    std::thread::scope(|scope| {
        let others = [0, 4, 8].map(|first| scope.spawn(move || write(first, times)));
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert_eq!(protection(&maps, at), Some(libc::PROT_READ | libc::PROT_EXEC));
    let mut found = [0; 12];
    Memory::own().unwrap().read_exact_at(&mut found, at).unwrap();
    assert_eq!(found.chunks(4).collect::<Vec<_>>(), [times.to_le_bytes(); 3]);
}

#[test]
fn fallback_restores_the_protection() {
    crate::event!("patch.fallback");
    let at = site_named("patch.fallback");
    let maps = || std::fs::read_to_string("/proc/self/maps").unwrap();
    let before = protection(&maps(), at);
    let [on, off] =
        [TRIGGER_ON, TRIGGER_OFF].map(|form| form.to_le_bytes()[TRIGGER_STATE as usize]);
    write_unprotected(at + TRIGGER_STATE, &[on]).unwrap();
    assert_eq!(found(at), TRIGGER_ON.to_le_bytes());
    write_unprotected(at + TRIGGER_STATE, &[off]).unwrap();
    assert_eq!(before, protection(&maps(), at));
    assert_eq!(before, Some(libc::PROT_READ | libc::PROT_EXEC));
    let data = &0u8 as *const u8 as u64;
    assert!(matches!(write_unprotected(data, &[0]), Err(PatchError::NotText { .. })));
}

#[test]
fn protection_is_read() {
    let maps = "1000-3000 r-xp 0 0:0 0 /bin/x\n3000-4000 rw-p 0 0:0 0\n";
    for (address, expected) in [
        (0xfff, None),
        (0x1000, Some(libc::PROT_READ | libc::PROT_EXEC)),
        (0x2fff, Some(libc::PROT_READ | libc::PROT_EXEC)),
        (0x3000, Some(libc::PROT_READ | libc::PROT_WRITE)),
        (0x4000, None),
    ] {
        assert_eq!(protection(maps, address), expected, "{address:#x}");
    }
}
