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

/// How much an event takes: of a signal handler, on a stack that is painted.
fn taken() -> usize {
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
    let lowest = stack.iter().position(|&byte| byte != PAINT).expect("it was used");
    FRAME.load(Relaxed) - (stack.as_ptr().addr() + lowest)
}

/// How much the first event of a child takes, which is in a fork handler before ours.
static OF_CHILD: AtomicUsize = AtomicUsize::new(0);

extern "C" fn in_child() {
    OF_CHILD.store(taken(), Relaxed);
}

unsafe extern "C" {
    fn pthread_atfork(
        before: Option<extern "C" fn()>,
        in_parent: Option<extern "C" fn()>,
        in_child: Option<extern "C" fn()>,
    ) -> libc::c_int;
}

/// As the documentation of the crate says.
#[test]
fn the_first_event_of_a_thread_takes_as_much_of_its_stack_as_is_said() {
    // SAFETY: the handler writes an event, and allocates before that, where nobody else is in the allocator: the test has one thread.
    assert_eq!(unsafe { pthread_atfork(None, None, Some(in_child)) }, 0);
    common::start(Config { ring_slots: 1 << 10, rings: 2, ..Config::default() });
    ft_user::enable("stack.*");
    let mut memory = Memory::own();
    let said = if cfg!(debug_assertions) { 6 << 10 } else { 4 << 10 };
    let is_said = |taken: usize| {
        assert!((2 << 10..said).contains(&taken), "{taken} bytes");
        println!("{taken} bytes");
    };
    is_said(taken());
    assert_eq!(memory.take().len(), 1);
    let (mut of_child, mut ends) = (0usize, [0; 2]);
    // SAFETY: the child makes system calls. The pipe has room for a word.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let child = libc::fork();
        if child == 0 {
            let taken = OF_CHILD.load(Relaxed);
            libc::write(ends[1], (&raw const taken).cast(), size_of_val(&taken));
            libc::_exit(0);
        }
        assert_eq!(libc::waitpid(child, ptr::null_mut(), 0), child);
        libc::read(ends[0], (&raw mut of_child).cast(), size_of_val(&of_child));
    }
    is_said(of_child);
}
