//! The registry of reports: each answers one question with one section.
//!
//! A report is a struct of figures with `read` (from a trace) and `section` (what it says), in a file of its own, and an
//! entry of the list below. The command line, its help and completions, and JSON follow from the list.

pub mod agreement;
pub mod called;
pub mod dispatch;
pub mod futexes;
pub mod gaps;
pub mod head;
#[cfg(test)]
mod hostile_tests;
pub mod jobs;
pub mod locks;
pub mod npt;
pub mod order;
pub mod preempted;
pub mod profile;
pub mod quality;
pub mod recording;
pub mod request;
pub mod requests;
pub mod runs;
pub mod scopes;
pub mod stacks;
pub mod steal;
pub mod study;
mod summary;
pub mod switches;
#[cfg(test)]
mod tests;
pub mod time;
pub mod timers;
pub mod waits;
pub mod workers;

use ft_analysis::Tally;
use ft_trace::store::{Result, Row, Trace};

use crate::document::{Document, Section};
use crate::stats::Window;
use agreement::AgreementReport;
use dispatch::DispatchReport;
use futexes::FutexesReport;
use gaps::GapsReport;
use head::Head;
use jobs::JobsReport;
use locks::LocksReport;
use npt::NptReport;
use preempted::PreemptedReport;
use profile::ProfileReport;
use request::RequestReport;
use requests::RequestsReport;
use runs::RunsReport;
use scopes::ScopesReport;
use stacks::StacksReport;
use study::Study;
use summary::Answers;
use switches::SwitchesReport;
use time::TimeReport;
use timers::TimersReport;
use waits::WaitsReport;

/// What a report says that can say nothing.
const NO_SCHEDULER: &str =
    "No scheduler records: record with the kernel group `sched` (see `ft-agent doctor`).";

/// A trace that was analysed: what sections are made of.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its tables.
    pub trace: &'a Trace,
    /// The counts of its analysis.
    pub tally: &'a Tally,
    /// What was asked for beyond the name of a report.
    pub asked: Asked,
}

/// What can be asked of reports beyond their name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// The one grouping of a profile; `None`: all.
    pub by: Option<profile::By>,
}

impl Source<'_> {
    /// The time that the trace is of.
    fn window(self) -> Window {
        let meta = self.trace.meta();
        let from_ns = meta.start.window_from_ns.unwrap_or(meta.start.start_ns);
        Window { from_ns, to_ns: meta.end.as_ref().map_or(self.tally.last_ns, |end| end.ts) }
    }

    /// Shows every row of a table.
    fn rows<R: Row>(self, mut to: impl FnMut(R)) -> Result<()> {
        self.trace.rows::<R>().try_for_each(|row| row.map(&mut to))
    }
}

/// A report.
#[derive(Debug)]
pub struct Report {
    /// Its name, on the command line and in JSON.
    pub name: &'static str,
    /// What it answers, in a line that continues "prints …".
    pub about: &'static str,
    /// What must have been recorded.
    pub needs: &'static str,
    /// Is part of a report that names no section.
    pub standard: bool,
    make: fn(Source<'_>) -> Result<Section>,
}

impl Report {
    /// Makes the section.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn section(&self, source: Source<'_>) -> Result<Section> {
        (self.make)(source)
    }
}

/// All reports, in the order in which they are printed.
pub fn all() -> &'static [Report] {
    &REPORTS
}

/// The reports of which nobody named one, and those that these kernel groups were recorded for.
pub fn usual(groups: &[String]) -> impl Iterator<Item = &'static Report> {
    let recorded = move |group: &str| groups.iter().any(|recorded| recorded == group);
    let (futex, stack, profile) = (recorded("futex"), recorded("stack"), recorded("profile"));
    all().iter().filter(move |report| match report.name {
        "futexes" => futex,
        "stacks" => stack,
        "profile" => profile,
        _ => report.standard,
    })
}

/// The report of this name.
pub fn find(name: &str) -> Option<&'static Report> {
    all().iter().find(|report| report.name == name)
}

impl Document {
    /// A document of these reports about a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn of(
        trace: &Trace,
        tally: &Tally,
        reports: impl IntoIterator<Item = &'static Report>,
        asked: Asked,
    ) -> Result<Document> {
        let source = Source { trace, tally, asked };
        let sections = reports.into_iter().map(|report| report.section(source));
        Document::with(source, sections.collect::<Result<_>>()?)
    }

    /// A document about the request of this number; `None` when the trace has none.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn of_request(trace: &Trace, tally: &Tally, number: i64) -> Result<Option<Document>> {
        let source = Source { trace, tally, asked: Asked::default() };
        let report = RequestReport::read(source, number)?;
        report.map(|report| Document::with(source, vec![report.section()])).transpose()
    }

    fn with(source: Source<'_>, sections: Vec<Section>) -> Result<Document> {
        let begin_ns = source.trace.meta().start.start_ns;
        Ok(Document { begin_ns, head: Head::read(source)?.section(), sections })
    }
}

const SCHEDULER: &str = "the kernel group `sched`";
const LOCKS: &str = "lock events: of ft_user::sync, or of pthread locks by --preload";

const LOAD: &str = "`ft-load hourglass`, and for causes the kernel groups `sched` and `irq`";

