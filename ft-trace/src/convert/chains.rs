//! The call chains of a segment: each different one once, under a number.
//!
//! Numbers are given in the order of the records, from one that only this segment has. So no two chains have one number,
//! which hashes could, and a segment that is converted again gives the same ones. A chain that occurs in two segments has
//! two numbers.
//!
//! Records have whole chains and not numbers of the kernel (`bpf_get_stackid`): those are places in a hash table, where chains
//! collide, which fills up in a long recording, and which must be read before that. Nor do numbers cost less, for the walk is
//! what takes the time (`cargo xtask bench stack-helpers`); they save 8 bytes an address.
//!
//! What is kept of an address is where to look it up: an address to which a call returns lies behind the call, in another
//! line or even another function, so it is the byte before, which is the call's last.

use std::collections::HashMap;

use ft_ebpf::{Chain, kind};

use super::fair::Fair;
use super::symbols::Addresses;
use super::unwind::Unwinder;
use crate::ids::Pid;
use crate::tables::{KERNEL_PID, StackRow};

/// Different chains that are kept of one segment: 64 MiB of them at most, each of 60 addresses. A user may have as many as nobody has: one
/// alone half of them, the next one half of the rest. Others have no number.
///
/// Limit: a further chain has no number, which the report counts (`not_kept`); a further address is `(not kept)`.
/// Shown by: `chains_and_addresses_that_do_not_fit_have_no_number`, `chains_of_one_user_leave_room_for_those_of_others`.
const MAX_CHAINS: usize = 1 << 17;

/// Different addresses that are kept of one segment; of too many, the user who has most of them loses one.
///
/// Limit: as `MAX_CHAINS`.
const MAX_ADDRESSES: usize = 1 << 17;

/// One chain, in the order of its rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Addressed {
    pid: i32,
    /// How many of them are the kernel's, which come first: they are the innermost.
    kernel: usize,
    addresses: Box<[u64]>,
}

/// The chains of a segment.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    segment: u32,
    unwinder: Unwinder,
    numbers: HashMap<Addressed, u32>,
    /// How many each user has.
    held: HashMap<Option<u32>, usize>,
}

/// What is known of the chain of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its number; `None` where there is none, or too many different ones.
    pub(crate) stack: Option<i64>,
    /// Functions of user space in it.
    pub(crate) user: i32,
    /// There are more, of user space or of the kernel.
    pub(crate) cut: bool,
}

impl Chains {
    /// None yet, of this segment, with what its frames are left by.
    pub(super) fn of_segment(segment: u32, unwinder: Unwinder) -> Chains {
        Chains { segment, unwinder, numbers: HashMap::new(), held: HashMap::new() }
    }

    /// The chain behind a record.
    pub(crate) fn find(&mut self, record: &Chain, tail: &[u8]) -> Found {
        let user = self.unwinder.chain(record, tail);
        let of_user = 8 * record.user.max(0) as usize + record.stack as usize;
        let kernel = tail.get(of_user..).unwrap_or_default().as_chunks::<8>().0;
        // In the kernel, the first is where the thread is if an interrupt struck it.
        let is_exact = record.header.kind == kind::SAMPLE;
        let of_kernel = kernel.iter().enumerate().map(|(i, word)| {
            let address = u64::from_ne_bytes(*word);
            if i == 0 && is_exact { address } else { address.wrapping_sub(1) }
        });
        let cut = user.cut || kernel.len() == Chain::MAX_KERNEL;
        let count = user.addresses.len() as i32;
        let chain = Addressed {
            pid: record.tgid as i32,
            kernel: kernel.len(),
            addresses: of_kernel.chain(user.addresses).collect(),
        };
        Found { stack: self.number(chain), user: count, cut }
    }

    fn number(&mut self, chain: Addressed) -> Option<i64> {
        if chain.addresses.is_empty() {
            return None;
        }
        let next = self.numbers.len();
        let number = match self.numbers.get(&chain) {
            Some(number) => *number,
            None => {
                let held = self.held.entry(self.unwinder.user(chain.pid as u32)).or_default();
                if *held >= MAX_CHAINS - next {
                    return None;
                }
                *held += 1;
                self.numbers.insert(chain, next as u32);
                next as u32
            }
        };
        Some(self.of_trace(number))
    }

    /// The number that only this chain of all segments has.
    fn of_trace(&self, number: u32) -> i64 {
        (i64::from(self.segment) + 1) << 32 | i64::from(number)
    }

    /// Rows of `stacks`, by number and position.
    pub(super) fn rows(&self) -> Vec<StackRow> {
        let mut chains: Vec<_> = self.numbers.iter().collect();
        chains.sort_by_key(|(_, number)| **number);
        let mut rows = Vec::new();
        for (chain, number) in chains {
            let stack = self.of_trace(*number);
            rows.extend(chain.addresses.iter().zip(0..).map(|(&address, position)| StackRow {
                stack,
                position,
                pid: if (position as usize) < chain.kernel { KERNEL_PID } else { Pid(chain.pid) },
                address: address as i64,
            }));
        }
        rows
    }

