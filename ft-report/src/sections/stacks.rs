//! Where in the code threads left the CPU, for how long, and where in the code they were woken.

mod quality;

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::Serialize;

use super::Input;
use crate::code::{self, Comms, Frame};
use crate::document::{Builder, Data, Lock, N, Ns, Of, Place, Section, Table, Thread, Word};
use crate::stats::{Groups, Key, Names, OTHERS};
use crate::text;
use ft_trace::ids::{Name, Tid};
use ft_trace::store::Result;
use ft_trace::tables::{CallChain, ChainKind, LockChain, LockChainKind};

pub use quality::{Nameless, Quality, Unframed};

/// Chains with a line of their own; further ones are in one of others.
///
/// Limit: one row `(others)`.
/// Shown by: `what_has_no_room_is_with_the_others`.
const MAX_CHAINS: usize = 16_384;

/// Chains that are shown; the machine values have all.
const SHOWN: usize = 15;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct StacksReport {
    /// Chains of threads that were off the CPU are recorded from this length on, ns; `None`: they are not.
    pub min_ns: Option<i64>,
    /// How far the chains can be believed.
    pub quality: Quality,
    /// Chains of threads that waited, the most time first.
    pub waits: Vec<Chain>,
    /// Chains of threads from which the CPU was taken.
    pub preempted: Vec<Chain>,
    /// Chains of waits for a lock, by lock.
    pub locks: Vec<Chain>,
    /// Chains of holders that lost the CPU, by lock.
    pub holders: Vec<Chain>,
}

/// All times of one chain.
#[derive(Clone, Debug, Serialize)]
pub struct Chain {
    /// The lock, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Times.
    pub times: u64,
    /// Off the CPU in all of them, ns.
    pub total_ns: i64,
    /// In the longest, ns.
    pub longest_ns: i64,
    /// The name of threads that were in it most often.
    pub thread: String,
    /// Further names of threads that were in it, at least.
    pub other_threads: u64,
    /// What of the kernel it is in: a system call, a page fault, an interrupt.
    pub kernel: Option<String>,
    /// Source place of the innermost function that has one; empty when not known.
    pub place: String,
    /// Functions of user space, the innermost first.
    pub functions: Vec<String>,
    /// Of these, as many as distinguish this chain from the others, in a line.
    pub way: String,
    /// Who woke it most often.
    pub waker: Option<String>,
}

/// What times of one chain have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    lock: Option<Name>,
    kernel: Option<Name>,
    place: Name,
    functions: Vec<Name>,
}

impl Key for Way {
    fn others(&self) -> Way {
        Way { lock: None, kernel: None, place: "".into(), functions: vec![OTHERS.into()] }
    }
}

impl Way {
    pub(super) fn of(chain: &[&Frame], lock: Option<Name>) -> Way {
        let user = || chain.iter().filter(|frame| !frame.kernel);
        Way {
            lock,
            kernel: code::kernel_entry(chain).map(Name::from),
            place: user()
                .map(|f| &f.place)
                .find(|place| !place.is_empty())
                .cloned()
                .unwrap_or_default(),
            functions: user().map(|frame| frame.label.clone()).collect(),
        }
    }
}

/// The times of one chain.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    times: u64,
    total_ns: i64,
    longest_ns: i64,
    threads: Names,
    wakers: Names,
}

impl Sums {
    fn add(&mut self, dur: i64, thread: &Name) {
        self.times += 1;
        self.total_ns = self.total_ns.saturating_add(dur);
        self.longest_ns = self.longest_ns.max(dur);
        self.threads.add(thread.clone());
    }

    /// The same of a wait, and who ended it.
    pub(super) fn add_woken(&mut self, dur: i64, thread: &Name, waker: Option<Name>) {
        self.add(dur, thread);
        waker.into_iter().for_each(|waker| self.wakers.add(waker));
    }
}

/// Times by chain.
pub(super) type Ways = Groups<MAX_CHAINS, Way, Sums>;

