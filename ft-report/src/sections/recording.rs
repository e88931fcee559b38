//! What the recording itself did: a part of every report's head.

use serde::Serialize;

use super::Input;
use crate::document::{MeanNs, Ns, Of, Section, Share, Text};
use crate::text;
use ft_analysis::{HeldUp, Overhead};
use ft_trace::event::Event;
use ft_trace::spool::frame::Probe;
use ft_trace::store::Row;
use ft_trace::tables::{LossRow, ProbeHit, UserEvent};

/// The figures.
#[derive(Clone, Debug, Serialize)]
pub struct Recording {
    /// Process that recorded.
    pub agent_pid: i32,
    /// Time that was recorded, ns; null when the recording was killed.
    pub duration_ns: Option<i64>,
    /// What its threads did to those that were recorded, by the scheduler's records; null without these.
    pub scheduler: Option<Overhead>,
    /// Scheduler records were lost: the figures of `scheduler` are lower bounds.
    pub lower_bound: bool,
    /// CPU time of its threads while it recorded, by their own clock, ns; null of a snapshot and where the recording was killed.
    pub agent_cpu_ns: Option<i64>,
    /// Events of the recorded programs.
    pub user_events: u64,
    /// Records of the kernel.
    pub kernel_records: u64,
    /// Bytes of the spool; null of a snapshot and where the recording was killed.
    pub spool_bytes: Option<u64>,
    /// Cost of one event as measured at the start, ns: two words, warm caches.
    pub event_cost_ns: Option<f64>,
    /// All events at this cost, ns: about what they took inside the programs.
    pub events_cost_ns: Option<i64>,
    /// What hits of probes took; not there where there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes: Option<Probing>,
}

/// What hits of probes took inside the programs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Probing {
    /// How many.
    pub hits: u64,
    /// Cost of one as measured at the start, ns: half of a begin and an end, of the dearest probe; null where one could not be
    /// measured.
    pub hit_cost_ns: Option<f64>,
    /// All at this cost, ns.
    pub cost_ns: Option<i64>,
}

impl Probing {
    fn of(hits: u64, probes: &[Probe]) -> Option<Probing> {
        let costs: Option<Vec<f64>> = probes.iter().map(|probe| probe.cost_ns).collect();
        let dearest = costs.and_then(|costs| costs.into_iter().reduce(f64::max));
        let hit_cost_ns = dearest.map(|both| both / 2.0);
        let cost_ns = hit_cost_ns.map(|cost| (hits as f64 * cost) as i64);
        (hits > 0).then_some(Probing { hits, hit_cost_ns, cost_ns })
    }
}

impl Recording {
    /// Of a trace that says who recorded it.
    pub(super) fn read(Input { trace, tally, .. }: Input<'_>) -> Option<Recording> {
        let meta = trace.meta();
        let rows = |table: &str| meta.tables.get(table).map_or(0, |table| table.rows);
        let kernel =
            Event::TABLES.iter().filter(|t| ![UserEvent::TABLE, LossRow::TABLE].contains(t));
        let (user_events, event_cost_ns) = (rows(UserEvent::TABLE), meta.start.event_cost_ns);
        let end = meta.end.as_ref();
        let from = meta.start.window_from_ns.unwrap_or(meta.start.start_ns);
        Some(Recording {
            agent_pid: meta.start.agent_pid?,
            duration_ns: end.map(|end| end.ts - from),
            scheduler: tally.overhead.filter(|_| tally.kernel),
            lower_bound: tally.lost_kernel_records + tally.unseen_switches > 0,
            agent_cpu_ns: end.and_then(|end| end.agent_cpu_ns),
            user_events,
            kernel_records: kernel.map(|table| rows(table)).sum(),
            spool_bytes: end.map(|end| end.bytes).filter(|bytes| *bytes > 0),
            event_cost_ns,
            events_cost_ns: event_cost_ns.map(|cost| (user_events as f64 * cost) as i64),
            probes: Probing::of(rows(ProbeHit::TABLE), &meta.start.probes),
        })
    }

    /// What it says.
    pub(super) fn say(&self, s: &mut Section) {
        s.item("recording", self.threads());
        s.say(self.rates());
    }

    /// What the agent's threads did.
    fn threads(&self) -> Text {
        let Some(o) = &self.scheduler else {
            let unknown = "whom they held up is not known without the kernel group `sched`";
            return match self.agent_cpu_ns {
                Some(ns) => text!("{} of CPU time by ft-agent's threads; {}", Ns(ns), unknown),
                None => text!("what ft-agent's threads did is not known: {}", unknown),
            };
        };
        let text = text!(
            "{}{} of CPU time by ft-agent's threads, {} of it on CPUs where recorded threads ran",
            if self.lower_bound { "at least " } else { "" },
            Ns(o.cpu_ns),
            Share(o.shared_ns, o.cpu_ns)
        );
        let times = |h: &HeldUp, what: &str| {
            let (times, ns, most) = (Of(h.times, "time"), Ns(h.total_ns), Ns(h.longest_ns));
            (h.times > 0)
                .then(|| text!("{} {} ({} in all threads, at most {})", what, times, ns, most))
        };
        let both = [times(&o.preempted, "preempted them"), times(&o.woken, "delayed woken ones")];
        match Text::join(both.into_iter().flatten(), " and ") {
            Some(both) => text!("{}; {}", text, both),
            None => text.and("; none of these waited for them"),
        }
    }

