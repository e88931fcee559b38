//! Why a subcommand failed, and the exit status that tells it.

use std::io::{self, Write as _};
use std::path::PathBuf;

use ft_agent::collect::kernel::UnknownGroup;
use ft_agent::control::ControlError;
use ft_agent::control::socket::Answer;
use ft_agent::flight::FlightError;
use ft_agent::live::LiveError;
use ft_agent::record::{CutShort, RecordError};
use ft_agent::signals;
use ft_catalogue::CatalogueError;
use ft_report::export::ExportError;
use ft_report::listing::ListingError;
use ft_report::sections;
use ft_trace::convert::ConvertError;
use ft_trace::store::StoreError;

/// Why a subcommand failed: one sentence that ends in the remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// Standard output takes no more.
    #[error("cannot write the output: {0}; check where it goes")]
    Output(#[from] io::Error),
    /// A file cannot be written.
    #[error("cannot write {}: {source}; name a file in a directory that you may write to", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The agent cannot run where it was told to.
    #[error(
        "the agent cannot keep to CPUs {cpus:?}: {source}; name some of those that /sys/devices/system/cpu/online lists"
    )]
    AgentCpus {
        /// Where.
        cpus: Vec<u32>,
        /// Why.
        source: io::Error,
    },
    /// No trace was named, and none is here.
    #[error(
        "no directory was named, and here is no trace, trace-2 or the like; name one, or record one: `ft-agent record -- CMD`"
    )]
    NoTrace,
    /// A trace cannot be exported.
    #[error("cannot write {}: {source}; name what does not exist yet, in a directory that you may write to", .path.display())]
    Export {
        /// Where to.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The trace lacks what the format is made of.
    #[error(transparent)]
    NothingToExport(ExportError),
    /// A catalogue cannot be read or written.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A trace is whole, and not in the catalogue.
    #[error("{source}; the trace is whole in {0}: after that, run `{again}`", .trace.display())]
    NotBrought {
        /// The trace.
        trace: PathBuf,
        /// The command that brings it.
        again: String,
        /// Why.
        source: CatalogueError,
    },
    /// `--only` of a trace that is in no catalogue.
    #[error(
        "--only is for traces of a catalogue; leave it out, and all tables of results are made"
    )]
    OnlyOfCatalogue,
    /// Of these intervals nobody wrote who had the CPU.
    #[error(
        "a {0} names no thread that had the CPU meanwhile; ask of hold, dispatch, gap or scope by neighbour"
    )]
    NoNeighbour(&'static str),
    /// A trace of a catalogue cannot be analysed; said of the trace, and not of the copy that was worked on.
    #[error("{0}")]
    OfCopy(String),
    /// There is no such table of results.
    #[error("'{0}' is no table of results; they are {tables}", tables = ft_report::analyze::RESULT_TABLES.join(", "))]
    NoResult(String),
    /// Of several traces, some could not be dealt with; why was said.
    #[error("{failed} of {of} traces failed, as said above; give those again when that is mended")]
    Some {
        /// How many.
        failed: usize,
        /// Of how many.
        of: usize,
    },
    /// A trace cannot be read, or its results cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A spool cannot be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// Nothing was recorded, or not to the end.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The spool could not be written any more; what was recorded until then has been converted.
    #[error("{0}; the trace ends there: {remedy} before you record again", remedy = .0.error.remedy())]
    CutShort(CutShort),
    /// A recording is whole, its conversion is not.
    #[error(
        "the recording is complete, but its conversion is not: {source}; after that, run \
         `ft-agent convert {}`", .trace.display()
    )]
    Unconverted {
        /// The trace.
        trace: PathBuf,
        /// Why.
        source: ConvertError,
    },
    /// A report has no section of this name.
    #[error("there is no section '{0}'; the sections of a report are {names}", names = names())]
    UnknownSection(String),
    /// There can be no such request.
    #[error(transparent)]
    Request(ft_analysis::NoRequest),
    /// Not as many keys as requests.
    #[error(
        "there are {0} of --key for {1} of --request and --from; give one for all of them, or one for each"
    )]
    Keys(usize, usize),
    /// A key of nothing.
    #[error(
        "--key names an argument of the events of --request, or of --from and --to; give these"
    )]
    KeyAlone,
    /// A reaction with one end.
    #[error(
        "a reaction has a cause and an answer; give both, as in `--from 'irq:eth*' --to event:msg.received`"
    )]
    HalfReaction,
    /// A window of nothing.
    #[error(
        "the times of --from and --to are those of a page's timeline; add --html FILE, or name a cause and an answer"
    )]
    WindowWithoutPage,
    /// One request is shown alone.
    #[error("--of shows one request and nothing else; name no other section than requests")]
    OfRequest,
    /// The trace has no such request.
    #[error(
        "the trace has no request {0}; `ft-agent report DIR requests` shows the numbers of the slowest"
    )]
    NoRequest(i64),
    /// No thread of a deadline has cycles.
    #[error(
        "no cycle of {0} was recorded, so nothing is known of it; name a thread that sleeps until times again and again, by nanosleep, \
         clock_nanosleep or a timerfd"
    )]
    NoCycle(String),
    /// `--deadline` without what it looks at.
    #[error("`--deadline` needs the switches of the kernel; add sched and irq to -k")]
    DeadlineWithoutSwitches,
    /// `--by` without the report that it groups.
    #[error("`--by` groups the samples of a profile: name the section `profile`, too")]
    ByWithoutProfile,
    /// No trace has a table of this name.
    #[error("there is no table '{0}'; `ft-agent tables` lists them all")]
    UnknownTable(String),
    /// A table has no column of this name.
    #[error(
        "the table {table} has no column '{column}'; `ft-agent tables {table}` lists its columns"
    )]
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "a query asks for columns"))]
    UnknownColumn {
        /// The table.
        table: &'static str,
        /// What was taken for one of its columns.
        column: String,
    },
    /// `--kernel` names what is no group.
    #[error(transparent)]
    UnknownGroup(#[from] UnknownGroup),
    /// `--when dispatch` and others without what they look at.
    #[error(
        "`--when` with dispatch, preempted, blocked or missed needs the switches of the kernel; add sched to -k"
    )]
    TriggerWithoutSwitches,
    /// The flight recorder with what has no window.
    #[error(
        "the group section counts from the begin of a recording to its end, and has no counts of a flight recorder's window; \
         leave it out of -k, or record without --flight-recorder"
    )]
    SectionsOfWindow,
    /// The flight recorder cannot clean up.
    #[error(transparent)]
    Flight(#[from] FlightError),
    /// The flight recorder ended without its last snapshot.
    #[error("the last snapshot could not be made; `ft-agent convert {}` makes a trace of what is left", .0.display())]
    NoLastSnapshot(PathBuf),
    /// No snapshot of a running recorder.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A recording of another version answers what was not asked.
    #[error("the recording answered {0}; use the `ft-agent` that records")]
    Answered(String),
    /// Sites of a running process cannot be listed or switched.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// Nothing more can be watched.
    #[error(transparent)]
    Top(#[from] ft_agent::top::TopError),
    /// It is for a terminal, whose library was left out.
    #[cfg(not(feature = "top"))]
    #[error(
        "`top` is not in this ft-agent, which was built for a first look; build one that has it with `cargo install --path ft-agent`"
    )]
    TopNotBuilt,
    /// There is nothing to draw on.
    #[cfg(feature = "top")]
    #[error(
        "`ft-agent top` draws on a terminal, and this is none; add --json for a line of JSON a second, or use `ft-agent record`"
    )]
    NoTerminal,
    /// There is no such listing.
    #[error(transparent)]
    Listing(ListingError),
    /// `compare` has not two sides.
    #[error(
        "`compare` compares two sides, and {0} DIR without --against names another number; write `ft-agent compare A B`, \
         or `ft-agent compare A1 A2 … --against B1 B2 …`"
    )]
    NotTwoSides(usize),
    /// `compare` has a trace twice.
    #[error("{} is given twice, and would be compared with itself; give each trace once", .0.display())]
    GivenTwice(PathBuf),
    /// A section contradicts itself.
    #[error("{0}")]
    Fault(String),
}

