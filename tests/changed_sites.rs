//! Sites that something else has changed, and threads that may not read the time stamp counter: what is missing is told.
//!
//! The programs are this file, run again. They put a breakpoint on a site of their own, and go on behind it as the kernel does
//! behind a probe: as the instruction of the file would, which is the nop of a site that is off.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ft_trace::store::Trace;
use ft_trace::tables::{LossOrigin, LossRow, UserEvent};
use ft_user::layout::{TRIGGER_BYTES, TRIGGER_OFF};
use ft_user::patch;

/// Says to this file what it is to do as a program.
const ROLE: &str = "FT_TEST_CHANGED_SITES";

const CALLS: u64 = 1000;

#[inline(never)]
fn work(n: u64) {
    ft_user::event!("changed.work", n: u64);
}

/// Where the trigger of `work` stands.
fn trigger() -> usize {
    let begin = work as *const () as usize;
    let is_trigger = |&at: &usize| {
        // SAFETY: the function's own code, or what follows it in the same object.
        let found = unsafe { (at as *const [u8; 4]).read_unaligned() };
        patch::state(patch::without_breakpoint(found, TRIGGER_OFF.to_le_bytes()[0])).is_some()
    };
    (begin..begin + 256).find(is_trigger).expect("the trigger of the function")
}

static BREAKPOINT_AT: AtomicUsize = AtomicUsize::new(0);

extern "C" fn step_over(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the context of the signal, which is this thread's.
    let rip = unsafe { &mut (&mut (*context).uc_mcontext.gregs)[libc::REG_RIP as usize] };
    assert_eq!(*rip as usize, BREAKPOINT_AT.load(Relaxed) + 1);
    *rip += TRIGGER_BYTES as i64 - 1;
}

/// Puts a breakpoint on the site, or takes it away.
fn breakpoint(is_set: bool) {
    let at = trigger();
    BREAKPOINT_AT.store(at, Relaxed);
    // SAFETY: all of it may be zero; the handler is one of three arguments, as the flag says.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = step_over as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()), 0);
    }
    let byte = if is_set { 0xcc } else { TRIGGER_OFF.to_le_bytes()[0] };
    let memory = File::options().write(true).open("/proc/self/mem").unwrap();
    memory.write_all_at(&[byte], at as u64).unwrap();
}

/// Where an address of this program lies in its file.
fn offset_in_file(at: usize) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let offset = maps.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (begin, end) = words[0].split_once('-')?;
        let (begin, end, offset) = (hex(begin), hex(end), hex(words[2]));
        (begin..end).contains(&(at as u64)).then(|| at as u64 - begin + offset)
    });
    offset.expect("the program is mapped")
}

/// Has the kernel probe the site in this process, as long as the file is open. Nothing where it may not.
fn probe() -> Option<File> {
    let kind = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type").ok()?;
    let program = std::env::current_exe().unwrap().into_os_string().into_encoded_bytes();
    let path = std::ffi::CString::new(program).unwrap();
    const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
    // perf_event_open(2): the type and the size; the path and the offset are the ninth word and the tenth.
    let mut attributes = [0u64; 14];
    attributes[0] = kind.trim().parse::<u64>().ok()? | (size_of_val(&attributes) as u64) << 32;
    attributes[7] = path.as_ptr() as u64;
    attributes[8] = offset_in_file(trigger());
    // SAFETY: the attributes and the path are valid during the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            0,
            -1,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    // SAFETY: a new descriptor, which is nobody else's.
    (fd >= 0).then(|| unsafe { File::from_raw_fd(fd as i32) })
}

fn state() -> &'static str {
    // SAFETY: program text, which is switched by single bytes.
    let found = unsafe { (trigger() as *const [u8; 4]).read_volatile() };
    match patch::state(found) {
        Some(true) => "on",
        Some(false) => "off",
        None => "changed",
    }
}

/// Does what its standard input says, and says when it is done.
fn obey() {
    ft_user::init().expect("tracing starts");
    println!("\nready");
    let mut probed = None;
    for line in std::io::stdin().lock().lines() {
        match line.unwrap().as_str() {
            "work" => (0..CALLS).for_each(work),
            "set" => breakpoint(true),
            "clear" => breakpoint(false),
            "probe" => probed = probe(),
            "unprobe" if probed.is_none() => {
                println!("\nrefused");
                continue;
            }
            "unprobe" => probed = None,
            _ => {}
        }
        println!("\n{}", state());
    }
}

/// The programs.
#[test]
fn program() {
    match std::env::var(ROLE).as_deref() {
        Ok("obeys") => obey(),
        Ok(role @ ("begins beneath a breakpoint" | "stays beneath a breakpoint")) => {
            breakpoint(true);
            ft_user::init().expect("tracing starts");
            (0..CALLS).for_each(work);
            if role.starts_with("stays") {
                // Long enough for the agent to look at its sites, too.
                std::thread::sleep(std::time::Duration::from_millis(2500));
            }
        }
        Ok("forbids itself the counter") => {
            // linux/prctl.h
            const PR_SET_TSC: libc::c_int = 26;
            const PR_TSC_SIGSEGV: libc::c_ulong = 2;
            ft_user::init().expect("tracing starts");
            let forbidden = || {
                // SAFETY: takes no pointer, and concerns this thread.
                assert_eq!(unsafe { libc::prctl(PR_SET_TSC, PR_TSC_SIGSEGV) }, 0);
                (0..CALLS).for_each(work);
            };
            std::thread::spawn(forbidden).join().expect("it lives");
            (0..CALLS).for_each(work);
        }
        _ => {}
    }
}

