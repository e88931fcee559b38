//! What the analyses must know before the first event: who is observed, and what sites and numbers mean.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::load_event::LoadEvent;
use crate::requests::{RequestKind, Role};
use ft_trace::event::LeanFutex;
use ft_trace::ids::{Name, Pid, SiteId, ThreadKey, Tid};
use ft_trace::tables::{NameKind, NameRow, SiteKind, SiteRow, SymbolKind, SymbolRow, ThreadRow};

/// What a site means to the analyses.
#[derive(Clone, Debug)]
pub struct Site {
    pub(crate) kind: SiteKind,
    /// `category.name`.
    pub(crate) event: Name,
    /// `mutex`, `rwlock-read`, …; of other sites, empty.
    pub(crate) lock_kind: Name,
    /// What a load says by it.
    pub(crate) load: Option<LoadEvent>,
    /// What it is to the requests that were asked for.
    pub(crate) roles: Vec<Role>,
    /// Whose events it makes.
    pub(crate) program: Program,
    /// The registration whose numbers of names and places its events carry.
    pub(crate) source: i32,
    /// Since when it is on ([`SiteRow::on_ns`]).
    pub(crate) on_ns: Option<i64>,
    /// Its place is a return address ([`SiteKind`]).
    has_caller: bool,
    /// Its events begin with the address of a function.
    pub(crate) has_function: bool,
    /// Where it is itself, if its events are of tasks or of functions and tell no place.
    pub(crate) at: Option<Name>,
}

/// A program of a process, as [`SiteRow`] tells it: of those with one number of a process the greater came later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Program {
    /// When its process began.
    pub(crate) started: i64,
    /// How many the process had executed before.
    pub(crate) number: i32,
}

/// Largest site number that is accepted; the table has one row for each place in the source of a program.
///
/// Limit: events of further ones are not analysed, counted (`unknown_sites`), and every report warns.
/// Shown by: `events_of_sites_that_nobody_knows_are_counted`.
const MAX_SITES: usize = 1 << 20;

/// Names that are kept for locks without one; then the cache starts anew.
///
/// Limit: nothing: the cache starts empty again.
/// Shown by: `any_number_of_addresses_has_its_names`.
const MAX_HEX_NAMES: usize = 1 << 16;

/// Facts of a trace.
#[derive(Debug)]
pub struct Context {
    /// Scheduler records were recorded: intervals can be decomposed.
    pub(crate) kernel: bool,
    /// Largest error of a user time, ns.
    pub(crate) clock_bound_ns: i64,
    /// The process that recorded, if it is known.
    pub(crate) agent: Option<Pid>,
    /// From sample to sample of a CPU, ns, if there are any.
    pub(crate) sample_ns: Option<i64>,
    observed: HashSet<Pid>,
    comms: HashMap<ThreadKey, Name>,
    /// Of the threads that the kernel named: no program tells their numbers.
    newest: HashMap<Tid, ThreadKey>,
    /// Requests that were asked for, and what they are called.
    asked: Vec<RequestKind>,
    request_names: Vec<Name>,
    sites: Vec<Option<Site>>,
    /// By registration and number, as for places.
    lock_names: HashMap<(i32, i32), Name>,
    places: HashMap<(i32, i32), Name>,
    /// By return address, and by address of a lock.
    symbols: HashMap<(Pid, i64), Name>,
    /// Name and place by the address of a function.
    functions: HashMap<(Pid, i64), (Name, Name)>,
    hex_names: RefCell<HashMap<i64, Name>>,
    empty: Name,
}

impl Context {
    /// A context of a trace with (`kernel`) or without scheduler records, whose user times are right within
    /// `clock_bound_ns`.
    pub fn new(
        kernel: bool,
        clock_bound_ns: i64,
        threads: &[ThreadRow],
        sites: &[SiteRow],
        names: &[NameRow],
    ) -> Self {
        let empty: Name = "".into();
        let mut context = Context {
            kernel,
            clock_bound_ns,
            agent: None,
            sample_ns: None,
            observed: HashSet::new(),
            comms: HashMap::new(),
            newest: HashMap::new(),
            asked: Vec::new(),
            request_names: Vec::new(),
            sites: Vec::new(),
            lock_names: HashMap::new(),
            places: HashMap::new(),
            symbols: HashMap::new(),
            functions: HashMap::new(),
            hex_names: RefCell::default(),
            empty,
        };
        context.learn(clock_bound_ns, threads, sites, names);
        context
    }

