use super::*;
use crate::ids::{Cpu, Nanos, Pid, SiteId, Tid};
use crate::store::{Footer, Meta, SCHEMA_VERSION, TableMeta, TableWriter};
use crate::tables::*;

fn table<R: Row>(dir: &std::path::Path, rows: impl IntoIterator<Item = R>) {
    let mut writer = TableWriter::create(dir, Footer::default()).unwrap();
    rows.into_iter().for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap();
}

#[test]
fn tables_interleave_by_time_and_ties_by_rank() {
    let (cpu, tid, pid) = (Cpu(0), Tid(1), Pid(1));
    let name = crate::ids::Name::from("n");
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let user = |ts| UserEvent {
        ts: Nanos(ts),
        tsc: 0,
        pid,
        tid,
        cpu,
        site: SiteId(0),
        event: name.clone(),
        category: name.clone(),
        kind: SiteKind::Event,
        arg: [None; 6],
        argf: [None; 6],
        argt: [const { None }; 6],
    };
    let waking = |ts| SchedWaking {
        ts: Nanos(ts),
        cpu,
        waker_tid: tid,
        tid,
        pid,
        prio: 120,
        target_cpu: cpu,
        is_new: false,
    };
    let irq = |ts| Irq {
        ts: Nanos(ts),
        dur: 1,
        cpu,
        kind: IrqKind::Hard,
        number: 0,
        name: name.clone(),
        tid,
        pid,
    };
    table(dir, [1, 5].map(user));
    table(dir, [2, 5].map(waking));
    table(dir, [1, 5, 6].map(irq));
    Meta { schema_version: SCHEMA_VERSION, ..Meta::default() }.write(dir).unwrap();

    let trace = Trace::open(dir).unwrap();
    let order = events(&trace).map(|event| match event.unwrap() {
        Event::Waking(e) => (e.ts.0, "waking"),
        Event::Irq(e) => (e.ts.0, "irq"),
        Event::User(e) => (e.ts.0, "user"),
        other => panic!("{other:?}"),
    });
    assert_eq!(
        order.collect::<Vec<_>>(),
        [
            (1, "irq"),
            (1, "user"),
            (2, "waking"),
            (5, "waking"),
            (5, "irq"),
            (5, "user"),
            (6, "irq")
        ]
    );
}

#[test]
fn a_missing_table_is_an_error_and_ends_the_stream() {
    let dir = tempfile::tempdir().unwrap();
    let tables = [(SchedSwitch::TABLE.to_owned(), TableMeta::default())].into();
    let meta = Meta { schema_version: SCHEMA_VERSION, tables, ..Meta::default() };
    meta.write(dir.path()).unwrap();
    let mut events = events(&Trace::open(dir.path()).unwrap());
    assert!(events.next().unwrap().is_err());
    assert!(events.next().is_none());
}
