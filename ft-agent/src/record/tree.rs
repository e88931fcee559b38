//! All that the recorded command has started: its children, theirs, and so on.
//!
//! While the command runs, the agent is the one to which the kernel gives what a process of the tree leaves behind at its end
//! (`PR_SET_CHILD_SUBREAPER`, prctl(2)): so every process of the tree has the agent among its ancestors, also one that has
//! begun a session of its own or whose parent has ended. Those that are given to the agent are waited for at once, so that no zombie stays.
//! A process of the tree whose parent has ended sees the agent as its parent, and not process 1.
//!
//! What the agent had below itself before is no part of the tree; but what such a process starts later, and leaves behind, is taken for one.
//! Whoever the agent may not see (`hidepid`, proc(5)) is not found. Each look reads `status` of all processes, aside from the control thread:
//! for that none has the agent wait. When it began is asked of those of the tree alone, and one that does not answer is known by its number.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use ft_trace::helper;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, pidfd_send_signal,
    set_child_subreaper, waitpid,
};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;

use crate::collect::discover::{comm, field, parent, processes, start_time_of};

/// At least so long is between two looks of the reaper.
const BETWEEN: Duration = Duration::from_secs(1);

/// A process, and not another one that gets its number: that, and when it began; 0 when it does not say so.
type Key = (i32, u64);

/// What the agent has below itself before it starts the command.
#[derive(Debug)]
pub(super) struct Before {
    those: HashSet<Key>,
    ends: unix::Signal,
    _reaper: Reaper,
}

/// This process is given what its descendants leave behind.
#[derive(Debug)]
struct Reaper;

/// The processes of a command.
#[derive(Debug)]
pub(super) struct Tree {
    of: Arc<Of>,
    reaping: JoinHandle<()>,
    _reaper: Reaper,
}

#[derive(Debug)]
struct Of {
    command: i32,
    before: HashSet<Key>,
}

/// What one look has found.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Those that live.
    pub(super) alive: Vec<Member>,
    /// There was none, nor one that had just ended and may have left others; and the command has ended.
    pub(super) is_over: bool,
    /// Some of them were sent the signal for the first time.
    pub(super) is_new: bool,
}

/// A process of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its number.
    pub(super) pid: i32,
    /// Its name.
    pub(super) comm: String,
    /// When it began; 0 when it was not asked, or has not answered.
    started: u64,
    parent: i32,
    is_over: bool,
}

impl Before {
    /// From now on this process is given what its descendants leave behind.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub(super) fn look() -> io::Result<Before> {
        let ends = signal(SignalKind::child())?;
        set_child_subreaper(Some(getpid()))?;
        let those = below(&[own()], Member::all()).into_iter().map(|m| m.asked().key()).collect();
        Ok(Before { those, ends, _reaper: Reaper })
    }

    /// The tree of the command, which was started since.
    pub(super) fn command(self, pid: i32) -> Tree {
        let Before { those, mut ends, _reaper } = self;
        let of = Arc::new(Of { command: pid, before: those });
        let its = of.clone();
        let reaping = tokio::spawn(async move {
            loop {
                if !its.reap() {
                    let its = its.clone();
                    let look = move || its.look(None, false, &mut HashSet::new());
                    let _ = spawn_blocking(look).await;
                    sleep(BETWEEN).await;
                }
                if ends.recv().await.is_none() {
                    return;
                }
            }
        });
        Tree { of, reaping, _reaper }
    }
}

impl Tree {
    /// Looks who lives, waits for those that have ended, and sends a signal, if one is said, to all that are not among those `told`. Of the
    /// command it is said whether it `lives`: somebody else waits for it.
    pub(super) async fn look(
        &self,
        signal: Option<Signal>,
        lives: bool,
        told: &mut HashSet<Key>,
    ) -> Look {
        // One that ends between two looks is still to be seen: it may have left others.
        self.reaping.abort();
        let (of, mut those) = (self.of.clone(), std::mem::take(told));
        let looked = spawn_blocking(move || {
            let look = of.look(signal, lives, &mut those);
            (look, those)
        });
        let (look, those) = looked.await.unwrap_or_default();
        *told = those;
        look
    }
}

