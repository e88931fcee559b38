//! What the machine refuses gets one sentence with the remedy, a status that is not zero, and leaves nothing behind.

mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use common::{alone, command, ran, real_time_or_skip, refusal, skipped};

/// A user without any rights, of whom nobody else has a process: a limit of threads (`RLIMIT_NPROC`) counts all of a user,
/// and other tests run programs as `nobody` at the same time.
fn nobody() -> u32 {
    40_000 + std::process::id() % 20_000
}

/// Whether this process can run programs as somebody without rights; where not, reports that the test is skipped.
fn root_or_skip() -> bool {
    // SAFETY: takes no pointer.
    let is_root = unsafe { libc::geteuid() } == 0;
    match is_root {
        true => ran(),
        false => skipped("only root can run a program as somebody else"),
    }
    is_root
}

/// Runs the command as somebody without rights, with limits of its own.
fn as_nobody(limits: &'static [(libc::__rlimit_resource_t, u64)], line: &str) -> Output {
    // Where the program lies nobody else may look.
    let dir = std::env::temp_dir().join(format!("ft-load-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let program = dir.join("ft-load");
    // By a process of its own: what this one has open for writing, a fork of another test has open, too, and then
    // it cannot be executed.
    let copied =
        Command::new("cp").args([env!("CARGO_BIN_EXE_ft-load").as_ref(), &*program]).status();
    assert!(copied.unwrap().success());
    let mut command = Command::new(&program);
    command.args(common::words(line)).uid(nobody()).gid(nobody()).current_dir("/");
    let lower = move || {
        for (resource, value) in limits {
            let limit = libc::rlimit { rlim_cur: *value, rlim_max: *value };
            // SAFETY: a valid limit.
            if unsafe { libc::setrlimit(*resource, &raw const limit) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec it makes system calls alone.
    unsafe { command.pre_exec(lower) };
    let output = common::ended(&mut command);
    fs::remove_dir_all(&dir).unwrap();
    output
}

#[test]
fn priorities_are_refused_to_who_may_not_have_them() {
    let _alone = alone();
    if !root_or_skip() {
        return;
    }
    for (priority, remedy) in [
        (
            "-p RTHIGH",
            "SCHED_FIFO 80 is refused to this user; run it as root or with CAP_SYS_NICE, or raise `ulimit -r`",
        ),
        (
            "-p HIGH",
            "nice -10 is refused to this user; run it as root or with CAP_SYS_NICE, or raise `ulimit -e`",
        ),
        (
            "-rh 1ms 10ms",
            "SCHED_DEADLINE 1 ms in 10 ms is refused to this user; run it as root or with CAP_SYS_NICE",
        ),
    ] {
        let line = format!("hourglass -n 2 -d 10s -t 1 {priority}");
        let output = as_nobody(&[(libc::RLIMIT_RTPRIO, 0), (libc::RLIMIT_NICE, 0)], &line);
        assert_eq!(refusal(&output, 1), remedy);
    }
}

/// Without rights, without an agent: it runs, and says what it had to do without.
#[test]
fn ordinary_threads_need_no_rights() {
    let _alone = alone();
    if !root_or_skip() {
        return;
    }
    let line = "hourglass -n 2 -d 20ms -t 0 -p LOW -t 1 -p IDLE -w PERIODIC 1ms 5ms";
    let output = as_nobody(&[(libc::RLIMIT_MEMLOCK, 65_536)], line);
    let (text, notes) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{notes}");
    assert!(text.contains("thread 1: missed "), "{text}");
    assert!(notes.contains("ulimit -l") && notes.ends_with("touched instead\n"), "{notes}");
}

#[test]
fn memory_that_cannot_be_locked_is_an_error_where_it_must_be() {
    let _alone = alone();
    if !root_or_skip() {
        return;
    }
    let output =
        as_nobody(&[(libc::RLIMIT_MEMLOCK, 65_536)], "hourglass -n 2 -d 10s --lock-memory");
    let sentence = refusal(&output, 1);
    assert!(
        sentence.contains("run it as root or with CAP_IPC_LOCK, or raise `ulimit -l`"),
        "{sentence}"
    );
}

#[test]
fn threads_that_do_not_fit_leave_none_behind() {
    let _alone = alone();
    if !root_or_skip() {
        return;
    }
    let output = as_nobody(&[(libc::RLIMIT_NPROC, 5)], "hourglass -n 50 -d 10s");
    let sentence = refusal(&output, 1);
    assert!(sentence.contains(" of 50 threads could be started"), "{sentence}");
    assert!(sentence.contains("ask for fewer, or raise `ulimit -u`"), "{sentence}");
}

#[test]
fn reservations_beyond_what_there_is_are_refused() {
    let _alone = alone();
    if !real_time_or_skip() {
        return;
    }
    // As many threads as there are CPUs and one more cannot all have most of one.
    let threads = std::thread::available_parallelism().unwrap().get() + 1;
    let line = format!("hourglass -n {threads} -d 10s -a -rh 99ms 100ms -w PERIODIC 1ms 100ms");
    let sentence = refusal(&command(&line), 1);
    assert!(
        sentence.contains("the kernel does not admit SCHED_DEADLINE 99 ms in 100 ms"),
        "{sentence}"
    );
    assert!(sentence.ends_with("reserve less"), "{sentence}");
    let sentence = refusal(&command("hourglass -n 1 -rs 500ns 100ms"), 1);
    assert!(sentence.contains("amounts are at least 1024ns"), "{sentence}");
}

#[test]
fn timers_and_cpus_that_are_not_there_are_refused_by_name() {
    let _alone = alone();
    ran();
    let sentence = refusal(&command("hourglass -n 1 --cpu 1023"), 1);
    assert!(sentence.contains("may not run on CPU 1023; choose of "), "{sentence}");
    let sentence = refusal(&command("hourglass -n 1 --slice 10s"), 1);
    assert!(sentence.contains("does not give slices of 10 s"), "{sentence}");
    if !std::path::Path::new("/dev/rtc0").exists() {
        let sentence = refusal(&command("hourglass -d 6m -n 1 -t 0 -w LAT 5.3ms -i RTC"), 1);
        assert!(sentence.starts_with("this machine has no timer RTC"), "{sentence}");
    }
}

/// When one thread cannot have what it needs, the others are sent home, and gone when that is told.
#[test]
fn a_refused_run_leaves_no_thread() {
    let _alone = alone();
    ran();
    let line = common::words("-n 4 -d 10s -t 3 --cpu 1023");
    let error =
        ft_load::hourglass::play(&ft_load::hourglass::scenario(&line).unwrap()).unwrap_err();
    assert_eq!(error.exit_status(), 1);
    // The kernel takes a thread off its list a moment after it has told that it ended.
    let begun = Instant::now();
    loop {
        let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = threads.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        let left: Vec<String> = names.filter(|name| name.starts_with("hourglass")).collect();
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{left:?} of a run of ten seconds");
        std::thread::yield_now();
    }
}

/// What can be asked for and not be had: one sentence that names the remedy, a status, and nothing printed, as a run would
/// have.
#[test]
fn whatever_cannot_be_is_one_sentence_with_the_remedy() {
    let _alone = alone();
    ran();
    let rights = [
        (
            "hourglass -n 1 -p RTHIGH",
            1,
            "run it as root or with CAP_SYS_NICE, or raise `ulimit -r`",
        ),
        ("hourglass -n 1 -p HIGHEST", 1, "or raise `ulimit -e`"),
        ("hourglass -n 1 -rs 1ms 10ms", 1, "run it as root or with CAP_SYS_NICE"),
        (
            "hourglass -n 9 --lock-memory",
            1,
            "run it as root or with CAP_IPC_LOCK, or raise `ulimit -l`",
        ),
        ("npt", 1, "or do without: --no-lock-memory"),
        ("npt --rt 90 --no-lock-memory", 1, "or raise `ulimit -r`"),
        ("hourglass -n 99", 1, "ask for fewer, or raise `ulimit -u`"),
    ];
    let limits = &[
        (libc::RLIMIT_RTPRIO, 0),
        (libc::RLIMIT_NICE, 0),
        (libc::RLIMIT_MEMLOCK, 65_536),
        (libc::RLIMIT_NPROC, 20),
    ];
    let anybody = [
        ("hourglass -n 1 -w PERIODIC 9ms 8ms", 2, "ask for less, or less often"),
        ("hourglass -n 1 -w CPU_PERIODIC 9ms 8ms", 2, "ask for less, or less often"),
        ("hourglass -n 1 -rh 9ms 8ms", 2, "ask for less, or less often"),
        ("response --task 9ms,8ms", 2, "less work or a longer period"),
        ("frobnicate", 2, "`ft-load --help` lists them"),
        ("hourglass -n 1 -w SPIN", 2, "use CPU, CPU_SCAN KB"),
        ("hourglass -n 1 -p URGENT", 2, "use IDLE, LOW, NORMAL"),
        ("hourglass -n 1 -i TSC", 2, "use NATIVE, HR, TIMERFD or RTC"),
        ("hourglass -n 1 -i MM", 2, "use HR"),
        ("npt --reader fast --record t", 2, "use adaptive, timed=TIME, active or waking"),
        ("capacity -k Sched", 2, "such as sched,irq, or none"),
        ("hourglass -n 1 -d 30", 2, "write 30us, 30ms, 30s or 30m"),
        ("hourglass -n 1 -w LAT 5", 2, "write 5us, 5ms, 5s or 5m"),
        ("npt --peak 5", 2, "write 5us, 5ms, 5s or 5m"),
        ("response --task 3,8", 2, "write 3us, 3ms, 3s or 3m"),
        ("capacity --time 5", 2, "write 5us, 5ms, 5s or 5m"),
        ("hourglass -n 1025", 2, "use 1 to 1024"),
        ("hourglass --scenario /nowhere", 2, "name a file in TOML"),
        ("hourglass --scenario", 2, "lacks a file; write it behind the option"),
        ("hourglass -n 1 --gap 5", 2, "write 5us, 5ms, 5s or 5m"),
        ("hourglass -n 1 -s 5", 2, "write 5us, 5ms, 5s or 5m"),
        ("hourglass -n 1 -f 0s", 2, "use at least 1ns"),
        ("hourglass -n 1 --slice 5", 2, "write 5us, 5ms, 5s or 5m"),
        ("hourglass -n 1 -t x", 2, "`x` is not a number that `-t` takes"),
        ("hourglass -n 1 --json=1", 2, "leave out `=1`"),
        ("hourglass -n 1 --cpu 1023", 1, "choose of "),
        ("npt --cpu 1023", 1, "choose of "),
        ("npt --record t --agent /nowhere", 1, "name ft-agent with --agent"),
    ];
    let check = |output: &Output, line: &str, status: i32, remedy: &str| {
        let sentence = refusal(output, status);
        assert!(sentence.contains(remedy), "{line}: {sentence}");
    };
    for (line, status, remedy) in anybody {
        check(&command(line), line, status, remedy);
    }
    if root_or_skip() {
        for (line, status, remedy) in rights {
            check(&as_nobody(limits, line), line, status, remedy);
        }
        let threads = std::thread::available_parallelism().unwrap().get() + 1;
        let reserved = format!("hourglass -n {threads} -a -rh 99ms 100ms");
        check(&command(&reserved), &reserved, 1, "reserve less");
    }
}

#[test]
fn mistakes_in_the_line_end_with_status_2() {
    let _alone = alone();
    ran();
    for line in ["", "hourglass -n 1 -w PERIODIC 9ms 8ms", "frobnicate", "hourglass", "response"] {
        let output = command(line);
        if line.is_empty() {
            assert!(output.status.success());
            assert!(String::from_utf8_lossy(&output.stdout).contains("Usage: ft-load COMMAND"));
        } else {
            refusal(&output, 2);
        }
    }
}
