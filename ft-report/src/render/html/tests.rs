//! What stands in a page, and that nobody else decides it.

use super::*;
use crate::document::{
    Data, Histogram, Interval, Lock, MOST_ROWS, N, Ns, Place, See, Share, Table, Thread, Typed,
    Word,
};
use crate::text;

/// Tags of a page, in their order, without those of its style and script.
fn tags(page: &str) -> Vec<&str> {
    let after = |text: &str| page.find(text).map_or(0, |at| at + text.len());
    let body = &page[after("</style>")..page.rfind("<script type=module>").expect("its script")];
    body.split('<').skip(1).map(|tag| tag.split([' ', '>']).next().unwrap()).collect()
}

fn document(section: Section) -> Document {
    Document { begin_ns: 1_000, head: Section::new("trace", ""), sections: vec![section] }
}

#[test]
fn a_name_is_never_markup() {
    let names = [
        "</script><script>alert(1)</script>",
        "\" onmouseover=\"alert(1)",
        "'><img src=http://x/>",
        "<!--",
        "&lt;",
        "\0\n\r\u{202e}\u{7f}",
    ];
    let page = |name: &str| {
        let name = &format!("{name}{name}{name}{name}{name}");
        let mut s = Section::new("locks", "");
        let rows = Table::of([()])
            .column("lock", |()| Lock::named(name))
            .column("thread", |()| Thread::named(name))
            .column("place", |()| Place(name))
            .column(name, |()| Word(name));
        s.table(rows.titled(text!("{} {}", Word(name), &**name)));
        s.item("who", text!("{} at {}", Lock::named(name), Place(name)));
        s.warn(&**name);
        let names = |a: &str, b: &str| vec![a.into(), b.into()];
        let chains = vec![(names(name, "f"), 5), (names("g", name), 3)];
        s.figure("d", Data::Flames { chains });
        let document = document(s);
        Page::of(&document).to_string()
    };
    let harmless = page("a");
    let harmless = tags(&harmless);
    for name in names {
        let page = page(name);
        // A name that is cut has a title, and no tag more.
        assert_eq!(tags(&page), harmless, "{name:?}");
        assert!(!page.contains(" onmouseover=\"") && !page.contains('\0'), "{name:?}");
    }
}

#[test]
fn a_name_in_a_figure_is_never_markup() {
    let page = |name: &str| {
        let mut s = Section::new("locks", "");
        let of = [Lock::named(name).value(), Thread::named(name).value()];
        let each = || of.iter().cloned();
        let bins = vec![(0, 1), (200, 3)];
        let histogram = |of| Histogram { of, bins: bins.clone() };
        s.figure("a", Data::Histograms { counted: "holds", each: each().map(histogram).collect() });
        let stack = |of| (of, Some(1), vec![5; 8]);
        let stacks = each().map(stack).collect();
        s.figure("b", Data::Stacks { parts: vec!["running"; 8], stacks, more: 7 });
        let (rows, columns) = (("lock", vec![of[0].clone()]), ("thread", vec![of[1].clone()]));
        s.figure("c", Data::Matrix { rows, columns, cells: vec![(0, 0, 3, 5)], counted: "waits" });
        let document = document(s);
        Page::of(&document).to_string()
    };
    let harmless = page("aaa");
    for name in ["</svg><script>alert(1)</script>", "\"><img src=x>", "]]>&lt;<!--", "\0\n\u{1b}"] {
        let page = page(name);
        assert_eq!(tags(&page), tags(&harmless), "{name:?}");
        assert!(!page.contains(['\0', '\u{1b}']), "{name:?}");
    }
}

#[test]
fn files_that_do_not_fit_are_said() {
    let mut s = Section::new("locks", "");
    let bins: Vec<(i64, u64)> = (0..35_000).map(|bin| (bin * 100, 1)).collect();
    let histogram = |name| Histogram { of: Lock::named(name).value(), bins: bins.clone() };
    let each = ["", "a", "b"].map(histogram).into();
    s.figure("", Data::Histograms { counted: "holds", each });
    let document = document(s);
    let page = Page::of(&document).to_string();
    assert_eq!(
        (page.matches("<a class=csv").count(), page.matches("its data is in").count()),
        (2, 1)
    );
    assert!(page.len() < 2_000_000, "{}", page.len());
}

#[test]
fn intervals_are_links_where_there_is_a_timeline() {
    let mut s = Section::new("locks", "");
    let interval = |lock| Interval { ts: 1_500, dur_ns: 200, tid: 7, lock };
    s.say(text!("{} and {}", interval(None), interval(Some(0xbeef))));
    let document = document(s);
    let page = Page::of(&document).to_string();
    assert!(page.contains("<p>200\u{a0}ns and 200\u{a0}ns</p>"), "{page}");
    let page = Page::of(&document).with_timeline("<section id=\"timeline\"></section>\n");
    let page = page.to_string();
    for link in
        ["\"#at=500-700&amp;tid=7\"", "\"#at=500-700&amp;tid=7&amp;lock=beef\"", "\"#timeline\""]
    {
        assert!(page.contains(&format!("href={link}>")), "{link} in {page}");
    }
}

