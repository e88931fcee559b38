use super::*;
use ft_analysis::timeline::run;

fn report(kernel: bool, timeline: &str) -> NptReport {
    let (rows, tally) = run(kernel, timeline);
    let mut npt = Npt::default();
    rows.loop_histogram.into_iter().for_each(|r| npt.loops.add(r));
    rows.loop_peaks.iter().for_each(|r| npt.add(r));
    npt.finish(&tally)
}

const TIMELINE: &str = "
        0 0 .>a S
        1 poll a 0
        10 loop a 9 5 1000000000
        20 irq a soft 30
        55 gap a 0 16 54
        56 peak a 0
        60 0 a>X R
        90 0 X>a R
        96 gap a 0 58 95
        97 peak a 1
        100 looped a 4 3 2
        101 bin a 5 6 2
        102 bin a 2100 2102 2";

#[test]
fn the_parts_of_each_cause_sum_to_its_excess() {
    let report = report(true, TIMELINE);
    let found = report.causes.iter().map(|c| (c.cause, c.peaks, c.excess_ns, c.max_ns));
    assert_eq!(found.collect::<Vec<_>>(), [("interrupt", 1, 33, 38), ("preempted", 1, 32, 37)]);
    for c in &report.causes {
        let p = &c.parts;
        let sum = p.interrupt_ns + p.preempted_ns + p.blocked_ns + p.tracer_ns;
        assert_eq!(sum + p.unexplained_ns, c.excess_ns);
    }
    assert_eq!(report.histogram, [(5, 2), (2000, 2)]);
    let text = format!("{:120}", report.section());
    for line in [
        "1 loop; 2 peaks, all exact",
        "1 fewer than the loops have counted",
        "Length of a pass",
        "soft-name",
        "The longest peaks",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn without_a_kernel_there_are_lengths_and_without_a_loop_a_sentence() {
    let alone = format!("{:120}", report(false, TIMELINE).section());
    assert!(alone.contains("no account") && alone.contains("-k sched,irq"), "{alone}");
    assert!(!alone.contains("preempted"), "{alone}");
    let none = format!("{:120}", report(true, "0 0 .>a S").section());
    assert!(none.contains("No loop was recorded"), "{none}");
}
