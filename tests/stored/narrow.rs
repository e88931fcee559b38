//! What terminals make of the reports: lines end where they do, and nothing that is said is lost for want of room.

use std::collections::BTreeMap;

use crate::stage::{self, Stage};

/// Columns of terminals: the narrowest that reports are made for, that of a pipe, and wide ones.
const TERMINALS: [usize; 4] = [80, 100, 120, 200];

/// Columns in which everything fits.
const ENOUGH: &str = "1000";

/// All reports, those that are not printed unless they are asked for among them.
fn reports(stage: &Stage, columns: &str) -> String {
    let all = [
        "findings",
        "summary",
        "locks",
        "waits",
        "futexes",
        "kernel-locks",
        "preempted",
        "what-if",
        "dispatch",
        "gaps",
        "agreement",
        "time",
        "breakdown",
        "scopes",
        "requests",
        "study",
    ];
    stage.agent_in(columns, &[&["report", "trace"][..], &all[..]].concat())
}

/// How often each word is there: all that have letters, and are not longer than what every column has room for. Units
/// are none, since columns that are 0 in each row are named only once.
fn words(text: &str) -> BTreeMap<&str, usize> {
    let mut words = BTreeMap::new();
    for word in
        text.split_whitespace().map(|word| word.trim_matches([',', '.', ':', ';', '(', ')']))
    {
        let letters = word.chars().filter(|c| c.is_alphabetic()).count();
        if letters > 2 && word.chars().count() <= 16 {
            *words.entry(word).or_insert(0) += 1;
        }
    }
    words
}

#[test]
fn a_terminal_of_80_columns_has_every_word_of_a_wide_one() {
    for recording in stage::recordings() {
        let stage = Stage::unpack(&recording);
        stage.agent(&["convert", "trace"]);
        stage.agent(&["analyze", "trace"]);
        let whole = reports(&stage, ENOUGH);
        assert!(!whole.contains("The same rows"), "{recording}: there is room for all columns");
        for columns in TERMINALS {
            let text = reports(&stage, &columns.to_string());
            for line in text.lines() {
                assert!(line.chars().count() <= columns, "{recording}, {columns} columns: {line}");
            }
            if columns == 80 {
                let found = words(&text);
                for (word, times) in words(&whole) {
                    let here = found.get(word).copied().unwrap_or(0);
                    assert!(here >= times, "{recording}: '{word}' {here} times of {times}");
                }
                // A cell that is cut keeps both ends, or the beginning of a call chain.
                for cell in
                    text.lines().flat_map(|line| line.split("  ")).filter(|c| c.contains('…'))
                {
                    let is_cut = !cell.trim_start().starts_with("… and");
                    assert!(!is_cut || cell.chars().count() >= 16, "{recording}: {cell}");
                }
            }
        }
    }
}
