//! Group `task`: the lives of threads and processes.

use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::words::words;

words! {
    /// What happened to a task.
    pub enum TaskKind {
        /// It was made.
        Fork = "fork",
        /// Its program was replaced.
        Exec = "exec",
        /// It ended.
        Exit = "exit",
        /// It has a new name.
        Rename = "rename",
        _ => Fork
    }
}

table! {
    "task_events",
    /// `task_events`: fork, exec, exit and rename.
    pub struct TaskEvent {
        /// Time.
        pub ts: Nanos,
        /// CPU.
        pub cpu: Cpu,
        /// What happened.
        pub kind: TaskKind,
        /// Thread concerned (the child of a fork).
        pub tid: Tid,
        /// Its process.
        pub pid: Pid,
        /// Its name.
        pub comm: Name,
        /// Process of the parent (fork).
        pub parent_pid: Option<i32> as Pid,
    }
}

#[cfg(feature = "store")]
mod store {
    //! How its rows are made of records, and what a listing says of them.

    use std::borrow::Cow;
    use std::fmt;

    use ft_ebpf::{self as abi, kind};
    use serde_json::{Map, Value};

    use crate::store::Row;
    use crate::tables::listed::{Line, Listed};
    use crate::tables::record::{Decoder, KernelTable, cpu, nanos, pid, tid};

    use super::*;

    impl KernelTable for TaskEvent {
        type Record = abi::Task;
        const KINDS: &'static [u16] = &[kind::FORK, kind::EXEC, kind::EXIT, kind::RENAME];

        #[inline]
        fn row(r: &abi::Task, seen: &mut Decoder) -> TaskEvent {
            let (kind, parent_pid) = match r.header.kind {
                kind::FORK => (TaskKind::Fork, Some(r.parent_tgid as i32)),
                kind::EXEC => (TaskKind::Exec, None),
                kind::EXIT => (TaskKind::Exit, None),
                _ => (TaskKind::Rename, None),
            };
            let row = TaskEvent {
                ts: nanos(r.header.ts),
                cpu: cpu(r.header.cpu),
                kind,
                tid: tid(r.tid),
                pid: pid(r.tgid),
                comm: seen.comm(r.comm),
                parent_pid,
            };
            match kind {
                // The parent is observed, and the child as the kernel side's list has it.
                TaskKind::Fork => {
                    seen.threads.seen(row.pid, row.tid, row.ts, Some(&row.comm), None);
                }
                _ => seen.threads.recorded(row.pid, row.tid, row.ts, Some(&row.comm)),
            }
            row
        }
    }

    impl Listed for TaskEvent {
        fn names() -> &'static [&'static str] {
            &["task.fork", "task.exec", "task.exit", "task.rename"]
        }

        fn name(&self) -> Cow<'_, str> {
            format!("task.{}", self.kind).into()
        }

        fn cpu(&self) -> Cpu {
            self.cpu
        }

        fn subject(&self) -> (Option<Pid>, Tid) {
            (Some(self.pid), self.tid)
        }

        fn say(&self, line: &mut dyn Line) -> fmt::Result {
            match (self.kind, self.parent_pid) {
                (TaskKind::Fork, Some(parent)) if parent == self.pid.0 => {
                    write!(line, "new thread of {parent}")
                }
                (TaskKind::Fork, Some(parent)) => write!(line, "new process, child of {parent}"),
                (TaskKind::Exec | TaskKind::Rename, _) => write!(line, "is now {}", self.comm),
                _ => Ok(()),
            }
        }

        fn fields(&self) -> Map<String, Value> {
            self.fields_but(&["ts", "cpu", "kind", "tid", "pid"])
        }
    }
}
