//! One segment to one part of each table.

mod damaged;
mod output;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::chains::Chains;
use super::enough;
use super::kernel::{ForRows, KernelRows};
use super::kernel_locks::KernelLocks;
use super::ledger::Ledger;
use super::registry::Registry;
use super::symbols::{self, Seen};
use super::threads::Threads;
use super::untraced::Execution;
use super::unwind::{Questions, Rules, Unwinder};
use super::user::{Judge, UserSlots, blank};
use super::{Result, unnumbered, violations};
use crate::clock::{ClockError, ClockModel, ClockSample, Finding, host_row};
use crate::ids::{Cpu, Nanos, Pid, ThreadKey, Tid, Tsc};
use crate::spool::frame::{Frame, FrameError, Loss, Shared, Slots};
use crate::spool::{ReadError, Reader, Spool};
use crate::store::meta::sum;
use crate::store::{Footer, HostClockMeta, Row, Synced, Unsynced};
use crate::tables::record::Decoder;
use crate::tables::{
    ClockRow, LossOrigin, LossReason, LossRow, LostRecords, SchedSwitch, TaskEvent, TaskKind,
};
use crate::warning::Warning;
use output::Output;

/// Clock samples that a segment leaves to the next: the line before its first own sample needs them.
///
/// Limit: cannot be reached: the line before the first own sample needs two.
/// Shown by: cannot be reached.
const SAMPLES_KEPT: usize = 8;

/// What the first reading of a segment tells: all that must be known before a slot can be decoded.
#[derive(Default)]
struct Survey {
    samples: Vec<ClockSample>,
    losses: Vec<Loss>,
    /// Of all slots.
    slot_bytes: usize,
    /// There are slots behind the last clock sample: a recording was cut off, or goes on.
    has_later_slots: bool,
}

/// Converts segment `number`; `before` are the ledgers of the segments that are done, `rules` what frames are left by, as far as
/// they had to know.
pub(super) fn convert(
    trace: &Path,
    spool: &Spool,
    number: u32,
    registry: &Registry,
    before: &BTreeMap<u32, Ledger>,
    rules: &mut Rules,
) -> Result<(Ledger, Synced)> {
    let path = spool.segment(number);
    let mut ledger = Ledger { segment: number, ..Ledger::default() };
    let inherited = number.checked_sub(1).and_then(|n| before.get(&n));
    let inherited = inherited.map_or(&[][..], |l| &l.samples);
    let token = &registry.start.token;
    let open = || Reader::open(&path).map(|reader| reader.with_token(token));
    let decoded = decode_from(&path, &open, inherited, registry, &mut ledger, Some(rules))?;
    let Decoded { own_samples, model, user, mut kernel, mut threads, chains, mut losses } = decoded;
    // A snapshot has its last loss before the window, too, if that reaches into it.
    let from = registry.start.window_from_ns.unwrap_or(i64::MIN);
    losses.retain(|loss| loss.ts.0.saturating_add(loss.dur) >= from);
    for loss in &losses {
        let mut count = |lost: fn(&mut Ledger) -> &mut BTreeMap<String, u64>| {
            let lost = lost(&mut ledger).entry(loss.origin.to_string()).or_default();
            *lost = lost.saturating_add(loss.count.max(0) as u64);
        };
        count(|ledger| &mut ledger.lost);
        if loss.reason() == LossReason::NeverCommitted {
            count(|ledger| &mut ledger.unfinished);
        }
    }

    ledger.bursts = enough::bursts(&losses, user.slots_per_event());
    if registry.start.preload && !registry.start.system_wide {
        ledger.executions = executions(&kernel.tasks);
    }

    let mut newest: BTreeMap<String, i64> = BTreeMap::new();
    for (table, part) in before.range(..number).flat_map(|(_, l)| &l.tables) {
        let value = newest.entry(table.clone()).or_insert(part.newest);
        *value = (*value).max(part.newest);
    }
    let mut output = Output {
        trace,
        number,
        newest,
        from,
        tables: BTreeMap::new(),
        unsynced: Unsynced::default(),
        footer: Footer {
            host: registry.start.host.clone(),
            boot_id: registry.start.boot_id.clone(),
            tsc_hz: model.as_ref().map_or(registry.start.tsc_hz, ClockModel::tsc_hz),
            clock_bound_ns: 0,
            loss: sum(ledger.lost.values()),
        },
    };
    ledger.locks = symbols::futexes(&kernel.futexes, &kernel.sleeps);
    kernel.each(&mut output)?;
    let stacks = chains.rows();
    ledger.frames = chains.addresses(&stacks);
    output.write(&stacks)?;
    losses.sort_by_key(LossRow::key);
    output.write(&losses)?;
    let mut host_rows: Vec<_> = own_samples.iter().filter_map(host_row).collect();
    ledger.host_clock = host_rows.iter().fold(None, |all, row| Some(HostClockMeta::with(all, row)));
    output.rows(&mut host_rows)?;

    if let Some(model) = &model {
        let lost: Vec<_> = losses
            .iter()
            .filter(|l| l.records() == Some(LostRecords::Switches))
            .map(|l| (l.ts, l.ts + l.dur))
            .collect();
        check_clock(&user, &kernel.switches, model, &lost, &mut ledger);
        for (&(pid, tid), first) in user.threads().iter().zip(user.first_times()) {
            if let Some(ts) = first {
                threads.seen(pid, tid, ts, None, None);
            }
        }
        output.footer.clock_bound_ns = model.bound_ns();
        let mut cursor = model.cursor();
        let mut seen = Seen::default();
        let first = user.times().take_while(|(ts, _)| ts.0 < from).count();
        if first < user.len() {
            let mut part = output.begin()?;
            let mut row = blank();
            for at in first..user.len() {
                user.read(at, registry, &mut cursor, &mut row);
                seen.note(&row, registry.site(row.site));
                part.push(&row)?;
            }
            output.end(part)?;
        }
        let [calls, locks, functions] = seen.into_addresses();
        (ledger.calls, ledger.functions) = (calls, functions);
        ledger.locks.extend(locks);
        output.write(&clock_rows(model, &own_samples))?;
        note_clock(model, &own_samples, &mut ledger);
    }
    ledger.threads = threads.sightings();
    ledger.tables = output.tables;
    Ok((ledger, output.unsynced.sync_all()?))
}

