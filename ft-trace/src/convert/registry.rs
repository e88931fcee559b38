//! What all segments refer to: the start, processes, sites, names, threads, the end.
//!
//! Read from `registry.ft`, which only grows; [`Registry::update`] goes on where it ended, so a
//! conversion can follow a recording. Numbers of sites are given in the order in which their entries
//! stand in the file, so they are the same however often a segment is converted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use ft_user::directory::{self, Entry};
use ft_user::layout::{ArgType, format};

use super::untraced::Look;
use crate::ids::{Pid, SiteId};
use crate::spool::frame::{Directory, End, Frame, Loss, Process, Refused, Start, Thread};
use crate::spool::mapping::{Kept, Mapping, Mappings, TOO_MANY};
use crate::spool::{Damage, Gap, ReadError, Reader, Spool};
use crate::tables::{NameKind, NameRow, SiteKind, SiteRow, arg_name};

/// Everything that was registered so far.
pub(super) struct Registry {
    reader: Reader,
    /// Facts of the recording.
    pub(super) start: Start,
    /// How it ended, once it has.
    pub(super) end: Option<End>,
    /// Processes in the order of their registration.
    pub(super) processes: Vec<Process>,
    /// Threads that the collector named.
    pub(super) threads: Vec<Thread>,
    /// Program text of each process, everything that it ever had.
    pub(super) mappings: HashMap<Pid, Vec<Mapping>>,
    /// What looks at processes have shown of how their programs were loaded.
    pub(super) looks: Vec<Look>,
    /// Users of the processes whose program text is known.
    pub(super) users: HashMap<Pid, Owner>,
    /// Losses that concern no segment.
    pub(super) losses: Vec<Loss>,
    /// Refused registrations, by user and reason.
    pub(super) refused: BTreeMap<(u32, String), Refused>,
    /// Rows of `names`.
    pub(super) names: Vec<NameRow>,
    /// Files of processes were not looked at, for more is mounted than is read.
    pub(super) has_too_many_mounts: bool,
    /// Entries of directories that were not valid.
    pub(super) malformed: u64,
    /// Where each text stands among the mappings of its process, by its hash, and how much is kept of them.
    texts: HashMap<Pid, HashMap<u64, usize>>,
    hasher: RandomState,
    kept: Kept,
    sites: Vec<Site>,
    sources: HashMap<u32, Registered>,
    /// The newest program of each process that has registered, by number and begin.
    programs: HashMap<(i32, u64), i32>,
}

/// A site, as events refer to it.
pub(super) struct Site {
    /// Row of `sites`.
    pub(super) row: SiteRow,
    /// Types of its arguments.
    pub(super) args: Vec<ArgType>,
    /// It is a lock event whose place is a return address (`ft_user::layout::SiteKind`).
    pub(super) has_caller: bool,
    /// Its events begin with the address of a function.
    pub(super) has_function: bool,
    /// Why its format cannot be shown with its arguments, if it cannot.
    pub(super) fault: Option<&'static str>,
}

/// One registration of a process.
struct Registered {
    pid: Pid,
    /// As `sites` and `names` have it.
    number: i32,
    /// When the process began, as [`Process::start_time`].
    started: i64,
    /// As [`SiteRow::program`].
    program: i32,
    /// Since when the sites are on that the recording asked for from its start; 0 since the program began to trace.
    on_ns: Option<i64>,
    sites: HashMap<u32, SiteId>,
    /// Addresses of triggers: the agent may have found one that the process declares later.
    triggers: HashSet<u64>,
    /// Bytes of the directory that end within an entry.
    rest: Vec<u8>,
}

/// Whose the process of a number is.
#[derive(Debug, Default)]
pub(super) struct Owner {
    user: Option<u32>,
    start_time: Option<u64>,
    /// Processes that began at different times have had the number.
    is_used_again: bool,
    is_doubtful: bool,
}

impl Owner {
    /// A process of this number belongs to this user. One that becomes another user, as by `su`, is that user's. It is not root's if it was
    /// somebody else's before, who may have mapped what is asked for.
    pub(super) fn add(&mut self, user: u32, start_time: Option<u64>) {
        const ROOT: u32 = 0;
        let Some(known) = self.user else {
            (self.user, self.start_time) = (Some(user), start_time);
            return;
        };
        self.is_used_again |= self.start_time != start_time;
        let are_both_others = known != ROOT && user != ROOT;
        self.is_doubtful |= known != user && (self.is_used_again || are_both_others);
        self.user = Some(if user == ROOT { known } else { user });
    }

