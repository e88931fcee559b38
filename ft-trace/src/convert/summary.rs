//! The end of a conversion: tables of the whole trace, `views.sql`, and `meta.json`.

use std::collections::BTreeMap;
use std::path::Path;

use super::Result;
use super::enough;
use super::ledger::Ledger;
use super::names::{Names, Spending};
use super::registry::{Registry, Site};
use super::segment::{damage_warning, damaged_registry, loss_rows};
use super::threads::Threads;
use super::{frames, symbols, untraced};
use crate::ids::{Nanos, Pid, Tid};
use crate::spool::Spool;
use crate::spool::frame::Thread;
use crate::store::{
    ClockMeta, Footer, HostClockMeta, Meta, PartWriter, Results, Row, SCHEMA_VERSION, Synced,
    TableMeta, TableWriter, Unsynced, views,
};
use crate::tables::*;
use crate::warning::Warning;

/// Writes it all; repeatable. The files of users' processes have taken `spent` already.
pub(super) fn write(
    trace: &Path,
    spool: &Spool,
    registry: &Registry,
    ledgers: &BTreeMap<u32, Ledger>,
    spent: Spending,
) -> Result<Meta> {
    let mut meta = Meta {
        schema_version: SCHEMA_VERSION,
        start: registry.start.clone(),
        end: registry.end.clone(),
        clock: clock(ledgers, registry.start.tsc_hz),
        tables: tables(ledgers),
        ..Meta::default()
    };
    let damage = registry.damage()?;
    let gaps = registry.gaps();
    let is_whole = damage.is_none() && gaps.is_empty();
    meta.complete = registry.end.is_some() && is_whole && !ledgers.values().any(|l| l.damaged);
    meta.rejected = sum(ledgers.values().map(|l| l.rejected).chain([registry.malformed]));
    let mut late_losses = loss_rows(&registry.losses);
    if !gaps.is_empty() {
        late_losses.extend(loss_rows(&[damaged_registry(registry)]));
    }
    let lost_late = late_losses.iter().map(|l| (l.origin.to_string(), l.count.max(0) as u64));
    let lost = ledgers.values().flat_map(|l| l.lost.clone()).chain(lost_late);
    for (origin, count) in lost {
        let lost = meta.lost.entry(origin).or_default();
        *lost = lost.saturating_add(count);
    }

    let footer = meta.footer();
    let mut tables =
        Tables { trace, footer, about: &mut meta.tables, unsynced: Unsynced::default() };
    let threads = threads(registry, ledgers);
    tables.whole(threads.rows(registry))?;
    let sites: Vec<SiteRow> = registry.sites().iter().map(|s| s.row.clone()).collect();
    tables.whole(sites.clone())?;
    tables.whole(registry.names.clone())?;
    let calls = ledgers.values().flat_map(|l| &l.calls).copied().collect();
    let locks = ledgers.values().flat_map(|l| &l.locks).copied().collect();
    let functions = ledgers.values().flat_map(|l| &l.functions).copied().collect();
    let users = registry.known_users();
    let mut in_files = Names::new(&users, &registry.mappings).having_spent(spent);
    tables.whole(symbols::rows(calls, locks, functions, registry, &mut in_files))?;
    let addresses = ledgers.values().flat_map(|l| &l.frames).copied().collect();
    let (frames, binaries) = frames::rows(addresses, registry, &mut in_files);
    tables.whole(frames)?;
    tables.whole(binaries)?;
    if !late_losses.is_empty() {
        // Behind the parts of the segments.
        let part = ledgers.keys().last().map_or(0, |n| n.saturating_add(1));
        tables.append(part, late_losses)?;
    }
    tables.present_events()?;
    tables.present::<ClockRow>()?;
    tables.present::<HostClockRow>()?;
    tables.present::<StackRow>()?;
    let synced = tables.unsynced.sync_all()?;

    meta.warnings.extend(Warning::of_start(&meta.start));
    meta.warnings.extend(untraced(registry, ledgers));
    meta.warnings.extend(in_files.warnings());
    if registry.has_too_many_mounts && !meta.warnings.contains(&Warning::Mounts) {
        meta.warnings.push(Warning::Mounts);
    }
    meta.warnings.extend(formats(registry.sites()));
    let path = spool.registry();
    let damages = gaps.iter().map(|gap| (gap.offset, gap.bytes, &gap.reason));
    let damages = damages.chain(damage.iter().map(|d| (d.offset, d.bytes, &d.reason)));
    let damaged = |(offset, bytes, reason)| damage_warning(&path, offset, bytes, reason);
    meta.warnings.extend(damages.map(damaged));
    if threads.unnumbered() > 0 {
        meta.warnings.push(Warning::Unnumbered { threads: threads.unnumbered() });
    }
    let refused = registry.refused.values().cloned();
    meta.warnings.extend(refused.map(Warning::Refused));
    let rings = registry.processes.iter().map(|process| (process.pid, process.ring_slots));
    let mut of_segments = warnings(&meta, ledgers, &rings.collect());
    of_segments.retain(|warning| !meta.warnings.contains(warning));
    meta.warnings.extend(of_segments);
    views::write(trace, &meta, &Results::default(), &sites)?;
    finish(trace, &meta, synced)?;
    Ok(meta)
}

