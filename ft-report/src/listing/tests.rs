//! Whole listings of a small trace: golden text, filters, hostile contents.

mod sample;

use super::*;
use ft_trace::ids::Pid;
use ft_trace::tables::UserEvent;
use sample::Sample;
pub(super) use sample::user;

fn with_kernel() -> Selection {
    Selection { kernel: true, ..Selection::default() }
}

/// Compares with a file of `golden/`. To accept a change, copy what the failure prints.
fn check(name: &str, found: &str, expected: &str) {
    assert_eq!(found, expected, "golden/{name}.txt differs; found:\n{found}");
}

#[test]
fn the_listing_of_a_small_trace() {
    let text = Sample::new().list(&with_kernel(), Form::default()).unwrap();
    check("listing", &text, include_str!("golden/listing.txt"));
}

/// A name stands whole, however long; the other lines are not moved for it beyond a bound.
#[test]
fn a_long_name_moves_its_own_line_alone() {
    let long = "n".repeat(200);
    let event = format!("order.{}", "e".repeat(200));
    let threads = [sample::thread(100, 103, &long)];
    let events = [UserEvent { tid: ft_trace::ids::Tid(103), ..user(9000, 98, &event) }];
    let text =
        Sample::with(&threads, &events).list(&Selection::default(), Form::default()).unwrap();
    let line = text.lines().find(|line| line.contains(&event)).expect("its line");
    assert!(line.contains(&long), "{text}");
    let others = text.lines().filter(|line| !line.contains(&event));
    assert!(others.clone().count() > 5 && others.clone().all(|line| line.len() < 200), "{text}");
}

