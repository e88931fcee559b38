//! Who makes which snapshot.

use rustix::process::getpriority_process;

use super::*;
use crate::threads::LOWEST;
use ft_trace::convert::synthetic::{file, registry, sample};
use ft_trace::spool::frame::Frame;

fn nice() -> i32 {
    getpriority_process(None).unwrap()
}

#[test]
fn a_snapshot_that_somebody_waits_for_is_made_with_the_priority_of_the_agent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    registry(&path, &[], false);
    let second = Duration::from_secs(1);
    let options = FlightOptions {
        window: second,
        budget_bytes: 1 << 20,
        triggers: Vec::new(),
        distance: second,
        most: 1,
    };
    let (told, messages) = channel();
    let report = move |message: &Message| match message {
        Message::Taken { reason, .. } => told.send((reason.clone(), nice())).unwrap(),
        Message::Failed(error) => panic!("{error}"),
    };
    let (flight, segments) = Flight::spawn(path.clone(), &options, report).unwrap();
    let mut number = 0;
    let mut close = |reason: &str, is_awaited, last| {
        let ns = 1_000_000 * (2 * number + 1);
        let clocks = [ns, ns + 1_000_000].map(|ns| Frame::Clock(sample(ns)));
        file(&Spool::of(&path).segment(number as u32), &clocks);
        let (from_ns, to_ns) = (ns as i64, ns as i64 + 1_000_000);
        let segment = Segment { number: number as u32, from_ns, to_ns, bytes: 100 };
        let wish = Wish { reason: reason.into(), is_awaited, answers: Vec::new() };
        segments.closed.send(Closed { segment, snapshot: Some(wish), last }).unwrap();
        number += 1;
        messages.recv().unwrap()
    };
    assert_eq!(close("trigger", false, false), ("trigger".into(), LOWEST));
    assert_eq!(close("person", true, false), ("person".into(), nice()));
    assert_eq!(close("end", true, true), ("end".into(), nice()));
    drop(segments);
    let finished = flight.finish().unwrap();
    assert!(finished.ended);
    assert_eq!(finished.snapshots, complete(&path).unwrap());
    assert_eq!(finished.snapshots.len(), 3);
}
