//! What `record` prints when it ends: the head and a few lines of each report.

use std::fmt;

use super::format::{count, dur, percent, share, things};
use super::locks_text::who;
use super::table::{cut, paragraph, width};
use super::tail::percentile;
use super::waits_text::at;
use super::{Head, LongHold, Parts, Reports};

/// Lines about each question.
pub struct Summary<'a>(pub &'a Head, pub &'a Reports);

/// Before every line of an answer but its first.
const INDENT: &str = "          ";

/// Locks and threads that are named.
const NAMED: usize = 3;

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary(head, reports) = self;
        let w = width(f);
        writeln!(f, "{head:w$}")?;
        locks(f, reports)?;
        waits(f, reports)?;
        dispatch(f, reports)?;
        gaps(f, reports)?;
        time(f, reports)
    }
}

fn locks(f: &mut fmt::Formatter<'_>, Reports { locks, .. }: &Reports) -> fmt::Result {
    if locks.holds == 0 {
        return writeln!(f, "locks     no hold was recorded");
    }
    let all = &locks.all;
    writeln!(
        f,
        "locks     {} of {}, {}{} nested; p50 {}, p99 {}, max {}",
        things(locks.holds, "hold"),
        things(locks.locks.iter().map(|g| g.instances).sum(), "lock"),
        if locks.depth_lower_bounds > 0 { "at least " } else { "" },
        share(all.nested, all.holds),
        dur(all.tail.p50_ns),
        percentile(all.tail.p99_ns),
        dur(all.tail.max_ns)
    )?;
    if locks.marks.censored + locks.marks.lower_bounds > 0 {
        writeln!(
            f,
            "          {} more incomplete and not counted; {} with missing records (lower bounds)",
            count(locks.marks.censored),
            count(locks.marks.lower_bounds)
        )?;
    }
    if locks.decomposed {
        let p = &all.parts;
        let text = format!(
            "{} preempted; held time: running {}{}",
            things(all.preempted_holds, "hold"),
            percent(p.running_ns, p.total_ns()),
            elsewhere(p).map_or(String::new(), |text| format!(", {text}"))
        );
        paragraph(f, INDENT, &text)?;
    }
    for h in locks.longest.iter().take(NAMED) {
        let why = h.parts.as_ref().map_or(String::new(), |p| why(h, p));
        let text = format!("{} held {}{}{why}", cut(&h.lock, 40), dur(h.dur_ns), at(&h.place));
        paragraph(f, INDENT, &text)?;
    }
    Ok(())
}

/// The shares of held time in which the holder did not run, without those that are nothing.
fn elsewhere(p: &Parts) -> Option<String> {
    let parts = [
        ("preempted", p.preempted_ns),
        ("woken and waiting", p.dispatch_ns),
        ("blocked", p.blocked_ns),
        ("interrupts", p.interrupts_ns()),
    ];
    let shown = parts.iter().filter(|(_, ns)| *ns > 0);
    let texts = shown.map(|(name, ns)| format!("{name} {}", percent(*ns, p.total_ns())));
    texts.reduce(|all, text| format!("{all}, {text}"))
}

/// The largest part of a hold in which its holder had no CPU.
fn why(h: &LongHold, p: &Parts) -> String {
    let most = who(h.preemptor_tid, h.preemptor.as_deref());
    let parts = [
        (p.blocked_ns, "blocked".to_owned()),
        (p.dispatch_ns, "woken and waiting for a CPU".to_owned()),
        (p.preempted_ns, format!("preempted, most by {most}")),
    ];
    match parts.into_iter().max_by_key(|(ns, _)| *ns) {
        Some((ns @ 1.., what)) => format!(", {} of it {what}", dur(ns)),
        _ => String::new(),
    }
}

