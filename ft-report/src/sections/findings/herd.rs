//! Herds: threads that are woken together, of which one has something to do.

use std::collections::{BTreeMap, HashMap};

use super::group::{MAX_FOUND, bounded, most_first};
use super::names::Census;
use super::pattern::Pattern;
use super::places::{functions, merged};
use super::role::{Role, role};
use super::{BehindIt, Class, Finding, Kind};
use crate::code::Code;
use ft_trace::Mark;
use ft_trace::tables::{Blame, Part};

/// Wake-ups of which one is for nothing, at most, so that it is a finding.
const VAIN_ONE_IN: i64 = 3;

/// Wake-ups for nothing that are a finding.
const MANY: i64 = 100;

/// Those of all roles.
#[derive(Debug, Default)]
pub(super) struct Herds(BTreeMap<String, Herd>);

#[derive(Debug, Default)]
struct Herd {
    who: Role,
    waits: i64,
    vain: i64,
    /// On the way to a CPU, ns.
    dispatch_ns: i64,
    wakers: HashMap<String, (Role, i64)>,
    /// Where they were woken.
    woken_at: HashMap<i64, i64>,
    mark: Mark,
}

impl Herds {
    /// Adds a row, of whoever waits for something that another one gives.
    pub(super) fn add(&mut self, row: &Blame) {
        let Some(waker) = row.waker_comm.as_ref().filter(|_| !row.lock) else { return };
        let name = role(&row.comm);
        if self.0.len() >= MAX_FOUND && !self.0.contains_key(name) {
            return;
        }
        let herd = self.0.entry(name.to_owned()).or_default();
        herd.who.add(&row.comm, Some(row.pid.0), Some(row.tid.0));
        herd.waits += row.waits;
        herd.vain += row.vain;
        herd.mark = herd.mark.max(row.mark);
        herd.dispatch_ns += if row.part == Part::Dispatch { row.ns } else { 0 };
        if row.vain == 0 {
            return;
        }
        if let Some((who, vain)) = bounded(&mut herd.wakers, role(waker).to_owned()) {
            who.add(waker, row.waker_pid, row.waker_tid);
            *vain += row.vain;
        }
        if let Some(stack) = row.waker_stack {
            bounded(&mut herd.woken_at, stack).into_iter().for_each(|vain| *vain += row.vain);
        }
    }

    /// Those that are worth it.
    pub(super) fn findings(self, code: &Code, census: &Census) -> impl Iterator<Item = Finding> {
        let worth = |herd: &Herd| herd.vain >= MANY && herd.vain > herd.waits / VAIN_ONE_IN;
        let worth = self.0.into_iter().filter(move |(_, herd)| worth(herd));
        worth.map(|(name, herd)| finding(&name, herd, code, census))
    }
}

fn finding(name: &str, mut herd: Herd, code: &Code, census: &Census) -> Finding {
    let mut wakers = most_first(herd.wakers);
    census.tell(&mut herd.who);
    wakers.iter_mut().for_each(|(who, _)| census.tell(who));
    let by = wakers.first().map_or(String::new(), |(who, _)| who.stem().to_owned());
    let at = functions(&merged(&herd.woken_at, code));
    let behind = |(who, _)| {
        let (through, did) = (Vec::new(), Vec::new());
        BehindIt { who, through, ns: 0, did, at: at.clone(), at_sleep: false }
    };
    Finding {
        id: format!("{name}/herd//{by}"),
        class: Class::Lost,
        kind: Kind::Herd,
        what: String::new(),
        object: None,
        lock: None,
        who: herd.who,
        lost_ns: herd.dispatch_ns,
        dispatch_ns: herd.dispatch_ns,
        wall_ns: 0,
        pattern: Some(Pattern::Herd),
        waits: herd.waits,
        vain: herd.vain,
        at: Vec::new(),
        holder: None,
        wakers: wakers.iter().map(|(who, _)| who.name.clone()).collect(),
        behind: wakers.into_iter().take(1).map(behind).collect(),
        also: None,
        longest: None,
        mark: herd.mark,
    }
}
