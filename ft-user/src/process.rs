//! What there is once per process: the memfd, the start, and the events without a ring.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering::*};
use core::time::Duration;

use crate::critical::{Held, Lock};
use crate::layout::{
    self, COUNTERS_KEY, Counting, Mode, RING_WAIT_KEY, SiteKind, SiteMeta, commit,
};
use crate::memfd::Memfd;
use crate::shared_ring::Event;
use crate::sites::{self, Count};
use crate::{
    Agent, Config, InitError, Status, Tsc, claim, config, enable, fork, glob, intern, register,
    site, tsc,
};

pub(crate) use crate::claim::claim_ring;

/// Serialises start, enabling and fork. Never taken by an event.
pub(crate) static LOCK: Lock = Lock::new();

/// The present [`Memfd`] in parts; `BASE` is null before the start, and stored last.
static BASE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static FD: AtomicI32 = AtomicI32::new(-1);
static RING_SLOTS: AtomicU32 = AtomicU32::new(0);
static RINGS: AtomicU32 = AtomicU32::new(0);
static OVERWRITE: AtomicU32 = AtomicU32::new(0);

/// Whether the directory of the present memfd says what a wait for room is.
static WAITS_DESCRIBED: AtomicU32 = AtomicU32::new(0);

/// Whether it says what counters show.
static COUNTERS_DESCRIBED: AtomicU32 = AtomicU32::new(0);

/// Nobody waits longer for room, whatever the agent says.
const MAX_FULL_WAIT: Duration = Duration::from_secs(1);

/// Starts tracing with the default [`Config`] and the environment's overrides.
///
/// Makes the memfd, enables what `FT_ENABLE` says, and registers with the agent if one listens. Without
/// an agent that takes 34 to 100 µs in a small program and 67 to 212 µs in one with 500 sites (`cargo xtask bench startup`);
/// with one that does not answer, half a second more, and five seconds where `FT_SOCKET` names it. Starts no thread.
/// A later call enables in the libraries that were loaded meanwhile what is to be on ([`enable`](crate::enable())), and
/// changes nothing else.
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
    let held = LOCK.hold();
    let (memfd, first) = match memfd() {
        Some(memfd) => (memfd, None),
        None => start(config, &held).map(|(memfd, count)| (memfd, Some(count)))?,
    };
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
        let mut enable = |glob: &str| {
            enable::set(glob, true);
            count = None;
        };
        config::env(c"FT_ENABLE").into_iter().flat_map(glob::split).for_each(&mut enable);
        agent = register::register(memfd.fd(), &socket, register::patience(), enable);
    }
    let count = count.unwrap_or_else(|| enable::catch_up(&memfd, &LOCK.hold()));
    Ok(Status {
        sites: count.all,
        refused: count.refused,
        enabled: count.enabled,
        agent,
        config: memfd.config(),
    })
}

/// Makes the memfd, describes the sites in it, and makes both known.
pub(crate) fn start(config: Config, held: &Held<'_>) -> Result<(Memfd, Count), InitError> {
    claim::prepare()?;
    fork::prepare()?;
    let memfd = Memfd::create(config)?;
    let directory = memfd.directory();
    let count = sites::write_all(&directory, held);
    intern::write_all(&directory);
    WAITS_DESCRIBED.store(0, Relaxed);
    COUNTERS_DESCRIBED.store(0, Relaxed);
    memfd.publish();

    FD.store(memfd.fd(), Relaxed);
    RING_SLOTS.store(memfd.config().ring_slots, Relaxed);
    RINGS.store(memfd.config().rings, Relaxed);
    OVERWRITE.store((memfd.config().mode == Mode::Overwrite) as u32, Relaxed);
    // SYNC: memfd
    BASE.store(memfd.base().as_ptr(), Release);
    Ok((memfd, count))
}

/// The memfd of this process, once it is made.
#[inline]
pub(crate) fn memfd() -> Option<Memfd> {
    // SYNC: memfd
    let base = NonNull::new(BASE.load(Acquire))?;
    let config = Config {
        ring_slots: RING_SLOTS.load(Relaxed),
        rings: RINGS.load(Relaxed),
        mode: if OVERWRITE.load(Relaxed) == 0 { Mode::Discard } else { Mode::Overwrite },
    };
    // SAFETY: `start` has stored these parts together, and a memfd stays mapped until `forget`.
    Some(unsafe { Memfd::from_parts(FD.load(Relaxed), base, config) })
}

/// In a forked child: lets go of the parent's memfd, and says what sizes it had, and what its threads were to count.
///
/// # Safety
///
/// The calling thread is the only one, and no event is being written.
pub(crate) unsafe fn forget() -> Option<(Config, Counting)> {
    let (memfd, counting) = (memfd()?, counting());
    BASE.store(ptr::null_mut(), Relaxed);
    // SAFETY: nobody else runs, and the thread has no ring any more.
    unsafe { memfd.forget(claim::forget_rings()) };
    Some((memfd.config(), counting))
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
    match memfd() {
        Some(memfd) if memfd.config().mode == Mode::Discard => {
            Counting(memfd.header().counting.load(Relaxed))
        }
        _ => Counting::default(),
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
    if done.load(Relaxed) == 0
        && let Some(memfd) = memfd()
    {
        memfd.directory().meta(key, meta);
        done.store(1, Relaxed);
    }
}

/// Writes an event to the shared ring, for a thread without a ring of its own; counts it as lost where the thread may not read
/// the time stamp counter. Drops it when tracing has not started.
pub(crate) fn shared_write(key: u32, words: &[u64]) {
    let Some(memfd) = memfd() else { return };
    if !tsc::may_read() {
        memfd.shared_control().without_tsc.fetch_add(1, Relaxed);
        return;
    }
    // The thread has no ring, so nothing knows where its CPU number is.
    // SAFETY: takes no pointer.
    let cpu = unsafe { libc::sched_getcpu() };
    let cpu = u16::try_from(cpu).unwrap_or(commit::CPU_UNKNOWN as u16);
    let event = Event { tid: claim::tid(), key, cpu, words };
    memfd.shared().write(event, crate::arch::rdtsc);
}