#[test]
fn the_listing_as_json() {
    let form = Form { json: true, ..Form::default() };
    let text = Sample::new().list(&with_kernel(), form).unwrap();
    check("json", &text, include_str!("golden/json.txt"));
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn the_events_that_there_are() {
    let text = event_counts(&Sample::new().trace(), &with_kernel()).unwrap().to_string();
    check("counts", &text, include_str!("golden/counts.txt"));
}

#[test]
fn every_filter_leaves_what_it_names() {
    let sample = Sample::new();
    let texts = |list: &[&str]| list.iter().map(|text| text.to_string()).collect();
    // Events by their names, without the title and the loss.
    let check = |selection: Selection, expected: &str| {
        let text = sample.list(&selection, Form::default()).unwrap();
        let names = text.lines().skip(1).filter_map(|line| {
            line.split_whitespace().find(|w| w.contains('.') && !w.starts_with(char::is_numeric))
        });
        let names: Vec<_> = names.filter(|name| *name != "loss.ring").collect();
        assert_eq!(names.join(" "), expected, "{selection:?}");
    };
    let none = Selection::default;
    let user = "order.placed order.refused lock.mutex_acquire lock.mutex_acquire gap.seen task.load \
                odd.format un.known lock.spin_acquire";
    check(none(), user);
    check(Selection { threads: texts(&["102"]), ..none() }, "lock.mutex_acquire");
    check(Selection { threads: texts(&["w?rk*2"]), ..none() }, "lock.mutex_acquire");
    check(Selection { threads: texts(&["w*", "50"]), ..none() }, user);
    check(Selection { pids: vec![50], ..none() }, "");
    check(Selection { cpus: vec![0], ..none() }, "lock.mutex_acquire");
    check(Selection { events: texts(&["order.*"]), ..none() }, "order.placed order.refused");
    check(Selection { events: texts(&["*.placed", "gap.*"]), ..none() }, "order.placed gap.seen");
    check(Selection { from: Some(2500), to: Some(3500), ..none() }, "lock.mutex_acquire gap.seen");
    check(
        Selection { from: Some(2500), to: Some(3501), ..none() },
        "lock.mutex_acquire gap.seen task.load",
    );
    let kernel = with_kernel;
    check(
        Selection { events: texts(&["sched.*"]), ..kernel() },
        "sched.waking sched.migrate sched.switch sched.switch sched.switch",
    );
    check(Selection { pids: vec![50], ..kernel() }, "sched.switch sched.switch");
    check(Selection { threads: texts(&["102"]), ..kernel() }, "lock.mutex_acquire");
    check(
        Selection { events: texts(&["syscall.f*", "fault.page"]), ..kernel() },
        "syscall.futex fault.page",
    );
}

#[test]
fn a_name_is_that_of_a_thread_of_one_process() {
    // Another program tells the number of a thread of the first one.
    let other = sample::thread(200, 101, "intruder");
    let event = UserEvent { pid: Pid(200), ..user(5900, 0, "order.placed") };
    let sample = Sample::with(&[other], &[event]);
    let lines = |thread: &str, kernel| {
        let threads = vec![thread.to_owned()];
        let selection = Selection { threads, kernel, ..Selection::default() };
        let text = sample.list(&selection, Form { json: true, ..Form::default() }).unwrap();
        let lines =
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.map(|line| line["pid"].as_i64().unwrap_or(0)).collect::<Vec<_>>()
    };
    assert_eq!(lines("intruder", false), [200]);
    assert!(!lines("intruder", true).contains(&100));
    assert!(lines("worker", false).len() > 5 && !lines("worker", false).contains(&200));
    // A number is whoever has it.
    let both = lines("101", false);
    assert!(both.contains(&100) && both.contains(&200), "{both:?}");
}

#[test]
fn a_selection_of_nothing_is_explained() {
    let sample = Sample::new();
    let check = |selection: Selection, expected: &str| {
        let error = sample.list(&selection, Form::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let none = Selection::default;
    check(Selection { threads: vec!["7".into()], ..none() }, "no thread of this trace matches '7'");
    check(Selection { threads: vec!["x*".into()], ..none() }, "matches 'x*'; give the id");
    check(Selection { tasks: vec!["7".into()], ..none() }, "no task of this trace matches '7'");
    check(Selection { pids: vec![100, 7], ..none() }, "process 7 is not in this trace");
    check(
        Selection { events: vec!["x.*".into()], ..none() },
        "see `ft-agent events --list-events`",
    );
    check(Selection { events: vec!["syscall.read".into()], ..none() }, "list them with --kernel");
    check(Selection { from: Some(2), to: Some(2), ..none() }, "give a later --to");
    check(Selection { from: Some(10_001), ..none() }, "after 10.0 µs; give an earlier --from");
    check(Selection { cpus: vec![1, 4], ..none() }, "no CPU 4 in this trace; give one from 0 to 3");
    check(Selection { cpus: vec![-1], ..none() }, "no CPU -1");
}

#[test]
fn a_limit_ends_the_listing() {
    let form = Form { limit: Some(2), ..Form::default() };
    let text = Sample::new().list(&Selection::default(), form).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn a_loss_shows_whatever_event_is_selected() {
    let sample = Sample::new();
    let list = |selection| sample.list(&selection, Form::default()).unwrap();
    let events = vec!["order.*".into()];
    assert!(list(Selection { events, ..Selection::default() }).contains("1,234 lost"));
    let threads = vec!["102".into()];
    assert!(!list(Selection { threads, ..Selection::default() }).contains("lost"));
}

#[test]
fn a_thread_is_active_while_the_switches_say_so() {
    let sample = Sample::new();
    let found = active_time(&sample.trace(), &Selection::default(), None).unwrap();
    let times: Vec<_> = found.threads.iter().map(|t| (t.name.as_str(), t.active_ns)).collect();
    assert_eq!(times, [("worker", 5500), ("idle", 3000), ("other", 1000)]);
    assert_eq!((found.window_ns, found.unknown_ns), (10_000, 500));
    let selection =
        Selection { threads: vec!["worker".into()], from: Some(5000), ..Selection::default() };
    let found = active_time(&sample.trace(), &selection, None).unwrap();
    assert_eq!(
        found.to_string(),
        "on the CPU within 5.00 µs on 1 CPU\n  \
         thread      process   active  of one CPU  runs  longest\n  \
         worker/101      100  1.00 µs      20.0 %     1  1.00 µs\n"
    );
}

#[test]
fn a_closed_pipe_is_told_as_such() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for json in [false, true] {
        let form = Form { json, ..Form::default() };
        let sample = Sample::new();
        let error = list(&sample.trace(), &Selection::default(), form, &mut Closed);
        let Err(ListingError::Write(error)) = error else { panic!("{error:?}") };
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
