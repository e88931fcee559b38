//! What there is once per process: the memfd, the start, and the events without a ring.

use core::ptr::{self, NonNull};
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::*, compiler_fence,
};
use core::time::Duration;
use std::sync::Mutex;

use crate::at_fork::AtFork;
use crate::critical::{Held, Lock};
use crate::described::DESCRIBED;
use crate::descriptor::OfMemfd;
use crate::enable::Wish;
use crate::layout::{
    self, COUNTERS_KEY, Counting, Mode, RING_WAIT_KEY, RingControl, SiteKind, SiteMeta, commit,
};
use crate::memfd::Memfd;
use crate::ring::Ring;
use crate::shared_ring::Event;
use crate::sites::{self, Count};
use crate::{
    Agent, Config, InitError, Status, Tsc, claim, config, enable, fork, glob, intern, kernel,
    lease, loader, mapped, own_memory, publish, register, site, tsc,
};

pub(crate) use crate::claim::claim_ring;

/// Serialises start, enabling and fork. Never taken by an event.
pub(crate) static LOCK: Lock = Lock::new();

/// The present [`Memfd`] in parts; `BASE` is null before the start, and stored last.
static BASE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static RING_SLOTS: AtomicU32 = AtomicU32::new(0);
static RINGS: AtomicU32 = AtomicU32::new(0);
static OVERWRITE: AtomicU32 = AtomicU32::new(0);

/// Bytes of the stack. What is done with the process lock takes less: 6 to 7 KiB were seen in a debug build.
const ROOM: usize = if cfg!(debug_assertions) { 16 << 10 } else { 8 << 10 };

/// Faults here where the stack has no room for what is done with the process lock. A program may catch that and go on (`sigaltstack`,
/// `siglongjmp`); if it did so later, the lock would be held for ever by a function that is not there any more.
#[inline(never)]
fn find_stack() {
    // The compiler has each page of so large a frame touched (stack probes).
    core::hint::black_box(&core::mem::MaybeUninit::<[u8; ROOM]>::uninit());
}

/// Holds it, for the program. A child that is forked meanwhile can see that it is one; `None` where it cannot begin, for that is another
/// thread's.
pub(crate) fn hold() -> Option<Held<'static>> {
    find_stack();
    own_memory::prepare();
    fork::look();
    (own_memory::is_copy() != Some(true)).then(|| LOCK.hold())
}

/// The descriptor of the memfd, if one is kept, in parts. Who writes them holds the process lock.
static FD: AtomicI32 = AtomicI32::new(-1);
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);

/// This is a child that was forked while another thread switched sites, or one of its children: what the process lock is for may be half
/// done.
static IS_CUT: AtomicBool = AtomicBool::new(false);

/// This process has begun as a child of one that was traced.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// What the last [`init`] has counted.
static COUNTED: Mutex<Option<Count>> = Mutex::new(None);

/// Events of this process, a forked child, that came before it has begun, and from elsewhere than its first thread.
static EARLY: AtomicU32 = AtomicU32::new(0);

/// Memfds that this process, and those from which it was forked, have made.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The last generation whose directory says what a wait for room is.
static WAITS_DESCRIBED: AtomicU32 = AtomicU32::new(0);

/// And what counters show.
static COUNTERS_DESCRIBED: AtomicU32 = AtomicU32::new(0);

/// Nobody waits longer for room, whatever the agent says.
///
/// Limit: the event is lost, counted and placed in `loss`; nothing waits again until that loss has ended.
/// Shown by: `a_wait_in_vain_is_not_repeated_and_told_with_the_loss`, `what_cannot_be_is_refused`.
const MAX_FULL_WAIT: Duration = Duration::from_secs(1);

/// Starts tracing with the default [`Config`] and the environment's overrides.
///
/// Makes the memfd, enables what `FT_ENABLE` says, and registers with the agent if one listens. Without
/// an agent that takes 34 to 100 µs in a small program and 67 to 212 µs in one with 500 sites (`cargo xtask bench startup`);
/// with one that does not answer, half a second more, and five seconds where `FT_SOCKET` names it. Starts no thread.
/// A later call enables in the libraries that were loaded meanwhile what is to be on ([`enable`](crate::enable())), and
/// changes nothing else.
///
/// Call it first when no thread holds a lock or is in a scope that is to be recorded: what began before is not known, and is not
/// counted in the depth of what begins later.
///
/// # Errors
///
/// See [`InitError`]. The process then goes on untraced, so an application may ignore the error.
///
/// ```
/// ft_user::init().ok();
/// ```
pub fn init() -> Result<Status, InitError> {
    init_with(Config::default())
}

