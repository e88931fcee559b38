//! What the workers of `ft-load hourglass` and the loop of `ft-load npt` say, by the names of their events.
//!
//! The lists with their arguments are in the documentation of `ft_load::hourglass` and `ft_load::npt`. Any program may write such events, and
//! anything in them.

use ft_trace::tables::SiteKind;

/// What an event of a load says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadEvent {
    /// Number, workload, timer.
    Worker,
    /// Policy, priority, slice.
    Class,
    /// Amount, period, soft.
    Reserved,
    /// Start, finish, the only CPU or -1.
    Span,
    /// Amount, period; 0: none.
    Demand,
    /// The longest response by analysis.
    Bound,
    /// The first reading of the counter.
    First,
    /// The last one.
    Last,
    /// A job begins: number, start, release or 0.
    Job,
    /// A job is over, if not for having had its time.
    JobOver,
    /// A job has had its time: number, when.
    Finish,
    /// It goes to sleep: until when.
    Sleep,
    /// It has slept: until when it wanted to, and when it looked at the clock.
    Woke,
    /// It yields the CPU.
    Yield,
    /// It is done: runs, jobs, sleeps.
    Done,
    /// What a loop says.
    Loop(LoopEvent),
}

/// What an event of a loop says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopEvent {
    /// It begins: passes, cycles of one, frequency of the counter.
    Begin,
    /// The gap before was a peak: the pass.
    Peak,
    /// It is over: passes, peaks.
    End,
    /// A bin of its histogram: from, to, passes.
    Bin,
}

impl LoadEvent {
    /// What the events of a site say.
    pub(crate) fn of(event: &str, kind: SiteKind) -> Option<LoadEvent> {
        use LoadEvent::*;
        if let Some(name) = event.strip_prefix("npt.") {
            return LoopEvent::of(name, kind).map(Loop);
        }
        let name = event.strip_prefix("hourglass.")?;
        match kind {
            SiteKind::ScopeBegin => (name == "job").then_some(Job),
            SiteKind::ScopeEnd => (name == "job").then_some(JobOver),
            SiteKind::Event => Some(match name {
                "worker" => Worker,
                "class" => Class,
                "reserved" => Reserved,
                "span" => Span,
                "demand" => Demand,
                "bound" => Bound,
                "first" => First,
                "last" => Last,
                "finish" => Finish,
                "sleep" => Sleep,
                "woke" => Woke,
                "yield" => Yield,
                "done" => Done,
                _ => return None,
            }),
            _ => None,
        }
    }
}

impl LoopEvent {
    fn of(name: &str, kind: SiteKind) -> Option<LoopEvent> {
        match name {
            _ if kind != SiteKind::Event => None,
            "begin" => Some(LoopEvent::Begin),
            "peak" => Some(LoopEvent::Peak),
            "end" => Some(LoopEvent::End),
            "bin" => Some(LoopEvent::Bin),
            _ => None,
        }
    }
}
