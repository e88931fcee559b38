//! A stored trace in, stored results out.

use std::cell::OnceCell;
use std::path::PathBuf;

use super::*;
use crate::sections::{Asked, Input, gaps::GapsReport, locks::LocksReport};
use ft_analysis::timeline::{events, run, sites, threads};
use ft_trace::event::LeanUserEvent;
use ft_trace::store::{META_FILE, Meta, SCHEMA_VERSION, TableMeta};
use ft_trace::tables::{
    CriticalSection, Irq, LossRow, NameRow, PageFault, SchedMigrate, SchedWaking, SiteKind,
    SiteRow, Sleep, TaskEvent, ThreadRow, Throttle, UserEvent,
};

const TIMELINE: &str = "
    0 0 .>a S
    10 acquire a L
    20 acquire a M
    25 wait b L
    30 0 a>X R+
    80 0 X>a S
    90 irq a hard 5
    100 release a M
    110 0 a>X S
    150 wake X a 0
    155 move a 0 1
    170 1 .>a S
    200 release a L
    205 acquire b L
    206 wait b M
    207 release b L
    210 poll a 1
    300 irq a vector 40
    360 gap a 1 290 350
    400 lose ring 10 a
    420 exit a
";

fn table<R: Row>(dir: &Path, rows: impl IntoIterator<Item = R>) {
    let mut writer = TableWriter::create(dir, Default::default()).unwrap();
    rows.into_iter().for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap();
}

fn user(e: LeanUserEvent) -> UserEvent {
    UserEvent {
        ts: e.ts,
        tsc: 0,
        pid: e.pid,
        tid: e.tid,
        cpu: e.cpu,
        site: e.site,
        event: "".into(),
        category: "".into(),
        kind: SiteKind::Event,
        arg: [Some(e.arg[0]), Some(e.arg[1]), Some(e.arg[2]), None, None, None],
        argf: [None; 6],
        argt: [const { None }; 6],
    }
}

/// Stores a timeline as the conversion would.
fn store(dir: &Path, timeline: &str) -> Trace {
    store_named(dir, timeline, threads())
}

/// The same, of these threads.
pub(crate) fn store_named(dir: &Path, timeline: &str, threads: Vec<ThreadRow>) -> Trace {
    macro_rules! of {
        ($kind:ident) => {
            events(timeline).filter_map(|e| match e {
                Event::$kind(row) => Some(row),
                _ => None,
            })
        };
    }
    table::<SchedSwitch>(dir, of!(Switch));
    table::<SchedWaking>(dir, of!(Waking));
    table::<SchedMigrate>(dir, of!(Migrate));
    table::<Irq>(dir, of!(Irq));
    table::<TaskEvent>(dir, of!(Task));
    table::<Sleep>(dir, of!(Sleep));
    table::<Throttle>(dir, of!(Throttle));
    table::<PageFault>(dir, []);
    table::<LossRow>(dir, of!(Loss));
    table::<UserEvent>(dir, of!(User).map(user));
    table::<SiteRow>(dir, sites());
    table::<ThreadRow>(dir, threads);
    table::<NameRow>(dir, []);
    let mut meta = Meta { schema_version: SCHEMA_VERSION, ..Meta::default() };
    let switches = TableMeta { rows: of!(Switch).count() as u64, ..TableMeta::default() };
    meta.tables.insert(SchedSwitch::TABLE.into(), switches);
    meta.write(dir).unwrap();
    Trace::open(dir).unwrap()
}

fn rows<R: Row>(trace: &Trace) -> Vec<R> {
    trace.rows().collect::<Result<_>>().unwrap()
}

#[test]
fn what_is_stored_is_what_the_machines_say() {
    let dir = tempfile::tempdir().unwrap();
    let trace = store(dir.path(), TIMELINE);
    let found = analyze(&trace).unwrap();

    let (mut expected, tally) = run(true, TIMELINE);
    assert_eq!(found, tally);
    // Made of the rows of the others.
    expected.histograms = rows(&trace);
    let of = |quantity| -> i64 {
        expected.histograms.iter().filter(|r| r.quantity == quantity).map(|r| r.count).sum()
    };
    use tables::Quantity::{Dispatch, Gap, Hold, Wait};
    assert_eq!([Hold, Wait, Dispatch, Gap].map(of), [3, 1, 1, 1]);
    assert_eq!((tally.holds, tally.dispatches, tally.gaps, tally.disordered), (3, 1, 1, 0));
    macro_rules! check {
        ($($table:ident: $row:ident,)*) => {
            $(
                expected.$table.sort_by_key(|r| r.ts);
                assert_eq!(rows::<tables::$row>(&trace), expected.$table);
            )*
        };
    }
    result_tables!(check);
    let counts = [
        expected.lock_preemptions.len(),
        expected.lock_waits.len(),
        expected.unfinished_waits.len(),
        expected.lock_order.len(),
    ];
    assert_eq!(counts, [3, 1, 1, 1]);
    assert_eq!(super::tally(dir.path()).unwrap(), Some(tally));
}

