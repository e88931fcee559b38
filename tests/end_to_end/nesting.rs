//! Nesting depths whose counts are known.

use ft_trace::tables::CriticalSection;

use crate::harness::{self, Stage};

#[test]
fn nesting_to_depth_four_gives_exactly_the_known_counts() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let (truth, dir) = stage.record(&[], &["nesting", "500"]);
    let trace = harness::open(&dir);
    let mut depths = [0u64; 4];
    for hold in trace.rows::<CriticalSection>() {
        let hold = hold.expect("a row");
        depths[usize::try_from(hold.depth).expect("depth")] += 1;
        assert!(hold.place.contains("nesting.rs:"), "place of the acquisition: {:?}", hold.place);
    }
    let known: Vec<u64> = truth["depths"]
        .as_array()
        .expect("depths")
        .iter()
        .map(|n| n.as_u64().expect("n"))
        .collect();
    assert_eq!(depths.as_slice(), known);

    let study = harness::agent().args(["study", "--json"]).arg(&dir).output().expect("starts");
    harness::assert_success(&study);
    let study: serde_json::Value = serde_json::from_slice(&study.stdout).expect("JSON");
    let study = &study["sections"]["study"]["values"];
    assert_eq!(study["depths"], truth["depths"]);
    assert_eq!(study["critical_sections"], known.iter().sum::<u64>());
}
