//! A scenario in a file: what a command line has no room for.
//!
//! ```toml
//! duration = "2s"
//!
//! [[thread]]
//! name = "modem"
//! workload = "PERIODIC 3ms 8ms"
//! priority = "RTMED"
//! timer = "HR"
//! cpu = "1"
//!
//! [[thread]]
//! count = 10
//! workload = "CPU"
//! ```

use std::fs;

use serde::Deserialize;

use super::class::{Class, Priority};
use super::scenario::{DEFAULT_GAP_NS, DEFAULT_RECORDS, MAX_RECORDS, MAX_THREADS, Plan, Scenario};
use super::timer::Timer;
use super::workload::Workload;
use crate::args::{not_zero, number};
use crate::time::parse;
use crate::{Error, cpus};

/// The largest file that is read: a thousand threads take a tenth of it.
///
/// Limit: as `MAX_THREADS` of `scenario.rs`.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    duration: Option<String>,
    records: Option<u64>,
    gap: Option<String>,
    thread: Vec<Thread>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Thread {
    name: Option<String>,
    count: Option<u64>,
    workload: Option<String>,
    priority: Option<String>,
    reserve_hard: Option<String>,
    reserve_soft: Option<String>,
    timer: Option<String>,
    start: Option<String>,
    finish: Option<String>,
    cpu: Option<String>,
    slice: Option<String>,
}

/// Reads the scenario of a file; [`Scenario::check`] has not seen it yet.
///
/// # Errors
///
/// When the file cannot be read, and for the first part of it that makes no sense, with its line or its thread.
pub(super) fn read(path: &str) -> Result<Scenario, Error> {
    let name = path.escape_debug();
    let unreadable =
        |error| Error::usage(format!("{name} cannot be read ({error}); name a file in TOML"));
    let meta = fs::metadata(path).map_err(unreadable)?;
    if !meta.is_file() || meta.len() > MAX_BYTES {
        return Err(Error::usage(format!(
            "{name} is no file of at most 1 MiB; name a scenario in TOML"
        )));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    of_text(&text).map_err(|error| Error::usage(format!("{name}: {error}")))
}

fn of_text(text: &str) -> Result<Scenario, Error> {
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        let message = error.message().replace('\n', ", ");
        Error::usage(format!("line {line}: {message}; see `ft-load hourglass --help`"))
    })?;
    let mut threads = Vec::new();
    for thread in &file.thread {
        let first = threads.len();
        let plan =
            plan(thread).map_err(|error| Error::usage(format!("thread {first}: {error}")))?;
        let count = thread.count.unwrap_or(1);
        let count = number(&count.to_string(), "count", 1, MAX_THREADS)?;
        if first + count > MAX_THREADS {
            return Err(Error::usage(format!(
                "there are more than {MAX_THREADS} threads; write smaller counts"
            )));
        }
        threads.extend(vec![plan; count]);
    }
    if threads.is_empty() {
        return Err(Error::usage("there is no thread; add a table [[thread]]"));
    }
    let time = |text: &Option<String>, default| match text {
        Some(text) => not_zero(text, parse(text)?),
        None => Ok(default),
    };
    let records = match file.records {
        Some(records) => number(&records.to_string(), "records", 1, MAX_RECORDS)?,
        None => DEFAULT_RECORDS,
    };
    Ok(Scenario {
        duration_ns: time(&file.duration, 10_000_000_000)?,
        records,
        gap_ns: time(&file.gap, DEFAULT_GAP_NS)?,
        lock_memory: false,
        threads,
    })
}

