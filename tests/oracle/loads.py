"""`runs`, `jobs` and `timer_latency` as they should be: what the workers of a load had of the CPU, where their responses
went, and why they ran late.

What each event of a worker says is in the documentation of `ft_load::hourglass`.
"""

from collections import Counter
from dataclasses import dataclass, field

from compare import Anything, Expected, OneOf, Table, Wanted
from holds import AtMost, agent, decomposition, mark, sums_to
from tables import Switch, Trace, UserEvent, Waking
from threads import Parts, Threads

PERIODIC = 4
TIMERS = ["NATIVE", "HR", "TIMERFD", "RTC"]


@dataclass
class Run:
    """A time without a gap."""

    start: int
    end: int
    cpu: int
    ended: str
    gap_ns: int | None


@dataclass
class Job:
    """A job that has finished."""

    number: int
    release: int
    due: int
    start: int
    finish: int
    # Since when it was the only one that the worker had.
    alone: int


@dataclass
class Sleep:
    """A sleep that was to last until `due`."""

    begin: int
    due: int
    read: int


@dataclass
class Worker:
    """A worker whose end was recorded."""

    tid: int
    pid: int
    number: int
    workload: int
    announced: int
    finish: int = 0
    period: int = 0
    timer: int = 0
    runs: list[Run] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    sleeps: list[Sleep] = field(default_factory=list)


def workers(trace: Trace) -> list[Worker]:
    """All workers, by their events."""
    found: dict[int, Worker] = {}
    by_thread: dict[int, list[UserEvent]] = {}
    for event in trace.events:
        by_thread.setdefault(event.tid, []).append(event)
    for tid, events in by_thread.items():
        worker = None
        run: Run | None = None
        yielded = slept = -1
        job: tuple[int, int, int] | None = None
        finished = 0
        for e in events:
            kind = trace.sites[e.site].kind
            if e.event == "hourglass.worker":
                worker = found[tid] = Worker(tid, e.pid, e.arg0, e.arg1, e.ts, timer=e.arg2)
            if worker is None:
                continue
            match e.event.removeprefix("hourglass."):
                case "span":
                    worker.finish = e.arg1
                case "demand":
                    worker.period = e.arg1 or 0
                case "first":
                    run = Run(e.arg0, 0, e.cpu, "", None)
                case "yield":
                    yielded = e.ts
                case "sleep":
                    slept = e.ts
                case "woke":
                    worker.sleeps.append(Sleep(slept, e.arg0, e.arg1))
                case "gap.seen" if run:
                    run.ended = "slept" if slept >= e.arg0 else "yielded" if yielded >= e.arg0 else "unasked"
                    run.end, run.gap_ns = e.arg0, e.arg1 - e.arg0
                    worker.runs.append(run)
                    run = Run(e.arg1, 0, e.cpu, "", None)
                case "last" if run:
                    run.end, run.ended = e.arg0, "finished"
                    worker.runs.append(run)
                    run = None
                case "job" if kind == "scope_begin":
                    job = (e.arg0, e.arg1, e.arg2 or e.arg1)
                case "finish" if job:
                    number, start, release = job
                    alone = max(release, finished)
                    worker.jobs.append(Job(number, release, release + worker.period, start, e.arg1, alone))
                    finished, job = e.arg1, None
    return list(found.values())


def runs(trace: Trace, threads: Threads) -> Table:
    """One row for each run."""
    expected = []
    for worker in workers(trace):
        for run in worker.runs:
            parts = threads.parts(worker.tid, run.start, run.end)
            values: dict[str, Wanted] = {
                "ts": run.start,
                "tid": worker.tid,
                "dur": run.end - run.start,
                "pid": worker.pid,
                "comm": threads.named(worker.tid),
                "worker": worker.number,
                "cpu": run.cpu,
                "ended": run.ended,
                "gap_ns": run.gap_ns,
                **decomposition(parts),
                "mark": mark(parts, threads.occupants(worker.tid, run.start, run.end)),
            }
            expected.append(Expected(values, checks=[sums_to(run.end - run.start)]))
    return Table("runs", ("ts", "tid"), expected)


