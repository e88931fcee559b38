//! What a test of counters looks at.

use std::collections::BTreeSet;
use std::fs;

use ft_user::layout::{Counter, SiteKind};

use super::Event;

/// Counters of these names.
pub(crate) fn counters(names: &[&str]) -> Vec<&'static Counter> {
    names.iter().map(|name| Counter::named(name).expect("a counter")).collect()
}

/// What counters show at each event of a name: those of the event of the same thread and time.
pub(crate) fn readings(events: &[Event], name: &str) -> Vec<Option<[u64; 3]>> {
    let of = |event: &Event| {
        let is_its =
            |e: &&Event| e.kind == SiteKind::Counters && (e.tid, e.tsc) == (event.tid, event.tsc);
        events.iter().find(is_its).map(|e| [e.words[0], e.words[1], e.words[2]])
    };
    events.iter().filter(|event| event.name == name).map(of).collect()
}

/// Numbers of open descriptors.
pub(crate) fn numbers() -> BTreeSet<i32> {
    let open = fs::read_dir("/proc/self/fd").unwrap().map(|fd| fd.unwrap().file_name());
    let open: Vec<i32> = open.map(|number| number.to_str().unwrap().parse().unwrap()).collect();
    // Without that of the directory, which is closed by now.
    // SAFETY: this asks and changes nothing.
    open.into_iter().filter(|fd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0).collect()
}
