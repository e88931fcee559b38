use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use ft_trace::tables::PreemptionCause;

/// What a program may call itself and its locks.
const HOSTILE: &str = "\x1b[2J\x1b]0;owned\x07\r\nq\u{9b}31m";

fn view() -> View {
    let lock = |name: &str, waited_ns| LockRow {
        lock: name.into(),
        kind: "mutex".into(),
        pid: 7,
        waits: 12,
        waited_ns,
        longest_wait_ns: waited_ns / 2,
        holds: 1234,
        held_ns: 500_000_000,
        longest_hold_ns: 3_000_000,
        behind: Some("trader-0".into()),
        behind_place: Some("src/book/demo.rs:93".into()),
    };
    View {
        age_ns: 12_300_000_000,
        window_ns: 10_000_000_000,
        covered_ns: 1_000_000_000,
        events_per_s: Some(1.2e6),
        bytes_per_s: Some(3e7),
        skipped: true,
        lost: 3,
        own_share: 0.0087,
        locks: vec![lock("book", 900_000_000), lock(HOSTILE, 800)],
        preempted: vec![Preempted {
            ts: 1,
            dur_ns: 4_000_000,
            lock: "book".into(),
            place: HOSTILE.into(),
            holder: "matcher".into(),
            cause: PreemptionCause::Woken,
            by: Some(HOSTILE.into()),
            waiters: 2,
            delayed_ns: 6_000_000,
            mark: Mark::LowerBound,
        }],
        late: vec![Late {
            ts: 1,
            dur_ns: 73_600_000,
            thread: HOSTILE.into(),
            tid: 11,
            cpu: 1,
            behind: Some("rustc".into()),
            mark: Mark::Exact,
        }],
        ..View::default()
    }
}

/// Each line of the screen.
fn drawn(width: u16, height: u16, view: &View, screen: &Screen) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, screen)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let cells = buffer.content().chunks(usize::from(width));
    cells.map(|line| line.iter().map(|cell| cell.symbol()).collect()).collect()
}

fn screen() -> Screen {
    Screen { subject: "./demo --fast".into(), has_snapshots: true, ..Screen::default() }
}

#[test]
fn everything_is_on_a_screen_of_the_usual_size() {
    let lines = drawn(80, 24, &view(), &screen());
    assert_eq!(lines[0].trim_end(), " live  ft-agent top  ./demo --fast  12.3 s");
    assert_eq!(lines[1].trim_end(), "about 1.20 M events/s  28.6 MiB/s  3 lost");
    let looked = "looked at 1.00 s of 10.0 s (10 %), using 0.9 % of a CPU";
    assert_eq!(lines[2].trim_end(), looked);
    let text = lines.join("\n");
    let book = lines.iter().find(|line| line.starts_with("book")).expect("the lock");
    for word in ["900 ms", "450 ms", "500 ms", "trader-0"] {
        assert!(book.contains(word), "{word}: {text}");
    }
    assert!(text.contains("4.00 ms*") && text.contains("73.6 ms"), "{text}");
    let held_up = lines.iter().find(|line| line.contains("4.00 ms*")).expect("a holder");
    assert!(held_up.contains("woken"), "{text}");
    assert!(lines[23].starts_with("space freeze   s snapshot   q quit"), "{text}");
}

