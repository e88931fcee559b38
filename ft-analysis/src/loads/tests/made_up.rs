//! Workers whose schedule is made up, and so known.

use proptest::prelude::*;

use super::*;
use ft_trace::tables::Gap;

/// What happens to a worker next.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Another thread has the CPU for so long.
    Preempted(i64),
    /// An interrupt takes so long, which the worker notices.
    Interrupted(i64),
    /// One that it does not notice.
    Overlooked(i64),
}

fn fate() -> impl Strategy<Value = (i64, Fate)> {
    let fate = prop_oneof![
        (1i64..90).prop_map(Fate::Preempted),
        (1i64..40).prop_map(Fate::Interrupted),
        (1i64..4).prop_map(Fate::Overlooked),
    ];
    (1i64..60, fate)
}

/// A worker whose schedule is known, written as a timeline.
#[derive(Default)]
struct Made {
    text: String,
    now: i64,
    /// Of the present job: what it had, and what took it away.
    parts: [i64; 4],
    jobs: Vec<Known>,
}

/// The truth of a job: release, start, finish; had, preempted, interrupted, dispatch and late timer; backlog.
type Known = (i64, i64, i64, [i64; 4], i64);

const PERIOD: i64 = 100;
const HAD: i64 = 40;

impl Made {
    fn say(&mut self, at: i64, what: &str) {
        self.text += &format!("{at} {what}\n");
    }

    /// The worker has the CPU for `ns`, of which a job has them.
    fn runs(&mut self, ns: i64) {
        self.now += ns;
        self.parts[0] += ns;
    }

    /// It did not run for `ns`, as `lines` say, with the time of their begin.
    fn gap(&mut self, ns: i64) {
        let from = self.now;
        self.now += ns;
        self.say(self.now, &format!("gap a 0 {from} {}", self.now));
    }

    fn meets(&mut self, fate: Fate) {
        let at = self.now;
        match fate {
            Fate::Preempted(ns) => {
                self.say(at, "0 a>X R");
                self.say(at + ns, "0 X>a S");
                self.parts[1] += ns;
                self.gap(ns);
            }
            Fate::Interrupted(ns) => {
                self.say(at, &format!("irq a vector {ns}"));
                self.parts[2] += ns;
                self.gap(ns);
            }
            Fate::Overlooked(ns) => {
                self.say(at, &format!("irq a soft {ns}"));
                self.now += ns;
                self.parts[2] += ns;
            }
        }
    }

    /// Sleeps until `release`, and a timer and a dispatch more.
    fn sleeps(&mut self, release: i64, timer: i64, dispatch: i64) {
        let from = self.now;
        self.say(from, &format!("sleep a {release}"));
        self.say(from, "0 a>. S");
        self.say(release + timer, "wake . a 0");
        self.say(release + timer + dispatch, "0 .>a S");
        self.now = release + timer + dispatch;
        self.say(self.now, &format!("woke a {release} {}", self.now));
        self.say(self.now, &format!("gap a 0 {from} {}", self.now));
        self.parts[3] += timer + dispatch;
    }

    /// A worker that meets these fates.
    fn of(fates: &[(i64, Fate)], late: (i64, i64), jobs: i64) -> Made {
        let mut made = Made { now: 1000, ..Made::default() };
        made.text += "0 0 .>a S\n1 worker a 0 4 1\n2 span a 1000 100000 0\n3 demand a 40 100\n";
        made.text += "1000 poll a 0\n1000 first a 1000\n";
        let mut fates = fates.iter().cycle();
        for number in 0..jobs {
            let (release, before) = (1000 + number * PERIOD, made.now);
            made.parts = [0; 4];
            if made.now < release {
                made.sleeps(release, late.0, late.1);
            }
            let start = made.now;
            made.say(start, &format!("job a {number} {start} {release}"));
            let mut left = HAD;
            while left > 0 {
                let (run, fate) = *fates.next().expect("without an end");
                made.runs(run.min(left));
                left -= run;
                if left > 0 {
                    made.meets(fate);
                }
            }
            made.say(made.now, &format!("finish a {number} {}", made.now));
            made.say(made.now, "over a");
            made.jobs.push((release, start, made.now, made.parts, (before - release).max(0)));
        }
        made.say(made.now, &format!("last a {}", made.now));
        made
    }
}

proptest! {
    /// Whatever a worker meets, its jobs are what they were made to be, their parts sum, and its runs and gaps tile its
    /// time.
    #[test]
    fn a_known_schedule_is_found_again(
        fates in prop::collection::vec(fate(), 1..40),
        late in (0i64..20, 0i64..20),
        jobs in 1i64..12,
    ) {
        let made = Made::of(&fates, late, jobs);
        let (rows, tally) = run(true, &made.text);
        hold(&rows, &tally);
        prop_assert_eq!(tally.worked.without_row, WithoutRow::default());
        prop_assert_eq!(rows.jobs.len(), made.jobs.len());
        for (job, (release, start, finish, [had, preempted, interrupted, asleep], backlog)) in
            rows.jobs.iter().zip(made.jobs)
        {
            prop_assert_eq!((job.ts.0, job.start.0, job.finish), (release, start, Some(finish)));
            let parts = job.parts.expect("a kernel stream");
            prop_assert_eq!(parts.running_ns, had);
            prop_assert_eq!(parts.preempted_ns, preempted);
            prop_assert_eq!(parts.interrupts_ns(), interrupted);
            prop_assert_eq!(parts.blocked_ns + parts.dispatch_ns, asleep);
            prop_assert_eq!((job.backlog_ns, parts.unexplained_ns), (backlog, 0));
            let missed = finish > release + PERIOD;
            prop_assert_eq!(job.deadline == Deadline::Missed, missed);
            prop_assert_eq!(job.mark, Mark::Exact);
        }
        tiles(&rows.runs, &rows.gaps, 1000, made.now);
    }

    /// Whatever programs write, the parts sum, and nothing overflows.
    #[test]
    fn nonsense_breaks_no_sum(seed in any::<u64>(), made in prop::collection::vec(fate(), 1..9)) {
        let nonsense: String = nonsense(seed).lines().map(|line| {
            let (at, what) = line.split_once(' ').expect("a time");
            format!("{} {what}\n", at.parse::<i64>().expect("a time") + 1000)
        }).collect();
        let mut lines: Vec<(i64, String)> = [Made::of(&made, (3, 4), 9).text, nonsense]
            .iter()
            .flat_map(|text| text.lines())
            .map(|line| (line.split(' ').next().map_or(0, |at| at.parse().expect("a time")), line.into()))
            .collect();
        lines.sort_by_key(|(at, _)| *at);
        let text: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        let (rows, tally) = run(true, &text.join("\n"));
        hold(&rows, &tally);
    }
}

/// Runs and gaps follow each other without a hole or an overlap, from the first reading to the last.
fn tiles(runs: &[LoadRun], gaps: &[Gap], first: i64, last: i64) {
    let mut at = first;
    let mut gaps = gaps.iter();
    for run in runs {
        assert_eq!(run.ts.0, at, "{run:?}");
        at += run.dur;
        assert_eq!(run.gap_ns.is_none(), run.ended == RunEnd::Finished);
        if let Some(ns) = run.gap_ns {
            let gap = gaps.next().expect("a gap behind it");
            assert_eq!((gap.ts.0, gap.dur), (at, ns));
            at += ns;
        }
    }
    assert_eq!((at, gaps.next()), (last, None));
}
