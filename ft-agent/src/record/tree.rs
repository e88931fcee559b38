//! All that the recorded command has started: its children, theirs, and so on.
//!
//! While the command runs, the agent is the one to which the kernel gives what a process of the tree leaves behind at its end
//! (`PR_SET_CHILD_SUBREAPER`, prctl(2)): so every process of the tree has the agent among its ancestors, also one that has
//! begun a session of its own or whose parent has ended. Those that are given to the agent are waited for, so that no zombie stays.
//! A process of the tree whose parent has ended sees the agent as its parent, and not process 1.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use ft_trace::convert::beside_workers;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, waitpid,
};

/// From look to look at who still lives, at first and at last.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(100)];

/// The processes of a command.
#[derive(Debug)]
pub(super) struct Tree {
    /// Children that the agent had before.
    others: HashSet<(i32, u64)>,
}

/// A process that lives, by its number and its begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its number.
    pub(super) pid: i32,
    /// Its name.
    pub(super) comm: String,
    started: u64,
    parent: i32,
    is_over: bool,
}

impl Tree {
    /// What the agent starts from now on, and all that comes of it.
    pub(super) fn begin() -> io::Result<Tree> {
        let own = getpid().as_raw_nonzero().get();
        let others = Member::all().into_iter().filter(|member| member.parent == own);
        let others = others.map(|member| member.key()).collect();
        set_child_subreaper(Some(getpid()))?;
        Ok(Tree { others })
    }

    /// Those that live.
    pub(super) fn alive(&self) -> Vec<Member> {
        let mut children: HashMap<i32, Vec<Member>> = HashMap::new();
        for member in Member::all() {
            children.entry(member.parent).or_default().push(member);
        }
        let mut found = children.remove(&getpid().as_raw_nonzero().get()).unwrap_or_default();
        beside_workers(|workers| {
            found.retain(|child| {
                !self.others.contains(&child.key()) && !workers.contains(&child.pid.unsigned_abs())
            });
        });
        let mut at = 0;
        while let Some(member) = found.get(at) {
            let more = children.remove(&member.pid).unwrap_or_default();
            found.extend(more);
            at += 1;
        }
        found.retain(|member| !member.is_over);
        found
    }

    /// Waits for those that have ended and were given to the agent: not for the command nor for a worker of names, for which
    /// somebody else waits. One of these that has ended hides others, until that was done.
    pub(super) fn reap(&self, command: i32) {
        beside_workers(|workers| {
            while let Some(pid) = ended_child() {
                let number = pid.as_raw_nonzero().get();
                let is_anothers = number == command || workers.contains(&number.unsigned_abs());
                if is_anothers || waitpid(Some(pid), WaitOptions::NOHANG).is_err() {
                    return;
                }
            }
        });
    }

    /// Sends each of them the signal, also those that come, until none lives or the time is over; who lives then.
    pub(super) async fn signal(&self, signal: Signal, command: i32, time: Duration) -> Vec<Member> {
        let (began, mut told, mut pause) = (tokio::time::Instant::now(), HashSet::new(), PAUSES[0]);
        loop {
            self.reap(command);
            let alive = self.alive();
            if alive.is_empty() || began.elapsed() >= time {
                return alive;
            }
            for member in &alive {
                if told.insert(member.key()) {
                    member.signal(signal);
                }
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(PAUSES[1]);
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Whoever lives on is no concern of what the agent does next.
        let _ = set_child_subreaper(None);
    }
}

/// A child of the agent that has ended and was not waited for.
fn ended_child() -> Option<Pid> {
    let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `found` is plain data, valid when zeroed, and has a number also where there is none to be told: 0.
    let found = unsafe {
        let mut found: libc::siginfo_t = std::mem::zeroed();
        (libc::waitid(libc::P_ALL, 0, &mut found, look) == 0).then(|| found.si_pid())
    };
    found.and_then(Pid::from_raw)
}

impl Member {
    fn key(&self) -> (i32, u64) {
        (self.pid, self.started)
    }

    /// All processes that `/proc` shows.
    fn all() -> Vec<Member> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter_map(Member::of).collect()
    }

    fn of(pid: i32) -> Option<Member> {
        Member::parse(
            pid,
            &String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?),
        )
    }

    /// By proc_pid_stat(5). The name, field 2, may hold anything, but ends at the last `)`.
    fn parse(pid: i32, stat: &str) -> Option<Member> {
        let (before, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Member {
            pid,
            comm: before.split_once('(')?.1.to_owned(),
            started: fields.get(19)?.parse().ok()?,
            parent: fields.get(1)?.parse().ok()?,
            is_over: matches!(*fields.first()?, "Z" | "X" | "x"),
        })
    }

    /// Sends it a signal, and nobody else who has its number by now.
    fn signal(&self, signal: Signal) {
        let held = Pid::from_raw(self.pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let Some(Ok(held)) = held else { return };
        if Member::of(self.pid).is_some_and(|now| now.key() == self.key()) {
            // It may have ended, or belong to another user: who lives on is told.
            let _ = pidfd_send_signal(held, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "77 (a) b (c) S 5 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 991 0 0";
        let member = Member::parse(77, stat).unwrap();
        assert_eq!((&*member.comm, member.parent, member.started), ("a) b (c", 5, 991));
        assert!(!member.is_over);
        assert!(Member::parse(77, &stat.replace(") S", ") Z")).unwrap().is_over);
        assert_eq!(Member::parse(77, "77 (a) S 5"), None);
    }
}
