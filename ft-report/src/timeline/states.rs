//! The states of a thread that the picture tells apart, by number.

use ft_analysis::world::Stretch;
use ft_trace::tables::Part;

/// Parts of a thread's time that the picture tells apart. Waiting for a lock is *blocked* in the tables.
pub(super) const STATES: [&str; 9] = [
    "running",
    "preempted",
    "dispatch",
    "blocked",
    "lock",
    "hardirq",
    "softirq",
    "vector",
    "unexplained",
];

/// Number of a stretch's state, but for running.
pub(super) fn kind_of(s: &Stretch) -> u8 {
    let waits = s.culprit.is_lock();
    match s.part {
        Part::Running => 0,
        Part::Preempted => 1,
        Part::Dispatch => 2,
        Part::Blocked if waits => 4,
        Part::Blocked => 3,
        Part::Hardirq => 5,
        Part::Softirq => 6,
        Part::Vector => 7,
        Part::Unexplained => 8,
    }
}
