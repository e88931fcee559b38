use super::*;

/// Cycles of a nanosecond on the synthetic machine.
const CYCLES: f64 = 2.6;

/// A small generator (xorshift), so that a failure can be run again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// In `from .. to`.
    fn within(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A true clock: pieces of (start in ns of an ideal clock, rate against it).
struct Truth {
    pieces: Vec<(f64, f64)>,
}

impl Truth {
    /// CLOCK_MONOTONIC when the ideal clock shows `ideal` ns.
    fn mono(&self, ideal: f64) -> f64 {
        let mut mono = 1e9;
        for (i, &(start, rate)) in self.pieces.iter().enumerate() {
            let end = self.pieces.get(i + 1).map_or(f64::MAX, |p| p.0);
            mono += (ideal.min(end) - start).max(0.0) * rate;
        }
        mono
    }

    fn tsc(ideal: f64) -> u64 {
        (ideal * CYCLES) as u64 + 1_000_000
    }

    /// A sample whose clock reading lies anywhere in its bracket.
    fn sample(&self, ideal: f64, random: &mut Random) -> ClockSample {
        let width = random.within(60.0, 120.0).round();
        let read_at = ideal + random.within(-0.5, 0.5) * width / CYCLES;
        ClockSample {
            tsc: Self::tsc(ideal),
            mono_ns: self.mono(read_at) as i64,
            bracket_tsc: width as u64,
            step_tsc: 1,
            ..ClockSample::default()
        }
    }
}

#[test]
fn the_true_error_never_exceeds_the_bound() {
    for seed in 1..=200 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        // A change of the rate in every third interval, of anything that NTP may do.
        let interval = 100e6;
        let pieces = (0..5)
            .map(|i| {
                let start = if i == 0 {
                    0.0
                } else {
                    (3.0 * i as f64 + random.within(0.4, 0.6)) * interval
                };
                (start, 1.0 + random.within(-200e-6, 200e-6))
            })
            .collect();
        let truth = Truth { pieces };
        let samples: Vec<_> = (0..16)
            .map(|i| {
                truth.sample((i as f64 + random.within(-0.1, 0.1) + 0.2) * interval, &mut random)
            })
            .collect();
        let model = ClockModel::new(&samples).unwrap();
        for _ in 0..500 {
            let ideal = random.within(0.4, 14.8) * interval;
            let tsc = Tsc(Truth::tsc(ideal));
            let error = (model.to_ns(tsc).0 as f64 - truth.mono(ideal)).abs();
            assert!(
                error <= model.bound_at(tsc) as f64,
                "seed {seed}: {error} ns of {} at {ideal}",
                model.bound_at(tsc)
            );
        }
    }
}

#[test]
fn a_steady_clock_has_a_bound_near_its_bracket() {
    let mut random = Random(7);
    let truth = Truth { pieces: vec![(0.0, 1.0)] };
    let samples: Vec<_> = (0..100).map(|i| truth.sample(1e8 * i as f64, &mut random)).collect();
    let model = ClockModel::new(&samples).unwrap();
    // 120 cycles are 46 ns; at the ends, with one neighbour, 2.5 times that and two residuals.
    assert!(model.nodes()[50].bound_ns < 100, "{}", model.nodes()[50].bound_ns);
    assert!(model.bound_ns() < 220, "{}", model.bound_ns());
    assert!((model.tsc_hz() / 2.6e9 - 1.0).abs() < 1e-6);
}

#[test]
fn beyond_the_samples_the_line_goes_on_and_the_bound_grows() {
    let mut random = Random(9);
    let truth = Truth { pieces: vec![(0.0, 1.0)] };
    let samples: Vec<_> = (10..20).map(|i| truth.sample(1e8 * i as f64, &mut random)).collect();
    let model = ClockModel::new(&samples).unwrap();
    for ideal in [0.0, 0.9e9, 2.0e9, 5e9] {
        let tsc = Tsc(Truth::tsc(ideal));
        let error = (model.to_ns(tsc).0 as f64 - truth.mono(ideal)).abs();
        assert!(model.beyond_ns(tsc) > 0);
        assert!(model.bound_at(tsc) > model.bound_ns());
        assert!(error <= model.bound_at(tsc) as f64, "{error} at {ideal}");
    }
    assert!(model.range(1_000).contains(&samples[0].tsc));
    assert!(!model.range(1_000).contains(&Truth::tsc(0.9e9)));
}

