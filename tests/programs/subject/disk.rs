//! Reads of a disk, each of which an event answers: the interrupt of the disk comes between two readings of the clock, while
//! the thread sleeps.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::thread::scope;

use serde_json::json;

use crate::sched::{self, now_ns};

/// What a read takes, and what the memory for it and its place in the file are multiples of.
const BLOCK: usize = 4096;
const BLOCKS: u64 = 64;
const PAUSE_NS: i64 = 2_000_000;

#[repr(align(4096))]
struct Buffer([u8; BLOCK]);

/// Prints the thread, and for each round the readings around the read and around the answer. No round where there is no disk
/// below the directory for temporary files.
pub(crate) fn run(rounds: u64) -> String {
    let Ok(file) = file() else { return json!({ "reader": 0, "rounds": [] }).to_string() };
    let reader = scope(|scope| {
        let reader = sched::on_stage(scope, "ft-reader", 10, || {
            let mut buffer = Box::new(Buffer([0; BLOCK]));
            let mut round = |i: u64| {
                sched::sleep_until(now_ns() + PAUSE_NS);
                let reads = now_ns();
                let at = i % BLOCKS * BLOCK as u64;
                file.read_exact_at(&mut buffer.0, at).expect("a block");
                let read = now_ns();
                let block = u64::from(buffer.0[0]);
                let answers = now_ns();
                ft_user::event!("disk.answer", block: u64);
                [reads, read, answers, now_ns()]
            };
            (sched::gettid(), (0..rounds).map(&mut round).collect::<Vec<_>>())
        });
        reader.join().expect("the reader")
    });
    json!({ "reader": reader.0, "rounds": reader.1 }).to_string()
}

/// A file on the disk that is read past all caches; its name is gone.
fn file() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("ft-disk-{}", std::process::id()));
    let mut written = File::create_new(&path)?;
    written.write_all(&vec![7; BLOCK * BLOCKS as usize])?;
    written.sync_all()?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path);
    std::fs::remove_file(&path)?;
    file
}