/// [`init`] with sizes of the application's choice; the environment overrides them.
///
/// # Errors
///
/// As [`init`].
pub fn init_with(config: Config) -> Result<Status, InitError> {
    if cfg!(ft_off) {
        return Ok(Status::without_sites(config));
    }
    let socket = register::address()?;
    let config = config.with_env()?;
    let held = hold().filter(|_| !IS_CUT.load(Relaxed));
    let held = held.ok_or(InitError::System("fork", libc::EDEADLK))?;
    let (memfd, file, first) = match memfd() {
        Some(memfd) => (memfd, OfMemfd::NONE, None),
        None => {
            register::keep(socket);
            start(config, &held).map(|(memfd, file, count)| (memfd, file, Some(count)))?
        }
    };
    if let Some(count) = counted_by_parent() {
        return Ok(Status::new(count, Agent::Absent, memfd.config()));
    }
    let mut count = first;
    // Before anybody is told of this process: who looks from outside finds those that are prepared.
    #[cfg(all(feature = "sleds", not(ft_off)))]
    if crate::sled::find(&held) {
        count = None;
    }
    // The agent may take its time; others need not wait for it.
    drop(held);

    let mut agent = Agent::Absent;
    if first.is_some() {
        let mut enable = |glob: &str, wish| {
            enable::set(glob, wish);
            count = None;
        };
        let of_environment = config::env(c"FT_ENABLE").into_iter().flat_map(glob::split);
        of_environment.for_each(|glob| enable(glob, Wish::On));
        let of_agent = |glob: &str| enable(glob, Wish::Lent);
        agent = register::register(file, &socket, register::patience(), of_agent);
        has_met(agent == Agent::Registered, file, &LOCK.hold());
    }
    let count = count.unwrap_or_else(|| enable::catch_up(&memfd, &LOCK.hold()));
    if let Ok(mut counted) = COUNTED.lock() {
        *counted = Some(count);
    }
    Ok(Status::new(count, agent, memfd.config()))
}

/// In a forked child the sites that the parent has found: the linker's lock may be that of a thread that is not here.
fn counted_by_parent() -> Option<Count> {
    let counted = if IS_FORKED.load(Relaxed) { COUNTED.try_lock().ok() } else { None };
    counted.and_then(|counted| *counted)
}

/// Makes the memfd, describes the sites in it, and makes both known.
fn start(config: Config, held: &Held<'_>) -> Result<(Memfd, OfMemfd, Count), InitError> {
    if !loader::is_of_program() {
        return Err(InitError::System("dlmopen", libc::ENOTSUP));
    }
    claim::prepare()?;
    fork::prepare()?;
    let (memfd, file) = Memfd::create(config)?;
    let directory = memfd.directory();
    let count = sites::write_all(&directory, held);
    intern::write_all(&directory);
    make_known(&memfd, file, held);
    Ok((memfd, file, count))
}

fn make_known(memfd: &Memfd, file: OfMemfd, held: &Held<'_>) {
    memfd.publish();
    keep(file, held);
    GENERATION.fetch_add(1, Relaxed);
    RING_SLOTS.store(memfd.config().ring_slots, Relaxed);
    RINGS.store(memfd.config().rings, Relaxed);
    OVERWRITE.store((memfd.config().mode == Mode::Overwrite) as u32, Relaxed);
    publish::publish(&BASE, memfd.base().as_ptr());
}

fn keep(file: OfMemfd, _held: &Held<'_>) {
    let (fd, device, inode) = file.parts();
    FD.store(fd, Relaxed);
    DEVICE.store(device, Relaxed);
    INODE.store(inode, Relaxed);
}

/// Who does not hold the process lock may find parts of two, which are no descriptor.
fn kept() -> OfMemfd {
    OfMemfd::from_parts(FD.load(Relaxed), DEVICE.load(Relaxed), INODE.load(Relaxed))
}

/// The descriptor `file` was sent to an agent that `has_it`, or there was none, and one that comes later is to find it. A child that
/// was forked meanwhile has another one.
pub(crate) fn has_met(has_it: bool, file: OfMemfd, held: &Held<'_>) {
    if kept() != file {
        return;
    }
    if has_it {
        file.close();
        keep(OfMemfd::NONE, held);
    } else {
        keep(file.keep(), held);
    }
}

