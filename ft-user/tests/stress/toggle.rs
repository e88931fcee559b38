//! Sites are switched 1,000 times a second while all threads run through them.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ft_user::layout::TRIGGER_BYTES;
use ft_user::patch::Text;
use ft_user::site;

use crate::common::{Event, Memory};

/// Four sites, each one byte further in its cache line than a multiple of its length.
macro_rules! four {
    ($x:ident) => {
        four!(@one $x);
        four!(@one $x);
        four!(@one $x);
        four!(@one $x);
    };
    (@one $x:ident) => {
        ft_user::event!("flip.two", x: u64 = $x, inverse: u64 = !$x);
        // SAFETY: does nothing.
        unsafe { std::arch::asm!("nop", options(nomem, nostack, preserves_flags)) };
    };
}

/// Bytes of a cache line.
const LINE: u64 = 64;

fn work(x: u64) -> u64 {
    four!(x);
    four!(x);
    four!(x);
    four!(x);
    ft_user::event!("flip.six", x: u64, inverse: u64 = !x, c: u64 = x ^ 1, d: u64 = x ^ 2,
        e: u64 = x ^ 3, f: u64 = x ^ 4);
    x.rotate_left(5) ^ 0x9e37_79b9
}

/// The executable mappings with their protections, and what stands in them.
fn text() -> Vec<(String, Vec<u8>)> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let executable = |line: &&str| {
        let mut fields = line.split_whitespace();
        let protection = fields.nth(1).unwrap();
        assert!(!(protection.contains('w') && protection.contains('x')), "writable text: {line}");
        protection.contains('x') && !line.contains("[v")
    };
    let copy = |line: &str| {
        let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).unwrap());
        // SAFETY: an executable mapping of this process is readable, and stays.
        let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, end - start) };
        (line.to_owned(), bytes.to_vec())
    };
    maps.lines().filter(executable).map(copy).collect()
}

/// Runs through the sites until `stop`; the same value comes out with sites on, off, and in between.
fn pass(seed: u64, stop: &AtomicBool) -> u64 {
    let (mut x, mut n) = (seed, 0u64);
    while !stop.load(Relaxed) {
        x = work(x);
        n += 1;
    }
    assert_eq!(x, (0..n).fold(seed, |x, _| x.rotate_left(5) ^ 0x9e37_79b9));
    n
}

/// 1 for an event that is whole, 0 for one that tells a loss.
fn check(event: &Event) -> u64 {
    let x = event.words[0];
    match event.name.as_str() {
        "flip.two" => assert_eq!(event.words[1], !x, "torn: {event:?}"),
        "flip.six" => {
            assert_eq!(event.words[1..6], [!x, x ^ 1, x ^ 2, x ^ 3, x ^ 4], "torn: {event:?}");
        }
        "loss" => return 0,
        other => panic!("{other}"),
    }
    1
}

#[test]
fn sites_flip_while_threads_pass() {
    let _alone = crate::ALONE.lock();
    crate::start();
    let mut memory = Memory::own();
    memory.take();
    let mut sites = Vec::new();
    site::for_each(|site| {
        if site.meta.name().starts_with("flip.") {
            sites.push(site.trigger as u64);
        }
    });
    let crosses = |site: &u64| site % LINE > LINE - TRIGGER_BYTES;
    let crossing = sites.iter().copied().filter(crosses).count();
    assert!(crossing > 0, "a trigger lies in two lines: {sites:x?}");
    // Both ways once, so that whatever is set up for patching is there before the first look.
    for on in [true, false] {
        sites.iter().for_each(|&site| _ = Text::own().unwrap().set(site, on).unwrap());
    }
    let before = text();
    let stop = AtomicBool::new(false);
    let (flips, passes, events) = std::thread::scope(|scope| {
        let stop = &stop;
        let threads: Vec<_> = (0..2u64).map(|seed| scope.spawn(move || pass(seed, stop))).collect();
        let memory = &mut memory;
        let reader = scope.spawn(move || {
            let mut events = 0;
            while !stop.load(Relaxed) {
                events += memory.take().iter().map(check).sum::<u64>();
            }
            events
        });
        let (mut flips, length) = (0, Duration::from_secs(crate::scaled(1)));
        let begin = Instant::now();
        while begin.elapsed() < length {
            flips += 1;
            let mut text = Text::own().unwrap();
            sites.iter().for_each(|&site| assert!(text.set(site, flips % 2 == 1).unwrap()));
            drop(text);
            // Not more than one in a millisecond; what the machine does not manage is not made up for.
            let next = begin + Duration::from_millis(flips);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        let mut text = Text::own().unwrap();
        sites.iter().for_each(|&site| _ = text.set(site, false).unwrap());
        stop.store(true, Relaxed);
        let passes: u64 = threads.into_iter().map(|thread| thread.join().expect("no harm")).sum();
        (flips, passes, reader.join().unwrap())
    });
    memory.take();
    assert!(text() == before, "bytes or protections of the text have changed");
    assert!(events > 0);
    let sites = sites.len();
    println!(
        "flip: {flips} flips of {sites} sites, {crossing} of them in two cache lines; {passes} passes, \
         {events} events"
    );
}
