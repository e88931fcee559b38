//! The list of reports, in the order in which they are printed.

use super::agreement::AgreementReport;
use super::breakdown::BreakdownReport;
use super::deadlines::DeadlinesReport;
use super::dispatch::DispatchReport;
use super::findings::FindingsReport;
use super::functions::FunctionsReport;
use super::futexes::FutexesReport;
use super::gaps::GapsReport;
use super::jobs::JobsReport;
use super::kernel_locks::KernelLocksReport;
use super::locks::LocksReport;
use super::npt::NptReport;
use super::preempted::PreemptedReport;
use super::profile::ProfileReport;
use super::reactivity::ReactivityReport;
use super::requests::RequestsReport;
use super::runs::RunsReport;
use super::scopes::ScopesReport;
use super::stacks::StacksReport;
use super::study::Study;
use super::summary::{self, Answers};
use super::switches::SwitchesReport;
use super::tasks::TasksReport;
use super::time::TimeReport;
use super::timers::TimersReport;
use super::waits::WaitsReport;
use super::what_if::WhatIfReport;
use super::{Report, Shown};
use ft_analysis::{Incomplete, Tally, Unpaired};

const SCHEDULER: &str = "the kernel group `sched`";
const LOCKS: &str = "lock events: of ft_user::sync, or of pthread locks by --preload";

const LOAD: &str = "`ft-load hourglass`, and for causes the kernel groups `sched` and `irq`";

/// An event of a traced lock was recorded.
fn has_locks(tally: &Tally) -> bool {
    tally.holds > 0 || tally.waits > 0 || tally.incomplete != Incomplete::default()
}

fn has_scopes(tally: &Tally) -> bool {
    tally.scopes > 0 || tally.unpaired_scopes != Unpaired::default()
}

