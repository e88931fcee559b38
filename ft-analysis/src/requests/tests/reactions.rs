//! Reactions of drawn timelines.

use std::collections::BTreeSet;

use super::*;
use crate::requests::Recorded;
use crate::requests::keyed::MAX_OPEN_REQUESTS;

fn reaction(from: &str, to: &str, key: Option<&str>) -> RequestKind {
    RequestKind::reaction(from, to, key).expect("a reaction")
}

/// What became of the causes: all, answered, coalesced, unanswered, forgotten; and answers without one.
fn counts(tally: &Tally) -> Vec<[u64; 6]> {
    let of = |r: &Reactions| {
        assert_eq!(r.causes, r.answered + r.coalesced + r.unanswered + r.too_many);
        [r.causes, r.answered, r.coalesced, r.unanswered, r.too_many, r.without_cause]
    };
    tally.requests.reactions.iter().map(of).collect()
}

/// `kind begin+length tid>tid` of each, with its mark.
fn reactions(rows: &Rows) -> Vec<String> {
    let row = |r: &Request| {
        let mark = if r.mark == Mark::Exact { String::new() } else { format!(" {}", r.mark) };
        format!("{} {}+{} {}>{}{mark}", r.kind, r.ts, r.dur, r.tid, r.end_tid)
    };
    rows.requests.iter().map(row).collect()
}

/// a sleeps for a timer on CPU 0, and gets that late, behind X; it wakes b, which answers on CPU 1.
///
/// ```text
/// CPU 0   X=========[timer]=====X|a==wake b==
/// CPU 1                                 |b====answer
/// ```
const CHAIN: &str = "0 0 a>X S
     0 1 b>. S
     40 irq X vector 6 0 local_timer
     44 wake X a 0 0
     90 0 X>a S
     95 wake a b 1 0
     97 1 .>b S
     120 answer b 7";

const TIMER: &str = ">a 40+4 timer by local_timer of a for asleep";

#[test]
fn from_a_timer_through_two_threads_to_the_answer() {
    let path = [TIMER, ">a 44+46 dispatch by X of b for asleep", ">a 90+5 running of b for asleep"];
    let path = [&path[..], &["b 95+2 dispatch by .", "b 97+23 running"]].concat();
    for (from, begun) in [("timer:?", "97"), ("irq:local_*", "0")] {
        let asked = reaction(from, "event:http.*", None);
        let (rows, tally) = path_of(std::slice::from_ref(&asked), CHAIN, &path);
        assert_eq!(reactions(&rows), [format!("{from},event:http.* 40+80 {begun}>98")]);
        assert!(rows.requests.iter().all(|r| r.parts.is_none() && r.agent_ns.is_none()));
        assert_eq!(tally.requests.unpaired, Unpaired::default());
    }
    // From its waking by the timer on, and from that of b.
    let asked =
        [reaction("wake:a", "event:http.end", None), reaction("wake:b", "event:*end", None)];
    let (rows, tally) = run_asking(&asked, CHAIN);
    let expected = ["wake:a,event:http.end 44+76 97>98", "wake:b,event:*end 95+25 98>98"];
    assert_eq!(reactions(&rows), expected);
    assert_eq!(counts(&tally), [[1, 1, 0, 0, 0, 0]; 2]);
    tiles(&rows);
}

/// As the timer, a packet that a device brings; and one that X sends to a thread of its own machine, in a system call.
#[test]
fn from_a_packet_to_the_answer() {
    let asked = [reaction("packet:a", "event:http.end", None)];
    let packet = CHAIN.replace("40 irq X vector 6 0 local_timer", "40 irq X soft 6 0 NET_RX");
    for (before, first) in [
        ("38 irq X hard 2 0 eth0\n", ">a 40+4 device by NET_RX of a for asleep"),
        ("", ">a 40+4 outside by X of a for asleep lower bound"),
    ] {
        let timeline = packet.replace("40 irq", &format!("{before}     40 irq"));
        let path = [first, ">a 44+46 dispatch by X of b for asleep"];
        let path = [
            &path[..],
            &[">a 90+5 running of b for asleep", "b 95+2 dispatch by .", "b 97+23 running"],
        ];
        let (rows, tally) = path_of(&asked, &timeline, &path.concat());
        assert_eq!(reactions(&rows), ["packet:a,event:http.end 40+80 97>98"]);
        assert_eq!(counts(&tally), [[1, 1, 0, 0, 0, 0]]);
    }
    // A clock's interrupt brings none, and a packet for nobody is none.
    let (_, tally) = run_asking(&asked, CHAIN);
    assert_eq!(counts(&tally), [[0, 0, 0, 0, 0, 1]]);
}