/// Who delayed whom; nothing where nobody did.
fn waits(f: &mut fmt::Formatter<'_>, Reports { waits, preempted, .. }: &Reports) -> fmt::Result {
    if waits.waits > 0 {
        let (n, total) = (things(waits.waits, "wait"), dur(waits.total_ns));
        writeln!(
            f,
            "waits     {n} for a lock, {total} in all; longest {}",
            dur(waits.all.tail.max_ns)
        )?;
        for r in waits.roots.iter().take(NAMED) {
            let text = format!(
                "{} of it caused by {} holding {}{}",
                percent(r.total_ns, waits.total_ns),
                r.comm,
                cut(&r.lock, 40),
                at(&r.place)
            );
            paragraph(f, INDENT, &text)?;
        }
    }
    for p in preempted.preemptors.iter().take(1) {
        let text = format!(
            "{} a lock's holder had no CPU: {}, {} behind {}; waiters delayed by {}",
            things(preempted.times, "time"),
            dur(preempted.total_ns),
            percent(p.total_ns, preempted.total_ns),
            if p.comm.is_empty() { "not known".into() } else { cut(&p.comm, 24) },
            dur(preempted.preemptors.iter().map(|p| p.delayed_ns).sum())
        );
        paragraph(f, "held up   ", &text)?;
    }
    let locked = waits.unfinished.iter().filter(|u| u.cycle.is_some()).count() as u64;
    if locked > 0 {
        let n = things(locked, "thread");
        writeln!(f, "          DEADLOCK: {n} wait for each other; see `ft-agent waits`")?;
    }
    if !waits.abba.is_empty() {
        let n = things(waits.abba.len() as u64, "pair");
        writeln!(f, "          {n} of locks acquired in both orders; see `ft-agent waits`")?;
    }
    Ok(())
}

fn dispatch(f: &mut fmt::Formatter<'_>, Reports { dispatch, .. }: &Reports) -> fmt::Result {
    let all = &dispatch.all;
    if all.wakeups == 0 {
        let why = if dispatch.kernel { "no wake-up was recorded" } else { "no kernel stream" };
        return writeln!(f, "dispatch  {why}");
    }
    writeln!(
        f,
        "dispatch  {}; median {}, p99 {}, max {}; {} later than 1 ms",
        things(all.wakeups, "wake-up"),
        dur(all.tail.p50_ns),
        percentile(all.tail.p99_ns),
        dur(all.tail.max_ns),
        count(all.later_than[0])
    )?;
    for w in dispatch.worst.iter().take(NAMED) {
        let behind = who(w.behind_tid, w.behind.as_deref());
        paragraph(f, INDENT, &format!("{} waited {} behind {behind}", w.comm, dur(w.dur_ns)))?;
    }
    Ok(())
}

fn gaps(f: &mut fmt::Formatter<'_>, Reports { gaps, .. }: &Reports) -> fmt::Result {
    if gaps.gaps == 0 {
        let why = if gaps.pollers_seen == 0 { "no thread polled" } else { "none was seen" };
        return writeln!(f, "gaps      {why}");
    }
    let total = gaps.pollers.iter().fold(0i64, |sum, p| sum.saturating_add(p.total_ns));
    writeln!(
        f,
        "gaps      {} of {}, {} in all",
        things(gaps.gaps, "gap"),
        things(gaps.pollers.len() as u64, "polling thread"),
        dur(total)
    )?;
    for c in gaps.culprits.iter().take(NAMED) {
        writeln!(
            f,
            "          {} {}: {}, {}, at most {}",
            c.cause,
            cut(&c.culprit, 40),
            things(c.gaps, "gap"),
            dur(c.total_ns),
            dur(c.max_ns)
        )?;
    }
    Ok(())
}

fn time(f: &mut fmt::Formatter<'_>, Reports { time, .. }: &Reports) -> fmt::Result {
    if time.threads.is_empty() {
        return Ok(());
    }
    let total: i64 = time.culprits.iter().map(|c| c.spent_ns).sum();
    let part = |name: &str| {
        let of_part = time.culprits.iter().filter(|c| c.part == name);
        percent(of_part.map(|c| c.spent_ns).sum(), total)
    };
    let verdict = if time.unbalanced == 0 { "balanced" } else { "NOT BALANCED" };
    writeln!(
        f,
        "time      {} of {}, {verdict}: running {}, preempted {}, woken and waiting {},",
        dur(total),
        things(time.threads.len() as u64, "thread"),
        part("running"),
        part("preempted"),
        part("dispatch")
    )?;
    let interrupts = ["hardirq", "softirq", "vector"];
    let interrupts = time.culprits.iter().filter(|c| interrupts.contains(&c.part));
    writeln!(
        f,
        "          blocked {}, interrupts {}, unexplained {}",
        part("blocked"),
        percent(interrupts.map(|c| c.spent_ns).sum(), total),
        part("unexplained")
    )
}
