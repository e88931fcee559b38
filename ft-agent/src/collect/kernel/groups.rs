//! The programs, in groups that a recording chooses.

use std::{fmt, str::FromStr};

use super::events::Events;

/// Declares [`Group`].
macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident = $name:literal,)*) => {
        /// A set of programs that are recorded together.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Group {
            $($(#[$doc])* $group,)*
        }

        impl Group {
            /// All of them.
            pub const EVERY: &'static [Self] = &[$(Self::$group),*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$group => $name,)*
                }
            }
        }
    };
}

groups! {
    /// Switches, wake-ups, migrations.
    Sched = "sched",
    /// Hardware interrupts, softirqs, interrupt vectors.
    Irq = "irq",
    /// Fork, exec, exit, rename.
    Task = "task",
    /// Waits for kernel locks (Linux 5.19 on).
    Lock = "lock",
    /// System calls.
    Syscall = "syscall",
    /// Page faults.
    Fault = "fault",
    /// Signals.
    Signal = "signal",
    /// Call chains of threads that were off the CPU, and of who woke them.
    Stack = "stack",
    /// Samples of where running threads are.
    Profile = "profile",
    /// Waits and wake-ups by futex, and System-V semaphores: the locks of any program.
    Futex = "futex",
    /// How long locks of the kernel are held, counted at the functions that take and release them.
    Section = "section",
}

impl Group {
    /// Those that every kernel can record beside one another: all but [`Self::Section`], which strikes at each lock and for
    /// which a kernel must let programs be attached to its functions.
    pub const ALL: &'static [Self] = Self::EVERY.split_last().expect("there are some").1;

    /// Those that a recording has unless told otherwise; the others cost where they are not asked for.
    pub const DEFAULT: [Self; 5] = [Self::Sched, Self::Irq, Self::Task, Self::Stack, Self::Profile];

    /// The names of all of them, separated by commas.
    pub fn names() -> String {
        Self::EVERY.iter().map(|group| group.name()).collect::<Vec<_>>().join(", ")
    }

    /// Reads a list with commas; `default` stands for [`Self::DEFAULT`], `all` for [`Self::ALL`], `none`
    /// for nothing. Sorted, each once.
    ///
    /// # Errors
    ///
    /// The first name that is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use ft_agent::collect::kernel::Group;
    /// assert_eq!(Group::parse_list("irq,sched").unwrap(), [Group::Sched, Group::Irq]);
    /// assert!(Group::parse_list("none").unwrap().is_empty());
    /// ```
    pub fn parse_list(list: &str) -> Result<Vec<Self>, UnknownGroup> {
        let mut groups = Vec::new();
        for name in list.split(',').map(str::trim) {
            match name {
                "all" => groups.extend(Self::ALL),
                "default" => groups.extend(Self::DEFAULT),
                "none" => {}
                _ => groups.push(name.parse()?),
            }
        }
        groups.sort();
        groups.dedup();
        Ok(groups)
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Group {
    type Err = UnknownGroup;

    fn from_str(name: &str) -> Result<Self, UnknownGroup> {
        let known = Self::EVERY.iter().find(|group| group.name() == name).copied();
        known.ok_or_else(|| UnknownGroup(name.to_owned()))
    }
}

/// A name that is no group.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no kernel group `{0}`; give some of {names}, or all, default, none", names = Group::names())]
pub struct UnknownGroup(pub String);

/// A tracepoint, or a function of the group `section`, that was asked for and that this kernel does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its group.
    pub group: Group,
    /// Its name.
    pub tracepoint: &'static str,
}

/// Splits chosen programs into those whose tracepoint the kernel has, and the others.
///
/// # Errors
///
/// The first tracepoint that is missing and without which nothing can be told.
pub(super) fn present<'p>(
    chosen: impl Iterator<Item = &'p Program>,
    has: impl Fn(&str) -> bool,
) -> Result<(Vec<&'p Program>, Vec<Missing>), &'static str> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for program in chosen {
        match program.hook {
            Hook::Tracepoint(tracepoint) if !has(tracepoint) => {
                if program.required {
                    return Err(tracepoint);
                }
                missing.push(Missing { group: program.group, tracepoint });
            }
            _ => found.push(program),
        }
    }
    Ok((found, missing))
}

