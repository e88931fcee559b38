//! Findings in sentences.

use super::disk::BLOCK;
use super::locks::LockSum;
use super::{BehindIt, Class, Did, Finding, FindingsReport, Idle, Kind, Pattern, SHOWN};
use crate::document::{IntoText, N, Ns, Of, Section, Share, Text, Word};
use crate::text;
use ft_analysis::Samples;
use ft_trace::Mark;
use ft_trace::tables::PathKind;

/// Labels of findings.
const NUMBERS: [&str; SHOWN] = ["1", "2", "3", "4", "5"];

/// Lines of a finding.
const LINES: usize = 4;

/// Columns of what stands behind its number.
const COLUMNS: usize = 90;

/// How much is said of a finding, most first: those behind it, functions where they waited and where those were, whether the longest
/// wait is, and whether it is said what did the little that those did besides. What stands first of it goes last, and where those were
/// goes behind that.
const DETAILS: [Detail; 8] = [
    Detail { behind: 2, head: 2, functions: 3, longest: true, little: true },
    Detail { behind: 1, head: 2, functions: 3, longest: true, little: true },
    Detail { behind: 1, head: 1, functions: 3, longest: true, little: true },
    Detail { behind: 1, head: 1, functions: 3, longest: false, little: true },
    Detail { behind: 1, head: 0, functions: 3, longest: false, little: true },
    Detail { behind: 1, head: 0, functions: 3, longest: false, little: false },
    Detail { behind: 1, head: 0, functions: 2, longest: false, little: false },
    Detail { behind: 1, head: 0, functions: 1, longest: false, little: false },
];

#[derive(Clone, Copy)]
struct Detail {
    behind: usize,
    head: usize,
    functions: usize,
    longest: bool,
    little: bool,
}

/// What is less than one in so many of what those did who are behind a finding is little of it.
const LITTLE_OF_IT_ONE_IN: i64 = 4;

/// Those who had the CPU that are named.
const TAKERS: usize = 3;

/// What is less than one in so many of a finding is not said of it.
const SAID_ONE_IN: i64 = 20;

pub(super) fn all(report: &FindingsReport, s: &mut Section) {
    s.item("recorded", recorded(report));
    if let Some(why) = nothing(report) {
        s.item("findings", why);
    }
    let locks = report.locks.iter().take(SHOWN).map(|lock| vec![without_kernel(lock)]);
    let findings = report.findings.iter().take(SHOWN).map(|f| said(f, report.begin_ns));
    let mut found: Vec<Vec<Text>> = findings.chain(locks).take(SHOWN).collect();
    let notes = notes(report);
    let height_of = |lines: &[Text]| lines.iter().map(height).sum::<usize>();
    // A note takes the place of a finding if there is no other one for it.
    let is_too_much = |found: &[Vec<Text>]| {
        found.iter().map(|lines| height_of(lines)).sum::<usize>() + height_of(&notes)
            > SHOWN * LINES
    };
    while is_too_much(&found) && found.pop().is_some() {}
    let shown = found.len();
    for (lines, number) in found.into_iter().zip(NUMBERS) {
        let mut lines = lines.into_iter();
        s.item(number, lines.next().unwrap_or_default());
        lines.for_each(|line| s.say(line));
    }
    if report.findings.is_empty() && report.threads > 0 {
        s.item("findings", "no thread lost more than a two-hundredth of its time");
    }
    if let Some(idle) = idle(report) {
        s.item("idle", idle);
    }
    notes.into_iter().for_each(|note| s.item("note", note));
    s.item("trust", trust(report, shown));
    s.item("more", more(report));
    report.warnings.iter().for_each(|warning| s.warn(&**warning));
}

/// Why no thread could lose anything that is known.
fn nothing(report: &FindingsReport) -> Option<&'static str> {
    match (report.threads, report.has_switches) {
        (1.., _) => None,
        (0, true) => Some(
            "no recorded thread ran, or was woken: name a command after `--`, or use -p, --cgroup or -a",
        ),
        (0, false) if !report.locks.is_empty() => None,
        (0, false) => Some(
            "the kernel was not recorded, and no thread waited for a traced lock: nothing else is known",
        ),
    }
}

/// What is known of waits for a lock without the kernel's records.
fn without_kernel(lock: &LockSum) -> Text {
    let (waits, longest) = (Of(lock.waits, "wait"), Ns(lock.longest_ns));
    text!(
        "{} waited {} for the {} {}, in {}, the longest {}",
        Word(&lock.who.name),
        Ns(lock.ns),
        Word(&lock.kind),
        Word(&lock.name),
        waits,
        longest
    )
}

