//! A timer, and the event that answers it two threads later: the first one sleeps until the timer, and is held up by a thread
//! of a higher priority that has its CPU for a known time; the second one gets what it sends through a pipe, and answers.
//!
//! ```text
//! stage CPU    ft-hog     FIFO 50  sleep┐spins─────────────┐sleep
//!              ft-sensor  FIFO 20  sleep────┐timer          └works─writes┐sleep
//!              ft-actor   FIFO 10  reads─────────────────────────────────┘works─answers
//! ```

use std::io::{Read, Write, pipe};
use std::thread::scope;

use crate::sched::{self, now_ns};

const ROUND_NS: i64 = 12_000_000;
/// When the hog's timer comes, before the sensor's, and until when after it it keeps the CPU.
const AHEAD_NS: i64 = 1_000_000;
const HOGGED_NS: i64 = 2_000_000;
/// What the two others work.
const SENSOR_NS: i64 = 300_000;
const ACTOR_NS: i64 = 400_000;

/// Prints the threads, and for each round when the timer was to come; when the hog had the CPU; when the sensor was awake,
/// and around its write; around the answer.
pub(crate) fn run(rounds: u64) -> String {
    let start = sched::Start::of(3);
    let (mut from_sensor, mut to_actor) = pipe().expect("a pipe");
    let at = |begin: i64, round: u64| begin + AHEAD_NS + round as i64 * ROUND_NS;
    let (hog, sensor, actor) = scope(|scope| {
        let hog = sched::on_stage(scope, "ft-hog", 50, || {
            let begin = start.wait();
            let round = |i: u64| {
                sched::sleep_until(at(begin, i) - AHEAD_NS);
                let from = now_ns();
                sched::spin_until(at(begin, i) + HOGGED_NS);
                [from, now_ns()]
            };
            (sched::gettid(), (0..rounds).map(round).collect::<Vec<_>>())
        });
        let sensor = sched::on_stage(scope, "ft-sensor", 20, || {
            let begin = start.wait();
            let round = |i: u64| {
                sched::sleep_until(at(begin, i));
                let awake = now_ns();
                sched::spin_until(awake + SENSOR_NS);
                let writes = now_ns();
                to_actor.write_all(&i.to_ne_bytes()).expect("a pipe");
                [at(begin, i), awake, writes, now_ns()]
            };
            (sched::gettid(), (0..rounds).map(round).collect::<Vec<_>>())
        });
        let actor = sched::on_stage(scope, "ft-actor", 10, || {
            start.wait();
            let round = |_| {
                let mut id = [0; 8];
                from_sensor.read_exact(&mut id).expect("a pipe");
                sched::spin_until(now_ns() + ACTOR_NS);
                let id = u64::from_ne_bytes(id);
                let before = now_ns();
                ft_user::event!("react.answer", id: u64);
                [before, now_ns()]
            };
            (sched::gettid(), (0..rounds).map(round).collect::<Vec<_>>())
        });
        (hog.join().expect("hog"), sensor.join().expect("sensor"), actor.join().expect("actor"))
    });
    let rows: Vec<String> = (0..rounds as usize)
        .map(|i| {
            let all = [&hog.1[i][..], &sensor.1[i], &actor.1[i]].concat();
            format!("[{}]", all.iter().map(i64::to_string).collect::<Vec<_>>().join(","))
        })
        .collect();
    format!(
        "{{\"hog\":{},\"sensor\":{},\"actor\":{},\"rounds\":[{}]}}",
        hog.0,
        sensor.0,
        actor.0,
        rows.join(",")
    )
}
