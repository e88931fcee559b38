//! What the user is told while a recording goes on.

use ft_user::layout::DEFAULT_SOCKET;
use ft_user::patch::PatchError;

use super::asleep::{self, Sleeper};
use crate::collect::attach::Refusal;
use crate::collect::kernel::KernelError;
use ft_report::units::short_ns;
use ft_trace::number;
use ft_trace::reach::Unreachable;
use ft_trace::spool::frame::Refused;
use ft_trace::warning::Warning;

/// Most sites that are listed when a glob matches none.
const LISTED_SITES: usize = 20;

/// Something that the user should know and that does not stop the recording.
#[derive(Debug, thiserror::Error)]
pub enum Notice {
    /// A client of the registration socket was sent away, or what it registered is not used.
    #[error("{0}")]
    Unregistered(Refused),
    /// A process of the cgroup has something that is not used.
    #[error("process {pid} is not recorded: {reason}")]
    Refused {
        /// Process.
        pid: i32,
        /// Why.
        reason: Refusal,
    },
    /// Processes that were asked for have no rings.
    #[error(
        "{} ft-user: only the kernel's view is recorded, until ft_user::init() is called there and finds the agent at \
         {DEFAULT_SOCKET}",
        none_embeds(pids)
    )]
    NotEmbedded {
        /// Processes.
        pids: Vec<i32>,
    },
    /// Processes that were asked for have started others before, which cannot be recorded.
    #[error(
        "what -p names had started others before, which this user may not look at: {}; record as root, or leave them out with --no-children",
        processes(who)
    )]
    Older {
        /// Numbers and names of those others.
        who: Vec<(i32, String)>,
    },
    /// The kernel did not run the program that follows forks.
    #[error(
        "what these did at first is missing, for the kernel did not run the program that follows who is started: {}; they are recorded \
         from now on",
        processes(who)
    )]
    Overlooked {
        /// Numbers and names.
        who: Vec<(i32, String)>,
    },
    /// It begins later than `--start-at` said.
    #[error(
        "the recording began {} later than was asked for, for it was not ready by then; name a time further ahead, or \
         give this machine less to do",
        short_ns(*.late_ns as f64)
    )]
    Late {
        /// By how much.
        late_ns: i64,
    },
    /// The preload library does not reach the command.
    #[error("--preload does not reach {command}: {reason}")]
    NotPreloaded {
        /// Its first word.
        command: String,
        /// Why.
        reason: Unreachable,
    },
    /// Code that unwinds its stack is probed.
    #[error(
        "an exception or a panic that leaves {probe} ends its program while it is probed (the unwinder finds the kernel's return address); probe a function that catches them"
    )]
    Unwinds {
        /// What is probed.
        probe: String,
    },
    /// There is no control socket.
    #[error(
        "the recording cannot be asked for a snapshot or to stop, since its directory can have no socket: {reason}; Ctrl-C \
         ends it"
    )]
    NoControl {
        /// Why.
        reason: String,
    },
    /// Sites of a running process could not be enabled.
    #[error("sites of process {pid} stay off: {reason}")]
    NotEnabled {
        /// Process.
        pid: i32,
        /// Why.
        reason: PatchError,
    },
    /// Programs did not wait for the answer.
    #[error(
        "{} programs went on before the agent had answered them, or ended: what they did until their sites \
         were switched on is missing; give the agent more CPU, or start fewer programs at a time",
        number::count(*programs)
    )]
    Unanswered {
        /// How many.
        programs: u64,
    },
    /// Programs that embed `ft-user` have started, and were not those that were named.
    #[error("{}", strangers(*count, names, *recorded))]
    Strangers {
        /// How many.
        count: u64,
        /// Names of some of them.
        names: Vec<String>,
        /// They are recorded.
        recorded: bool,
    },
    /// Threads of the named processes never ran.
    #[error("{}", asleep::said(sleepers, SHOWN))]
    Asleep {
        /// Those behind a holder first.
        sleepers: Vec<Sleeper>,
    },
    /// The kernel side does not follow.
    #[error("the kernel stream is incomplete: {reason}")]
    Unobserved {
        /// Why.
        reason: KernelError,
    },
    /// What will stand in the trace, too.
    #[error(transparent)]
    Quality(Warning),
    /// A glob matched nothing.
    #[error("no site matches '{glob}'; {}{}", listed(sites, *preload), unknown(glob))]
    NoMatch {
        /// Glob.
        glob: String,
        /// All sites that were declared.
        sites: Vec<String>,
        /// The command was started with the preload library.
        preload: bool,
    },
    /// The recording has failed before its command ended.
    #[error(
        "the recording has stopped: {reason}; process {pid} goes on untraced, and Ctrl-C or `ft-agent stop` ends it"
    )]
    Untraced {
        /// Process.
        pid: i32,
        /// Why.
        reason: String,
    },
    /// Nobody has read them for long.
    #[error(
        "{} more warnings came while nothing could be printed; those that concern the trace are in \
         `ft-agent report`",
        number::count(*count)
    )]
    LeftOut {
        /// How many.
        count: u64,
    },
    /// The command has ended, and what it has started has not.
    #[error(
        "the command has ended, and of what it has started {} not: that ends with the recording (--no-kill leaves it)",
        processes(who)
    )]
    Outlived {
        /// Their numbers and names.
        who: Vec<(i32, String)>,
    },
    /// SIGTERM was not enough.
    #[error("after {seconds} s of SIGTERM there still is {}: SIGKILL ends it", processes(who))]
    Killed {
        /// Their numbers and names.
        who: Vec<(i32, String)>,
        /// How long they were waited for.
        seconds: u64,
    },
    /// The command, or what it has started, goes on after the recording.
    #[error(
        "after SIGKILL there still is {}: another user's, busy in the kernel, or what starts others faster than they can be ended; `sudo kill -9 {}` ends what stays",
        processes(who),
        numbers(who)
    )]
    Survivors {
        /// Their numbers and names.
        who: Vec<(i32, String)>,
    },
}

