"""What a thread did from when to when."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.dataset as ds

from feather_trace.foreign import NotThere, brief, legible, listed
from feather_trace.trace import Trace

#: The parts of a thread's time, as in the columns `*_ns` of the tables of results.
PARTS = ("running", "preempted", "dispatch", "blocked", "hardirq", "softirq", "vector", "unexplained")

IRQ_PARTS = {"hard": "hardirq", "soft": "softirq", "vector": "vector"}
# Records of one time come in this order.
WAKING, LEAVES, COMES = range(3)


class Interval(NamedTuple):
    """A time in which a thread did one thing."""

    ts: int
    dur: int
    # One of `PARTS`.
    part: str
    # Where it ran, or for which it waited; -1 when not known.
    cpu: int
    # Who took its CPU, who woke it, which interrupt; of a blocked thread the state in which it left (`S`, `D`, …).
    by: str | None
    # `lower bound` where a record of the scheduler is missing: it may have done something else meanwhile.
    mark: str


def timeline(trace: Trace, tid: int) -> pd.DataFrame:
    """The time of a thread, from its first sight to its end or that of the trace, without holes.

    Columns `ts`, `dur` (ns), `part` (one of `PARTS`), `cpu`, `by` (who took its CPU; of *dispatch*: who woke it; which
    interrupt; of *blocked*: the state in which it left), `mark`. Made of the raw tables: needs no results but
    `thread_time`, which says from when to when. Of two threads that had one number it is the one seen first. Raises
    `KeyError` when the thread was not observed, `TypeError` for what is no number.
    """
    if not isinstance(tid, (int, np.integer)):
        raise TypeError(no_number(trace, tid))
    span = next(rows(trace, "thread_time", ["ts", "wall_ns"], ds.field("tid") == tid), None)
    if span is None:
        raise NotThere(f"{legible(trace.directory)} has no times of thread {tid}; `thread_time` lists those that it has")
    begin, end = span[0], sum(span)
    steps = with_interrupts(states(trace, tid, begin, end), trace, tid)
    return pd.DataFrame([step for step in steps if step.dur > 0], columns=list(Interval._fields))


def no_number(trace: Trace, tid: object) -> str:
    """What to give where a thread is named by something else, such as its name."""
    threads = trace.table("threads", ["tid", "name"])
    numbers = sorted(set(threads.loc[threads["name"].astype(str) == str(tid), "tid"].astype(int)))
    has = f"threads of that name have {listed(numbers)}" if numbers else "the table `threads` has those of all names"
    return f"a thread is named by its number, not by '{brief(tid)}'; {has}"


def parts(timeline: pd.DataFrame, begin: int, end: int) -> pd.Series[Any]:
    """Where the time from `begin` to `end` went, ns by part; time outside the timeline is unexplained."""
    start, stop = timeline["ts"].to_numpy(), (timeline["ts"] + timeline["dur"]).to_numpy()
    inside = np.minimum(stop, end) - np.maximum(start, begin)
    spent = pd.Series(inside.clip(min=0)).groupby(timeline["part"].to_numpy()).sum()
    found = spent.reindex(list(PARTS), fill_value=0).astype("int64")
    found["unexplained"] += max(end - begin, 0) - int(found.sum())
    return found


def states(trace: Trace, tid: int, begin: int, end: int) -> Iterator[Interval]:
    """Its states by the records of the scheduler and by its own events; while it runs, without interrupts."""
    lost = rows(trace, "loss", ["ts", "dur", "origin"])
    losses = [(ts, ts + dur) for ts, dur, origin in lost if origin in ("kernel", "kernel-skipped", "agent")]
    walk = Walk(Interval(begin, 0, "unexplained", -1, None, "exact"), losses, Shown(trace, tid))
    for record in records(trace, tid):
        if begin <= record.ts <= end:
            yield from walk.step(record)
    yield from walk.until(end)


class Record(NamedTuple):
    """A record of the scheduler, as it concerns one thread."""

    ts: int
    kind: int
    cpu: int
    # Who took its CPU, or woke it.
    who: str | None = None
    # With which state it left; `!` behind it: a waking was under way.
    state: str = ""


def records(trace: Trace, tid: int) -> list[Record]:
    """Switches and wakings of a thread in the order of time."""
    found = [Record(ts, COMES, cpu) for ts, cpu in rows(trace, "sched_switch", ["ts", "cpu"], ds.field("next_tid") == tid)]
    columns = ["ts", "cpu", "next_comm", "prev_state", "prev_woken"]
    for ts, cpu, taker, state, woken in rows(trace, "sched_switch", columns, ds.field("prev_tid") == tid):
        found.append(Record(ts, LEAVES, cpu, taker, state + "!" * woken))
    comms = {number: name for number, name in rows(trace, "threads", ["tid", "name"])} | {0: "idle"}
    columns = ["ts", "target_cpu", "waker_tid"]
    for ts, cpu, waker in rows(trace, "sched_waking", columns, ds.field("tid") == tid):
        found.append(Record(ts, WAKING, cpu, comms.get(waker)))
    return sorted(found, key=lambda record: (record.ts, record.kind))


class Shown:
    """When a thread has recorded something itself, so that it ran."""

    def __init__(self, trace: Trace, tid: int) -> None:
        events = trace.arrow("user_events", ["ts", "cpu"], ds.field("tid") == tid)
        self.ts, self.cpu = (events.column(name).to_numpy() for name in ("ts", "cpu"))
        # Their times and those of the scheduler are of two clocks.
        self.bound_ns = int(trace.meta["clock"]["bound_ns"])

    def within(self, begin: int, end: int) -> tuple[int, int] | None:
        """The first such time, and the CPU."""
        at = np.searchsorted(self.ts, begin)
        return (int(self.ts[at]), int(self.cpu[at])) if at < len(self.ts) and self.ts[at] < end else None


class Walk:
    """A thread from record to record."""

    def __init__(self, now: Interval, losses: list[tuple[int, int]], shown: Shown) -> None:
        self.now, self.losses, self.shown = now, losses, shown
        # Who woke it while it still had its CPU; it left it because of that.
        self.early: str | None = None
        self.on_the_way = False

    def step(self, record: Record) -> Iterator[Interval]:
        """Ends what it did, where the record begins something else."""
        yield from self.seen(record.ts)
        doing = self.now.part
        if record.kind == COMES:
            # One that runs or sleeps does not come: a record is missing.
            yield from self.turn(record, "running", None, doing in ("running", "blocked"))
            self.early = None
        elif record.kind == LEAVES:
            missing = doing not in ("running", "unexplained")
            self.on_the_way = record.state.endswith("!") and self.early is not None
            if record.state.startswith("R"):
                yield from self.turn(record, "preempted", record.who, missing)
            elif self.on_the_way:
                # Nobody wakes it again, because it is awake.
                yield from self.turn(record, "dispatch", self.early, missing)
            else:
                yield from self.turn(record, "blocked", record.state.rstrip("!"), missing)
            self.early = None
        elif doing == "running":
            self.early = record.who or ""
        elif doing in ("blocked", "unexplained") or self.on_the_way and doing == "dispatch":
            # Woken once more: it had slept after all.
            yield from self.turn(record, "dispatch", record.who, doing == "dispatch")
            self.on_the_way = False

    def turn(self, record: Record, part: str, by: str | None, missing: bool) -> Iterator[Interval]:
        """Goes over to something else; `missing`: a record between the last one and this."""
        yield self.ended(record.ts, missing)
        self.now = Interval(record.ts, 0, part, record.cpu, by, "exact")

    def seen(self, until: int) -> Iterator[Interval]:
        """An event of its own shows it running, although no record let it run."""
        known = self.now.part != "unexplained"
        if self.now.part == "running":
            return
        shown = self.shown.within(self.now.ts + known * (self.shown.bound_ns + 1), until)
        if shown:
            yield self.ended(shown[0], known)
            self.now = Interval(shown[0], 0, "running", shown[1], None, "exact")

    def until(self, end: int) -> Iterator[Interval]:
        """What it does up to the end of the trace."""
        yield from self.seen(end)
        yield self.ended(end, False)

    def ended(self, end: int, missing: bool) -> Interval:
        touched = any(begin <= end and self.now.ts <= until for begin, until in self.losses)
        mark = "lower bound" if missing or touched else "exact"
        return self.now._replace(dur=end - self.now.ts, mark=mark)


def rows(
    trace: Trace, table: str, columns: list[str], where: ds.Expression | None = None
) -> Iterator[tuple[Any, ...]]:
    """The rows of some columns, as numbers and texts of Python."""
    return zip(*(column.to_pylist() for column in trace.arrow(table, columns, where).columns))


def with_interrupts(steps: Iterator[Interval], trace: Trace, tid: int) -> Iterator[Interval]:
    """Cuts what ran at the interrupts of it; of handlers that nest, the inner one counts."""
    irqs = rows(trace, "irq", ["ts", "dur", "kind", "name"], ds.field("tid") == tid)
    handlers = [Handler(ts, ts + dur, IRQ_PARTS[kind], name) for ts, dur, kind, name in irqs]
    longest = max((handler.until - handler.ts for handler in handlers), default=0)
    for interval in steps:
        if interval.part != "running":
            yield interval
            continue
        until = interval.ts + interval.dur
        first = bisect_left(handlers, interval.ts - longest, key=lambda handler: handler.ts)
        near = handlers[first : bisect_left(handlers, until, key=lambda handler: handler.ts)]
        yield from cut(interval, [handler for handler in near if handler.until > interval.ts])


class Handler(NamedTuple):
    """A run of an interrupt handler."""

    ts: int
    until: int
    part: str
    name: str


def cut(run: Interval, handlers: list[Handler]) -> Iterator[Interval]:
    """A time on a CPU, cut at the handlers that ran in it."""
    until = run.ts + run.dur
    edges = {run.ts, until}
    edges |= {at for h in handlers for at in (h.ts, h.until) if run.ts < at < until}
    times = sorted(edges)
    for begin, end in zip(times, times[1:]):
        inside = [h for h in handlers if h.ts <= begin and end <= h.until]
        inner = max(inside, key=lambda h: (h.ts, -h.until), default=None)
        if inner is None:
            yield run._replace(ts=begin, dur=end - begin)
        else:
            yield run._replace(ts=begin, dur=end - begin, part=inner.part, by=inner.name)
