//! Where in the code threads ran, by samples: of processes, threads, functions and lines, and while they held a lock.
//!
//! A share of samples is a share of time on a CPU, as far as chance allows: beside each stands the interval in which the
//! true share lies with a probability of 99 % (`likely`), for samples that are independent of what the program does. A
//! program that keeps step with the clock is measured wrong by any number of samples.
//!
//! Each grouping has every sample once, so its shares sum to all of them; what is shown beside them that does not (with
//! callees, held at all) says so by its title.

mod samples;

use serde::Serialize;

use super::Input;
use super::stacks::Quality;
use crate::document::{
    Builder, Data, Id, Lock, N, Ns, Of, Place, Section, Share, Table, Thread, Word,
};
use crate::stats::likely;
use crate::text;
use ft_trace::ids::Name;
use ft_trace::store::Result;
use ft_trace::tables::{Part, ThreadTime};

/// Names that are shown beside other groupings; the machine values have all.
const SHOWN: usize = 12;

/// Names that are shown where one grouping was asked for.
const SHOWN_ALONE: usize = 50;

/// By what samples are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Processes of one name.
    Process,
    /// Threads.
    Thread,
    /// Functions, where the thread was itself.
    Function,
    /// Lines of the program, also where they had called the kernel or a library without lines.
    Line,
    /// The lock that the thread had acquired last and held.
    LockHeld,
}

impl By {
    /// All of them.
    pub const ALL: [By; 5] = [By::Process, By::Thread, By::Function, By::Line, By::LockHeld];

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            By::Process => "process",
            By::Thread => "thread",
            By::Function => "function",
            By::Line => "line",
            By::LockHeld => "lock-held",
        }
    }
}

/// The report.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProfileReport {
    /// Samples of a CPU in a second; `None`: there are none.
    pub hz: Option<u32>,
    /// Samples of threads that were recorded.
    pub samples: u64,
    /// Of these, in the kernel.
    pub in_kernel: u64,
    /// Of these, of threads of the agent: the recording's own; null where it is not known who recorded.
    pub of_recording: Option<u64>,
    /// Time on a CPU of these threads by the scheduler's account, ns; `None` without one.
    pub scheduled_ns: Option<i64>,
    /// How far the chains can be believed.
    pub quality: Quality,
    /// By process.
    pub processes: Vec<Row>,
    /// By thread.
    pub threads: Vec<Row>,
    /// By function.
    pub functions: Vec<Row>,
    /// By line.
    pub lines: Vec<Row>,
    /// By the lock that was acquired last, of those that were held; and without any.
    pub innermost: Vec<Row>,
    /// By lock that was held; with several, a sample counts for each.
    pub locks: Vec<Row>,
    /// By lock that was held and function that ran then; shares are of the samples of the lock.
    pub held: Vec<Row>,
    /// By call chain: functions, the outermost first, those of the kernel, too; and samples.
    pub chains: Vec<(Vec<Name>, u64)>,
    #[serde(skip)]
    by: Option<By>,
}

/// Samples of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Of a process, thread, function, line or lock.
    pub name: String,
    /// Of what ran while the lock was held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Program or library of a function; function of a line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// Of a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<i32>,
    /// Samples in it.
    pub samples: u64,
    /// Samples in it and in what it had called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_callees: Option<u64>,
    /// Of so many samples.
    pub of: u64,
    /// The least share that is likely.
    pub at_least: f64,
    /// The largest share that is likely.
    pub at_most: f64,
}

fn row(name: Name, object: Name, samples: u64, of: u64) -> Row {
    let (at_least, at_most) = likely::share(samples, of);
    let (name, object) = (name.to_string(), object.to_string());
    Row { name, object, samples, of, at_least, at_most, ..Row::default() }
}

