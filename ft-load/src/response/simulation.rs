//! A schedule, played tick by tick: the truth that the analysis is held against. Slow, and simple enough to believe.

/// A job that comes at a known tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// From when on its response counts; may lie before the schedule begins.
    pub(super) release: i64,
    /// From when on it can run; not before the job before it.
    pub(super) ready: i64,
    pub(super) cost: i64,
}

/// Plays fixed-priority preemptive scheduling of the jobs of each task, the highest priority first, from tick 0 on.
/// Returns for each task the longest time from a release to the completion.
///
/// Whoever gets the CPU after another had it, or after it was idle, first pays `switch` ticks, which a higher task can
/// interrupt as it can the rest.
pub(super) fn play(tasks: &[Vec<Job>], switch: i64) -> Vec<i64> {
    let mut next = vec![0; tasks.len()];
    let mut worst = vec![0; tasks.len()];
    let (mut running, mut switching, mut left) = (None, 0, vec![0; tasks.len()]);
    let mut now = 0;
    while (0..tasks.len()).any(|t| next[t] < tasks[t].len()) {
        let ready = |t: &usize| tasks[*t].get(next[*t]).is_some_and(|job| job.ready <= now);
        let highest = (0..tasks.len()).find(ready);
        if highest != running {
            (running, switching) = (highest, switch);
        }
        now += 1;
        let Some(t) = highest else { continue };
        if switching > 0 {
            switching -= 1;
            continue;
        }
        let job = tasks[t][next[t]];
        left[t] = if left[t] == 0 { job.cost } else { left[t] } - 1;
        if left[t] == 0 {
            worst[t] = worst[t].max(now - job.release);
            next[t] += 1;
            running = None;
        }
    }
    worst
}