/// Which programs the processes executed, and their ends.
fn executions(tasks: &[TaskEvent]) -> Vec<Execution> {
    let execution = |task: &TaskEvent| {
        let program = match task.kind {
            TaskKind::Exec => Some(task.comm.to_string()),
            // A process ends with its last thread; its first tells that nearly always.
            TaskKind::Exit if task.tid.0 == task.pid.0 => None,
            _ => return None,
        };
        Some(Execution { pid: task.pid.0, ts: task.ts.0, program })
    };
    tasks.iter().filter_map(execution).collect()
}

/// A segment in memory: rows, and what they are made from, not yet sorted except for user events.
pub(super) struct Decoded {
    /// Clock samples without those inherited.
    pub(super) own_samples: Vec<ClockSample>,
    /// `None` when there is no clock sample, and so no user event.
    pub(super) model: Option<ClockModel>,
    pub(super) user: UserSlots,
    pub(super) kernel: KernelRows,
    /// Threads that the kernel's records name.
    pub(super) threads: Threads,
    /// The call chains that they have.
    pub(super) chains: Chains,
    pub(super) losses: Vec<LossRow>,
}

/// Decodes a segment; `inherited` are the last clock samples of the one before. What was wrong with it
/// is noted in `ledger`.
pub(super) fn decode(
    path: &Path,
    inherited: &[ClockSample],
    registry: &Registry,
    ledger: &mut Ledger,
) -> Result<Decoded> {
    let token = &registry.start.token;
    let open = || Reader::open(path).map(|reader| reader.with_token(token));
    decode_from(path, &open, inherited, registry, ledger, None)
}

