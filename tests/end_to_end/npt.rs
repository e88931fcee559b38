//! A loop that nothing should interrupt: what a recording says of it against what the program counted itself, and the
//! cause of each peak against the raw tables.

use std::process::Command;

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{LoopBin, LoopPeak, LossRow, PeakCause, SiteRow, UserEvent};
use serde_json::Value;

use crate::harness::{Stage, agent, assert_success, load, open};
use crate::recomputed::agrees;

const LOOPS: u64 = 2_000_000;

/// Records a loop on the CPU of this number, beside whatever `options` ask for; what the program says, and the trace.
fn record(stage: &Stage, options: &[&str]) -> (Value, Trace, std::path::PathBuf) {
    let dir = stage.path("trace");
    let mut command = agent();
    command.args(["record", "-k", "sched,irq", "-o"]).arg(&dir).arg("--").arg(load()).args([
        "npt",
        "--no-lock-memory",
        "--peak",
        "2us",
        "--json",
        "--loops",
        &LOOPS.to_string(),
    ]);
    let output = command.args(options).output().expect("the agent starts");
    assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    let json = &text[text.find("{\n").expect("the program's figures")..];
    let first = serde_json::Deserializer::from_str(json).into_iter().next();
    (first.expect("a value").expect("JSON"), open(&dir), dir)
}

/// Takes the CPU of the loop for a millisecond or two again and again, until dropped: by a real-time priority, so that
/// it has it however many others want it.
struct Rival(std::process::Child);

impl Rival {
    fn on(cpu: usize) -> Rival {
        const BURSTS: &str =
            "while :; do i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; sleep 0.003; done";
        let mut command = Command::new("chrt");
        command.args(["-f", "1", "taskset", "-c", &cpu.to_string(), "sh", "-c", BURSTS]);
        Rival(command.spawn().expect("chrt starts (Debian: util-linux)"))
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

/// The program starts the agent by itself; however that reads, each event is stored or counted as lost.
#[test]
fn with_each_way_to_read_every_event_is_accounted_for() {
    let stage = Stage::enter();
    let mut histograms = 0;
    for reader in ["adaptive", "timed=200us", "active", "waking"] {
        let dir = stage.path(&format!("by-{reader}"));
        let mut command = Command::new(load());
        command.args(["npt", "--loops", "50000", "--tracepoint", "--no-lock-memory", "-k", "none"]);
        command.args(["--reader", reader, "--agent", ft_tests::agent(), "--record"]);
        let output =
            command.arg(&dir).env("FT_RING_SLOTS", "4096").output().expect("ft-load starts");
        assert_success(&output);
        let trace = Trace::open(&dir).expect("a whole trace");
        let sites: Vec<SiteRow> = trace.rows().map(|row| row.expect("a row")).collect();
        let passes = sites.iter().find(|site| &*site.event == "npt.pass").expect("its site").site;
        let events = trace.rows::<UserEvent>().map(|row| row.expect("a row"));
        let stored: Vec<UserEvent> = events.filter(|event| event.site == passes).collect();
        let lost: i64 = trace.rows::<LossRow>().map(|row| row.expect("a row").count).sum();
        // Those of five passes before the loop, too.
        assert!(
            stored.len() as i64 <= 50_005 && stored.len() as i64 + lost >= 50_005,
            "{reader}: {lost} lost"
        );
        assert!(!stored.is_empty(), "{reader}");
        let command = trace.meta().start.command.join(" ");
        assert!(
            command.contains("npt --loops 50000") && !command.contains("--record"),
            "{command}"
        );
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.starts_with("50000 passes on CPU "), "{text}");
        let bins: Vec<LoopBin> = trace.rows().map(|row| row.expect("a row")).collect();
        let in_bins: i64 = bins.iter().map(|bin| bin.passes).sum();
        assert!(bins.iter().all(|bin| bin.of_passes == 50_000) && in_bins <= 50_000, "{reader}");
        histograms += u32::from(in_bins == 50_000);
    }
    // The ring is full behind each loop. That nobody makes room for the histogram can happen where others have the CPUs.
    assert!(histograms > 0);
}

#[test]
fn every_peak_has_its_cause_and_the_histogram_is_the_programs() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let cpu = 0;
    let rival = Rival::on(cpu);
    let (truth, trace, dir) = record(&stage, &["--cpu", &cpu.to_string()]);
    drop(rival);

    // The histogram: bin by bin, and all passes in one.
    let bins: Vec<LoopBin> = trace.rows().map(|row| row.expect("a row")).collect();
    assert_eq!(bins.iter().map(|bin| bin.passes).sum::<i64>(), LOOPS as i64);
    let own = truth["histogram"].as_array().expect("bins");
    assert_eq!(bins.len(), own.len());
    for (bin, own) in bins.iter().zip(own) {
        assert_eq!((bin.of_passes, bin.mark), (LOOPS as i64, Mark::Exact));
        assert_eq!(Some(bin.passes), own[1].as_i64());
        let (told, from) = (own[0].as_f64().expect("ns"), bin.from_ns.expect("a frequency"));
        assert!((told - from).abs() <= 1e-6 * from + 1e-6, "{told} {from}");
    }

    // The peaks: as many, and the longest as long.
    let peaks: Vec<LoopPeak> = trace.rows().map(|row| row.expect("a row")).collect();
    assert_eq!(Some(peaks.len() as u64), truth["peaks"].as_u64());
    for long in truth["longest"].as_array().expect("peaks") {
        let row = peaks.iter().find(|row| row.pass == long["pass"].as_i64()).expect("its row");
        let told = long["ns"].as_f64().expect("ns");
        assert!((row.dur as f64 - told).abs() <= 1e-3 * told + 100.0, "{told} {row:?}");
    }
    for row in &peaks {
        let parts = [row.interrupt_ns, row.preempted_ns, row.blocked_ns, row.tracer_ns];
        let sum: i64 =
            parts.iter().chain([&row.unexplained_ns]).map(|ns| ns.expect("a part")).sum();
        assert_eq!((sum, row.own_ns + row.excess_ns), (row.excess_ns, row.dur), "{row:?}");
        assert!((0..=1_000).contains(&row.own_ns), "{row:?}");
    }
    // The rival took the CPU in some of them, and is named.
    let rivals =
        peaks.iter().filter(|row| row.mark == Mark::Exact && row.culprit_ns > Some(500_000));
    let rivals = rivals.filter(|row| row.cause == Some(PeakCause::Preempted));
    let named = rivals.clone().filter(|row| row.culprit.as_deref() == Some("sh")).count();
    assert!(named > 0, "{:?}", rivals.collect::<Vec<_>>());

    let output = agent().arg("report").arg(&dir).arg("npt").output().expect("the agent starts");
    assert_success(&output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("2.00 M") && text.contains("preempted") && text.contains("sh"), "{text}");
    agrees("a loop beside a rival", &dir);
}
