//! Random schedules of a small machine, with tasks that its threads poll: each nanosecond of each path is that of a truth that
//! looks at every nanosecond by itself.

use std::collections::HashMap;
use std::fmt::Write;

use super::{piece, tiles};
use crate::timeline::run;
use ft_trace::tables::{PathKind, PathPiece};
use proptest::prelude::*;

const THREADS: [&str; 5] = ["a", "b", "c", "d", "e"];
const CPUS: usize = 3;
const TASKS: usize = 4;

/// Who ends a sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Thread(usize),
    Leaf(PathKind),
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    Is(PathKind),
    Sleeps(By),
}

/// Who is waited for.
#[derive(Clone, Copy, Debug)]
enum Who {
    Thread(usize),
    Task(usize),
}

/// A poll of a task: the first wake-up since the one before began, and when it was.
#[derive(Clone, Copy, Debug)]
struct Poll {
    woken: Option<(i64, Who)>,
    from: i64,
    to: i64,
    thread: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Where {
    On(usize),
    Ready,
    Asleep,
}

struct Machine {
    now: i64,
    cpus: [Option<usize>; CPUS],
    threads: [Where; 5],
    since: [i64; 5],
    doing: [PathKind; 5],
    /// What each thread did: since when, and what.
    truth: [Vec<(i64, Does)>; 5],
    /// The task that each thread polls.
    polls: [Option<usize>; 5],
    polled: [Vec<Poll>; TASKS],
    woken: [Option<(i64, Who)>; TASKS],
    /// Since when each thread is in a scope of its own, and each task.
    in_scope: [Option<i64>; 5],
    task_in_scope: [Option<i64>; TASKS],
    /// Whose it is, begin, end.
    scopes: Vec<(Who, i64, i64)>,
    text: String,
}

impl Machine {
    fn new() -> Machine {
        let mut machine = Machine {
            now: 0,
            cpus: [None; CPUS],
            threads: [Where::Ready; 5],
            since: [0; 5],
            doing: [PathKind::Dispatch; 5],
            truth: Default::default(),
            polls: [None; 5],
            polled: Default::default(),
            woken: [None; TASKS],
            in_scope: [None; 5],
            task_in_scope: [None; TASKS],
            scopes: Vec::new(),
            text: "0 irq . soft 0\n".to_owned(),
        };
        for (thread, name) in THREADS.iter().enumerate() {
            machine.say(1, &format!("wake X {name} 0"));
            machine.since[thread] = machine.now;
        }
        for task in 0..TASKS {
            machine.say(1, &format!("make m {task}"));
        }
        machine
    }

    fn say(&mut self, after: i64, what: &str) {
        self.now += after;
        writeln!(self.text, "{} {what}", self.now).expect("a string takes everything");
    }

    /// What a thread did until now is over.
    fn turn(&mut self, thread: usize, did: Does, does: PathKind) {
        self.truth[thread].push((self.since[thread], did));
        (self.since[thread], self.doing[thread]) = (self.now, does);
    }

    fn turns(&mut self, thread: usize, does: PathKind) {
        self.turn(thread, Does::Is(self.doing[thread]), does);
    }

    fn current(&self, cpu: usize) -> &'static str {
        self.cpus[cpu].map_or(".", |thread| THREADS[thread])
    }

    /// Another thread has the CPU, or none.
    fn switch(&mut self, cpu: usize, dt: i64, pick: usize, sleeps: bool) {
        let before = self.cpus[cpu];
        let ready = (pick..pick + 5).map(|i| i % 5);
        let next = ready.filter(|&i| Some(i) != before).find(|&i| self.threads[i] == Where::Ready);
        let name = next.map_or(".", |i| THREADS[i]);
        let state = if sleeps || before.is_none() { "S" } else { "R" };
        self.say(dt, &format!("{cpu} {}>{name} {state}", self.current(cpu)));
        if let Some(before) = before {
            self.threads[before] = if sleeps { Where::Asleep } else { Where::Ready };
            // Of a sleep, who ends it is known when it ends.
            self.turns(before, PathKind::Preempted);
        }
        self.cpus[cpu] = next;
        if let Some(next) = next {
            self.turns(next, PathKind::Running);
            self.threads[next] = Where::On(cpu);
        }
    }

