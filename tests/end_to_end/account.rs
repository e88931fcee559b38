//! *Written = stored + lost*, of real processes: rings of several sizes that are full, threads that end, rings that are used
//! again, and forks while others write. The property itself is tested in `collect/user/account.rs`.

use std::collections::BTreeMap;

use ft_trace::tables::{LossRow, UserEvent};

use crate::harness::{self, Stage, open};

/// The smallest rings that there are, and larger ones.
const SIZES: [&str; 3] = ["128K", "1M", "8M"];

#[test]
fn what_processes_that_fork_have_written_is_stored_or_lost() {
    let stage = Stage::enter();
    harness::gate::ran();
    for size in SIZES {
        let (truth, dir) = stage.record(&["-k", "none", "--ring-size", size], &["forks"]);
        let pairs = truth["written"].as_array().expect("pairs");
        let number = |pair: &serde_json::Value, i: usize| pair[i].as_i64().expect("a number");
        let written: BTreeMap<i32, i64> =
            pairs.iter().map(|pair| (number(pair, 0) as i32, number(pair, 1))).collect();
        assert_eq!(written.len(), 15, "{truth}");
        let trace = open(&dir);
        let mut found = BTreeMap::<i32, [i64; 2]>::new();
        for event in trace.rows::<UserEvent>().map(|event| event.expect("a row")) {
            if &*event.event == "forks.step" {
                found.entry(event.pid.0).or_default()[0] += 1;
            }
        }
        let losses: Vec<LossRow> = trace.rows().map(|loss| loss.expect("a row")).collect();
        for loss in &losses {
            found.entry(loss.pid.0).or_default()[1] += loss.count;
        }
        let lost: i64 = found.values().map(|[_, lost]| lost).sum();
        let all: i64 = written.values().sum();
        harness::gate::measured(&format!("{lost} of {all} events lost, rings of {size}"));
        let sums = found.iter().map(|(&pid, [stored, lost])| (pid, stored + lost)).collect();
        assert_eq!(written, sums, "rings of {size}: {found:?}\n{losses:#?}");
        // What nobody read at the begin has no room in the others.
        assert!(lost > 0 || size == "8M", "rings of {size} were never full");
        std::fs::remove_dir_all(&dir).expect("a folder");
    }
}
