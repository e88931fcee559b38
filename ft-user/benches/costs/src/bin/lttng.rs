//! The subjects with tracepoints of LTTng-UST: `lttng off | on | cold | loop | rate THREADS RATE SECONDS`.

use std::time::Duration;

use ft_costs::cycles::{self, Loop, Plan, net};
use ft_costs::{cold, cpu, event_loop, fewer, produce, tell};

unsafe extern "C" {
    safe fn costs_c_base_latency(n: u64, x: u64) -> u64;
    safe fn costs_c_base_issue(n: u64, x: u64) -> u64;
    safe fn costs_c_one_latency(n: u64, x: u64) -> u64;
    safe fn costs_c_one_issue(n: u64, x: u64) -> u64;
    safe fn costs_c_sixteen_issue(n: u64, x: u64) -> u64;
    safe fn costs_c_event(a: u64, b: u64);
}

const BASE_LATENCY: Loop = |n, x| costs_c_base_latency(n, x);
const BASE_ISSUE: Loop = |n, x| costs_c_base_issue(n, x);
const EVENT: fn(u64, u64) = |a, b| costs_c_event(a, b);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments[at].parse::<f64>().expect("a number");
    match arguments[0].as_str() {
        "off" => off(),
        "on" => on(),
        "cold" => cold::measure("cold", EVENT),
        "loop" => event_loop::measure(EVENT),
        "rate" => produce::run(EVENT, number(1) as usize, number(2), number(3)),
        other => panic!("there is no subject {other}"),
    }
}

fn off() {
    cpu::pin(cpu::measured());
    let plan = Plan { batches: fewer(31, 4), ..Plan::OFF };
    let subjects: [(&str, Loop, Loop, f64); 3] = [
        ("latency", BASE_LATENCY, |n, x| costs_c_one_latency(n, x), 1.0),
        ("issue", BASE_ISSUE, |n, x| costs_c_one_issue(n, x), 1.0),
        ("sixteen", BASE_ISSUE, |n, x| costs_c_sixteen_issue(n, x), 16.0),
    ];
    for (name, base, subject, sites) in subjects {
        tell(&format!("lttng.{name}"), net(base, subject, plan) / sites);
    }
}

fn on() {
    cpu::pin(cpu::measured());
    let per_ns = cycles::per_ns();
    // Its buffers are 32 MiB: two laps first, as for everybody.
    let warm_up = fewer(300, 10);
    let plan = Plan { warm_up, batches: fewer(31, 4), ..Plan::ON };
    let one: Loop = |n, x| costs_c_one_latency(n, x);
    tell("lttng", net(BASE_LATENCY, one, plan) / per_ns);
    std::thread::sleep(Duration::from_millis(100));
}
