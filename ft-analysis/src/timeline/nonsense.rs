//! What no program does: random events, and payloads at which arithmetic breaks.

use ft_trace::event::{Event, LeanUserEvent};
use ft_trace::ids::{Cpu, Nanos, Pid, SiteId, Tid};

use super::SITES;

/// Numbers below the one that is given, at random; the same for the same seed, which is not 0 (xorshift, Marsaglia 2003).
pub fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    move |n| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    }
}

/// Random events, most of them nonsense together.
pub fn nonsense(seed: u64) -> String {
    let mut random = random(seed);
    let mut text = String::new();
    let mut t = 0;
    for _ in 0..400 {
        t += random(20);
        let thread = |i| ["a", "b", "c"][i as usize];
        let any = |i| ["a", "b", "c", "X", "."][i as usize];
        let (a, lock) = (thread(random(3)), thread(random(3)));
        let line = match random(15) {
            14 => {
                let kind = ["wait", "wake", "lock-pi"][random(3) as usize];
                let result = ["done", "timed-out", "unfinished"][random(3) as usize];
                format!("{t} futex {a} {kind} {lock} {} {result}", random(60))
            }
            12 => {
                let (name, ns) = (["x", "y", "restart_syscall"][random(3) as usize], random(60));
                let seen = ["", " entry", " return", " whole - -516"][random(4) as usize];
                let end = ["acquired", "failed", "unfinished", "end-only"][random(4) as usize];
                match random(4) {
                    1 => format!("{t} contend {a} {name} {ns} {lock} {end}"),
                    _ => format!("{t} call {a} {name} {ns}{seen}"),
                }
            }
            13 => {
                let how = ["", " 30 minor", " 50 major", " 9 minor kernel"][random(4) as usize];
                format!("{t} fault {a}{how}")
            }
            0..=2 => {
                let state = ["R", "R+", "S", "D", "X"][random(5) as usize];
                format!("{t} {} {}>{} {state}", random(2), any(random(5)), any(random(5)))
            }
            3 => {
                let wake = ["wake", "new"][random(2) as usize];
                format!("{t} {wake} {} {a} {}", any(random(5)), random(3))
            }
            4 => format!("{t} move {a} {} {}", random(2), random(2)),
            5 | 6 => {
                let kind = ["soft", "hard", "vector"][random(3) as usize];
                format!("{t} irq {a} {kind} {}", random(60))
            }
            7 => match random(12) {
                0 => format!("{t} lose sched {}", random(50)),
                1 => format!("{t} lose irq {}", random(50)),
                2 => format!("{t} lose ring {} {a}", random(50)),
                3 => format!("{t} exit {a}"),
                _ => format!("{t} poll {a} 0"),
            },
            8 => format!("{t} gap {a} 0 {} {}", t - random(t + 1), t - random(t + 1).min(20)),
            9 => format!("{t} {} {a} {lock}", ["acquire", "read", "wait"][random(3) as usize]),
            _ => {
                format!("{t} {} {a} {lock}", ["release", "park", "unpark"][random(3) as usize])
            }
        };
        text += &line;
        text.push('\n');
    }
    text
}

/// Numbers at which arithmetic breaks, and some around the time of the events.
pub const EXTREMES: [i64; 7] = [i64::MIN, -1, 0, 1, 1 << 40, i64::MAX - 1, i64::MAX];

/// Every kind of event with every combination of extremes in its payload, at times that rise from `first` by `step`.
pub fn every_payload(first: i64, step: i64) -> impl Iterator<Item = Event> {
    let sites = 0..=SITES.len() as i32;
    let payloads = EXTREMES.into_iter().flat_map(|a| {
        EXTREMES.into_iter().flat_map(move |b| EXTREMES.into_iter().map(move |c| [a, b, c]))
    });
    let events = payloads.flat_map(move |arg| sites.clone().map(move |site| (arg, site)));
    events.zip(0i64..).map(move |((arg, site), i)| {
        Event::User(LeanUserEvent {
            ts: Nanos(first + i * step),
            pid: Pid(1),
            // All events of a payload on one thread, however many sites there are.
            tid: Tid(97 + (i / (SITES.len() as i64 + 1) % 3) as i32),
            cpu: Cpu((i % 4) as i32 - 1),
            site: SiteId(site),
            arg,
        })
    })
}