/// Processes that a sentence names.
pub(super) const SHOWN: usize = 8;

fn strangers(count: u64, names: &[String], recorded: bool) -> String {
    // A program chooses its name.
    let names: Vec<_> = names.iter().map(|name| format!("'{}'", name.escape_debug())).collect();
    let (count, who) = match count {
        1 => ("one".to_owned(), "process"),
        _ => (number::count(count), "processes"),
    };
    let end = if recorded { "recorded, too" } else { "not recorded; --any records such, too" };
    format!("{count} other {who} with ft-user inside ({}): {end}", names.join(", "))
}

/// `process 7 does not embed`; of several, how many there are and which is the first.
fn none_embeds(pids: &[i32]) -> String {
    match pids {
        [pid] => format!("process {pid} does not embed"),
        [first, ..] => format!("{} processes ({first} …) do not embed", pids.len()),
        [] => String::new(),
    }
}

fn processes(who: &[(i32, String)]) -> String {
    // A program chooses its name.
    let named = who.iter().take(SHOWN);
    let named: Vec<_> =
        named.map(|(pid, name)| format!("process {pid} '{}'", name.escape_debug())).collect();
    let others = who.len().saturating_sub(SHOWN);
    let more = if others > 0 {
        format!(" and {} more", number::count(others as u64))
    } else {
        String::new()
    };
    named.join(", ") + &more
}

fn numbers(who: &[(i32, String)]) -> String {
    let numbers: Vec<_> = who.iter().take(SHOWN).map(|(pid, _)| pid.to_string()).collect();
    numbers.join(" ")
}

fn listed(sites: &[String], preload: bool) -> String {
    if sites.is_empty() && preload {
        return "no recorded process declared any, so --preload did not reach them: programs that are statically linked, run with \
                the rights of others, or lack the environment that the agent gives its command; or the library found no descriptor, \
                memory or file size left for its buffer there (`ulimit -a`)"
            .into();
    }
    if sites.is_empty() {
        return "no recorded process declared any: embed ft-user and call ft_user::init(), or record pthread locks and \
                instrumented functions with --preload"
            .into();
    }
    let more = match sites.len().saturating_sub(LISTED_SITES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("there are {}{more}", sites[..sites.len().min(LISTED_SITES)].join(", "))
}

/// The functions in which clang has left sleds are switched by their process, and looked for by the agent soon after that began.
fn unknown(glob: &str) -> &'static str {
    match glob.starts_with("fn.") {
        true => {
            ", and the functions with sleds of processes that were soon over (see the report `functions`)"
        }
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_of_functions_may_have_matched() {
        let text =
            Notice::NoMatch { glob: "fn.b*".into(), sites: vec!["a.1".into()], preload: true }
                .to_string();
        assert!(text.contains("there are a.1, and the functions with sleds"), "{text}");
    }

    #[test]
    fn a_glob_without_a_match_lists_the_sites() {
        let check = |count: usize, expected: &str| {
            let sites = (0..count).map(|n| format!("a.{n}")).collect();
            let text = Notice::NoMatch { glob: "b.*".into(), sites, preload: false }.to_string();
            assert!(text.starts_with("no site matches 'b.*'; "), "{text}");
            assert!(text.ends_with(expected), "{text}");
        };
        check(0, "instrumented functions with --preload");
        check(2, "there are a.0, a.1");
        check(20, "a.18, a.19");
        check(23, "a.19 and 3 more");
    }

    #[test]
    fn many_processes_are_one_notice() {
        let told = |pids: Vec<i32>| Notice::NotEmbedded { pids }.to_string();
        assert!(told(vec![7]).starts_with("process 7 does not embed ft-user: "));
        assert!(told((7..20).collect()).starts_with("13 processes (7 …) do not embed ft-user: "));
    }

    #[test]
    fn what_was_asked_for_is_not_recommended() {
        let none = |preload| {
            Notice::NoMatch { glob: "b.*".into(), sites: Vec::new(), preload }.to_string()
        };
        assert!(none(false).contains("with --preload"), "{}", none(false));
        // It may be there all the same.
        assert!(none(true).contains("file size left for its buffer"), "{}", none(true));
        assert!(
            none(true)
                .contains("--preload did not reach them: programs that are statically linked"),
            "{}",
            none(true)
        );
    }
}
