//! Two threads of one real-time priority on one CPU pass a byte to and fro through pipes.
//!
//! Equal priorities do not preempt each other, so every read finds an empty pipe and blocks: each round
//! is exactly one waking and one voluntary switch of each thread.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::thread;

use crate::sched;

fn hop(reader: &mut PipeReader, writer: &mut PipeWriter) {
    let mut byte = [0];
    reader.read_exact(&mut byte).expect("pipe");
    writer.write_all(&byte).expect("pipe");
}

/// Plays `rounds` rounds and prints both threads and their voluntary switches by the kernel's own count.
pub(crate) fn run(rounds: u64) -> String {
    let (mut to_b, mut from_a) = pipe().map(|(r, w)| (w, r)).expect("pipe");
    let (mut to_a, mut from_b) = pipe().map(|(r, w)| (w, r)).expect("pipe");
    let b = thread::Builder::new()
        .name("ft-pong".into())
        .spawn(move || {
            sched::pin(sched::stage());
            sched::fifo(20);
            // The first read ends when A is ready too; from then on every hop is counted.
            hop(&mut from_a, &mut to_a);
            let before = sched::switches();
            ft_user::event!("pingpong.begin", rounds: u64);
            for _ in 0..rounds {
                hop(&mut from_a, &mut to_a);
            }
            ft_user::event!("pingpong.end", rounds: u64);
            (sched::gettid(), sched::switches().0 - before.0)
        })
        .expect("spawn");
    let a = thread::Builder::new()
        .name("ft-ping".into())
        .spawn(move || {
            sched::pin(sched::stage());
            sched::fifo(20);
            let mut byte = [7];
            to_b.write_all(&byte).expect("pipe");
            from_b.read_exact(&mut byte).expect("pipe");
            let before = sched::switches();
            ft_user::event!("pingpong.begin", rounds: u64);
            for _ in 0..rounds {
                to_b.write_all(&byte).expect("pipe");
                from_b.read_exact(&mut byte).expect("pipe");
            }
            ft_user::event!("pingpong.end", rounds: u64);
            (sched::gettid(), sched::switches().0 - before.0)
        })
        .expect("spawn");
    let (a_tid, a_switches) = a.join().expect("ping");
    let (b_tid, b_switches) = b.join().expect("pong");
    format!(
        "{{\"rounds\":{rounds},\"ping\":{a_tid},\"pong\":{b_tid},\
         \"ping_switches\":{a_switches},\"pong_switches\":{b_switches}}}"
    )
}