#[test]
fn of_more_than_can_be_read_it_says_what_is_known() {
    let lines = |view: &View| {
        let lines = drawn(80, 24, view, &screen());
        [1, 2].map(|line| lines[line].trim_end().to_owned())
    };
    let flood = View {
        covered_ns: 0,
        kept_bytes: 208_000,
        bytes_per_s: Some(9.6e8),
        events_per_s: Some(3e7),
        behind_ns: 41_200_000,
        is_unread: true,
        ..view()
    };
    let rates = "about 30.0 M events/s  916 MiB/s  at least 3 lost  41.2 ms behind";
    let read = "read 203 KiB of 10.0 s, too little to say who waits: raise --share";
    assert_eq!(lines(&flood), [rates, read]);
    let spent = "read nothing of 10.0 s, 0.9 % of a CPU is used up: raise --share";
    assert_eq!(lines(&View { kept_bytes: 0, ..flood.clone() })[1], spent);
    let little = "looked at 2.10 ms of 10.0 s (<0.1 %), using 0.9 % of a CPU";
    assert_eq!(lines(&View { covered_ns: 2_100_000, ..flood })[1], little);
    let first = View { bytes_per_s: None, events_per_s: None, window_ns: 0, ..View::default() };
    assert_eq!(lines(&first), ["? events/s  ?/s  0 lost", "nothing was looked at yet"]);
}

#[test]
fn a_table_that_needs_little_leaves_its_room_to_the_others() {
    // All that there is room for, of any need.
    assert_eq!(heights(20, [100, 100, 100]), [10, 5, 5]);
    assert_eq!(heights(46, [7, 30, 30]), [10, 18, 18]);
    assert_eq!(heights(46, [30, 0, 1]), [33, 3, 4]);
    assert_eq!(heights(20, [7, 30, 0]), [10, 7, 3]);
    for (room, rows) in [(0, [1, 1, 1]), (1, [0, 0, 9]), (u16::MAX, [usize::MAX - 3, 0, 0])] {
        assert!(heights(room, rows).iter().map(|&h| u32::from(h)).sum::<u32>() <= u32::from(room));
    }
}

#[test]
fn of_a_lock_that_is_read_and_written_each_row_says_which_it_is() {
    let mut view = view();
    let row =
        |kind: &str| LockRow { kind: kind.into(), lock: "limits".into(), ..view.locks[0].clone() };
    view.locks = vec![row("rwlock-read"), row("rwlock-write")];
    let text = drawn(80, 24, &view, &screen()).join("\n");
    assert!(text.contains("limits (read)") && text.contains("limits (write)"), "{text}");
}

#[test]
fn a_wide_screen_has_more_columns_and_a_narrow_one_fewer() {
    let wide = drawn(200, 50, &view(), &screen()).join("\n");
    assert!(wide.contains("demo.rs:93") && wide.contains("longest hold"), "{wide}");
    let narrow = drawn(40, 12, &view(), &screen()).join("\n");
    assert!(narrow.contains("book") && narrow.contains("waited/s"), "{narrow}");
    assert!(!narrow.contains("held/s"), "{narrow}");
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in [(1, 1), (2, 3), (10, 5), (300, 1), (1, 100)] {
        drawn(width, height, &view(), &screen());
    }
}

#[test]
fn no_name_says_anything_to_the_terminal() {
    for (width, height) in [(80, 24), (200, 50)] {
        let screen = Screen { subject: HOSTILE.into(), message: HOSTILE.into(), ..screen() };
        for line in drawn(width, height, &view(), &screen) {
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
}

#[test]
fn without_colours_there_are_none() {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let mut colours = |is_coloured| {
        let screen = Screen { is_coloured, ..screen() };
        terminal.draw(|frame| draw(frame, &view(), &screen)).unwrap();
        let buffer = terminal.backend().buffer();
        buffer.content().iter().filter(|cell| cell.fg != Color::Reset).count()
    };
    assert_eq!(colours(false), 0);
    assert!(colours(true) > 0);
}

#[test]
fn what_is_frozen_or_over_says_so() {
    let frozen = Screen { is_frozen: true, ..screen() };
    let lines = drawn(80, 24, &view(), &frozen);
    assert!(lines[0].starts_with(" FROZEN ") && lines[23].starts_with("space go on"));
    let over = View { is_over: true, ..view() };
    let lines = drawn(80, 24, &over, &screen());
    assert!(lines[0].starts_with(" ENDED ") && !lines[23].contains("snapshot"));
}