/// By the time that their chains took.
pub(super) fn ranked(ways: Ways) -> Vec<Chain> {
    let chain = |(way, sums): (Way, Sums)| Chain {
        lock: way.lock.map(|lock| lock.to_string()),
        times: sums.times,
        total_ns: sums.total_ns,
        longest_ns: sums.longest_ns,
        other_threads: sums.threads.different().saturating_sub(1),
        thread: sums.threads.most().map(|(name, _)| name.to_string()).unwrap_or_default(),
        kernel: way.kernel.map(|kernel| kernel.to_string()),
        place: way.place.to_string(),
        functions: way.functions.iter().map(ToString::to_string).collect(),
        way: String::new(),
        waker: sums.wakers.most().map(|(name, _)| name.to_string()),
    };
    let mut chains = ways.into_ranked(chain, |c| (Reverse(c.total_ns), c.functions.clone()));
    let functions: Vec<&[String]> = chains.iter().map(|c| &c.functions[..]).collect();
    let told = code::distinguishing_first(&functions, SHOWN);
    for (chain, shown) in chains.iter_mut().zip(told) {
        chain.way = code::way(&chain.functions, shown);
    }
    chains
}

impl StacksReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<StacksReport> {
        let code = input.code()?;
        let names = Comms::read(input.trace)?;
        let mut quality = Quality::default();
        let (mut waits, mut preempted) = (Ways::default(), Ways::default());
        // In which chain a thread waits.
        let mut waiting: HashMap<Tid, (i64, Way)> = HashMap::new();
        if input.trace.has::<CallChain>() {
            input.rows(|r: CallChain| {
                let chain = code.chain(r.stack);
                match r.kind {
                    ChainKind::Wake => {
                        let woken = r.woken_tid.and_then(|tid| waiting.get(&Tid(tid)));
                        if let Some((until, way)) = woken
                            && r.ts.0 <= *until
                        {
                            let waker = waker(&chain, &names.of(r.tid));
                            waits.entry(way.clone()).wakers.add(waker);
                        }
                    }
                    kind => {
                        quality.add(&chain, r.cut, r.user, 1);
                        let way = Way::of(&chain, None);
                        let ways = match kind {
                            ChainKind::Preempted => &mut preempted,
                            _ => {
                                waiting.insert(r.tid, (r.ts.0 + r.dur, way.clone()));
                                &mut waits
                            }
                        };
                        ways.entry(way).add(r.dur, &names.of(r.tid));
                    }
                }
            })?;
        }
        let (mut locks, mut holders) = (Ways::default(), Ways::default());
        if input.trace.has::<LockChain>() {
            input.rows(|r: LockChain| {
                let ways = match r.kind {
                    LockChainKind::Waits => &mut locks,
                    LockChainKind::Preempted if r.innermost => &mut holders,
                    _ => return,
                };
                let way = Way::of(&code.chain(r.stack), Some(r.lock_name.clone()));
                ways.entry(way).add(r.dur, &r.comm);
            })?;
        }
        quality.read(input)?;
        Ok(StacksReport {
            min_ns: input.trace.meta().start.stack_min_ns,
            quality,
            waits: ranked(waits),
            preempted: ranked(preempted),
            locks: ranked(locks),
            holders: ranked(holders),
        })
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("stacks", "where in the code threads left the CPU");
        match self.min_ns {
            None => {
                s.say("No call chains: record with the kernel group `stack` (`-k default,stack`).")
            }
            Some(min_ns) => self.say(&mut s, min_ns),
        }
        s.with(self)
    }

    fn say(&self, s: &mut Section, min_ns: i64) {
        s.say(text!(
            "{} of threads that were off the CPU for at least {}.",
            Of(self.quality.chains, "call chain"),
            Ns(min_ns)
        ));
        self.quality.say(s);
        for (title, chains, wakes) in [
            ("Waited, by call chain, the most time first", &self.waits, true),
            ("Waited for a lock", &self.locks, false),
            ("Had the CPU taken from them", &self.preempted, false),
            ("Had the CPU taken from them while they held a lock", &self.holders, false),
        ] {
            if !chains.is_empty() {
                s.table(table(chains, wakes).titled(title));
            }
        }
        for (title, chains) in [
            ("Time off the CPU, waiting", &self.waits),
            ("Time in which locks were waited for, by lock", &self.locks),
            ("Time in which the CPU was taken from holders, by lock", &self.holders),
        ] {
            if !chains.is_empty() {
                let chains = chains.iter().map(Chain::inwards).collect();
                s.figure(title, Data::Flames { chains });
            }
        }
    }
}