#[test]
fn the_timeline_stands_behind_the_summary() {
    let sections = ["summary", "locks"].map(|name| Section::new(name, ""));
    let mut document = document(Section::new("summary", ""));
    document.sections = sections.into();
    let page = Page::of(&document).with_timeline("<section id=timeline>").to_string();
    let [summary, timeline, locks] =
        ["<section id=summary", "<section id=timeline", "<section id=locks"].map(|s| page.find(s));
    assert!(summary < timeline && timeline < locks && summary.is_some(), "{page}");
}

#[test]
fn cells_carry_what_they_are_sorted_by() {
    let mut s = Section::new("locks", "");
    let rows = Table::of([(1_234_567, 3, Mark::Exact)])
        .total(Some((5, 0, Mark::LowerBound)))
        .marks(|row| row.2)
        .column("total", |row| Ns(row.0))
        .column("n", |row| N(row.1))
        .column("share", |row| Share::of(row.1, 4));
    s.table(rows.titled("All"));
    let document = document(s);
    let page = Page::of(&document).to_string();
    let body = &page[page.find("<tbody>").unwrap()..page.find("<tfoot>").unwrap()];
    let cells = [
        "<td class=n data-v=1234567>1.23 ms</td>",
        "<td class=n data-v=3>3</td>",
        "<td class=n data-v=0.75 style=\"--share:75.0%\">75.0 %</td>",
    ];
    assert!(cells.iter().all(|cell| body.contains(cell)), "{body}");
    assert_eq!(body.matches("<tr>").count(), 1, "{body}");
    let total = &page[page.find("<tfoot>").unwrap()..];
    assert!(total.contains("5 ns<abbr class=mark title=\"lower bound: "), "{total}");
}

#[test]
fn what_a_reader_must_know_stands_above_all() {
    let mut document = document(Section::new("summary", ""));
    document.head.item("clock", "within 1 ns");
    document.head.warn("switches are missing");
    document.sections.push(Section::new("locks", ""));
    let page = Page::of(&document).to_string();
    let order =
        ["<h1>", "switches are missing", "id=summary", "id=trace", "within 1 ns", "id=locks"];
    let places = order.map(|text| page.find(text));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?} of {page}");
}

#[test]
fn sentences_behind_labels_are_one_list_until_something_else_comes() {
    let mut s = Section::new("summary", "");
    s.answer("locks", "locks", "one `ft-agent locks`");
    s.say("two");
    s.item("x", "three");
    s.warn("four");
    s.say("five");
    let mut document = document(s);
    document.sections.push(Section::new("locks", ""));
    let page = Page::of(&document).to_string();
    let expected = "<dl>\n<dt><a href=\"#locks\">locks</a></dt><dd><p>one <code>ft-agent locks</code></p>\n<p>two</p>\n\
        </dd>\n<dt>x</dt><dd><p>three</p>\n</dd>\n</dl>\n\
        <p class=warning role=note><strong>warning</strong> four</p>\n<p>five</p>\n</section>";
    assert!(page.contains(expected), "{page}");
}

#[test]
fn where_more_is_said_is_a_link_if_it_is_in_the_page() {
    let mut s = Section::new("summary", "");
    s.warn(text!("two; see {} and {}", See("waits", "order"), See("gaps", "")));
    let mut document = document(s);
    let page = Page::of(&document).to_string();
    let commands = "see <code>ft-agent waits</code> and <code>ft-agent gaps</code>";
    assert!(page.contains(commands), "{page}");
    let mut waits = Section::new("waits", "");
    document.sections.push(Section::new("waits", ""));
    let page = Page::of(&document).to_string();
    assert!(page.contains("see <a href=\"#waits\">waits</a> and <code>"), "{page}");
    waits.table(Table::of([1]).column("n", |n| N(*n)).anchored("order").titled("Orders"));
    document.sections[1] = waits;
    let page = Page::of(&document).to_string();
    assert!(page.contains("see <a href=\"#waits-order\">waits</a> and <code>"), "{page}");
    assert!(page.contains("<figure class=table id=\"waits-order\">"), "{page}");
    assert!(document.to_string().contains("see `ft-agent waits` and `ft-agent gaps`"));
}

#[test]
fn a_page_has_more_rows_than_text_and_says_what_it_leaves_out() {
    let rows = |n: u64| {
        let t = Table::first(3, 1..=n).total(Some(0)).counted("locks").column("n", |n| N(*n));
        let mut s = Section::new("locks", "");
        s.table(t.titled("All"));
        let document = document(s);
        let page = Page::of(&document).to_string();
        let (body, left_out) = (page.matches("<tr><td").count(), page.contains("class=omitted"));
        (document.sections[0].to_string().lines().count(), body, left_out, page)
    };
    let most = MOST_ROWS as u64;
    // A blank line, a title and headings; three rows, and one over all; what is left out.
    let (text, body, left_out, _) = rows(3);
    assert_eq!((text, body, left_out), (7, 4, false));
    let (text, body, left_out, _) = rows(most);
    assert_eq!((text, body, left_out), (8, MOST_ROWS + 1, false));
    let (_, body, left_out, page) = rows(most + 1_234);
    assert_eq!((body, left_out), (MOST_ROWS + 1, true));
    assert!(page.contains("… and 1,234 more locks, "), "{page}");
}
