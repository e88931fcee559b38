//! Who and what the numbers of a trace are: threads, sites, locks, places.

use std::collections::HashMap;
use std::fmt::Write;

use super::format::{Arg, ArgKind, Template, parse_args};
use super::time::Times;
use crate::render::number::dur;
use ft_analysis::place_text;
use ft_trace::ids::{Name, Pid, SiteId, Tid};
use ft_trace::store::{Result, Trace};
use ft_trace::tables::{
    NameKind, NameRow, SiteKind, SiteRow, SymbolKind, SymbolRow, ThreadRow, UserEvent,
};

/// How the events of a site are put into words.
#[derive(Debug)]
enum Words {
    /// By the format string, or by the names of the arguments.
    Template,
    /// `name at place`: a lock event, which tells its place by numbers of names, or by the address that
    /// the call returns to.
    Lock { by_address: bool },
    /// `number name at place`: a task, which tells its place by numbers of names.
    Task,
    /// A gap in a polling loop: how long.
    Gap,
    /// The function that begins at the address in its first argument.
    Function,
}

/// A site.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) row: SiteRow,
    /// `begin ` or `end ` of a scope, `call ` or `return ` of a function, else empty.
    prefix: &'static str,
    words: Words,
    template: Template,
}

impl Site {
    fn new(row: SiteRow) -> Site {
        let args = parse_args(&row.args);
        let words = match row.kind {
            _ if !row.format.is_empty() => Words::Template,
            SiteKind::PollGap => Words::Gap,
            kind if kind.has_task() => Words::Task,
            kind if kind.is_function()
                && args.first().is_some_and(|arg| arg.kind == ArgKind::Pointer) =>
            {
                Words::Function
            }
            kind if kind.has_lock() => match args.get(1).map(|arg| arg.kind) {
                Some(ArgKind::Unsigned) => Words::Lock { by_address: false },
                Some(ArgKind::Pointer) => Words::Lock { by_address: true },
                _ => Words::Template,
            },
            _ => Words::Template,
        };
        let prefix = match row.kind {
            SiteKind::ScopeBegin => "begin ",
            SiteKind::ScopeEnd => "end ",
            SiteKind::FunctionEnter | SiteKind::FunctionCalled => "call ",
            SiteKind::FunctionExit => "return ",
            _ => "",
        };
        let template = match &*row.format {
            "" => Template::plain(args),
            format => Template::parse(format, args),
        };
        Site { row, prefix, words, template }
    }

    /// Of a lock event, whether lock and place are addresses, as in a program that is traced unmodified, or the place is
    /// told by the numbers of names.
    pub(crate) fn by_address(&self) -> Option<bool> {
        match self.words {
            Words::Lock { by_address } => Some(by_address),
            _ => None,
        }
    }

    /// Names and types of the arguments.
    pub(crate) fn args(&self) -> &[Arg] {
        self.template.args()
    }
}

/// What a listing must know of a trace.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) threads: Vec<ThreadRow>,
    by_thread: HashMap<(Pid, Tid), usize>,
    /// Where the process is not known; the newest of several threads that had the id, by the kernel's account:
    /// a program may tell any.
    by_tid: HashMap<Tid, usize>,
    sites: HashMap<SiteId, Site>,
    /// By registration and number, as for places.
    locks: HashMap<(i32, i32), Name>,
    places: HashMap<(i32, i32), Name>,
    /// By address of a lock, and by return address.
    symbols: HashMap<(Pid, i64), Name>,
    /// By the address at which they begin.
    functions: HashMap<(Pid, i64), Name>,
}

impl Names {
    /// Reads the tables that events refer to.
    pub(crate) fn read(trace: &Trace) -> Result<Names> {
        let threads: Vec<ThreadRow> = trace.rows().collect::<Result<_>>()?;
        let mut names = Names {
            by_thread: threads.iter().zip(0..).map(|(t, i)| ((t.pid, t.tid), i)).collect(),
            by_tid: threads
                .iter()
                .zip(0..)
                .filter(|(t, _)| t.prio.is_some())
                .map(|(t, i)| (t.tid, i))
                .collect(),
            threads,
            sites: HashMap::new(),
            locks: HashMap::new(),
            places: HashMap::new(),
            symbols: HashMap::new(),
            functions: HashMap::new(),
        };
        for row in trace.rows::<SiteRow>() {
            let row = row?;
            names.sites.insert(row.site, Site::new(row));
        }
        for row in trace.rows::<NameRow>() {
            let row = row?;
            match row.kind {
                NameKind::Name => names.locks.insert((row.source, row.id), row.text),
                NameKind::Place => names
                    .places
                    .insert((row.source, row.id), format!("{}:{}", row.text, row.line).into()),
            };
        }
        // A trace of an earlier version lacks it.
        if trace.has::<SymbolRow>() {
            for row in trace.rows::<SymbolRow>() {
                let row = row?;
                let at = (row.pid, row.address);
                match row.kind {
                    SymbolKind::Lock => names.symbols.insert(at, row.symbol),
                    SymbolKind::Call => names.symbols.insert(at, place_text(&row).into()),
                    SymbolKind::Function => names.functions.insert(at, place_text(&row).into()),
                };
            }
        }
        Ok(names)
    }

