//! Random streams of a small machine that could be: what the analyses say must fit what happened.
//!
//! Two CPUs and five threads. A running thread acquires a free lock, waits for one that is taken, releases the
//! newest that it holds, is preempted, interrupted, sleeps, or is woken before it has gone to sleep; a release wakes one waiter. Locks are taken
//! in the order of their names, so that nothing ever waits in a circle.

use std::collections::HashMap;
use std::fmt::Write;

use super::{Rows, run};
use ft_trace::Mark;
use ft_trace::tables::{Doubt, DoubtCause};

const THREADS: [&str; 5] = ["a", "b", "c", "d", "e"];
const LOCKS: [&str; 3] = ["K", "L", "M"];

#[derive(Clone, Copy, PartialEq)]
enum Is {
    On(usize),
    Runnable,
    Asleep,
    WaitsFor(usize),
}

pub(super) struct Machine {
    random: u64,
    now: i64,
    threads: [Is; 5],
    cpus: [Option<usize>; 2],
    held: [Vec<usize>; 5],
    holder: [Option<usize>; 3],
    /// What each lock's waiters waited, ns.
    waited: i64,
    since: [i64; 5],
    text: String,
}

impl Machine {
    pub(super) fn new(seed: u64) -> Self {
        let mut machine = Machine {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            now: 0,
            threads: [Is::Asleep; 5],
            cpus: [None; 2],
            held: Default::default(),
            holder: [None; 3],
            waited: 0,
            since: [0; 5],
            text: String::new(),
        };
        // Every thread is seen before it does anything.
        (0..5).for_each(|thread| machine.wake(thread));
        machine
    }

    fn random(&mut self, n: u64) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % n) as usize
    }

    fn say(&mut self, what: &str) {
        self.now += 1 + self.random(20) as i64;
        writeln!(self.text, "{} {what}", self.now).expect("a string takes everything");
    }

    fn wake(&mut self, thread: usize) {
        self.say(&format!("wake X {} 0", THREADS[thread]));
        self.threads[thread] = Is::Runnable;
    }

    fn switch(&mut self, cpu: usize, becomes: Is) {
        self.leave(cpu, becomes, false);
    }

    /// Gives the CPU to a thread that is runnable, or to none; the one that leaves may be `being_woken`.
    fn leave(&mut self, cpu: usize, becomes: Is, being_woken: bool) {
        let name = |thread: Option<usize>| thread.map_or(".", |i| THREADS[i]);
        let (before, start) = (self.cpus[cpu], self.random(5));
        let runnable = (start..start + 5).map(|i| i % 5);
        let next =
            runnable.filter(|&i| Some(i) != before).find(|&i| self.threads[i] == Is::Runnable);
        let state = match becomes {
            _ if being_woken => "S!",
            Is::Runnable => "R",
            _ => "S",
        };
        self.say(&format!("{cpu} {}>{} {state}", name(before), name(next)));
        if let Some(thread) = before {
            self.threads[thread] = becomes;
        }
        self.cpus[cpu] = next;
        if let Some(thread) = next {
            self.threads[thread] = Is::On(cpu);
        }
    }

    fn acquire(&mut self, thread: usize, lock: usize) {
        self.say(&format!("acquire {} {}", THREADS[thread], LOCKS[lock]));
        self.holder[lock] = Some(thread);
        self.held[thread].push(lock);
    }

    /// A thread that runs does something.
    fn step(&mut self, cpu: usize, thread: usize) {
        let name = THREADS[thread];
        let above = self.held[thread].last().map_or(0, |lock| lock + 1);
        match self.random(9) {
            0 | 1 if above < LOCKS.len() => {
                let lock = above + self.random((LOCKS.len() - above) as u64);
                if self.holder[lock].is_none() {
                    return self.acquire(thread, lock);
                }
                self.say(&format!("wait {name} {}", LOCKS[lock]));
                self.since[thread] = self.now;
                self.switch(cpu, Is::WaitsFor(lock));
            }
            2..=4 => {
                let Some(lock) = self.held[thread].pop() else { return };
                self.say(&format!("release {name} {}", LOCKS[lock]));
                self.holder[lock] = None;
                let waiter = (0..5).find(|&i| self.threads[i] == Is::WaitsFor(lock));
                if let Some(waiter) = waiter {
                    self.wake(waiter);
                    // It has the lock as soon as it runs; nobody else takes it before.
                    self.holder[lock] = Some(waiter);
                    self.held[waiter].push(lock);
                }
            }
            5 => self.switch(cpu, Is::Runnable),
            6 => self.switch(cpu, Is::Asleep),
            7 => {
                // Woken before it has left the CPU: whether that still counts, the switch says.
                self.say(&format!("wake X {name} {cpu}"));
                let under_way = self.random(2) == 0;
                self.leave(cpu, if under_way { Is::Runnable } else { Is::Asleep }, under_way);
            }
            _ => {
                let length = 1 + self.random(3);
                self.say(&format!("irq {name} soft {length}"));
            }
        }
    }

    /// A thread that was given a lock while it slept tells so when it runs.
    fn tell(&mut self, thread: usize, told: &mut [Vec<usize>; 5]) {
        while let Some(&lock) = self.held[thread].get(told[thread].len()) {
            self.say(&format!("acquire {} {}", THREADS[thread], LOCKS[lock]));
            self.waited += self.now - self.since[thread];
            told[thread].push(lock);
        }
    }

    /// The timeline, and what was waited for locks.
    pub(super) fn run(mut self) -> (String, i64) {
        let mut told: [Vec<usize>; 5] = Default::default();
        for _ in 0..600 {
            let cpu = self.random(2);
            match self.cpus[cpu] {
                None => self.switch(cpu, Is::Asleep),
                Some(thread) => {
                    self.tell(thread, &mut told);
                    self.step(cpu, thread);
                    // What it did itself was reported at once.
                    told[thread].clone_from(&self.held[thread]);
                }
            }
            let asleep = self.random(5);
            if self.threads[asleep] == Is::Asleep && self.random(3) == 0 {
                self.wake(asleep);
            }
        }
        (self.text, self.waited)
    }
}

