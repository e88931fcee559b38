//! Group `futex`: what programs ask of the kernel for their locks.

use crate::ids::{Cpu, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// What a call about a futex or a semaphore does (futex(2), semop(2)).
    pub enum FutexKind {
        /// Waits until it is woken, if the value at the address is the expected one.
        Wait = "wait",
        /// The same at several addresses at once; the first one is stored.
        Waitv = "waitv",
        /// Wakes threads that wait at the address.
        Wake = "wake",
        /// Wakes some that wait at the address, and lets others wait at another one.
        Requeue = "requeue",
        /// Wakes some that wait at the address, changes the value at another one, and may wake some there.
        WakeOp = "wake-op",
        /// Locks a futex with priority inheritance, whose value is its owner.
        LockPi = "lock-pi",
        /// The same, without waiting.
        TrylockPi = "trylock-pi",
        /// Unlocks such a futex.
        UnlockPi = "unlock-pi",
        /// Waits to be moved to such a futex, and to have it.
        WaitRequeuePi = "wait-requeue-pi",
        /// Moves threads to such a futex.
        RequeuePi = "requeue-pi",
        /// Takes from a System-V semaphore, or waits until it is 0.
        SemaphoreWait = "semaphore-wait",
        /// Adds to a System-V semaphore.
        SemaphorePost = "semaphore-post",
        /// Something else.
        Other = "other",
        _ => Other
    }
}

impl FutexKind {
    /// Its thread may have to wait.
    pub fn waits(self) -> bool {
        use FutexKind::*;
        matches!(self, Wait | Waitv | LockPi | WaitRequeuePi | SemaphoreWait)
    }

    /// It may have another thread go on.
    pub fn wakes(self) -> bool {
        use FutexKind::*;
        matches!(self, Wake | Requeue | WakeOp | UnlockPi | RequeuePi | SemaphorePost)
    }

    /// It is about a futex whose value is its owner.
    pub fn has_owner(self) -> bool {
        matches!(self, FutexKind::LockPi | FutexKind::TrylockPi | FutexKind::UnlockPi)
    }

    /// It is about a System-V semaphore.
    pub fn is_semaphore(self) -> bool {
        matches!(self, FutexKind::SemaphoreWait | FutexKind::SemaphorePost)
    }
}

words! {
    /// How such a call returned.
    pub enum FutexResult {
        /// Without an error.
        Done = "done",
        /// The time was over.
        TimedOut = "timed-out",
        /// For a signal, perhaps one that ends the thread; or the thread does it again at once.
        Interrupted = "interrupted",
        /// At once: the value at the address was not the expected one.
        Changed = "changed",
        /// With another error.
        Failed = "failed",
        /// It had not, when the recording ended.
        Unfinished = "unfinished",
        _ => Failed
    }
}

table! {
    "futex_calls",
    /// `futex_calls`: one system call about a futex, or a System-V semaphore: what any lock does when it is contended.
    pub struct FutexCall {
        /// Entry.
        pub ts: Nanos,
        /// Exit minus entry; where it had not returned, until when that is known.
        pub dur: i64 as Ns,
        /// CPU of the exit.
        pub cpu: Cpu,
        /// Caller.
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// What it does.
        pub kind: FutexKind,
        /// Address of the futex in its process; of a System-V semaphore its number in its set × 2³² + the identifier of
        /// the set.
        pub address: i64 as Address,
        /// Other processes may know the futex, by other addresses.
        pub shared: bool,
        /// The other address, of an operation that has one.
        pub second: Option<i64> as Address,
        /// Value that a wait expects; how many a wake-up wakes at most; what is added to a semaphore; how many futexes.
        pub value: i32 as Number,
        /// What stood at the address before a wait; null where it could not be read, and for other operations.
        pub word: Option<i32> as Number,
        /// From the entry until it gives up, less than 0 when that time was over; null without such a time, and where it
        /// could not be read.
        pub timeout_ns: Option<i64> as Ns,
        /// What it returned; -4095..=-1 is the negated `errno`. 0 where it had not.
        pub ret: i64 as Number,
        /// How it returned.
        pub result: FutexResult,
    }
}

#[cfg(feature = "store")]
mod store {
    //! How its rows are made of records, and what a listing says of them.

    use std::borrow::Cow;
    use std::fmt;

    use ft_ebpf::{Futex, kind};
    use serde_json::{Map, Value};

    use crate::store::Row;
    use crate::tables::listed::{Line, Listed};
    use crate::tables::record::{Decoder, KernelTable, cpu, interval, pid, tid};

    use super::*;

    impl KernelTable for FutexCall {
        type Record = Futex;
        const KINDS: &'static [u16] = &[kind::FUTEX];

