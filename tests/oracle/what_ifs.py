"""`what_ifs` as they should be: holds without a CPU, and the most that waits behind them could have been shorter."""

from bisect import bisect_left, bisect_right
from typing import Callable, Iterable

from compare import Anything, Expected, OneOf, Table, Wanted, Within
from cpus import Shares, touched
from held_up import over, with_locks
from holds import EXACT, LOWER_BOUND, agent, decomposition, mark, sums_to
from locks import SEMAPHORE, Hold, Lock, Locks, Wait
from places import RESTARTS
from tables import Trace
from threads import Delay, Threads

# Kernel priorities from here on are ordinary.
ORDINARY = 100
IDLE = 0


class Priorities:
    """Of each thread, by its switches and wake-ups."""

    def __init__(self, trace: Trace) -> None:
        records: dict[int, list[tuple[int, int]]] = {}
        for waking in trace.wakings:
            records.setdefault(waking.tid, []).append((waking.ts, waking.prio))
        for switch in trace.switches:
            records.setdefault(switch.prev_tid, []).append((switch.ts, switch.prev_prio))
            records.setdefault(switch.next_tid, []).append((switch.ts, switch.next_prio))
        self.records = {tid: sorted(rows, key=lambda row: row[0]) for tid, rows in records.items()}

    def at(self, tid: int, ts: int) -> int | None:
        """The newest."""
        rows = self.records.get(tid, [])
        at = bisect_right(rows, ts, key=lambda row: row[0])
        return rows[at - 1][1] if at else None

    def before(self, tid: int, ts: int) -> int | None:
        """The newest before a time."""
        rows = self.records.get(tid, [])
        at = bisect_left(rows, ts, key=lambda row: row[0])
        return rows[at - 1][1] if at else None


class Inside:
    """When each thread was in the kernel by its own doing."""

    def __init__(self, trace: Trace) -> None:
        self.began: dict[int, list[int]] = {}
        self.stays: dict[int, list[tuple[int, int]]] = {}
        before: dict[int, int] = {}
        for call in trace.syscalls:
            goes_on = call.name == "restart_syscall" and before.get(call.tid) == RESTARTS
            before[call.tid] = call.ret
            if call.seen == "return":
                continue
            if not goes_on:
                self.began.setdefault(call.tid, []).append(call.ts)
            end = trace.end() + 1 if call.seen == "entry" else call.ts + call.dur
            self.stays.setdefault(call.tid, []).append((call.ts, end))
        for fault in trace.faults:
            if fault.kind is not None and fault.dur is not None:
                self.stays.setdefault(fault.tid, []).append((fault.ts, fault.ts + fault.dur))

    def at(self, tid: int, ts: int) -> bool:
        """In a system call or a page fault."""
        return any(start <= ts < end for start, end in self.stays.get(tid, []))

    def calls(self, tid: int, after: int, until: int) -> bool:
        """Whether it began a system call in a time."""
        return any(after < ts <= until for ts in self.began.get(tid, []))


class WhatIfs(Table):
    """Those of holds whose times without a CPU were not all seen may be missing, or begin with another one."""

    def judges(self, row: dict) -> bool:
        return not self.tolerates(row)


def table(trace: Trace, locks: Locks, threads: Threads) -> Table:
    """One row for each hold that ended, and whose holder could have run and did not."""
    waits: dict[Lock, list[Wait]] = {}
    for wait in locks.waits:
        waits.setdefault(wait.lock, []).append(wait)
    priorities, inside = Priorities(trace), Inside(trace)
    expected, doubtful = [], set()
    for tid, timeline in threads.timelines.items():
        holds = [hold for hold in locks.holds if hold.tid == tid and hold.kind != SEMAPHORE]
        delays: dict[Hold, list[Delay]] = {}
        for time in with_locks(timeline.delays, holds, locks.gone.get(tid)):
            for hold in time.held:
                delays.setdefault(hold, []).append(time.delay)
        for hold, mine in delays.items():
            if hold.end is None:
                continue
            values = row(threads, locks, hold, mine, waits.get(hold.lock, []), priorities, inside)
            doubt = any(delay.doubt for delay in mine)
            if doubt:
                doubtful.add((tid, hold.lock[1], hold.end.ts))
                unsure = ("dur", "tid", "lock", "ts")
                values = {name: value if name in unsure else Anything() for name, value in values.items()}
            checks = [] if doubt else [sums_to(hold.end.ts - mine[0].start)]
            expected.append(Expected(values, optional=doubt, checks=checks))

    def tolerates(found: dict) -> bool:
        # One of its times was not seen, and another one is the first.
        return (found["tid"], found["lock"], found["ts"] + found["dur"]) in doubtful

    return WhatIfs("what_ifs", ("ts", "tid", "lock"), expected, tolerates)