/// What formats cannot be shown.
fn formats(sites: &[Site]) -> Option<Warning> {
    let mut faulty = sites.iter().filter_map(|site| Some((&site.row.event, site.fault?)));
    let (event, fault) = faulty.next()?;
    Some(Warning::Format {
        event: event.to_string(),
        more: faulty.count() as u64,
        fault: fault.to_owned(),
    })
}

/// Writes `meta.json`, which makes a trace of the tables, which are on disk.
fn finish(trace: &Path, meta: &Meta, _tables: Synced) -> Result<()> {
    Ok(meta.write(trace)?)
}

/// Programs that the preload library did not reach.
fn untraced(registry: &Registry, ledgers: &BTreeMap<u32, Ledger>) -> Option<Warning> {
    let executions = ledgers.values().flat_map(|l| &l.executions).cloned().collect::<Vec<_>>();
    let waited = registry.processes.iter().filter(|p| p.source.is_some() && p.waited);
    let (found, of) = untraced::find(&executions, waited.map(|p| (p.pid, p.ts)), &registry.looks);
    let runs = found.values().sum();
    (runs > 0).then(|| Warning::Untraced { runs, of, programs: untraced::explain(found) })
}

/// Of what ledgers say, whoever wrote them.
fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

fn clock(ledgers: &BTreeMap<u32, Ledger>, start_tsc_hz: f64) -> ClockMeta {
    let first = ledgers.values().find_map(|l| l.first_sample);
    let last = ledgers.values().rev().find_map(|l| l.samples.last());
    let tsc_hz = match (first, last) {
        (Some(a), Some(b)) if b.mono_ns > a.mono_ns => {
            b.tsc.saturating_sub(a.tsc) as f64 / b.mono_ns.saturating_sub(a.mono_ns) as f64 * 1e9
        }
        _ => start_tsc_hz,
    };
    let sum = |of: fn(&Ledger) -> u64| sum(ledgers.values().map(of));
    let max = |of: fn(&Ledger) -> i64| ledgers.values().map(of).max().unwrap_or(0);
    ClockMeta {
        tsc_hz,
        bound_ns: max(|l| l.bound_ns),
        step_ns: max(|l| l.step_ns),
        samples: sum(|l| l.sample_count),
        realtime_offset_ns: first.map_or(0, |s| s.realtime_offset_ns),
        boottime_offset_ns: first.map_or(0, |s| s.boottime_offset_ns),
        host: ledgers.values().filter_map(|l| l.host_clock).reduce(HostClockMeta::and),
        checked: sum(|l| l.checked),
        violations: sum(|l| l.violations),
        worst_violation_ns: max(|l| l.worst_violation_ns),
    }
}

fn tables(ledgers: &BTreeMap<u32, Ledger>) -> BTreeMap<String, TableMeta> {
    let mut tables: BTreeMap<String, TableMeta> = BTreeMap::new();
    for (name, part) in ledgers.values().flat_map(|l| &l.tables) {
        let table = tables.entry(name.clone()).or_default();
        table.rows = table.rows.saturating_add(part.rows);
        table.parts += 1;
        table.late_rows = table.late_rows.saturating_add(part.late_rows);
        table.late_max_ns = table.late_max_ns.max(part.late_max_ns);
        table.files.push(part.file);
    }
    // Of a ledger of an earlier version not all are known.
    for table in tables.values_mut().filter(|table| table.files.iter().any(|file| file.bytes == 0))
    {
        table.files.clear();
    }
    tables
}

fn threads(registry: &Registry, ledgers: &BTreeMap<u32, Ledger>) -> Threads {
    let mut threads = Threads::default();
    for ledger in ledgers.values() {
        threads.add(&ledger.threads);
    }
    for process in &registry.processes {
        let (pid, ts) = (process.pid, Nanos(process.ts));
        threads.seen(Pid(pid), Tid(pid), ts, Some(&process.comm.as_str().into()), None);
    }
    // One without a number may have got it from the kernel.
    let known = |thread: &&Thread| thread.tid >= 0 || threads.has(Pid(thread.pid), Tid(thread.tid));
    let named: Vec<&Thread> = registry.threads.iter().filter(known).collect();
    for thread in named {
        let name = thread.name.as_str().into();
        threads.seen(Pid(thread.pid), Tid(thread.tid), Nanos(thread.ts), Some(&name), None);
    }
    threads
}

/// The tables of a trace at its end.
struct Tables<'a> {
    trace: &'a Path,
    footer: Footer,
    /// What `meta.json` says of them.
    about: &'a mut BTreeMap<String, TableMeta>,
    /// The parts that are written.
    unsynced: Unsynced,
}