/// Rows of one thread and lock, by (thread, lock).
fn sums(rows: &Rows) -> HashMap<(i32, i64), i64> {
    let mut sums = HashMap::new();
    for r in rows.lock_preemptions.iter().filter(|r| r.ran_after_ns.is_some()) {
        *sums.entry((r.tid.0, r.lock)).or_default() += r.dur;
    }
    sums
}

#[test]
fn what_is_told_fits_what_happened() {
    let (mut waits, mut chains, mut preemptions) = (0, 0, 0);
    for seed in 1..=200 {
        let (text, waited) = Machine::new(seed).run();
        let (rows, tally) = run(true, &text);
        assert_eq!(
            (tally.ran_unseen, tally.unseen_switches),
            (0, 0),
            "seed {seed}: it could not be"
        );

        // All waiting is reported, and every part of it is somebody's or nobody's.
        let told: i64 = rows.lock_waits.iter().map(|r| r.dur).sum();
        assert_eq!(told, waited, "seed {seed}");
        let of_holds: i64 = rows.critical_sections.iter().map(|r| r.wait_ns).sum();
        assert!(of_holds <= told, "seed {seed}");
        for r in &rows.lock_waits {
            let parts = r.parts.expect("a kernel stream");
            assert!(parts.to_array().iter().all(|&ns| ns >= 0), "seed {seed}: {r:?}");
            assert_eq!(parts.total_ns() + r.no_holder_ns, r.dur, "seed {seed}: {r:?}");
            let did = [r.free_asleep_ns, r.free_runnable_ns, r.free_running_ns, r.free_unknown_ns];
            let did = did.map(|ns| ns.expect("a kernel stream"));
            assert!(did.iter().all(|ns| *ns >= 0), "seed {seed}: {r:?}");
            assert_eq!(did.iter().sum::<i64>(), r.no_holder_ns, "seed {seed}: {r:?}");
            assert_eq!((r.cycle_ns, parts.unexplained_ns), (0, 0), "seed {seed}: {r:?}");
            assert!(r.holder_waits_ns <= r.dur && r.root_ns <= Some(r.dur), "seed {seed}: {r:?}");
            assert!(r.chain <= 1 || r.holder_waits_ns > 0, "seed {seed}: {r:?}");
        }

        // What a hold lost to preemption and dispatch is the sum of its rows; one thread has one of them at a time.
        let mut lost: HashMap<(i32, i64), i64> = HashMap::new();
        for r in &rows.critical_sections {
            let parts = r.parts.expect("parts");
            *lost.entry((r.tid.0, r.lock)).or_default() += parts.runnable_ns();
        }
        lost.retain(|_, ns| *ns > 0);
        assert_eq!(sums(&rows), lost, "seed {seed}");
        let mut ends: HashMap<i32, i64> = HashMap::new();
        let mut innermost: Vec<_> = rows.lock_preemptions.iter().filter(|r| r.innermost).collect();
        innermost.sort_by_key(|r| r.ts);
        for r in innermost {
            let before = ends.insert(r.tid.0, r.ts.0 + r.dur);
            assert!(before.is_none_or(|end| end <= r.ts.0), "seed {seed}: {r:?}");
            assert!(r.delayed_ns <= r.dur * i64::from(r.waiters), "seed {seed}: {r:?}");
        }
        waits += rows.lock_waits.len();
        chains += rows.lock_waits.iter().filter(|r| r.chain > 1).count();
        preemptions += rows.lock_preemptions.len();
    }
    assert!(waits > 1000 && chains > 50 && preemptions > 1000, "{waits} {chains} {preemptions}");
}

