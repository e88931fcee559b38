use super::*;

/// What happens to the thread, at a time.
enum Do {
    Enter(i64, State),
    Irq(i64, i64, Part),
    LoseState(i64, i64),
    LoseInterrupts(i64, i64),
}
use Do::*;

fn check(timeline: &[Do], from: i64, to: i64, expected: [i64; 8]) {
    let mut account = Account::new(0);
    let mut start = None;
    let mut go = |account: &mut Account, t: i64| {
        if t >= from && start.is_none() {
            start = Some(account.advance(from, &mut ()));
        }
        account.advance(t, &mut ())
    };
    for step in timeline {
        match *step {
            Enter(t, state) => {
                go(&mut account, t);
                account.enter(state, t);
            }
            Irq(t, exit, part) => {
                go(&mut account, t);
                account.interrupted(t, exit, part, "x".into());
            }
            LoseState(t, end) => {
                go(&mut account, t);
                account.lose_state(end);
            }
            LoseInterrupts(t, end) => {
                go(&mut account, t);
                account.lose_interrupts(end);
            }
        }
    }
    let end = go(&mut account, to);
    let d = end - start.expect("`from` lies before the end");
    assert_eq!(d.total_ns(), to - from);
    let parts = [
        d.running_ns,
        d.preempted_ns,
        d.dispatch_ns,
        d.blocked_ns,
        d.hardirq_ns,
        d.softirq_ns,
        d.vector_ns,
        d.unexplained_ns,
    ];
    assert_eq!(
        parts, expected,
        "running, preempted, dispatch, blocked, hard, soft, vector, unexplained"
    );
}

// Legend of the timelines: `?` unknown, `=` running, `r` preempted, `w` woken, `b` blocked,
// `h` hardirq, `s` softirq, `v` vector, `[` and `]` the interval that is decomposed.

#[test]
fn states_are_told_apart() {
    // 0    10    20    30    40   50
    //  ????|=====|rrrrr|=====|bbbb|ww
    //   [                           ]
    let t = [
        Enter(10, State::Running),
        Enter(20, State::Preempted),
        Enter(30, State::Running),
        Enter(40, State::Blocked),
        Enter(50, State::Woken),
    ];
    check(&t, 5, 53, [20, 10, 3, 10, 0, 0, 0, 5]);
}

#[test]
fn nested_interrupts_go_to_the_innermost() {
    // 0   10   15   17  18   20   30
    //  ===|ssss|hhhh|vvv|hhhh|ssss|===
    let t = [
        Enter(0, State::Running),
        Irq(10, 30, Part::Softirq),
        Irq(15, 20, Part::Hardirq),
        Irq(17, 18, Part::Vector),
    ];
    check(&t, 0, 40, [20, 0, 0, 0, 4, 15, 1, 0]);
}

#[test]
fn an_interval_may_begin_and_end_inside_interrupts() {
    // 0   10      20     30     40
    //  ===|sss[sss|======|hhh]hhh|
    let t = [Enter(0, State::Running), Irq(10, 20, Part::Softirq), Irq(30, 40, Part::Hardirq)];
    check(&t, 15, 35, [10, 0, 0, 0, 5, 5, 0, 0]);
}

#[test]
fn of_two_with_one_entry_the_shorter_is_inside() {
    let inner_last =
        [Enter(0, State::Running), Irq(5, 15, Part::Softirq), Irq(5, 8, Part::Hardirq)];
    check(&inner_last, 0, 20, [10, 0, 0, 0, 3, 7, 0, 0]);
    let inner_first =
        [Enter(0, State::Running), Irq(5, 8, Part::Hardirq), Irq(5, 15, Part::Softirq)];
    check(&inner_first, 0, 20, [10, 0, 0, 0, 3, 7, 0, 0]);
}

#[test]
fn an_interrupt_ends_where_the_thread_leaves_the_cpu() {
    // Damaged or missing exit: the row says 10..50, the switch says that the thread left at 20.
    let t = [
        Enter(0, State::Running),
        Irq(10, 50, Part::Hardirq),
        Enter(20, State::Preempted),
        Enter(30, State::Running),
    ];
    check(&t, 0, 60, [40, 10, 0, 0, 10, 0, 0, 0]);
}

#[test]
fn more_interrupts_than_can_nest_are_refused() {
    let mut account = Account::new(0);
    account.enter(State::Running, 0);
    let mut strike = |entry, exit| {
        account.advance(entry, &mut ());
        account.interrupted(entry, exit, Part::Hardirq, "x".into())
    };
    let most = MAX_NESTED as i64;
    assert!((0..most).all(|t| strike(t, 1000 - t)));
    assert!(!strike(most, 1000 - most));
    assert!(strike(1000, 1010), "those that have ended make room");
    assert_eq!(account.advance(1020, &mut ()).hardirq_ns, 1010);
}

#[test]
fn an_interrupt_shows_that_an_unknown_thread_runs() {
    check(&[Irq(10, 12, Part::Vector)], 0, 20, [8, 0, 0, 0, 0, 0, 2, 10]);
}

#[test]
fn a_loss_of_scheduler_records_lasts_until_a_record_after_it() {
    // 0    10          20      30   40
    //  ====|..lost.....|???????|====|
    //           ^ 15: in again, but the records that follow may be lost
    let t = [
        Enter(0, State::Running),
        LoseState(10, 20),
        Enter(15, State::Running),
        Enter(30, State::Running),
    ];
    check(&t, 0, 40, [20, 0, 0, 0, 0, 0, 0, 20]);
}

#[test]
fn a_loss_of_interrupt_records_keeps_the_state() {
    let t = [Enter(0, State::Running), LoseInterrupts(10, 20), Irq(12, 14, Part::Hardirq)];
    check(&t, 0, 40, [30, 0, 0, 0, 0, 0, 0, 10]);
}