/// Decodes frames that readers read, which `open` opens; `path` is where they are. Call chains are those of frame pointers unless
/// there are `rules`, which are added to.
pub(super) fn decode_from(
    path: &Path,
    open: &dyn Fn() -> std::result::Result<Reader, ReadError>,
    inherited: &[ClockSample],
    registry: &Registry,
    ledger: &mut Ledger,
    rules: Option<&mut Rules>,
) -> Result<Decoded> {
    let mut questions = rules.is_some().then(|| Questions::new(registry));
    let mut survey = survey(open()?, path, registry, ledger, questions.as_mut())?;
    let unwinder = match questions.zip(rules) {
        Some((questions, rules)) => {
            let (unwinder, warnings) = questions.answered(rules);
            ledger.warnings.extend(warnings);
            unwinder
        }
        None => Unwinder::default(),
    };

    // A segment may begin with the sample that closed the one before.
    survey.samples.retain(|sample| !inherited.contains(sample));
    // Without a clock there are still the kernel's records, which need none.
    let samples = [inherited, &survey.samples].concat();
    let (model, refused) = match model(&samples, registry.start.tsc_hz) {
        Ok(model) => (model, None),
        Err(reason) => (None, Some(reason)),
    };

    let mut kernel = KernelRows::default();
    let mut decoder = Decoder::new(&registry.start.irq_names).with_probes(&registry.start.probes);
    decoder.chains = Chains::of_segment(ledger.segment, unwinder);
    decoder.whole_chains = registry.start.kernel_groups.iter().any(|group| group == "stack");
    decoder.kernel_locks = KernelLocks::of_boot(&registry.start.boot_id);
    decoder.realtime_offset_ns = samples.first().map(|sample| sample.realtime_offset_ns);
    let mut user = UserSlots::with_capacity(survey.slot_bytes);
    let judge = model.as_ref().map(|model| Judge::new(registry, model));
    // A model leaves out samples that took too long to read, the closing one among them.
    let last_used = model.as_ref().and_then(|model| model.nodes().last()).map(|n| n.sample.tsc);
    let is_closed = !survey.has_later_slots && last_used == samples.last().map(|sample| sample.tsc);
    let mut judge = match is_closed {
        true => judge.map(Judge::all_before_the_last_sample),
        false => judge,
    };
    let mut unplaced = 0;
    let mut reader = open()?;
    while let Some(frame) = reader.next()? {
        match (frame, &mut judge) {
            (Frame::Slots(slots), Some(judge)) => user.scan(&slots, judge),
            (Frame::Shared(slots), Some(judge)) => user.scan_shared(&slots, judge),
            (Frame::Slots(slots), None) => unplaced += slots.bytes.len() as u64 / 32,
            (Frame::Shared(slots), None) => unplaced += slots.bytes.len() as u64 / 128,
            (Frame::Kernel(bytes), _) => kernel.decode(bytes, &mut decoder),
            _ => {}
        }
    }
    match refused {
        None if unplaced > 0 => {
            ledger.warnings.push(Warning::NoClock { file: relative(path) });
            ledger.rejected += unplaced;
        }
        Some(reason) if unplaced > 0 => ledger.warnings.push(Warning::NoTsc {
            file: relative(path),
            slots: unplaced,
            reason: reason.to_string(),
        }),
        _ => {}
    }
    user.sort();
    if let Some(model) = &model {
        let bound = model.bound_ns();
        let found = unnumbered::numbers(user.threads(), user.places(), &kernel.switches, bound);
        found.into_iter().for_each(|(thread, tid)| user.renumber(thread, tid));
    }
    let mut losses = std::mem::take(&mut user.losses);
    losses.extend(survey.losses.iter().filter_map(|loss| loss_row(loss, model.as_ref())));
    ledger.rejected += user.rejected + kernel.rejected;
    ledger.beyond = user.beyond;
    Ok(Decoded {
        own_samples: survey.samples,
        model,
        user,
        kernel,
        threads: decoder.threads,
        chains: decoder.chains,
        losses,
    })
}

/// First reading: clock samples, losses, and what of the file is damaged.
fn survey(
    mut reader: Reader,
    path: &Path,
    registry: &Registry,
    ledger: &mut Ledger,
    mut questions: Option<&mut Questions<'_>>,
) -> Result<Survey> {
    let mut survey = Survey::default();
    // Each with the number of samples before it.
    let mut gaps = Vec::new();
    let mut is_over = false;
    while !is_over {
        let (known, before) = (reader.gaps().len(), survey.samples.len());
        match reader.next()? {
            Some(Frame::Clock(sample)) => {
                survey.samples.push(sample);
                survey.has_later_slots = false;
            }
            Some(Frame::Loss(loss)) => survey.losses.push(loss),
            Some(Frame::Slots(Slots { bytes, .. }) | Frame::Shared(Shared { bytes, .. })) => {
                survey.slot_bytes += bytes.len();
                survey.has_later_slots = true;
            }
            Some(Frame::Kernel(records)) => {
                if let Some(questions) = &mut questions {
                    questions.note(records);
                }
            }
            Some(_) => {}
            None => is_over = true,
        }
        gaps.extend(reader.gaps()[known..].iter().map(|gap| (gap.clone(), before)));
    }
    for (gap, before) in &gaps {
        survey.losses.extend(damaged::losses(gap, &survey.samples, *before, registry));
        ledger.damaged = true;
        ledger.warnings.push(damage_warning(path, gap.offset, gap.bytes, &gap.reason));
    }
    if let Some(damage) = reader.damage()? {
        // A recording that was killed is cut, and nothing is known to stand behind that.
        if registry.end.is_some() || damage.reason != FrameError::Truncated {
            let before = survey.samples.len();
            survey.losses.push(damaged::rest(&survey.samples, before, registry));
        }
        ledger.damaged = true;
        ledger.warnings.push(damage_warning(path, damage.offset, damage.bytes, &damage.reason));
    }
    Ok(survey)
}

/// These bytes of a file of the spool were left out.
pub(super) fn damage_warning(path: &Path, offset: u64, bytes: u64, reason: &FrameError) -> Warning {
    Warning::SpoolDamaged { file: relative(path), offset, bytes, reason: reason.to_string() }
}

/// What a damaged registry has lost: whatever refers to it, at any time.
pub(super) fn damaged_registry(registry: &Registry) -> Loss {
    damaged::rest(&[], 0, registry)
}

