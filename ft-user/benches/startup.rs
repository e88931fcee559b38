//! What `ft_user::init` costs a process, without an agent: `cargo bench --bench startup`.
//!
//! Each measurement is the first call in a fresh process, this program started again. Its 512 sites
//! stand for a large application.

use std::process::Command;
use std::time::Instant;

macro_rules! sites {
    ($($a:literal)*) => { $( sites!(@ $a); )* };
    (@ $a:literal) => {
        ft_user::event!("bench.a"); ft_user::event!("bench.b"); ft_user::event!("bench.c");
        ft_user::event!("bench.d", n: u64 = $a); ft_user::event!("bench.e", n: u64 = $a, m: u64 = 2);
        ft_user::event!("bench.f"); ft_user::event!("bench.g"); ft_user::event!("bench.h");
    };
}

#[inline(never)]
fn sites() {
    sites!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    sites!(32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60);
    sites!(61 62 63);
}

fn main() {
    if std::env::args().any(|arg| arg == "--once") {
        let start = Instant::now();
        let status = ft_user::init();
        let ns = start.elapsed().as_nanos();
        sites();
        println!("{ns} {}", status.map_or(0, |status| status.sites));
        return;
    }
    let own = std::env::current_exe().expect("a path of this program");
    let mut runs: Vec<(u64, u64)> = (0..101)
        .map(|_| {
            let output = Command::new(&own)
                .arg("--once")
                .env("FT_SOCKET", "/nonexistent/agent.sock")
                .output()
                .expect("this program, started again");
            let text = String::from_utf8_lossy(&output.stdout);
            let mut numbers = text.split_whitespace().map(|n| n.parse().expect("a number"));
            (numbers.next().expect("two numbers"), numbers.next().expect("two numbers"))
        })
        .collect();
    runs.sort_unstable();
    let us = |run: (u64, u64)| run.0 as f64 / 1000.0;
    println!(
        "init with {} sites: minimum {:.1} µs, median {:.1} µs, maximum {:.1} µs of {} processes",
        runs[0].1,
        us(runs[0]),
        us(runs[runs.len() / 2]),
        us(runs[runs.len() - 1]),
        runs.len()
    );
}