#[test]
fn two_samples_that_are_close_do_not_set_the_rate_beyond_them() {
    let mut random = Random(11);
    let truth = Truth { pieces: vec![(0.0, 1.0)] };
    let times = [1.0, 1.00001, 1.1, 1.2, 1.3, 1.30001].map(|s| s * 1e9);
    let samples = times.map(|ideal| truth.sample(ideal, &mut random));
    let model = ClockModel::new(&samples).unwrap();
    for ideal in [0.9e9, 1.4e9] {
        let tsc = Tsc(Truth::tsc(ideal));
        let error = (model.to_ns(tsc).0 as f64 - truth.mono(ideal)).abs();
        assert!(error < 200.0, "{error}");
        assert!(error <= model.bound_at(tsc) as f64);
    }
}

#[test]
fn any_tsc_converts_without_panic_and_in_order() {
    let mut random = Random(3);
    let truth = Truth { pieces: vec![(0.0, 1.0)] };
    let samples: Vec<_> = (1..5).map(|i| truth.sample(1e8 * i as f64, &mut random)).collect();
    let model = ClockModel::new(&samples).unwrap();
    let mut cursor = model.cursor();
    let mut tscs: Vec<u64> = (0..10_000).map(|_| random.next() >> 33).chain([0]).collect();
    tscs.sort_unstable();
    let times: Vec<_> = tscs.iter().map(|&t| cursor.to_ns(Tsc(t))).collect();
    assert!(times.is_sorted());
    model.bound_at(Tsc(u64::MAX));
    model.bound_at(Tsc(0));
}

fn refuse(samples: &[ClockSample], expected: fn(&ClockError) -> bool) {
    let error = ClockModel::new(samples).expect_err("a refusal");
    assert!(expected(&error), "{error}");
}

/// Ten samples, every 100 ms, on CPUs 0 and 1 by turns, changed by `change`.
fn samples(change: impl Fn(usize, &mut ClockSample)) -> Vec<ClockSample> {
    let mut random = Random(5);
    let truth = Truth { pieces: vec![(0.0, 1.0)] };
    (0..10)
        .map(|i| {
            let mut sample = truth.sample(1e8 * i as f64, &mut random);
            sample.cpu = i as u32 % 2;
            change(i, &mut sample);
            sample
        })
        .collect()
}

#[test]
fn a_tsc_that_is_no_clock_is_refused() {
    refuse(&[], |e| matches!(e, ClockError::TooFewSamples(0)));
    refuse(&samples(|_, _| ())[..1], |e| matches!(e, ClockError::TooFewSamples(1)));
    let backwards = samples(|i, s| s.tsc -= if i > 4 { 900_000_000 } else { 0 });
    refuse(&backwards, |e| matches!(e, ClockError::Backwards { .. }));
    let faster = samples(|i, s| s.tsc += i.saturating_sub(6) as u64 * 10_000_000);
    refuse(&faster, |e| matches!(e, ClockError::NotInvariant { ppm, .. } if *ppm > 30_000.0));
    let apart = samples(|_, s| s.tsc += u64::from(s.cpu) * 200_000);
    refuse(&apart, |e| matches!(e, ClockError::Unsynchronised { .. }));
}

#[test]
fn what_does_not_forbid_the_model_is_a_finding() {
    let check = |samples: Vec<ClockSample>, expected: &[Finding]| {
        assert_eq!(ClockModel::new(&samples).unwrap().findings(), expected);
    };
    check(samples(|_, _| ()), &[]);
    check(samples(|i, s| s.bracket_tsc += if i == 3 { 5000 } else { 0 }), &[Finding::Wide(1)]);
    check(
        samples(|i, s| s.realtime_offset_ns = if i > 5 { 2_000_000_000 } else { 0 }),
        &[Finding::RealtimeSet(2_000_000_000)],
    );
    check(
        samples(|i, s| {
            let asleep = if i > 5 { 60_000_000_000 } else { 0 };
            s.boottime_offset_ns = asleep;
            s.realtime_offset_ns = asleep;
            s.tsc += asleep as u64 * 26 / 10;
        }),
        &[Finding::Suspended(60_000_000_000)],
    );
}

#[test]
fn two_samples_admit_what_ntp_may_do() {
    let model = ClockModel::new(&samples(|_, _| ())[..2]).unwrap();
    assert!((12_500..12_700).contains(&model.bound_ns()), "{}", model.bound_ns());
}
