//! Known chains of who waits for a lock, and of its preempted holder, in the tables of waits and of preemptions.

use ft_report::code::Code;
use ft_trace::store::Trace;
use ft_trace::tables::{LockPreemption, LockWait, PreemptionCause};

use crate::stage::{Stage, build_preload, functions, way};

/// Times that are off the CPU for so long, ns, have a chain.
const LONG_NS: i64 = 1_000_000;

#[test]
fn waits_and_preemptions_have_the_chains_of_the_program() {
    let Some(stage) = Stage::enter() else { return };
    build_preload();
    let truth =
        stage.record("locks", &["--preload", "-k", "default,stack", "--stack-min", "500us"]);
    let trace = Trace::open(&stage.trace()).expect("a trace");
    let code = Code::read(&trace).expect("tables");
    let tid = |name: &str| truth[name].as_i64().expect("a number") as i32;

    // The library that traces has no frame pointers, nor has libc: they can hide their caller, which is none of the four.
    let waits = trace.rows::<LockWait>().map(|row| row.expect("a row"));
    let waits = waits.filter(|row| row.tid.0 == tid("waiter") && &*row.lock_name == "lock");
    let long: Vec<LockWait> = waits.filter(|row| row.dur > 4 * LONG_NS).collect();
    let chains: Vec<_> = long.iter().map(|row| functions(&code, row.stack)).collect();
    assert!(chains.len() >= 10, "{} waits", chains.len());
    let known = |chain: &&Vec<String>| chain.windows(4).any(|four| four == way("want"));
    let known = chains.iter().filter(known).count();
    // A wait is made of sleeps, of which the longest can be shorter than it.
    assert!(known * 10 >= chains.len() * 8, "{known} of {chains:?}");

    let rows = trace.rows::<LockPreemption>().map(|row| row.expect("a row"));
    let mine = rows.filter(|row| row.tid.0 == tid("holder") && &*row.lock_name == "lock");
    let taken = mine.filter(|row| row.cause == PreemptionCause::Preempted && row.dur > LONG_NS);
    let chains: Vec<_> = taken.map(|row| functions(&code, row.stack)).collect();
    assert!(chains.len() >= 5, "{} preemptions", chains.len());
    let held = chains.iter().filter(|chain| chain.starts_with(&way("hold"))).count();
    assert!(held * 10 >= chains.len() * 8, "{held} of {chains:?}");

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
