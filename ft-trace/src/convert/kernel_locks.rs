//! What locks of the kernel are called: the static variable that one is, and who wanted it.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::kernel_symbols::KernelSymbols;
use crate::ids::Name;

/// With what the names of functions begin that lock, or by which a wait is traced: who wanted the lock has called them
/// (kernel/locking/).
const PRIMITIVES: &[&str] = &[
    "__bpf_",
    "__down",
    "__mutex_",
    "__percpu_",
    "__pv_queued_spin_",
    "__raw_",
    "__rt_mutex_",
    "__rwbase_",
    "__traceiter_",
    "__ww_mutex_",
    "_raw_",
    "bpf_",
    "do_raw_",
    "down_",
    "mutex_",
    "native_queued_spin_",
    "percpu_",
    "queued_",
    "raw_spin_",
    "resilient_",
    "rt_mutex_",
    "rt_read_",
    "rt_spin_",
    "rt_write_",
    "rtlock_",
    "rwbase_",
    "rwsem_",
    "trace_",
    "ww_mutex_",
];

/// Names of locks, and of functions by address; made from the kernel's symbols when the first is asked for.
#[derive(Debug, Default)]
pub(crate) struct KernelLocks {
    boot_id: String,
    symbols: OnceCell<KernelSymbols>,
    variables: HashMap<u64, Option<Name>>,
    callers: HashMap<u64, Option<Name>>,
}

/// Locks whose names are remembered; then they are looked up anew.
///
/// Limit: nothing: further ones are looked up each time.
/// Shown by: `a_lock_beyond_those_that_are_remembered_has_its_name`.
const MAX_NAMED_LOCKS: usize = 1 << 16;

impl KernelLocks {
    /// Those of a recording of this boot.
    pub(super) fn of_boot(boot_id: &str) -> KernelLocks {
        KernelLocks { boot_id: boot_id.to_owned(), ..KernelLocks::default() }
    }

    fn symbols(&self) -> &KernelSymbols {
        self.symbols.get_or_init(|| KernelSymbols::of_boot(&self.boot_id))
    }

    /// The static variable that the lock is.
    pub(crate) fn variable(&mut self, lock: u64) -> Option<Name> {
        if let Some(name) = self.variables.get(&lock) {
            return name.clone();
        }
        let name = self.symbols().variable(lock).map(Name::from);
        if self.variables.len() < MAX_NAMED_LOCKS {
            self.variables.insert(lock, name.clone());
        }
        name
    }

    /// The function in which a return address lies; `None` of 0, and where it is not known.
    pub(crate) fn function(&self, address: u64) -> Option<Name> {
        let at = address.checked_sub(1)?;
        self.symbols().function(at).map(Name::from)
    }

    /// The first function of a chain of the kernel, the innermost address first, that is no primitive of locking.
    pub(crate) fn caller(&mut self, chain: &[u8]) -> Option<Name> {
        let (addresses, _) = chain.as_chunks::<8>();
        addresses.iter().find_map(|address| {
            // A return address lies behind its call.
            let at = u64::from_ne_bytes(*address).wrapping_sub(1);
            if let Some(name) = self.callers.get(&at) {
                return name.clone();
            }
            let name = self.symbols().function(at).filter(|name| !is_primitive(name));
            let name = name.map(Name::from);
            self.callers.insert(at, name.clone());
            name
        })
    }
}

fn is_primitive(function: &str) -> bool {
    function == "down" || PRIMITIVES.iter().any(|begin| function.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_ebpf::Contention;

    #[test]
    fn who_wanted_a_lock_has_called_its_primitives() {
        let kallsyms = "\
ffffffff81000000 T _stext
ffffffff81000100 T bpf_trace_run2
ffffffff81000200 T __traceiter_contention_begin
ffffffff81000300 t rwsem_down_write_slowpath
ffffffff81000400 T down_write
ffffffff81000500 t ext4_file_write_iter
ffffffff81000600 T vfs_write
ffffffff81000700 T _etext
";
        let symbols = OnceCell::from(KernelSymbols::parse(kallsyms.into(), ""));
        let mut locks = KernelLocks { symbols, ..KernelLocks::default() };
        // The BPF program itself, which has no symbol, is the innermost.
        let low = [0xc0001000, 0x81000110, 0x81000210, 0x81000310, 0x81000410, 0x81000510u32];
        let chain: Vec<u8> = low
            .iter()
            .flat_map(|low| (0xffff_ffff_0000_0000 | u64::from(*low)).to_ne_bytes())
            .collect();
        assert_eq!(locks.caller(&chain).as_deref(), Some("ext4_file_write_iter"));
        assert_eq!(locks.caller(&chain[..40]).as_deref(), None);
        assert_eq!(locks.caller(&[]).as_deref(), None);
        // Who is farther up than is looked at without the group `stack`.
        let primitive = chain[24..32].repeat(Contention::NEAREST - 1);
        assert_eq!(
            locks.caller(&[&primitive[..], &chain[40..]].concat()).as_deref(),
            Some("ext4_file_write_iter")
        );
        let farther = [&primitive[..], &chain[24..]].concat();
        let seen = &farther[..8 * Contention::NEAREST];
        assert_eq!(locks.caller(seen).as_deref(), None);
        // The first byte of a function is not where a call returns to.
        let behind = 0xffff_ffff_8100_0600_u64.to_ne_bytes();
        assert_eq!(locks.caller(&behind).as_deref(), Some("ext4_file_write_iter"));
    }

    #[test]
    fn a_lock_beyond_those_that_are_remembered_has_its_name() {
        let kallsyms = "\
ffffffff81000000 T _stext
ffffffff81000700 T _etext
ffffffff82000000 D tasklist_lock
";
        let symbols = OnceCell::from(KernelSymbols::parse(kallsyms.into(), ""));
        let mut locks = KernelLocks { symbols, ..KernelLocks::default() };
        for lock in 0..=MAX_NAMED_LOCKS as u64 {
            assert_eq!(locks.variable(lock), None);
        }
        for _ in 0..2 {
            let name = locks.variable(0xffff_ffff_8200_0000);
            assert_eq!(name.as_deref(), Some("tasklist_lock"));
        }
        assert_eq!(locks.variables.len(), MAX_NAMED_LOCKS);
    }
}