    /// Adds what is known later; the larger bound and the newer name count.
    pub(crate) fn learn(
        &mut self,
        clock_bound_ns: i64,
        threads: &[ThreadRow],
        sites: &[SiteRow],
        names: &[NameRow],
    ) {
        self.clock_bound_ns = self.clock_bound_ns.max(clock_bound_ns);
        self.observed.extend(threads.iter().filter(|t| t.observed).map(|t| t.pid));
        let key = |t: &ThreadRow| ThreadKey { pid: t.pid, tid: t.tid };
        self.comms.extend(threads.iter().map(|t| (key(t), t.name.clone())));
        let by_kernel = threads.iter().filter(|t| t.prio.is_some());
        self.newest.extend(by_kernel.map(|t| (t.tid, key(t))));
        sites.iter().for_each(|s| self.add_site(s));
        for n in names {
            match n.kind {
                NameKind::Name => self.lock_names.insert((n.source, n.id), n.text.clone()),
                NameKind::Place => {
                    let text = format!("{}:{}", n.text, n.line);
                    self.places.insert((n.source, n.id), Arc::from(text))
                }
            };
        }
    }

    /// Adds which process recorded.
    pub fn with_agent(self, agent: Option<Pid>) -> Self {
        Context { agent, ..self }
    }

    /// Adds how often each CPU was sampled in a second, if it was.
    pub fn with_samples(self, hz: Option<u32>) -> Self {
        let sample_ns = hz.filter(|hz| *hz > 0).map(|hz| 1_000_000_000 / i64::from(hz));
        Context { sample_ns, ..self }
    }

    /// Adds which requests somebody asks for; of a site, what it is to them.
    pub fn with_requests(mut self, asked: Vec<RequestKind>, sites: &[SiteRow]) -> Self {
        self.request_names = asked.iter().map(|kind| kind.name().into()).collect();
        self.asked = asked;
        sites.iter().for_each(|s| self.add_site(s));
        self
    }

    /// Adds what the addresses in events are.
    pub fn with_symbols(mut self, symbols: &[SymbolRow]) -> Self {
        for s in symbols {
            let at = (s.pid, s.address);
            match s.kind {
                SymbolKind::Lock => drop(self.symbols.insert(at, s.symbol.clone())),
                SymbolKind::Call => drop(self.symbols.insert(at, place_text(s).into())),
                SymbolKind::Function => drop(self.functions.insert(at, function_text(s))),
            }
        }
        self
    }

    fn add_site(&mut self, row: &SiteRow) {
        let Some(i) = usize::try_from(row.site.0).ok().filter(|&i| i < MAX_SITES) else { return };
        if i >= self.sites.len() {
            self.sites.resize(i + 1, None);
        }
        let is_pointer =
            |n| row.args.split(", ").nth(n).is_some_and(|arg| arg.ends_with(":pointer"));
        let (has_caller, has_function) = (is_pointer(1), is_pointer(0) && row.kind.is_function());
        let (event, lock_kind) = (row.event.clone(), lock_kind(&row.event).into());
        let load = LoadEvent::of(&row.event, row.kind);
        let asked = self.asked.iter().enumerate();
        let roles: Vec<Role> = asked.filter_map(|(i, asked)| asked.role(row, i)).collect();
        let (kind, source) = (row.kind, row.source);
        let program = Program { started: row.started, number: row.program };
        let tells_no_place = row.kind.is_of_task() && !row.args.contains(", ")
            || row.kind.is_function() && !has_function;
        let at = tells_no_place.then(|| format!("{}:{}", row.file, row.line).into());
        let site = Site {
            kind,
            event,
            lock_kind,
            load,
            roles,
            program,
            source,
            on_ns: row.on_ns,
            has_caller,
            has_function,
            at,
        };
        self.sites[i] = Some(site);
    }

    /// The requests that somebody asks for.
    pub(crate) fn asked(&self) -> &[RequestKind] {
        &self.asked
    }

    /// What those requests are called: the column `kind`.
    pub(crate) fn request_name(&self, asked: usize) -> &Name {
        &self.request_names[asked]
    }

    /// Scheduler records were recorded: what threads did is known.
    pub fn has_kernel(&self) -> bool {
        self.kernel
    }

    /// The threads of `pid` are observed.
    pub(crate) fn observes(&self, pid: Pid) -> bool {
        pid.0 > 0 && self.observed.contains(&pid)
    }

    /// Something that `pid` recorded itself was seen, so it is observed.
    pub(crate) fn observe(&mut self, pid: Pid) {
        self.observed.insert(pid);
    }

    /// What `site` is, if the table knows it.
    pub(crate) fn site(&self, site: SiteId) -> Option<&Site> {
        self.sites.get(usize::try_from(site.0).ok()?)?.as_ref()
    }

