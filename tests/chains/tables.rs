//! Four known functions in tables of their own: where a thread waits at a futex and where it is woken, where one waits for a
//! lock of the kernel, and where one runs.

use ft_agent::collect::kernel::Group;
use ft_report::code::Code;
use ft_trace::store::Trace;
use ft_trace::tables::{FutexEnd, FutexWait, KernelLockWait, KernelWaitEnd, Sample};

use crate::stage::{LEAST, Stage, functions, number, way};

/// Samples of two threads, at least, which together have a CPU for 300 ms or more: at 997 Hz that is thrice as many.
const SAMPLES: usize = 100;

#[test]
fn waits_at_futexes_and_samples_have_the_chains_of_the_program() {
    let Some(stage) = Stage::enter_with(&[Group::Futex]) else { return };
    let kernel = ["-k", "default,futex,stack,profile", "--stack-min", "500us"];
    let options = [&kernel[..], &["--sample-rate", "997"]].concat();
    let truth = stage.record("ways", &options);
    let trace = Trace::open(&stage.trace()).expect("a trace");
    let code = Code::read(&trace).expect("tables");
    let rounds = number(&truth, "rounds") as usize;
    let (waiter, waker) = (number(&truth, "waiter"), number(&truth, "waker"));

    // The thread waits once in each round, unless it was woken for nothing.
    let waits = trace.rows::<FutexWait>().map(|row| row.expect("a row"));
    let waits = waits.filter(|row| {
        (row.tid.0, row.end, row.waker_tid) == (waiter, FutexEnd::Woken, Some(waker))
    });
    let waits: Vec<FutexWait> = waits.collect();
    assert!((LEAST..=rounds).contains(&waits.len()), "{} waits", waits.len());
    type Of = fn(&FutexWait) -> Option<i64>;
    let each: [(&str, Of); 2] = [("wait", |row| row.stack), ("wake", |row| row.waker_stack)];
    for (name, stack) in each {
        let chains: Vec<_> =
            waits.iter().filter_map(stack).map(|stack| functions(&code, Some(stack))).collect();
        assert!(chains.len() >= LEAST, "{name}: {} of {} waits", chains.len(), waits.len());
        assert!(chains.iter().all(|chain| chain.starts_with(&way(name))), "{name}: {chains:?}");
    }

    let spinners = truth["spinners"].as_array().expect("two");
    let spinners: Vec<Option<i64>> = spinners.iter().map(|tid| tid.as_i64()).collect();
    let samples = trace.rows::<Sample>().map(|row| row.expect("a row"));
    let samples = samples.filter(|row| spinners.contains(&Some(row.tid.0.into())));
    let spun: Vec<Vec<String>> = samples
        .map(|row| functions(&code, row.stack))
        .filter(|chain| chain.first().is_some_and(|first| first == "spin_four"))
        .collect();
    assert!(spun.len() >= SAMPLES, "{} samples", spun.len());
    assert!(spun.iter().all(|chain| chain.starts_with(&way("spin"))), "{spun:?}");
}

#[test]
fn waits_for_a_lock_of_the_kernel_have_the_chain_of_the_program() {
    let Some(stage) = Stage::enter_with(&[Group::Lock]) else { return };
    let options = ["-k", "default,lock,stack", "--stack-min", "500us"];
    let truth = stage.record("kernel", &options);
    let trace = Trace::open(&stage.trace()).expect("a trace");
    let code = Code::read(&trace).expect("tables");
    let rows = trace.rows::<KernelLockWait>().map(|row| row.expect("a row"));
    let of = number(&truth, "waiter");
    // It waits for other locks, too: of the file's it is told so by the call that wants it.
    let waits: Vec<KernelLockWait> = rows
        .filter(|row| row.tid.0 == of && row.end == KernelWaitEnd::Acquired)
        .filter(|row| {
            let chain = code.chain(row.stack);
            let is_write = chain.iter().any(|frame| &*frame.label == "__x64_sys_pwrite64");
            is_write && row.dur > 1_000_000
        })
        .collect();
    let rounds = number(&truth, "rounds") as usize;
    assert!((LEAST..=rounds).contains(&waits.len()), "{} waits", waits.len());
    for row in &waits {
        let chain = functions(&code, row.stack);
        assert!(chain.starts_with(&way("store")), "{row:?} {chain:?}");
    }
}
