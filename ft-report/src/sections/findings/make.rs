//! How a finding is made of what was summed.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::group::{Behind, Group, Key, State, most_first};
use super::places::{functions, merged};
use super::role::Role;
use super::{BehindIt, Class, Did, Finding, Kind, LongestWait, Walls, pattern};
use crate::code::Code;
use ft_trace::ids::Name;
use ft_trace::tables::PathKind;

/// Samples of those who are behind a finding from which is said where they ran.
const ENOUGH_SAMPLES: i64 = 5;

pub(super) fn finding(key: Key, mut group: Group, code: &Code, walls: &Walls) -> Finding {
    let told = |mut who: Role| {
        walls.census.tell(&mut who);
        who
    };
    group.who = told(group.who);
    let wall_ns = walls.of(&group.who, &key.role);
    let pattern = pattern::of_wait(&key, &group, wall_ns);
    let at = functions(&merged(&group.stacks, code));
    let mut behind: Vec<BehindIt> = group
        .behind
        .into_values()
        .map(|behind| {
            let ran = ran(&behind);
            let slept: i64 = behind.slept.values().sum();
            let ran_or_would = |(state, _): &(&State, &i64)| {
                matches!(state.kind, PathKind::Running | PathKind::Preempted)
            };
            let awake: i64 = behind.states.iter().filter(ran_or_would).map(|(_, ns)| ns).sum();
            let slept_most = slept > awake;
            let [slept, ran] = [&behind.slept, &ran].map(|of| functions(&merged(of, code)));
            let at_sleep = ran.is_empty() || slept_most && !slept.is_empty();
            let at = if at_sleep { slept } else { ran };
            let mut did: Vec<Did> = behind
                .states
                .into_iter()
                .map(|(state, ns)| Did {
                    kind: state.kind,
                    call: state.call.map(|call| call.to_string()),
                    file: state.file,
                    culprit: state.culprit.map(|stem| {
                        behind.culprits.get(&stem).map_or(stem, |who| who.name.clone())
                    }),
                    ns,
                })
                .collect();
            did.sort_by_key(|did| (Reverse(did.ns), did.call.clone(), did.culprit.clone()));
            let did = without_cpu(did);
            let worth = |(_, ns): &(Role, i64)| *ns > behind.ns / THROUGH_ONE_IN;
            let through = most_first(behind.through).into_iter().filter(worth);
            let through = through.map(|(who, _)| told(who).name).collect();
            let who = mostly(&behind.each, behind.ns).unwrap_or(behind.who);
            BehindIt { who: told(who), through, ns: behind.ns, did, at, at_sleep }
        })
        .collect();
    behind.sort_by_key(|behind| (Reverse(behind.ns), behind.who.name.clone()));
    let wakers = most_first(group.wakers).into_iter().map(|(who, ns)| (told(who), ns));
    let wakers: Vec<_> = wakers.collect();
    let holder = holder(&key, &wakers, &behind, group.lost_ns);
    kept(&mut behind, holder.as_ref(), group.again_ns);
    let kind_word = serde_json::to_value(key.kind).unwrap_or_default();
    let kind_word = kind_word.as_str().unwrap_or_default().to_owned();
    let by = behind.first().map_or(String::new(), |behind| behind.who.stem().to_owned());
    Finding {
        id: [&*key.role, &*kind_word, &*key.what, &*by].join("/"),
        class: match key.kind.class() {
            // Of most of it, somebody else was asked for it, or kept it. One often waits for children as for threads that end.
            Class::Handover | Class::Idle
                if key.kind != Kind::Child && 2 * group.needed_ns > group.lost_ns =>
            {
                Class::Lost
            }
            Class::Idle => Class::Handover,
            class => class,
        },
        kind: key.kind,
        what: key.what,
        object: key.object,
        lock: group.lock.name().map(ToString::to_string),
        wall_ns,
        pattern,
        who: group.who,
        lost_ns: group.lost_ns,
        dispatch_ns: group.dispatch_ns,
        waits: group.waits,
        vain: 0,
        at,
        holder,
        wakers: wakers.into_iter().map(|(who, _)| who.name).collect(),
        behind,
        also: None,
        // A longer one was lost in part alone, and it is not known how much of it.
        longest: group.longest.filter(|longest| longest.ns <= group.lost_ns).map(|longest| {
            LongestWait {
                ns: longest.ns,
                ts: longest.ts,
                name: walls.census.numbered(&longest.comm, longest.tid),
                comm: longest.comm.to_string(),
                pid: longest.pid,
                tid: longest.tid,
            }
        }),
        mark: group.mark,
    }
}