    /// The user, if all processes of this number were the same user's: of others it is not known which of them had an address.
    pub(super) fn user(&self) -> Option<u32> {
        self.user.filter(|_| !self.is_doubtful)
    }
}

impl Registry {
    /// Opens the registry of a spool and reads what is there.
    pub(super) fn open(spool: &Spool) -> Result<Registry, ReadError> {
        let mut registry = Registry {
            reader: Reader::open(&spool.registry())?,
            start: Start::default(),
            end: None,
            processes: Vec::new(),
            threads: Vec::new(),
            mappings: HashMap::new(),
            looks: Vec::new(),
            users: HashMap::new(),
            losses: Vec::new(),
            refused: BTreeMap::new(),
            names: Vec::new(),
            has_too_many_mounts: false,
            malformed: 0,
            texts: HashMap::new(),
            hasher: RandomState::new(),
            kept: Kept::default(),
            sites: Vec::new(),
            sources: HashMap::new(),
            programs: HashMap::new(),
        };
        registry.update()?;
        Ok(registry)
    }

    /// Reads what was added.
    pub(super) fn update(&mut self) -> Result<(), ReadError> {
        while let Some(frame) = self.reader.next()? {
            match frame {
                Frame::Start(start) => self.start = start,
                Frame::End(end) => self.end = Some(end),
                Frame::Refused(refused) => {
                    let key = (refused.uid, refused.reason.clone());
                    self.refused.insert(key, refused);
                }
                Frame::Thread(thread) => self.threads.push(thread),
                Frame::Mappings(told) => self.mapped(told),
                Frame::Loss(loss) => self.losses.push(loss),
                Frame::Process(process) => self.process(process),
                Frame::Directory(Directory { source, bytes }) => {
                    match self.sources.get_mut(&source) {
                        Some(source) => {
                            let (names, sites) = (&mut self.names, &mut self.sites);
                            let first = sites.len();
                            self.malformed += source.directory(bytes, names, sites);
                            for site in &mut sites[first..] {
                                site.row.on_ns = source.since(&self.start.events, &site.row.event);
                            }
                        }
                        None => self.malformed += 1,
                    }
                }
                // These belong into segments; a registry that holds them is not ours. Anchors are the reader's own.
                Frame::Clock(_)
                | Frame::Slots(_)
                | Frame::Shared(_)
                | Frame::Kernel(_)
                | Frame::Anchor(_) => {
                    self.malformed += 1;
                }
            }
        }
        Ok(())
    }

    /// Adds the text that a process had mapped, as far as it is kept.
    fn mapped(&mut self, told: Mappings) {
        let (pid, user) = (Pid(told.pid), told.user);
        if let Some(user) = user {
            self.users.entry(pid).or_default().add(user, told.start_time);
        }
        self.has_too_many_mounts |= told.has_too_many_mounts;
        self.looks.extend(Look::of(&told));
        let known = self.mappings.entry(pid).or_default();
        let texts = self.texts.entry(pid).or_default();
        for mapping in told.mappings {
            let text = self.hasher.hash_one(mapping.text());
            let same = texts.get(&text).and_then(|&at| known.get_mut(at));
            if let Some(same) = same.filter(|same| same.text() == mapping.text()) {
                // One that is gone was declared before, perhaps.
                same.is_gone |= mapping.is_gone;
            } else if self.kept.add(told.pid, user, &mapping) {
                texts.insert(text, known.len());
                known.push(mapping);
            } else {
                let uid = user.unwrap_or(u32::MAX);
                let not_kept = || Refused {
                    uid,
                    pid: told.pid,
                    reason: TOO_MANY.into(),
                    has_unnamed: true,
                    count: 1,
                    ..Refused::default()
                };
                self.refused.entry((uid, TOO_MANY.into())).or_insert_with(not_kept);
            }
        }
    }

    fn process(&mut self, process: Process) {
        let Some(source) = process.source else { return self.processes.push(process) };
        if let Some(known) = self.sources.get_mut(&source) {
            known.on_ns = process.on_ns;
            for site in self.sites.iter_mut().filter(|site| site.row.source == known.number) {
                site.row.on_ns = known.since(&self.start.events, &site.row.event);
            }
        } else {
            let program = self.program_of(&process);
            self.sources.insert(source, Registered::of(&process, source, program));
            self.processes.push(process);
        }
    }

