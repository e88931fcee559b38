//! How much of a thread's stack its first event takes.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use common::Memory;
use ft_user::Config;

/// What the signal stack is filled with.
const PAINT: u8 = 0xa5;

/// Where the handler's own frame is.
static FRAME: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handler(_: libc::c_int) {
    let here = 0u8;
    FRAME.store(ptr::from_ref(&here).addr(), Relaxed);
    ft_user::event!("stack.first");
}

/// As the documentation of the crate says.
#[test]
fn the_first_event_of_a_thread_takes_as_much_of_its_stack_as_is_said() {
    common::start(Config { ring_slots: 1 << 10, rings: 2, ..Config::default() });
    ft_user::enable("stack.*");
    let mut memory = Memory::own();
    let mut stack = vec![PAINT; 64 << 10];
    // SAFETY: the handler writes an event, on a stack that is there as long as its thread, and needs no more.
    unsafe {
        let ours =
            libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
        assert_eq!(libc::sigaltstack(&ours, ptr::null_mut()), 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut()), 0);
        libc::raise(libc::SIGUSR1);
        let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        assert_eq!(libc::sigaltstack(&none, ptr::null_mut()), 0);
    }
    assert_eq!(memory.take().len(), 1);
    let lowest = stack.iter().position(|&byte| byte != PAINT).expect("it was used");
    let taken = FRAME.load(Relaxed) - (stack.as_ptr().addr() + lowest);
    let said = if cfg!(debug_assertions) { 6 << 10 } else { 4 << 10 };
    assert!((2 << 10..said).contains(&taken), "{taken} bytes");
    println!("{taken} bytes");
}