impl Chain {
    /// Who was in it.
    fn threads(&self) -> String {
        let others = if self.other_threads > 0 { " and others" } else { "" };
        format!("{}{others}", self.thread)
    }

    /// What a flame graph has of it: the lock, the functions from the outermost on, and what of the kernel it is in.
    fn inwards(&self) -> (Vec<Name>, i64) {
        let lock = self.lock.iter().cloned();
        let kernel = self.kernel.iter().map(|kernel| format!("{kernel} (kernel)"));
        let functions = self.functions.iter().rev().cloned();
        (lock.chain(functions).chain(kernel).map(Name::from).collect(), self.total_ns)
    }
}

/// Chains as a table, of waits with who woke them.
pub(super) fn table(chains: &[Chain], wakes: bool) -> Builder<&Chain> {
    let t = Table::first(SHOWN, chains)
        .counted("chains")
        .column("time", |c| Ns(c.total_ns))
        .column("times", |c| N(c.times))
        .column("longest", |c| Ns(c.longest_ns))
        .notes("lock", |c| c.lock.as_deref().map(Lock::named))
        .column("thread", |c| Thread::named(&c.threads()))
        .notes("in", |c| c.kernel.as_deref().map(Word))
        .column("function, called from", |c| Word(&c.way))
        .column("at", |c| Place(&c.place));
    t.when(wakes, |t| t.notes("woken by", |c| c.waker.as_deref().map(Word)))
}

/// What woke a thread, in a word.
pub(super) fn waker(chain: &[&Frame], comm: &Name) -> Name {
    if code::in_interrupt(chain) {
        return "an interrupt".into();
    }
    let function = chain.iter().find(|frame| !frame.kernel && frame.named);
    match function {
        Some(function) => format!("{comm}: {}", function.label).into(),
        None => comm.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_chain_of_several_threads_is_not_shown_as_that_of_one() {
        let mut ways = Ways::default();
        for thread in ["a", "b", "b", "c", "b"] {
            let way = Way { lock: None, kernel: None, place: "".into(), functions: Vec::new() };
            ways.entry(way).add(1, &thread.into());
        }
        let chains = ranked(ways);
        assert_eq!((&*chains[0].thread, chains[0].other_threads), ("b", 2));
        let mut s = Section::new("stacks", "");
        s.table(table(&chains, false).titled(""));
        assert!(format!("{s:200}").contains("b and others"), "{s:200}");
    }

    #[test]
    fn every_chain_says_which_one_it_is() {
        let mut ways = Ways::default();
        for n in 0..3 * SHOWN {
            // Two of each function, which their callers tell apart.
            let functions = [format!("f{}", n / 2), format!("caller{}", n % 2)];
            let functions = functions.iter().map(|f| f.as_str().into()).collect();
            let way = Way { lock: None, kernel: None, place: "".into(), functions };
            ways.entry(way).add(1_000 - n as i64, &"thread".into());
        }
        let ways: Vec<String> = ranked(ways).into_iter().map(|chain| chain.way).collect();
        assert!(!ways.iter().any(String::is_empty), "{ways:?}");
        let further = &ways[SHOWN..];
        let different: HashSet<&String> = further.iter().collect();
        assert_eq!(different.len(), further.len(), "{further:?}");
    }
}