def row(
    threads: Threads,
    locks: Locks,
    hold: Hold,
    delays: list[Delay],
    waits: list[Wait],
    priorities: Priorities,
    inside: Inside,
) -> dict[str, Wanted]:
    """What is to be said of one hold."""
    tid, first = hold.tid, delays[0]
    start, end = first.start, hold.end.ts
    parts = threads.parts(tid, start, end)
    prio = priorities.before(tid, first.end)
    queue = [wait for wait in waits if wait.start < hold.end and not ended(wait, hold)]
    pressing = [wait.start.ts for wait in queue if urgent(priorities.at(wait.tid, end), prio)]
    ordinary, inheritable = Between(), Between()
    for delay in delays:
        shares = threads.occupants(tid, delay.start, delay.end)
        ordinary.add(shares, lambda other: other >= ORDINARY, delay.end - delay.start)
        there = [
            (rank, wait.start.ts)
            for wait in waits
            if wait.start.ts < delay.end and not over(wait, delay.end)
            if urgent(rank := priorities.at(wait.tid, delay.end), prio)
        ]
        if there:
            highest, since = (min(values) for values in zip(*there))
            most = delay.end - max(delay.start, since)
            inheritable.add(shares, lambda other, highest=highest: other > highest, most)
    lost = parts.ns["preempted"] + parts.ns["dispatch"]
    everybody = [wait.start.ts for wait in queue]

    def since(moment: int, begun: Iterable[int]) -> int:
        return sum(end - max(moment, ts) for ts in begun)

    figures: dict[str, Wanted] = {
        "waiters": len(queue),
        "waited_ns": since(start, everybody),
        "run_on_ns": since(start + parts.ns["running"], everybody),
        "urgent": len(pressing),
        "urgent_ns": since(start, pressing),
        "inherited_ns": inheritable.into(lambda ns: since(end - ns, pressing)),
        "prioritized_ns": ordinary.into(lambda ns: since(end - ns, everybody)),
        "own_cpu_ns": since(end - lost, everybody),
    }
    if hold.kind.endswith("-read"):
        figures = dict.fromkeys(figures)
    occupants = threads.occupants(tid, start, end)
    judged = mark(parts, occupants)
    if judged == EXACT and touched(locks.trace.losses, start, end):
        judged = OneOf((EXACT, LOWER_BOUND))
    return {
        "ts": start,
        "dur": end - start,
        "pid": hold.lock[0],
        "tid": tid,
        "comm": threads.named(tid),
        "prio": prio,
        "lock": hold.lock[1],
        "lock_name": locks.name(hold.lock),
        "kind": hold.kind,
        "site": hold.site,
        "place": hold.place,
        "cause": first.cause,
        "times": len(delays),
        **decomposition(parts),
        "bar": bar(threads, tid, first, parts.ns["blocked"], inside, end),
        **{name: value if judged == EXACT else Anything() for name, value in figures.items()},
        "agent_ns": agent(occupants, threads),
        "mark": judged,
    }


def bar(threads: Threads, tid: int, first: Delay, slept: int, inside: Inside, end: int) -> Wanted:
    """Why a time-slice extension, asked for at the acquisition, cannot have let the hold end."""
    if first.cause == "woken" or slept:
        return "sleep"
    left = next(s.state for s in threads.timelines[tid].stretches if s.start == first.start and s.doing == "preempted")
    if left == "R+" or inside.at(tid, first.end):
        return "kernel"
    return "call" if inside.calls(tid, first.end, end) else "nothing"


def urgent(prio: int | None, holder: int | None) -> bool:
    """Whether a waiter of this priority hands it on to a holder of that one."""
    return prio is not None and holder is not None and prio < ORDINARY and prio < holder


def ended(wait: Wait, hold: Hold) -> bool:
    """Whether a wait is over when a hold ends."""
    return wait.end < hold.end if wait.end else wait.cut is not None and wait.cut <= hold.end.ts


class Between:
    """A sum of which a part is not known: of a thread that had a CPU with one priority and then with another."""

    def __init__(self) -> None:
        self.low = self.high = 0

    def add(self, shares: Shares, is_meant: Callable[[int], bool], most: int) -> None:
        """Adds the time of those that are meant by their priority, so much at most."""
        others = {tid: ns for tid, ns in shares.ns.items() if tid != IDLE}
        self.low += min(most, sum(ns for tid, ns in others.items() if all(map(is_meant, shares.prios[tid]))))
        self.high += min(most, sum(ns for tid, ns in others.items() if any(map(is_meant, shares.prios[tid]))))

    def into(self, figure: Callable[[int], int]) -> Wanted:
        """A figure that grows with the sum."""
        low, high = figure(self.low), figure(self.high)
        return low if low == high else Within(low, high)
