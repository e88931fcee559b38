//! What a short line does to a table.

use super::*;

#[test]
fn no_name_is_taken_for_a_word_of_ours() {
    for (name, shown) in [
        ("unknown", "'unknown'"),
        ("(idle)", "'(idle)'"),
        ("  ", "'  '"),
        ("", ""),
        ("unknown-1", "unknown-1"),
        (" a", " a"),
    ] {
        assert_eq!(named(name), shown);
    }
}

#[test]
fn columns_are_as_wide_as_their_widest_cell() {
    let mut table = Table::new(&["<name", "µs"]);
    table.row(["a".into(), "1".into()]);
    table.row(["läng…".into(), "100".into()]);
    assert_eq!(table.to_string(), "  name    µs\n  a        1\n  läng…  100\n");
}

#[test]
fn texts_give_way_to_numbers_where_the_line_is_short() {
    let mut table = Table::new(&["<thread", "<acquired at", "wait"]);
    let place = "Interpreter::frobnicate() (libjvm.so+0xbe5a26)";
    table.row(["pool-1-thread-12".into(), place.into(), "1.23 ms".into()]);
    table.row(["main".into(), "a.rs:1".into(), "4 ns".into()]);
    let expected = [
        "  thread            acquired at             wait",
        "  pool-1-thread-12  Interp…frobnicate()  1.23 ms",
        "                    (libjv…so+0xbe5a26)",
        "  main              a.rs:1                  4 ns",
    ];
    assert_eq!(format!("{table:48}").lines().collect::<Vec<_>>(), expected);
    assert!(format!("{table:100}").contains(place), "a wide line has room for all of it");
    assert!(table.to_string().contains(place));
    // Numbers and titles are not cut, whatever the width.
    assert!(format!("{table:5}").contains("1.23 ms"));
}

#[test]
fn titles_give_way_to_texts_where_the_line_is_short() {
    let mut table = Table::new(&["<ran instead", "<", "delay of waiters", "max"]);
    table.row(["ft-preemptor", "#", "5.01 ms", "5 ms"].map(str::to_owned));
    let wide =
        "  ran instead      delay of waiters   max\n  ft-preemptor  #           5.01 ms  5 ms\n";
    assert_eq!(format!("{table:42}"), wide);
    let short = [
        "                   delay of",
        "  ran instead       waiters   max",
        "  ft-preemptor  #   5.01 ms  5 ms",
    ];
    assert_eq!(format!("{table:36}").lines().collect::<Vec<_>>(), short);
}

#[test]
fn columns_of_zeros_give_way_to_texts_where_the_line_is_short() {
    let mut table = Table::new(&["<thread", "wait", "blocked", "irqs", "<"]);
    let mut row = |cells: [&str; 5]| table.row(cells.map(str::to_owned));
    row(["pool-1-thread-12", "1 ms", "0", "0 %", "0"]);
    row(["main", "0", "0", "0 %", "0"]);
    let short = [
        "  thread            wait",
        "  pool-1-thread-12  1 ms  0",
        "  main                 0  0",
        "  0 in each row: blocked, irqs",
    ];
    assert_eq!(format!("{table:30}").lines().collect::<Vec<_>>(), short);
    assert!(format!("{table:80}").contains("blocked  irqs\n"), "a wide line has room for them");
    // One that is not 0 stays, and a table without rows has all of its titles.
    table.row(["x", "1 ms", "2", "0 %", "-"].map(str::to_owned));
    assert!(format!("{table:30}").ends_with("0 in each row: irqs\n"), "{table:30}");
    table.leaves_out();
    assert!(format!("{table:30}").ends_with("0 in each row shown: irqs\n"), "{table:30}");
    assert_eq!(format!("{:5}", Table::new(&["<thread", "wait"])), "  thread  wait\n");
}

#[test]
fn columns_that_no_line_has_room_for_follow_below_with_the_names_of_the_rows() {
    let mut table =
        Table::new(&["<lock", "pid", "hold", "<what it did", "running", "blocked", "max"]);
    table.named_by(2);
    let mut row = |cells: [&str; 7]| table.row(cells.map(str::to_owned));
    row(["book", "1", "3 ms", "slept until woken by clock", "2 ms", "1 ms", "0"]);
    row(["rwlock-of-quotes", "12", "100 ms", "ran", "99 ms", "1 ms", "0"]);
    let expected = [
        "  lock              pid    hold  what it did",
        "  book                1    3 ms  slept until",
        "                                 woken by",
        "                                 clock",
        "  rwlock-of-quotes   12  100 ms  ran",
        "",
        "  The same rows, further columns:",
        "  lock              pid  running  blocked",
        "  book                1     2 ms     1 ms",
        "  rwlock-of-quotes   12    99 ms     1 ms",
        "  0 in each row: max",
    ];
    assert_eq!(format!("{table:46}").lines().collect::<Vec<_>>(), expected);
    // Where names take more than half of a line, the first of them has to do.
    assert_eq!(format!("{table:36}").matches("  lock").count(), 3, "{table:36}");
    assert!(!format!("{table:90}").contains("further"), "a wide line has room for all");
}

#[test]
fn texts_are_cut_before_their_ends_and_cannot_command_the_terminal() {
    assert_eq!(cut("abcdefgh", 7), "ab…efgh");
    assert_eq!(cut("abcd", 4), "abcd");
    assert_eq!(cut("abcdef", 1), "…");
    assert_eq!(cut("a\x1b[2Jb", 10), "a?[2Jb");
    assert_eq!(cut("src/report/lib.rs:10", 12), "src…ib.rs:10");
    assert_eq!(cut("wait < lock < main", 12), "wait < lock…");
    assert_eq!(cut("wait < lock", 1), "…");
}

#[test]
fn a_paragraph_is_indented_and_keeps_a_unit_with_its_number() {
    struct Text;
    impl fmt::Display for Text {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            paragraph(f, "loss     ", "one two three 12.3 %, four")
        }
    }
    let expected = ["loss     one two", "         three", "         12.3 %,", "         four"];
    assert_eq!(format!("{Text:17}").lines().collect::<Vec<_>>(), expected);
    assert_eq!(Text.to_string(), "loss     one two three 12.3 %, four\n");
}
