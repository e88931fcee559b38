//! A tree of processes whose threads write faster than anybody reads. Each process forks while its threads write, and counts
//! what it has written.

use std::io::{PipeWriter, Read, Write, pipe};
use std::thread;

use crate::endless;

/// Events that nobody reads meanwhile, before all others: more than all but the largest rings hold.
const UNREAD: u64 = 100_000;

/// Threads that write beside the one that forks.
const THREADS: usize = 2;

/// Children of a process.
const CHILDREN: usize = 2;

fn write(events: u64) -> u64 {
    (0..events).for_each(|number| ft_user::event!("forks.step", number: u64));
    events
}

/// Writes, with children in so many generations, and says how much this process has written, with what it had before.
fn process(before: u64, events: u64, generations: u64, says: &mut PipeWriter) {
    let written: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| write(events))).collect();
        let mut written = before;
        for _ in 0..if generations > 0 { CHILDREN } else { 0 } {
            written += write(events / 4);
            // SAFETY: the child has this thread alone, and the C library's handlers have left no lock of others taken; it
            // ends without running destructors.
            let child = unsafe { libc::fork() };
            if child == 0 {
                process(0, events, generations - 1, says);
                // SAFETY: ends the process at once.
                unsafe { libc::_exit(0) };
            }
            written += write(events / 4);
            // SAFETY: waits for our own child.
            assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        }
        written + threads.into_iter().map(|one| one.join().expect("no panic")).sum::<u64>()
    });
    // Shorter than what a pipe takes at once.
    let line = format!("[{},{written}],", std::process::id());
    says.write_all(line.as_bytes()).expect("a pipe");
}

/// Prints the number of each process, and how many events it has written.
pub(crate) fn run(events: u64, generations: u64) -> String {
    let (mut hears, mut says) = pipe().expect("a pipe");
    let unread = endless::while_unread(|| write(UNREAD));
    process(unread, events, generations, &mut says);
    drop(says);
    let mut pairs = String::new();
    hears.read_to_string(&mut pairs).expect("a pipe");
    format!("{{\"written\":[{}]}}", pairs.trim_end_matches(','))
}
