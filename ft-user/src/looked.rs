//! What a thread has found when it looked for a ring: whether it may read the time stamp counter, and for how many events it does not
//! look again. Both lie in four bytes of the thread-local block of [`crate::arch`], which no event has to allocate.

use crate::arch::{self, Word};

/// Where the answer lies about the counter.
const TSC: u32 = 16;

/// Events that the thread, which found no free ring, writes before it looks again.
pub(crate) fn pause() -> u16 {
    arch::tls_get(Word::Looked) as u16
}

/// Sets it.
pub(crate) fn set_pause(events: u16) {
    let answer = arch::tls_get(Word::Looked) >> TSC << TSC;
    arch::tls_set(Word::Looked, answer | u32::from(events));
}

/// Whether the thread may read the counter, as the kernel has said last; `None` before it was asked.
pub(crate) fn may_read_tsc() -> Option<bool> {
    match arch::tls_get(Word::Looked) >> TSC {
        0 => None,
        answer => Some(answer == 1),
    }
}

/// Remembers what the kernel has said.
pub(crate) fn set_may_read_tsc(may: bool) {
    let answer = if may { 1 } else { 2 };
    arch::tls_set(Word::Looked, answer << TSC | u32::from(pause()));
}
