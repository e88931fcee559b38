//! Which requests there are.

use super::*;

#[test]
fn requests_are_the_outermost_scopes_and_those_that_are_named() {
    let timeline = "0 0 .>a S
         10 open a
         20 enter a
         30 leave a
         40 close a
         50 enter a
         60 leave a";
    let kinds = |asked: &[RequestKind]| -> Vec<String> {
        let (rows, tally) = run_asking(asked, timeline);
        assert_eq!(tally.requests.requests, rows.requests.len() as u64);
        assert_eq!(tally.requests.asked, asked);
        rows.requests.iter().map(|r| format!("{} {}+{}", r.kind, r.ts, r.dur)).collect()
    };
    assert_eq!(kinds(&[]), ["work.outer 10+30", "work.inner 50+10"]);
    let named = RequestKind::parse("work.inner", None).expect("a scope");
    assert_eq!(kinds(&[named]), ["work.inner 20+10", "work.outer 10+30", "work.inner 50+10"]);
}

#[test]
fn a_request_that_moves_is_followed_by_its_key() {
    let by_key = RequestKind::parse("http.begin, http.end", Some("id")).expect("two events");
    let (rows, tally) = path_of(
        std::slice::from_ref(&by_key),
        "0 0 .>a S
         0 1 .>b S
         1 irq b soft 1 1
         5 1 b>. S
         10 begin a 7
         12 begin a 8
         20 wake a b 1 0
         21 1 .>b S
         30 answer b 8
         32 answer b 7
         33 answer b 7",
        &[
            ">a 12+8 running of b for asleep",
            "b 20+1 dispatch by .",
            "b 21+9 running",
            ">a 10+10 running of b for asleep",
            "b 20+1 dispatch by .",
            "b 21+11 running",
        ],
    );
    let found: Vec<_> = rows.requests.iter().map(|r| (r.key, r.tid.0, r.end_tid.0)).collect();
    assert_eq!(found, [(Some(8), 97, 98), (Some(7), 97, 98)]);
    assert!(rows.requests.iter().all(|r| r.parts.is_none() && r.agent_ns.is_none()));
    assert_eq!(tally.requests.unpaired, Unpaired { end_only: 1, ..Unpaired::default() });
    // Without the key, the events of one thread belong together.
    let alone = RequestKind::parse("http.begin,http.end", None).expect("two events");
    let (rows, tally) = run_asking(
        &[alone],
        "0 0 .>a S\n 10 begin a 1\n 20 begin a 2\n 30 answer a 9\n 40 answer b 9\n 50 answer a 9",
    );
    let found: Vec<_> = rows.requests.iter().map(|r| (r.ts.0, r.dur, r.key)).collect();
    assert_eq!(found, [(20, 10, None), (10, 40, None)]);
    assert!(rows.requests.iter().all(|r| r.parts.is_some_and(|p| p.total_ns() == r.dur)));
    assert_eq!(tally.requests.unpaired.end_only, 1);
}

#[test]
fn what_has_no_end_is_counted() {
    let by_key = RequestKind::parse("http.begin,http.end", Some("id")).expect("two events");
    let (rows, tally) = run_asking(
        &[by_key],
        "0 0 .>a S\n 10 open a\n 20 enter a\n 30 lose ring 5 a\n 40 begin a 3\n 50 open a\n 60 exit a",
    );
    assert!(rows.requests.is_empty());
    let expected = Unpaired { begin_only: 2, open_at_loss: 1, ..Unpaired::default() };
    assert_eq!(tally.requests.unpaired, expected);
}

#[test]
fn without_a_kernel_there_are_lengths_alone() {
    let open = "10 open a\n";
    assert!(!crate::timeline::feed(false, open).analysis_mut().follows());
    assert!(crate::timeline::feed(true, open).analysis_mut().follows());
    let (rows, tally) = run(false, &format!("{open} 20 close a"));
    let request = &rows.requests[0];
    assert_eq!((request.dur, request.parts, request.path_pieces), (10, None, None));
    assert_eq!((rows.critical_path.len(), tally.requests.without_path), (0, 0));
}

#[test]
fn what_is_no_request_says_why() {
    let sites = crate::timeline::sites();
    let check = |text: &str, key: Option<&str>, expected: &str| {
        let found =
            RequestKind::parse(text, key).and_then(|kind| kind.check(&sites, &Recorded::default()));
        let found = found.map_or_else(|why| why.to_string(), |()| String::new());
        assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{found}");
    };
    check("http.begin,http.end", Some("id"), "");
    check("work.inner", None, "");
    check("", None, "`` names no request: give");
    check("a,b,c", None, "`a,b,c` names no request");
    check(
        "work.inner",
        Some("id"),
        "scope `work.inner` ends on the thread that began it: leave out",
    );
    check("http.begin", None, "the trace has no `http.begin`: `ft-agent events");
    check("http.begin,x", None, "the trace has no `x`");
    check(
        "http.begin,http.end",
        Some("x"),
        "`x` is not among the first three arguments of `http.begin`",
    );
}