    fn wakes(&mut self, cpu: usize, pick: usize, by: By, dt: i64) {
        let asleep = (pick..pick + 5).map(|i| i % 5).find(|&i| self.threads[i] == Where::Asleep);
        let Some(woken) = asleep else { return };
        self.say(dt, &format!("wake {} {} {cpu} {cpu}", self.current(cpu), THREADS[woken]));
        self.turn(woken, Does::Sleeps(by), PathKind::Dispatch);
        self.threads[woken] = Where::Ready;
    }

    fn interrupt(&mut self, cpu: usize, pick: usize, dt: i64) {
        let timer = pick.is_multiple_of(2);
        let (what, kind) = match timer {
            true => ("vector 5", PathKind::Timer),
            false => ("hard 5", PathKind::Device),
        };
        let name = if timer { "local_timer" } else { "eth0" };
        self.say(dt, &format!("irq {} {what} {cpu} {name}", self.current(cpu)));
        let struck = self.cpus[cpu];
        if let Some(struck) = struck {
            self.turns(struck, PathKind::Interrupt);
        }
        let exit = self.now + 5;
        self.wakes(cpu, pick, By::Leaf(kind), 2);
        self.now = exit;
        if let Some(struck) = struck {
            self.turns(struck, PathKind::Running);
        }
    }

    fn scope(&mut self, cpu: usize, dt: i64) {
        let Some(thread) = self.cpus[cpu] else { return };
        let (name, task) = (THREADS[thread], self.polls[thread]);
        // A task takes its scope along.
        let of_task =
            task.and_then(|task| Some((self.task_in_scope[task].take()?, Who::Task(task))));
        let own = || Some((self.in_scope[thread].take()?, Who::Thread(thread)));
        match of_task.or_else(own) {
            None => {
                self.say(dt, &format!("open {name}"));
                *task.map_or(&mut self.in_scope[thread], |task| &mut self.task_in_scope[task]) =
                    Some(self.now);
            }
            Some((since, who)) => {
                self.say(dt, &format!("close {name}"));
                self.scopes.push((who, since, self.now));
            }
        }
    }

    /// Polls a task that nobody else polls, or ends the poll.
    fn poll(&mut self, cpu: usize, pick: usize, dt: i64) {
        let Some(thread) = self.cpus[cpu] else { return };
        let name = THREADS[thread];
        if let Some(task) = self.polls[thread].take() {
            self.say(dt, &format!("ran {name} {task} 0"));
            self.polled[task].last_mut().expect("it is polled").to = self.now;
            return;
        }
        let mut all = (pick..pick + TASKS).map(|i| i % TASKS);
        let Some(task) = all.find(|&i| !self.polls.contains(&Some(i))) else { return };
        self.say(dt, &format!("run {name} {task}"));
        let woken = self.woken[task].take();
        self.polled[task].push(Poll { woken, from: self.now, to: i64::MAX, thread });
        self.polls[thread] = Some(task);
    }

    /// Wakes a task.
    fn rouse(&mut self, cpu: usize, pick: usize, dt: i64) {
        let Some(thread) = self.cpus[cpu] else { return };
        let task = pick % TASKS;
        self.say(dt, &format!("rouse {} {task}", THREADS[thread]));
        let by = self.polls[thread].map_or(Who::Thread(thread), Who::Task);
        self.woken[task].get_or_insert((self.now, by));
    }

    fn run(mut self, steps: &[(u8, u8, u8)]) -> Machine {
        for &(what, pick, dt) in steps {
            let (cpu, pick, dt) = (pick as usize % CPUS, pick as usize, 1 + i64::from(dt));
            let busy = self.cpus[cpu];
            match what {
                0 => self.switch(cpu, dt, pick, false),
                1 | 2 => self.switch(cpu, dt, pick, true),
                3..=5 => {
                    if let Some(waker) = busy {
                        self.wakes(cpu, pick, By::Thread(waker), dt);
                    }
                }
                6 => self.interrupt(cpu, pick, dt),
                7 | 8 => self.scope(cpu, dt),
                9..=11 => self.poll(cpu, pick, dt),
                _ => self.rouse(cpu, pick, dt),
            }
        }
        for thread in 0..5 {
            self.turns(thread, PathKind::Unknown);
        }
        self
    }