/// What calls a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    /// The tracepoint of this name.
    Tracepoint(&'static str),
    /// An event of perf on each CPU, which strikes as often as the recording says.
    CpuClock,
    /// Perf's count of page faults for which nothing was read, on each CPU, each time.
    MinorFault,
    /// Of the others.
    MajorFault,
    /// The begin of this function of the kernel.
    Enters(&'static str),
    /// Its return.
    Returns(&'static str),
}

/// A program of the object; its name is that of its tracepoint, where it is the first there.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) group: Group,
    pub(super) hook: Hook,
    /// Without it nothing can be told; the others may be missing in a kernel.
    pub(super) required: bool,
    /// It keeps the set of observed processes, and what is kept of threads by their numbers: it runs with any group, unless all
    /// are observed and nothing is kept.
    pub(super) follows: bool,
    /// Another program that does the same at an event that perf makes of the tracepoint; see [`Event`].
    pub(super) event: Option<&'static Event>,
}

/// An event of perf, which runs its programs with preemption disabled.
///
/// Until Linux 6.19 so did the tracepoint; since 7.0 it is guarded by SRCU alone (`__DECLARE_TRACE`,
/// `__DECLARE_TRACE_SYSCALL` in include/linux/tracepoint.h), and its BPF programs can be preempted, though not moved
/// (`__bpf_trace_run`, kernel/trace/bpf_trace.c). While one is, the kernel does not run it for who has the CPU
/// (`bpf_prog_get_recursion_context`), and counts that. Perf's handlers disable preemption by themselves
/// (`__DECLARE_EVENT_CLASS`, include/trace/perf.h). Most tracepoints lie where the kernel cannot be preempted anyway;
/// those of system calls, and of a thread's life, do not.
#[derive(Debug)]
pub(super) struct Event {
    /// Program of the object.
    pub(super) program: &'static str,
    pub(super) category: &'static str,
    pub(super) name: &'static str,
    /// Only on a real-time kernel is its tracepoint one that can be preempted.
    pub(super) real_time: bool,
}

impl Program {
    /// What stands in for it where perf's events are used.
    pub(super) fn event(&self, events: Events) -> Option<&'static Event> {
        self.event.filter(|event| match events {
            Events::Used { real_time } => real_time || !event.real_time,
            Events::NotNeeded | Events::NoTracefs => false,
        })
    }

    /// The program of the object.
    pub(super) fn in_object(&self, events: Events) -> &'static str {
        self.event(events).map_or(self.name, |event| event.program)
    }

    /// Its records have addresses of a process, which are to be named.
    pub(super) fn has_addresses(&self) -> bool {
        matches!(self.group, Group::Stack | Group::Profile | Group::Futex)
    }
}

const fn program(group: Group, name: &'static str) -> Program {
    let hook = Hook::Tracepoint(name);
    Program { name, group, hook, required: false, follows: false, event: None }
}

/// An end of a system call.
const fn call(program: &'static str, name: &'static str) -> Event {
    Event { program, category: "raw_syscalls", name, real_time: false }
}

/// The end of a thread.
const fn exit(program: &'static str) -> Event {
    Event { program, category: "sched", name: "sched_process_exit", real_time: false }
}

/// An end of a softirq.
const fn softirq(program: &'static str, name: &'static str) -> Event {
    Event { program, category: "irq", name, real_time: true }
}

/// All programs, in the order in which they are attached: an exit before its entry, so that an
/// entry never waits for an exit that nobody saw.
pub(super) const PROGRAMS: &[Program] = &[
    Program { follows: true, ..program(Group::Task, "sched_process_fork") },
    Program {
        follows: true,
        event: Some(&const { exit("sched_process_exit_event") }),
        ..program(Group::Task, "sched_process_exit")
    },
    Program { follows: true, ..program(Group::Task, "sched_process_exec") },
    program(Group::Task, "task_rename"),
    Program { required: true, ..program(Group::Sched, "sched_switch") },
    Program { required: true, ..program(Group::Sched, "sched_waking") },
    program(Group::Sched, "sched_wakeup_new"),
    program(Group::Sched, "sched_migrate_task"),
    program(Group::Irq, "irq_handler_exit"),
    program(Group::Irq, "irq_handler_entry"),
    Program {
        event: Some(&const { softirq("softirq_exit_event", "softirq_exit") }),
        ..program(Group::Irq, "softirq_exit")
    },
    Program {
        event: Some(&const { softirq("softirq_entry_event", "softirq_entry") }),
        ..program(Group::Irq, "softirq_entry")
    },
    program(Group::Irq, "local_timer_exit"),
    program(Group::Irq, "local_timer_entry"),
    program(Group::Irq, "reschedule_exit"),
    program(Group::Irq, "reschedule_entry"),
    program(Group::Irq, "call_function_exit"),
    program(Group::Irq, "call_function_entry"),
    program(Group::Irq, "call_function_single_exit"),
    program(Group::Irq, "call_function_single_entry"),
    program(Group::Irq, "irq_work_exit"),
    program(Group::Irq, "irq_work_entry"),
    program(Group::Lock, "contention_end"),
    program(Group::Lock, "contention_begin"),
    Program {
        event: Some(&const { call("sys_exit_event", "sys_exit") }),
        ..program(Group::Syscall, "sys_exit")
    },
    Program {
        event: Some(&const { call("sys_enter_event", "sys_enter") }),
        ..program(Group::Syscall, "sys_enter")
    },
    Program { hook: Hook::MinorFault, ..program(Group::Fault, "fault_minor") },
    Program { hook: Hook::MajorFault, ..program(Group::Fault, "fault_major") },
    program(Group::Fault, "page_fault_user"),
    program(Group::Fault, "page_fault_kernel"),
    program(Group::Signal, "signal_deliver"),
    program(Group::Signal, "signal_generate"),
    Program {
        required: true,
        hook: Hook::Tracepoint("sched_switch"),
        ..program(Group::Stack, "chain_switch")
    },
    Program { hook: Hook::Tracepoint("sched_waking"), ..program(Group::Stack, "chain_waking") },
    Program {
        required: true,
        hook: Hook::Tracepoint("sys_exit"),
        event: Some(&const { call("futex_exit_event", "sys_exit") }),
        ..program(Group::Futex, "futex_exit")
    },
    Program {
        required: true,
        hook: Hook::Tracepoint("sys_enter"),
        event: Some(&const { call("futex_enter_event", "sys_enter") }),
        ..program(Group::Futex, "futex_enter")
    },
    Program { hook: Hook::CpuClock, ..program(Group::Profile, "sample") },
];

