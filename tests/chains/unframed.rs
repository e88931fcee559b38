//! Known chains of functions without frame pointers, through the C library, which has none, to the first function of the thread.

use ft_report::code::Code;
use ft_trace::store::Trace;
use ft_trace::tables::{CallChain, ChainKind};
use serde_json::Value;

use crate::gate;
use crate::stage::{Stage, number, succeed, truth};

/// How each thread of the program blocks, as the kernel's function is called at the end of its name, and in which function the thread has
/// begun.
const WAYS: [(&str, &str, &str); 6] = [
    ("sleep", "__x64_sys_clock_nanosleep", "main"),
    ("read", "pipe_read", "read_begins"),
    ("wait", "__x64_sys_futex", "wait_begins"),
    ("poll", "__x64_sys_poll", "poll_begins"),
    ("futex", "__x64_sys_futex", "futex_begins"),
    ("signal", "__x64_sys_clock_nanosleep", "signal_begins"),
];

const STEPS: [&str; 8] = ["eight", "seven", "six", "five", "four", "three", "two", "one"];

/// Of a hundred waits, those that have a chain at least: on a busy machine many need not wait, as what they wait for is there when they
/// come, and a virtual machine can hide switches.
const LEAST: usize = 25;

/// Of a hundred chains, those that are whole at least.
const WHOLE: usize = 99;

/// Records a program that was built so; what it says of itself.
fn record(stage: &Stage, compiler: &str, source: &str, flags: &[&str]) -> Option<Value> {
    let binary = stage.compile_by(compiler, source, flags)?;
    let mut agent = stage.agent("record");
    agent.args(["-k", "default,stack", "-o"]).arg(stage.trace()).arg("--").arg(&binary);
    Some(truth(&succeed(&mut agent)))
}

/// The functions of user space of the waits of a thread in a call of the kernel, the innermost first; of those that are cut, nothing.
fn waits(trace: &Trace, code: &Code, tid: i32, call: &str) -> Vec<Vec<String>> {
    let rows = trace.rows::<CallChain>().map(|row| row.expect("a row"));
    let rows = rows.filter(|row| row.tid.0 == tid && row.kind == ChainKind::Wait);
    let chains = rows.map(|row| (code.chain(row.stack), row.cut));
    let in_call = chains.filter(|(chain, _)| chain.iter().any(|frame| frame.label.ends_with(call)));
    let names = in_call.map(|(chain, cut)| {
        let user = chain.into_iter().filter(|frame| !frame.kernel && !cut);
        user.map(|frame| frame.label.to_string()).collect()
    });
    names.collect()
}

/// Records the program and looks for all eight functions of each of its threads, and for what has called them.
fn check(flags: &[&str]) {
    let Some(stage) = Stage::enter() else { return };
    let Some(truth) = record(&stage, "cc", "unframed.c", flags) else { return };
    let trace = Trace::open(&stage.trace()).expect("a trace");
    let code = Code::read(&trace).expect("tables");
    let rounds = number(&truth, "rounds") as usize;
    for (way, call, first) in WAYS {
        let chains = waits(&trace, &code, number(&truth, way), call);
        assert!(chains.len() * 100 >= rounds * LEAST, "{way} {flags:?}: {} waits", chains.len());
        let steps = STEPS.map(|step| format!("{way}_{step}"));
        let is_whole = |chain: &&Vec<String>| {
            let inner = chain.windows(STEPS.len()).position(|functions| functions == steps);
            let outer = chain.iter().position(|function| function == first);
            // Whoever has called the first one is the C library's.
            inner.zip(outer).is_some_and(|(inner, outer)| inner < outer && outer + 1 < chain.len())
        };
        let whole = chains.iter().filter(is_whole).count();
        let part = chains.iter().find(|chain| !is_whole(chain));
        println!("{way} {flags:?}: {whole} of {} chains are whole", chains.len());
        assert!(
            whole * 100 >= chains.len() * WHOLE,
            "{way} {flags:?}: {whole} of {}, not {part:?}",
            chains.len()
        );
    }
}

#[test]
fn chains_without_frame_pointers_are_whole() {
    check(&["-O2", "-fomit-frame-pointer"]);
}

#[test]
fn chains_without_frame_pointers_in_a_static_program_are_whole() {
    check(&["-O2", "-fomit-frame-pointer", "-static"]);
    check(&["-O2", "-fomit-frame-pointer", "-static-pie"]);
}

#[test]
fn chains_whose_rules_only_a_debugger_has_are_whole() {
    // `.debug_frame` in place of `.eh_frame`.
    check(&["-O2", "-g", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"]);
}

#[test]
fn who_waits_for_a_condition_in_cpp_was_called_by_a_lambda() {
    let Some(stage) = Stage::enter() else { return };
    let Some(truth) = record(&stage, "c++", "lambda.cpp", &["-O2"]) else {
        return gate::skipped("no compiler for C++");
    };
    let trace = Trace::open(&stage.trace()).expect("a trace");
    let code = Code::read(&trace).expect("tables");
    let chains = waits(&trace, &code, number(&truth, "waiter"), "__x64_sys_futex");
    let rounds = number(&truth, "rounds") as usize;
    assert!(chains.len() * 100 >= rounds * LEAST, "{} waits", chains.len());
    let is_whole = |chain: &&Vec<String>| {
        let place = |name| chain.iter().position(|function| function.contains(name));
        let places = ["wait_for_reply", "handle", "lambda"].map(place);
        places.is_sorted() && places[0].is_some()
    };
    let whole = chains.iter().filter(is_whole).count();
    let part = chains.iter().find(|chain| !is_whole(chain));
    assert!(whole * 100 >= chains.len() * WHOLE, "{whole} of {}, not {part:?}", chains.len());
}
