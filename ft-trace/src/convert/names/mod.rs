//! What is at the addresses of programs, by the files that their users wrote.
//!
//! Such a file can be made to harm who reads it: to overflow its stack, to fill its memory, to keep it for ever. So the agent,
//! which is often root, proves which file it is ([`proof`]) and opens it; a [`worker`] reads it, a process without any
//! rights, which gets the descriptor and the addresses, and says what is there ([`wire`]).
//!
//! A worker reads one file at a time, those of one owner, for the processes of one user: whatever it has read, it has nothing to say of
//! another one's. One that dies, takes too long, or says what makes no sense costs this file its names, and nobody anything else. What may
//! be spent is counted for the user whose processes have the addresses, whoever owns the files: nobody can use up what others need. A
//! [warning](Warning::NoNames) says whose file it was.

#[cfg(feature = "synthetic")]
mod beside;
mod confine;
#[cfg(fuzzing)]
mod everything;
mod packet;
mod perf_map;
mod program;
mod proof;
mod rule;
mod unwinding;
mod wire;
mod worker;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, socketpair};

use crate::foreign_file::FileKey;
use crate::helper::Helper;
use crate::ids::{Name, Pid};
use crate::look;
use crate::mounts::{Mounts, View};
use crate::owners::owner_of;
use crate::spool::mapping::Mapping;
use crate::warning::Warning;
use packet::Known;
use proof::Mounted;
#[cfg(test)]
pub(super) use rule::Saved;
pub(super) use rule::{Base, CallersBp, Rule, Step};
pub(super) use wire::What;
use wire::{MAX_ASKED, Request};
pub use worker::serve;

#[cfg(feature = "synthetic")]
pub use beside::Addresses;
#[cfg(fuzzing)]
pub use everything::ask_for_everything;

/// CPU time that the names of one file may take.
///
/// Limit: a file has addresses in place of names, and a warning names it, its owner and the reason; all other users'
/// have theirs.
/// Shown by: `functions_that_are_nested_without_end_end_the_worker_alone`,
/// `who_fails_over_and_over_is_not_asked_again`, `a_worker_has_a_time`, `what_a_user_uses_up_others_have_still`,
/// `idle_workers_are_few_and_small`.
const FILE_CPU: Duration = Duration::from_secs(20);

/// The same of all files that a user's processes have, in one conversion, with the lists of what is mounted for them. Users of a range are
/// one ([`owner_of`]).
///
/// Limit: as `FILE_CPU`.
const USER_CPU: Duration = Duration::from_secs(60);

/// The same of all users together. Each can have half of what the others leave of it.
///
/// Limit: as `FILE_CPU`.
/// Shown by: `all_users_together_have_an_end_and_each_has_something`.
const ALL_CPU: Duration = Duration::from_secs(4 * 60);

/// How long the names of one file may take, whatever its worker does meanwhile: a worker that was taken over can sleep and answer by turns.
/// On a machine on which many want a CPU, its CPU time takes longer.
///
/// Limit: as `FILE_CPU`.
const FILE_TIME: Duration = Duration::from_secs(10 * 60);

/// How long a worker may wait for something else than the CPU, s: for a file system that does not answer.
///
/// Limit: as `FILE_CPU`.
const MAX_IDLE_S: u32 = 60;

/// How long a worker that is killed is waited for, ms.
///
/// Limit: as `FILE_CPU`.
const ENDS_WITHIN_MS: u32 = 2000;

/// Workers that are kept, of which each has some MiB.
///
/// Limit: as `FILE_CPU`.
const MAX_WORKERS: usize = 4;

/// Files of one owner at which workers may fail for one user.
///
/// Limit: as `FILE_CPU`.
const MAX_FAILURES: u32 = 4;

/// Functions and variables that files may name for one user in a conversion: 160 MiB. A million addresses of an optimised program, of
/// which each has some functions that are inlined, are of no more.
///
/// Limit: as `FILE_CPU`.
const MAX_SYMBOLS: usize = 1 << 22;
const _: () = assert!(MAX_SYMBOLS * size_of::<Symbol>() == 160 << 20);

