//! Triggers and metadata for switches, made when the crate is compiled, so that they lie in an object of the program as
//! those of macros do: that is where whoever looks from outside finds them, and all that may be written to.
//!
//! A place whose metadata has no size is not used yet. It costs nothing but its addresses: 8 bytes of text, a record of
//! 16, and 72 bytes that are backed with memory when they are first used.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering::*};

use super::SWITCHES;
use crate::critical::Held;
use crate::layout::{SiteMeta, TRIGGER_BYTES, TRIGGER_OFF, TRIGGER_STATE};

/// Metadata of one switch; zero while it is not used.
#[repr(transparent)]
struct Place(UnsafeCell<MaybeUninit<SiteMeta>>);

// SAFETY: written once, by who holds the process lock, before its size is stored; read behind that size only.
unsafe impl Sync for Place {}

static METAS: [Place; SWITCHES] =
    [const { Place(UnsafeCell::new(MaybeUninit::zeroed())) }; SWITCHES];

/// Places that were given away. Changed by who holds the process lock.
static USED: AtomicUsize = AtomicUsize::new(0);

// The jump of a trigger leads to the next one; nobody takes it. "R": the linker keeps the sections, as it does those of sites.
global_asm!(
    r#"
    .pushsection .text.ft_user_v1_switches,"axR",@progbits
    .p2align 6
    .hidden ft_user_v1_switches
    .globl ft_user_v1_switches
    .type ft_user_v1_switches,@object
ft_user_v1_switches:
    .rept {switches}
    .long {off}
    .long 0
    .endr
    int3                                    // where the last jump would lead
    .size ft_user_v1_switches, . - ft_user_v1_switches
    .popsection

    .pushsection ft_sites,"aR",@progbits
    .p2align 2
    .set ft_user_v1_place, 0
    .rept {switches}
    .short 16, 1
    .long ft_user_v1_switches + 8 * ft_user_v1_place - .
    .long {metas} + {meta_bytes} * ft_user_v1_place - .
    .long 0
    .set ft_user_v1_place, ft_user_v1_place + 1
    .endr
    .popsection
"#,
    switches = const SWITCHES,
    off = const TRIGGER_OFF,
    metas = sym METAS,
    meta_bytes = const size_of::<SiteMeta>(),
);

unsafe extern "C" {
    static ft_user_v1_switches: [u8; 8 * SWITCHES];
}

/// Whether all places are given away.
pub(super) fn is_full() -> bool {
    USED.load(Relaxed) >= SWITCHES
}

/// The next place: its metadata, not yet used, and its trigger.
pub(super) fn next(_held: &Held<'_>) -> Option<(*mut SiteMeta, usize)> {
    let number = USED.load(Relaxed);
    let place = METAS.get(number)?;
    USED.store(number + 1, Relaxed);
    Some((place.0.get().cast(), trigger(number)))
}

fn trigger(number: usize) -> usize {
    (&raw const ft_user_v1_switches) as usize + TRIGGER_BYTES as usize * number
}

/// The trigger of the switch with these metadata, if it is one.
pub(super) fn trigger_of(meta: &'static SiteMeta) -> Option<usize> {
    let distance = (core::ptr::from_ref(meta) as usize).checked_sub(METAS.as_ptr() as usize)?;
    let number = distance / size_of::<SiteMeta>();
    (number < SWITCHES).then(|| trigger(number))
}

/// Fills a place.
///
/// # Safety
///
/// `place` comes from [`next`], and is filled once.
pub(super) unsafe fn fill(place: *mut SiteMeta, meta: SiteMeta) -> &'static SiteMeta {
    let bytes = meta.bytes;
    // SAFETY: nobody reads a place without a size but that size itself, atomically.
    unsafe {
        place.write(SiteMeta { bytes: 0, ..meta });
        // SYNC: dynamic-site (with whoever looks for sites).
        AtomicU16::from_ptr(&raw mut (*place).bytes).store(bytes, Release);
        &*place
    }
}

/// Whether the trigger at this address is on.
#[inline(always)]
pub(super) fn is_on(trigger: usize) -> bool {
    let at = trigger + TRIGGER_STATE as usize;
    // SAFETY: a byte of a trigger, in the text of this object. It may be switched meanwhile, which a volatile read sees
    // before or after.
    let state = unsafe { (at as *const u8).read_volatile() };
    state != TRIGGER_OFF.to_le_bytes()[TRIGGER_STATE as usize]
}
