//! The command lines that the paper on Hourglass prints run as printed, but for a shorter time.

mod common;

use std::path::Path;

use common::{alone, command, real_time_or_skip, refusal};

/// In the paper's order, sections 5.1 to 5.6, without the name of the program.
const PRINTED: [&str; 10] = [
    "-n 3 -d 5s -t 0 -p LOW -t 1 -p NORMAL -t 2 -p HIGH",
    "-d 60s -n 10 -a -p NORMAL -w CPU",
    "-d 60s -n 10 -a -p NORMAL -w CPU_YIELD 0.9ms",
    "-d 6m -n 1 -t 0 -p RTHIGH -w LAT 5.3ms -i RTC",
    "-d 20s -n 1 -t 0 -p RTHIGH -w PERIODIC 4ms 5ms -i RTC",
    "-n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w PERIODIC 17ms 33ms -i NATIVE",
    "-n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w PERIODIC 17ms 33ms -i HR",
    "-n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w PERIODIC 12ms 33ms -i NATIVE",
    "-n 2 -t 0 -w PERIODIC 3ms 8ms -rh 3ms 8ms -t 1 -w PERIODIC 17ms 33ms -rh 17ms 33ms",
    "-n 2 -t 0 -w PERIODIC 3ms 8ms -rh 3.1ms 8ms -t 1 -w PERIODIC 17ms 33ms -rh 17.1ms 33ms",
];

#[test]
fn every_line_that_the_paper_prints_runs() {
    let _alone = alone();
    if !real_time_or_skip() {
        return;
    }
    for printed in PRINTED {
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