/// Whether this is the process whose memory this is, and not a child of `vfork`, or one that a fork has made and that has not begun.
pub(crate) fn is_this() -> bool {
    let pid = kernel::getpid();
    pid == 0 || made().is_none_or(|memfd| memfd.header().pid == pid)
}

/// The memfd of this process, once it is made; none in a forked child that has not begun.
pub(crate) fn memfd() -> Option<Memfd> {
    if own_memory::is_copy() == Some(true) { None } else { made() }
}

/// The same, there that of its parent.
#[inline]
pub(crate) fn made() -> Option<Memfd> {
    let base = NonNull::new(publish::see(&BASE))?;
    let config = Config {
        ring_slots: RING_SLOTS.load(Relaxed),
        rings: RINGS.load(Relaxed),
        mode: if OVERWRITE.load(Relaxed) == 0 { Mode::Discard } else { Mode::Overwrite },
    };
    // SAFETY: `make_known` has stored these parts together, and a memfd stays mapped until `begin_child`.
    Some(unsafe { Memfd::from_parts(base, config) })
}

/// In a forked child of a process that has started: gives it a memfd of its own, has an agent told of that (`tell`, whether it was), and takes the
/// parent's away, where a child of which nobody will know is counted.
///
/// Whatever a signal handler has interrupted that has forked, it can go on: an event that is not yet reserved is written to the child's
/// ring, which stands where the parent's was; the rest of one that is goes nowhere, and it is counted as lost. What the child sees of the
/// parent's memory is copied, and no lock is taken: whoever has one is not here.
///
/// Not `held`, the lock was another thread's at the fork, and what it is for may be half done: then the child goes on untraced.
///
/// # Safety
///
/// No other thread has a ring, or has the parent's memfd in use, and the signals of this one are blocked.
pub(crate) unsafe fn begin_child(
    at_fork: &AtFork,
    held: Option<&Held<'_>>,
    tell: impl FnOnce(OfMemfd) -> bool,
) {
    IS_CUT.fetch_or(held.is_none(), Relaxed);
    IS_FORKED.store(true, Relaxed);
    let Some(old) = made() else {
        own_memory::keep();
        return at_fork.go_on();
    };
    let (counting, parents) = (counting_of(&old), kept());
    BASE.store(ptr::null_mut(), Relaxed);
    // A child that gets no memfd goes on untraced, as a process without one does.
    let new = held.and_then(|held| {
        keep(OfMemfd::NONE, held);
        let (new, file) = Memfd::create(old.config()).ok()?;
        let directory = new.directory();
        DESCRIBED.copy(&old.directory(), &directory, held);
        intern::write_all(&directory);
        new.header().counting.store(counting.0, Relaxed);
        // What is on in the parent is on here too, and for the same agent.
        new.header().lease.store(old.header().lease.load(Relaxed), Relaxed);
        Some((new, file, held))
    });
    let own = NonNull::new(at_fork.own.cast_mut());
    claim::begin_child();
    // SAFETY: as the caller says, and what may be in use stays mapped; `own` is mapped here, with as many slots.
    unsafe {
        mapped::forget(&old, own);
        let goes_on = match (own, &new) {
            (None, _) => true,
            (Some(own), Some((new, file, _))) => inherit(new, file, own, at_fork, counting),
            (Some(_), None) => false,
        };
        match own {
            Some(own) if !goes_on => {
                claim::disown();
                mapped::abandon_ring(&old, own);
            }
            _ => at_fork.go_on(),
        }
    }
    parents.close();
    if let Some((new, file, held)) = &new {
        make_known(new, *file, held);
    }
    own_memory::keep();
    let is_known = new.is_some_and(|(new, file, held)| {
        count_early(&new);
        let is_told = tell(file);
        has_met(is_told, file, held);
        is_told
    });
    if !is_known {
        old.shared_control().unknown_children.fetch_add(1, Relaxed);
    }
    // SAFETY: as above.
    unsafe { old.abandon() };
}

/// Counts what came before the child has begun.
fn count_early(memfd: &Memfd) {
    match EARLY.swap(0, Relaxed) {
        0 => {}
        early if tsc::may_read() => memfd.shared().count_lost(early, crate::arch::rdtsc()),
        early => drop(memfd.shared_control().without_tsc.fetch_add(early.into(), Relaxed)),
    }
}