/// A finding in as many words as there is room for.
fn said(finding: &Finding, begin_ns: i64) -> Vec<Text> {
    let said = |detail| lines(finding, detail, begin_ns);
    let fits = |lines: &Vec<Text>| lines.iter().map(height).sum::<usize>() <= LINES;
    let [.., least] = DETAILS;
    DETAILS.into_iter().map(said).find(fits).unwrap_or_else(|| said(least))
}

/// What cannot be seen of this program, and how it would be.
fn notes(report: &FindingsReport) -> Vec<Text> {
    let goroutines = "goroutines are not threads: what they wait for is not seen";
    let goroutines = report.goroutines.then_some(goroutines).into_iter();
    let why = "the kernel was not recorded: what the holders of the locks did is not known";
    let goroutines = goroutines.chain((!report.locks.is_empty()).then_some(why));
    let unmapped = report.unmapped.iter().map(|runtime| runtime.advice());
    goroutines.chain(unmapped).map(IntoText::into_text).collect()
}

/// All that is said of a finding.
fn lines(f: &Finding, detail: Detail, begin_ns: i64) -> Vec<Text> {
    let mut lines = vec![head(f, detail.head)];
    let mut behind = behind(f, detail).into_iter();
    let first = behind.next().map(|first| match f.pattern {
        Some(pattern) => text!("{}: {}", Word(pattern.word()), first),
        None => first,
    });
    lines.extend(first.into_iter().chain(behind));
    if let Some((who, at)) = &f.also {
        lines.push(text!(
            "meanwhile the disk also served {}{}",
            Word(&who.name),
            way(", in ", at, 1)
        ));
    }
    if let Some(longest) = f.longest.as_ref().filter(|_| detail.longest) {
        let at = Ns((longest.ts - begin_ns).max(0));
        lines.push(text!("longest {}: {} at {}", Ns(longest.ns), Word(&longest.name), at));
    }
    lines
}

/// How many lines of the screen a text takes.
fn height(text: &Text) -> usize {
    let (mut lines, mut column) = (1, 0);
    for word in text.to_string().split(' ') {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > COLUMNS {
            (lines, column) = (lines + 1, len);
        } else {
            column += len + usize::from(column > 0);
        }
    }
    lines
}

fn recorded(report: &FindingsReport) -> Text {
    let mut words = report.head.command.iter().map(String::as_str);
    let program = words.next().map(|path| path.rsplit('/').next().unwrap_or_default());
    let command = program.into_iter().chain(words).collect::<Vec<_>>().join(" ");
    let what = match &*command {
        "" if report.head.system_wide => text!("every thread of the system"),
        "" => text!("attached"),
        command => text!("{}", Word(&cut(command, MAX_COMMAND))),
    };
    let duration = report.head.duration_ns.map(|ns| text!(", {}", Ns(ns)));
    let duration = duration.unwrap_or_default();
    if !report.has_switches {
        return text!("{}{}, without the kernel", what, duration);
    }
    text!(
        "{}{}, {}, {} of CPU time",
        what,
        duration,
        Of(report.threads, "thread"),
        Ns(report.running_ns)
    )
}

/// Characters of the command that are shown.
///
/// Limit: as `MAX_FOUND` of `group.rs`.
const MAX_COMMAND: usize = 40;

/// The begin of a text.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Which commands show more, and what was not recorded that would have helped.
fn more(report: &FindingsReport) -> Text {
    let all = text!("`ft-agent report {}`", Word(&report.head.trace));
    match &report.lacks[..] {
        // Without any group of the kernel these make no sense.
        _ if !report.has_switches => all,
        [] => all,
        lacks => text!(
            "{}; not recorded: {} (kernel groups `stack`, `profile`)",
            all,
            Word(&lacks.join(", "))
        ),
    }
}