impl Of {
    /// Waits for those that have ended, as process 1 would: at once, for they count as processes of their user (`RLIMIT_NPROC`), and
    /// can be sent signals. Whether it got all of them: the kernel shows one, for which somebody else may wait.
    fn reap(&self) -> bool {
        let next = || {
            // SAFETY: `info` is plain data, valid when zeroed. Where none has ended its number stays 0 (waitid(2)).
            unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
                libc::waitid(libc::P_ALL, 0, &mut info, options);
                Pid::from_raw(info.si_pid())
            }
        };
        helper::beside(|helpers| {
            while let Some(pid) = next() {
                let number = pid.as_raw_nonzero().get();
                let is_others = number == self.command
                    || helpers.contains(&number.unsigned_abs())
                    || self.before.iter().any(|(before, _)| *before == number);
                if is_others || waitpid(Some(pid), WaitOptions::NOHANG).is_err() {
                    return false;
                }
            }
            true
        })
    }

    /// Whether it is no part of the tree.
    fn was_before(&self, member: &Member) -> bool {
        let its = |key: &&Key| key.0 == member.pid;
        self.before.iter().filter(its).any(|&(_, began)| same_start(began, member.started))
    }

    fn look(&self, signal: Option<Signal>, lives: bool, told: &mut HashSet<Key>) -> Look {
        // For a helper somebody else waits, too; none ends and is waited for in this time.
        let mut found = helper::beside(|helpers| {
            // What a helper has started is not the command's either.
            let all = Member::all();
            let others = |member: &Member| !helpers.contains(&member.pid.unsigned_abs());
            let found = below(&[own()], all.into_iter().filter(others).collect());
            let found = found.into_iter().map(Member::asked);
            let found: Vec<Member> = found.filter(|member| !self.was_before(member)).collect();
            for member in found.iter().filter(|m| m.is_over && m.pid != self.command) {
                // Those of another parent are refused.
                let pid = Pid::from_raw(member.pid);
                let _ = pid.map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
            }
            found
        });
        found.retain(|member| !(member.is_over && member.pid == self.command));
        let mut look = Look { is_over: found.is_empty() && !lives, ..Look::default() };
        found.retain(|member| !member.is_over);
        if let Some(signal) = signal {
            for member in found.iter().filter(|member| told.insert(member.key())) {
                member.signal(signal);
                look.is_new = true;
            }
            // It may be hidden from the agent.
            let is_seen = found.iter().any(|member| member.pid == self.command);
            if lives && !is_seen && told.insert((self.command, 0)) {
                let _ = Pid::from_raw(self.command).map(|pid| kill_process(pid, signal));
            }
        }
        look.alive = found;
        look
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.reaping.abort();
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // Whoever lives on is no concern of what the agent does next.
        let _ = set_child_subreaper(None);
    }
}

/// Whether what has one number can be one process: what is not known can.
fn same_start(one: u64, other: u64) -> bool {
    one == 0 || other == 0 || one == other
}

fn own() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// All of these that have one of the processes among their ancestors, each once.
fn below(processes: &[i32], all: Vec<Member>) -> Vec<Member> {
    let mut children: HashMap<i32, Vec<Member>> = HashMap::new();
    for member in all {
        children.entry(member.parent).or_default().push(member);
    }
    let own = processes.iter().filter_map(|pid| children.remove(pid));
    let mut found: Vec<Member> = own.flatten().collect();
    let mut at = 0;
    while let Some(member) = found.get(at) {
        let more = children.remove(&member.pid).unwrap_or_default();
        found.extend(more);
        at += 1;
    }
    found
}

/// Processes that these have started before, with their names.
pub(super) fn older(named: &[i32]) -> Vec<(i32, String)> {
    if named.is_empty() {
        return Vec::new();
    }
    older_but(own(), named, Member::all())
}

/// The same, without this program and its children, which may be among them.
fn older_but(own: i32, named: &[i32], all: Vec<Member>) -> Vec<(i32, String)> {
    let mut others: HashSet<i32> = named.iter().copied().chain([own]).collect();
    others.extend(below(&[own], all.clone()).iter().map(|member| member.pid));
    let below = below(named, all).into_iter();
    let alive = below.filter(|member| !member.is_over && !others.contains(&member.pid));
    let found: BTreeMap<i32, String> = alive.map(|member| (member.pid, member.comm)).collect();
    found.into_iter().collect()
}

impl Member {
    fn key(&self) -> Key {
        (self.pid, self.started)
    }

    /// All processes that `/proc` shows.
    fn all() -> Vec<Member> {
        processes().filter_map(Member::of).collect()
    }

