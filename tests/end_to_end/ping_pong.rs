//! Switches and wake-ups whose number is known.

use ft_trace::tables::{DispatchLatency, SchedSwitch, SchedWaking, UserEvent};

use crate::harness::{self, Stage};

#[test]
fn every_switch_and_wake_up_is_there_and_none_twice() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, dir) = stage.record(&[], &["ping-pong", "1000"]);
    let trace = harness::open(&dir);
    for player in ["ping", "pong"] {
        let tid = truth[player].as_i64().expect("tid") as i32;
        let switches = truth[&format!("{player}_switches")].as_u64().expect("count") as usize;
        let mark = |name: &str| {
            let mut events = trace.rows::<UserEvent>().map(|e| e.expect("a row"));
            events.find(|e| e.tid.0 == tid && &*e.event == name).expect("the mark").ts
        };
        let (begin, end) = (mark("pingpong.begin"), mark("pingpong.end"));
        let within = |ts| begin <= ts && ts <= end;

        let voluntary = trace
            .rows::<SchedSwitch>()
            .map(|row| row.expect("a row"))
            .filter(|s| s.prev_tid.0 == tid && !s.prev_state.is_runnable() && within(s.ts))
            .count();
        assert_eq!(
            voluntary, switches,
            "voluntary switches of {player}, by the kernel's own count"
        );

        let wakings = trace
            .rows::<SchedWaking>()
            .map(|row| row.expect("a row"))
            .filter(|w| w.tid.0 == tid && within(w.ts))
            .count();
        assert_eq!(wakings, switches, "one waking for each time that {player} blocked");

        let dispatched = trace
            .rows::<DispatchLatency>()
            .map(|row| row.expect("a row"))
            .filter(|d| d.tid.0 == tid && within(d.ts))
            .count();
        assert_eq!(dispatched, wakings, "one dispatch latency for each waking of {player}");
    }
    assert!(
        truth["ping_switches"].as_u64() >= Some(1000),
        "the subject itself did not play: {truth}"
    );
}