/// `worker-0…3 lost 1.14 s (9.5 % of their time) waiting for a mutex, held by logger`.
fn head(f: &Finding, functions: usize) -> Text {
    if f.kind == Kind::Herd {
        let (who, at) = f.behind.first().map_or((String::new(), Text::default()), |by| {
            (by.who.name.clone(), way(" in ", &by.at, 3))
        });
        let (vain, waits) = (N(f.vain as u64), N(f.waits as u64));
        return text!(
            "{} {} woken for nothing {} of {} times ({}): {} wakes all{}, for one to go on",
            Word(&f.who.name),
            if f.who.tids.len() == 1 { "was" } else { "were" },
            vain,
            waits,
            Word(Pattern::Herd.word()),
            Word(&who),
            at
        );
    }
    let verb = match f.class {
        Class::Lost => "lost",
        Class::Handover | Class::Idle => "waited",
    };
    let their = if f.who.tids.len() == 1 { "its" } else { "their" };
    let what = match &*f.what {
        "" => Text::default(),
        what => text!(" {}", Word(what)),
    };
    let (waiting, phrase) = match f.class {
        Class::Lost => ("waiting ", f.kind.phrase()),
        Class::Handover | Class::Idle => ("", f.kind.phrase().trim_start_matches("waiting ")),
    };
    let phrase = match (&f.lock, f.kind.noun()) {
        (Some(name), Some(noun)) => text!("{}for the {} {}", waiting, noun, Word(name)),
        _ if f.kind == Kind::Late && f.who.tids.len() > 1 => text!("woken late by their timers"),
        _ => text!("{}", phrase),
    };
    let by = match &f.holder {
        Some(holder) if holder.is_among(&f.who) && holder.only().is_none() => {
            text!(", held by one of them")
        }
        Some(holder) => text!(", held by {}", Word(&holder.name)),
        None => Text::default(),
    };
    text!(
        "{} {} {} ({} of {} time) {}{}{}{}",
        Word(&f.who.name),
        verb,
        Ns(f.lost_ns),
        Share(f.lost_ns, f.wall_ns),
        their,
        phrase,
        what,
        match f.kind {
            Kind::Cpu | Kind::Throttled | Kind::Interrupt | Kind::Late => Text::default(),
            _ => way(", in ", &f.at, functions),
        },
        by
    )
}

/// Functions in a line; the place is that of the first.
fn way(before: &str, functions: &[String], shown: usize) -> Text {
    if functions.is_empty() || shown == 0 {
        return Text::default();
    }
    let (first, others) = functions.split_at(1);
    let others = others.iter().map(|name| match name.rsplit_once(" (") {
        Some((label, place)) if place.contains(':') && place.ends_with(')') => label.to_owned(),
        _ => name.clone(),
    });
    let all: Vec<String> = first.iter().cloned().chain(others).collect();
    text!("{}{}", before, Word(&crate::code::way(&all, shown)))
}

/// Who is behind it, a line for each.
fn behind(f: &Finding, detail: Detail) -> Vec<Text> {
    let worth = |behind: &&BehindIt| behind.ns > f.lost_ns / SAID_ONE_IN;
    let behind = f.behind.iter().filter(worth);
    match f.kind {
        Kind::Herd => Vec::new(),
        Kind::Cpu => {
            let takers = behind.filter(|b| !b.who.name.is_empty()).take(TAKERS);
            let takers = takers.enumerate().map(|(i, b)| {
                let who = if b.who.is_like(&f.who) { "each other" } else { &*b.who.name };
                let at =
                    if i == 0 { way(", in ", &b.at, detail.functions) } else { Text::default() };
                text!("{} behind {}{}", Share(b.ns, f.lost_ns), Word(who), at)
            });
            Text::join(takers, ", ").into_iter().collect()
        }
        _ => {
            let somebody = |b: &&BehindIt| {
                !b.who.name.is_empty() || !matches!(f.kind, Kind::Throttled | Kind::Late)
            };
            behind.filter(somebody).take(detail.behind).map(|b| one(f, b, detail)).collect()
        }
    }
}

fn one(f: &Finding, b: &BehindIt, detail: Detail) -> Text {
    let share = Share(b.ns, f.lost_ns);
    if f.kind == Kind::Throttled {
        return text!(
            "{} of it while {} ran{}",
            share,
            Word(&b.who.name),
            way(" in ", &b.at, detail.functions)
        );
    }
    if let [Did { kind: PathKind::Dispatch, culprit: Some(_), .. }] = &b.did[..] {
        return text!("{} of it woken, while {} had its CPU", share, Word(&b.who.name));
    }
    let most: Vec<&Did> = b.did.iter().filter(|did| did.ns > b.ns / SAID_ONE_IN).take(2).collect();
    // Where they slept says nothing of where they ran, so it stands behind what they did there.
    let at = most.iter().rposition(|did| sleeps(did) == b.at_sleep).or(most.len().checked_sub(1));
    let told = most.iter().enumerate().map(|(i, did)| {
        let said = self::did(did, f.lost_ns, detail.little || did.ns > b.ns / LITTLE_OF_IT_ONE_IN);
        let place = way(", in ", &b.at, if at == Some(i) { detail.functions } else { 0 });
        text!("{}{}", said, place)
    });
    let did = Text::join(told, ", ").unwrap_or_default();
    match &*b.who.name {
        "" => text!("{} of it: {}", share, did),
        _ if b.who.is_among(&f.who) && b.who.only().is_none() => {
            text!("{} of it behind another of them: {}", share, did)
        }
        name => {
            let through = match &*b.through.join(", ") {
                "" => Text::default(),
                through => text!(", for whom {} waited", Word(through)),
            };
            text!("{} of it behind {}{}: {}", share, Word(name), through, did)
        }
    }
}

