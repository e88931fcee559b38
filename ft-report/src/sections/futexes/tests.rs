use super::*;
use ft_analysis::timeline::run;

fn report(kernel: bool, timeline: &str) -> FutexesReport {
    let (rows, tally) = run(kernel, timeline);
    let mut futexes = Futexes::default();
    rows.futex_waits.iter().for_each(|r| futexes.add(r, &Code::default()));
    futexes.finish(true, tally.kernel)
}

const TIMELINE: &str = "
        0 0 .>a S
        0 7 .>b S
        1000 futex a wait L 9000 done
        1500 0 a>X S
        4000 futex b wake L 1000 done
        4200 wake b a 0
        7000 0 X>a R
        12000 futex a wait L 2000 timed-out
        15000 futex a wait M 500 changed
        16000 0 a>. S";

#[test]
fn waits_are_summed_by_futex_with_their_ends_and_their_waker() {
    let report = report(true, TIMELINE);
    let found: Vec<_> = report
        .futexes
        .iter()
        .map(|f| (&*f.name, f.waits.waits, f.waits.total_ns, f.waker.as_deref(), f.by_waker))
        .collect();
    assert_eq!(found, [("0x4c", 2, 11_000, Some("b"), 1), ("0x4d", 1, 500, None, 0)]);
    for f in &report.futexes {
        assert_eq!(f.waits.parts.total_ns(), f.waits.total_ns);
    }
    let all = &report.all;
    assert_eq!((all.woken, all.timed_out, all.changed, all.again), (1, 1, 1, 1));
    let text = format!("{:160}", report.section());
    for line in [
        "3 waits, all exact",
        "1 woken, 1 timed out",
        "0x4c",
        "The longest waits",
        "no system call",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn without_scheduler_records_there_are_lengths_and_without_the_group_a_remedy() {
    let alone = format!("{:160}", report(false, TIMELINE).section());
    assert!(alone.contains("record `sched`") && !alone.contains("asleep"), "{alone}");
    let none = format!("{:160}", Futexes::default().finish(false, true).section());
    assert!(none.contains("-k default,futex"), "{none}");
    let empty = format!("{:160}", report(true, "0 0 .>a S").section());
    assert!(empty.contains("No thread waited"), "{empty}");
}

#[test]
fn waits_of_the_agent_are_the_recordings_own() {
    let (rows, tally) = run(true, TIMELINE);
    let report = |agent| {
        let mut futexes = Futexes { own: own::Rows::of(agent), ..Futexes::default() };
        rows.futex_waits.iter().for_each(|r| futexes.add(r, &Code::default()));
        futexes.finish(true, tally.kernel)
    };
    let agents = report(Some(rows.futex_waits[0].pid));
    assert_eq!(agents.of_recording, Some(OwnRows { count: 3, total_ns: 11_500 }));
    let text = format!("{:160}", agents.section());
    assert!(text.contains("own among them, of threads of ft-agent: 3 waits (11.5 µs)"), "{text}");
    assert_eq!(report(Some(Pid(-5))).of_recording, Some(OwnRows::default()));
    assert_eq!(report(None).of_recording, None);
}