pub(super) static REPORTS: [Report; 27] = [
    Report {
        name: "findings",
        about: "what lost the time: who, behind whom, at what and where",
        needs: SCHEDULER,
        shown: Shown::Always,
        make: |s| Ok(FindingsReport::read(s)?.section()),
    },
    Report {
        name: "summary",
        about: "a few lines about each question",
        needs: "nothing in particular",
        shown: Shown::Named,
        make: |s| {
            let answers = Answers {
                locks: LocksReport::read(s)?,
                waits: WaitsReport::read(s)?,
                futexes: FutexesReport::read(s)?,
                preempted: PreemptedReport::read(s)?,
                dispatch: DispatchReport::read(s)?,
                gaps: GapsReport::read(s)?,
                time: TimeReport::read(s)?,
                tasks: TasksReport::read(s)?,
                functions: FunctionsReport::read(s)?,
                sleeps: summary::knows_sleeps(s)?,
                preload: s.trace.meta().start.preload,
            };
            Ok(answers.section())
        },
    },
    Report {
        name: "locks",
        about: "who held which lock, how deep and for how long, and what happened meanwhile",
        needs: LOCKS,
        shown: Shown::Data(has_locks),
        make: |s| Ok(LocksReport::read(s)?.section()),
    },
    Report {
        name: "waits",
        about: "who waited for which lock and who made it wait; lock order and deadlocks",
        needs: LOCKS,
        shown: Shown::Data(has_locks),
        make: |s| Ok(WaitsReport::read(s)?.section()),
    },
    Report {
        name: "futexes",
        about: "who waited at which futex or semaphore, and who woke it: any lock of any program",
        needs: "the kernel groups `futex` and `sched`",
        shown: Shown::With(&["futex"]),
        make: |s| Ok(FutexesReport::read(s)?.section()),
    },
    Report {
        name: "kernel-locks",
        about: "who waited for which lock of the kernel, and which holds and requests that delayed",
        needs: "the kernel groups `lock` and `sched`; for call chains in user space `stack`; for how long they are held `section`",
        shown: Shown::With(&["lock", "section"]),
        make: |s| Ok(KernelLocksReport::read(s)?.section()),
    },
    Report {
        name: "preempted",
        about: "which holders of locks were preempted, by whom, and whom that delayed",
        needs: "lock events and the kernel group `sched`",
        shown: Shown::Data(has_locks),
        make: |s| Ok(PreemptedReport::read(s)?.section()),
    },
    Report {
        name: "what-if",
        about: "what more time, priority or CPUs for holders would have spared who waited, at most",
        needs: "lock events and the kernel group `sched`; to leave out holds that made a system call `syscall`",
        shown: Shown::Data(has_locks),
        make: |s| Ok(WhatIfReport::read(s)?.section()),
    },
    Report {
        name: "dispatch",
        about: "how long woken threads waited for a CPU, and behind whom",
        needs: SCHEDULER,
        shown: Shown::Data(|tally| tally.kernel),
        make: |s| Ok(DispatchReport::read(s)?.section()),
    },
    Report {
        name: "gaps",
        about: "why polling threads did not run",
        needs: "events of ft_user::gap::Poller",
        shown: Shown::Data(|tally| tally.pollers > 0),
        make: |s| Ok(GapsReport::read(s)?.section()),
    },
    Report {
        name: "agreement",
        about: "how often the causes of gaps that are inferred without the kernel are right",
        needs: "events of ft_user::gap::Poller and the kernel groups `sched` and `irq`",
        shown: Shown::Data(|tally| tally.pollers > 0),
        make: |s| Ok(AgreementReport::new(s.tally).section()),
    },
    Report {
        name: "time",
        about: "where all the time of each thread went, and who or what took it",
        needs: SCHEDULER,
        shown: Shown::Data(|tally| tally.kernel),
        make: |s| Ok(TimeReport::read(s)?.section()),
    },
    Report {
        name: "breakdown",
        about: "each process by code, system call, page fault and interrupt; who ended whose waits",
        needs: "the kernel groups `sched` and `syscall`; for page faults `fault`, for interrupts `irq`",
        shown: Shown::With(&["syscall"]),
        make: |s| Ok(BreakdownReport::read(s)?.section()),
    },
    Report {
        name: "scopes",
        about: "where the time of each `scope!` of a program went",
        needs: "scopes of ft_user, and for the parts the kernel group `sched`",
        shown: Shown::Data(has_scopes),
        make: |s| Ok(ScopesReport::read(s)?.section()),
    },
    Report {
        name: "tasks",
        about: "where the time of async tasks went, the longest polls, behind what they queued",
        needs: "tasks of ft_user::task, and for the parts the kernel group `sched`",
        shown: Shown::Recorded(|tally| !tally.tasks.is_none()),
        make: |s| Ok(TasksReport::read(s)?.section()),
    },
    Report {
        name: "functions",
        about: "how often each function was called, and where its own and its total time went",
        needs: "a program compiled with `-finstrument-functions`, and for the parts the kernel group `sched`",
        shown: Shown::Recorded(|tally| !tally.functions.is_none()),
        make: |s| Ok(FunctionsReport::read(s)?.section()),
    },
    Report {
        name: "requests",
        about: "how long requests took, what the slowest waited for, and their critical paths",
        needs: "scopes of ft_user, or events that `--request` names; for the paths the kernel groups `sched` and `irq`",
        shown: Shown::Named,
        make: |s| Ok(RequestsReport::read(s)?.section()),
    },
    Report {
        name: "reactivity",
        about: "how long it took from an interrupt, timer, waking or event to its answer, and why",
        needs: "what `--from` and `--to` name; for interrupts, timers and the paths the kernel groups `sched` and `irq`",
        shown: Shown::Named,
        make: |s| Ok(ReactivityReport::read(s)?.section()),
    },
    Report {
        name: "deadlines",
        about: "which cycles of threads that sleep until times met their deadline, and why not",
        needs: "what `--deadline` names, and the kernel groups `sched` and `irq`",
        shown: Shown::Recorded(|tally| !tally.requests.deadlines.is_empty()),
        make: |s| Ok(DeadlinesReport::read(s)?.section()),
    },
    Report {
        name: "npt",
        about: "how long the passes of `ft-load npt` took, and who or what made peaks",
        needs: "events of `ft-load npt`, and for the causes the kernel groups `sched` and `irq`",
        shown: Shown::Named,
        make: |s| Ok(NptReport::read(s)?.section()),
    },
    Report {
        name: "jobs",
        about: "which deadlines a load met, its responses and their bound, where their time went",
        needs: LOAD,
        shown: Shown::Named,
        make: |s| Ok(JobsReport::read(s)?.section()),
    },
    Report {
        name: "runs",
        about: "when a load's workers had the CPU without a gap, and why that ended",
        needs: LOAD,
        shown: Shown::Named,
        make: |s| Ok(RunsReport::read(s)?.section()),
    },
    Report {
        name: "stacks",
        about: "where in the code threads waited, or lost the CPU, and where they were woken",
        needs: "the kernel group `stack`",
        shown: Shown::With(&["stack"]),
        make: |s| Ok(StacksReport::read(s)?.section()),
    },
    Report {
        name: "profile",
        about: "where in the code threads ran, by function and line, and while they held which lock",
        needs: "the kernel group `profile`; for locks lock events",
        shown: Shown::With(&["profile"]),
        make: |s| Ok(ProfileReport::read(s)?.section()),
    },
    Report {
        name: "switches",
        about: "what switches between a load's workers cost, inferred and by the kernel's records",
        needs: LOAD,
        shown: Shown::Named,
        make: |s| Ok(SwitchesReport::read(s)?.section()),
    },
    Report {
        name: "timers",
        about: "how late a load's sleeping workers ran: the timer, the interrupt, the dispatch",
        needs: LOAD,
        shown: Shown::Named,
        make: |s| Ok(TimersReport::read(s)?.section()),
    },
    Report {
        name: "study",
        about: "how deep locks nest and how long they are held, beside the paper of 2007",
        needs: LOCKS,
        shown: Shown::Named,
        make: |s| Ok(Study::read(s)?.section()),
    },
];