/// The one of several that is behind all of it but little.
fn mostly(each: &HashMap<(i32, i32), (Name, i64)>, all_ns: i64) -> Option<Role> {
    let mut mostly = each.iter().filter(|(_, (_, ns))| *ns > all_ns - all_ns / BESIDES_ONE_IN);
    let ((pid, tid), (name, _)) = mostly.next().filter(|_| each.len() > 1)?;
    let mut who = Role::default();
    who.add(name, Some(*pid), Some(*tid));
    Some(who)
}

/// Those of a role who are behind less than one in so much of it, all together, are not named.
const BESIDES_ONE_IN: i64 = 20;

/// Where those ran who are behind a finding: samples say that best. Where one loses its CPU is often where it has just woken somebody,
/// and says it better than where it woke others.
fn ran(behind: &Behind) -> HashMap<i64, i64> {
    let mut pieces: HashMap<i64, i64> =
        behind.sampled.iter().map(|(stack, (_, pieces))| (*stack, *pieces)).collect();
    if pieces.values().sum::<i64>() >= ENOUGH_SAMPLES {
        return pieces;
    }
    for (stack, preempted) in &behind.preempted {
        *pieces.entry(*stack).or_default() += preempted;
    }
    match pieces.values().sum::<i64>() {
        ENOUGH_SAMPLES.. => pieces,
        _ => behind.woke.clone(),
    }
}

/// Who holds the lock of a finding: who ended most of the waits and is none of those that waited; else who is behind most of it.
fn holder(key: &Key, wakers: &[(Role, i64)], behind: &[BehindIt], lost_ns: i64) -> Option<Role> {
    let other = |(who, ns): &&(Role, i64)| !who.is_of(&key.role) && *ns > lost_ns / THROUGH_ONE_IN;
    let waker = wakers.iter().find(other).map(|(who, _)| who);
    let who = waker.or(behind.iter().map(|behind| &behind.who).find(|who| !who.name.is_empty()));
    who.filter(|_| key.kind.is_held()).cloned()
}

/// One who had the CPU for less than one in so much of the time is not named.
const CULPRIT_ONE_IN: i64 = 20;

/// What kept threads from a CPU is one thing, whoever had that.
fn without_cpu(did: Vec<Did>) -> Vec<Did> {
    let mut all: Vec<Did> = Vec::new();
    let waits = |did: &Did| matches!(did.kind, PathKind::Preempted | PathKind::Dispatch);
    for next in did {
        match all.iter_mut().find(|known| waits(known) && waits(&next)) {
            Some(known) => {
                let is_much = next.ns > known.ns / CULPRIT_ONE_IN;
                known.ns += next.ns;
                known.culprit = match (known.culprit.take(), next.culprit) {
                    (Some(one), Some(other)) if one != other && is_much && !one.contains(", ") => {
                        Some(format!("{one}, {other}"))
                    }
                    (one, other) => one.or(other),
                };
            }
            None => all.push(next),
        }
    }
    all.sort_by_key(|did| Reverse(did.ns));
    all
}

/// Waits for a lock that a timer has ended, and that went on, are behind who holds it, although nobody that is known has ended them.
fn kept(behind: &mut Vec<BehindIt>, holder: Option<&Role>, ns: i64) {
    if ns == 0 {
        return;
    }
    let did = Did { kind: PathKind::Timer, call: None, file: None, culprit: None, ns };
    let same = |behind: &&mut BehindIt| holder.is_some_and(|holder| behind.who.is_like(holder));
    match behind.iter_mut().find(same) {
        Some(behind) => {
            behind.ns += ns;
            behind.did.insert(0, did);
            behind.did.sort_by_key(|did| Reverse(did.ns));
        }
        None => {
            let who = holder.cloned().unwrap_or_default();
            let (through, did) = (Vec::new(), vec![did]);
            behind.push(BehindIt { who, through, ns, did, at: Vec::new(), at_sleep: true });
        }
    }
    behind.sort_by_key(|behind| Reverse(behind.ns));
}

/// Those through whom less than one in so much of the time was waited for another one are not named.
const THROUGH_ONE_IN: i64 = 4;
