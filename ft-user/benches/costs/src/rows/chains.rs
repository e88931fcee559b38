//! What call chains cost: of threads that leave the CPU, and of threads that run.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::added::{Added, perf};
use crate::bench::Bench;
use crate::figures::{Figures, Samples};
use crate::table::{Row, number};

/// Samples of a CPU in a second, where the usual 997 would drown in the noise.
const HZ: f64 = 9973.0;

/// A switch, with its wake-up, from and to a chain of 16 functions.
pub(crate) fn switches(bench: &Bench) -> Result<Vec<Row>> {
    const SUBJECT: [&str; 2] = ["deep", "switch"];
    const EVENTS: [&str; 2] = ["sched:sched_switch", "sched:sched_waking"];
    let added = Added::to(
        "switch",
        &SUBJECT,
        bench,
        5,
        &[
            ("sched", &["-k", "sched"]),
            ("usual", &["-k", "sched,stack"]),
            ("all", &["-k", "sched,stack", "--stack-min", "1us"]),
        ],
        &[
            ("perf record -g", &|| perf(bench, &["-g"], &EVENTS, &SUBJECT)),
            ("offcputime", &|| offcputime(bench, &SUBJECT)),
        ],
    )?;
    let [usual, all] = [added.must("usual")?, added.must("all")?];
    let what = "a switch with its wake-up in chains of 16 functions, our groups sched and stack, added; ns";
    Ok(vec![
        Row::new(what, number(usual)).beside([
            ("unwatched", added.by("unwatched")),
            ("error", added.by("error")),
            ("our group sched alone", added.by("sched")),
        ]),
        Row::new("the same, every chain recorded (`--stack-min 1us`)", number(all))
            .beside([
                ("perf record -g of the switch and the wake-up adds", added.by("perf record -g")),
                ("offcputime, which adds up in the kernel, adds", added.by("offcputime")),
            ])
            .remark(&added.remarks()),
    ])
}

/// A sample of a thread that runs in such a chain.
pub(crate) fn samples(bench: &Bench) -> Result<Vec<Row>> {
    const SUBJECT: [&str; 2] = ["deep", "spin"];
    let mut samples = Samples::default();
    let hz = HZ.to_string();
    let mut remark = String::new();
    for _ in 0..bench.rounds(5) {
        let before = bench.subject(&SUBJECT)?.get("pass")?;
        let ours = bench.record(&["-k", "profile", "--sample-rate", &hz], &SUBJECT)?;
        let perf = perf(bench, &["-g", "--freq", &hz], &["cpu-clock"], &SUBJECT);
        let perf = perf.and_then(|figures| figures.get("pass"));
        let after = bench.subject(&SUBJECT)?.get("pass")?;
        let untouched = (before + after) / 2.0;
        // Of a second, what is not the loop's own is that of so many samples.
        let of_a_sample = |pass: f64| (1.0 - untouched / pass) * 1e9 / HZ;
        samples.add("ours", of_a_sample(ours.figures.get("pass")?));
        samples.add("error", of_a_sample(before.max(after)).abs());
        match perf {
            Ok(pass) => samples.add("perf", of_a_sample(pass)),
            Err(error) => remark = format!("perf record: {error:#}"),
        }
    }
    let ours = samples.must("ours")?;
    let error = samples.median("error");
    let row = Row::new(
        "a sample of our group profile in a chain of 16 functions, at 9973 Hz; ns",
        number(ours),
    )
    .beside([("error", error), ("perf record -g -e cpu-clock", samples.median("perf"))])
    .remark(&remark);
    Ok(vec![row])
}

/// What the kernel takes to tell a chain whole, as our programs have it do, and to tell its number.
pub(crate) fn helpers(bench: &Bench) -> Result<Vec<Row>> {
    let mut samples = Samples::default();
    for _ in 0..bench.rounds(5) {
        samples.add_all("", &bench.subject(&["helpers"])?);
    }
    let what = "a chain of 16 functions and what called them, whole into a ring buffer (`bpf_get_stack`); ns";
    Ok(vec![Row::new(what, number(samples.must("chain")?)).beside([
        ("its number (`bpf_get_stackid`)", samples.median("number")),
        ("a record of 8 bytes alone", samples.median("neither")),
        ("a program that does nothing", samples.median("nothing")),
        ("bytes of a record with the chain, beside 16 with its number,", samples.median("bytes")),
    ])])
}

/// libbpf-tools' `offcputime`, of all threads of user space, from a microsecond on, which is its own default.
fn offcputime(bench: &Bench, subject: &[&str]) -> Result<Figures> {
    let told = fs::File::create(bench.path("offcputime")).context("no file")?;
    let process = Command::new("offcputime")
        .arg("--user-threads-only")
        .stdin(Stdio::null())
        .stdout(told)
        .stderr(Stdio::null())
        .spawn()
        .context("offcputime does not start")?;
    let mut running = Running(process);
    // It does not tell when it is ready; what it has seen is looked at below.
    std::thread::sleep(Duration::from_secs(2));
    let figures = bench.subject(subject)?;
    running.end();
    let mut text = String::new();
    fs::File::open(bench.path("offcputime"))?.read_to_string(&mut text)?;
    ensure!(text.contains("subject ("), "offcputime has not seen the subject");
    Ok(figures)
}

/// A program that runs until it is told to end.
struct Running(Child);

impl Running {
    fn end(&mut self) {
        // SAFETY: our own child, which is not waited for yet.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGINT) };
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            self.end();
        }
    }
}
