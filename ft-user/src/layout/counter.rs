//! Which counters threads read with their events, in one word of the header.

/// Counters that threads can read at once. Every processor with counters has room for more (Intel SDM volume 3, chapter
/// "performance monitoring": two of any kind and three fixed ones at least).
///
/// Limit: more are refused; the event has no counts, and intervals that begin or end with it have null.
/// Shown by: `what_cannot_be_is_refused`, `a_page_that_always_changes_is_given_up`.
pub const COUNTERS_AT_ONCE: usize = 2;

/// A counter of perf_event_open(2). All count what their thread does in user space; `task-clock` all of its time on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// What `perf list` calls it.
    pub name: &'static str,
    /// `PERF_TYPE_…` (linux/perf_event.h).
    pub kind: u32,
    /// Its number among those of that type.
    pub config: u64,
}

impl Counter {
    /// The kernel counts it, not the processor: so it takes a system call to read it.
    pub const fn is_software(&self) -> bool {
        self.kind == SOFTWARE
    }

    /// It counts the nanoseconds that its thread was on a CPU, in the kernel, too.
    pub const fn is_time(&self) -> bool {
        self.is_software() && self.config == TASK_CLOCK
    }

    /// The counter of this name.
    pub fn named(name: &str) -> Option<&'static Counter> {
        COUNTERS.iter().find(|counter| counter.name == name)
    }
}

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const TASK_CLOCK: u64 = 1;
/// Its config: the cache, the operation << 8 (0: a read), and the result << 16 (1: a miss).
const CACHE: u32 = 3;

const fn counter(name: &'static str, kind: u32, config: u64) -> Counter {
    Counter { name, kind, config }
}

/// All that can be asked for. Their places are their numbers in [`Counting`]: new ones come last.
pub const COUNTERS: [Counter; 15] = [
    counter("cycles", HARDWARE, 0),
    counter("instructions", HARDWARE, 1),
    counter("cache-references", HARDWARE, 2),
    counter("cache-misses", HARDWARE, 3),
    counter("branches", HARDWARE, 4),
    counter("branch-misses", HARDWARE, 5),
    counter("stalled-cycles-frontend", HARDWARE, 7),
    counter("stalled-cycles-backend", HARDWARE, 8),
    counter("ref-cycles", HARDWARE, 9),
    counter("L1-dcache-load-misses", CACHE, 0x10000),
    counter("LLC-load-misses", CACHE, 0x10002),
    counter("dTLB-load-misses", CACHE, 0x10003),
    counter("task-clock", SOFTWARE, TASK_CLOCK),
    counter("page-faults", SOFTWARE, 2),
    counter("major-faults", SOFTWARE, 6),
];

/// What threads are asked to read with each of their events; the default is nothing.
///
/// As a word: a byte for each counter, its number and one, and [`Counting::BY_CALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counting(pub u32);

impl Counting {
    /// What the processor does not show to programs is read by system calls with each event.
    pub const BY_CALL: u32 = 1 << 31;

    /// These counters, [`COUNTERS_AT_ONCE`] at most.
    pub fn new(counters: &[&'static Counter], by_call: bool) -> Counting {
        let number = |counter| COUNTERS.iter().position(|known| known == counter);
        let bytes = counters.iter().take(COUNTERS_AT_ONCE).filter_map(|counter| number(*counter));
        let word =
            bytes.zip(0..).fold(0, |word, (number, at)| word | (number as u32 + 1) << (8 * at));
        Counting(if by_call && word != 0 { word | Counting::BY_CALL } else { word })
    }

    /// Nothing is to be read.
    pub const fn is_nothing(self) -> bool {
        self.0 == 0
    }

    /// What cannot be asked of the processor may be asked of the kernel.
    pub const fn by_call(self) -> bool {
        self.0 & Counting::BY_CALL != 0
    }

    /// The counters, in their order.
    pub fn counters(self) -> [Option<&'static Counter>; COUNTERS_AT_ONCE] {
        core::array::from_fn(|at| {
            COUNTERS.get(((self.0 >> (8 * at)) & 0xff).checked_sub(1)? as usize)
        })
    }
}

/// Key of the event that has what the counters of its thread show at the time of the event that follows it: [`SiteKind::Counters`].
/// No site has it, as [`LOSS_KEY`](super::LOSS_KEY).
///
/// [`SiteKind::Counters`]: super::SiteKind::Counters
pub const COUNTERS_KEY: u32 = 24;

/// What stands for a counter that is not asked for.
pub const NOT_COUNTED: u64 = u64::MAX;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_which_counters_and_how() {
        let [misses, faults] =
            ["cache-misses", "page-faults"].map(|name| Counter::named(name).unwrap());
        let both = Counting::new(&[misses, faults], true);
        assert_eq!((both.counters(), both.by_call()), ([Some(misses), Some(faults)], true));
        let one = Counting::new(&[faults], false);
        assert_eq!((one.counters(), one.by_call()), ([Some(faults), None], false));
        assert!(Counting::new(&[], true).is_nothing() && Counter::named("cache-mises").is_none());
        // A word of anybody's making has counters that there are, or none.
        assert_eq!(Counting(0x7fff_ffff).counters(), [None; 2]);
    }
}
