//! A loss never begins too late, whatever two signal handlers do while an event is counted as lost.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::arch::{asm, x86_64::_rdtsc};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

use common::{Memory, start};
use ft_user::layout::{MIN_RING_SLOTS, RingControl};
use ft_user::{Config, enable, event};

/// The processor's flag that has it trap after each instruction.
const TRAP: i64 = 1 << 8;

static CONTROL: AtomicPtr<RingControl> = AtomicPtr::new(ptr::null_mut());
/// Instructions so far, those after which a handler tells of the loss, and those after which another one loses an event.
static STEPS: AtomicU64 = AtomicU64::new(0);
static TELLS: AtomicU64 = AtomicU64::new(0);
static LOSES: AtomicU64 = AtomicU64::new(0);
/// When that one has lost it.
static LOST_AT: AtomicU64 = AtomicU64::new(0);

/// Steps that are looked at: all of the short way of an event that is lost, and the beginning of the long one.
const MOST: u64 = 60;

extern "C" fn trapped(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the test has stored the control page of a ring that stays mapped.
    let control = unsafe { &*CONTROL.load(Relaxed) };
    let step = STEPS.fetch_add(1, Relaxed);
    if step == TELLS.load(Relaxed) {
        // What the long way does when there is room; and by the end of the handler there is none any more.
        control.loss_begin_tsc.store(u64::MAX, Relaxed);
        control.lost_pending.store(0, Relaxed);
    }
    if step == LOSES.load(Relaxed) {
        // SAFETY: reads a counter.
        let now = unsafe { _rdtsc() };
        control.loss_begin_tsc.fetch_min(now, Relaxed);
        control.lost_pending.fetch_add(1, Relaxed);
        control.loss_begin_tsc.fetch_min(now, Relaxed);
        LOST_AT.store(now, Relaxed);
    }
    if step >= MOST {
        // SAFETY: the kernel hands over the context of the interrupted thread.
        let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
        context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP;
    }
}

#[test]
fn it_begins_with_the_first_event_that_is_lost() {
    start(Config { ring_slots: MIN_RING_SLOTS, ..Config::default() });
    enable("begins.*");
    let memory = Memory::own();
    for n in 0..2 * u64::from(MIN_RING_SLOTS) {
        event!("begins.event", n: u64);
    }
    let control = memory.rings().next().unwrap();
    CONTROL.store(ptr::from_ref(control).cast_mut(), Relaxed);
    // SAFETY: the handler changes what its own thread counts.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = trapped as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &action, ptr::null_mut()), 0);
    }
    let mut checked = 0;
    for tells in 0..MOST {
        for loses in tells..MOST {
            // A loss that goes on.
            control.loss_begin_tsc.store(1, Relaxed);
            control.lost_pending.store(1, Relaxed);
            [&TELLS, &LOSES, &STEPS]
                .into_iter()
                .zip([tells, loses, 0])
                .for_each(|(to, n)| to.store(n, Relaxed));
            LOST_AT.store(0, Relaxed);
            let lost = control.lost.load(Relaxed);
            // SAFETY: sets the flag, for which there is a handler.
            unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
            event!("begins.event", n: u64 = 7);
            // SAFETY: clears the flag, if the handler has not.
            unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
            assert_eq!(control.lost.load(Relaxed), lost + 1);
            let (began, lost_at) = (control.loss_begin_tsc.load(Relaxed), LOST_AT.load(Relaxed));
            if lost_at > 0 {
                assert!(began <= lost_at, "{tells} {loses}: {} cycles too late", began - lost_at);
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked}");
}