def jobs(trace: Trace, threads: Threads) -> Table:
    """One row for each job; of those that do not finish nothing is expected here."""
    expected = []
    for worker in workers(trace):
        for job in worker.jobs:
            tid, backlog = worker.tid, job.alone - job.release
            parts = response(worker, job, threads)
            late = job.finish > job.due
            open_ended = worker.workload == PERIODIC and job.due > worker.finish
            values: dict[str, Wanted] = {
                "ts": job.release,
                "tid": tid,
                "dur": job.finish - job.release,
                "pid": worker.pid,
                "comm": threads.named(tid),
                "worker": worker.number,
                "number": job.number,
                "due": job.due,
                "start": job.start,
                "finish": job.finish,
                "deadline": "open" if open_ended else "missed" if late else "hit",
                "backlog_ns": backlog,
                **decomposition(parts),
                **culprit(worker, job, parts, threads),
                "agent_ns": of_agent(worker, job, threads),
                "mark": certainty(worker, job, parts, threads),
            }
            if job.release < worker.announced:
                # It came too late itself, and what it did before is not accounted for.
                values |= {name: Anything() for name in (*decomposition(parts), "mark")}
                values |= {name: Anything() for name in ("culprit", "culprit_tid", "culprit_ns", "agent_ns")}
            expected.append(Expected(values, checks=[sums_to(job.finish - job.release - backlog)]))
    return Table("jobs", ("ts", "tid"), expected, tolerates=lambda row: row["finish"] is None)


def response(worker: Worker, job: Job, threads: Threads) -> Parts:
    """Where its time went: the worker does not run its code in gaps, nor what is the job's before its start."""
    parts = threads.parts(worker.tid, job.alone, job.finish)
    had: Counter[str] = Counter()
    for run in worker.runs:
        start, end = max(run.start, job.start, job.alone), min(run.end, job.finish)
        if start < end:
            had += Counter(threads.parts(worker.tid, start, end).ns)
    ns = Counter(parts.ns)
    ns["unexplained"] += ns["running"] - had["running"]
    ns["running"] = had["running"]
    return parts._replace(ns=ns)


def culprit(worker: Worker, job: Job, parts: Parts, threads: Threads) -> dict[str, Wanted]:
    """Who or what took most."""
    columns = ("culprit", "culprit_tid", "culprit_ns")
    shares = threads.occupants(worker.tid, job.alone, job.finish)
    if parts.doubtful_ns or shares.doubtful_ns:
        return dict.fromkeys(columns, Anything())
    taken: list[tuple[int, tuple[str, ...], int | None]] = [(parts.ns["blocked"], ("late timer",), None)]
    taken += [(ns, tuple(shares.comms[tid]), tid) for tid, ns in shares.ns.items()]
    interrupts: Counter[str] = Counter()
    for stretch in threads.stretches(worker.tid, job.alone, job.finish):
        if stretch.doing == "running":
            for part, name, ns in threads.on_cpu(stretch):
                interrupts[name] += ns if part != "running" else 0
    taken += [(ns, (name,), None) for name, ns in interrupts.items()]
    most = max(ns for ns, _, _ in taken)
    if is_cut(worker, job, threads):
        return {**dict.fromkeys(columns, Anything()), "culprit_ns": AtMost(most)}
    if most == 0:
        return dict.fromkeys(columns)
    longest = [(names, tid) for ns, names, tid in taken if ns == most]
    names = tuple(name for names, _ in longest for name in names)
    return {"culprit": OneOf(names), "culprit_tid": OneOf(tuple(t for _, t in longest)), "culprit_ns": most}


def of_agent(worker: Worker, job: Job, threads: Threads) -> Wanted:
    """How long threads of the agent had the CPU; of a wait that had begun before, nobody knows which of several had it when."""
    if not threads.trace.switches:
        return None
    known = agent(threads.occupants(worker.tid, job.alone, job.finish), threads)
    return Anything() if known is not None and is_cut(worker, job, threads) else known