static REPORTS: [Report; 19] = [
    Report {
        name: "summary",
        about: "a few lines about each question",
        needs: "nothing in particular",
        standard: false,
        make: |s| {
            let answers = Answers {
                locks: LocksReport::read(s)?,
                waits: WaitsReport::read(s)?,
                futexes: FutexesReport::read(s)?,
                preempted: PreemptedReport::read(s)?,
                dispatch: DispatchReport::read(s)?,
                gaps: GapsReport::read(s)?,
                time: TimeReport::read(s)?,
            };
            Ok(answers.section())
        },
    },
    Report {
        name: "locks",
        about: "who held which lock, how deep and for how long, and what happened meanwhile",
        needs: LOCKS,
        standard: true,
        make: |s| Ok(LocksReport::read(s)?.section()),
    },
    Report {
        name: "waits",
        about: "who waited for which lock and who made it wait; lock order and deadlocks",
        needs: LOCKS,
        standard: true,
        make: |s| Ok(WaitsReport::read(s)?.section()),
    },
    Report {
        name: "futexes",
        about: "who waited at which futex or semaphore, and who woke it: any lock of any program",
        needs: "the kernel groups `futex` and `sched`",
        standard: false,
        make: |s| Ok(FutexesReport::read(s)?.section()),
    },
    Report {
        name: "preempted",
        about: "which holders of locks were preempted, by whom, and whom that delayed",
        needs: "lock events and the kernel group `sched`",
        standard: true,
        make: |s| Ok(PreemptedReport::read(s)?.section()),
    },
    Report {
        name: "dispatch",
        about: "how long woken threads waited for a CPU, and behind whom",
        needs: SCHEDULER,
        standard: true,
        make: |s| Ok(DispatchReport::read(s)?.section()),
    },
    Report {
        name: "gaps",
        about: "why polling threads did not run",
        needs: "events of ft_user::gap::Poller",
        standard: true,
        make: |s| Ok(GapsReport::read(s)?.section()),
    },
    Report {
        name: "agreement",
        about: "how often the causes of gaps that are inferred without the kernel are right",
        needs: "events of ft_user::gap::Poller and the kernel groups `sched` and `irq`",
        standard: true,
        make: |s| Ok(AgreementReport::new(s.tally).section()),
    },
    Report {
        name: "time",
        about: "where all the time of each thread went, and who or what took it",
        needs: SCHEDULER,
        standard: true,
        make: |s| Ok(TimeReport::read(s)?.section()),
    },
    Report {
        name: "scopes",
        about: "where the time of each `scope!` of a program went",
        needs: "scopes of ft_user, and for the parts the kernel group `sched`",
        standard: true,
        make: |s| Ok(ScopesReport::read(s)?.section()),
    },
    Report {
        name: "requests",
        about: "how long requests took, what the slowest waited for, and their critical paths",
        needs: "scopes of ft_user, or events that `--request` names; for the paths the kernel groups `sched` and `irq`",
        standard: false,
        make: |s| Ok(RequestsReport::read(s)?.section()),
    },
    Report {
        name: "npt",
        about: "how long the passes of `ft-load npt` took, and who or what made peaks",
        needs: "events of `ft-load npt`, and for the causes the kernel groups `sched` and `irq`",
        standard: false,
        make: |s| Ok(NptReport::read(s)?.section()),
    },
    Report {
        name: "jobs",
        about: "which deadlines a load met, its responses beside their bound, and where their time went",
        needs: LOAD,
        standard: false,
        make: |s| Ok(JobsReport::read(s)?.section()),
    },
    Report {
        name: "runs",
        about: "when a load's workers had the CPU without a gap, and why that ended",
        needs: LOAD,
        standard: false,
        make: |s| Ok(RunsReport::read(s)?.section()),
    },
    Report {
        name: "stacks",
        about: "where in the code threads waited, or lost the CPU, and where they were woken",
        needs: "the kernel group `stack`",
        standard: false,
        make: |s| Ok(StacksReport::read(s)?.section()),
    },
    Report {
        name: "profile",
        about: "where in the code threads ran, by function and line, and what they did while they held a lock",
        needs: "the kernel group `profile`; for locks lock events",
        standard: false,
        make: |s| Ok(ProfileReport::read(s)?.section()),
    },
    Report {
        name: "switches",
        about: "what switches between a load's workers cost, inferred without the kernel and by its records",
        needs: LOAD,
        standard: false,
        make: |s| Ok(SwitchesReport::read(s)?.section()),
    },
    Report {
        name: "timers",
        about: "how late a load's sleeping workers ran: the timer, the interrupt, the dispatch",
        needs: LOAD,
        standard: false,
        make: |s| Ok(TimersReport::read(s)?.section()),
    },
    Report {
        name: "study",
        about: "how deep locks are nested and how long they are held, beside the figures of the paper of 2007",
        needs: LOCKS,
        standard: false,
        make: |s| Ok(Study::read(s)?.section()),
    },
];

#[cfg(test)]
mod registry_tests {
    use super::*;

    #[test]
    fn each_report_has_a_name_of_its_own_and_is_found_by_it() {
        for (i, report) in all().iter().enumerate() {
            let found = find(report.name).expect("it is found");
            assert!(std::ptr::eq(found, report), "{} stands at {i} and before", report.name);
            assert!(!report.about.ends_with('.') && !report.needs.is_empty(), "{}", report.name);
        }
        assert!(find("").is_none());
        assert!(usual(&[]).count() < all().len());
        let groups = ["stack", "profile", "futex"].map(str::to_owned);
        assert_eq!(usual(&groups).count(), usual(&[]).count() + 3);
    }
}
