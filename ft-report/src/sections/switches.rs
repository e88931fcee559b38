//! What switches between the workers of a load cost: inferred from user time stamps alone, beside the kernel's own records.

use serde::Serialize;

use super::Input;
use crate::document::{N, Ns, Section, Share, Table, Word};
use crate::stats::{Distribution, Marks, Tail};
use ft_analysis::Tally;
use ft_trace::store::Result;
use ft_trace::tables::{LoadSwitch, SwitchKind, SwitchSeen};

/// Longer than so many of the shortest, a gap has something else in it, as Hourglass reads its histograms (section 4).
const FENCE: i64 = 10;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct SwitchesReport {
    /// There is a kernel stream.
    pub kernel: bool,
    /// How sure the rows are.
    pub marks: Marks,
    /// By what was inferred, as far as there is any.
    pub kinds: Vec<Kind>,
}

/// The gaps of one inferred kind.
#[derive(Clone, Debug, Serialize)]
pub struct Kind {
    /// What was inferred.
    pub inferred: &'static str,
    /// How many.
    pub count: u64,
    /// The shortest: the fastest path, ns.
    pub min_ns: i64,
    /// Percentiles.
    #[serde(flatten)]
    pub tail: Tail,
    /// The median of those that are at most ten times as long as the shortest: what to expect, ns.
    pub typical_ns: i64,
    /// How many are longer than that.
    pub outliers: u64,
    /// How many of them the kernel recorded all of.
    pub judged: u64,
    /// Of these, those in which it recorded one switch, from the one worker to the other.
    pub one_switch: u64,
    /// Several switches: other threads, or the idle task.
    pub others: u64,
    /// No switch.
    pub none: u64,
    /// Of those with one switch, the median time from the run before to it, ns.
    pub out_ns: Option<i64>,
    /// From it to the run behind, ns.
    pub in_ns: Option<i64>,
    /// Of those with several, the median time between the first and the last, ns.
    pub others_ns: Option<i64>,
}

#[derive(Debug, Default)]
struct Sums {
    lengths: Distribution,
    shortest: Option<i64>,
    seen: [u64; SwitchSeen::ALL.len()],
    out: Distribution,
    back: Distribution,
    others: Distribution,
}

/// Makes a [`SwitchesReport`] of rows. The shortest of each kind must be known before: rows are shown twice.
#[derive(Debug, Default)]
pub struct Switches {
    kinds: [Sums; SwitchKind::ALL.len()],
    typical: [Distribution; SwitchKind::ALL.len()],
    marks: Marks,
}

impl Switches {
    /// Counts a row.
    pub fn add(&mut self, r: &LoadSwitch) {
        self.marks.add(r.mark);
        let sums = &mut self.kinds[r.inferred as usize];
        sums.lengths.add(r.dur);
        sums.shortest = Some(sums.shortest.map_or(r.dur, |shortest| shortest.min(r.dur)));
        let Some(kernel) = r.kernel else { return };
        sums.seen[kernel as usize] += 1;
        match (kernel, r.out_ns, r.in_ns, r.others_ns) {
            (SwitchSeen::Switch, Some(out), Some(back), _) => {
                sums.out.add(out);
                sums.back.add(back);
            }
            (SwitchSeen::Others, _, _, Some(others)) => sums.others.add(others),
            _ => {}
        }
    }

    /// Shows a row again, when all were counted.
    pub fn again(&mut self, r: &LoadSwitch) {
        let i = r.inferred as usize;
        let fence = self.kinds[i].shortest.map_or(0, |shortest| shortest.saturating_mul(FENCE));
        if r.dur <= fence {
            self.typical[i].add(r.dur);
        }
    }

    /// Finishes the statistics.
    pub fn finish(self, tally: &Tally) -> SwitchesReport {
        let some = |d: &mut Distribution| (d.count() > 0).then(|| d.percentile(50.0));
        let all = SwitchKind::ALL.iter().zip(self.kinds).zip(self.typical);
        let kinds = all.map(|((inferred, mut sums), mut typical)| Kind {
            inferred: inferred.word(),
            count: sums.lengths.count(),
            min_ns: sums.shortest.unwrap_or(0),
            tail: Tail::of(&mut sums.lengths),
            typical_ns: typical.percentile(50.0),
            outliers: sums.lengths.count() - typical.count(),
            judged: sums.seen.iter().sum(),
            one_switch: sums.seen[SwitchSeen::Switch as usize],
            others: sums.seen[SwitchSeen::Others as usize],
            none: sums.seen[SwitchSeen::None as usize],
            out_ns: some(&mut sums.out),
            in_ns: some(&mut sums.back),
            others_ns: some(&mut sums.others),
        });
        let kinds = kinds.filter(|kind| kind.count > 0).collect();
        SwitchesReport { kernel: tally.kernel, marks: self.marks, kinds }
    }
}

