//! Memory while traces go to a store and come from there: it has a bound, however large their files are.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::Output;

use crate::said;
use crate::server::Server;
use crate::stage::{Stage, URL};

/// Bytes of data that the agent may have (setrlimit(2)): four pieces of 8 MiB on their way, and all the rest of it.
pub(crate) const DATA_BYTES: u64 = 96 << 20;

/// Of each of as many files as go at once: any of them is more than that.
const FILE_BYTES: u64 = 112 << 20;

/// Runs the agent with no more data than this.
pub(crate) fn within(bytes: u64, stage: &Stage, args: &[&str]) -> Output {
    let mut agent = stage.agent(args);
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: a plain system call in the child, with a value of its own.
    unsafe {
        agent.pre_exec(move || match libc::setrlimit(libc::RLIMIT_DATA, &limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    agent.output().unwrap()
}

#[test]
fn files_that_are_larger_than_the_memory_go_to_a_store_and_come_back() {
    let Some(server) = Server::start() else { return };
    let stage = Stage::new(server.address);
    stage.stored_trace("preload", "trace");
    std::fs::create_dir(stage.path("trace/ballast")).unwrap();
    for part in 0..4 {
        let path = stage.path(&format!("trace/ballast/part-{part:05}.parquet"));
        // Zeros that take no room here.
        File::create_new(path).unwrap().set_len(FILE_BYTES).unwrap();
    }
    let bring = ["convert", "trace", "--to", URL];
    let output = within(16 << 20, &stage, &bring);
    assert!(!output.status.success(), "the limit is one: four pieces do not fit");
    let output = within(DATA_BYTES, &stage, &bring);
    assert!(output.status.success(), "{output:?}");
    let output = within(DATA_BYTES, &stage, &["analyze", URL]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(": analysed, "));
    said::measured(&format!(
        "a trace of {} MiB goes to a store and comes back in {} MiB of data",
        (4 * FILE_BYTES) >> 20,
        DATA_BYTES >> 20
    ));
}