    /// Whose doing the nanosecond from `t` on is, for who waits for `who`.
    fn blame(&self, who: Who, t: i64) -> (usize, PathKind) {
        let thread = match who {
            Who::Thread(thread) => thread,
            Who::Task(task) => match self.next(task, t) {
                // Polled.
                (Poll { from, thread, .. }, _) if from <= t => thread,
                (Poll { woken: None, thread, .. }, true) => return (thread, PathKind::Unknown),
                (Poll { woken: Some((at, by)), .. }, _) if t < at => return self.blame(by, t),
                // Queued, or made and not polled yet.
                (Poll { thread, .. }, _) => thread,
            },
        };
        let after = self.truth[thread].partition_point(|(since, _)| *since <= t);
        match self.truth[thread][after - 1].1 {
            Does::Is(kind) => (thread, kind),
            Does::Sleeps(By::Leaf(kind)) => (thread, kind),
            Does::Sleeps(By::Thread(waker)) => self.blame(Who::Thread(waker), t),
        }
    }

    /// The poll of a task that goes on at `t`, or the next one, and whether there was one before that.
    fn next(&self, task: usize, t: i64) -> (Poll, bool) {
        let over = self.polled[task].partition_point(|poll| poll.to <= t);
        (self.polled[task][over], over > 0)
    }
}

/// Judges all paths of a schedule; how many pieces there were in waits within waits, in waits for timers and devices, and in
/// waits of tasks.
fn judge(steps: &[(u8, u8, u8)]) -> Result<[usize; 3], TestCaseError> {
    let machine = Machine::new().run(steps);
    let (rows, tally) = run(true, &machine.text);
    prop_assert_eq!((tally.ran_unseen, tally.unseen_switches), (0, 0));
    tiles(&rows);
    prop_assert_eq!(rows.requests.len(), machine.scopes.len());
    let mut paths: HashMap<i64, Vec<&PathPiece>> = HashMap::new();
    rows.critical_path.iter().for_each(|p| paths.entry(p.request).or_default().push(p));
    for (&(who, from, to), request) in machine.scopes.iter().zip(&rows.requests) {
        prop_assert_eq!((request.ts.0, request.dur), (from, to - from));
        for p in paths.get(&request.request).into_iter().flatten() {
            for t in p.ts.0..p.ts.0 + p.dur {
                let (whose, kind) = machine.blame(who, t);
                let expected = (i32::from(THREADS[whose].as_bytes()[0]), kind);
                let found = (p.tid.0, p.kind);
                prop_assert_eq!(found, expected, "at {} of {}\n{}", t, piece(p), &machine.text);
            }
        }
    }
    let count = |of: fn(&PathPiece) -> bool| rows.critical_path.iter().filter(|p| of(p)).count();
    Ok([
        count(|p| p.depth > 1),
        count(|p| matches!(p.kind, PathKind::Timer | PathKind::Device)),
        count(|p| p.wait.as_ref().is_some_and(|what| what.starts_with("task"))),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_nanosecond_is_that_of_the_truth(
        steps in prop::collection::vec((0u8..14, any::<u8>(), 0u8..12), 20..250),
    ) {
        judge(&steps)?;
    }
}

#[test]
fn such_schedules_have_waits_within_waits_and_tasks_that_wait() {
    let mut random = crate::timeline::random(1);
    let mut random = |n| random(n) as u8;
    let mut found = [0; 3];
    for _ in 0..300 {
        let steps: Vec<_> = (0..250).map(|_| (random(14), random(256), random(12))).collect();
        let more = judge(&steps).expect("it is the truth");
        (0..3).for_each(|i| found[i] += more[i]);
    }
    assert!(found.iter().all(|&n| n > 200), "{found:?}");
}