#[test]
fn of_several_causes_the_oldest_is_answered() {
    let asked = [reaction("irq:eth?", "event:http.end", None)];
    let (rows, tally) = run_asking(
        &asked,
        "0 0 .>a S
         5 answer a 0
         10 irq a hard 2 0 eth0
         20 irq . soft 2 1 eth1
         30 irq a hard 2 0 disk
         40 answer a 0
         50 answer a 0
         60 irq a hard 2 0 eth0",
    );
    assert_eq!(reactions(&rows), ["irq:eth?,event:http.end 10+30 0>97"]);
    assert_eq!(counts(&tally), [[3, 1, 1, 1, 0, 2]]);
    tiles(&rows);
}

#[test]
fn by_key_each_cause_has_its_own_answer() {
    let by_key = reaction("event:*.begin", "event:http.end", Some("id"));
    let timeline = "0 0 .>a S
         10 begin a 1
         20 begin b 2
         25 begin a 1
         30 answer b 1
         40 answer a 2
         50 answer a 3
         60 begin a 4";
    let (rows, tally) = run_asking(&[by_key], timeline);
    let kind = "event:*.begin,event:http.end";
    let expected = [format!("{kind} 10+20 97>98"), format!("{kind} 20+20 98>97")];
    assert_eq!(reactions(&rows), expected);
    assert_eq!(counts(&tally), [[4, 2, 1, 1, 0, 1]]);
    // By order, the first answer is to all three.
    let (rows, tally) = run_asking(&[reaction("event:*.begin", "event:http.end", None)], timeline);
    assert_eq!(reactions(&rows), [format!("{kind} 10+20 97>98")]);
    assert_eq!(counts(&tally), [[4, 1, 2, 1, 0, 2]]);
}

#[test]
fn an_event_that_is_both_is_an_answer() {
    let asked = [reaction("event:http.*", "event:http.end", None)];
    let (rows, tally) =
        run_asking(&asked, "0 0 .>a S\n 10 begin a 1\n 20 answer a 1\n 30 answer a 1");
    assert_eq!(reactions(&rows), ["event:http.*,event:http.end 10+10 97>97"]);
    assert!(rows.requests[0].parts.is_some_and(|parts| parts.total_ns() == 10));
    assert_eq!(counts(&tally), [[1, 1, 0, 0, 0, 1]]);
}

#[test]
fn a_loss_may_have_hidden_causes_and_answers_of_anybody() {
    let asked = [reaction("irq:eth0", "event:http.end", None)];
    let check = |loss: &str, mark: &str| {
        let (rows, _) = run_asking(
            &asked,
            &format!("0 0 .>a S\n 10 irq a hard 2 0 eth0\n {loss}\n 40 answer a 0"),
        );
        assert_eq!(
            reactions(&rows),
            [format!("irq:eth0,event:http.end 10+30 0>97{mark}")],
            "{loss}"
        );
    };
    check("", "");
    check("20 lose irq 5", " lower bound");
    check("20 lose sched 5", " lower bound");
    check("20 lose ring 5 c", " lower bound");
    check("5 lose ring 2 c", "");
}

#[test]
fn a_cause_that_is_not_the_oldest_because_an_older_one_was_lost_is_a_lower_bound() {
    let irq = ("irq:eth0", "10 irq a hard 2 0 eth0");
    let wake = ("wake:b", "10 wake X b 0 0");
    let event = ("event:http.begin", "10 begin b 7");
    for ((from, cause), key, before, mark) in [
        (irq, None, "5 lose irq 2", "lower bound"),
        (irq, None, "5 lose irq 2\n 8 answer a 7", "exact"),
        (irq, None, "2 answer a 7\n 5 lose irq 2", "lower bound"),
        (irq, None, "5 lose ring 2 c", "exact"),
        (wake, None, "5 lose sched 2", "lower bound"),
        (wake, None, "5 lose irq 2", "exact"),
        (event, None, "5 lose ring 2 c", "lower bound"),
        (event, None, "5 lose irq 2", "exact"),
        (event, Some("id"), "5 lose ring 2 c", "exact"),
    ] {
        let asked = [reaction(from, "event:http.end", key)];
        let timeline =
            format!("0 0 .>a S\n 0 1 .>b S\n 1 1 b>. S\n {before}\n {cause}\n 40 answer a 7");
        let (rows, _) = run_asking(&asked, &timeline);
        let found = rows.requests.iter().map(|r| (r.ts.0, r.dur, r.mark.to_string()));
        assert_eq!(found.collect::<Vec<_>>(), [(10, 30, mark.to_owned())], "{timeline}");
    }
}

#[test]
fn without_a_kernel_an_event_still_has_its_answer() {
    let context = crate::Context::new(false, 10, &crate::timeline::threads(), &[], &[]);
    let sites = crate::timeline::sites();
    let asked = vec![reaction("event:http.begin", "event:http.end", None)];
    let mut run = crate::Run::new(context.with_requests(asked, &sites));
    crate::timeline::events("10 begin a 1\n 15 answer b 1").for_each(|event| run.push(&event));
    let (rows, _) = run.finish();
    assert_eq!((rows.requests[0].dur, rows.requests[0].path_pieces), (5, None));
}