    fn of(pid: i32) -> Option<Member> {
        let status = fs::read(format!("/proc/{pid}/status")).ok()?;
        Member::parse(pid, &String::from_utf8_lossy(&status))
    }

    /// By proc_pid_status(5). Where the first thread alone has ended, the state is that of a zombie, and there are others.
    fn parse(pid: i32, status: &str) -> Option<Member> {
        let state = field(status, "State:")?;
        let threads = || field(status, "Threads:").and_then(|threads| threads.parse().ok());
        Some(Member {
            pid,
            comm: field(status, "Name:")?.to_owned(),
            started: 0,
            parent: parent(status)?,
            is_over: state.starts_with(['X', 'x'])
                || state.starts_with('Z') && threads().is_none_or(|threads: u64| threads <= 1),
        })
    }

    /// The same, with its name as it is and when it began: read for few, and the second may not be answered.
    fn asked(self) -> Member {
        let comm = comm(self.pid, self.pid).unwrap_or(self.comm);
        Member { comm, started: start_time_of(self.pid).unwrap_or(0), ..self }
    }

    /// Whether it is this one still; of one that does not say when it began the parent is to be the same.
    fn is_still(&self, now: &Member) -> bool {
        let is_known = self.started != 0 && now.started != 0;
        same_start(self.started, now.started) && (is_known || self.parent == now.parent)
    }

    /// Sends it a signal, and nobody else who has its number by now. One that is stopped goes on to take SIGTERM.
    fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let held = pidfd_open(pid, PidfdFlags::empty());
        let now = Member::of(self.pid).map(Member::asked);
        if !now.is_some_and(|now| self.is_still(&now)) {
            return;
        }
        let signals = [signal, Signal::CONT];
        for &signal in if signal == Signal::TERM { &signals[..] } else { &signals[..1] } {
            // It may have ended, or belong to another user: who lives on is told.
            let _ = match &held {
                Ok(held) => pidfd_send_signal(held, signal),
                Err(_) => kill_process(pid, signal),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_named_process_has_started_before_is_found_but_for_this_program() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id() as i32;
        let all = Member::all();
        child.kill().and_then(|()| child.wait()).unwrap();
        let has = |this: i32, named: &[i32]| {
            older_but(this, named, all.clone()).iter().any(|(found, _)| *found == pid)
        };
        // As if this program were another one, and as it is.
        assert_eq!(
            [has(-1, &[own()]), has(-1, &[own(), pid]), has(-1, &[pid])],
            [true, false, false]
        );
        assert!(!has(own(), &[own()]));
    }

    #[test]
    fn a_process_is_read_as_the_kernel_tells_of_it() {
        let status = "Name:\ta) b (c\nState:\tS (sleeping)\nPPid:\t5\nThreads:\t1\n";
        let member = Member::parse(77, status).unwrap();
        assert_eq!((&*member.comm, member.parent, member.started), ("a) b (c", 5, 0));
        assert!(!member.is_over);
        let zombie = status.replace("S (sleeping)", "Z (zombie)");
        assert!(Member::parse(77, &zombie).unwrap().is_over);
        let without_first = zombie.replace("Threads:\t1", "Threads:\t2");
        assert!(!Member::parse(77, &without_first).unwrap().is_over, "one thread goes on");
        assert_eq!(Member::parse(77, "Name:\ta\nState:\tS (sleeping)\n"), None);
    }

    #[test]
    fn who_does_not_say_when_it_began_is_who_had_the_number() {
        let [known, unknown] = [(5, 991), (6, 0)];
        let of = Of { command: 1, before: HashSet::from([known, unknown]) };
        let member = |(pid, started), parent| Member {
            pid,
            comm: String::new(),
            started,
            parent,
            is_over: false,
        };
        let was_before = |key| of.was_before(&member(key, 2));
        assert!(was_before(known) && was_before((5, 0)) && was_before((6, 7)));
        assert!(!was_before((5, 992)) && !was_before((7, 0)));
        let is_still = |now| member(known, 2).is_still(&now);
        assert!(is_still(member(known, 1)), "its parent has ended");
        assert!(is_still(member((5, 0), 2)) && !is_still(member((5, 0), 1)));
        assert!(!is_still(member((5, 992), 2)));
        let own = Member::of(own()).unwrap().asked();
        assert!(own.started > 0 && !own.comm.is_empty() && own.is_still(&own));
    }
}