    /// The recording has compacted its registry, and writes to another file since.
    pub(super) fn is_replaced(&self) -> bool {
        self.reader.is_replaced()
    }

    /// What of the file could not be read, before what could.
    pub(super) fn gaps(&self) -> &[Gap] {
        self.reader.gaps()
    }

    /// What of the file could not be read at its end.
    pub(super) fn damage(&self) -> Result<Option<Damage>, ReadError> {
        self.reader.damage()
    }

    /// Which of its process's programs has this new registration.
    fn program_of(&mut self, process: &Process) -> i32 {
        let next = i32::from(process.executed);
        let newest = self.programs.entry((process.pid, process.start_time));
        *newest.and_modify(|program| *program = program.saturating_add(next)).or_insert(0)
    }

    /// Process of a registration.
    pub(super) fn pid(&self, source: u32) -> Option<Pid> {
        Some(self.sources.get(&source)?.pid)
    }

    /// Number of the site with this key.
    pub(super) fn site_id(&self, source: u32, key: u32) -> Option<SiteId> {
        self.sources.get(&source)?.sites.get(&key).copied()
    }

    /// A site that [`Registry::site_id`] has named.
    pub(super) fn site(&self, id: SiteId) -> &Site {
        &self.sites[id.0 as usize]
    }

    /// All sites, by number.
    pub(super) fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Whose the processes are, where that is known.
    pub(super) fn known_users(&self) -> HashMap<Pid, u32> {
        self.users.iter().filter_map(|(pid, owner)| Some((*pid, owner.user()?))).collect()
    }

    /// Whether the process is recorded.
    pub(super) fn observes(&self, pid: Pid) -> bool {
        self.start.system_wide || self.processes.iter().any(|p| p.pid == pid.0)
    }
}

impl Registered {
    fn of(process: &Process, number: u32, program: i32) -> Registered {
        Registered {
            pid: Pid(process.pid),
            number: number as i32,
            started: i64::try_from(process.start_time).unwrap_or(i64::MAX),
            program,
            on_ns: process.on_ns.or((process.waited && !process.unanswered).then_some(0)),
            sites: HashMap::new(),
            triggers: HashSet::new(),
            rest: Vec::new(),
        }
    }

    /// Since when a site is on, if it is one of those that the recording asked for from its start.
    fn since(&self, asked: &[String], event: &str) -> Option<i64> {
        self.on_ns.filter(|_| asked.iter().any(|glob| ft_user::glob::matches(glob, event)))
    }

    /// Takes more of the directory; returns how many entries were not valid.
    fn directory(&mut self, bytes: &[u8], names: &mut Vec<NameRow>, sites: &mut Vec<Site>) -> u64 {
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(bytes);
        let mut malformed = 0;
        let mut entries = directory::parse(&rest);
        for entry in &mut entries {
            match entry {
                Ok(entry) => self.entry(entry, names, sites),
                Err(_) => malformed += 1,
            }
        }
        let consumed = entries.consumed();
        self.rest = rest.split_off(consumed);
        malformed
    }

    fn entry(&mut self, entry: Entry<'_>, names: &mut Vec<NameRow>, sites: &mut Vec<Site>) {
        let (pid, source) = (self.pid, self.number);
        let named = |id: u32, kind, text: &str, line: u32, column: u32| {
            let [id, line, column] = [id, line, column].map(|n| n as i32);
            NameRow { pid, source, id, kind, text: text.into(), line, column }
        };
        match entry {
            Entry::SiteMeta { key, kind, line, name, file, format, args } => {
                let id = SiteId(sites.len() as i32);
                // The first of two with one key counts, as for the process itself.
                if self.sites.contains_key(&key) {
                    return;
                }
                self.sites.insert(key, id);
                let describe = |(ty, name): &(ArgType, &str)| {
                    let optional = if ty.is_optional() { "?" } else { "" };
                    format!("{}:{}{optional}", arg_name(name), type_name(*ty))
                };
                let kind = SiteKind::from(kind);
                let row = SiteRow {
                    site: id,
                    pid,
                    event: name.into(),
                    category: name.split('.').next().unwrap_or_default().into(),
                    kind,
                    file: file.into(),
                    line: line as i32,
                    args: args.iter().map(describe).collect::<Vec<_>>().join(", ").into(),
                    format: format.into(),
                    triggers: 0,
                    source,
                    started: self.started,
                    program: self.program,
                    on_ns: None,
                };
                let named: Vec<_> = args.iter().map(|(ty, name)| (*name, *ty)).collect();
                let fault = format::fault(format, &named);
                let args: Vec<ArgType> = args.into_iter().map(|(ty, _)| ty).collect();
                let has_caller = kind.has_lock() && args.get(1) == Some(&ArgType::Pointer);
                let has_function = kind.is_function() && args.first() == Some(&ArgType::Pointer);
                sites.push(Site { row, args, has_caller, has_function, fault });
            }
            Entry::Site { key, address } => {
                if let Some(id) = self.sites.get(&key)
                    && self.triggers.insert(address)
                {
                    sites[id.0 as usize].row.triggers += 1;
                }
            }
            Entry::Name { id, text } => {
                names.push(named(id, NameKind::Name, text, 0, 0));
            }
            Entry::Place { id, line, column, file } => {
                names.push(named(id, NameKind::Place, file, line, column));
            }
        }
    }
}

