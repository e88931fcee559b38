//! Known chains of who waits for a lock, and of its preempted holder, in the tables of waits and of preemptions.

use ft_report::code::Code;
use ft_trace::store::Trace;
use ft_trace::tables::{LockPreemption, LockWait, PreemptionCause, SchedSwitch};

use crate::stage::{Stage, build_preload, functions, way};

/// Times off the CPU that are at least so long have a chain (`--stack-min`), ns.
const LONG_NS: i64 = 500_000;

/// Where the holder can be while it has the lock, the innermost first.
const HOLDS: [&str; 5] = ["hold_four", "hold_three", "hold_two", "hold_one", "hold_it"];

/// When a thread was off the CPU: since when, until when, and whether it could have run.
fn off_the_cpu(trace: &Trace, tid: i32) -> Vec<(i64, i64, bool)> {
    let (mut times, mut left) = (Vec::new(), None);
    for switch in trace.rows::<SchedSwitch>().map(|row| row.expect("a row")) {
        if switch.prev_tid.0 == tid {
            left = Some((switch.ts.0, switch.prev_state.is_runnable()));
        }
        if switch.next_tid.0 == tid
            && let Some((since, runnable)) = left.take()
        {
            times.push((since, switch.ts.0, runnable));
        }
    }
    times
}

#[test]
fn waits_and_preemptions_have_the_chains_of_the_program() {
    let Some(stage) = Stage::enter() else { return };
    build_preload();
    let truth =
        stage.record("locks", &["--preload", "-k", "default,stack", "--stack-min", "500us"]);
    let trace = Trace::open(&stage.trace()).expect("a trace");
    assert!(trace.meta().lost.is_empty(), "{:?}", trace.meta().lost);
    let bound = trace.meta().clock.bound_ns;
    let code = Code::read(&trace).expect("tables");
    let tid = |name: &str| truth[name].as_i64().expect("a number") as i32;

    // The library that traces has no frame pointers, nor has libc: they can hide their caller, which is none of the four.
    let sleeps = off_the_cpu(&trace, tid("waiter"));
    let slept = |row: &LockWait| {
        let (from, to) = (row.ts.0 + bound, row.ts.0 + row.dur - bound);
        let within = sleeps.iter().filter(|(since, until, _)| from <= *since && *until <= to);
        within.filter(|(.., runnable)| !runnable).any(|(since, until, _)| until - since >= LONG_NS)
    };
    let waits = trace.rows::<LockWait>().map(|row| row.expect("a row"));
    let waits = waits.filter(|row| row.tid.0 == tid("waiter") && &*row.lock_name == "lock");
    let chains: Vec<_> = waits.filter(slept).map(|row| functions(&code, row.stack)).collect();
    assert!(chains.len() >= 10, "{} waits", chains.len());
    for chain in &chains {
        assert!(chain.windows(4).any(|four| four == way("want")), "{chain:?} of {chains:?}");
    }

    let rows = trace.rows::<LockPreemption>().map(|row| row.expect("a row"));
    let mine = rows.filter(|row| row.tid.0 == tid("holder") && &*row.lock_name == "lock");
    let taken = mine.filter(|row| row.cause == PreemptionCause::Preempted && row.dur >= LONG_NS);
    let mut known = 0;
    for row in taken {
        let chain = functions(&code, row.stack);
        let innermost = chain.first().unwrap_or_else(|| panic!("no chain of {row:?}"));
        match HOLDS.iter().position(|function| function == innermost) {
            Some(at) => assert!(
                chain.iter().zip(&HOLDS[at..]).filter(|(is, function)| is == function).count()
                    == HOLDS.len() - at,
                "{chain:?}"
            ),
            None => assert!(!is_of_program(&code, row.stack), "{chain:?}"),
        }
        known += usize::from(innermost == HOLDS[0]);
    }
    assert!(known >= 5, "{known} preemptions in the innermost function");

    // The reports say so, in as many functions as tell callers apart.
    let waits = stage.report("waits");
    let longest = waits["longest"].as_array().expect("waits");
    let called = |row: &serde_json::Value| row["called"].to_string().contains("want_one");
    assert!(longest.iter().any(called), "{waits}");
    let preempted = stage.report("preempted");
    let called = |row: &serde_json::Value| row["called"][0] == "hold_four";
    assert!(preempted["longest"].as_array().expect("rows").iter().any(called), "{preempted}");
    stage.keep("locks");
}

/// Whether the innermost function of user space is the program's, and not a library's.
fn is_of_program(code: &Code, stack: Option<i64>) -> bool {
    let innermost = code.chain(stack).into_iter().find(|frame| !frame.kernel);
    innermost.is_none_or(|frame| !frame.object.contains(".so"))
}