/// Of all sections.
fn names() -> String {
    sections::all().iter().map(|section| section.name).collect::<Vec<_>>().join(", ")
}

impl From<ListingError> for CommandError {
    fn from(error: ListingError) -> Self {
        match error {
            ListingError::Write(error) => CommandError::Output(error),
            error => CommandError::Listing(error),
        }
    }
}

impl From<serde_json::Error> for CommandError {
    /// Of writing: nothing that is printed has a form that JSON lacks.
    fn from(error: serde_json::Error) -> Self {
        CommandError::Output(error.into())
    }
}

impl CommandError {
    /// Of a recording that gives the answer to another request.
    pub(crate) fn unexpected(answer: &Answer) -> CommandError {
        CommandError::Answered(format!("{answer:?}"))
    }

    /// The reader of the output has seen enough, as in `ft-agent … | head`: no failure.
    pub(crate) fn is_reader_gone(&self) -> bool {
        matches!(self, CommandError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Says it on standard error, unless nobody is there to be told.
    pub(crate) fn say(&self) {
        if !self.is_reader_gone() {
            // When stderr is gone, too, nobody is left to read it.
            let _ = writeln!(io::stderr(), "ft-agent: {self}");
        }
    }

    /// 128 and the signal where that ended the command, as a shell tells it; 2 for what cannot be asked; 126 and 127
    /// for a command that cannot be run, as of env(1); else 1.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            CommandError::Store(StoreError::Interrupted(_)) => {
                u8::try_from(128 + signals::came()).unwrap_or(1)
            }
            CommandError::Record(error) if error.is_usage() => 2,
            CommandError::Record(RecordError::Command { source, .. }) => {
                if source.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
            }
            // As for whatever else cannot be asked.
            CommandError::UnknownSection(_)
            | CommandError::AgentCpus { .. }
            | CommandError::NoTrace
            | CommandError::TriggerWithoutSwitches
            | CommandError::DeadlineWithoutSwitches
            | CommandError::ByWithoutProfile
            | CommandError::UnknownTable(_)
            | CommandError::UnknownColumn { .. }
            | CommandError::UnknownGroup(_)
            | CommandError::Request(_)
            | CommandError::Keys(..)
            | CommandError::KeyAlone
            | CommandError::OnlyOfCatalogue
            | CommandError::NoResult(_)
            | CommandError::NoNeighbour(_)
            | CommandError::HalfReaction
            | CommandError::WindowWithoutPage
            | CommandError::OfRequest
            | CommandError::NotTwoSides(_)
            | CommandError::GivenTwice(_)
            | CommandError::SectionsOfWindow => 2,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reader_that_has_gone_is_no_failure() {
        let output = |kind: io::ErrorKind| CommandError::from(io::Error::from(kind));
        assert!(output(io::ErrorKind::BrokenPipe).is_reader_gone());
        assert!(!output(io::ErrorKind::StorageFull).is_reader_gone());
        let listing = ListingError::Write(io::ErrorKind::BrokenPipe.into());
        assert!(CommandError::from(listing).is_reader_gone());
        // A socket or a spool whose other side is gone is one.
        let source = io::ErrorKind::BrokenPipe.into();
        let store = StoreError::Io { action: "write", path: "gaps".into(), source };
        assert!(!CommandError::from(store).is_reader_gone());
    }

    #[test]
    fn json_for_a_reader_that_has_gone() {
        struct Gone;
        impl io::Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let error = serde_json::to_writer_pretty(Gone, &[1]).unwrap_err();
        assert!(CommandError::from(error).is_reader_gone());
    }

    #[test]
    fn a_sentence_ends_in_the_remedy() {
        let source = ConvertError::NotARecording("there".into());
        let error = CommandError::Unconverted { trace: "here".into(), source }.to_string();
        assert!(error.starts_with("the recording is complete"), "{error}");
        assert!(error.contains("there holds no recording"), "{error}");
        assert!(error.ends_with("run `ft-agent convert here`"), "{error}");
    }
}