impl Tables<'_> {
    /// Writes a table that is made at the end.
    fn whole<R: Row>(&mut self, rows: impl IntoIterator<Item = R>) -> Result<()> {
        let mut writer = TableWriter::create(self.trace, self.footer.clone())?;
        for row in rows {
            writer.push(row)?;
        }
        let files = writer.finish_unsynced(&mut self.unsynced)?;
        let rows = files.iter().map(|file| file.rows).sum();
        let table = TableMeta { rows, parts: 1, files, ..TableMeta::default() };
        self.about.insert(R::TABLE.into(), table);
        Ok(())
    }

    /// Writes one more part of a table.
    fn append<R: Row>(&mut self, part: u32, mut rows: Vec<R>) -> Result<()> {
        rows.sort_by_key(R::key);
        let mut writer = PartWriter::create(self.trace, part, self.footer.clone())?;
        for row in &rows {
            writer.push(row)?;
        }
        let table = self.about.entry(R::TABLE.into()).or_default();
        let file = writer.finish_unsynced(&mut self.unsynced)?;
        table.rows += file.rows;
        if table.files.len() == table.parts as usize {
            table.files.push(file);
        }
        table.parts += 1;
        Ok(())
    }

    /// Gives a table without rows an empty part, so that every reader finds its columns.
    fn present<R: Row>(&mut self) -> Result<()> {
        let table = self.about.entry(R::TABLE.into()).or_default();
        if table.parts == 0 {
            let empty = PartWriter::<R>::create(self.trace, 0, self.footer.clone())?;
            table.files = vec![empty.finish_unsynced(&mut self.unsynced)?];
        }
        Ok(())
    }
}

macro_rules! present_events {
    (
        first { $($first:ident: $first_variant:ident($first_row:ident as $first_lean:ident),)* }
        kernel { $($field:ident: $variant:ident($row:ident as $lean:ident),)* }
        kernel_alone { $($alone:ident: $alone_variant:ident($alone_row:ident),)* }
        last { $($last:ident: $last_variant:ident($last_row:ident as $last_lean:ident),)* }
    ) => {
        impl Tables<'_> {
            /// The tables of events without rows.
            fn present_events(&mut self) -> Result<()> {
                $(self.present::<$first_row>()?;)*
                $(self.present::<$row>()?;)*
                $(self.present::<$alone_row>()?;)*
                $(self.present::<$last_row>()?;)*
                Ok(())
            }
        }
    };
}

crate::event_tables!(present_events);

/// Warnings of the segments, equal ones once, and those that concern the whole.
fn warnings(
    meta: &Meta,
    ledgers: &BTreeMap<u32, Ledger>,
    ring_slots: &BTreeMap<i32, u32>,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if meta.end.is_none() {
        warnings.push(Warning::NotEnded);
    }
    let mut wide = 0;
    for warning in ledgers.values().flat_map(|l| &l.warnings) {
        match warning {
            Warning::WideSamples { count } => wide += count,
            other if !warnings.contains(other) => warnings.push(other.clone()),
            _ => {}
        }
    }
    if wide > 0 {
        warnings.push(Warning::WideSamples { count: wide });
    }
    for (origin, &count) in meta.lost.iter().filter(|&(_, &count)| count > 0) {
        let of_rings = LossOrigin::of(origin) == LossOrigin::Ring;
        let bursts = ledgers.values().flat_map(|l| l.bursts.clone()).filter(|_| of_rings);
        let ring_bytes = enough::ring_bytes(bursts, ring_slots);
        let of_origin = ledgers.values().filter_map(|l| l.unfinished.get(origin));
        let unfinished = of_origin.fold(0, |sum: u64, &count| sum.saturating_add(count)).min(count);
        if unfinished > 0 {
            warnings.push(Warning::Unfinished { origin: origin.clone(), count: unfinished });
        }
        if unfinished < count {
            let count = count - unfinished;
            warnings.push(Warning::Loss { origin: origin.clone(), count, ring_bytes });
        }
    }
    if meta.rejected > 0 {
        warnings.push(Warning::Rejected { count: meta.rejected });
    }
    let beyond = ledgers.values().map(|l| l.beyond);
    let (events, distance_ns, bound_ns) = beyond.fold((0, 0, 0), |a: (u64, _, _), b| {
        (a.0.saturating_add(b.0), i64::max(a.1, b.1), i64::max(a.2, b.2))
    });
    if events > 0 {
        warnings.push(Warning::Extrapolated { events, distance_ns, bound_ns });
    }
    let clock = &meta.clock;
    if clock.violations > 0 {
        warnings.push(Warning::ClockViolations {
            count: clock.violations,
            checked: clock.checked,
            worst_ns: clock.worst_violation_ns,
            bound_ns: clock.bound_ns,
        });
    }
    warnings
}
