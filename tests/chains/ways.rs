//! Four known functions in each kind of chain.

use ft_report::code::Code;
use ft_trace::store::Trace;
use ft_trace::tables::{
    CallChain, ChainKind, DispatchLatency, LossOrigin, LossRow, SymbolKind, SymbolRow,
};
use serde_json::Value;

use crate::stage::{LEAST, Stage, functions, number, succeed, way};

/// The functions of user space in a chain, the innermost first, as far as they are one of the four.
fn four(code: &Code, chain: &CallChain) -> Vec<String> {
    functions(code, chain.stack).into_iter().take(4).collect()
}

#[test]
fn chains_are_those_of_the_program_at_each_kind() {
    let Some(stage) = Stage::enter() else { return };
    let truth = stage.record("ways", &["-k", "sched,irq,task,stack", "--stack-min", "500us"]);
    let trace = Trace::open(&stage.trace()).expect("a trace");
    let code = Code::read(&trace).expect("tables");
    let rows = trace.rows::<CallChain>().map(|row| row.expect("a row"));
    let rows: Vec<CallChain> = rows.filter(|row| row.pid.0 == number(&truth, "sleeper")).collect();
    let of = |kind, tid| rows.iter().filter(move |row| row.kind == kind && row.tid.0 == tid);
    let rounds = truth["rounds"].as_u64().expect("a number") as usize;

    // Each sleep and wait is one time off the CPU, unless its thread was woken for nothing.
    for (thread, name, call) in
        [("sleeper", "sleep", "__x64_sys_nanosleep"), ("waiter", "wait", "__x64_sys_futex")]
    {
        let chains: Vec<_> = of(ChainKind::Wait, number(&truth, thread))
            .filter(|row| code.chain(row.stack).iter().any(|frame| &*frame.label == call))
            .filter(|row| four(&code, row) == way(name))
            .collect();
        assert!((LEAST..=rounds).contains(&chains.len()), "{name}: {}", chains.len());
        // What it was in the kernel for stands before what called it.
        for row in chains {
            let chain = code.chain(row.stack);
            let border = chain.iter().position(|frame| !frame.kernel).expect("user space");
            assert!(chain[..border].iter().any(|frame| &*frame.label == call));
            assert!(chain[border..].iter().all(|frame| !frame.kernel));
            let place = &chain[border].place;
            assert!(place.contains("ways.c:"), "{place}");
        }
    }

    let woken = of(ChainKind::Wake, number(&truth, "waker"))
        .filter(|row| row.woken_tid == Some(number(&truth, "waiter")));
    let woken: Vec<_> = woken.map(|row| four(&code, row)).collect();
    assert!(woken.len() >= LEAST && woken.len() <= rounds, "{} wake-ups", woken.len());
    assert!(woken.iter().all(|four| *four == way("wake")), "{woken:?}");

    // Where it sleeps is a variable, which has a name.
    let symbols = trace.rows::<SymbolRow>().map(|row| row.expect("a row"));
    let mut symbols = symbols.filter(|row| row.pid.0 == number(&truth, "sleeper"));
    assert!(symbols.any(|row| row.kind == SymbolKind::Lock && &*row.symbol == "word"));

    // Wake-ups have them in their own table, too.
    let (waiter, waker) = (number(&truth, "waiter"), number(&truth, "waker"));
    let wakes = trace.rows::<DispatchLatency>().map(|row| row.expect("a row"));
    let wakes = wakes.filter(|row| row.tid.0 == waiter && row.waker_tid.0 == waker);
    let chains: Vec<_> = wakes.map(|row| functions(&code, row.stack)).collect();
    assert!(chains.len() >= LEAST && chains.len() <= rounds, "{} wake-ups", chains.len());
    let known = chains.iter().filter(|chain| chain.starts_with(&way("wake"))).count();
    assert!(known >= LEAST, "{known} of {chains:?}");

    // Two threads that want one CPU take it from each other, some hundred times a second at least on a machine that has
    // nothing else to do; on any machine a few times.
    let spinners: Vec<i32> = truth["spinners"]
        .as_array()
        .expect("two")
        .iter()
        .map(|n| n.as_i64().unwrap() as i32)
        .collect();
    let preempted = spinners.iter().flat_map(|&tid| of(ChainKind::Preempted, tid));
    let spun: Vec<_> = preempted
        .map(|row| four(&code, row))
        .filter(|four| four.first().is_some_and(|first| first == "spin_four"))
        .collect();
    assert!(spun.len() >= 4, "{} of {rows:?}", spun.len());
    assert!(spun.iter().all(|four| *four == way("spin")), "{spun:?}");

    // Where a timer struck them while they spun, they woke nobody. On a busy machine most timers strike others.
    let wakes = rows.iter().filter(|row| row.kind == ChainKind::Wake);
    let wakes: Vec<_> = wakes.map(|row| (row.tid.0, functions(&code, row.stack))).collect();
    // As one ends, the kernel wakes whoever waits for that.
    let struck = wakes.iter().filter(|(tid, _)| spinners.contains(tid));
    let without = struck.clone().filter(|(_, functions)| functions.is_empty());
    assert!(without.count() >= 4, "{wakes:?}");
    let spins = |name: &String| name.starts_with("spin");
    assert!(!struck.clone().any(|(_, functions)| functions.iter().any(spins)), "{wakes:?}");

    told(&stage, &trace);
}

