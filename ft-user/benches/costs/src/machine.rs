//! What the figures were measured on.

use std::fs;
use std::process::Command;

use crate::bench::Bench;

/// A field of the first processor in `/proc/cpuinfo`.
fn field<'a>(cpuinfo: &'a str, name: &str) -> &'a str {
    let line = cpuinfo.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_once(": ")).map_or("?", |(_, value)| value)
}

/// Family of the processor: `AMD family 26`.
pub(crate) fn family() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let maker = match field(&cpuinfo, "vendor_id") {
        "AuthenticAMD" => "AMD",
        "GenuineIntel" => "Intel",
        other => other,
    };
    format!("{maker} family {}", field(&cpuinfo, "cpu family"))
}

/// One line: processor, kernel, date, peers.
pub(crate) fn describe(bench: &Bench) -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name| field(&cpuinfo, name);
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let guest = if cpuinfo.contains(" hypervisor") { ", a virtual machine" } else { "" };
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib: f64 = memory.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0.0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{}{} family {}, {cpus} CPUs, {:.0} GiB{guest}; TSC {:.4} GHz; Linux {}; {} UTC; {}; {}.",
        if bench.quick { "**A quick try, not a measurement.** " } else { "" },
        field("model name"),
        field("cpu family"),
        kib / f64::from(1 << 20),
        ft_costs::cycles::per_ns(),
        kernel.trim(),
        said("date", &["-u", "+%F %H:%M"]),
        if bench.has_lttng() { version("LTTng-UST", "lttng") } else { "no LTTng-UST".into() },
        version("perf", "perf"),
    )
}

/// A name, and the first word with a digit in what the program says of its version.
fn version(name: &str, program: &str) -> String {
    let said = said(program, &["--version"]);
    let number = said.split_whitespace().find(|word| word.contains(|c: char| c.is_ascii_digit()));
    number.map_or(said.clone(), |number| format!("{name} {number}"))
}

/// The first line that a program prints.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match text.as_deref().ok().and_then(|text| text.lines().next()) {
        Some(line) => line.to_owned(),
        None => format!("no {program}"),
    }
}
