//! What a program executes in the vDSO, which is no file.

use serde_json::Value;

use crate::stage::Stage;

#[test]
fn who_asks_for_the_time_is_in_a_function_of_the_vdso() {
    let Some(stage) = Stage::enter() else { return };
    let truth = stage.record("clock", &["-k", "default,profile"]);
    assert!(truth["asked"].as_u64().is_some_and(|asked| asked > 0), "{truth}");
    let values = stage.report("profile");
    let functions = values["functions"].as_array().expect("rows");
    let rows: Vec<_> = functions.iter().filter(|row| row["object"] == "[vdso]").collect();
    let is_named =
        |row: &&Value| row["name"].as_str().is_some_and(|name| name.contains("clock_gettime"));
    assert!(rows.iter().all(is_named), "{rows:?}");
    // With what the kernel does for it, where the vDSO cannot read the clock itself.
    let there: u64 = rows.iter().filter_map(|row| row["with_callees"].as_u64()).sum();
    let all = values["samples"].as_u64().expect("a number");
    assert!(all > 0 && there * 4 > all, "{there} of {all} samples: {values}");
}
