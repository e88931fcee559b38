use super::{All, Called, FindingsReport, Kind, LockSum, Role, rank};
use crate::code::Code;
use ft_analysis::Samples;
use ft_trace::Mark;
use ft_trace::ids::{Name, Nanos, Pid, Tid};
use ft_trace::tables::{Blame, FileKind, Part, PathKind, ThreadTime, Withheld};

/// Thread 7, `worker-0` of process 1, slept for 10 ns, of which nothing more is known.
pub(super) fn row() -> Blame {
    Blame {
        ts: Nanos(100),
        pid: Pid(1),
        tid: Tid(7),
        comm: "worker-0".into(),
        part: Part::Blocked,
        call: None,
        file: None,
        object: None,
        operation: None,
        lock: false,
        join: false,
        turns: false,
        holder_tid: None,
        stack: None,
        waker_tid: None,
        waker_pid: None,
        waker_comm: None,
        waker_stack: None,
        asked: false,
        again: false,
        depth: 0,
        through_comm: None,
        through_call: None,
        through_needs: false,
        through_stack: None,
        behind_tid: None,
        behind_pid: None,
        behind_comm: None,
        kind: PathKind::Unknown,
        culprit: None,
        culprit_tid: None,
        recording: false,
        withheld: None,
        behind_call: None,
        behind_file: None,
        behind_stack: None,
        sampled: false,
        ns: 10,
        pieces: 1,
        waits: 1,
        vain: 0,
        longest_ns: 10,
        longest_ts: Nanos(100),
        mark: Mark::Exact,
    }
}

/// A thread of this name lived for 1 s, and ran for a half of it.
pub(super) fn time(pid: i32, tid: i32, comm: &str) -> ThreadTime {
    ThreadTime {
        ts: Nanos(0),
        pid: Pid(pid),
        tid: Tid(tid),
        comm: comm.into(),
        part: Part::Running,
        culprit: None,
        culprit_tid: None,
        spent_ns: 500_000_000,
        stretches: 1,
        agent_ns: None,
        wall_ns: 1_000_000_000,
        mark: Mark::Exact,
    }
}

/// Threads of these names lived for 1 s each.
pub(super) fn report(threads: &[(i32, &str)], rows: &[Blame]) -> FindingsReport {
    report_of(All::default(), threads, rows, &Code::default())
}

/// The same with chains, and with what is known of the threads.
pub(super) fn report_of(
    mut all: All,
    threads: &[(i32, &str)],
    rows: &[Blame],
    code: &Code,
) -> FindingsReport {
    for (tid, comm) in threads {
        all.walls.add(&time(1, *tid, comm));
    }
    rows.iter().for_each(|row| all.add(row, code));
    FindingsReport { has_switches: true, ..all.over(code, 0) }
}

pub(super) fn text(report: FindingsReport) -> String {
    report.section().to_string()
}

pub(super) const MS: i64 = 1_000_000;

/// It waits for the mutex at 0x1000, which the logger holds, that sleeps.
pub(super) fn behind_logger(tid: i32, comm: &str, ms: i64) -> Blame {
    Blame {
        tid: Tid(tid),
        comm: comm.into(),
        call: Some("futex".into()),
        object: Some(0x1000),
        lock: true,
        waker_tid: Some(9),
        waker_comm: Some("logger".into()),
        behind_tid: Some(9),
        behind_pid: Some(1),
        behind_comm: Some("logger".into()),
        depth: 1,
        kind: PathKind::Timer,
        culprit: Some("local_timer".into()),
        behind_call: Some("clock_nanosleep".into()),
        ns: ms * MS,
        longest_ns: ms * MS,
        ..row()
    }
}

