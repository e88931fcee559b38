//! Sites are switched while threads run through them.
#![cfg(not(ft_off))]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use ft_user::{event, patch::Text, site};

/// Switches of all sites together.
const FLIPS: u32 = 300;

fn work(x: u64) -> u64 {
    event!("toggle.two", x: u64, y: u64 = x + 1);
    event!("toggle.six", x: u64, a: u64 = 1, b: u64 = 2, c: u64 = 3, d: u64 = 4, e: u64 = 5);
    x.rotate_left(5) ^ 0x9e37_79b9
}

fn protection_of(address: u64) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| {
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let parse = |number| u64::from_str_radix(number, 16).unwrap();
        (parse(start)..parse(end)).contains(&address)
    });
    line.expect("the address is mapped").split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn sites_flip_under_running_threads() {
    let mut sites = Vec::new();
    site::for_each(|site| sites.push(site.trigger as u64));
    assert!(sites.len() >= 2);
    let (stop, passes) = (AtomicBool::new(false), AtomicU64::new(0));
    /// Ends the threads also when an assertion fails.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2u64)
            .map(|seed| {
                let (stop, passes) = (&stop, &passes);
                scope.spawn(move || {
                    // The same values come out with sites on, off, and in between.
                    let (mut x, mut n) = (seed, 0u64);
                    while !stop.load(Relaxed) {
                        x = work(x);
                        n += 1;
                        passes.fetch_add(1, Relaxed);
                    }
                    assert_eq!(x, (0..n).fold(seed, |x, _| x.rotate_left(5) ^ 0x9e37_79b9));
                })
            })
            .collect();
        let stop = Stop(&stop);
        while passes.load(Relaxed) == 0 {
            std::hint::spin_loop();
        }
        for flip in 0..FLIPS {
            let mut text = Text::own().unwrap();
            for &site in &sites {
                assert!(text.set(site, flip % 2 == 0).unwrap());
                assert_eq!(protection_of(site), "r-xp");
            }
        }
        drop(stop);
        for thread in threads {
            thread.join().expect("no thread is harmed");
        }
    });
}
