//! A program is stepped through, instruction by instruction, and a signal comes at each of them.
//!
//! The program traps where that is to begin, where it is to end, and where its handler ends ([`Mark`]); what its handler does is
//! its own affair. That the kernel steps, and not the processor's trap flag in the program alone, has two reasons: code that has
//! its signals blocked can be stepped through, and nothing of it is left in a program that goes on elsewhere.

#![allow(dead_code, reason = "each test uses its part")]

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};
use std::ptr;

/// Comes at each instruction.
pub(crate) const SIGNAL: libc::c_int = libc::SIGUSR1;

/// Most steps of one event: a first event starts the buffers of its thread, and may bind symbols.
const MOST_STEPS: u64 = 1 << 20;

/// What `rax` holds where the program traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Begin = 0x4654_0001,
    End = 0x4654_0002,
    Handled = 0x4654_0003,
    Done = 0x4654_0004,
}

/// Where the program has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Mark(Mark),
    /// Behind one instruction, or before the first of a handler.
    Step,
    /// Before the first instruction of the program that it executes.
    Executed,
    /// A signal is about to be delivered.
    Signal(libc::c_int),
    Ended(ExitStatus),
}

/// A program under this thread's control. What is left of it is killed when this goes out of scope.
pub(crate) struct Stepper {
    pub(crate) child: Child,
    pid: libc::pid_t,
}

