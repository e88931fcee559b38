use super::*;

#[test]
fn a_warning_survives_meta_json_and_ends_in_its_remedy() {
    let warning = Warning::Loss { origin: "ring".into(), count: 3, ring_bytes: None };
    let json = serde_json::to_string(&warning).unwrap();
    assert_eq!(json, r#"{"warning":"loss","origin":"ring","count":3}"#);
    assert_eq!(serde_json::from_str::<Warning>(&json).unwrap(), warning);
    assert!(warning.to_string().ends_with("larger rings with --ring-size"));
}

/// Who filled a disk has not ended the recording in any way.
#[test]
fn a_recording_without_an_end_may_have_had_no_room() {
    let said = Warning::NotEnded.to_string();
    assert!(said.contains("was interrupted") && said.contains("a full disk"), "{said}");
    assert!(said.ends_with("Ctrl-C or --duration, and leave it room"), "{said}");
}

#[test]
fn a_loss_names_the_ring_that_would_have_been_enough() {
    let said = |bytes| {
        let loss = Warning::Loss { origin: "ring".into(), count: 3, ring_bytes: Some(bytes) };
        loss.to_string()
    };
    assert!(said(16 << 20).contains("--ring-size 16M"));
    assert!(said(512 << 10).contains("rings of 512 KiB would"));
    assert!(said(512 << 10).contains("--ring-size 512K, set FT_RING_SLOTS=16384 "));
    assert!(said(16 << 20).contains("FT_RING_SLOTS=524288"));
    assert!(said(LARGEST_RING).contains("--ring-size 128M"));
    assert!(said(u64::MAX).contains("no ring is large enough"));
}

/// Whose writes are left loses no event by the size of its rings.
#[test]
fn events_that_were_never_finished_have_advice_of_their_own() {
    let said = Warning::Unfinished { origin: "ring".into(), count: 1_497 }.to_string();
    assert!(said.starts_with("1,497 events were begun and never finished (ring): "), "{said}");
    assert!(said.contains("siglongjmp") && !said.contains("--ring-size"), "{said}");
}

#[test]
fn counts_and_durations_are_those_of_reports() {
    let loss = Warning::Loss { origin: "ring".into(), count: 139_439, ring_bytes: None };
    assert!(loss.to_string().starts_with("139,439 events were lost (ring): "), "{loss}");
    let (count, checked, worst_ns, bound_ns) = (1_234, 2_611_159, 45_600, 149);
    let early = Warning::ClockViolations { count, checked, worst_ns, bound_ns }.to_string();
    assert!(early.starts_with("1,234 of 2,611,159 events lie up to 45.6 µs "), "{early}");
    assert!(early.contains("beyond the clock bound of 149 ns"), "{early}");
    let set = Warning::ClockSet { step_ns: -1_234_567 }.to_string();
    assert!(set.contains("was set by -1.23 ms during"), "{set}");
}

#[test]
fn programs_without_the_library_are_counted_in_words() {
    let said = |runs, of, reason: Option<&str>| {
        let reason = reason.map(str::to_owned);
        let programs = vec![UntracedProgram { name: "sudo".into(), runs, reason }];
        Warning::Untraced { runs, of, programs }.to_string()
    };
    let one = said(1, 1, Some("it is set-uid"));
    let whole = "--preload did not trace the only program that ran, whose locks are not in the trace: sudo (it is set-uid)";
    assert_eq!(one, whole);
    assert!(said(3, 3, None).contains("any of the 3 runs of programs"), "{}", said(3, 3, None));
    let some = said(2, 1_005, None);
    assert!(some.contains("trace 2 of 1,005 runs") && some.contains("sudo, 2 times ("), "{some}");
    assert!(some.contains("(perhaps it is statically linked, "), "{some}");
    // Of which nothing was seen, each reason is possible, and has its remedy.
    for (reason, remedy) in [
        ("statically linked", "link it dynamically"),
        ("(set-user-ID)", "run it as a user with these rights"),
        ("environment cleared", "let it keep LD_PRELOAD"),
        ("file size left", "raise its limits (`ulimit -a`)"),
    ] {
        assert!(some.contains(reason) && some.contains(remedy), "{some}");
    }
    assert!(some.ends_with("(`ulimit -a`))"), "{some}");
    let program = |name: &str, runs, reason: Option<&str>| UntracedProgram {
        name: name.into(),
        runs,
        reason: reason.map(str::to_owned),
    };
    let programs =
        vec![program("a", 1, None), program("b", 1, Some("it is static")), program("c", 2, None)];
    let said = Warning::Untraced { runs: 4, of: 4, programs }.to_string();
    assert!(said.contains(": a; c, 2 times (each: perhaps it is"), "{said}");
    assert!(said.ends_with("(`ulimit -a`)); b (it is static)"), "{said}");
}

/// More room does not help a program that the kernel did not run.
#[test]
fn a_program_that_was_not_run_has_advice_of_its_own() {
    let text = |origin: &str| {
        Warning::Loss { origin: origin.into(), count: 3, ring_bytes: None }.to_string()
    };
    assert!(text("kernel").ends_with("larger buffer with --kernel-buffer"));
    let skipped = text("kernel-skipped");
    assert!(skipped.contains("larger buffer does not"), "{skipped}");
    assert!(skipped.ends_with("record fewer kernel groups"), "{skipped}");
}

#[test]
fn what_the_machine_lacks_is_told_by_group() {
    let lacks = |group: &str, tracepoint: &str| MissingTracepoint {
        group: group.into(),
        tracepoint: tracepoint.into(),
    };
    let start = Start {
        kernel: "5.10.0".into(),
        clock_source: "hpet".into(),
        tsc_lacks: vec!["constant_tsc".into(), "nonstop_tsc".into()],
        missing: vec![
            lacks("lock", "contention_begin"),
            lacks("irq", "irq_work_exit"),
            lacks("lock", "contention_end"),
            lacks("section", "_raw_spin_unlock"),
        ],
        unreachable: Some("another agent listens".into()),
        ..Start::default()
    };
    let found: Vec<String> = Warning::of_start(&start).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 6);
    assert!(found[5].starts_with("another agent listens: events of what"), "{}", found[5]);
    assert!(found[0].contains("no tracepoint irq_work_exit"), "{}", found[0]);
    assert!(found[1].contains("(5.10.0) has no tracepoint contention_begin, contention_end: "));
    assert!(found[1].ends_with("use Linux 5.19 or later, or leave lock out of -k"));
    assert!(found[2].contains("has no traceable function _raw_spin_unlock"), "{}", found[2]);
    assert!(found[3].contains("clock source of this kernel is hpet"), "{}", found[3]);
    assert!(found[4].contains("not announce constant_tsc and nonstop_tsc, "), "{}", found[4]);
    assert_eq!(Warning::of_start(&Start::default()), []);
    let tsc = Start { clock_source: "tsc".into(), ..Start::default() };
    assert_eq!(Warning::of_start(&tsc), []);
}