def is_cut(worker: Worker, job: Job, threads: Threads) -> bool:
    """Several had the CPU in a wait that had begun before."""
    whole = threads.timelines[worker.tid].stretches
    return threads.shared(worker.tid, whole[0].start, whole[-1].end, lambda start, end: start < job.alone < end)


def certainty(worker: Worker, job: Job, parts: Parts, threads: Threads) -> Wanted:
    """Its mark; what is missing while it waited for an earlier job, or of the thread's state, may mark it."""
    tid = worker.tid
    wanted = mark(parts, threads.occupants(tid, job.alone, job.finish))
    earlier = threads.parts(tid, job.release, job.alone).doubtful_ns
    unknown = any(s.doing == "unknown" for s in threads.stretches(tid, job.release, job.finish))
    unknown = unknown or is_cut(worker, job, threads)
    edge = earlier or unknown or threads.occupants(tid, job.release, job.alone).doubtful_ns
    return OneOf(("exact", "lower bound")) if edge and wanted == "exact" else wanted


def timers(trace: Trace, threads: Threads) -> Table:
    """One row for each sleep."""
    expected = []
    for worker in workers(trace):
        tid = worker.tid
        wakings = [w for w in trace.wakings if w.tid == tid]
        switches = [s for s in trace.switches if tid in (s.prev_tid, s.next_tid)]
        records = sorted([*wakings, *switches], key=lambda r: (r.ts, isinstance(r, Switch)))
        for sleep in worker.sleeps:
            # Its last waking, and when it ran because of it; nobody sees who is woken on its own CPU come. One that ran
            # before it was due may lose the CPU again, or go back to sleep.
            waking: Waking | None = None
            ran: Switch | None = None
            lost: Switch | None = None
            for record in (r for r in records if sleep.begin <= r.ts <= sleep.read):
                early = ran is not None and ran.ts < sleep.due
                if isinstance(record, Waking):
                    if ran or not waking:
                        waking, ran, lost = record, None, None
                elif record.next_tid == tid:
                    ran = record if waking and (early or not ran) else ran
                elif early:
                    lost = record
            values: dict[str, Wanted] = {
                "ts": sleep.due,
                "tid": tid,
                "dur": sleep.read - sleep.due,
                "pid": worker.pid,
                "comm": threads.named(tid),
                "worker": worker.number,
                "timer": TIMERS[worker.timer],
            }
            if waking:
                values |= divided(threads, sleep, waking, ran, lost)
            else:
                # It did not sleep, so there is nothing to divide.
                values |= dict.fromkeys(("timer_ns", "interrupt_ns", "dispatch_ns", "return_ns", "cpu", "interrupt"))
            expected.append(Expected(values))
    return Table("timer_latency", ("ts", "tid"), expected)


def divided(
    threads: Threads, sleep: Sleep, waking: Waking, ran: Switch | None, lost: Switch | None
) -> dict[str, Wanted]:
    """What a late worker had to wait for, one after the other."""
    within = [i for i in threads.irqs.get(waking.cpu, []) if i.ts <= waking.ts < i.ts + i.dur]
    innermost = max(within, key=lambda i: (i.ts, -i.dur), default=None)
    entry = innermost.ts if innermost else waking.ts
    waits = lost.ts if lost else waking.ts
    came = ran.ts if ran else waits
    times = [max(ts, sleep.due) for ts in (entry, waking.ts, waits, came)]
    values: dict[str, Wanted] = {"interrupt": innermost.name if innermost else None, "cpu": ran.cpu if ran else None}
    asleep = lost is not None and not lost.prev_state.startswith("R") and not lost.prev_woken
    if times == sorted(times) and waits <= came and times[-1] <= sleep.read and not asleep:
        entry, woke, waits, came = times
        parts = (entry - sleep.due, woke - entry, came - waits, (waits - woke) + (sleep.read - came))
        values |= dict(zip(("timer_ns", "interrupt_ns", "dispatch_ns", "return_ns"), parts))
    return values
