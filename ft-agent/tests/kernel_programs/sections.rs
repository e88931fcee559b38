//! Sections under locks of the kernel: known numbers, depths and lengths, at functions whose locks are known.

use std::{
    fs::{self, File},
    io::{Read, Write, pipe},
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::fs::FileExt,
    },
    process::{Child, Command, Stdio},
};

use ft_agent::collect::kernel::{Group, Kernel};
use ft_ebpf::{Section, section};

use super::{
    common::{incomplete_or_skip, ran, skipped},
    now_ns, options,
};

/// What was counted, with the name of each caller.
struct Counts(Vec<(String, Section)>);

impl Counts {
    fn of(kernel: &Kernel) -> Counts {
        let mut bytes = Vec::new();
        assert!(kernel.unreturned(&mut bytes));
        let records: Vec<Section> = bytes
            .chunks_exact(size_of::<Section>())
            .map(|record| ft_ebpf::read(record).unwrap())
            .collect();
        let symbols = fs::read_to_string("/proc/kallsyms").unwrap();
        let mut functions: Vec<(u64, &str)> = symbols
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let at = u64::from_str_radix(words.next()?, 16).ok()?;
                words.next().filter(|kind| "tTwW".contains(kind))?;
                Some((at, words.next()?))
            })
            .collect();
        functions.sort_unstable();
        let name = |address: u64| {
            let behind = functions.partition_point(|(at, _)| *at < address);
            behind.checked_sub(1).map_or(String::new(), |i| functions[i].1.to_owned())
        };
        Counts(records.into_iter().map(|r| (name(r.caller), r)).collect())
    }

    /// How many, how long and the longest, of those that are asked for.
    fn sum(&self, wanted: impl Fn(&str, &Section) -> bool) -> (u64, u64, u64) {
        let chosen = self.0.iter().filter(|(name, r)| wanted(name, r));
        chosen.fold((0, 0, 0), |(count, total, max), (_, r)| {
            (count + r.bin.count, total + r.bin.total_ns, max.max(r.bin.max_ns))
        })
    }

    fn of_what(&self, kind: u32, what: u16) -> u64 {
        self.sum(|_, r| u32::from(r.kind) == kind && r.what == what).0
    }
}

fn is(r: &Section, kind: u32, what: u16) -> bool {
    u32::from(r.kind) == kind && r.what == what && r.interrupt == 0
}

/// Set for the process that takes the locks.
const CHILD: &str = "FT_TAKES_LOCKS";
const WRITES: u64 = 300;
const TEES: u64 = 200;
const LONG: u64 = 8;

/// What that process does while it is observed; how long it took to write to its file, each time.
fn take_locks() -> Vec<u64> {
    // A pipe has a mutex, which whoever writes to it takes once, and who duplicates from one to another both.
    let (mut from, mut into) = pipe().unwrap();
    let (mut other, to) = pipe().unwrap();
    for _ in 0..WRITES {
        into.write_all(&[1]).unwrap();
        from.read_exact(&mut [0]).unwrap();
    }
    into.write_all(&[1]).unwrap();
    for _ in 0..TEES {
        // SAFETY: both descriptors are open.
        let n = unsafe { libc::tee(from.as_raw_fd(), to.as_raw_fd(), 1, 0) };
        assert_eq!(n, 1);
        other.read_exact(&mut [0]).unwrap();
    }
    // A file is written to under its semaphore.
    // SAFETY: the name is a C string, and nobody else has the descriptor.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"long".as_ptr(), 0)) };
    let bytes = vec![1; 4 << 20];
    let write = |_| {
        let begin = now_ns();
        file.write_all_at(&bytes, 0).unwrap();
        now_ns() - begin
    };
    (0..LONG).map(write).collect()
}

/// Stops this process until another one continues it: no lock of the work above is one of that.
fn stop() {
    // SAFETY: the signal stops the process before the call returns.
    assert_eq!(unsafe { libc::raise(libc::SIGSTOP) }, 0);
}

/// Waits until a child has stopped.
fn wait_for_stop(child: &Child) {
    let mut status = 0;
    // SAFETY: the status is written to, and the child has not been waited for.
    let pid = unsafe { libc::waitpid(child.id() as i32, &mut status, libc::WUNTRACED) };
    assert!(pid as u32 == child.id() && libc::WIFSTOPPED(status), "{pid} {status:#x}");
}