/// Bytes of their names, each counted once.
///
/// Limit: as `FILE_CPU`.
const MAX_NAMES_BYTES: usize = 64 << 20;

/// The kind of a helper that does nothing but [`serve`]. Where none can be started, conversions look up no names in files.
pub const READS_NAMES: &str = "read-names";

/// What a file says about an address; empty and 0 where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) name: Name,
    pub(super) file: Name,
    pub(super) line: u32,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query<'m> {
    pub(super) pid: Pid,
    /// Which maps the file that is asked; of no meaning where a compiler is.
    pub(super) mapping: &'m Mapping,
    pub(super) what: What,
    pub(super) address: u64,
}

/// What the answer is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// The address in the file's own address space; `None` where the file says nothing, or is not there.
    pub(super) at: Option<u64>,
    pub(super) symbols: Vec<Symbol>,
}

/// Why a file has no names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    NotStarted,
    Died,
    Slow,
    Rubbish,
    TooMuch,
    Spent,
    Unanswered,
}

impl Failure {
    fn reason(self) -> &'static str {
        match self {
            Failure::NotStarted => "no process could be started to read it",
            Failure::Died => "the process that read it died of it",
            Failure::Slow => "it took too long",
            Failure::Rubbish => "what it made its reader say makes no sense",
            Failure::TooMuch => "others of this owner had failed",
            Failure::Spent => "the user's files had taken all that they may",
            Failure::Unanswered => "the process, or others of its user, did not answer in time",
        }
    }
}

/// The names of a conversion.
pub(super) struct Names<'r> {
    /// Users of the processes.
    of: &'r HashMap<Pid, u32>,
    /// What they had mapped.
    mapped: &'r HashMap<Pid, Vec<Mapping>>,
    spent: Spending,
    /// Of the files of an owner, for a user.
    readers: BTreeMap<(User, u32), Reader>,
    /// Files without names by the user of their processes and by their owner, where somebody looked; and why the first has none.
    lost: BTreeMap<(User, Option<u32>), BTreeMap<String, Failure>>,
    known: Known,
    /// What is mounted: for us, for the processes, and by where it is seen from.
    ours: Arc<Mounts>,
    theirs: HashMap<Pid, Arc<Mounts>>,
    seen: HashMap<View, Arc<Mounts>>,
}

/// Number of the user of a process, where that is known.
type User = Option<u32>;

/// What the names of each user's processes have taken, by who answers for it.
#[derive(Debug, Default)]
pub(super) struct Spending(BTreeMap<User, Spent>);

impl Spending {
    /// CPU time that a user has left.
    fn left(&self, user: User) -> Duration {
        let own = self.0.get(&user).map_or(Duration::ZERO, |spent| spent.cpu);
        let all: Duration = self.0.values().map(|spent| spent.cpu).sum();
        let most = USER_CPU.min(ALL_CPU.saturating_sub(all - own) / 2);
        most.saturating_sub(own)
    }

    fn is_all(&self, user: User) -> bool {
        let spent = self.0.get(&user);
        let is_full = |of: &Spent| of.symbols >= MAX_SYMBOLS || of.bytes >= MAX_NAMES_BYTES;
        self.left(user) == Duration::ZERO || spent.is_some_and(is_full)
    }
}

/// What the names of a user's processes have taken.
#[derive(Debug, Default)]
struct Spent {
    cpu: Duration,
    symbols: usize,
    bytes: usize,
    /// How often workers have failed, by who answers for the owner of the files.
    failures: BTreeMap<u32, u32>,
}

/// Who reads files of one owner for one user.
#[derive(Default)]
struct Reader {
    worker: Option<Worker>,
}

/// Which file is asked, as far as a query tells.
type Of<'m> = (User, Option<Pid>, &'m str, &'m str, Option<FileKey>);

