//! What a program writes into its events may be anything: no report may fail at what the analyses make of it.

use ft_analysis::timeline::{every_payload, names, sites, threads};
use ft_analysis::{Context, Run};

use super::agreement::AgreementReport;
use super::gaps::Gaps;
use super::locks::Locks;
use super::waits::Waits;

#[test]
fn no_payload_breaks_a_report() {
    for (first, step) in [(0, 1), (1 << 40, 7), (i64::MAX - 1_000_000_000, 1)] {
        for kernel in [true, false] {
            let context = Context::new(kernel, 10, &threads(), &sites(), &names());
            let mut analysis = Run::new(context);
            every_payload(first, step).for_each(|event| analysis.push(&event));
            let (rows, tally) = analysis.finish();
            let (mut gaps, mut locks) = (Gaps::default(), Locks::default());
            let mut waits = Waits::default();
            rows.gaps.iter().for_each(|r| gaps.add(r));
            rows.critical_sections.iter().for_each(|r| locks.add(r));
            rows.lock_waits.iter().for_each(|r| waits.add(r));
            rows.unfinished_waits.iter().for_each(|r| waits.add_unfinished(r));
            let text = [
                gaps.finish(&tally).section().to_string(),
                locks.finish(&tally).section().to_string(),
                waits.finish(&tally).section().to_string(),
                AgreementReport::new(&tally).section().to_string(),
            ];
            assert!(text.iter().all(|text| !text.is_empty()));
        }
    }
}
