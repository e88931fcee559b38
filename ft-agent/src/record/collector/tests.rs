//! Rounds of the collection: whose rings are read in which.

use std::path::Path;

use ft_user::patch::PatchError;

use super::*;
use crate::collect::inspect::{Found, Inspected};
use crate::collect::user::forged;
use crate::threads::Bell;
use ft_trace::spool::frame::Start;
use ft_trace::spool::{Limits, Spool};

/// Two users.
const FLOODING: u32 = 1;
const HONEST: u32 = 2;

/// Slots of a ring of who floods: three rounds' work are in two of them.
const SLOTS: u32 = 1 << 20;

const EVENTS: u64 = 100;

/// One without the kernel that has this to collect, and what it has copied.
fn collector<const N: usize>(dir: &Path, sources: [Source; N]) -> (Collector, Arc<Counters>) {
    let limits = Limits { bytes: u64::MAX, age: Duration::MAX };
    let spool = Spool::create(dir).unwrap();
    let writer = Writer::create(spool, limits, Start::default(), ClockSample::default()).unwrap();
    let wanted = Wanted {
        globs: Vec::new(),
        scope: Scope::Anybody,
        full_wait: None,
        counting: Counting::default(),
    };
    let counters = Arc::new(Counters::default());
    let (segments, intake) = (Segments::unused(), Intake::new(1024, crate::control::handle()));
    let notices = Notices::unheard();
    let mut collector =
        Collector::new(writer, None, wanted, counters.clone(), notices, segments, intake);
    let recorded = sources.map(|source| {
        let subject = Arc::new(Inspected::new(source.identity().pid, source.identity().uid));
        Recorded::new(source, subject, Vec::new())
    });
    collector.sources.extend(recorded);
    (collector, counters)
}

/// Whoever fills its rings, and whether it has ended meanwhile, takes its own share of a round.
#[test]
fn what_one_user_writes_delays_others_by_one_share() {
    for ended in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let flooding = forged::flooding(SLOTS, FLOODING, ended);
        let before = forged::unread(&flooding);
        let (mut collector, counters) =
            collector(dir.path(), [flooding, forged::honest(EVENTS, HONEST)]);
        collector.round().unwrap();
        let of = |collector: &Collector, uid| {
            let mut sources = collector.sources.iter().map(|recorded| &recorded.source);
            sources.find(|source| source.identity().uid == uid).map(forged::unread)
        };
        assert_eq!(of(&collector, HONEST), Some(0));
        let slots = counters.slots.load(Relaxed);
        assert!(slots >= 3 * EVENTS && slots < u64::from(SLOTS), "{slots} slots are copied");
        let left = of(&collector, FLOODING).expect("it is not done with");
        assert!(left > 0 && left < before, "{left} of {before} are left");
        // It is gone on with, and done with when it has ended.
        let mut rounds = 1;
        while of(&collector, FLOODING).is_some_and(|left| left > 0) {
            collector.round().unwrap();
            rounds += 1;
            assert!(rounds < 10, "it comes to an end");
        }
        assert_eq!(collector.finished.sources, u32::from(ended));
        let mut pause = Pause::new(Bell::new().unwrap(), []).unwrap();
        let ended = collector.finish("a test".into(), None, &mut pause).unwrap();
        assert_eq!(ended.sources, 2);
    }
}

#[test]
fn sites_of_a_process_that_has_ended_do_not_stay_off() {
    for (ended, told) in [(false, 1), (true, 0)] {
        let dir = tempfile::tempdir().unwrap();
        let (mut collector, _) = collector(dir.path(), [forged::flooding(4096, HONEST, ended)]);
        let number = collector.sources[0].source.number();
        let refused = vec![PatchError::NotText { address: 7 }];
        collector.found(number, Found { refused, ..Found::default() }).unwrap();
        assert_eq!(collector.notices.left_out(), told);
    }
}