        fn row(r: &Futex, seen: &mut Decoder) -> FutexCall {
            let (ts, dur) = interval(r.entry_ts, r.header.ts);
            let kind = what(r);
            let result = result(r, kind);
            FutexCall {
                ts,
                dur,
                cpu: cpu(r.header.cpu),
                tid: tid(r.header.tid),
                pid: pid(r.tgid),
                kind,
                address: r.address as i64,
                shared: kind.is_semaphore() || r.op & Futex::OP_PRIVATE == 0,
                second: (r.second != 0 && !kind.is_semaphore()).then_some(r.second as i64),
                value: r.value as i32,
                word: (r.flags & Futex::WORD != 0).then_some(r.word as i32),
                timeout_ns: timeout_ns(r, seen.realtime_offset_ns),
                ret: if result == FutexResult::Unfinished { 0 } else { r.ret },
                result,
            }
        }
    }

    /// The operation of `futex`, without what may be set besides.
    fn operation(r: &Futex) -> Option<u32> {
        (r.call == Futex::FUTEX).then_some(r.op & !Futex::OP_FLAGS)
    }

    fn what(r: &Futex) -> FutexKind {
        match (r.call, operation(r)) {
            (_, Some(Futex::OP_WAIT | Futex::OP_WAIT_BITSET)) | (Futex::WAIT, _) => FutexKind::Wait,
            (_, Some(Futex::OP_WAKE | Futex::OP_WAKE_BITSET)) | (Futex::WAKE, _) => FutexKind::Wake,
            (_, Some(Futex::OP_REQUEUE | Futex::OP_CMP_REQUEUE)) | (Futex::REQUEUE, _) => {
                FutexKind::Requeue
            }
            (_, Some(Futex::OP_WAKE_OP)) => FutexKind::WakeOp,
            (_, Some(Futex::OP_LOCK_PI | Futex::OP_LOCK_PI2)) => FutexKind::LockPi,
            (_, Some(Futex::OP_UNLOCK_PI)) => FutexKind::UnlockPi,
            (_, Some(Futex::OP_TRYLOCK_PI)) => FutexKind::TrylockPi,
            (_, Some(Futex::OP_WAIT_REQUEUE_PI)) => FutexKind::WaitRequeuePi,
            (_, Some(Futex::OP_CMP_REQUEUE_PI)) => FutexKind::RequeuePi,
            (Futex::WAITV, _) => FutexKind::Waitv,
            (Futex::SEMOP | Futex::SEMTIMEDOP, _) if r.value as i32 > 0 => FutexKind::SemaphorePost,
            (Futex::SEMOP | Futex::SEMTIMEDOP, _) => FutexKind::SemaphoreWait,
            _ => FutexKind::Other,
        }
    }

    fn result(r: &Futex, kind: FutexKind) -> FutexResult {
        /// `IPC_NOWAIT` (include/uapi/linux/ipc.h).
        const NOWAIT: u32 = 0o4000;
        /// `ERESTARTSYS` … `ERESTART_RESTARTBLOCK` (include/linux/errno.h), which no program sees.
        const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;
        const EINTR: i64 = -(libc::EINTR as i64);
        const ETIMEDOUT: i64 = -(libc::ETIMEDOUT as i64);
        const EAGAIN: i64 = -(libc::EAGAIN as i64);
        if r.flags & Futex::UNFINISHED != 0 {
            return FutexResult::Unfinished;
        }
        let timed = r.flags & (Futex::TIMEOUT | Futex::UNREADABLE) != 0 && r.op & NOWAIT == 0;
        match (r.ret, kind) {
            (0.., _) => FutexResult::Done,
            (ETIMEDOUT, _) => FutexResult::TimedOut,
            (EINTR, _) => FutexResult::Interrupted,
            (ret, _) if RESTARTS.contains(&ret) => FutexResult::Interrupted,
            (EAGAIN, FutexKind::SemaphoreWait) if timed => FutexResult::TimedOut,
            (EAGAIN, FutexKind::Wait | FutexKind::Waitv | FutexKind::WaitRequeuePi) => {
                FutexResult::Changed
            }
            _ => FutexResult::Failed,
        }
    }