/// Without records that are missing nothing is in doubt; and what is marked overlaps one of the doubts, from when on each CPU was seen.
#[test]
fn what_is_marked_overlaps_a_doubt() {
    let (mut marked, mut doubts) = (0, 0);
    for seed in 1..=200 {
        let (text, _) = Machine::new(seed).run();
        // The machine moves threads without a record of it.
        let moved = |d: &Doubt| d.why == DoubtCause::Wakeup;
        assert!(run(true, &text).0.doubts.iter().all(moved), "seed {seed}");
        let mut random = crate::timeline::random(seed);
        let is_own = |line: &str| ["acquire", "release", "wait"].iter().any(|w| line.contains(w));
        let damaged: Vec<&str> =
            text.lines().filter(|line| is_own(line) || random(30) > 0).collect();
        let switches = damaged.iter().filter(|line| line.contains('>'));
        let mut begins = switches.map(|line| line.split(' ').collect::<Vec<_>>());
        let first = begins.clone().next().expect("a switch")[1];
        let other = begins.find(|words| words[1] != first).expect("two CPUs");
        let seen: i64 = other[0].parse().expect("a time");

        let (rows, _) = run(true, &damaged.join("\n"));
        let holds = rows.critical_sections.iter().map(|r| (r.ts.0, r.dur, r.mark));
        let wakes = rows.dispatch_latency.iter().map(|r| (r.ts.0, r.dur, r.mark));
        let preempted = rows.lock_preemptions.iter().map(|r| (r.ts.0, r.dur, r.mark));
        for (ts, dur, _) in holds
            .chain(wakes)
            .chain(preempted)
            .filter(|(ts, _, mark)| *ts >= seen && *mark == Mark::LowerBound)
        {
            let over = |d: &Doubt| d.ts.0 <= ts + dur && d.ts.0 + d.dur >= ts;
            assert!(rows.doubts.iter().any(over), "seed {seed}: {ts}+{dur}");
            marked += 1;
        }
        assert!(rows.doubts.iter().all(|d| d.dur >= 0 && d.pid.is_some()), "{:?}", rows.doubts);
        doubts += rows.doubts.len();
    }
    assert!(marked > 500 && doubts > 500, "{marked} {doubts}");
}
