//! Events per second that the analyses take, and how time and memory grow with the length of a trace.
//!
//! ```text
//! cargo bench -p ft-tests --bench analysis                  the analyses alone, in memory
//! cargo bench -p ft-tests --bench analysis -- scale         traces of 1 and 10 million events on disk
//! cargo bench -p ft-tests --bench analysis -- scale 1       the first of them alone, for a trial
//! cargo bench -p ft-tests --bench analysis -- scale 100     all of these, and one of so many millions
//! cargo bench -p ft-tests --bench analysis -- scale 100 DIR … whose pages are kept in a directory, to be looked at
//! cargo bench -p ft-tests --bench analysis -- exports 100   their exports, of 1 and 10 million events and of so many
//! ```
//!
//! `scale` writes below `TMPDIR`, and opens each page in Chromium, where `cargo xtask test page` has set up what that needs. What is
//! made up repeats itself, so its files are far smaller than those of a recording; the rows that are decoded and analysed
//! are as many.

mod exports;
mod opening;
mod scale;
mod trace;

use std::hint::black_box;
use std::time::Instant;

use ft_analysis::{Context, Run};
use ft_trace::event::Event;

const ROUNDS: u64 = 20_000;
const REPEATS: usize = 7;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => in_memory(),
        ["scale"] => scale::table(&[1, 10], None),
        ["scale", largest] => scale::table(&lengths(largest), None),
        ["scale", largest, pages] => scale::table(&lengths(largest), Some(pages.as_ref())),
        ["exports", largest] => exports::table(&lengths(largest)),
        [scale::CHILD, dir] => scale::child(dir.as_ref()),
        [scale::COMPARING, dir] => scale::compare(dir.as_ref()),
        [exports::CHILD, format, dir, out] => exports::child(format, dir.as_ref(), out.as_ref()),
        _ => usage(),
    }
}

/// 1 and 10 million events, as far as that is shorter, and so many.
fn lengths(largest: &str) -> Vec<u64> {
    let largest = largest.parse().unwrap_or_else(|_| usage());
    [1, 10].into_iter().filter(|shorter| *shorter < largest).chain([largest]).collect()
}

fn usage() -> ! {
    eprintln!("analysis: [scale [MILLIONS [PAGES]] | exports MILLIONS]");
    std::process::exit(2);
}

fn in_memory() {
    let events: Vec<Event> = trace::events(ROUNDS).collect();
    let mut rates = Vec::new();
    for _ in 0..REPEATS {
        let context = Context::new(true, 100, &trace::threads(), &trace::sites(), &[]);
        let mut analysis = Run::new(context);
        let start = Instant::now();
        for event in &events {
            analysis.push(event);
            if analysis.pending() >= 4096 {
                black_box(analysis.take_rows());
            }
        }
        let (_, tally) = analysis.finish();
        rates.push(events.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
        assert_eq!(tally.holds, trace::holds_of(ROUNDS));
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "{} events: {:.1} M events/s (median of {REPEATS}; {:.1} to {:.1})",
        events.len(),
        rates[REPEATS / 2],
        rates[0],
        rates[REPEATS - 1]
    );
}
