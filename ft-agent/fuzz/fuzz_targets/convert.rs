//! A segment of a recording to events and to the analyses of them: any directory, any slots, any shared
//! slots, any kernel records between two good clock samples. Nothing ends with an error, events are in
//! order, and every decomposition sums.
//!
//! Tables cost a thousand times what decoding does. So one input of 256, chosen by its own content, is
//! converted whole: it must have the user events that were decoded.
#![no_main]

mod recording;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ft_analysis::{Context, Run};
use ft_trace::convert::{Follower, convert};
use ft_trace::event::Event;
use ft_trace::spool::Segment;
use libfuzzer_sys::arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use recording::Recording;

/// One input of so many is converted whole.
const WHOLE: u64 = 256;

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = Recording::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    let dir = dir();
    recording.write(dir);
    let user_events = follow(dir);
    assert!(user_events <= recording.slots());
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    if hasher.finish().is_multiple_of(WHOLE) {
        let mut told = None;
        convert(dir, |report, left| told = Some((report.clone(), left))).expect("a conversion");
        let (report, left) = told.expect("one segment");
        assert_eq!((report.user_events, left), (user_events, 0));
        fs::remove_dir_all(dir).expect("the trace goes");
    }
});

/// Decodes and analyses the segment; the number of user events.
fn follow(dir: &Path) -> u64 {
    let mut follower = Follower::new(dir).expect("a registry");
    let segment = Segment { number: 0, from_ns: 0, to_ns: i64::MAX, bytes: 0 };
    let followed = follower.segment(&segment).expect("a segment");
    assert!(followed.events.is_sorted_by_key(Event::ts));

    let context = Context::new(follower.records_kernel(), 0, &[], &[], &[]);
    let mut analysis = Run::new(context);
    analysis.learn(followed.bound_ns, &followed.threads, &followed.sites, &followed.names);
    followed.events.iter().for_each(|event| analysis.push(event));
    let (rows, tally) = analysis.finish();
    assert_eq!((tally.events, tally.disordered), (followed.events.len() as u64, 0));
    for section in &rows.critical_sections {
        if let Some(parts) = section.parts {
            assert_eq!(parts.to_array().iter().sum::<i64>(), section.dur, "{section:?}");
        }
    }
    followed.events.iter().filter(|event| matches!(event, Event::User(_))).count() as u64
}

fn dir() -> &'static PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| tempfile::Builder::new().tempdir_in("/dev/shm").unwrap().keep())
}