    /// The addresses that have to be looked up for these rows.
    pub(super) fn addresses(&self, rows: &[StackRow]) -> Addresses {
        let mut found = Fair::new(MAX_ADDRESSES);
        for row in rows {
            // Those of the kernel are nobody's.
            let user = (row.pid != KERNEL_PID).then(|| self.unwinder.user(row.pid.0 as u32));
            found.insert(user, (row.pid.0, row.address));
        }
        found.all().flat_map(|(_, of_user)| of_user.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use ft_ebpf::Header;

    use super::*;

    fn record(kind: u16, tgid: u32, user: i32, kernel: i32) -> Chain {
        let header = Header { kind, ..Header::default() };
        Chain { header, tgid, user, kernel, ..Chain::default() }
    }

    fn bytes(addresses: &[u64]) -> Vec<u8> {
        addresses.iter().flat_map(|address| address.to_ne_bytes()).collect()
    }

    #[test]
    fn equal_chains_have_one_number_and_others_others() {
        let mut chains = Chains::of_segment(3, Unwinder::default());
        let mut number = |kind, pid, user, kernel, addresses: &[u64]| {
            let found = chains.find(&record(kind, pid, user, kernel), &bytes(addresses));
            found.stack.map(|n| n & 0xff)
        };
        let off = kind::CHAIN_OFF_CPU;
        assert_eq!(number(off, 7, 2, 1, &[10, 20, 30]), Some(0));
        assert_eq!(number(off, 7, 2, 1, &[10, 20, 30]), Some(0));
        assert_eq!(number(off, 8, 2, 1, &[10, 20, 30]), Some(1), "another process");
        assert_eq!(number(off, 7, 1, 2, &[10, 20, 30]), Some(2), "another border");
        assert_eq!(number(kind::SAMPLE, 7, 2, 1, &[10, 20, 30]), Some(3), "another way to look up");
        assert_eq!(number(off, 7, -14, -14, &[]), None);
    }

    #[test]
    fn the_kernel_is_the_innermost_and_returns_are_looked_up_in_their_calls() {
        let mut chains = Chains::of_segment(0, Unwinder::default());
        chains.find(&record(kind::CHAIN_OFF_CPU, 7, 2, 2), &bytes(&[10, 20, 100, 200]));
        chains.find(&record(kind::SAMPLE, 7, 2, 2), &bytes(&[10, 20, 100, 200]));
        let rows = chains.rows();
        let shown: Vec<_> =
            rows.iter().map(|r| (r.stack & 1, r.position, r.pid.0, r.address)).collect();
        let kernel = KERNEL_PID.0;
        let off = [(0, 0, kernel, 99), (0, 1, kernel, 199), (0, 2, 7, 10), (0, 3, 7, 19)];
        let sample = [(1, 0, kernel, 100), (1, 1, kernel, 199), (1, 2, 7, 10), (1, 3, 7, 19)];
        assert_eq!(shown, [off, sample].concat());
    }

    #[test]
    fn nothing_returns_to_zero() {
        let mut chains = Chains::of_segment(0, Unwinder::default());
        chains.find(&record(kind::SAMPLE, 7, 3, 0), &bytes(&[10, 0, 20]));
        let addresses: Vec<i64> = chains.rows().iter().map(|row| row.address).collect();
        assert_eq!(addresses, [10, 19]);
    }

    #[test]
    fn chains_and_addresses_that_do_not_fit_have_no_number() {
        let mut chains = Chains::of_segment(0, Unwinder::default());
        let mut number = |n: usize| {
            let addresses = [3 * n as u64 + 10, 3 * n as u64 + 11, 3 * n as u64 + 12];
            chains.find(&record(kind::SAMPLE, 7, 3, 0), &bytes(&addresses)).stack
        };
        let most = MAX_CHAINS / 2;
        let numbers: Vec<_> = (0..most).map(&mut number).collect();
        assert!(numbers.iter().all(Option::is_some));
        assert_eq!(number(most), None, "one too many");
        assert_eq!(number(3), numbers[3], "one that is known");
        let rows = chains.rows();
        assert_eq!(rows.len(), 3 * most);
        assert_eq!(chains.addresses(&rows).len(), MAX_ADDRESSES);
    }

    #[test]
    fn chains_of_one_user_leave_room_for_those_of_others() {
        let unwinder = Unwinder::of_users([(7, 1), (8, 1), (9, 2)]);
        let mut chains = Chains::of_segment(0, unwinder);
        let mut number = |pid, n: usize| {
            let addresses = [3, 5, 6].map(|i| 3 * n as u64 + i);
            chains.find(&record(kind::SAMPLE, pid, 3, 0), &bytes(&addresses)).stack
        };
        let numbered = (0..MAX_CHAINS).filter(|&n| number(7 + n as u32 % 2, n).is_some()).count();
        assert_eq!(numbered, MAX_CHAINS / 2);
        assert!((0..100).all(|n| number(9, n).is_some()));
        assert_eq!(number(7, MAX_CHAINS), None);
        let rows = chains.rows();
        let found = chains.addresses(&rows);
        let of = |user: &dyn Fn(i32) -> bool| found.iter().filter(|(pid, _)| user(*pid)).count();
        assert_eq!((of(&|pid| pid == 9), of(&|pid| pid != 9)), (300, MAX_ADDRESSES - 300));
    }

    #[test]
    fn what_a_record_says_is_bounded() {
        let bad = |user, kernel| record(kind::SAMPLE, 1, user, kernel).tail_bytes();
        assert_eq!(bad(3, -14), Some(24));
        assert_eq!(bad(i32::MIN, i32::MIN), Some(0));
        assert_eq!(bad(Chain::MAX_USER as i32 + 1, 0), None);
        assert_eq!(bad(0, i32::MAX), None);
    }
}
