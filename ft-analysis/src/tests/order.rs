//! Edges of the lock order.

use super::run;
use ft_trace::tables::LockOrder;

fn edge(r: &LockOrder) -> String {
    let tid = r.tid.map_or("*".into(), |tid| (tid as u8 as char).to_string());
    let lock = |lock: i64| lock as u8 as char;
    let gates = r.gates.split_whitespace();
    let gates: String =
        gates.map(|g| u8::from_str_radix(&g[2..], 16).expect("an address") as char).collect();
    let gates = if gates.is_empty() { gates } else { format!(" in {gates}") };
    format!(
        "{} {}({})->{}({}) ×{}{gates}",
        tid,
        lock(r.held_lock),
        r.held_place,
        lock(r.lock),
        r.place,
        r.count
    )
}

fn check(timeline: &str, expected: &[&str]) {
    let (rows, tally) = run(true, timeline);
    assert_eq!(rows.lock_order.iter().map(edge).collect::<Vec<_>>(), expected, "{timeline}");
    assert_eq!(tally.order_not_kept, 0);
}

#[test]
fn an_acquisition_gives_an_edge_from_all_that_is_held() {
    check(
        "10 acquire a K 1
         11 acquire a L 2
         12 acquire a M 3
         13 release a M
         14 release a L
         15 acquire a M 4
         16 release a K
         17 acquire b K 1
         18 acquire b L 2",
        &[
            "* K(x.rs:1)->L(x.rs:2) ×2",
            "a K(x.rs:1)->M(x.rs:3) ×1",
            "a L(x.rs:2)->M(x.rs:3) ×1 in K",
            "a K(x.rs:1)->M(x.rs:4) ×1",
        ],
    );
}

#[test]
fn a_gate_was_held_before_both_and_every_time() {
    let twice = |gate: &str| {
        format!(
            "10 acquire a G
             11 {gate} a K
             12 acquire a L 1
             13 acquire a M 2
             14 release a M
             15 release a L
             16 release a K
             17 acquire a L 1
             18 acquire a M 2"
        )
    };
    // G both times, K only the first time.
    let (rows, _) = run(true, &twice("acquire"));
    let found: Vec<_> = rows.lock_order.iter().map(edge).collect();
    assert!(found.contains(&"a L(x.rs:1)->M(x.rs:2) ×2 in G".to_owned()), "{found:?}");
    // Two readers pass a shared gate at once.
    check(
        "10 read a G
         12 acquire a L
         13 acquire a M",
        &["a G()->L() ×1", "a G()->M() ×1", "a L()->M() ×1"],
    );
}

#[test]
fn a_lock_that_is_acquired_again_is_no_edge_to_itself() {
    check("10 read a L\n 11 read a L\n 12 release a L\n 13 release a L", &[]);
}