/// The report and the export say the same of them.
fn told(stage: &Stage, trace: &Trace) {
    let values = stage.report("stacks");
    let waits = values["waits"].as_array().expect("waits");
    let functions = |row: &Value, n: usize| row["functions"][n].as_str().unwrap_or("").to_owned();
    let sleep = waits.iter().find(|row| functions(row, 0) == "sleep_four").expect("the sleeps");
    assert_eq!([1, 2, 3].map(|n| functions(sleep, n)), ["sleep_three", "sleep_two", "sleep_one"]);
    assert_eq!(sleep["kernel"], "nanosleep");
    assert_eq!(sleep["waker"], "an interrupt");
    let wait = waits.iter().find(|row| functions(row, 0) == "wait_four").expect("the waits");
    assert!(wait["waker"].as_str().expect("a waker").ends_with(": wake_four"), "{wait}");
    // libc of most distributions has none; the program has.
    let unframed = values["quality"]["unframed"].as_array().expect("a list");
    assert!(unframed.iter().all(|row| !row["object"].as_str().unwrap().ends_with("/ways")));
    let lost = trace.rows::<LossRow>().map(|row| row.expect("a row"));
    let lost: i64 = lost
        .filter(|row| row.origin == LossOrigin::Kernel && row.what.starts_with("chain_"))
        .map(|row| row.count)
        .sum();
    assert_eq!(values["quality"]["lost"].as_i64(), Some(lost));

    let file = stage.trace().with_extension("collapsed");
    succeed(stage.agent("export").arg(stage.trace()).args(["-f", "collapsed", "-o"]).arg(&file));
    let text = std::fs::read_to_string(file).expect("the export");
    let whole = ";sleep_one;sleep_two;sleep_three;sleep_four;";
    assert!(text.lines().any(|l| l.starts_with("ways;waiting;") && l.contains(whole)), "{text}");
    flame_graph(stage);
    // All time of all chains, once.
    let sum: i64 =
        text.lines().map(|l| l.rsplit(' ').next().unwrap().parse::<i64>().unwrap()).sum();
    let rows = trace.rows::<CallChain>().map(|row| row.expect("a row").dur);
    assert_eq!(sum, rows.sum::<i64>());
    crate::pprof::has_all_time(
        stage,
        trace,
        &["sleep_four", "sleep_three", "sleep_two", "sleep_one"],
    );
}

/// The picture has the functions, and is one.
fn flame_graph(stage: &Stage) {
    let file = stage.trace().with_extension("svg");
    succeed(stage.agent("export").arg(stage.trace()).args(["-f", "flamegraph", "-o"]).arg(&file));
    let picture = std::fs::read_to_string(file).expect("the picture");
    assert!(picture.contains("<svg") && picture.trim_end().ends_with("</svg>"));
    for function in ["sleep_four (", "wait_three (", "nanosleep ("] {
        assert!(picture.contains(function), "{function}");
    }
}
