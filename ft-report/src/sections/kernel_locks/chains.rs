//! Waits by call chain.

use std::cmp::Reverse;

use serde::Serialize;

use super::{MAX_KERNEL_GROUPS, SHOWN, label};
use crate::code::{self, Code};
use crate::stats::{Groups, Key, OTHERS};
use ft_trace::ids::Name;
use ft_trace::tables::KernelLockWait;

/// The way into the kernel, which is the same in all chains.
const ENTRY: [&str; 3] = ["x64_sys_call", "do_syscall_64", "entry_SYSCALL_64_after_hwframe"];

/// Waits of one call chain.
#[derive(Clone, Debug, Serialize)]
pub struct Chain {
    /// The lock.
    pub lock: String,
    /// Its kind.
    pub kind: String,
    /// Waits.
    pub waits: u64,
    /// In all of them, ns.
    pub total_ns: i64,
    /// Functions, the innermost first, from the one that wanted the lock on; those of the kernel come before those of user
    /// space.
    pub functions: Vec<String>,
    /// Of these, as many as distinguish this chain from the others, in a line.
    pub way: String,
}

/// Lock, kind, and functions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Way(Name, Name, Vec<Name>);

impl Key for Way {
    fn others(&self) -> Self {
        Way(OTHERS.into(), "".into(), Vec::new())
    }
}

impl Way {
    fn of(r: &KernelLockWait, code: &Code) -> Way {
        let chain = code.chain(r.stack);
        let wanted = chain.iter().position(|f| r.caller.as_ref().is_some_and(|c| *c == f.label));
        let functions = chain[wanted.unwrap_or(0)..]
            .iter()
            .filter(|f| !f.kernel || !ENTRY.contains(&&*f.label))
            .map(|f| f.label.clone());
        Way(label(r), r.kind.clone(), functions.collect())
    }
}

/// Sums up waits by call chain.
#[derive(Debug, Default)]
pub(super) struct Chains(Groups<MAX_KERNEL_GROUPS, Way, (u64, i64)>);

impl Chains {
    pub(super) fn add(&mut self, r: &KernelLockWait, code: &Code) {
        let (waits, total_ns) = self.0.entry(Way::of(r, code));
        *waits += 1;
        *total_ns += r.dur;
    }

    /// The most time first.
    pub(super) fn finish(self) -> Vec<Chain> {
        let rank =
            |(way, (_, ns)): &(Way, (u64, i64))| (Reverse(*ns), way.2.clone(), way.0.clone());
        let chains = self.0.into_ranked(|chain| chain, rank);
        let functions: Vec<&[Name]> = chains.iter().map(|(way, _)| &way.2[..]).collect();
        let lengths = code::distinguishing_first(&functions, SHOWN);
        let chain = |(i, (way, (waits, total_ns))): (usize, (Way, (u64, i64)))| Chain {
            lock: way.0.to_string(),
            kind: way.1.to_string(),
            waits,
            total_ns,
            way: code::way(&way.2, lengths[i].max(2)),
            functions: way.2.iter().map(ToString::to_string).collect(),
        };
        chains.into_iter().enumerate().map(chain).collect()
    }
}