impl ProfileReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(input: Input<'_>) -> Result<ProfileReport> {
        let mut report = samples::read(input)?;
        report.by = input.asked.by;
        report.hz = input.trace.meta().start.sample_hz;
        report.quality.read(input)?;
        if input.tally.kernel {
            input.rows(|r: ThreadTime| {
                let on_cpu = [Part::Running, Part::Hardirq, Part::Softirq, Part::Vector];
                if on_cpu.contains(&r.part) {
                    *report.scheduled_ns.get_or_insert(0) += r.spent_ns;
                }
            })?;
        }
        Ok(report)
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("profile", "where in the code threads ran");
        match self.hz {
            None => {
                s.say("No samples: record with the kernel group `profile` (`-k default,profile`).")
            }
            Some(_) if self.samples == 0 => s.say("No sample met a thread that was recorded."),
            Some(hz) => self.say(&mut s, hz),
        }
        s.with(self)
    }

    fn say(&self, s: &mut Section, hz: u32) {
        let period = 1_000_000_000 / i64::from(hz.max(1));
        let time = period.saturating_mul(self.samples.try_into().unwrap_or(i64::MAX));
        s.say(text!(
            "{} of a thread on a CPU, one every {}: {} of time; {} of them in the kernel.",
            Of(self.samples, "sample"),
            Ns(period),
            Ns(time),
            Share::of(self.in_kernel, self.samples)
        ));
        if let Some(own) = self.of_recording.filter(|own| *own > 0) {
            s.say(text!(
                "The recording's own among them, of threads of ft-agent: {}.",
                Of(own, "sample")
            ));
        }
        if let Some(scheduled) = self.scheduled_ns {
            s.say(text!(
                "By the scheduler's account these threads had a CPU for {}.",
                Ns(scheduled)
            ));
        }
        s.say("Beside each share: where the true one lies in 99 of 100 cases, unless the program keeps step with the clock.");
        self.quality.say(s);
        let all = self.all();
        match self.by {
            Some(By::LockHeld) if self.locks.is_empty() => s.say(
                "No sample met a thread that held a lock: locks are those of ft_user::sync, or of pthread by --preload.",
            ),
            Some(by) => self.tables(by, SHOWN_ALONE, Some(&all), period).for_each(|t| s.table(t)),
            None => {
                for by in By::ALL.into_iter().filter(|by| self.rows(*by).len() > 1) {
                    self.tables(by, SHOWN, None, period).for_each(|t| s.table(t));
                }
                let time = |n: u64| period.saturating_mul(n.try_into().unwrap_or(i64::MAX));
                let chains = self.chains.iter().map(|(chain, n)| (chain.clone(), time(*n)));
                s.figure("Time on a CPU", Data::Flames { chains: chains.collect() });
            }
        }
    }

    /// The rows of a grouping, whose samples are all of them.
    fn rows(&self, by: By) -> &[Row] {
        match by {
            By::Process => &self.processes,
            By::Thread => &self.threads,
            By::Function => &self.functions,
            By::Line => &self.lines,
            By::LockHeld => &self.innermost,
        }
    }

    /// All samples as a row.
    fn all(&self) -> Row {
        Row {
            with_callees: Some(self.samples),
            ..row("all".into(), "".into(), self.samples, self.samples)
        }
    }

    /// What a grouping has to show, with a row of all its samples if it is given.
    fn tables<'a>(
        &'a self,
        by: By,
        shown: usize,
        all: Option<&'a Row>,
        period: i64,
    ) -> impl Iterator<Item = Table> {
        let first = |rows: &'a [Row]| Table::first(shown, rows);
        let rows = first(self.rows(by)).total(all);
        let table = match by {
            By::Process => {
                shares(rows.counted("names"), "process", period).titled("By name of the process")
            }
            By::Thread => {
                let t = rows.counted("threads").column("thread", |r| Thread::named(&r.name));
                figures(t.column("tid", |r| r.tid.map(Id)), period).titled("By thread")
            }
            By::Function => shares(rows.counted("functions"), "function", period)
                .column("with callees", |r| r.with_callees.map(|n| Share::of(n, r.of)))
                .column("in", |r| Place(&r.object))
                .titled("By function"),
            By::Line => figures(rows.counted("lines").column("line", |r| Place(&r.name)), period)
                .column("in", |r| Word(&r.object))
                .titled("By line"),
            By::LockHeld => {
                let t = rows.counted("locks").column("lock", |r| Lock::named(&r.name));
                let whole = |r: &&Row| self.locks.iter().find(|lock| lock.name == r.name);
                let whole = move |r: &&Row| whole(r).map(|lock| Share::of(lock.samples, lock.of));
                figures(t, period)
                    .column("held at all", whole)
                    .titled("By the lock that was acquired last and held")
            }
        };
        let held = (by == By::LockHeld).then(|| {
            let t = first(&self.held).counted("functions").column("lock", |r| Lock::named(&r.name));
            let t = t.column("function", |r| Word(r.function.as_deref().unwrap_or_default()));
            figures(t, period).titled("What ran while it was held, of that time")
        });
        [table].into_iter().chain(held)
    }
}

fn shares<'a>(t: Builder<&'a Row>, title: &str, period: i64) -> Builder<&'a Row> {
    figures(t.column(title, |r| Word(&r.name)), period)
}

/// Share, its interval, and the time that it stands for.
fn figures(t: Builder<&Row>, period: i64) -> Builder<&Row> {
    const WHOLE: i64 = 1_000_000_000;
    let share = |part: f64| Share((part * WHOLE as f64).round() as i64, WHOLE);
    t.column("share", |r| Share::of(r.samples, r.of))
        .column("at least", move |r| share(r.at_least))
        .column("at most", move |r| share(r.at_most))
        .column("time", move |r| Ns(period.saturating_mul(r.samples as i64)))
        .column("samples", |r| N(r.samples))
}
