//! What of a figure is the recording itself.

use super::*;
use ft_analysis::timeline::run_by_agent;

/// A holder and a waiter behind it lose `agent` of 10,000 ns to the agent, and the rest to others.
fn disturbed(agent: i64) -> Document {
    let (back, end) = (1_000 + agent, 9_000);
    let (rows, tally) = run_by_agent(&format!(
        "0 0 .>a S
         0 1 .>b S
         500 acquire a L
         1000 0 a>X R+
         1000 wait b L
         {back} 0 X>q S
         {end} 0 q>a S
         10500 release a L
         10500 acquire b L
         11000 release b L"
    ));
    document_of(Head::default(), rows, &tally)
}

#[test]
fn a_figure_says_what_of_it_is_the_recording_itself() {
    // 90 of 9500 ns of the wait, and of 10,000 of the hold, are less than a hundredth; of the 8000 preempted, more.
    let little = disturbed(90).sections;
    let says = |sections: &[Section], name: &str| {
        let section = sections.iter().find(|section| section.name == name).expect("a section");
        section.to_string().to_lowercase().contains("recording")
    };
    assert!(!says(&little, "locks") && !says(&little, "waits"));
    assert!(says(&little, "preempted") && says(&little, "time"));
    let text = text(&disturbed(2_000));
    for share in [
        // Of the hold, of the wait, of the time without a CPU.
        "20.0 %", "21.1 %", "25.0 %",
    ] {
        assert!(text.contains(share), "{share}\n{text}");
    }
    assert!(text.contains("8.00 µs in all, 25.0 % of it the recording itself"), "{text}");
}

#[test]
fn nothing_is_said_of_a_trace_that_does_not_know_who_recorded_it() {
    let text = text(&document(true, TIMELINE));
    assert!(!text.to_lowercase().contains("recording"), "{text}");
}
