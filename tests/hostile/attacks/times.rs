//! Events at times at which nothing has happened: before the machine was started, in a minute, in a century, and in no order.
//! Whoever believes those of the future lets everything that goes on at the end last until then.

use ft_trace::tables::UserEvent;

use crate::Attack;
use crate::own_rings::OwnRings;
use crate::stage::{Attacker, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "times", program, test };

/// Of each time.
const EVENTS: u64 = 100;

/// Cycles of a counter: half a minute at least, and less than an hour.
const LATER: u64 = 1 << 38;

fn program(attacker: &Attacker) {
    let mut rings = OwnRings::record(&attacker.socket);
    for n in 0..EVENTS {
        // SAFETY: reads the time stamp counter.
        let now = unsafe { std::arch::x86_64::_rdtsc() };
        let times = [n, u64::MAX - n, now + LATER - n, now - n, now + (u64::MAX - now) / 2];
        times.into_iter().for_each(|tsc| rings.acquire_at(std::process::id(), tsc));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    attacker.stay();
}

fn test(stage: &Stage) {
    let recorded = stage.attack(&ATTACK, &[]);
    recorded.assert_told(&["slots or records were not valid"]);
    let end = recorded.trace.meta().end.as_ref().expect("an end").ts;
    let events = recorded.trace.rows::<UserEvent>().map(|event| event.expect("a row"));
    let (late, theirs) = events.fold((0, 0), |(late, theirs), event| {
        let is_theirs = event.pid.0 == recorded.attacker;
        (late + u32::from(event.ts.0 > end), theirs + u32::from(is_theirs))
    });
    assert_eq!(late, 0, "later than the end of the recording");
    assert!(u64::from(theirs) >= EVENTS, "those of now are believed: {theirs}");
}
