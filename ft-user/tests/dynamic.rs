//! Sites that are made at run time: listed, switched, written and read back.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use common::{Memory, memfds};
use ft_user::directory::Entry;
use ft_user::dynamic::{Description, Event, Kind, Switch, Values};
use ft_user::layout::{ABSENT, SiteKind, TEXT_CUT, TRIGGER_OFF};
use ft_user::{ArgType, Config, patch::Text, site};

const WORDS: [(&str, ArgType); 2] = [("id", ArgType::Unsigned), ("load", ArgType::Float)];

fn of<'a>(name: &'a str, args: &'a [(&'a str, ArgType)]) -> Description<'a> {
    Description { kind: Kind::Event, name, file: "script.lua", line: 7, args }
}

fn switch(name: &str) -> Switch {
    Switch::new(&of(name, &WORDS)).expect("there is room")
}

fn write(event: Event, id: u64) -> bool {
    let mut values = Values::new();
    values.push(id);
    values.push(0.5);
    event.write(&values)
}

fn triggers(name: &str) -> Vec<usize> {
    let mut found = Vec::new();
    site::for_each(|site| {
        if site.meta.name() == name {
            found.push(site.trigger);
        }
    });
    found
}

/// The words of the events of this name, which came through a ring of this thread.
fn taken(memory: &mut Memory, name: &str) -> Vec<Vec<u64>> {
    let own = memory.take().into_iter().filter(|event| event.name == name);
    own.map(|event| event.words).collect()
}

/// One memfd and one reader of it: one test after the other.
#[test]
fn sites_of_run_time() {
    // Before the start: nothing is written, and what comes then is described.
    let early = switch("early.site");
    let other = Event::new(&Description { kind: Kind::End, ..of("early.other", &[]) }).unwrap();
    assert!(!early.is_on() && write(early.event(), 1) && other.write(&Values::new()));
    common::start(Config::default());
    let mut memory = Memory::own();

    described_and_switched(&mut memory, early);
    text_is_copied_and_cut(&mut memory);
    what_does_not_fit_is_not_written(&mut memory);
    rules_hold_for_later_ones();
    switched_under_threads();
    children_describe_them_again(early, other);
}

fn described_and_switched(memory: &mut Memory, early: Switch) {
    let [trigger] = triggers("early.site")[..] else { panic!("one trigger") };
    // SAFETY: program text of this process.
    assert_eq!(unsafe { *(trigger as *const u32) }, TRIGGER_OFF);
    let described: Vec<_> = memory
        .directory()
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::SiteMeta { kind, line, name, file, args, .. } if name.starts_with("early.") => {
                Some((name, kind, file, line, args))
            }
            _ => None,
        })
        .collect();
    let args = vec![(ArgType::Unsigned, "id"), (ArgType::Float, "load")];
    let expected = [
        ("early.site", SiteKind::Event, "script.lua", 7, args),
        ("early.other", SiteKind::ScopeEnd, "script.lua", 7, vec![]),
    ];
    assert_eq!(described, expected);

    assert_eq!(ft_user::enable("early.*"), 1);
    assert!(early.is_on());
    assert!(write(early.event(), 2));
    assert_eq!(taken(memory, "early.site"), [[2, 0.5f64.to_bits()]]);
    assert_eq!(ft_user::disable("early.s*"), 1);
    assert!(!early.is_on());
    // As the agent does it, from outside.
    Text::of(std::process::id() as i32).unwrap().set(trigger as u64, true).unwrap();
    assert!(early.is_on());

    // While it runs.
    let late = switch("late.site");
    let form = Event::new(&of("late.form", &[("t", ArgType::OptionalUnsigned)])).unwrap();
    let key_of = |wanted: &str| {
        memory.directory().into_iter().find_map(|entry| match entry {
            Entry::SiteMeta { key, name, .. } if name == wanted => Some(key),
            _ => None,
        })
    };
    let [trigger] = triggers("late.site")[..] else { panic!("one trigger") };
    let key = key_of("late.site").expect("it is described");
    let site = Entry::Site { key, address: trigger as u64 };
    assert!(memory.directory().contains(&site) && key_of("late.form").is_some());
    assert!(!late.is_on(), "what nobody asked for");
    let mut values = Values::new();
    values.push(None::<u64>);
    assert!(form.write(&values));
    assert_eq!(taken(memory, "late.form"), [[ABSENT, 0]]);
}

