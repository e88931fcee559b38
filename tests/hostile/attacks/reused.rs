//! A number that is used again: a child connects and ends, its number goes to an honest program, and its parent speaks
//! for it, with memory that claims the first thread of that number.

use std::mem::offset_of;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use ft_trace::tables::{CriticalSection, UserEvent};
use ft_user::layout::{Header, RingControl};
use ft_user::sync::Mutex;

use crate::Attack;
use crate::forged::{join, own_memfd, try_hello, unconnected, wait_for_hang_up};
use crate::gate;
use crate::stage::{Attacker, Attacking, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "reused", program, test };

fn program(attacker: &Attacker) {
    // SAFETY: no other thread of this process runs yet.
    unsafe {
        std::env::set_var("FT_SOCKET", "/dev/null/none");
        std::env::set_var("FT_ENABLE", "*");
    }
    ft_user::init().expect("the tracer starts");
    ft_user::event!("reused.step");
    let memfd = own_memfd();
    let put = |at: u64, bytes: &[u8]| memfd.write_all_at(bytes, at).expect("a file of ours");
    let mut offset = [0; 8];
    memfd
        .read_exact_at(&mut offset, offset_of!(Header, rings_offset) as u64)
        .expect("a file of ours");
    let ring = u64::from_ne_bytes(offset);
    attacker.ready();
    loop {
        let connection = unconnected();
        // By the call alone: the tracer counts a child that it cannot tell anybody of.
        // SAFETY: no other thread of this process runs; the child calls the kernel only.
        let child = unsafe { libc::syscall(libc::SYS_fork) } as libc::pid_t;
        if child == 0 {
            join(&connection, &attacker.socket);
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: waits for a child of ours.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        println!("{child}");
        std::io::stdin().read_line(&mut String::new()).expect("a pipe");
        put(offset_of!(Header, pid) as u64, &child.to_ne_bytes());
        put(ring + offset_of!(RingControl, tid) as u64, &child.to_ne_bytes());
        // Held for ever: what the thread of that number takes later would be deeper.
        let lock = Box::leak(Box::new(Mutex::named("stolen", 0)));
        std::mem::forget(lock.lock());
        ft_user::event!("reused.step");
        let is_sent = try_hello(&connection, memfd.as_fd());
        wait_for_hang_up(&connection);
        // The agent waits for nobody for ever.
        println!("{}", if is_sent { "sent" } else { "late" });
        if is_sent {
            return attacker.wait();
        }
    }
}

/// Lets the attacker speak when the victim has the number; what the victim says.
fn victim(stage: &Stage, attackers: &mut [Attacking]) -> String {
    let [attacker] = attackers else { unreachable!("one user") };
    let mut said = String::new();
    loop {
        let number = attacker.hear().parse().expect("a number");
        let victim = stage.start_numbered(number).expect("nobody else has the number");
        attacker.say("go");
        let answer = attacker.hear();
        said += &victim.end();
        if answer == "sent" {
            return said;
        }
    }
}

fn test(stage: &Stage) {
    // Somebody has that one.
    let refused = stage.start_numbered(1).err().and_then(|error| error.raw_os_error());
    if refused != Some(libc::EEXIST) {
        return gate::skipped("nobody may choose the number of a process here (clone3, set_tid)");
    }
    let scene = Scene { then: &victim, ..Scene::default() };
    let recorded = stage.attack_in(&ATTACK, &scene);
    let honest = recorded.honest_threads();
    let events = recorded.trace.rows::<UserEvent>().map(|event| event.expect("a row"));
    let claimed = events.filter(|event| &*event.event == "reused.step");
    let threads: Vec<i32> = claimed.map(|event| event.tid.0).collect();
    assert!(!threads.is_empty() && threads.iter().all(|&tid| tid < 0), "{threads:?}");
    assert!(threads.iter().any(|tid| honest.contains(&-tid)), "{threads:?} of {honest:?}");
    for hold in recorded.trace.rows::<CriticalSection>() {
        let hold = hold.expect("a row");
        let is_honest = &*hold.lock_name == "ledger";
        assert!(!is_honest || hold.depth == 0, "{hold:?}");
    }
}
