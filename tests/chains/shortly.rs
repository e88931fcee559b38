//! Of a thread that waits shortly again and again, little is taken each time: the innermost functions.

use ft_report::code::Code;
use ft_trace::store::Trace;
use ft_trace::tables::{CallChain, ChainKind};

use crate::stage::{LEAST, Stage, functions, number};

#[test]
fn of_a_thread_that_waited_shortly_the_innermost_functions_are_known() {
    let Some(stage) = Stage::enter() else { return };
    let truth = stage.record("shortly", &["-k", "default,stack", "--stack-min", "500us"]);
    let trace = Trace::open(&stage.trace()).expect("a trace");
    let code = Code::read(&trace).expect("tables");
    let rows = trace.rows::<CallChain>().map(|row| row.expect("a row"));
    let in_nanosleep = |row: &CallChain| {
        code.chain(row.stack).iter().any(|frame| &*frame.label == "__x64_sys_nanosleep")
    };
    let naps: Vec<(bool, Vec<String>)> = rows
        .filter(|row| row.tid.0 == number(&truth, "sleeper") && row.kind == ChainKind::Wait)
        .filter(in_nanosleep)
        .map(|row| (row.cut, functions(&code, row.stack)))
        .collect();
    let rounds = number(&truth, "rounds") as usize;
    assert!(naps.len() >= 2 * LEAST, "{} naps", naps.len());
    let inner = ["work", "step_eight", "step_seven"];
    assert!(naps.iter().all(|(_, chain)| chain.starts_with(&inner.map(str::to_owned))), "{naps:?}");
    let is_whole = |(cut, chain): &&(bool, Vec<String>)| !cut && chain.contains(&"main".to_owned());
    let whole = naps.iter().filter(is_whole).count();
    // Where others have the CPU meanwhile, no wait is short.
    let cut = naps[..rounds.min(naps.len())].iter().filter(|(cut, _)| *cut).count();
    assert!(cut >= 1, "{naps:?}");
    assert_eq!(whole + naps.iter().filter(|(cut, _)| *cut).count(), naps.len(), "{naps:?}");
    // The first of those that have no other waits between them can come after short ones.
    let last = &naps[naps.len() - LEAST + 1..];
    assert!(last.iter().all(|nap| is_whole(&nap)), "{last:?}");
}
