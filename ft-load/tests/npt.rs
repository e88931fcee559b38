//! The loop on the running kernel, and what a recording has of it.

mod common;
#[path = "../../ft-user/tests/common/mod.rs"]
mod recording;

use common::{alone, command, ran, real_time_or_skip, refusal};
use ft_load::npt::{Plan, measure};

/// Every pass is counted once, and the figures are in the order in which they must be.
#[test]
fn every_pass_is_counted() {
    let _alone = alone();
    ran();
    let output = command("npt --loops 20000 --no-lock-memory --peak 1us --json");
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let figure = |name: &str| json[name].as_f64().unwrap_or_else(|| panic!("{name} in {json}"));
    assert_eq!(json["passes"], 20_000);
    let bins = json["histogram"].as_array().unwrap();
    assert_eq!(bins.iter().map(|bin| bin[1].as_u64().unwrap()).sum::<u64>(), 20_000);
    let names = ["minimum_ns", "p50_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "maximum_ns"];
    assert!(names.map(figure).is_sorted(), "{json}");
    assert!(figure("minimum_ns") <= figure("mean_ns") && figure("mean_ns") <= figure("maximum_ns"));
    assert!(
        (figure("standard_deviation_ns").powi(2) / figure("variance_ns2").max(1e-9) - 1.0).abs()
            < 1e-6
    );
    // Passes beyond the threshold are those that the histogram has there, but for the bin in which it lies.
    let beyond = |ns: f64| {
        let beyond = bins.iter().filter(|bin| bin[0].as_f64().unwrap() >= ns);
        beyond.map(|bin| bin[1].as_u64().unwrap()).sum::<u64>()
    };
    let peaks = json["peaks"].as_u64().unwrap();
    assert!(beyond(1_002.0) <= peaks && peaks <= beyond(998.0), "{peaks} of {}", beyond(998.0));
    assert_eq!(json["longest"].as_array().unwrap().len() as u64, peaks.min(10));
    if peaks > 0 {
        assert_eq!(json["longest"][0]["ns"], json["maximum_ns"]);
    }
}

/// With a real-time priority and locked memory; and the thread ends with the loop, and the loop with its time.
#[test]
fn a_real_time_loop_ends_in_time() {
    let _alone = alone();
    if !real_time_or_skip() {
        return;
    }
    let output = command("npt --rt 50 --loops 100000000000 --max-time 100ms --eval-cpu-speed");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    assert!(text.contains("SCHED_FIFO 50, memory locked; 5 to warm up; counter "), "{text}");
    assert!(text.contains("ended after 100 ms, before 100000000000 passes were made"), "{text}");
    // The warm-up has to end as well.
    let output = command("npt --rt 50 --warm-up 100000000000 --max-time 50ms");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("0 passes on CPU "));
}

#[test]
fn what_is_not_there_is_refused() {
    let _alone = alone();
    ran();
    let sentence = refusal(&command("npt --cpu 1023"), 1);
    assert!(sentence.contains("may not run on CPU 1023"), "{sentence}");
    refusal(&command("npt --rt 0"), 2);
}

/// A recording has the trace point of every pass, and each peak as a gap.
#[test]
fn a_recording_has_every_pass_and_peak() {
    let _alone = alone();
    recording::start(ft_user::Config { rings: 4, ..Default::default() });
    assert!(ft_user::enable("*") > 0);
    let plan = |tracepoint, rate| Plan {
        loops: 5_000,
        cpu: None,
        real_time: None,
        warm_up: 3,
        eval_cpu_speed: false,
        lock_memory: false,
        tracepoint,
        rate,
        peak_ns: 1_000,
        max_time_ns: 10_000_000_000,
    };
    let measured = measure(&plan(true, None)).unwrap();
    let mut memory = recording::Memory::own();
    let events = memory.take();
    assert!(events.iter().all(|event| event.name != "loss"));
    let begin = events.iter().position(|event| event.name == "npt.begin").unwrap();
    let (before, after) = events.split_at(begin);
    let passes = |events: &[recording::Event]| -> Vec<u64> {
        events.iter().filter(|e| e.name == "npt.pass").map(|e| e.words[0]).collect()
    };
    assert_eq!(passes(before), [0, 1, 2]);
    assert_eq!(passes(after), (0..5_000).collect::<Vec<_>>());
    let end = after.iter().find(|event| event.name == "npt.end").unwrap();
    // The histogram as it is told: each bin behind the one before, and all passes in one.
    let bins: Vec<[u64; 3]> = after
        .iter()
        .filter(|e| e.name == "npt.bin")
        .map(|e| e.words[..3].try_into().unwrap())
        .collect();
    assert_eq!(end.words[..3], [5_000, measured.peaks, bins.len() as u64]);
    assert_eq!(bins.iter().map(|bin| bin[2]).sum::<u64>(), 5_000);
    assert!(bins.iter().all(|bin| bin[0] < bin[1] && bin[2] > 0));
    assert!(bins.windows(2).all(|pair| pair[0][1] <= pair[1][0]));
    // Each peak is told behind its gap, and its length is the gap's.
    let own = events[begin].words[1];
    assert!((1..bins[0][0] + 100_000).contains(&own), "{own} cycles for a pass by itself");
    let of_gap: Vec<u64> = after
        .windows(2)
        .filter(|pair| pair[1].name == "npt.peak")
        .inspect(|pair| assert_eq!(pair[0].name, "gap.seen"))
        .map(|pair| pair[0].words[1] - pair[0].words[0] - pair[1].words[1])
        .collect();
    assert_eq!(of_gap, vec![0; measured.peaks as usize]);
    let is_peak = |e: &&recording::Event| e.name == "gap.seen" && e.words[0] > events[begin].tsc;
    assert_eq!(events.iter().filter(is_peak).count() as u64, measured.peaks);

    // Ten a second: one at once, and hardly more; without a trace point none.
    measure(&plan(true, Some(10))).unwrap();
    let few = passes(&memory.take()).len();
    assert!((1..5_000).contains(&few), "{few}");
    measure(&plan(false, None)).unwrap();
    assert_eq!(passes(&memory.take()).len(), 0);
}
