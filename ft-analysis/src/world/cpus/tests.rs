use super::*;
use ft_trace::ids::Pid;

const ME: ThreadKey = ThreadKey { pid: Pid(1), tid: Tid(7) };

fn other(tid: i32) -> ThreadKey {
    ThreadKey { pid: Pid(2), tid: Tid(tid) }
}

fn check(shares: &Shares, expected: &[(i32, i64)]) {
    let found: Vec<_> = shares.iter().map(|s| (s.who.thread.tid.0, s.ns)).collect();
    assert_eq!(found, expected);
}

#[test]
fn each_occupant_has_its_share() {
    // cpu 0:  me |  A (10..30)  | B (30..35) | A (35..40) | me
    let mut cpus = Cpus::default();
    cpus.switch(Cpu(0), 10, other(1), &"a".into(), 120);
    cpus.wait(ME, Cpu(0), 10);
    cpus.switch(Cpu(0), 30, other(2), &"b".into(), 120);
    cpus.switch(Cpu(0), 35, other(1), &"a".into(), 120);
    let shares = cpus.leave(ME, Cpu(0), 40);
    check(&shares, &[(1, 25), (2, 5)]);
    assert_eq!(shares.longest().map(|s| (&*s.who.comm, s.ns)), Some(("a", 25)));
}

#[test]
fn the_wait_moves_with_a_migration() {
    // cpu 0:  A |....wait....| moved
    // cpu 1:  B              |..wait..|
    let mut cpus = Cpus::default();
    cpus.switch(Cpu(0), 0, other(1), &"a".into(), 120);
    cpus.switch(Cpu(1), 0, other(2), &"b".into(), 120);
    cpus.wait(ME, Cpu(0), 10);
    check(&cpus.migrate(ME, Cpu(0), Cpu(1), 17), &[(1, 7)]);
    check(&cpus.leave(ME, Cpu(1), 20), &[(2, 3)]);
}

#[test]
fn nobody_is_blamed_for_what_is_not_known() {
    let mut cpus = Cpus::default();
    cpus.wait(ME, Cpu(0), 10);
    cpus.switch(Cpu(0), 20, other(1), &"a".into(), 120);
    cpus.lose(25, 25);
    let shares = cpus.leave(ME, Cpu(0), 40);
    check(&shares, &[(1, 5)]);
    assert!(!shares.is_exact());
    check(&cpus.leave(ME, Cpu(-1), 40), &[]);
    check(&cpus.leave(ME, Cpu(i32::MAX), 40), &[]);
}

#[test]
fn the_occupant_is_blamed_until_it_was_seen_last() {
    // cpu 0:  A (0..)  seen at 12  ....  B leaves at 40; another waiter comes and goes meanwhile
    let eight = other(8);
    let mut cpus = Cpus::default();
    cpus.switch(Cpu(0), 0, other(1), &"a".into(), 120);
    cpus.wait(ME, Cpu(0), 5);
    cpus.wait(eight, Cpu(0), 10);
    cpus.shown(Cpu(0), 12, Tid(1));
    cpus.shown(Cpu(0), 13, Tid(3));
    let told = cpus.leave(eight, Cpu(0), 30);
    check(&told, &[(1, 20)]);
    let unseen = cpus.unseen(Cpu(0), 40, other(2)).unwrap();
    assert_eq!(
        unseen,
        Unseen { last: other(1), comm: "a".into(), since: 12, doubtful: vec![(eight, 30)] }
    );
    cpus.switch(Cpu(0), 40, other(3), &"c".into(), 120);
    let shares = cpus.leave(ME, Cpu(0), 50);
    check(&shares, &[(1, 7), (3, 10)]);
    assert!(!shares.is_exact(), "12 to 40 is nobody's");
}

#[test]
fn a_share_that_a_later_record_bears_out_is_not_in_doubt() {
    let mut cpus = Cpus::default();
    cpus.switch(Cpu(0), 0, other(1), &"a".into(), 120);
    cpus.wait(ME, Cpu(0), 5);
    assert!(cpus.leave(ME, Cpu(0), 30).is_exact());
    cpus.shown(Cpu(0), 35, Tid(1));
    let unseen = cpus.elsewhere(Cpu(0), 40, other(1)).unwrap();
    assert_eq!(unseen, Unseen { last: other(1), comm: "a".into(), since: 35, doubtful: vec![] });
    assert_eq!(cpus.elsewhere(Cpu(0), 40, other(1)), None);
}

/// Random switches, waits and moves on two CPUs against a plain recomputation.
#[test]
fn shares_are_what_happened_however_many_took_part() {
    let mut random = crate::timeline::random(1);
    let mut cpus = Cpus::default();
    // On each CPU, who has it from when on; of each waiter, on which CPU it stands since when, and what it has.
    let mut had: [Vec<(i64, i32)>; 2] = [vec![(0, 0)], vec![(0, 0)]];
    let mut waits: Vec<(ThreadKey, usize, i64, Shares)> = Vec::new();
    for cpu in 0..2 {
        cpus.switch(Cpu(cpu), 0, other(0), &"idle".into(), 120);
    }
    let (mut most, mut t) = (0, 0);
    for i in 0..20_000 {
        t += random(10) as i64;
        let cpu = random(2) as usize;
        match random(20) {
            0 => {
                let tid = other(10_000 + i);
                cpus.wait(tid, Cpu(cpu as i32), t);
                waits.push((tid, cpu, t, Shares::default()));
            }
            1 | 2 if !waits.is_empty() => {
                // Some wait very long.
                let at = (waits.len() - 1).saturating_sub(random(8) as usize);
                let (tid, on, since, mut shares) = waits.swap_remove(at);
                let moved = random(3) == 0;
                let to = 1 - on;
                let now = if moved {
                    cpus.migrate(tid, Cpu(on as i32), Cpu(to as i32), t)
                } else {
                    cpus.leave(tid, Cpu(on as i32), t)
                };
                let mut truth = std::collections::BTreeMap::new();
                for (k, &(from, who)) in had[on].iter().enumerate() {
                    let end = had[on].get(k + 1).map_or(t, |next| next.0);
                    let ns = end.min(t) - from.max(since);
                    if ns > 0 {
                        *truth.entry(who).or_default() += ns;
                    }
                }
                let truth: Vec<(i32, i64)> = truth.into_iter().collect();
                check(&now, &truth);
                assert!(now.is_exact());
                most = most.max(truth.len());
                shares.merge(&now);
                if moved {
                    waits.push((tid, to, t, shares));
                }
            }
            _ => {
                let who = 1 + random(300) as i32;
                cpus.switch(Cpu(cpu as i32), t, other(who), &"x".into(), 120);
                had[cpu].push((t, who));
            }
        }
    }
    assert!(most > 100, "{most}");
}

#[test]
fn memory_is_bounded_and_says_so() {
    let mut cpus = Cpus::default();
    cpus.switch(Cpu(0), 0, other(1), &"x".into(), 120);
    cpus.wait(ME, Cpu(0), 0);
    for i in 0..10_000 {
        cpus.switch(Cpu(0), i64::from(i) * 10 + 3, other(100 + i), &"x".into(), 120);
        cpus.switch(Cpu(0), i64::from(i) * 10 + 6, other(1), &"hog".into(), 120);
    }
    let shares = cpus.leave(ME, Cpu(0), 100_000);
    assert!(shares.iter().count() <= crate::world::sums::MAX_KEPT && !shares.is_exact());
    assert_eq!(shares.longest().map(|s| s.who.thread), Some(other(1)));
}