/// Puts the first ring of the child's memfd in the place of the parent's ring of this thread, where it goes on. False where that
/// cannot be done.
///
/// # Safety
///
/// `own` is mapped, with as many slots as the memfd's rings have.
unsafe fn inherit(
    memfd: &Memfd,
    file: &OfMemfd,
    own: NonNull<RingControl>,
    at_fork: &AtFork,
    counting: Counting,
) -> bool {
    let Some(fd) = file.number() else { return false };
    // SAFETY: as above; a child has one thread, which is here.
    unsafe {
        mapped::replace(memfd, fd, own, |own| {
            let control = claim::inherit(memfd, own, at_fork);
            // Counters are opened with the next event that finds no room.
            if !counting.is_nothing()
                && let Some(ring) = Ring::new(control, memfd.config().ring_slots)
            {
                ring.decline();
            }
            control
        })
    }
}

/// How long a thread may wait for room in its ring, if the agent wants it to wait.
pub(crate) fn full_wait() -> Option<Duration> {
    let limit = memfd()?.header().full_wait_us.load(Relaxed);
    (limit > 0).then(|| Duration::from_micros(limit.into()).min(MAX_FULL_WAIT))
}

/// Writes to the directory what the events of waits for room are, before the first of them is written. Several
/// threads may do so at once; the first entry counts.
pub(crate) fn describe_waits() {
    static ARGS: [layout::Arg; 1] = [site::arg::<Tsc>("until")];
    static META: SiteMeta =
        site::meta(SiteKind::RingWait, "trace.ring_wait", (file!(), line!()), "", &ARGS);
    describe(&WAITS_DESCRIBED, RING_WAIT_KEY, &META);
}

/// What threads are to read with each event.
pub(crate) fn counting() -> Counting {
    memfd().as_ref().map(counting_of).unwrap_or_default()
}

fn counting_of(memfd: &Memfd) -> Counting {
    match memfd.config().mode {
        Mode::Discard => Counting(memfd.header().counting.load(Relaxed)),
        Mode::Overwrite => Counting::default(),
    }
}

/// As [`describe_waits`], of the events that say what counters show.
pub(crate) fn describe_counters() {
    static ARGS: [layout::Arg; 3] =
        [site::arg::<i64>("stretch"), site::arg::<i64>("first"), site::arg::<i64>("second")];
    static META: SiteMeta =
        site::meta(SiteKind::Counters, "trace.counters", (file!(), line!()), "", &ARGS);
    describe(&COUNTERS_DESCRIBED, COUNTERS_KEY, &META);
}

fn describe(done: &AtomicU32, key: u32, meta: &'static SiteMeta) {
    // Before the memfd: a handler can fork at any time.
    let generation = GENERATION.load(Relaxed);
    if done.load(Relaxed) != generation
        && let Some(memfd) = memfd()
    {
        memfd.directory().meta(key, meta);
        done.store(generation, Relaxed);
    }
}

/// Writes an event to the shared ring, for a thread without a ring of its own; counts it as lost where the thread may not read
/// the time stamp counter. Drops it when tracing has not started.
pub(crate) fn shared_write(key: u32, words: &[u64]) {
    loop {
        let Some(memfd) = memfd() else {
            EARLY.fetch_add(u32::from(own_memory::is_copy() == Some(true)), Relaxed);
            return;
        };
        if !tsc::may_read() {
            memfd.shared_control().without_tsc.fetch_add(1, Relaxed);
            return;
        }
        // The thread has no ring, so nothing knows where its CPU number is.
        // By the C library, which needs no system call for it.
        // SAFETY: takes no pointer.
        let cpu = unsafe { libc::sched_getcpu() };
        let cpu = u16::try_from(cpu).unwrap_or(commit::CPU_UNKNOWN as u16);
        let event = Event { tid: claim::tid(), key, cpu, words };
        let is_written = memfd.shared().write(event, crate::arch::rdtsc);
        compiler_fence(SeqCst);
        // A memfd that was abandoned stays mapped, so another one is elsewhere.
        if made().is_none_or(|now| now.base() == memfd.base()) {
            if !is_written {
                lease::after_losses(memfd.shared_control().lost.load(Relaxed));
            }
            return;
        }
        // This is a child that a handler has forked in between: what was written went to the parent, or nowhere.
    }
}