    /// Newest name of a thread; empty when it was never seen.
    pub(crate) fn comm(&self, thread: ThreadKey) -> Name {
        self.comms.get(&thread).unwrap_or(&self.empty).clone()
    }

    /// The newest thread with this number that the kernel has recorded.
    pub(crate) fn newest(&self, tid: Tid) -> Option<ThreadKey> {
        match tid.0 {
            0 => Some(ThreadKey { pid: Pid(0), tid }),
            _ => self.newest.get(&tid).copied(),
        }
    }

    /// Name of a lock, from the place of its acquisition at `site`; its address when it has none.
    pub(crate) fn lock_name(&self, pid: Pid, lock: i64, site: SiteId, word: i64) -> Name {
        let known = self.site(site).and_then(|site| match site.has_caller {
            true => self.symbols.get(&(pid, lock)),
            false => self.lock_names.get(&(site.source, (word as u64 >> 32) as i32)),
        });
        known.cloned().unwrap_or_else(|| self.hex_name(lock))
    }

    /// Name of a task, from its making or a poll at `site`; empty when it has none.
    pub(crate) fn task_name(&self, site: SiteId, word: i64) -> Name {
        let source = self.site(site).map(|site| site.source);
        let known =
            source.and_then(|source| self.lock_names.get(&(source, (word as u64 >> 32) as i32)));
        known.unwrap_or(&self.empty).clone()
    }

    /// Name and place of the function that begins at an address; the address when it has no name.
    pub(crate) fn function(&self, pid: Pid, address: i64) -> (Name, Name) {
        let known = self.functions.get(&(pid, address)).cloned();
        known.unwrap_or_else(|| (self.hex_name(address), self.empty.clone()))
    }

    /// An address as a name.
    fn hex_name(&self, address: i64) -> Name {
        let mut hex_names = self.hex_names.borrow_mut();
        if hex_names.len() >= MAX_HEX_NAMES {
            hex_names.clear();
        }
        hex_names.entry(address).or_insert_with(|| format!("{address:#x}").into()).clone()
    }

    /// Name of what a call about a futex is about: the variable at its address, or the address; the semaphore.
    pub(crate) fn futex_name(&self, call: &LeanFutex) -> Name {
        let LeanFutex { pid, address, kind, .. } = *call;
        if kind.is_semaphore() {
            let (number, set) = (address as u64 >> 32, address as u32 as i32);
            return format!("semaphore {number} of set {set}").into();
        }
        self.symbols.get(&(pid, address)).cloned().unwrap_or_else(|| self.hex_name(address))
    }

    /// Place of an acquisition at `site`: in the source, or the function that a return address belongs to;
    /// empty when not known.
    pub(crate) fn place(&self, pid: Pid, site: SiteId, word: i64) -> Name {
        let Some(site) = self.site(site) else { return self.empty.clone() };
        if let Some(at) = &site.at {
            return at.clone();
        }
        if site.has_caller {
            let symbol = self.symbols.get(&(pid, word));
            return symbol.cloned().unwrap_or_else(|| format!("{word:#x}").into());
        }
        self.places.get(&(site.source, word as i32)).unwrap_or(&self.empty).clone()
    }
}

/// `function (file:line)`, with what is known of it.
pub fn place_text(row: &SymbolRow) -> String {
    let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let object = || format!("{}+{:#x}", last(&row.object), row.offset);
    match (row.symbol.is_empty(), row.file.is_empty()) {
        (true, _) => object(),
        (false, true) => format!("{} ({})", row.symbol, object()),
        (false, false) => format!("{} ({}:{})", row.symbol, last(&row.file), row.line),
    }
}

/// Name of a function, `libx.so+0x1234` if it has none, and `file:line` if that is known.
fn function_text(row: &SymbolRow) -> (Name, Name) {
    let name = if row.symbol.is_empty() { place_text(row).into() } else { row.symbol.clone() };
    let file = row.file.rsplit('/').next().unwrap_or_default();
    let place = if file.is_empty() { String::new() } else { format!("{file}:{}", row.line) };
    (name, place.into())
}

/// `lock.rwlock_read_acquire` → `rwlock-read`; what a condition gives back is a mutex.
fn lock_kind(event: &str) -> String {
    let name = event.rsplit('.').next().unwrap_or(event);
    if name.starts_with("cond_") {
        return "mutex".into();
    }
    let stem = ["_acquire", "_release", "_wait"].iter().find_map(|e| name.strip_suffix(e));
    stem.unwrap_or(name).replace('_', "-")
}

#[cfg(test)]
mod tests;