#[cfg(test)]
mod tests {
    use super::super::probes;
    use super::*;

    #[test]
    fn lists_are_sorted_and_without_repeats() {
        let check =
            |list, expected: &[Group]| assert_eq!(Group::parse_list(list).unwrap(), expected);
        check("none", &[]);
        check("default", &Group::DEFAULT);
        check("all", Group::ALL);
        check("all,section", Group::EVERY);
        assert!(!Group::ALL.contains(&Group::Section));
        check("fault, sched,fault", &[Group::Sched, Group::Fault]);
        assert_eq!(Group::parse_list("sched,foo"), Err(UnknownGroup("foo".into())));
        assert_eq!(Group::parse_list(""), Err(UnknownGroup(String::new())));
    }

    /// Linux 5.10, which has all but those of kernel locks.
    #[test]
    fn what_an_older_kernel_lacks_is_told_by_group() {
        let old = |name: &str| !name.starts_with("contention_");
        let (found, missing) = present(PROGRAMS.iter(), old).unwrap();
        let lacks = |tracepoint| Missing { group: Group::Lock, tracepoint };
        assert_eq!(missing, [lacks("contention_end"), lacks("contention_begin")]);
        assert_eq!(found.len(), PROGRAMS.len() - 2);
        assert_eq!(
            present(PROGRAMS.iter(), |name| name != "sched_waking").err(),
            Some("sched_waking")
        );
        assert_eq!(present(PROGRAMS.iter(), |_| true).unwrap().1, []);
    }

    #[test]
    fn programs_that_would_be_preempted_have_one_that_is_not() {
        let preempted = ["sys_enter", "sys_exit", "sched_process_exit"].map(Hook::Tracepoint);
        let softirqs = ["softirq_entry", "softirq_exit"].map(Hook::Tracepoint);
        for program in PROGRAMS {
            let (calls, soft) =
                (preempted.contains(&program.hook), softirqs.contains(&program.hook));
            let event = |events| program.event(events).is_some();
            assert_eq!(event(Events::Used { real_time: false }), calls, "{program:?}");
            assert_eq!(event(Events::Used { real_time: true }), calls || soft, "{program:?}");
            assert!(!event(Events::NotNeeded) && !event(Events::NoTracefs));
            if let Some(event) = program.event {
                assert_eq!(program.hook, Hook::Tracepoint(event.name));
                assert_eq!(event.program, format!("{}_event", program.name));
            }
        }
        assert_eq!(PROGRAMS.iter().filter(|program| program.event.is_some()).count(), 7);
    }

    #[test]
    fn every_program_that_can_lose_something_is_here() {
        // Counts, sleeps and throttles are written by `sched_switch`, what a thread leaves under way by `sched_process_exit`.
        let parts = ["cpu_count", "call_end", "fault_end", "sleep", "throttle"];
        for name in ft_ebpf::program::NAMES {
            let known = PROGRAMS.iter().map(|program| program.name);
            let known = known.chain(probes::PROGRAMS).chain(parts);
            assert_eq!(known.filter(|known| *known == name).count(), 1, "{name}");
        }
    }
}
