use super::*;
use crate::timeline::{EXTREMES, every_payload, run, run_by_agent, sites, threads};
use crate::{Context, Run};

/// `a 7 10+30 own5 irq3 pre20 ?2: preempted by X(88)20`, with the mark where it is not exact.
fn text(r: &LoopPeak) -> String {
    let parts = [
        ("irq", r.interrupt_ns),
        ("pre", r.preempted_ns),
        ("blk", r.blocked_ns),
        ("tracer", r.tracer_ns),
        ("?", r.unexplained_ns),
    ];
    let parts = parts.iter().filter_map(|(name, ns)| ns.filter(|ns| *ns != 0).map(|ns| (name, ns)));
    let parts: String = parts.map(|(name, ns)| format!(" {name}{ns}")).collect();
    let cause = r.cause.map_or(String::new(), |cause| format!(": {cause}"));
    let by = r.culprit.as_ref().map_or(String::new(), |name| format!(" by {name}"));
    let tid = r.culprit_tid.map_or(String::new(), |tid| format!("({tid})"));
    let by_ns = r.culprit_ns.map_or(String::new(), |ns| ns.to_string());
    let pass = r.pass.map_or("-".to_owned(), |pass| pass.to_string());
    let mark = if r.mark == Mark::Exact { String::new() } else { format!(" {}", r.mark) };
    let thread = r.tid.0 as u8 as char;
    format!(
        "{thread} {pass} {}+{} own{}{parts}{cause}{by}{tid}{by_ns}{mark}",
        r.ts, r.dur, r.own_ns
    )
}

fn sums(r: &LoopPeak) {
    assert_eq!(r.own_ns + r.excess_ns, r.dur, "{r:?}");
    assert!((0..=r.dur).contains(&r.own_ns), "{r:?}");
    let parts = [r.interrupt_ns, r.preempted_ns, r.blocked_ns, r.tracer_ns, r.unexplained_ns];
    assert!(parts.iter().all(Option::is_some) || parts.iter().all(Option::is_none), "{r:?}");
    if let Some(sum) = parts.into_iter().sum::<Option<i64>>() {
        assert_eq!(sum, r.excess_ns, "{r:?}");
        assert!(parts.iter().flatten().all(|ns| *ns >= 0), "{r:?}");
    }
}

fn check((rows, tally): (Rows, Tally), expected: &[&str]) -> LoopCounts {
    assert_eq!(rows.loop_peaks.iter().map(text).collect::<Vec<_>>(), expected);
    assert_eq!(tally.loops.peaks, rows.loop_peaks.len() as u64);
    rows.loop_peaks.iter().for_each(sums);
    tally.loops
}

/// One peak of each cause. A pass takes 5 ns by itself.
const CAUSES: &str = "
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
    100 0 a>Y R
    104 0 Y>X R
    130 0 X>a R
    136 gap a 0 99 135
    137 peak a 2
    140 0 a>. S
    160 wake . a 0
    162 0 .>a S
    168 gap a 0 139 167
    169 peak a 3
    60200 gap a 0 170 60199
    60201 peak a 4
    60210 looped a 9 5 0";

#[test]
fn each_peak_has_its_cause_and_the_pass_its_own_time() {
    let counts = check(
        run(true, CAUSES),
        &[
            "a 0 16+38 own5 irq30 ?3: interrupt by soft-name30",
            "a 1 58+37 own5 pre30 ?2: preempted by X(88)30",
            "a 2 99+36 own5 pre30 ?1: preempted by X(88)26",
            "a 3 139+28 own5 pre2 blk20 ?1: blocked",
            "a 4 170+60029 own5 ?60024: unexplained",
        ],
    );
    let expected =
        LoopCounts { begun: 1, ended: 1, peaks: 5, told_peaks: 5, ..LoopCounts::default() };
    assert_eq!(counts, expected);
}

#[test]
fn what_the_agent_had_is_the_tracers_part() {
    let (rows, tally) = run_by_agent(CAUSES);
    let peaks: Vec<_> = rows.loop_peaks.iter().map(text).collect();
    assert_eq!(peaks[1], "a 1 58+37 own5 tracer30 ?2: tracer by X(88)30");
    assert_eq!(tally.loops.peaks, 5);
    rows.loop_peaks.iter().for_each(sums);
}

#[test]
fn a_wait_for_room_in_the_ring_is_the_tracers_part_too() {
    check(
        run(
            true,
            "0 0 .>a S
             1 poll a 0
             2 loop a 9 5 1000000000
             10 full a 90
             12 0 a>. S
             85 wake Z a 0
             86 0 .>a R
             95 gap a 0 9 94
             96 peak a 3",
        ),
        &["a 3 9+85 own5 pre1 tracer73 ?6: tracer by full ring73 disturbed"],
    );
}

#[test]
fn without_a_kernel_a_peak_has_its_excess_alone() {
    check(
        run(false, CAUSES),
        &[
            "a 0 16+38 own5",
            "a 1 58+37 own5",
            "a 2 99+36 own5",
            "a 3 139+28 own5",
            "a 4 170+60029 own5",
        ],
    );
}