#[test]
fn keys_are_bounded_and_counted() {
    let n = MAX_OPEN_REQUESTS as i64 + 5;
    let text: String = (0..n).map(|i| format!("{} begin a {i}\n", 10 + i)).collect();
    let asked = [reaction("event:http.begin", "event:http.end", Some("id"))];
    let (_, tally) = run_asking(&asked, &format!("0 0 .>a S\n{text}{} answer a 0", 10 + n));
    assert_eq!(counts(&tally), [[n as u64, 0, 0, MAX_OPEN_REQUESTS as u64, 5, 1]]);
    assert_eq!(tally.requests.unpaired, Unpaired::default());
}

#[test]
fn nonsense_tiles_and_balances() {
    let asked = ["irq:*-name", "timer:*", "packet:*", "wake:a", "event:http.begin"];
    let asked = asked.map(|from| reaction(from, "event:http.end", None));
    let mut caused = [0; 5];
    for seed in 1..=80 {
        let mut mixed = String::new();
        for (i, line) in crate::timeline::nonsense(seed).lines().enumerate() {
            let t = line.split_once(' ').expect("a time").0;
            let thread = ["a", "b", "c"][i % 3];
            mixed += &format!("{line}\n");
            match i % 9 {
                0 => mixed += &format!("{t} irq {thread} vector 60 {} local_timer\n", i / 9 % 2),
                1 => mixed += &format!("{t} wake . {thread} 0 {}\n", i / 9 % 2),
                2 => mixed += &format!("{t} irq {thread} soft 60 {} NET_RX\n", i / 9 % 2),
                3 => mixed += &format!("{t} wake . {thread} 0 {}\n", i / 9 % 2),
                4 => mixed += &format!("{t} begin {thread} 1\n"),
                7 => mixed += &format!("{t} answer {thread} 1\n"),
                _ => {}
            }
        }
        let (rows, tally) = run_asking(&asked, &mixed);
        tiles(&rows);
        let answered: u64 = counts(&tally).iter().map(|counts| counts[1]).sum();
        assert_eq!(answered, rows.requests.len() as u64);
        caused.iter_mut().zip(counts(&tally)).for_each(|(sum, counts)| *sum += counts[0]);
    }
    assert!(caused.iter().all(|&causes| causes > 100), "{caused:?}");
}

#[test]
fn what_is_no_reaction_says_why() {
    let sites = crate::timeline::sites();
    let names = |names: &[&str]| -> Option<BTreeSet<Name>> {
        Some(names.iter().map(|name| Name::from(*name)).collect())
    };
    let whole = Recorded { interrupts: names(&["eth0", "NET_RX"]), threads: names(&["ft-a"]) };
    let nothing = Recorded::default();
    let many: Vec<String> = (0..20).map(|i| format!("t{i:02}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let crowd = Recorded { threads: names(&many), ..whole.clone() };
    let check = |from: &str, to: &str, key: Option<&str>, recorded: &Recorded, expected: &str| {
        let found = RequestKind::reaction(from, to, key)
            .and_then(|kind| kind.check(&sites, recorded))
            .map_or_else(|why| why.to_string(), |()| String::new());
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{found}");
    };
    let end = "event:http.end";
    check("irq:eth*", end, None, &whole, "");
    check("timer:ft-?", end, None, &whole, "");
    check("wake:*", "event:*", None, &whole, "");
    check("event:http.*", end, Some("id"), &nothing, "");
    check("eth0", end, None, &whole, "`eth0` is no cause: give `irq:NAME`");
    check("packet:ft-?", end, None, &whole, "");
    check("frame:eth0", end, None, &whole, "`frame:eth0` is no cause");
    check("irq:", end, None, &whole, "`irq:` is no cause");
    check("irq:eth0", "http.end", None, &whole, "`http.end` is no answer: give");
    check("irq:eth0", "irq:eth0", None, &whole, "`irq:eth0` is no answer");
    check("irq:eth0", end, Some("id"), &whole, "`irq:eth0` has no arguments, and no key");
    check(
        "irq:disk",
        end,
        None,
        &whole,
        "no interrupt of the trace matches `disk`: name one that it has, as NET_RX, eth0",
    );
    check("wake:x", end, None, &whole, "no thread of the trace matches `x`");
    check("wake:x", end, None, &crowd, "t07 and 12 more");
    check("event:x", end, None, &whole, "no event of the trace matches `x`");
    check("event:http.end", end, None, &whole, "`http.end` is an answer by --to");
    check("event:http.*", "event:*", None, &whole, "`http.*` is an answer by --to");
    check("irq:eth0", "event:x", None, &whole, "no event of the trace matches `x`");
    check(
        "irq:eth0",
        end,
        None,
        &nothing,
        "cannot tell `irq:eth0`: record with the kernel group `irq`",
    );
    check("timer:a", end, None, &nothing, "kernel group `irq`");
    check("wake:a", end, None, &nothing, "kernel group `sched`");
    check("event:http.*", end, Some("x"), &whole, "`x` is not among the first three");
}