/// The type of the value; of an optional one, if it is there.
fn type_name(ty: ArgType) -> &'static str {
    match ty.value() {
        ArgType::Signed => "signed",
        ArgType::Float => "float",
        ArgType::Bool => "bool",
        ArgType::Pointer => "pointer",
        ArgType::Tsc => "tsc",
        ArgType::Str => "str",
        ArgType::Bytes => "bytes",
        _ => "unsigned",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(dir: &std::path::Path) -> Registry {
        crate::convert::synthetic::registry(dir, &[], true);
        Registry::open(&Spool::of(dir)).unwrap()
    }

    fn mapped(registry: &mut Registry, pid: i32, mappings: Vec<Mapping>) {
        registry.mapped(Mappings { pid, user: Some(7), mappings, ..Mappings::default() });
    }

    #[test]
    fn a_text_stands_once_whatever_becomes_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut registry = registry(dir.path());
        let at = |start| Mapping { start, path: "/a".into(), ..Mapping::default() };
        let gone = |start| Mapping { is_gone: true, ..at(start) };
        mapped(&mut registry, 1, vec![at(1), at(2)]);
        mapped(&mut registry, 1, vec![gone(2), at(3), at(1), gone(3)]);
        assert_eq!(registry.mappings[&Pid(1)], [at(1), gone(2), gone(3)]);
        assert!(registry.refused.is_empty());
    }

    #[test]
    fn a_process_whose_mounts_are_too_many_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let mut registry = registry(dir.path());
        for has_too_many_mounts in [false, true, false] {
            let before = registry.has_too_many_mounts;
            registry.mapped(Mappings { has_too_many_mounts, ..Mappings::default() });
            assert_eq!(registry.has_too_many_mounts, before | has_too_many_mounts);
        }
    }

    #[test]
    fn what_is_not_kept_of_a_process_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut registry = registry(dir.path());
        let at = |start| Mapping { start, path: "/a".into(), ..Mapping::default() };
        for look in 0..10 {
            mapped(&mut registry, 1, (0..4096).map(|i| at(4096 * look + i)).collect());
        }
        mapped(&mut registry, 2, vec![at(1)]);
        assert_eq!([1, 2].map(|pid| registry.mappings[&Pid(pid)].len()), [8192, 1]);
        let told: Vec<String> = registry.refused.values().map(ToString::to_string).collect();
        let expected = "addresses of a process of user 7 have no names (process 1 ''): ";
        assert_eq!(told, [format!("{expected}{TOO_MANY}")]);
    }

    #[test]
    fn of_two_users_processes_with_one_number_nobodys_files_speak() {
        let user = |told: &[(u32, u64)]| {
            let mut owner = Owner::default();
            told.iter().for_each(|&(user, start_time)| owner.add(user, Some(start_time)));
            owner.user()
        };
        assert_eq!(user(&[]), None);
        assert_eq!(user(&[(1, 10), (1, 20)]), Some(1));
        assert_eq!(user(&[(0, 10), (7, 10)]), Some(7), "it has become another user");
        assert_eq!(user(&[(7, 10), (0, 10)]), Some(7), "it may have mapped what it likes before");
        assert_eq!(user(&[(7, 10), (8, 10)]), None);
        assert_eq!(user(&[(7, 10), (7, 20), (1, 20)]), None);
        assert_eq!(user(&[(7, 10), (1, 20)]), None);
        assert_eq!(user(&[(7, 10), (1, 20), (1, 30)]), None);
    }
}
