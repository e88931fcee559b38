//! What call chains cost: of threads that leave the CPU, and of threads that run.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::bench::Bench;
use crate::figures::{Figures, Samples};
use crate::table::{Row, number};

/// Samples of a CPU in a second, where the usual 997 would drown in the noise.
const HZ: f64 = 9973.0;

/// A switch, with its wake-up, from and to a chain of 16 functions.
pub(crate) fn switches(bench: &Bench) -> Result<Vec<Row>> {
    const SUBJECT: [&str; 2] = ["deep", "switch"];
    let mut samples = Samples::default();
    let mut remarks = Vec::new();
    for round in 0..bench.rounds(5) {
        let mut taken = Vec::new();
        let before = bench.subject(&SUBJECT)?.get("switch")?;
        for (name, options) in [
            ("sched", &["-k", "sched"][..]),
            ("usual", &["-k", "sched,stack"]),
            ("all", &["-k", "sched,stack", "--stack-min", "1us"]),
        ] {
            let ours = bench.record(options, &SUBJECT)?;
            taken.push((name, ours.figures.get("switch")?));
            samples.add("lost", ours.lost as f64);
        }
        let mut other = |name, figures: Result<Figures>| match figures.and_then(|f| f.get("switch"))
        {
            Ok(switch) => taken.push((name, switch)),
            Err(error) if round == 0 => remarks.push(format!("{name}: {error:#}")),
            Err(_) => {}
        };
        other(
            "perf record -g",
            perf(bench, &["sched:sched_switch", "sched:sched_waking"], &SUBJECT),
        );
        other("offcputime", offcputime(bench, &SUBJECT));
        // A switch costs 2 µs at one time and 3 at another: each round is compared with itself.
        let after = bench.subject(&SUBJECT)?.get("switch")?;
        let unwatched = (before + after) / 2.0;
        samples.add("unwatched", unwatched);
        samples.add("error", (before - after).abs() / 2.0);
        taken.into_iter().for_each(|(name, switch)| samples.add(name, switch - unwatched));
    }
    if let Some(lost) = samples.highest("lost").filter(|&lost| lost > 0.0) {
        remarks.push(format!("**{lost:.0} records of a run were lost**"));
    }
    let added = |name: &str| samples.median(name);
    let [usual, all] = [samples.must("usual")?, samples.must("all")?];
    let what = "a switch with its wake-up in chains of 16 functions, our groups sched and stack, added; ns";
    Ok(vec![
        Row::new(what, number(usual)).beside([
            ("unwatched", added("unwatched")),
            ("error", added("error")),
            ("our group sched alone", added("sched")),
        ]),
        Row::new("the same, every chain recorded (`--stack-min 1us`)", number(all))
            .beside([
                ("perf record -g of the switch and the wake-up adds", added("perf record -g")),
                ("offcputime, which adds up in the kernel, adds", added("offcputime")),
            ])
            .remark(&remarks.join("; ")),
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
        let perf = perf(bench, &["cpu-clock"], &SUBJECT).and_then(|f| f.get("pass"));
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

/// perf on all CPUs, with call chains by frame pointers, into a file on tmpfs.
fn perf(bench: &Bench, events: &[&str], subject: &[&str]) -> Result<Figures> {
    let file = bench.path("perf.data");
    let mut command = bench.program("perf");
    command.args(["record", "--quiet", "--all-cpus", "--mmap-pages", "4096", "-g", "--output"]);
    command.arg(&file);
    if events == ["cpu-clock"] {
        command.args(["--freq", &HZ.to_string()]);
    }
    for event in events {
        command.args(["--event", event]);
    }
    let figures = Figures::of(command.arg("--").arg(bench.beside("subject")).args(subject));
    let _ = fs::remove_file(&file);
    figures
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