fn plan(thread: &Thread) -> Result<Plan, Error> {
    let mut plan = Plan { name: thread.name.clone(), ..Plan::default() };
    if plan.name.as_ref().is_some_and(|name| name.is_empty() || name.contains('\0')) {
        return Err(Error::usage("a name has at least one character, and no NUL; write another"));
    }
    if let Some(text) = &thread.workload {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        plan.workload = Workload::read(name, |what| {
            words
                .next()
                .ok_or_else(|| Error::usage(format!("`{name}` lacks {what}; write it behind it")))
        })?;
        nothing_more(words.next())?;
    }
    let classes = [&thread.priority, &thread.reserve_hard, &thread.reserve_soft];
    if classes.iter().filter(|class| class.is_some()).count() > 1 {
        return Err(Error::usage("it has a priority or one reservation; leave out the others"));
    }
    if let Some(text) = &thread.priority {
        plan.class = Some(Class::Priority(Priority::read(text)?));
    }
    for (text, soft) in [(&thread.reserve_hard, false), (&thread.reserve_soft, true)] {
        let Some(text) = text else { continue };
        let mut words = text.split_whitespace();
        let (Some(amount), Some(period)) = (words.next(), words.next()) else {
            return Err(Error::usage("a reservation is an amount and a period; write \"3ms 8ms\""));
        };
        nothing_more(words.next())?;
        plan.class = Some(Class::reservation(amount, period, soft)?);
    }
    if let Some(text) = &thread.timer {
        plan.timer = Timer::read(text)?;
    }
    if let Some(text) = &thread.start {
        plan.start_ns = parse(text)?;
    }
    if let Some(text) = &thread.finish {
        plan.finish_ns = Some(not_zero(text, parse(text)?)?);
    }
    if let Some(text) = &thread.cpu {
        plan.cpus = cpus::parse(text)?;
    }
    if let Some(text) = &thread.slice {
        plan.slice_ns = Some(not_zero(text, parse(text)?)?);
    }
    Ok(plan)
}

fn nothing_more(word: Option<&str>) -> Result<(), Error> {
    match word {
        None => Ok(()),
        Some(word) => {
            Err(Error::usage(format!("nobody takes `{}`; leave it out", word.escape_debug())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_a_command_line_does() {
        let scenario = of_text(
            r#"
            duration = "2s"
            records = 1000
            gap = "450ns"

            [[thread]]
            name = "modem"
            workload = "PERIODIC 3ms 8ms"
            priority = "RTMED"
            timer = "HR"
            cpu = "0-1"
            start = "0.5s"
            finish = "1.5s"

            [[thread]]
            reserve-soft = "1ms 10ms"

            [[thread]]
            count = 3
            slice = "3ms"
            "#,
        )
        .unwrap();
        assert_eq!(
            (scenario.duration_ns, scenario.records, scenario.gap_ns),
            (2_000_000_000, 1000, 450)
        );
        assert_eq!(scenario.threads.len(), 5);
        let modem = &scenario.threads[0];
        assert_eq!(modem.name.as_deref(), Some("modem"));
        assert_eq!(
            modem.workload,
            Workload::Periodic { amount_ns: 3_000_000, period_ns: 8_000_000 }
        );
        assert_eq!(modem.class, Some(Class::Priority(Priority::Fifo(40))));
        assert_eq!((modem.timer, &modem.cpus[..]), (Timer::Hr, &[0, 1][..]));
        assert_eq!((modem.start_ns, modem.finish_ns), (500_000_000, Some(1_500_000_000)));
        let soft = Class::Reservation { amount_ns: 1_000_000, period_ns: 10_000_000, soft: true };
        assert_eq!(scenario.threads[1].class, Some(soft));
        assert_eq!(scenario.threads[4].slice_ns, Some(3_000_000));
    }

    #[test]
    fn what_makes_no_sense_is_told_in_one_sentence() {
        for (text, remedy) in [
            ("", "line 1: missing field `thread`"),
            ("thread = []", "add a table [[thread]]"),
            ("[[thread]]\nwork = 1", "line 2: unknown field `work`"),
            ("duration = 5\n[[thread]]", "line 1: invalid type"),
            ("[[thread]\n", "line 1: "),
            ("duration = '5'\n[[thread]]", "write 5us, 5ms"),
            ("[[thread]]\nworkload = 'PERIODIC 3ms'", "thread 0: `PERIODIC` lacks a period"),
            ("[[thread]]\n[[thread]]\nworkload = 'CPU 3ms'", "thread 1: nobody takes `3ms`"),
            ("[[thread]]\nreserve-hard = '3ms'", "an amount and a period"),
            ("[[thread]]\nreserve-hard = '3ms 8ms'\npriority = 'LOW'", "leave out the others"),
            ("[[thread]]\ncount = 0", "use 1 to 1024"),
            ("[[thread]]\ncount = 1024\n[[thread]]", "smaller counts"),
            ("[[thread]]\nname = \"a\\u0000\"", "write another"),
            ("records = 0\n[[thread]]", "use 1 to"),
        ] {
            let error = of_text(text).unwrap_err().to_string();
            assert!(error.contains(remedy) && !error.contains('\n'), "{text}: {error}");
        }
        let error = read("/nowhere/at all").unwrap_err().to_string();
        assert!(error.contains("/nowhere/at all cannot be read"), "{error}");
        assert!(read("/dev/zero").unwrap_err().to_string().contains("no file of at most"));
    }
}
