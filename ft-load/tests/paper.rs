//! The command lines that the paper on Hourglass prints run as printed, but for a shorter time.

mod common;

use std::path::Path;

use common::{alone, command, real_time_or_skip, refusal};

/// In the paper's order, sections 5.1 to 5.6, without the name of the program.
const PRINTED: &str = include_str!("paper/printed.txt");

#[test]
fn every_line_that_the_paper_prints_runs() {
    let _alone = alone();
    if !real_time_or_skip() {
        return;
    }
    for printed in PRINTED.lines() {
        // What is said later holds.
        let output = command(&format!("hourglass {printed} -d 100ms --summary"));
        if printed.ends_with("RTC") && !Path::new("/dev/rtc0").exists() {
            let sentence = refusal(&output, 1);
            assert!(sentence.starts_with("this machine has no timer RTC"), "{printed}: {sentence}");
            continue;
        }
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{printed}: {output:?}");
        let jobs = told.matches(" deadlines, hit ").count();
        let expected = printed.matches("PERIODIC").count();
        assert_eq!(jobs, expected, "{printed}: {told}");
    }
}