fn sleeps(d: &Did) -> bool {
    use PathKind::*;
    match d.kind {
        Timer | Device | Outside | Unknown => true,
        Running | Preempted | Dispatch | Interrupt => false,
    }
}

/// `91 % asleep in nanosleep`; `by`: and who or what did that to them.
fn did(d: &Did, of_ns: i64, by: bool) -> Text {
    let share = Share(d.ns, of_ns);
    let call = match (&d.call, d.file) {
        (Some(call), Some(file)) => text!(" in {} ({})", Word(call), Word(file.word())),
        (Some(call), None) => text!(" in {}", Word(call)),
        (None, _) => Text::default(),
    };
    let culprit = d.culprit.as_deref().unwrap_or("nobody that is known");
    match d.kind {
        PathKind::Running => text!("{} running", share),
        PathKind::Preempted | PathKind::Dispatch => match &d.culprit {
            Some(culprit) if by => text!("{} without a CPU, behind {}", share, Word(culprit)),
            Some(_) => text!("{} without a CPU", share),
            None => text!("{} on the way to a CPU", share),
        },
        PathKind::Interrupt => text!("{} interrupted by {}", share, Word(culprit)),
        PathKind::Timer if d.culprit.is_none() => {
            text!("{} holding it past a time-out of the waiter", share)
        }
        PathKind::Timer => text!("{} asleep{} until a time", share, call),
        PathKind::Device if culprit == BLOCK => {
            text!("{} asleep{} until the disk answered (BLOCK)", share, call)
        }
        PathKind::Device => text!("{} asleep{} until interrupt {}", share, call, Word(culprit)),
        PathKind::Outside => text!("{} asleep{} until woken by {}", share, call, Word(culprit)),
        PathKind::Unknown => text!("{} asleep{}: {}", share, call, Word(culprit)),
    }
}

/// What had nothing to do, in one line.
fn idle(report: &FindingsReport) -> Option<Text> {
    let one = |idle: &Idle| {
        let call = match &idle.calls[..] {
            [] => Text::default(),
            [call] => text!(" in {}", Word(call)),
            [call, other, ..] => text!(" in {} and {}", Word(call), Word(other)),
        };
        text!("{} {}{}", Word(&idle.who.name), Ns(idle.ns), call)
    };
    let said = |shown: usize| {
        let of = Text::join(report.idle.iter().take(shown).map(one), ", ")?;
        let rest = report.idle.len().saturating_sub(shown) as u64;
        let more = if rest > 0 { text!(", {} more", Of(rest, "role")) } else { Text::default() };
        Some(text!("{}{}", of, more))
    };
    let fits = |shown: &usize| said(*shown).is_some_and(|text| height(&text) == 1);
    said((1..=report.idle.len().min(4)).rev().find(fits).unwrap_or(1))
}

/// What is missing, and which of the findings that are shown it touches.
fn trust(report: &FindingsReport, shown: usize) -> Text {
    let Some(missing) = missing(report) else { return text!("complete") };
    let touched = report.findings.iter().take(shown).zip(NUMBERS);
    let touched = touched.filter(|(f, _)| f.mark != Mark::Exact).map(|(_, n)| text!("{}", n));
    match Text::join(touched, ", ") {
        Some(numbers) => text!("{}; lower bounds: {}", missing, numbers),
        None if shown > 0 => text!("{}; no finding is touched", missing),
        None => missing,
    }
}

/// What is missing, if anything is.
fn missing(report: &FindingsReport) -> Option<Text> {
    let head = &report.head;
    let lost = head.lost_user_events + head.lost_kernel_records;
    let places = head.quality.unknown_places;
    let unknown = || text!("an unknown number of records at {}", Of(places, "place"));
    let lost = [(lost > 0).then(|| text!("{}", Of(lost, "record"))), (places > 0).then(unknown)];
    if let Some(lost) = Text::join(lost.into_iter().flatten(), ", and ") {
        return Some(text!("{} lost", lost));
    }
    let switches = head.missing_switches;
    let switches = (switches > 0).then(|| {
        let what = if switches == 1 { "switch is" } else { "switches are" };
        text!("{} {} missing, perhaps of a process hidden from tracers", N(switches), what)
    });
    let Samples { missing, expected } = head.samples;
    let samples =
        (missing > 0).then(|| text!("{} of {} are missing", N(missing), Of(expected, "sample")));
    let children = head.unreachable.then(|| text!("events of what was started are missing"));
    let refused = head.refused;
    let refused = (refused > 0)
        .then(|| text!("events of {} that could not register are missing", Of(refused, "process")));
    let unreached = head
        .unreached_unknown
        .then(|| text!("what --preload did not reach is not known without the kernel"));
    let missing = [switches, samples, children, refused, unreached];
    Text::join(missing.into_iter().flatten(), ", and ")
}