impl<'r> Names<'r> {
    /// Of processes of these users, which had mapped these.
    pub(super) fn new(
        of: &'r HashMap<Pid, u32>,
        mapped: &'r HashMap<Pid, Vec<Mapping>>,
    ) -> Names<'r> {
        let (spent, readers, lost) = (Spending::default(), BTreeMap::new(), BTreeMap::new());
        let (known, ours, theirs) = (Known::default(), Arc::new(Mounts::own()), HashMap::new());
        let seen = View::own().map(|own| (own, ours.clone())).into_iter().collect();
        Names { of, mapped, spent, readers, lost, known, ours, theirs, seen }
    }

    /// The same of processes whose files have taken so much already.
    pub(super) fn having_spent(self, spent: Spending) -> Names<'r> {
        Names { spent, ..self }
    }

    /// What has been taken in the end.
    pub(super) fn into_spending(self) -> Spending {
        self.spent
    }

    /// The answers, in the order of the queries: each file is opened once for all of them.
    pub(super) fn ask(&mut self, queries: &[Query<'_>]) -> Vec<Answer> {
        let mut answers = vec![Answer::default(); queries.len()];
        let of_files: Vec<Of<'_>> = queries.iter().map(|query| self.file(query)).collect();
        let place = |i: usize| {
            let Query { what, mapping, .. } = queries[i];
            (what, mapping.start, mapping.end, mapping.offset)
        };
        let mut order: Vec<usize> = (0..queries.len()).collect();
        order.sort_by_key(|&i| (of_files[i], place(i)));
        for of_file in order.chunk_by(|&a, &b| of_files[a] == of_files[b]) {
            let first = &queries[of_file[0]];
            let user = self.of.get(&first.pid).copied();
            let payer = user.map(owner_of);
            if self.spent.is_all(payer) {
                self.lose((user, None), first, Failure::Spent);
                continue;
            }
            let (request, files) = match self.open(first) {
                Ok(Some(opened)) => opened,
                Ok(None) => continue,
                Err(failure) => {
                    self.lose((user, None), first, failure);
                    continue;
                }
            };
            let Ok(owner) = files[0].metadata().map(|metadata| metadata.uid()) else { continue };
            let of_owner = owner_of(owner);
            let left = self.spent.left(payer);
            let failures = self.spent.0.get(&payer).and_then(|spent| spent.failures.get(&of_owner));
            if failures.is_some_and(|failures| *failures >= MAX_FAILURES) {
                self.lose((user, Some(owner)), first, Failure::TooMuch);
                continue;
            }
            self.dismiss((user, owner));
            let spent = self.spent.0.entry(payer).or_default();
            let reader = self.readers.entry((user, owner)).or_default();
            let (before, known) = (self.known.bytes, &mut self.known);
            let most_bytes = before + MAX_NAMES_BYTES.saturating_sub(spent.bytes);
            let mut symbols = spent.symbols;
            let failed = reader.of_file(spent, left, &request, &files, |worker| {
                for alike in of_file.chunk_by(|&a, &b| place(a) == place(b)) {
                    for some in alike.chunks(MAX_ASKED) {
                        let found = worker.ask(queries, some, known)?;
                        symbols += found.iter().map(|answer| answer.symbols.len()).sum::<usize>();
                        if symbols > MAX_SYMBOLS || known.bytes > most_bytes {
                            return Err(Failure::Spent);
                        }
                        some.iter().zip(found).for_each(|(&i, found)| answers[i] = found);
                    }
                }
                Ok(())
            });
            spent.bytes += self.known.bytes - before;
            spent.symbols = symbols;
            if let Err(failure) = failed {
                let is_its = failure != Failure::NotStarted;
                *spent.failures.entry(of_owner).or_default() += u32::from(is_its);
                self.lose((user, Some(owner)), first, failure);
            }
        }
        answers
    }

    /// Ends a worker, if there are so many and another one is to be started, for this owner and user.
    fn dismiss(&mut self, whose: (User, u32)) {
        let has_one = |(_, reader): &(&(User, u32), &mut Reader)| reader.worker.is_some();
        if self.readers.get(&whose).is_some_and(|reader| reader.worker.is_some()) {
            return;
        }
        let others: Vec<_> = self.readers.iter_mut().filter(has_one).collect();
        if others.len() >= MAX_WORKERS {
            // Rather one of another user, who is not served just now.
            let first = others.into_iter().min_by_key(|((user, _), _)| *user == whose.0);
            first.into_iter().for_each(|(_, reader)| reader.worker = None);
        }
    }

    fn file<'m>(&self, query: &Query<'m>) -> Of<'m> {
        let user = self.of.get(&query.pid).copied();
        match query.what {
            What::Compiled => (user, Some(query.pid), "", "", None),
            _ => {
                let Mapping { path, build_id, file, .. } = query.mapping;
                (user, None, path, build_id, *file)
            }
        }
    }

    /// The files that are proved to be those that are meant.
    fn open(&mut self, query: &Query<'_>) -> Result<Option<(Request, Vec<File>)>, Failure> {
        let Query { pid, mapping, what, .. } = *query;
        let user = self.of.get(&pid).copied();
        let its = self.mounts(pid)?;
        let mounts = Mounted { ours: &self.ours, its: &its };
        Ok(match what {
            What::Compiled => {
                let mappings = self.mapped.get(&pid).map_or(&[][..], Vec::as_slice);
                let map = proof::perf_map(pid, user, mappings, mounts)?;
                map.map(|map| (Request::PerfMap, vec![map]))
            }
            _ => {
                let files = proof::program(pid, user, mapping, mounts);
                files.map(|files| (Request::Program, files))
            }
        })
    }

    /// What is mounted for a process. A list is read once, and at the cost of the user who has it.
    fn mounts(&mut self, pid: Pid) -> Result<Arc<Mounts>, Failure> {
        if let Some(known) = self.theirs.get(&pid) {
            return Ok(known.clone());
        }
        let view = look::at(pid.0, move || View::of(pid.0)).ok_or(Failure::Unanswered)?;
        let seen = view.and_then(|view| self.seen.get(&view).cloned());
        let mounts = match seen {
            Some(seen) => seen,
            None => {
                let read = look::at(pid.0, move || Mounts::of(pid.0));
                let read = read.ok_or(Failure::Unanswered)?;
                let user = self.of.get(&pid).copied().map(owner_of);
                self.spent.0.entry(user).or_default().cpu += read.cpu();
                Arc::new(read)
            }
        };
        self.seen.extend(view.map(|view| (view, mounts.clone())));
        self.theirs.insert(pid, mounts.clone());
        Ok(mounts)
    }

    /// The file that is asked has no names.
    fn lose(&mut self, whose: (User, Option<u32>), query: &Query<'_>, why: Failure) {
        self.lost.entry(whose).or_default().entry(called(query)).or_insert(why);
    }

    /// Whose files have no names, and why.
    pub(super) fn warnings(&self) -> impl Iterator<Item = Warning> {
        let mut mounts = self.theirs.values().chain([&self.ours]);
        let mounts = mounts.any(|mounts| mounts.are_too_many()).then_some(Warning::Mounts);
        let lost = self.lost.iter().filter_map(|(&(user, owner), lost)| {
            let (file, why) = lost.first_key_value()?;
            let (file, files, reason) = (file.clone(), lost.len() as u64, why.reason().into());
            Some(Warning::NoNames { owner, user, file, files, reason })
        });
        lost.chain(mounts)
    }
}