fn go_on(child: &Child) {
    // SAFETY: it has stopped, so the number is still its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGCONT) }, 0);
}

#[test]
fn sections_under_kernel_locks_have_their_number_depth_and_length() {
    // Not this process, where other tests take locks.
    if std::env::var_os(CHILD).is_some() {
        stop();
        let lengths = take_locks();
        stop();
        eprintln!("lengths: {lengths:?}");
        return;
    }
    let Some(mut kernel) = incomplete_or_skip(&options(&[Group::Section])) else { return };
    let inlined: Vec<_> = kernel.missing().iter().map(|missing| missing.tracepoint).collect();
    let has = |releases: &str| !inlined.iter().any(|function| function.contains(releases));
    // Of locks that are released where no program can be attached nothing is counted.
    let (spins, mutexes) = (has("spin_unlock"), has("mutex_unlock"));
    let semaphores = has("up_read") && has("_write");
    if !(spins || mutexes || semaphores) {
        skipped(&format!("this kernel has no {}", inlined.join(", ")));
        return;
    }
    ran();

    let mut child = Command::new(std::env::current_exe().unwrap());
    let name = "sections::sections_under_kernel_locks_have_their_number_depth_and_length";
    child.args(["--exact", name, "--nocapture"]).env(CHILD, "");
    let child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_stop(&child);
    kernel.begin(now_ns());
    kernel.observe(child.id());
    go_on(&child);
    wait_for_stop(&child);
    kernel.unobserve(child.id());
    go_on(&child);
    let said = child.wait_with_output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    let lengths = said.split_once("lengths: [").and_then(|(_, rest)| rest.split_once(']'));
    let (lengths, _) = lengths.unwrap_or_else(|| panic!("{said}"));
    let lengths: Vec<u64> = lengths.split(", ").map(|ns| ns.parse().unwrap()).collect();

    let counts = Counts::of(&kernel);
    // What was skipped may be any of them.
    let missed: u64 = kernel.losses().unwrap().iter().map(|loss| loss.count).sum();
    let skipped = counts.sum(|_, r| r.what == section::SKIPPED).0 + missed;
    let near = |found: u64, expected: u64, what: &str| {
        assert!(
            found <= expected && found + skipped >= expected,
            "{what}: {found} of {expected}, {skipped} skipped"
        );
    };
    if mutexes {
        let writes = |name: &str, r: &Section| {
            name.ends_with("pipe_write") && is(r, section::MUTEX, section::LENGTH)
        };
        near(counts.sum(writes).0, WRITES + 1, "writes");
        let both =
            |name: &str| matches!(name, "pipe_double_lock" | "pipe_lock" | "link_pipe" | "do_tee");
        let at = |depth: u64| {
            let at = |r: &Section| is(r, section::MUTEX, section::DEPTH) && r.from == depth;
            counts.sum(|name, r| both(name) && at(r)).0
        };
        near(at(0), TEES, "the first of two");
        near(at(1), TEES, "the second of two");
    }
    if semaphores {
        let of_file = |name: &str, r: &Section| {
            name.ends_with("file_write_iter") && is(r, section::WRITE, section::LENGTH)
        };
        let (count, total, max) = counts.sum(of_file);
        near(count, LONG, "long writes");
        assert!(
            total <= lengths.iter().sum() && max <= *lengths.iter().max().unwrap(),
            "{total} {max} {lengths:?}"
        );
        assert!(total > count * lengths.iter().min().unwrap() / 2, "{total} {lengths:?}");
    }

    // What has begun is there, and what is not there is said to be missing.
    for kind in 0..section::KINDS {
        let paired = counts.of_what(kind, section::LENGTH);
        assert_eq!(paired, counts.of_what(kind, section::DEPTH));
        let all = counts.of_what(kind, section::BEGUN);
        assert!(all >= paired + counts.of_what(kind, section::FULL), "{kind}: {all} {paired}");
        let is_spin = kind == section::SPIN;
        // Most spinlocks of a real-time kernel sleep, and are none of these.
        let least = if fs::exists("/sys/kernel/realtime").unwrap_or(false) { 0 } else { WRITES };
        assert!(
            !(is_spin && spins) || paired > least && all - paired <= skipped + paired / 10,
            "{all} {paired} {skipped}"
        );
        println!("kind {kind}: {all} begun, {paired} paired, {skipped} skipped in all");
    }
}