impl SwitchesReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(input: Input<'_>) -> Result<SwitchesReport> {
        let mut switches = Switches::default();
        input.rows(|r: LoadSwitch| switches.add(&r))?;
        input.rows(|r: LoadSwitch| switches.again(&r))?;
        Ok(switches.finish(input.tally))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new(
            "switches",
            "what lies between the runs of a load's workers on a CPU, inferred and recorded",
        );
        if self.kinds.is_empty() {
            s.say("No two runs of workers: `ft-agent record -- ft-load hourglass -n 2 -a --cpu 0 -w CPU_YIELD 1ms` records some.");
            return s.with(self);
        }
        s.say(self.marks.line("gap"));
        let t = Table::of(&self.kinds)
            .column("inferred", |k| Word(k.inferred))
            .column("gaps", |k| N(k.count))
            .column("min", |k| Ns(k.min_ns))
            .column("typical", |k| Ns(k.typical_ns))
            .column("longer", |k| N(k.outliers))
            .column("p50", |k| Ns(k.tail.p50_ns))
            .column("p99", |k| k.tail.p99_ns.map(Ns))
            .column("max", |k| Ns(k.tail.max_ns));
        s.table(t.titled(
            "By inference (typical: median of those at most ten times as long as the shortest; longer: the others)",
        ));
        if self.kernel {
            let t = Table::of(&self.kinds)
                .column("inferred", |k| Word(k.inferred))
                .column("one switch", |k| N(k.one_switch))
                .column("share", |k| Share::of(k.one_switch, k.judged))
                .column("before it", |k| k.out_ns.map(Ns))
                .column("behind it", |k| k.in_ns.map(Ns))
                .column("several", |k| N(k.others))
                .column("between them", |k| k.others_ns.map(Ns))
                .column("none", |k| N(k.none));
            s.table(t.titled(
                "What the kernel recorded of them: switches of the CPU; medians from the run before to a single switch, from \
                 there to the run behind, and from the first of several to the last",
            ));
            s.say("How often the inference is right, `agreement` says.");
        }
        self.marks.legend(&mut s);
        s.with(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::timeline::run;

    fn report(timeline: &str) -> SwitchesReport {
        let (rows, tally) = run(true, timeline);
        let mut switches = Switches::default();
        rows.switches.iter().for_each(|r| switches.add(r));
        rows.switches.iter().for_each(|r| switches.again(r));
        switches.finish(&tally)
    }

    #[test]
    fn inferred_costs_stand_beside_the_kernels_records() {
        let report = report(
            "0 0 .>a S
             1 worker a 0 0 0
             3 first a 3
             20 0 a>b R
             22 worker b 1 2 0
             25 first b 25
             100 yield b
             103 0 b>a R
             109 gap a 0 18 108
             200 0 a>X R
             300 0 X>b S
             310 gap b 0 99 308
             400 0 b>a R
             410 gap a 0 199 408",
        );
        let found = report.kinds.iter().map(|k| (k.inferred, k.count, k.one_switch, k.others));
        assert_eq!(found.collect::<Vec<_>>(), [("voluntary", 1, 1, 0), ("involuntary", 2, 1, 1)]);
        let involuntary = &report.kinds[1];
        assert_eq!((involuntary.min_ns, involuntary.typical_ns, involuntary.outliers), (7, 7, 1));
        assert_eq!((involuntary.out_ns, involuntary.in_ns), (Some(2), Some(5)));
        assert_eq!(involuntary.others_ns, Some(100));
        let text = format!("{:120}", report.section());
        for line in ["3 gaps, all exact", "before it", "typical", "50.0 %"] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn without_a_load_there_is_a_sentence() {
        let text = format!("{:120}", report("0 0 .>a S").section());
        assert!(text.contains("No two runs"), "{text}");
    }
}