    /// From the entry to the time at which a call gives up.
    fn timeout_ns(r: &Futex, realtime_offset_ns: Option<i64>) -> Option<i64> {
        if r.flags & Futex::TIMEOUT == 0 {
            return None;
        }
        let given = i128::from(r.timeout_s) * 1_000_000_000 + i128::from(r.timeout_ns);
        let realtime = match operation(r) {
            // `FUTEX_LOCK_PI` knows no other clock.
            Some(op) => op == Futex::OP_LOCK_PI || r.op & Futex::OP_CLOCK_REALTIME != 0,
            None => r.flags & Futex::REALTIME != 0,
        };
        let from = match (operation(r), r.call) {
            (Some(Futex::OP_WAIT), _) | (_, Futex::SEMTIMEDOP) => 0,
            _ if realtime => i128::from(r.entry_ts) + i128::from(realtime_offset_ns?),
            _ => i128::from(r.entry_ts),
        };
        let ns = given - from;
        Some(i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX }))
    }

    impl Listed for FutexCall {
        fn can_be(fits: &dyn Fn(&str) -> bool) -> bool {
            FutexKind::ALL.iter().any(|kind| fits(&format!("futex.{kind}")))
        }

        fn name(&self) -> Cow<'_, str> {
            format!("futex.{}", self.kind).into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            write!(line, "{:#x} ", self.address)?;
            match self.result {
                FutexResult::Done if self.kind.wakes() && !self.kind.is_semaphore() => {
                    write!(line, "= {}", self.ret)?;
                }
                FutexResult::Failed => write!(line, "= {}", self.ret)?,
                result => write!(line, "{result}")?,
            }
            line.write_str(" in ")?;
            line.duration(self.dur)
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "tid", "pid", "kind"])
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        const FUTEX: Futex = Futex {
            header: ft_ebpf::Header { ts: 5_000, kind: kind::FUTEX, cpu: 0, tid: 7 },
            entry_ts: 1_000,
            address: 0x40,
            second: 0,
            timeout_s: 0,
            timeout_ns: 0,
            ret: 0,
            call: Futex::FUTEX,
            op: 0,
            value: 2,
            word: 2,
            flags: 0,
            tgid: 7,
        };

        fn row(r: &Futex) -> FutexCall {
            let mut seen = Decoder::default();
            seen.realtime_offset_ns = Some(1_000_000);
            FutexCall::row(r, &mut seen)
        }

        #[test]
        fn a_timeout_is_counted_from_the_entry_by_any_clock() {
            let timed = Futex { timeout_ns: 9_000, flags: Futex::TIMEOUT, ..FUTEX };
            let late = Futex { timeout_ns: 1_009_000, ..timed };
            for (r, expected) in [
                (FUTEX, None),
                (Futex { flags: Futex::UNREADABLE, ..timed }, None),
                (timed, Some(9_000)),
                (Futex { op: 9, ..timed }, Some(8_000)),
                (Futex { op: 9 | 256, ..late }, Some(8_000)),
                (Futex { op: 6, ..late }, Some(8_000)),
                (Futex { op: 13, ..timed }, Some(8_000)),
                (Futex { call: Futex::WAITV, ..timed }, Some(8_000)),
                (
                    Futex { call: Futex::WAITV, flags: Futex::TIMEOUT | Futex::REALTIME, ..late },
                    Some(8_000),
                ),
                (Futex { call: Futex::SEMTIMEDOP, ..timed }, Some(9_000)),
                (Futex { timeout_s: i64::MAX, ..timed }, Some(i64::MAX)),
                (Futex { timeout_s: i64::MIN, op: 9, ..timed }, Some(i64::MIN)),
            ] {
                assert_eq!(row(&r).timeout_ns, expected, "{r:?}");
            }
            let unknown = FutexCall::row(&Futex { op: 6, ..late }, &mut Decoder::default());
            assert_eq!(unknown.timeout_ns, None, "nothing tells of the time of day");
        }

        #[test]
        fn what_a_call_does_and_how_it_returned() {
            use FutexKind::*;
            use FutexResult::*;
            let semop = Futex { call: Futex::SEMOP, value: -1_i32 as u32, ..FUTEX };
            let timed = Futex { call: Futex::SEMTIMEDOP, flags: Futex::TIMEOUT, ..semop };
            for (r, kind, result) in [
                (FUTEX, Wait, Done),
                (Futex { op: 9 | 128 | 256, ret: -110, ..FUTEX }, Wait, TimedOut),
                (Futex { ret: -11, ..FUTEX }, Wait, Changed),
                (Futex { ret: -516, ..FUTEX }, Wait, Interrupted),
                (Futex { ret: -4, ..FUTEX }, Wait, Interrupted),
                (Futex { flags: Futex::UNFINISHED, ret: -4, ..FUTEX }, Wait, Unfinished),
                (Futex { op: 1 | 128, ret: 3, ..FUTEX }, Wake, Done),
                (Futex { op: 4, ..FUTEX }, Requeue, Done),
                (Futex { op: 6, ret: -35, ..FUTEX }, LockPi, Failed),
                (Futex { op: 8, ret: -11, ..FUTEX }, TrylockPi, Failed),
                (Futex { op: 77, ret: -38, ..FUTEX }, Other, Failed),
                (Futex { call: 1, ..FUTEX }, Other, Done),
                (semop, SemaphoreWait, Done),
                (Futex { ret: -11, ..timed }, SemaphoreWait, TimedOut),
                (Futex { ret: -11, op: 0o4000, ..timed }, SemaphoreWait, Failed),
                (Futex { value: 1, ..semop }, SemaphorePost, Done),
            ] {
                assert_eq!((row(&r).kind, row(&r).result), (kind, result), "{r:?}");
            }
        }
    }
}
