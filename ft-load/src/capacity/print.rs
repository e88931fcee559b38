//! What is printed of the rates.

use std::fmt::Write;

use super::{CONFIRMED, Limit, Row, Trial};
use crate::time::Time;

/// A rate in millions a second, with three digits.
fn millions(rate: f64) -> String {
    let millions = rate / 1e6;
    match millions {
        m if m >= 100.0 => format!("{m:.0}"),
        m if m >= 10.0 => format!("{m:.1}"),
        m if m >= 1.0 => format!("{m:.2}"),
        m => format!("{m:.3}"),
    }
}

/// The table. Writing to a string cannot fail.
pub(super) fn text(rows: &[Row], time_ns: u64) -> String {
    let mut text = format!(
        "Million events a second without loss, by the recording's own account, in {CONFIRMED} runs of {} each\n\
         threads  kernel                ring  each thread  all threads  higher rates\n",
        Time(time_ns)
    );
    for Row { threads, kernel, ring_size, capacity } in rows {
        let (each, all, beyond) = match capacity {
            None => (
                "-".into(),
                "-".into(),
                "lose events, or are not reached, even at a thousand a second",
            ),
            Some(c) => {
                let all = c.reached * *threads as f64;
                let beyond = match c.limit {
                    Limit::Loss => "lose events",
                    Limit::Program => "are beyond what the threads can write",
                    Limit::Starved => "were not reached: other programs had the CPU",
                    Limit::Search => "were not tried",
                };
                (millions(c.reached), millions(all), beyond)
            }
        };
        let _ = writeln!(
            text,
            "{threads:>7}  {kernel:<18} {ring_size:>7}  {each:>11}  {all:>11}  {beyond}"
        );
    }
    text
}

/// A run, while the search goes on.
pub(super) fn trial(row: &Row, trial: &Trial) -> String {
    let Row { threads, kernel, ring_size, .. } = row;
    let (asked, reached) = (millions(trial.asked), millions(trial.reached));
    let lost = match trial.lost {
        0 => "nothing lost".to_owned(),
        n => format!("{n} lost"),
    };
    format!(
        "{threads} threads, kernel {kernel}, ring {ring_size}: {asked} M/s each asked, {reached} made, {lost}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::Capacity;
    use super::*;

    #[test]
    fn rates_have_three_digits_and_rows_say_what_bounds_them() {
        for (rate, expected) in
            [(123.4e6, "123"), (12.34e6, "12.3"), (1.234e6, "1.23"), (5_000.0, "0.005")]
        {
            assert_eq!(millions(rate), expected);
        }
        let capacity = |limit| Capacity { asked: 5e6, reached: 4.5e6, limit, trials: Vec::new() };
        let row = |capacity| Row {
            threads: 2,
            kernel: "sched,irq".into(),
            ring_size: "8M".into(),
            capacity,
        };
        let rows =
            [row(Some(capacity(Limit::Loss))), row(Some(capacity(Limit::Program))), row(None)];
        let text = text(&rows, 2_000_000_000);
        assert!(text.contains("in 3 runs of 2 s each"), "{text}");
        assert!(
            text.contains(
                "      2  sched,irq               8M         4.50         9.00  lose events\n"
            ),
            "{text}"
        );
        assert!(text.contains("are beyond what the threads can write"), "{text}");
        assert!(text.contains("  -            -  lose events, or are not reached, even"), "{text}");
    }
}
