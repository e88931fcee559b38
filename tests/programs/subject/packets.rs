//! A packet, and the event that answers it: who sends it keeps the CPU for a known time, on which who has waited for it is to run.
//!
//! ```text
//! stage CPU    ft-far     FIFO 50  sleep┐sends keeps the CPU┐sleep
//!              ft-near    FIFO 10  receives─────────────────┘works─answers
//! ```

use std::net::UdpSocket;
use std::thread::scope;

use serde_json::json;

use crate::sched::{self, now_ns};

const ROUND_NS: i64 = 6_000_000;
const KEEPS_NS: i64 = 1_500_000;
const WORK_NS: i64 = 300_000;

/// Prints the threads, and for each round when the packet was to be sent and was sent, and until when its sender kept the CPU;
/// when the other one was awake, and around its answer.
pub(crate) fn run(rounds: u64) -> String {
    let start = sched::Start::of(2);
    let here = "127.0.0.1:0";
    let [to, from] = [(); 2].map(|()| UdpSocket::bind(here).expect("the loopback device"));
    to.connect(from.local_addr().expect("bound")).expect("the loopback device");
    let (far, near) = scope(|scope| {
        let far = sched::on_stage(scope, "ft-far", 50, || {
            let begin = start.wait();
            let round = |i: u64| {
                sched::sleep_until(begin + (i + 1) as i64 * ROUND_NS);
                let sends = now_ns();
                to.send(&i.to_ne_bytes()).expect("a datagram to this machine");
                let sent = now_ns();
                sched::spin_until(sent + KEEPS_NS);
                [sends, sent, now_ns()]
            };
            (sched::gettid(), (0..rounds).map(round).collect::<Vec<_>>())
        });
        let near = sched::on_stage(scope, "ft-near", 10, || {
            start.wait();
            let round = |_| {
                let mut id = [0; 8];
                from.recv(&mut id).expect("a datagram");
                let awake = now_ns();
                sched::spin_until(awake + WORK_NS);
                let id = u64::from_ne_bytes(id);
                let before = now_ns();
                ft_user::event!("packets.answer", id: u64);
                [awake, before, now_ns()]
            };
            (sched::gettid(), (0..rounds).map(round).collect::<Vec<_>>())
        });
        (far.join().expect("far"), near.join().expect("near"))
    });
    let told = far.1.iter().zip(&near.1).map(|(far, near)| [&far[..], near].concat());
    let told: Vec<Vec<i64>> = told.collect();
    json!({ "far": far.0, "near": near.0, "rounds": told }).to_string()
}