#[test]
fn gaps_outside_the_loop_are_none_of_its_peaks() {
    let counts = check(
        run(
            true,
            "0 0 .>a S
             1 poll a 0
             20 gap a 0 5 18
             30 loop a 9 5 1000000000
             40 gap a 0 25 39
             50 looped a 9 0 0
             60 gap a 0 55 58
             61 peak a 3",
        ),
        &[],
    );
    assert_eq!((counts.begun, counts.ended, counts.without_gap), (1, 1, 1));
}

#[test]
fn a_peak_whose_pass_is_not_told_is_one_all_the_same() {
    for end in
        ["", "90 looped a 9 1 0", "90 gap a 0 80 85\n 91 peak a 8", "90 lose ring 5 a", "90 exit a"]
    {
        let timeline = format!(
            "0 0 .>a S
             1 poll a 0
             10 loop a 9 5 1000000000
             50 gap a 0 20 49
             {end}"
        );
        let (rows, tally) = run(true, &timeline);
        assert_eq!(text(&rows.loop_peaks[0]), "a - 20+29 own5 ?24: unexplained", "{end}");
        assert_eq!(tally.loops.peaks, rows.loop_peaks.len() as u64);
    }
}

#[test]
fn a_loss_marks_the_peaks_that_it_touches() {
    check(
        run(
            true,
            "0 0 .>a S
             1 poll a 0
             10 loop a 9 5 1000000000
             30 lose sched 10
             50 gap a 0 20 49
             51 peak a 0
             60 0 a>X R
             70 0 X>a R
             75 gap a 0 55 74
             76 peak a 1",
        ),
        &[
            "a 0 20+29 own5 ?24: unexplained lower bound",
            "a 1 55+19 own5 pre10 ?4: preempted by X(88)10",
        ],
    );
}

#[test]
fn the_histogram_is_the_programs() {
    let (rows, tally) = run(
        false,
        "10 loop a 9 5 500000000
         50 looped a 9 0 2
         51 bin a 5 6 7
         52 bin a 2048 2050 2
         53 lose ring 1 a
         54 bin a 3000 3002 1",
    );
    let found = rows.loop_histogram.iter().map(|r| {
        let ns = (r.from_ns.unwrap(), r.to_ns.unwrap());
        (r.ts.0, r.from_cycles, r.to_cycles, ns, r.passes, r.of_passes, r.mark.word())
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            (50, 5, 6, (10.0, 12.0), 7, 9, "exact"),
            (50, 2048, 2050, (4096.0, 4100.0), 2, 9, "exact"),
            (50, 3000, 3002, (6000.0, 6004.0), 1, 9, "lower bound"),
        ]
    );
    assert_eq!(tally.loops, LoopCounts { begun: 1, ended: 1, ..LoopCounts::default() });
}

#[test]
fn bins_that_cannot_be_are_counted() {
    let (rows, tally) = run(
        false,
        "5 bin a 1 2 3
         10 loop a 9 5 0
         15 bin a 1 2 3
         50 looped a 9 0 2
         51 bin a 6 6 7
         52 bin a -1 2 7
         53 bin a 1 2 10
         54 bin a 1 2 0
         55 bin a 1 2 9",
    );
    assert_eq!(tally.loops.impossible, 6);
    assert_eq!(rows.loop_histogram.len(), 1);
    assert_eq!(rows.loop_histogram[0].from_ns, None, "no frequency was told");
}

#[test]
fn whatever_a_program_tells_the_parts_sum() {
    let mut timeline = String::from("0 0 .>a S\n1 poll a 0\n");
    let mut t = 10;
    for (x, y) in EXTREMES.into_iter().flat_map(|x| EXTREMES.map(|y| (x, y))) {
        for z in EXTREMES {
            let (from, to, now) = (t + 10, t + 30, t + 40);
            timeline += &format!(
                "{t} loop a {x} {y} {z}\n{t} irq a soft 5\n{now} gap a 0 {from} {to}\n{now} peak a {x}\n\
                 {now} looped a {z} {y} {x}\n{now} bin a {x} {y} {z}\n{now} bin a 0 {y} {z}\n"
            );
            t += 50;
        }
    }
    for kernel in [false, true] {
        let (rows, tally) = run(kernel, &timeline);
        assert_eq!((rows.loop_peaks.len(), tally.loops.begun), (343, 343));
        rows.loop_peaks.iter().for_each(sums);
        assert!(rows.loop_histogram.len() > 50);
        for bin in &rows.loop_histogram {
            assert!(0 <= bin.from_cycles && bin.from_cycles < bin.to_cycles);
            assert!((1..=bin.of_passes).contains(&bin.passes));
        }
        let bins = tally.loops.impossible + rows.loop_histogram.len() as u64;
        assert_eq!(bins, 2 * 343, "each is told or counted");
        // The events alone, in any order and at any time.
        let mut run = Run::<Npt>::of(Context::new(kernel, 10, &threads(), &sites(), &[]));
        every_payload((1 << 40) - 20_000, 7).for_each(|event| run.push(&event));
        run.finish().0.loop_peaks.iter().for_each(sums);
    }
}