fn text_is_copied_and_cut(memory: &mut Memory) {
    let args = [("n", ArgType::Signed), ("short", ArgType::Str), ("long", ArgType::Str)];
    let event = Event::new(&of("text.both", &args)).unwrap();
    let mut values = Values::new();
    values.push(-1i32);
    values.format(format_args!("{}-{}", "a", 1));
    let mut long = values.text().unwrap();
    while long.write_str("ä").is_ok() {}
    assert!(values.more().unwrap().write_str("more").is_err());
    assert!(event.write(&values));
    let [words] = &taken(memory, "text.both")[..] else { panic!("one event") };
    assert_eq!(words[..2], [u64::MAX, 3]);
    assert_eq!(words[2].to_ne_bytes(), *b"a-1\0\0\0\0\0");
    // 38 words hold the number, two lengths, and one word of the short text.
    assert_eq!(words[3], TEXT_CUT | (8 * (38 - 4)));
}

fn what_does_not_fit_is_not_written(memory: &mut Memory) {
    let event = Event::new(&of("fits.exactly", &WORDS)).unwrap();
    let mut values = Values::new();
    assert!(!event.write(&values));
    values.push(1i64);
    values.push(0.5);
    assert!(!event.write(&values), "another sign");
    let mut six = Values::new();
    assert!((0..6).all(|n: u64| six.push(n)) && !six.push("seven") && six.text().is_none());
    assert!(!event.write(&six) && six.more().is_none());
    assert_eq!(taken(memory, "fits.exactly"), [[0; 0]; 0]);

    let seven = [("n", ArgType::Bool); 7];
    assert!(Event::new(&of("a.b", &seven)).is_none() && Switch::new(&of("a.b", &seven)).is_none());
    assert!(Event::new(&of("nodot", &[])).is_none() && Switch::new(&of(".b", &[])).is_none());
}

fn rules_hold_for_later_ones() {
    assert_eq!(ft_user::enable("ruled.*"), 0);
    ft_user::disable("ruled.not");
    assert!(switch("ruled.one").is_on());
    assert!(!switch("ruled.not").is_on());
}

fn switched_under_threads() {
    let (site, stop) = (switch("threads.site"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut n = 0;
                while !stop.load(Relaxed) {
                    n += u64::from(site.is_on() && write(site.event(), n));
                }
            });
        }
        let made =
            scope.spawn(|| (0..100).filter(|n| switch(&format!("made.{n}")).is_on()).count());
        for _ in 0..50 {
            assert_eq!(ft_user::enable("threads.*"), 1);
            assert_eq!(ft_user::disable("threads.*"), 1);
        }
        assert_eq!(made.join().unwrap(), 0);
        stop.store(true, Relaxed);
    });
    assert_eq!((0..100).map(|n| triggers(&format!("made.{n}")).len()).sum::<usize>(), 100);
}

fn children_describe_them_again(early: Switch, other: Event) {
    let mut pipe = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: the child writes events, waits, and ends without running destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        write(early.event(), 77);
        other.write(&Values::new());
        // SAFETY: a buffer of one byte each; ends the process at once.
        unsafe {
            libc::write(pipe[1], c"x".as_ptr().cast(), 1);
            libc::pause();
            libc::_exit(0);
        }
    }
    // SAFETY: a buffer of one byte.
    assert_eq!(unsafe { libc::read(pipe[0], [0u8].as_mut_ptr().cast(), 1) }, 1);
    assert_eq!(memfds(child as u32).len(), 1);
    let found: Vec<_> = Memory::of(child as u32)
        .take()
        .into_iter()
        .filter(|event| event.name.starts_with("early."))
        .map(|event| (event.name, event.words[0]))
        .collect();
    // SAFETY: our own child.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    assert_eq!(found, [("early.site".to_owned(), 77), ("early.other".to_owned(), 0)]);
}
