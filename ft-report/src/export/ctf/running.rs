//! Who has which CPU: what takes time is recorded with the CPU on which it ended, and a fork without the thread that
//! forked.

use std::collections::HashMap;

use ft_trace::ids::{Cpu, Pid, ThreadKey, Tid};

/// The threads that are on CPUs, as far as switches have told.
#[derive(Default)]
pub(super) struct Running {
    thread: HashMap<Cpu, ThreadKey>,
    /// Of threads but idle ones: at most one for each CPU.
    cpu: HashMap<Tid, Cpu>,
}

impl Running {
    /// A thread has got a CPU.
    pub(super) fn switch(&mut self, cpu: Cpu, next: ThreadKey) {
        if let Some(prev) = self.thread.insert(cpu, next)
            && self.cpu.get(&prev.tid) == Some(&cpu)
        {
            self.cpu.remove(&prev.tid);
        }
        if next.tid.0 != 0 {
            self.cpu.insert(next.tid, cpu);
        }
    }

    /// Where a thread is.
    pub(super) fn cpu_of(&self, tid: Tid) -> Option<Cpu> {
        self.cpu.get(&tid).copied()
    }

    /// The thread of a process that is on a CPU.
    pub(super) fn thread_of(&self, cpu: Cpu, pid: Pid) -> Option<Tid> {
        self.thread.get(&cpu).filter(|thread| thread.pid == pid).map(|thread| thread.tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_where_the_last_switch_put_it() {
        let mut running = Running::default();
        let key = |pid, tid| ThreadKey { pid: Pid(pid), tid: Tid(tid) };
        running.switch(Cpu(0), key(1, 7));
        running.switch(Cpu(1), key(0, 0));
        assert_eq!(running.cpu_of(Tid(7)), Some(Cpu(0)));
        assert_eq!(running.cpu_of(Tid(0)), None);
        assert_eq!(running.thread_of(Cpu(0), Pid(1)), Some(Tid(7)));
        assert_eq!(running.thread_of(Cpu(0), Pid(2)), None);
        // It comes to another CPU before the switch that takes it away is seen.
        running.switch(Cpu(1), key(1, 7));
        running.switch(Cpu(0), key(0, 0));
        assert_eq!(running.cpu_of(Tid(7)), Some(Cpu(1)));
        running.switch(Cpu(1), key(0, 0));
        assert_eq!(running.cpu_of(Tid(7)), None);
        assert!(running.cpu.is_empty());
    }
}