/// What a warning calls the file.
fn called(query: &Query<'_>) -> String {
    match query.what {
        What::Compiled => format!("/tmp/perf-{}.map", query.pid),
        _ => query.mapping.path.clone(),
    }
}

impl Reader {
    /// Has the worker read these files and answer what `ask` asks; then it forgets them.
    fn of_file(
        &mut self,
        spent: &mut Spent,
        left: Duration,
        request: &Request,
        files: &[File],
        ask: impl FnOnce(&mut Worker) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // One that has died since its last file has not died of this one.
        let kept = self.worker.take().filter(Worker::lives);
        let mut worker = match kept {
            Some(worker) => worker,
            None => match Worker::start() {
                Ok(Some(worker)) => worker,
                Ok(None) => return Ok(()),
                Err(_) => return Err(Failure::NotStarted),
            },
        };
        let before = worker.cpu();
        worker.ends_at = before + FILE_CPU.min(left);
        worker.ends_by = Instant::now() + FILE_TIME;
        let asked = worker.open(request, files).and_then(|()| ask(&mut worker));
        let _ = worker.open(&Request::Forget, &[]);
        spent.cpu += worker.cpu().saturating_sub(before);
        self.worker = asked.is_ok().then_some(worker);
        asked
    }
}

/// The process that reads the files of a user.
struct Worker {
    socket: OwnedFd,
    process: Helper,
    /// CPU time at which it has taken too long.
    ends_at: Duration,
    /// The same on the clock.
    ends_by: Instant,
}