#[test]
fn reports_analyse_what_was_not_analysed() {
    let dir = tempfile::tempdir().unwrap();
    let trace = store(dir.path(), TIMELINE);
    let first = ensure(&trace, &mut |_| ControlFlow::Continue(())).unwrap();
    let code = OnceCell::new();
    let input = Input { trace: &trace, tally: &first, asked: Asked::default(), code: &code };
    let (locks, gaps) = (LocksReport::read(input).unwrap(), GapsReport::read(input).unwrap());
    assert_eq!((locks.holds, gaps.gaps), (3, 1));

    // An analysis by another version, or a damaged one, is done again; one by this version is used.
    let path = dir.path().join(ANALYSIS_FILE);
    for not_usable in [r#"{"version": 999, "holds": 77}"#, "{"] {
        std::fs::write(&path, not_usable).unwrap();
        assert_eq!(ensure(&trace, &mut |_| ControlFlow::Continue(())).unwrap(), first);
    }
    let other = Tally { holds: 77, ..first };
    let held = store::file::open(dir.path()).unwrap();
    store::file::write_json(&held, ANALYSIS_FILE, &other).unwrap();
    assert_eq!(ensure(&trace, &mut |_| ControlFlow::Continue(())).unwrap(), other);
}

#[test]
fn a_damaged_part_is_named_and_replaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let trace = store(dir.path(), TIMELINE);
    analyze(&trace).unwrap();
    std::fs::write(dir.path().join("irq/part-00000.parquet"), "PAR1").unwrap();
    let before = rows::<CriticalSection>(&trace);
    let error = analyze(&trace).unwrap_err().to_string();
    assert!(error.contains("irq/part-00000.parquet"), "{error}");
    assert_eq!(rows::<CriticalSection>(&trace), before, "earlier results stay");
    assert!(dir.path().join(META_FILE).exists());
}

#[test]
fn requests_that_were_asked_for_stay_also_when_another_version_was_asked() {
    let dir = tempfile::tempdir().unwrap();
    let trace = store(dir.path(), TIMELINE);
    let sites: Vec<SiteRow> = all(&trace).unwrap();
    let kind = RequestKind::parse("http.begin,http.end", None).unwrap();
    kind.check(&sites, &Recorded::default()).unwrap();
    let mut asked =
        analyze_asking(&trace, &sites, vec![kind], &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(analyze(&trace).unwrap().requests.asked, asked.requests.asked);
    // By an earlier version, which was asked for something else that is nowhere in the trace, too.
    let known = asked.requests.asked.clone();
    asked.version -= 1;
    asked.requests.asked.push(RequestKind::parse("no.such", None).unwrap());
    let dir = store::file::open(trace.dir()).unwrap();
    store::file::write_json(&dir, ANALYSIS_FILE, &asked).unwrap();
    assert_eq!(analyze(&trace).unwrap().requests.asked, known);
}

/// Every path of a trace, and what the files hold.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            match entry.unwrap().path() {
                path if path.is_dir() => left.push(path),
                path => found.push((path.clone(), std::fs::read(path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn an_interrupted_run_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let trace = store(dir.path(), TIMELINE);
    let fresh = contents(dir.path());
    let interrupt = || {
        let error = analyze_watched(&trace, &mut |_| ControlFlow::Break(())).unwrap_err();
        assert!(matches!(error, StoreError::Interrupted(_)), "{error}");
    };
    interrupt();
    assert_eq!(contents(dir.path()), fresh);

    analyze(&trace).unwrap();
    let analyzed = contents(dir.path());
    assert_ne!(analyzed, fresh);
    interrupt();
    assert_eq!(contents(dir.path()), analyzed);
    analyze(&trace).unwrap();
    assert_eq!(contents(dir.path()), analyzed);
}
