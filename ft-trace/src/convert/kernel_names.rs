//! What numbers and flags of kernel records are called.

use ft_ebpf::{self as abi, kind, vector};

use crate::tables::{Access, FaultCause, TaskState};

/// Names of softirqs by number (`softirq_to_name`, kernel/softirq.c).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// State of a `prev_state`: bits of `TASK_REPORT` and what is folded into them
/// (include/linux/sched.h; `TASK_STATE_TO_CHAR_STR` in its order R S D T t X Z P I).
pub(super) fn state(state: u32) -> TaskState {
    const DEAD: u32 = 0x80;
    const NOLOAD: u32 = 0x400;
    const RTLOCK_WAIT: u32 = 0x1000;
    if state & abi::Switch::PREEMPTED != 0 {
        return TaskState::Preempted;
    }
    match state {
        s if s & 0x2 != 0 && s & NOLOAD != 0 => TaskState::Idle,
        s if s & 0x1 != 0 => TaskState::Sleeping,
        s if s & (0x2 | RTLOCK_WAIT) != 0 => TaskState::Uninterruptible,
        s if s & 0x4 != 0 => TaskState::Stopped,
        s if s & 0x8 != 0 => TaskState::Traced,
        s if s & (0x10 | DEAD) != 0 => TaskState::Dead,
        s if s & 0x20 != 0 => TaskState::Zombie,
        s if s & 0x40 != 0 => TaskState::Parked,
        _ => TaskState::Runnable,
    }
}

/// Name of an interrupt whose line has no action that is known.
pub(super) fn irq(kind: u16, number: u32) -> String {
    match (kind, number) {
        (kind::SOFTIRQ, n) if (n as usize) < SOFTIRQS.len() => SOFTIRQS[n as usize].into(),
        (kind::SOFTIRQ, n) => format!("softirq {n}"),
        (kind::VECTOR, vector::LOCAL_TIMER) => "local_timer".into(),
        (kind::VECTOR, vector::RESCHEDULE) => "reschedule".into(),
        (kind::VECTOR, vector::CALL_FUNCTION) => "call_function".into(),
        (kind::VECTOR, vector::CALL_FUNCTION_SINGLE) => "call_function_single".into(),
        (kind::VECTOR, vector::IRQ_WORK) => "irq_work".into(),
        (kind::VECTOR, n) => format!("vector {n}"),
        (_, n) => format!("irq {n}"),
    }
}

/// Name of a system call by its number in the ABI of this machine's 64-bit programs.
pub(super) fn syscall(number: u32) -> String {
    match syscalls::Sysno::new(number as usize) {
        Some(call) => call.name().into(),
        None => format!("syscall_{number}"),
    }
}

/// Kind of a kernel lock by the `LCB_F_*` flags of `contention_begin` (include/trace/events/lock.h).
pub(super) fn lock_kind(flags: u32) -> &'static str {
    const SPIN: u32 = 1;
    const READ: u32 = 2;
    const WRITE: u32 = 4;
    const RT: u32 = 8;
    const PERCPU: u32 = 16;
    const MUTEX: u32 = 32;
    let (read, write) = (flags & READ != 0, flags & WRITE != 0);
    match flags {
        // A mutex that spins for its owner before it sleeps has `SPIN`, too.
        f if f & MUTEX != 0 => "mutex",
        f if f & PERCPU != 0 && write => "percpu-rwsem-write",
        f if f & PERCPU != 0 => "percpu-rwsem-read",
        f if f & RT != 0 && read => "rt-rwlock-read",
        f if f & RT != 0 && write => "rt-rwlock-write",
        f if f & RT != 0 => "rt-mutex",
        f if f & SPIN != 0 && read => "rwlock-read",
        f if f & SPIN != 0 && write => "rwlock-write",
        f if f & SPIN != 0 => "spinlock",
        _ if read => "rwsem-read",
        _ if write => "rwsem-write",
        _ => "semaphore",
    }
}

/// Access and cause of a page fault by the CPU's error code (`enum x86_pf_error_code`,
/// arch/x86/include/asm/trap_pf.h).
pub(super) fn fault(error: u32) -> (Access, FaultCause) {
    const PROTECTION: u32 = 1;
    const WRITE: u32 = 1 << 1;
    const FETCH: u32 = 1 << 4;
    let access = match error {
        e if e & FETCH != 0 => Access::Execute,
        e if e & WRITE != 0 => Access::Write,
        _ => Access::Read,
    };
    let forbidden = error & PROTECTION != 0;
    (access, if forbidden { FaultCause::Protection } else { FaultCause::NotPresent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_their_letters() {
        let check = |bits, expected| assert_eq!(state(bits).word(), expected, "{bits:#x}");
        check(0, "R");
        check(abi::Switch::PREEMPTED, "R+");
        check(abi::Switch::PREEMPTED | 1, "R+");
        check(0x1, "S");
        check(0x2, "D");
        check(0x102, "D"); // TASK_KILLABLE
        check(0x402, "I"); // TASK_IDLE
        check(0x4, "T");
        check(0x8, "t");
        check(0x80, "X"); // TASK_DEAD
        check(0x20, "Z");
        check(0x40, "P");
        check(0x1000, "D"); // TASK_RTLOCK_WAIT
    }

    #[test]
    fn system_calls_have_the_names_of_the_manual() {
        for (number, expected) in
            [(libc::SYS_futex, "futex"), (libc::SYS_read, "read"), (99_999, "syscall_99999")]
        {
            assert_eq!(syscall(number as u32), expected);
        }
    }

    #[test]
    fn flags_tell_the_kind_of_a_lock() {
        for (flags, expected) in [
            (0, "semaphore"),
            (0x01, "spinlock"),
            (0x03, "rwlock-read"),
            (0x05, "rwlock-write"),
            (0x02, "rwsem-read"),
            (0x04, "rwsem-write"),
            (0x08, "rt-mutex"),
            (0x12, "percpu-rwsem-read"),
            (0x14, "percpu-rwsem-write"),
            (0x20, "mutex"),
            (0x21, "mutex"),
            (0x8000_0000, "semaphore"),
        ] {
            assert_eq!(lock_kind(flags), expected, "{flags:#x}");
        }
    }

    #[test]
    fn error_codes_tell_access_and_cause() {
        for (error, expected) in [
            (0x04, ("read", "not-present")),
            (0x06, ("write", "not-present")),
            (0x07, ("write", "protection")),
            (0x14, ("execute", "not-present")),
            (0x15, ("execute", "protection")),
        ] {
            let (access, cause) = fault(error);
            assert_eq!((access.word(), cause.word()), expected, "{error:#x}");
        }
    }
}