    /// Name of a thread; empty when it is not known.
    pub(crate) fn thread(&self, pid: Option<Pid>, tid: Tid) -> &str {
        let known = pid.and_then(|pid| self.by_thread.get(&(pid, tid)));
        match known.or_else(|| self.by_tid.get(&tid)) {
            _ if tid.0 == 0 => "idle",
            Some(&i) => &self.threads[i].name,
            None => "",
        }
    }

    /// The newest thread with this number, by the kernel's account.
    pub(crate) fn newest(&self, tid: Tid) -> Option<&ThreadRow> {
        self.by_tid.get(&tid).map(|&i| &self.threads[i])
    }

    /// Name of a process; empty when it is not known.
    pub(crate) fn process(&self, pid: Pid) -> &str {
        let main = self.by_thread.get(&(pid, Tid(pid.0)));
        main.map_or("", |&i| &self.threads[i].process)
    }

    /// Appends `name/tid`.
    pub(crate) fn write_thread(&self, pid: Option<Pid>, tid: Tid, out: &mut String) {
        write_thread(self.thread(pid, tid), tid, out);
    }

    /// All sites.
    pub(crate) fn sites(&self) -> impl Iterator<Item = &Site> {
        self.sites.values()
    }

    /// A site; `None` for one that the trace does not describe.
    pub(crate) fn site(&self, id: SiteId) -> Option<&Site> {
        self.sites.get(&id)
    }

    /// Names of locks, by registration and number.
    pub(crate) fn locks(&self) -> impl Iterator<Item = (i32, i32, &Name)> {
        self.locks.iter().map(|(&(source, id), name)| (source, id, name))
    }

    /// Places in the source, by registration and number.
    pub(crate) fn places(&self) -> impl Iterator<Item = (i32, i32, &Name)> {
        self.places.iter().map(|(&(source, id), name)| (source, id, name))
    }

    /// Locks and places of programs that are traced unmodified, by process and address.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = (Pid, i64, &Name)> {
        self.symbols.iter().map(|(&(pid, address), name)| (pid, address, name))
    }

    /// What `ft_user::layout::place_word` puts together.
    fn name_and_place(&self, site: &Site, word: i64) -> (Option<&Name>, Option<&Name>) {
        let (source, place, name) = (site.row.source, word as i32, (word as u64 >> 32) as i32);
        (self.locks.get(&(source, name)), self.places.get(&(source, place)))
    }

    /// Appends what an application's event says.
    pub(crate) fn write_user(&self, event: &UserEvent, times: Times, out: &mut String) {
        let Some(site) = self.site(event.site) else { return };
        out.push_str(site.prefix);
        match (&site.words, event.arg[0], event.arg[1]) {
            (&Words::Lock { by_address }, Some(lock), Some(word)) => {
                let (name, place) = if by_address {
                    let symbol = |address| self.symbols.get(&(event.pid, address));
                    (symbol(lock), symbol(word))
                } else {
                    self.name_and_place(site, word)
                };
                write_lock(event, site, (lock, name), place, out);
            }
            (Words::Task, Some(task), Some(word)) => {
                let (name, place) = self.name_and_place(site, word);
                // Writing into a `String` does not fail.
                let _ = write!(out, "{task}");
                for (before, text) in [(" ", name), (" at ", place)] {
                    if let Some(text) = text {
                        let _ = write!(out, "{before}{text}");
                    }
                }
            }
            (Words::Function, Some(function), _) => {
                match self.functions.get(&(event.pid, function)) {
                    Some(name) => out.push_str(name),
                    // Writing into a `String` does not fail.
                    None => drop(write!(out, "{function:#x}")),
                }
            }
            (Words::Gap, Some(before), Some(after)) => {
                out.push_str(&dur(after.saturating_sub(before)));
            }
            _ => site.template.write(event, times, out),
        }
    }
}

/// `accounts at src/main.rs:7`, with what is known of it, and the condition of a condition wait.
fn write_lock(
    event: &UserEvent,
    site: &Site,
    (lock, name): (i64, Option<&Name>),
    place: Option<&Name>,
    out: &mut String,
) {
    // Writing into a `String` does not fail.
    let _ = match name {
        Some(name) => out.write_str(name),
        None => write!(out, "{lock:#x}"),
    };
    if let Some(place) = place {
        let _ = write!(out, " at {place}");
    }
    for (arg, word) in site.args().iter().zip(event.arg).skip(2) {
        if let Some(word) = word {
            let _ = write!(out, ", {} {word:#x}", arg.name);
        }
    }
}

/// Appends `name/tid`; `idle` for the idle task, and `-` where there is no thread.
pub(crate) fn write_thread(name: &str, tid: Tid, out: &mut String) {
    // Writing into a `String` does not fail.
    let _ = match tid.0 {
        0 => out.write_str("idle"),
        ..0 => out.write_char('-'),
        _ => write!(out, "{name}/{tid}"),
    };
}