/// This file as a program.
fn in_role(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "program", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command
}

fn agent(out: &Path) -> Command {
    let mut agent = Command::new(ft_tests::agent());
    agent.args(["record", "-k", "none", "-o"]).arg(out);
    agent
}

/// Records this file in a role.
fn record(role: &str, out: &Path) -> Trace {
    let command = in_role(role);
    let mut agent = agent(out);
    agent.env(ROLE, role).arg("--").arg(command.get_program()).args(command.get_args());
    let output = agent.stdout(Stdio::null()).output().expect("the agent");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Trace::open(out).unwrap()
}

fn events(trace: &Trace) -> usize {
    let rows = trace.rows::<UserEvent>().map(Result::unwrap);
    rows.filter(|row| &*row.event == "changed.work").count()
}

fn losses(trace: &Trace, origin: LossOrigin) -> Vec<LossRow> {
    trace.rows::<LossRow>().map(Result::unwrap).filter(|row| row.origin == origin).collect()
}

/// What a report says first.
fn head(out: &Path) -> String {
    let report = Command::new(ft_tests::agent()).arg("report").arg(out).output();
    String::from_utf8(report.expect("the agent").stdout).unwrap()
}

/// A program that does what it is told.
struct Told {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Told {
    fn start() -> Told {
        let mut command = in_role("obeys");
        // It meets nobody's agent.
        command.env("FT_SOCKET", "/nonexistent/agent.sock");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut told = Told { child, input, output: BufReader::new(output).lines() };
        while told.output.next().expect("a line").unwrap() != "ready" {}
        told
    }

    /// Tells it; the state of the site afterwards.
    fn tell(&mut self, what: &str) -> String {
        writeln!(self.input, "{what}").unwrap();
        let mut lines = self.output.by_ref().map(Result::unwrap);
        lines
            .find(|line| ["on", "off", "changed", "refused"].contains(&line.as_str()))
            .expect("an answer")
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_breakpoint_on_a_site_that_is_on_is_a_loss_of_unknown_number() {
    changed_while_on("set", "clear");
}

#[test]
fn a_probe_of_the_kernel_on_a_site_that_is_on_is_a_loss_of_unknown_number() {
    let mut told = Told::start();
    told.tell("probe");
    if told.tell("unprobe") == "refused" {
        println!("skipped: the kernel lets this user probe nothing");
        return;
    }
    changed_while_on("probe", "unprobe");
}

/// Something else changes a site, and changes it back, when the recording is over.
fn changed_while_on(set: &str, clear: &str) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let mut told = Told::start();
    let pid = told.child.id();
    let mut agent =
        agent(&out).args(["-p", &pid.to_string()]).stdout(Stdio::null()).spawn().unwrap();
    while told.tell("") != "on" {
        assert!(agent.try_wait().unwrap().is_none(), "the agent has ended");
        std::thread::yield_now();
    }
    told.tell("work");
    assert_eq!(told.tell(set), "changed");
    told.tell("work");
    // SAFETY: the agent is a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(agent.id() as i32, libc::SIGINT) }, 0);
    assert!(agent.wait().unwrap().success());
    // It was switched off beneath the breakpoint, and stays so.
    assert_eq!(told.tell(clear), "off");

    let trace = Trace::open(&out).unwrap();
    assert_eq!(events(&trace) as u64, CALLS, "what the breakpoint skips is not written");
    let losses = losses(&trace, LossOrigin::Site);
    assert!(!losses.is_empty());
    for loss in losses {
        assert_eq!((&*loss.what, loss.pid.0 as u32, loss.count), ("changed.work", pid, 0));
    }
    let warnings: Vec<String> = trace.meta().warnings.iter().map(ToString::to_string).collect();
    let of_site = |w: &&String| w.contains("unknown number") && w.contains("changed.work");
    let warning = warnings.iter().find(of_site).unwrap_or_else(|| panic!("{warnings:?}"));
    assert!(warning.contains(&format!("process {pid} ")), "{warning}");
    let head = head(&out);
    assert!(head.contains("an unknown number") && !head.contains("complete 100 %"), "{head}");
}

#[test]
fn a_site_that_is_switched_on_beneath_a_breakpoint_is_told_however_short_the_process_lives() {
    begun_beneath_a_breakpoint("begins beneath a breakpoint");
}

#[test]
fn a_site_of_which_both_the_process_and_a_look_tell_is_one_loss_and_one_warning() {
    begun_beneath_a_breakpoint("stays beneath a breakpoint");
}

fn begun_beneath_a_breakpoint(role: &str) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let trace = record(role, &out);
    assert_eq!(events(&trace), 0);
    let losses = losses(&trace, LossOrigin::Site);
    let [loss] = &losses[..] else { panic!("{losses:?}") };
    assert_eq!(&*loss.what, "changed.work");
    let warnings: Vec<String> = trace.meta().warnings.iter().map(ToString::to_string).collect();
    let of_site = warnings.iter().filter(|warning| warning.contains("breakpoint"));
    assert_eq!(of_site.count(), 1, "{warnings:?}");
    assert!(head(&out).contains("an unknown number"), "{}", head(&out));
}

#[test]
fn events_of_a_thread_that_may_not_read_the_counter_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("trace");
    let trace = record("forbids itself the counter", &out);
    assert_eq!(events(&trace) as u64, CALLS);
    let lost: i64 = losses(&trace, LossOrigin::Tsc).iter().map(|loss| loss.count).sum();
    assert_eq!(lost as u64, CALLS);
    assert!(head(&out).contains("PR_SET_TSC"), "{}", head(&out));
}
