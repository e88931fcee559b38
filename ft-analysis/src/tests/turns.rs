//! Waits over hundreds of turns: who is named, and how long, against a plain recomputation.
//!
//! Ten threads and three locks, taken in the order of their names; the last is held by readers, too. Whoever finds a
//! lock free takes it, and `a` seldom looks, so that it waits while the others have hundreds of turns.

use std::collections::HashMap;
use std::fmt::Write;

use super::run;
use crate::Mark;
use ft_trace::tables::LockWait;

const THREADS: &[u8] = b"abcdefghij";
const LOCKS: &[u8] = b"KLM";
const SHARED: usize = 2;

/// Thread and place.
type Hold = (usize, i64);

/// Who held and waited for what, from one event to the next.
#[derive(Clone, Default)]
struct Scene {
    from: i64,
    /// The one that came first comes first.
    holders: [Vec<(Hold, bool)>; 3],
    waits: [Option<(usize, bool)>; 10],
}

impl Scene {
    /// The holders in the chain of a lock; and whether the last of them waits for a lock that nobody holds.
    fn chain(&self, mut lock: usize) -> (Vec<(usize, Hold)>, bool) {
        let mut chain = Vec::new();
        while let Some((hold, _)) = self.holders[lock].first() {
            chain.push((lock, *hold));
            match self.waits[hold.0] {
                Some((next, _)) => lock = next,
                None => return (chain, false),
            }
        }
        (chain, true)
    }
}

struct Machine {
    random: u64,
    text: String,
    scenes: Vec<Scene>,
}

impl Machine {
    fn random(&mut self, n: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % n
    }

    /// Something happens, and the scene changes.
    fn event(&mut self, what: &str, thread: usize, rest: &str, change: impl FnOnce(&mut Scene)) {
        let mut scene = self.scenes.last().expect("there is a first").clone();
        scene.from += self.random(20) as i64;
        let name = THREADS[thread] as char;
        writeln!(self.text, "{} {what} {name} {rest}", scene.from).expect("a string takes it");
        change(&mut scene);
        self.scenes.push(scene);
    }

    fn step(&mut self) {
        let scene = self.scenes.last().expect("there is a first").clone();
        let thread = self.random(10) as usize;
        let place = 1 + self.random(3) as i64;
        let held = |lock: usize| scene.holders[lock].iter().any(|(hold, _)| hold.0 == thread);
        let newest = (0..3).rev().find(|&lock| held(lock));
        if thread == 0 && self.random(300) > 0 && scene.waits[0].is_some() {
            return;
        }
        let above = newest.map_or(0, |lock| lock + 1);
        let wants = match scene.waits[thread] {
            Some(wants) => wants,
            None if above == 3 || (newest.is_some() && self.random(3) > 0) => {
                let lock = newest.expect("it holds some");
                let name = &(LOCKS[lock] as char).to_string();
                return self.event("release", thread, name, |scene| {
                    scene.holders[lock].retain(|(hold, _)| hold.0 != thread);
                });
            }
            None => {
                let lock = above + self.random(3 - above as u64) as usize;
                (lock, lock == SHARED && self.random(2) == 0)
            }
        };
        let (lock, shared) = wants;
        let rest = format!("{} {place}", LOCKS[lock] as char);
        let free = scene.holders[lock].iter().all(|(_, with)| *with && shared);
        if free {
            let what = if shared { "read" } else { "acquire" };
            self.event(what, thread, &rest, |scene| {
                scene.waits[thread] = None;
                scene.holders[lock].push(((thread, place), shared));
            });
        } else if scene.waits[thread].is_none() {
            let what = if shared { "wait-read" } else { "wait" };
            self.event(what, thread, &rest, |scene| scene.waits[thread] = Some(wants));
        }
    }
}

/// What a wait was, scene by scene.
#[derive(Default)]
struct Truth {
    holders: HashMap<(usize, Hold), i64>,
    roots: HashMap<(usize, Hold), i64>,
    chain: usize,
    no_holder_ns: i64,
    holder_waits_ns: i64,
    turns: usize,
}

fn truth(scenes: &[Scene], row: &LockWait) -> Truth {
    let (lock, end) = (row.lock as u8, row.ts.0 + row.dur);
    let lock = LOCKS.iter().position(|l| *l == lock).expect("one of the locks");
    let mut truth = Truth::default();
    let mut last = None;
    for pair in scenes.windows(2) {
        let ns = pair[1].from.min(end) - pair[0].from.max(row.ts.0);
        if ns <= 0 {
            continue;
        }
        let (chain, nobody) = pair[0].chain(lock);
        truth.chain = truth.chain.max(chain.len());
        if let Some(&holder) = chain.first() {
            *truth.holders.entry(holder).or_default() += ns;
            truth.turns += usize::from(last.replace(holder) != Some(holder));
        }
        match chain.last() {
            Some(&root) if !nobody => *truth.roots.entry(root).or_default() += ns,
            _ => truth.no_holder_ns += ns,
        }
        if chain.len() > 1 || (nobody && !chain.is_empty()) {
            truth.holder_waits_ns += ns;
        }
    }
    truth
}

/// The one that is named has the time that is stated, and nobody has more.
fn named(
    of: &HashMap<(usize, Hold), i64>,
    lock: Option<i64>,
    (tid, place, ns): (Option<i32>, Option<&str>, Option<i64>),
    row: &LockWait,
) {
    assert_eq!(of.values().max().copied(), ns, "{row:?}");
    let Some(tid) = tid else { return };
    let thread = THREADS.iter().position(|t| i32::from(*t) == tid).expect("a thread");
    let lock = LOCKS.iter().position(|l| Some(i64::from(*l)) == lock).expect("a lock");
    let place = place.and_then(|p| p.strip_prefix("x.rs:")?.parse().ok()).expect("a place");
    assert_eq!(of.get(&(lock, (thread, place))).copied(), ns, "{row:?}");
}

#[test]
fn every_wait_names_who_held_longest_whatever_its_length() {
    let (mut longest, mut chains, mut shares) = (0, 0, 0);
    for seed in 1..=20 {
        let random = u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15);
        let mut machine = Machine { random, text: String::new(), scenes: vec![Scene::default()] };
        (0..6000).for_each(|_| machine.step());
        let (rows, _) = run(true, &machine.text);
        for row in &rows.lock_waits {
            let truth = truth(&machine.scenes, row);
            assert_eq!(row.mark, Mark::Exact);
            assert_eq!(row.chain, truth.chain as i32, "{row:?}");
            assert_eq!(row.no_holder_ns, truth.no_holder_ns, "{row:?}");
            assert_eq!(row.holder_waits_ns, truth.holder_waits_ns, "{row:?}");
            let parts = row.parts.expect("a kernel stream").total_ns();
            assert_eq!(parts, truth.roots.values().sum::<i64>(), "{row:?}");
            assert_eq!(parts + row.no_holder_ns, row.dur, "{row:?}");
            let holder = (row.holder_tid, row.holder_place.as_deref(), row.holder_ns);
            named(&truth.holders, Some(row.lock), holder, row);
            let root = (row.root_tid, row.root_place.as_deref(), row.root_ns);
            let of = row.root_lock.as_ref().and_then(|n| i64::from_str_radix(&n[2..], 16).ok());
            named(&truth.roots, of, root, row);
            longest = longest.max(truth.turns);
            chains += usize::from(truth.chain > 2);
            shares += usize::from(truth.holders.len() > 10);
        }
    }
    assert!(longest > 150 && chains > 100 && shares > 100, "{longest} {chains} {shares}");
}