impl Worker {
    /// `None` where nobody has said how.
    fn start() -> io::Result<Option<Worker>> {
        let (socket, theirs) = pair()?;
        let process = Helper::start(READS_NAMES, theirs)?;
        let new =
            |process| Worker { socket, process, ends_at: Duration::ZERO, ends_by: Instant::now() };
        Ok(process.map(new))
    }

    /// Whether it has not ended, nor said anything that nobody has asked for.
    fn lives(&self) -> bool {
        let mut of_worker = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut of_worker, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
    }

    fn open(&mut self, request: &Request, files: &[File]) -> Result<(), Failure> {
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        let sent = wire::send(&self.socket, &request.encode(), &files, SendFlags::DONTWAIT);
        sent.map_err(|_| Failure::Died)
    }

    /// The answers to some of the queries, which are of one mapping.
    fn ask(
        &mut self,
        queries: &[Query<'_>],
        some: &[usize],
        known: &mut Known,
    ) -> Result<Vec<Answer>, Failure> {
        let Query { mapping, what, .. } = queries[some[0]];
        let place = [mapping.start, mapping.end, mapping.offset];
        let addresses = some.iter().map(|&i| queries[i].address).collect();
        let request = Request::Ask(what, place, addresses).encode();
        wire::send(&self.socket, &request, &[], SendFlags::DONTWAIT).map_err(|_| Failure::Died)?;
        let mut answers = Vec::new();
        while answers.len() < some.len() {
            self.wait()?;
            let (packet, _) = wire::receive(&self.socket).map_err(|_| Failure::Died)?;
            if packet.is_empty() {
                return Err(Failure::Died);
            }
            answers.extend(packet::answers(&packet, known).ok_or(Failure::Rubbish)?);
        }
        (answers.len() == some.len()).then_some(answers).ok_or(Failure::Rubbish)
    }

    /// Waits until it says something. What counts is its time on the CPU: on a busy machine others have that.
    fn wait(&self) -> Result<(), Failure> {
        let (mut idle, mut before) = (0, self.cpu());
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        loop {
            if before > self.ends_at || idle > MAX_IDLE_S || Instant::now() > self.ends_by {
                return Err(Failure::Slow);
            }
            let mut of_worker = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut of_worker, Some(&second)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(_) => return Err(Failure::Died),
            }
            let cpu = self.cpu();
            idle = if cpu == before { idle + 1 } else { 0 };
            before = cpu;
        }
    }

    /// CPU time that it has taken, also after its end while nobody has waited for it.
    fn cpu(&self) -> Duration {
        let mut clock = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: both point to what is written.
        let is_read = unsafe {
            libc::clock_getcpuclockid(self.process.0.id() as i32, &raw mut clock) == 0
                && libc::clock_gettime(clock, &raw mut time) == 0
        };
        match is_read {
            true => Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
            false => Duration::ZERO,
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.0.kill();
        // One that waits for a file system that does not answer does not end by that, and is left.
        let mut looks = 0..ENDS_WITHIN_MS;
        while let Ok(None) = self.process.0.try_wait()
            && looks.next().is_some()
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

#[cfg(test)]
mod tests;
