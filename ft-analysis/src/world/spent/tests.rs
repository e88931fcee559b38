use super::*;
use ft_trace::ids::{Cpu, Pid, Tid};
use ft_trace::tables::TaskState;

fn sums(spent: &Spent) -> Vec<String> {
    let text = |s: &Sum| {
        let who = s.culprit.name().map_or(String::new(), |n| format!(" {n}"));
        format!("{}{who} {} in {}", s.part, s.ns, s.stretches)
    };
    spent.sums().map(text).collect()
}

#[test]
fn stretches_that_touch_are_one() {
    let mut spent = Spent::new(0);
    let timer: Name = "local_timer".into();
    spent.stretch(0, 10, Part::Running, None);
    spent.stretch(10, 20, Part::Running, None);
    spent.stretch(20, 23, Part::Vector, Some(&timer));
    spent.stretch(23, 30, Part::Running, None);
    assert_eq!(sums(&spent), ["running 27 in 2", "vector local_timer 3 in 1"]);
}

#[test]
fn a_thread_that_is_renamed_stays_one_culprit_under_its_newest_name() {
    let mut spent = Spent::new(0);
    let mut cpus = crate::world::cpus::Cpus::default();
    let thread = |tid| ThreadKey { pid: Pid(1), tid: Tid(tid) };
    let (me, cpu) = (thread(1), Cpu(0));
    for (start, name) in [(0, "fork"), (20, "worker")] {
        cpus.switch(cpu, start, thread(9), &name.into(), 120);
        cpus.wait(me, cpu, start);
        spent.stretch(start, start + 10, Part::Preempted, None);
        let shares = cpus.leave(me, cpu, start + 10);
        spent.waited(&shares, &cpus);
    }
    assert_eq!(sums(&spent), ["preempted worker 20 in 2"]);
}

#[test]
fn a_wait_is_cut_at_the_end_of_what_it_was_in() {
    let mut spent = Spent::new(0);
    spent.waits.leaves(TaskState::Sleeping);
    spent.waits.calls(30, &"read".into());
    spent.stretch(10, 50, Part::Blocked, None);
    assert_eq!(sums(&spent), ["blocked system call read 20 in 1", "blocked asleep 20 in 1"]);
}

#[test]
fn a_wait_for_the_cpu_is_shared_out_and_nothing_is_made_up() {
    use crate::world::cpus::Cpus;
    use ft_trace::ids::{Cpu, Pid, ThreadKey, Tid};
    let thread = |tid| ThreadKey { pid: Pid(1), tid: Tid(tid) };
    let (me, cpu) = (thread(7), Cpu(0));
    let mut cpus = Cpus::default();
    cpus.switch(cpu, 0, thread(1), &"hog".into(), 120);
    cpus.wait(me, cpu, 0);
    let shares = cpus.leave(me, cpu, 50);
    let check = |part, waited, expected: &[&str]| {
        let mut spent = Spent::new(0);
        spent.stretch(0, waited, part, None);
        spent.waited(&shares, &cpus);
        assert_eq!(sums(&spent), expected);
    };
    check(Part::Preempted, 50, &["preempted hog 50 in 1"]);
    check(Part::Dispatch, 60, &["dispatch hog 50 in 1", "dispatch not known 10 in 1"]);
    check(Part::Dispatch, 30, &["dispatch hog 30 in 1"]);
}

#[test]
fn culprits_are_bounded_and_the_rest_is_counted() {
    let mut spent = Spent::new(0);
    for i in 0..1000 {
        let name: Name = format!("nic{i}").into();
        spent.stretch(i * 10, i * 10 + 4, Part::Hardirq, Some(&name));
    }
    assert_eq!(spent.sums.len(), 1 + MAX_CULPRITS + 1);
    let named = MAX_CULPRITS as i64;
    let others = format!("hardirq others {} in {}", 4 * (1000 - named), 1000 - named);
    assert_eq!(sums(&spent).last(), Some(&others));
    assert_eq!(spent.sums().map(|s| s.ns).sum::<i64>(), 4000);
}

#[test]
fn later_threads_of_one_name_are_together() {
    use crate::world::cpus::Cpus;
    use ft_trace::ids::{Cpu, Pid, ThreadKey, Tid};
    let thread = |tid| ThreadKey { pid: Pid(1), tid: Tid(tid) };
    let mut spent = Spent::new(0);
    let mut cpus = Cpus::default();
    for i in 0..200 {
        cpus.switch(Cpu(0), i * 10, thread(100 + i as i32), &"rustc".into(), 120);
        cpus.wait(thread(7), Cpu(0), i * 10);
        spent.stretch(i * 10, i * 10 + 10, Part::Preempted, None);
        let shares = cpus.leave(thread(7), Cpu(0), i * 10 + 10);
        spent.waited(&shares, &cpus);
    }
    assert_eq!(spent.sums.len(), 1 + MAX_CULPRITS);
    let later = 10 * (200 - MAX_CULPRITS as i64);
    let of_name = |s: &&Sum| s.culprit == Culprit::Threads("rustc".into());
    assert_eq!(spent.sums().find(of_name).map(|s| s.ns), Some(10 + later));
    assert_eq!(spent.sums().map(|s| s.ns).sum::<i64>(), 2000);
}

#[test]
fn places_are_found_in_the_order_of_the_threads_however_far_apart_they_are() {
    let thread = |tid: i32| ThreadKey { pid: Pid(1), tid: Tid(tid) };
    let mut known = Known::default();
    // First every 64th, then with smaller and smaller steps in between.
    for step in [64, 16, 7, 3, 1] {
        let mut cursor = 0;
        for tid in (0..1000).step_by(step) {
            let found = known.find(thread(tid), &mut cursor);
            assert!(found.is_none_or(|at| at == tid as usize), "{tid} at {found:?}");
            if found.is_none() {
                assert!(known.0.iter().all(|(t, _)| *t != thread(tid)), "{tid} is there");
                known.insert(thread(tid), tid as usize, &mut cursor);
            }
        }
    }
    assert!(known.0.len() == 1000 && known.0.is_sorted());
    // Beyond the bound it begins anew.
    let mut cursor = known.0.len();
    for tid in 1000..1001 + KNOWN as i32 {
        assert_eq!(known.find(thread(tid), &mut cursor), None);
        known.insert(thread(tid), tid as usize, &mut cursor);
    }
    assert_eq!(known.0.len(), 1001);
    assert_eq!(known.find(thread(999), &mut 0), None);
}