    /// How much it recorded, and what that took.
    fn rates(&self) -> Text {
        let second = |n: u64| {
            let seconds = self.duration_ns.filter(|ns| *ns > 0)? as f64 / 1e9;
            Some((n as f64 / seconds).round() as u64)
        };
        let events = second(self.user_events + self.kernel_records).map(|n| Of(n, "event"));
        let bytes = self.spool_bytes.and_then(second).map(|n| Of(n, "byte"));
        let rate = match (events, bytes) {
            (Some(events), Some(bytes)) => text!("{} and {} a second", events, bytes),
            (Some(events), None) => text!("{} a second", events),
            (None, _) => text!("{}", Of(self.user_events + self.kernel_records, "event")),
        };
        let mut told = vec![rate];
        let mut taken_ns = None;
        if let (Some(cost), Some(ns)) = (self.event_cost_ns, self.events_cost_ns)
            && self.user_events > 0
        {
            taken_ns = Some(ns);
            let (events, ns, cost) = (Of(self.user_events, "event"), Ns(ns), MeanNs(cost));
            told.push(text!(
                "{} of programs took these about {} ({} each, measured at the start)",
                events,
                ns,
                cost
            ));
        }
        match self.probes {
            Some(Probing { hits, hit_cost_ns: Some(cost), cost_ns: Some(ns) }) => {
                taken_ns = Some(taken_ns.unwrap_or(0) + ns);
                let (hits, ns, cost) = (Of(hits, "hit"), Ns(ns), MeanNs(cost));
                told.push(text!(
                    "{} of probes took programs about {} ({} each, measured at the start)",
                    hits,
                    ns,
                    cost
                ));
            }
            Some(Probing { hits, .. }) => told.push(text!(
                "what {} of probes took programs could not be measured",
                Of(hits, "hit")
            )),
            None => {}
        }
        let told = Text::join(told, "; ").unwrap_or_default();
        match (self.scheduler.map(|o| o.running_ns).filter(|ns| *ns > 0), taken_ns) {
            (Some(running), Some(ns)) => {
                text!("{}, {} of their running time", told, Share(ns, running))
            }
            _ => told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(recording: &Recording) -> String {
        let mut s = Section::new("trace", "");
        recording.say(&mut s);
        format!("{s:200}").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn recording() -> Recording {
        Recording {
            agent_pid: 7,
            duration_ns: Some(2_000_000_000),
            scheduler: Some(Overhead {
                cpu_ns: 200_000_000,
                shared_ns: 150_000_000,
                preempted: HeldUp { times: 12, total_ns: 3_000_000, longest_ns: 1_000_000 },
                woken: HeldUp::default(),
                running_ns: 1_000_000_000,
            }),
            lower_bound: false,
            agent_cpu_ns: Some(210_000_000),
            user_events: 3_000_000,
            kernel_records: 1_000_000,
            spool_bytes: Some(100_000_000),
            event_cost_ns: Some(10.0),
            events_cost_ns: Some(30_000_000),
            probes: None,
        }
    }

    #[test]
    fn hits_of_probes_have_a_cost_of_their_own() {
        let probe = |cost_ns| Probe { cost_ns, ..Probe::default() };
        assert!(Probing::of(0, &[probe(Some(2200.0))]).is_none());
        let probes = Probing::of(40_000, &[probe(Some(2200.0)), probe(Some(1000.0))]);
        let none = Recording { user_events: 0, events_cost_ns: Some(0), probes, ..recording() };
        let said = "500,000 events and 50,000,000 bytes a second; 40,000 hits of probes took programs about 44.0 ms \
                    (1.10 µs each, measured at the start), 4.4 % of their running time";
        assert!(text(&none).ends_with(said), "{}", text(&none));
        let neither = Recording { probes: None, ..none.clone() };
        assert!(text(&neither).ends_with(" bytes a second"), "{}", text(&neither));
        let both = Recording { probes, ..recording() };
        assert!(text(&both).ends_with(", 7.4 % of their running time"), "{}", text(&both));
        let probes = Probing::of(2, &[probe(Some(2200.0)), probe(None)]);
        let unknown = Recording { probes, ..none };
        let said = "; what 2 hits of probes took programs could not be measured";
        assert!(text(&unknown).ends_with(said), "{}", text(&unknown));
    }

    #[test]
    fn what_the_recording_did_is_said() {
        assert_eq!(
            text(&recording()),
            "recording 200 ms of CPU time by ft-agent's threads, 75.0 % of it on CPUs where recorded threads ran; \
             preempted them 12 times (3.00 ms in all threads, at most 1.00 ms) \
             2,000,000 events and 50,000,000 bytes a second; 3,000,000 events of programs took these about 30.0 ms \
             (10 ns each, measured at the start), 3.0 % of their running time"
        );
    }

    #[test]
    fn without_switches_what_is_not_known_is_said() {
        let text = text(&Recording { scheduler: None, ..recording() });
        let expected = "recording 210 ms of CPU time by ft-agent's threads; whom they held up is not known without \
                        the kernel group `sched`";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("measured at the start)"), "{text}");
    }

    #[test]
    fn of_a_recording_that_was_killed_there_are_no_rates() {
        let killed =
            Recording { duration_ns: None, spool_bytes: None, agent_cpu_ns: None, ..recording() };
        assert!(
            text(&killed).contains(" 4,000,000 events; 3,000,000 events of"),
            "{}",
            text(&killed)
        );
        let text = text(&Recording { lower_bound: true, ..killed });
        assert!(text.starts_with("recording at least 200 ms"), "{text}");
    }
}
