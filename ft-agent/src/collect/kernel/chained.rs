//! Whose addresses are among the records: to name them, somebody has to look at where the process has its program text.

use std::collections::BTreeSet;

use ft_ebpf::{Chain, Contention, Futex, Header, Task, kind, read};

/// What records have told since it was asked last.
#[derive(Debug, Default)]
pub struct Chained {
    /// Processes of which a call chain or a futex was recorded, as the initial PID namespace numbers them.
    pub processes: BTreeSet<u32>,
    /// Processes that have executed another program.
    pub executed: BTreeSet<u32>,
}

impl Chained {
    /// Takes note of a record.
    #[inline]
    pub(super) fn note(&mut self, record: &[u8]) {
        let Some(header) = read::<Header>(record) else { return };
        match header.kind {
            kind::CHAIN_OFF_CPU | kind::CHAIN_WAKE | kind::SAMPLE => {
                let chain = read::<Chain>(record).filter(|chain| chain.user > 0);
                self.processes.extend(chain.map(|chain| chain.tgid));
            }
            kind::CONTENTION => {
                let wait = read::<Contention>(record).filter(|wait| wait.user > 0);
                self.processes.extend(wait.map(|wait| wait.tgid));
            }
            kind::FUTEX => self.processes.extend(read::<Futex>(record).map(|call| call.tgid)),
            kind::EXEC => self.executed.extend(read::<Task>(record).map(|task| task.tgid)),
            _ => {}
        }
    }
}