impl Stepper {
    /// Starts it, and stops it before its first instruction.
    pub(crate) fn start(command: &mut Command) -> Stepper {
        let traced = || {
            // SAFETY: says that the parent traces this process.
            match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        // SAFETY: one system call.
        let child = unsafe { command.pre_exec(traced) }.spawn().unwrap();
        let pid = child.id() as libc::pid_t;
        let mut stepper = Stepper { child, pid };
        assert_eq!(stepper.wait(), Stop::Step, "{command:?}: stopped by its exec");
        let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACEEXEC;
        stepper.ptrace(libc::PTRACE_SETOPTIONS, options as u64);
        stepper
    }

    /// Lets it run to the next mark, exit or program. Signals of its own are delivered.
    pub(crate) fn run(&mut self) -> Stop {
        let mut signal = 0;
        loop {
            self.ptrace(libc::PTRACE_CONT, signal as u64);
            match self.wait() {
                Stop::Signal(own) => signal = own,
                Stop::Step => signal = 0,
                stop => return stop,
            }
        }
    }

    /// From the begin to the end: a signal at each of the first `dense` instructions, and then at those whose number `stride`
    /// divides, where signals are not blocked. The handler returns. No signal comes at entries of linkage tables. Gives the
    /// number of signals.
    pub(crate) fn at_each(&mut self, dense: u64, stride: u64) -> u64 {
        let mut signals = 0;
        for number in 0..MOST_STEPS {
            let is_due = number < dense || number.is_multiple_of(stride);
            if is_due && !self.is_blocked() && !self.is_at_linkage() {
                self.handle();
                signals += 1;
            }
            match self.step(0) {
                Stop::Step => {}
                Stop::Mark(Mark::End) => return signals,
                stop => panic!("{stop:?} at step {number}, {:#x}", self.registers().rip),
            }
        }
        panic!("there is no end");
    }

    /// From the begin: a signal behind `number` instructions, unless the end comes before or signals are blocked there. Gives
    /// where the program stops next.
    pub(crate) fn after(&mut self, number: u64) -> Stop {
        for _ in 0..number {
            match self.step(0) {
                Stop::Step => {}
                stop => return stop,
            }
        }
        if !self.is_blocked() {
            assert_eq!(self.step(SIGNAL), Stop::Step, "the handler's first instruction");
        }
        self.run()
    }

    /// Delivers the signal, runs its handler, and comes back.
    fn handle(&mut self) {
        let place = |registers: libc::user_regs_struct| (registers.rip, registers.rsp);
        let interrupted = place(self.registers());
        assert_eq!(self.step(SIGNAL), Stop::Step, "the handler's first instruction");
        let stop = self.run();
        assert_eq!(stop, Stop::Mark(Mark::Handled), "interrupted at {:#x}", interrupted.0);
        while place(self.registers()) != interrupted {
            assert_eq!(self.step(0), Stop::Step, "interrupted at {:#x}", interrupted.0);
        }
    }

    /// One instruction, or into the handler of a signal.
    pub(crate) fn step(&mut self, signal: libc::c_int) -> Stop {
        self.ptrace(libc::PTRACE_SINGLESTEP, signal as u64);
        self.wait()
    }

    /// Whether the signal would wait.
    fn is_blocked(&self) -> bool {
        const GETSIGMASK: libc::c_uint = 0x420a;
        let mut mask = 0u64;
        // SAFETY: fills in the word, whose size it is told.
        let result = unsafe { libc::ptrace(GETSIGMASK, self.pid, size_of::<u64>(), &raw mut mask) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        mask >> (SIGNAL - 1) & 1 == 1
    }

    /// Whether the next instruction is an entry of a linkage table, `jmp [rip + distance]; push number; jmp`, of which LLD, which
    /// rustc links with, leaves no description: a stack ends there, in programs with and without events.
    fn is_at_linkage(&self) -> bool {
        let rip = self.registers().rip;
        let [first, second] =
            [rip, rip + 8].map(|at| self.word(at).map_or([0; 8], u64::to_le_bytes));
        first[..2] == [0xff, 0x25] && first[6] == 0x68 && second[3] == 0xe9
    }

    /// A word of its memory, where there is any.
    pub(crate) fn word(&self, at: u64) -> Option<u64> {
        // SAFETY: `errno` is this thread's; the request reads a word of the other process.
        unsafe {
            *libc::__errno_location() = 0;
            let word = libc::ptrace(libc::PTRACE_PEEKDATA, self.pid, at, 0);
            (*libc::__errno_location() == 0).then_some(word as u64)
        }
    }

    /// Its registers.
    pub(crate) fn registers(&self) -> libc::user_regs_struct {
        let mut registers = std::mem::MaybeUninit::uninit();
        // SAFETY: fills them in.
        unsafe {
            let to = registers.as_mut_ptr();
            let result = libc::ptrace(libc::PTRACE_GETREGS, self.pid, 0, to);
            assert_eq!(result, 0, "{}", io::Error::last_os_error());
            registers.assume_init()
        }
    }

    /// Whether it has executed a breakpoint, and not one instruction of others.
    fn is_at_breakpoint(&self) -> bool {
        const SI_KERNEL: i32 = 0x80;
        // SAFETY: a structure of integers, which is then filled in.
        unsafe {
            let mut about: libc::siginfo_t = std::mem::zeroed();
            let result = libc::ptrace(libc::PTRACE_GETSIGINFO, self.pid, 0, &raw mut about);
            result == 0 && about.si_code == SI_KERNEL
        }
    }

    fn ptrace(&mut self, request: libc::c_uint, data: u64) {
        // SAFETY: these requests take a number, and no address.
        let result = unsafe { libc::ptrace(request, self.pid, ptr::null_mut::<u8>(), data) };
        assert_eq!(result, 0, "request {request}: {}", io::Error::last_os_error());
    }

    fn wait(&mut self) -> Stop {
        let mut status = 0;
        // SAFETY: fills in the status.
        let result = unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) };
        assert_eq!(result, self.pid, "{}", io::Error::last_os_error());
        if !libc::WIFSTOPPED(status) {
            return Stop::Ended(ExitStatus::from_raw(status));
        }
        if status >> 16 == libc::PTRACE_EVENT_EXEC {
            return Stop::Executed;
        }
        let signal = libc::WSTOPSIG(status);
        if signal != libc::SIGTRAP || status >> 16 != 0 {
            return Stop::Signal(signal);
        }
        if self.is_at_breakpoint() {
            let rax = self.registers().rax;
            let marks = [Mark::Begin, Mark::End, Mark::Handled, Mark::Done];
            let mark = marks.into_iter().find(|&mark| mark as u64 == rax);
            return Stop::Mark(mark.expect("a breakpoint of the program's own"));
        }
        Stop::Step
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        // One that has ended was waited for, and is nobody's by now.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
