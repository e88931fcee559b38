//! Whether a thread may read the time stamp counter.
//!
//! A program can forbid it to a thread (`PR_SET_TSC`, prctl(2); its children inherit that), which then dies at the instruction. So
//! a thread is asked when it claims a ring. One that may not read the counter gets none, and its events are counted as lost; it is
//! asked again when it next looks for a ring. To ask at each event would cost more than the event: a thread that forbids it to
//! itself later, when it has a ring, dies at its next event, as it does wherever the C library reads the time.

use crate::{kernel, looked};

// linux/prctl.h
const PR_GET_TSC: usize = 25;
const PR_TSC_SIGSEGV: libc::c_int = 2;

/// Asks the kernel. Keeps no promise for what the thread forbids later.
pub(crate) fn ask() -> bool {
    let mut mode: libc::c_int = 0;
    let place = (&raw mut mode).expose_provenance();
    // SAFETY: writes one int to a valid place (PR_GET_TSC, prctl(2)), or fails where a processor has nothing to forbid.
    let asked = unsafe { kernel::call(libc::SYS_prctl, [PR_GET_TSC, place]) };
    let may_read = asked.is_err() || mode != PR_TSC_SIGSEGV;
    looked::set_may_read_tsc(may_read);
    may_read
}

/// What the kernel has said when it was asked last; asks now if it was not asked yet.
pub(crate) fn may_read() -> bool {
    looked::may_read_tsc().unwrap_or_else(ask)
}