#[test]
fn a_lock_that_is_a_variable_has_its_name() {
    let names = [
        ("records", "for the mutex records, held"),
        ("state+0x28", "for the mutex state+0x28, held"),
        ("\u{1b}[2J", "for the mutex "),
    ];
    for (name, expected) in names {
        let mut all = All::default();
        all.locks.insert((1, 0x1000), name.into());
        // Another process has another variable there.
        all.locks.insert((2, 0x1000), "other".into());
        let rows = [behind_logger(7, "worker-0", 300)];
        let report = report_of(all, &[(7, "worker-0")], &rows, &Code::default());
        assert_eq!(report.findings[0].lock.as_deref(), Some(name));
        let text = text(report);
        assert!(text.contains(expected) && !text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn locks_of_several_names_in_one_finding_have_none() {
    let called = |kind, names: &[&str]| {
        let mut lock = Called::default();
        names.iter().for_each(|name| lock.merge(Called::by(kind, &Name::from(*name))));
        lock.name().map(ToString::to_string)
    };
    assert_eq!(called(Kind::Mutex, &["a", "a"]).as_deref(), Some("a"));
    assert_eq!(called(Kind::Mutex, &["a", "b", "a"]), None, "of two programs");
    assert_eq!(called(Kind::Mutex, &["table", "table+0x8"]), None);
    assert_eq!(called(Kind::RwLock, &["table", "table+0x8"]).as_deref(), Some("table"));
    assert_eq!(called(Kind::RwLock, &["table+0x38"]).as_deref(), Some("table+0x38"));
    assert_eq!(called(Kind::Mutex, &[]), None);
}

#[test]
fn threads_of_one_role_that_wait_for_one_lock_are_a_finding() {
    let threads = [(7, "worker-0"), (8, "worker-1"), (9, "logger")];
    let own = Blame {
        tid: Tid(9),
        comm: "logger".into(),
        call: Some("clock_nanosleep".into()),
        kind: PathKind::Timer,
        ns: 400 * MS,
        ..row()
    };
    let rows = [behind_logger(7, "worker-0", 300), behind_logger(8, "worker-1", 100), own];
    let report = report(&threads, &rows);
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].lost_ns, 400 * MS);
    assert_eq!(report.findings[0].id, "worker-/mutex//logger");
    let text = text(report);
    for expected in [
        "1         worker-0…1 lost 400 ms (20.0 % of their time) waiting for a mutex, held by logger\n",
        "          100 % of it behind logger: 100 % asleep in clock_nanosleep until a time\n",
        "          longest 300 ms: worker-0 (thread 7)",
        "idle      logger 400 ms in clock_nanosleep\n",
        "trust     complete\n",
    ] {
        assert!(text.contains(expected), "{expected}{text}");
    }
}

#[test]
fn what_waits_for_work_is_idle_and_what_is_lost_comes_first() {
    let data = |kind, ms: i64| Blame {
        call: Some("read".into()),
        file: Some(FileKind::Pipe),
        depth: 1,
        behind_comm: Some("producer".into()),
        kind,
        ns: ms * MS,
        ..row()
    };
    let threads = [(7, "worker-0")];
    // Its producer sleeps by its own choice: nobody has work.
    let idle = report(&threads, &[data(PathKind::Timer, 500)]);
    assert!(idle.findings.is_empty() && idle.idle[0].ns == 500 * MS, "{idle:?}");
    let given = Blame { waits: 50, ..data(PathKind::Running, 500) };
    let waits = report(&threads, &[given.clone(), behind_logger(7, "worker-0", 100)]);
    let text = text(waits);
    // What comes now and then, as a task of a pool, is no finding, whatever those do meanwhile from whom it comes.
    let seldom = report(&threads, &[Blame { waits: 4, ..given }]);
    assert!(seldom.findings.is_empty() && seldom.idle[0].ns == 500 * MS, "{seldom:?}");
    let first = text.find("lost 100 ms").expect("what is lost");
    let second = text.find("waited 500 ms (50.0 % of its time) for data from a pipe");
    assert!(first < second.expect("what it waited for"), "{text}");
}

/// It waits for the answer of a server, which sleeps.
fn for_an_answer(ms: i64) -> Blame {
    Blame {
        call: Some("read".into()),
        file: Some(FileKind::Pipe),
        waker_tid: Some(9),
        waker_comm: Some("server".into()),
        behind_tid: Some(9),
        behind_comm: Some("server".into()),
        depth: 1,
        kind: PathKind::Timer,
        culprit: Some("local_timer".into()),
        ns: ms * MS,
        ..row()
    }
}

#[test]
fn who_has_asked_one_that_sleeps_has_lost_the_time() {
    let threads = [(7, "worker-0")];
    let asked = Blame { asked: true, ..for_an_answer(500) };
    let text = text(report(&threads, std::slice::from_ref(&asked)));
    assert!(text.contains("worker-0 lost 500 ms (50.0 % of its time) waiting for data"), "{text}");
    // It may wait for several servers at once; without having asked, for whatever comes.
    let poll = |asked| Blame { call: Some("poll".into()), asked, ..for_an_answer(500) };
    assert_eq!(report(&threads, &[poll(true)]).findings[0].lost_ns, 500 * MS);
    assert!(report(&threads, &[poll(false)]).findings.is_empty());
    // Who did nothing itself, and waited for a lock, kept it waiting all the same.
    let through = Blame {
        depth: 2,
        through_comm: Some("server".into()),
        through_call: Some("futex".into()),
        through_needs: true,
        behind_comm: Some("cleaner".into()),
        ..for_an_answer(500)
    };
    let found = report(&threads, &[through]);
    assert_eq!(found.findings[0].behind[0].through, ["server"]);
    let text = self::text(found);
    assert!(text.contains("behind cleaner, for whom server waited: "), "{text}");
}

#[test]
fn a_semaphore_is_kept_from_those_who_take_it_in_turns() {
    let threads = [(7, "worker-0")];
    let of = |turns, waker: &str| Blame {
        call: Some("futex".into()),
        file: None,
        turns,
        waker_comm: Some(waker.into()),
        ..for_an_answer(500)
    };
    assert_eq!(report(&threads, &[of(true, "other")]).findings[0].class, super::Class::Lost);
    assert!(report(&threads, &[of(false, "other")]).findings.is_empty());
}

/// As of PostgreSQL, each of whose sessions is a process of the same name.
#[test]
fn processes_of_one_name_have_their_numbers() {
    let mut all = All::default();
    [20, 30, 40].into_iter().for_each(|pid| all.walls.add(&time(pid, pid, "postgres")));
    let row = Blame {
        pid: Pid(20),
        waker_pid: Some(30),
        waker_tid: Some(30),
        waker_comm: Some("postgres".into()),
        behind_pid: Some(30),
        behind_tid: Some(30),
        behind_comm: Some("postgres".into()),
        ..behind_logger(20, "postgres", 300)
    };
    // It was behind another one for a moment.
    let moment = Blame {
        waker_pid: Some(40),
        waker_tid: Some(40),
        behind_pid: Some(40),
        behind_tid: Some(40),
        waits: 0,
        ns: 3 * MS,
        ..row.clone()
    };
    [&row, &moment].into_iter().for_each(|row| all.add(row, &Code::default()));
    let report = FindingsReport { has_switches: true, ..all.over(&Code::default(), 0) };
    let [finding] = &report.findings[..] else { panic!("{report:?}") };
    assert_eq!((&finding.who.pids, &finding.behind[0].who.pids), (&[20].into(), &[30].into()));
    assert_eq!(finding.wakers, ["postgres (2 processes)"]);
    let text = text(report);
    for expected in [
        "postgres (pid 20) lost 303 ms (30.3 % of its time) waiting for a mutex, held by postgres (pid 30)",
        "100 % of it behind postgres (pid 30): 100 % asleep in clock_nanosleep until a time",
        "longest 300 ms: postgres (pid 20) at",
    ] {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_chain_names_the_holder_and_who_is_behind() {
    let chain = Blame {
        waker_comm: Some("middle".into()),
        depth: 2,
        through_comm: Some("middle".into()),
        ..behind_logger(7, "worker-0", 400)
    };
    let text = text(report(&[(7, "worker-0")], &[chain]));
    assert!(text.contains("waiting for a mutex, held by middle\n"), "{text}");
    assert!(
        text.contains("100 % of it behind logger, for whom middle waited: 100 % asleep"),
        "{text}"
    );
}

#[test]
fn waits_that_are_begun_again_are_behind_the_holder() {
    let again = Blame {
        waker_comm: None,
        behind_comm: None,
        behind_call: None,
        depth: 0,
        ..behind_logger(7, "worker-0", 300)
    };
    let text = text(report(&[(7, "worker-0")], &[behind_logger(7, "worker-0", 100), again]));
    assert!(text.contains("lost 400 ms"), "{text}");
    let expected = "100 % of it behind logger: 75.0 % holding it past a time-out of the waiter";
    assert!(text.contains(expected), "{text}");
}

/// PostgreSQL looks for a deadlock after a second, and goes on to wait.
#[test]
fn a_wait_that_a_timer_of_the_waiter_cuts_is_one_finding() {
    let last = behind_logger(7, "worker-0", 200);
    let cut = Blame { again: true, waits: 0, ns: 300 * MS, ..last.clone() };
    let found = report(&[(7, "worker-0")], &[last.clone(), cut.clone()]);
    let waits: Vec<_> = found.findings.iter().map(|f| (f.lost_ns, f.waits)).collect();
    assert_eq!(waits, [(500 * MS, 1)]);
    let text = text(found);
    let expected = "100 % of it behind logger: 100 % asleep in clock_nanosleep until a time\n";
    assert!(text.contains(expected), "{text}");
    // One that looks after a time whether there is work was not kept from any, whatever the one did who has brought some.
    let call = |row: Blame| Blame { lock: false, call: Some("futex".into()), waits: 50, ..row };
    let rows = [call(last), call(cut)].map(|row| Blame { kind: PathKind::Running, ..row });
    let given = report(&[(7, "worker-0")], &rows);
    assert_eq!((given.findings[0].lost_ns, given.idle[0].ns), (200 * MS, 300 * MS));
}

#[test]
fn a_herd_is_a_finding_although_it_is_idle() {
    let woken = |vain| Blame {
        call: Some("futex".into()),
        file: None,
        waits: 400,
        vain,
        ..for_an_answer(500)
    };
    let threads = [(7, "worker-0")];
    let said = text(report(&threads, &[woken(300)]));
    let expected =
        "worker-0 was woken for nothing 300 of 400 times (thundering herd): server wakes all, for";
    assert!(said.contains(expected), "{said}");
    assert!(report(&threads, &[woken(100)]).findings.is_empty());
}

#[test]
fn a_disk_serves_others_meanwhile() {
    let syncs = |tid, comm: &str, ms: i64| Blame {
        tid: Tid(tid),
        comm: comm.into(),
        call: Some("fsync".into()),
        kind: PathKind::Device,
        culprit: Some("BLOCK".into()),
        ns: ms * MS,
        ..row()
    };
    let threads = [(7, "worker-0"), (9, "dumper")];
    let said = text(report(&threads, &[syncs(7, "worker-0", 500), syncs(9, "dumper", 400)]));
    assert!(said.contains("meanwhile the disk also served dumper"), "{said}");
    let said = text(report(&threads, &[syncs(7, "worker-0", 500), syncs(9, "dumper", 50)]));
    assert!(!said.contains("served dumper"), "{said}");
}

#[test]
fn where_one_was_is_said_before_what_did_the_little_that_it_did_besides() {
    let functions = [
        "sleep_until_the_time_has_come_that_is_asked_for",
        "use_the_connection_that_one_has_of_the_pool",
        "serve_who_calls",
    ];
    let code = Code::of(&[(1, &functions.join(" "))]);
    let wait = |kind, culprit: &str, ms| Blame {
        behind_stack: Some(1),
        kind,
        culprit: Some(culprit.into()),
        ..behind_logger(7, "worker-0", ms)
    };
    let of = |little_ms| {
        let preempted = |culprit, ms| wait(PathKind::Preempted, culprit, ms);
        let rows = [
            wait(PathKind::Timer, "local_timer", 500),
            preempted("another_program", little_ms),
            preempted("one_more_program", little_ms),
        ];
        let threads = [(7, "worker-0"), (9, "logger")];
        let said = text(report_of(All::default(), &threads, &rows, &code));
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = of(50);
    let place = format!("until a time, in {}, 16.7 % without a CPU", functions.join(" < "));
    assert!(said.contains(&place), "{said}");
    // What is no little is told in any case.
    assert!(of(100).contains("% without a CPU, behind another_program"), "{}", of(100));
}

#[test]
fn where_one_ran_samples_say_before_where_it_lost_its_cpu() {
    let code = Code::of(&[(1, "ship shipper"), (2, "shipper main"), (3, "write shipper")]);
    let wait = |kind, stack, sampled, pieces| Blame {
        kind,
        behind_call: None,
        behind_stack: Some(stack),
        sampled,
        pieces,
        ..behind_logger(7, "worker-0", 100)
    };
    let at = |samples| {
        let rows = [
            wait(PathKind::Running, 1, true, samples),
            wait(PathKind::Preempted, 2, false, 50),
            wait(PathKind::Running, 3, false, 90),
        ];
        let report = report_of(All::default(), &[(7, "worker-0")], &rows, &code);
        report.findings[0].behind[0].at.join(" ")
    };
    assert_eq!(at(5), "ship shipper");
    assert_eq!(at(4), "shipper main", "too few samples");
}

#[test]
fn calls_in_which_threads_of_one_name_had_nothing_to_do_are_told() {
    let sleeps = |call: &str, ms: i64| Blame {
        call: Some(call.into()),
        kind: PathKind::Timer,
        culprit: Some("local_timer".into()),
        ns: ms * MS,
        ..row()
    };
    // Somebody gives it something now and then.
    let given = Blame {
        depth: 1,
        behind_comm: Some("worker-1".into()),
        ..Blame { kind: PathKind::Running, ..sleeps("futex", 300) }
    };
    let said = |rows: &[Blame]| text(report(&[(7, "worker-0")], rows));
    let both = said(&[sleeps("clock_nanosleep", 310), given.clone()]);
    assert!(both.contains("idle      worker-0 610 ms in clock_nanosleep and futex\n"), "{both}");
    let most = said(&[sleeps("clock_nanosleep", 50), given]);
    assert!(most.contains("idle      worker-0 350 ms in futex\n"), "{most}");
}

#[test]
fn a_screen_has_24_lines_of_100_columns() {
    let long = "a_name_that_is_long_".repeat(2);
    let rows: Vec<Blame> = (0..9)
        .map(|i| Blame {
            object: Some(0x1000 * i),
            behind_call: Some((&*long).into()),
            culprit: Some((&*long).into()),
            ..behind_logger(7, "worker-0", 100)
        })
        .collect();
    let said = text(report(&[(7, "worker-0")], &rows));
    assert!(said.lines().count() <= 24, "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
}

#[test]
fn functions_are_named_without_their_parameters() {
    for (label, expected) in [
        ("std::deque<std::promise<int> >::push_back(std::promise<int>&&)", "std::deque::push_back"),
        ("<a::B as c::D>::run", "<a::B as c::D>::run"),
        ("p::main::{{closure}}::{{closure}}", "p::main::{{closure}}"),
        ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
    ] {
        assert_eq!(super::places::short(label), expected);
    }
}

#[test]
fn what_is_little_is_no_finding() {
    let report = report(&[(7, "worker-0")], &[behind_logger(7, "worker-0", 5)]);
    assert!(report.findings.is_empty());
    assert!(text(report).contains("no thread lost more than a two-hundredth of its time"));
}

#[test]
fn without_the_kernel_nothing_is_known() {
    let nothing = || report(&[], &[]);
    let without = FindingsReport { has_switches: false, ..nothing() };
    assert!(text(without).contains("the kernel was not recorded"));
    assert!(text(nothing()).contains("no recorded thread ran"));
}

#[test]
fn what_is_withheld_says_by_what() {
    let threads = [(7, "rt-loop"), (8, "spin"), (9, "dl")];
    let preempted = |tid, comm: &str| Blame {
        tid: Tid(tid),
        comm: comm.into(),
        part: Part::Preempted,
        kind: PathKind::Preempted,
        ns: 100 * MS,
        longest_ns: 54 * MS,
        ..row()
    };
    let rows = [
        Blame {
            withheld: Some(Withheld::Share),
            culprit: Some("fair-batch".into()),
            culprit_tid: Some(11),
            ..preempted(7, "rt-loop")
        },
        Blame {
            withheld: Some(Withheld::Quota),
            culprit: Some("cgroup web, 20 ms of each 100 ms".into()),
            ns: 800 * MS,
            ..preempted(8, "spin")
        },
        Blame { withheld: Some(Withheld::Budget), culprit_tid: Some(0), ..preempted(9, "dl") },
        // Until its next period it has nothing to do.
        Blame {
            withheld: Some(Withheld::Period),
            call: Some("sched_yield".into()),
            culprit_tid: Some(0),
            ns: 700 * MS,
            ..preempted(9, "dl")
        },
        Blame {
            part: Part::Blocked,
            kind: PathKind::Timer,
            withheld: Some(Withheld::Late),
            call: Some("clock_nanosleep".into()),
            culprit: Some("local_timer".into()),
            longest_ns: 15 * MS,
            ns: 30 * MS,
            ..preempted(7, "rt-loop")
        },
    ];
    let text = text(report(&threads, &rows));
    for expected in [
        "spin lost 800 ms (80.0 % of its time) throttled by the CPU quota of cgroup web, 20 ms",
        "dl lost 100 ms (10.0 % of its time) throttled by its budget of SCHED_DEADLINE",
        "rt-loop lost 100 ms (10.0 % of its time) throttled as real-time threads had used up",
        "100 % of it while fair-batch ran\n",
        "rt-loop lost 30.0 ms (3.0 % of its time) woken late by its timer\n",
        "longest 15.0 ms: rt-loop (thread 7)",
        "idle      dl 700 ms in sched_yield\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn interrupts_that_struck_who_had_the_cpu_are_behind_a_wait_for_it() {
    let wait = |kind, culprit: &str, ms: i64| Blame {
        part: Part::Dispatch,
        call: Some("clock_nanosleep".into()),
        kind,
        culprit: Some(culprit.into()),
        ns: ms * MS,
        longest_ns: 2 * MS,
        ..row()
    };
    let rows = [
        wait(PathKind::Interrupt, "NET_RX", 60),
        Blame { culprit_tid: Some(55), ..wait(PathKind::Dispatch, "kdamond", 10) },
    ];
    let text = text(report(&[(7, "worker-0")], &rows));
    for expected in [
        "lost 70.0 ms (7.0 % of its time) waiting for a CPU\n",
        "85.7 % behind interrupts (NET_RX), 14.3 % behind kdamond\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn what_is_not_complete_says_what_is_missing() {
    let trust = |change: fn(&mut FindingsReport)| {
        let mut report = report(&[(7, "a")], &[]);
        change(&mut report);
        let text = text(report);
        let line =
            text.split_once("trust").expect("a line").1.split("more ").next().expect("its text");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(trust(|_| ()), "complete");
    assert_eq!(
        trust(|r| r.head.samples = Samples { missing: 45, expected: 136 }),
        "45 of 136 samples are missing"
    );
    assert_eq!(
        trust(|r| {
            r.head.missing_switches = 3;
            r.head.samples = Samples { missing: 1, expected: 200 };
        }),
        "3 switches are missing, perhaps of a process hidden from tracers, and 1 of 200 samples are missing"
    );
    assert_eq!(trust(|r| r.head.unreachable = true), "events of what was started are missing");
    assert_eq!(
        trust(|r| r.head.refused = 342),
        "events of 342 processes that could not register are missing"
    );
    assert_eq!(
        trust(|r| {
            r.head.lost_kernel_records = 1;
            r.head.quality.unknown_places = 2;
        }),
        "1 record, and an unknown number of records at 2 places lost"
    );
}

#[test]
fn threads_of_go_that_have_no_goroutine_to_run_are_idle_and_a_note_says_what_is_not_seen() {
    let frames = "runtime.futex runtime.futexsleep runtime.notesleep runtime.stopm";
    let code = Code::of(&[(1, frames)]);
    let row = Blame {
        comm: "server".into(),
        call: Some("futex".into()),
        stack: Some(1),
        depth: 1,
        waits: 1000,
        ns: 900 * MS,
        behind_comm: Some("server".into()),
        ..row()
    };
    let mut all = All::default();
    all.add(&row, &code);
    let report = all.over(&code, 0);
    assert!(report.findings.is_empty() && report.goroutines);
    assert_eq!(report.idle[0].ns, 900 * MS);
    assert!(text(report).contains("note      goroutines are not threads"));
}

#[test]
fn what_slept_when_the_recording_began_is_in_no_page_fault() {
    let first = Blame { kind: PathKind::Timer, ns: 200 * MS, ..row() };
    let found = |row: &Blame| {
        let all = All { faults: Some([(7, 100)].into()), ..All::default() };
        report_of(all, &[(7, "worker-0")], std::slice::from_ref(row), &Code::default())
    };
    assert_eq!(found(&first).findings[0].kind, Kind::Fault);
    let before = Blame { ts: Nanos(99), ..first };
    let report = found(&before);
    assert!(report.findings.is_empty() && report.idle[0].ns == 200 * MS, "{report:?}");
}

#[test]
fn who_waits_by_our_library_waits_in_the_code_that_called_it() {
    let code =
        Code::of(&[(1, "ft_user::sync::mutex::Mutex::lock_slow ledger::serve ledger::main")]);
    let wait = Blame { stack: Some(1), ..behind_logger(7, "worker-0", 300) };
    let report = report_of(All::default(), &[(7, "worker-0")], &[wait], &code);
    assert_eq!(report.findings[0].at, ["ledger::serve", "ledger::main"]);
}

#[test]
fn where_one_ran_is_not_said_to_be_where_it_slept() {
    let code = Code::of(&[(1, "commit flush")]);
    let ran = Blame {
        kind: PathKind::Preempted,
        culprit: Some("hog".into()),
        behind_call: None,
        behind_stack: Some(1),
        pieces: 9,
        ..behind_logger(7, "worker-0", 300)
    };
    let rows = [ran, behind_logger(7, "worker-0", 200)];
    let said = text(report_of(All::default(), &[(7, "worker-0")], &rows, &code));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "60.0 % without a CPU, behind hog, in commit < flush, 40.0 % asleep in clock_nanosleep until a time";
    assert!(said.contains(expected), "{said}");
}

/// Words of a text, however it is broken into lines.
fn words(report: FindingsReport) -> String {
    text(report).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_longest_wait_is_no_longer_than_all_that_was_lost() {
    let of = |longest_ns| {
        let row = Blame { longest_ns, ..behind_logger(7, "worker-0", 300) };
        report(&[(7, "worker-0")], &[row]).findings[0].longest.as_ref().map(|longest| longest.ns)
    };
    assert_eq!([of(200 * MS), of(301 * MS)], [Some(200 * MS), None]);
}

#[test]
fn who_is_woken_for_room_in_a_pipe_and_has_no_cpu_waits_for_a_cpu() {
    let full = Blame {
        call: Some("write".into()),
        file: Some(FileKind::Pipe),
        depth: 1,
        ns: 100 * MS,
        behind_comm: Some("gzip".into()),
        ..row()
    };
    let woken = Blame {
        part: Part::Dispatch,
        kind: PathKind::Dispatch,
        depth: 0,
        ns: 200 * MS,
        culprit: Some("gzip".into()),
        culprit_tid: Some(8),
        behind_comm: None,
        ..full.clone()
    };
    let found = |woken: Blame| {
        let report = report(&[(7, "worker-0")], &[full.clone(), woken]);
        report.findings.iter().map(|f| (f.kind, f.lost_ns)).collect::<Vec<_>>()
    };
    assert_eq!(found(woken.clone()), [(Kind::Cpu, 200 * MS), (Kind::Room, 100 * MS)]);
    // Who has made the room has the CPU, too: that is one thing.
    let by_waker = Blame { waker_tid: Some(8), ..woken.clone() };
    assert_eq!(found(by_waker), [(Kind::Room, 300 * MS)]);
    let by_nobody = Blame { culprit_tid: Some(0), ..woken };
    assert_eq!(found(by_nobody), [(Kind::Room, 300 * MS)]);
}

#[test]
fn a_culprit_of_one_name_has_its_number() {
    let preempted = |culprit: &str, tid| Blame {
        kind: PathKind::Preempted,
        culprit: Some(culprit.into()),
        culprit_tid: Some(tid),
        behind_call: None,
        ..behind_logger(7, "worker-0", 300)
    };
    let said = |rows: &[Blame]| words(report(&[(7, "worker-0")], rows));
    let of_one = said(&[preempted("cc1", 8)]);
    assert!(of_one.contains("without a CPU, behind cc1"), "{of_one}");
    let of_two = said(&[preempted("rayon-1", 8), preempted("rayon-4", 9)]);
    assert!(of_two.contains("without a CPU, behind rayon-1…4"), "{of_two}");
}

#[test]
fn shares_of_those_behind_are_shares_of_what_was_lost() {
    let other = Blame { behind_comm: Some("other".into()), ..behind_logger(7, "worker-0", 100) };
    let rows = [behind_logger(7, "worker-0", 300), other];
    let said = words(report(&[(7, "worker-0")], &rows));
    assert!(said.contains("75.0 % of it behind logger: 75.0 % asleep"), "{said}");
}

#[test]
fn what_lived_shortly_comes_behind_what_was_waited_for_longer() {
    let lost = |tid, comm: &str, ms| behind_logger(tid, comm, ms);
    let mut all = All::default();
    all.walls.add(&ThreadTime {
        ts: Nanos(0),
        pid: Pid(1),
        tid: Tid(7),
        comm: "basename".into(),
        part: Part::Running,
        culprit: None,
        culprit_tid: None,
        spent_ns: MS,
        stretches: 1,
        agent_ns: None,
        wall_ns: 10 * MS,
        mark: Mark::Exact,
    });
    let code = Code::default();
    all.add(&lost(7, "basename", 5), &code);
    let report = all.over(&code, 1000 * MS);
    assert_eq!(rank(&report.findings[0], 10 * MS), 0);
    assert_eq!(rank(&report.findings[0], 1000 * MS), 2);
}

#[test]
fn the_command_is_shown_as_it_was_given_but_for_the_folder_of_the_program() {
    let recorded = |command: &[&str]| {
        let mut report = report(&[(7, "a")], &[]);
        report.head.command = command.iter().map(ToString::to_string).collect();
        let text = text(report);
        let line = text.lines().find(|line| line.contains("recorded")).expect("a line");
        line.split_once("recorded").expect("it").1.split(", ").next().expect("it").trim().to_owned()
    };
    assert_eq!(recorded(&["/usr/bin/env", "A=/opt/x", "sleep", "1"]), "env A=/opt/x sleep 1");
    assert_eq!(recorded(&["sh", "-c", "cat /etc/passwd | wc"]), "sh -c cat /etc/passwd | wc");
}

#[test]
fn what_is_missing_names_the_findings_that_it_touches() {
    let trust = |mark| {
        let row = Blame { mark, ..behind_logger(7, "worker-0", 300) };
        let mut report = report(&[(7, "worker-0")], &[row]);
        report.head.missing_switches = 7;
        words(report)
    };
    assert!(trust(Mark::Exact).contains("from tracers; no finding is touched"));
    assert!(trust(Mark::LowerBound).contains("from tracers; lower bounds: 1"));
}

#[test]
fn without_the_kernel_it_is_said_how_long_threads_waited_for_which_lock() {
    let mut report = FindingsReport { has_switches: false, ..report(&[], &[]) };
    let mut who = Role::default();
    (0..3).for_each(|n| who.add(&format!("worker-{n}"), None, Some(n)));
    let (name, kind) = ("book".to_owned(), "mutex".to_owned());
    report.locks =
        vec![LockSum { who, name, kind, waits: 188, ns: 1620 * MS, longest_ns: 20 * MS }];
    let said = words(report);
    let expected =
        "1 worker-0…2 waited 1.62 s for the mutex book, in 188 waits, the longest 20.0 ms";
    assert!(said.contains(expected) && said.contains("the kernel was not recorded"), "{said}");
    assert!(said.contains(", without the kernel 1 worker"), "{said}");
}

#[test]
fn several_are_woken_late_by_their_timers() {
    let late = |tid, comm: &str| Blame {
        tid: Tid(tid),
        comm: comm.into(),
        withheld: Some(Withheld::Late),
        kind: PathKind::Timer,
        call: Some("clock_nanosleep".into()),
        ns: 30 * MS,
        longest_ns: 5 * MS,
        ..row()
    };
    let said = |rows: &[Blame]| {
        let threads: Vec<(i32, &str)> = rows.iter().map(|row| (row.tid.0, &*row.comm)).collect();
        words(report(&threads, rows))
    };
    assert!(said(&[late(7, "loop")]).contains("of its time) woken late by its timer"));
    let both = said(&[late(7, "loop-1"), late(8, "loop-2")]);
    assert!(both.contains("of their time) woken late by their timers"), "{both}");
}