/// A file of the spool as seen from the trace directory.
pub(super) fn relative(path: &Path) -> String {
    format!("spool/{}", path.file_name().unwrap_or_default().to_string_lossy())
}

/// The clock of a segment. A single sample, all that a recording has that was killed at once, is
/// helped out with the frequency measured at the start; without any there is none.
fn model(
    samples: &[ClockSample],
    tsc_hz: f64,
) -> std::result::Result<Option<ClockModel>, ClockError> {
    match (ClockModel::new(samples), samples.last()) {
        (Ok(model), _) => Ok(Some(model)),
        (Err(ClockError::TooFewSamples(_)), Some(&sample)) if (1e8..1e11).contains(&tsc_hz) => {
            let second = ClockSample {
                tsc: sample.tsc.saturating_add(tsc_hz as u64),
                mono_ns: sample.mono_ns.saturating_add(1_000_000_000),
                ..sample
            };
            Ok(ClockModel::new(&[sample, second]).ok())
        }
        (Err(ClockError::TooFewSamples(_)), _) => Ok(None),
        (Err(error), _) => Err(error),
    }
}

fn loss_row(loss: &Loss, model: Option<&ClockModel>) -> Option<LossRow> {
    let time = |at: i64| match (loss.is_tsc, model) {
        (false, _) => Some(Nanos(at)),
        (true, Some(model)) => Some(model.to_ns(Tsc(at as u64))),
        (true, None) => None,
    };
    let (from, to) = (time(loss.from)?, time(loss.to)?);
    Some(LossRow {
        ts: from,
        dur: to.0.saturating_sub(from.0).max(0),
        origin: LossOrigin::of(&loss.origin),
        what: loss.what.as_str().into(),
        cpu: Cpu(loss.cpu),
        pid: Pid(loss.pid),
        tid: Tid(loss.tid),
        count: i64::try_from(loss.count).unwrap_or(i64::MAX),
    })
}

/// Rows of `loss` for losses whose times are in nanoseconds.
pub(super) fn loss_rows(losses: &[Loss]) -> Vec<LossRow> {
    losses.iter().filter_map(|loss| loss_row(loss, None)).collect()
}

/// Compares user events with the switches. What lies outside the clock samples is less certain, and judged by a bound of its
/// own, so that a program which records such times hides no violation of others.
fn check_clock(
    user: &UserSlots,
    switches: &[SchedSwitch],
    model: &ClockModel,
    lost: &[(Nanos, Nanos)],
    ledger: &mut Ledger,
) {
    let numbers: HashMap<ThreadKey, u32> = user
        .threads()
        .iter()
        .zip(0..)
        .map(|(&(pid, tid), number)| (ThreadKey { pid, tid }, number))
        .collect();
    let mut threads =
        violations::by_thread(switches, user.threads().len(), |key| numbers.get(&key).copied());
    let (inside, beyond) = (model.bound_ns(), model.bound_ns().max(ledger.beyond.2));
    let bound = |ts| if model.covers(ts) { inside } else { beyond };
    let found = violations::check(&mut threads, user.times(), bound, lost);
    ledger.checked = found.checked;
    ledger.violations = found.count;
    ledger.worst_violation_ns = found.worst_ns;
}

/// Rows of `clock` for the samples of this segment, without those inherited.
fn clock_rows(model: &ClockModel, own: &[ClockSample]) -> Vec<ClockRow> {
    let nodes = model.nodes().iter().filter(|node| own.contains(&node.sample));
    nodes
        .map(|node| ClockRow {
            ts: Nanos(node.sample.mono_ns),
            tsc: node.sample.tsc as i64,
            bracket_ns: (node.sample.bracket_tsc as f64 * node.ns_per_cycle).ceil() as i64,
            residual_ns: node.residual_ns.round() as i64,
            bound_ns: node.bound_ns,
            realtime_offset_ns: node.sample.realtime_offset_ns,
            boottime_offset_ns: node.sample.boottime_offset_ns,
            cpu: Cpu(node.sample.cpu as i32),
        })
        .collect()
}

fn note_clock(model: &ClockModel, own: &[ClockSample], ledger: &mut Ledger) {
    ledger.bound_ns = model.bound_ns();
    ledger.step_ns = model.step_ns();
    ledger.sample_count = own.len() as u64;
    ledger.first_sample = own.first().copied();
    let nodes = model.nodes();
    ledger.samples =
        nodes[nodes.len().saturating_sub(SAMPLES_KEPT)..].iter().map(|n| n.sample).collect();
    ledger.warnings.extend(model.findings().iter().map(|finding| match *finding {
        Finding::Wide(count) => Warning::WideSamples { count: count as u64 },
        Finding::RealtimeSet(step_ns) => Warning::ClockSet { step_ns },
        Finding::Suspended(asleep_ns) => Warning::Suspended { asleep_ns },
    }));
}
