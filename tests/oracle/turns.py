"""Which thread ran which task when: whose time an interval is that begins in a task, an async one or a fiber."""

from collections import Counter
from typing import NamedTuple

from compare import Anything, Wanted, Within
from cpus import Shares
from tables import Trace
from threads import WAITS, Parts, Threads

# A process, a registration of it, a number.
Id = tuple[int, int, int]
# A thread, from when, until when.
Time = tuple[int, int, int]


class Turn(NamedTuple):
    """One turn of a task: the places of its begin and end among all events."""

    tid: int
    begin: int
    end: int


class Turns:
    """All turns of all tasks."""

    def __init__(self, trace: Trace) -> None:
        self.events = trace.events
        # At each event, the tasks that its thread runs, the outermost first; and whether one is a fiber.
        self.running: list[tuple[Id, ...]] = []
        self.fibers: list[bool] = []
        self.turns: dict[Id, list[Turn]] = {}
        # Tasks of which not all turns are known from begin to end.
        self.unsure: set[Id] = set()
        self.last = len(trace.events)
        self.lost = {loss.pid for loss in trace.losses if loss.origin not in ("kernel", "kernel-skipped", "child")}
        polls: dict[int, list[tuple[Id, bool]]] = {}
        since: dict[tuple[int, Id], int] = {}
        for at, event in enumerate(trace.events):
            site, mine = trace.sites.get(event.site), polls.setdefault(event.tid, [])
            kind = site.kind if site else ""
            task = (event.pid, site.source if site else 0, event.arg0)
            before = {id for id, _ in mine}
            if kind == "task_polled" and (task in before):
                del mine[max(i for i, poll in enumerate(mine) if poll[0] == task)]
            elif kind == "task_switch":
                fiber = next((i for i, poll in enumerate(mine) if poll[1]), len(mine))
                # A poll in a fiber that is left goes on with it, and nobody tells when.
                self.unsure |= {id for id, _ in mine[fiber + 1 :]}
                del mine[fiber:]
            if kind == "task_poll" or kind == "task_switch" and event.arg0:
                mine.append((task, kind == "task_switch"))
            after = {id for id, _ in mine}
            again = {task} if kind == "task_switch" and task in before and task in after else set()
            for id in before - after | again:
                self.turns.setdefault(id, []).append(Turn(event.tid, since.pop((event.tid, id)), at))
            for id in after - before | again:
                if any(other == id for _, other in since):
                    self.unsure.add(id)
                since[event.tid, id] = at
            self.running.append(tuple(id for id, _ in mine))
            self.fibers.append(any(is_fiber for _, is_fiber in mine))
        for (tid, id), begin in since.items():
            self.turns.setdefault(id, []).append(Turn(tid, begin, self.last))

    def task(self, at: int) -> Id | None:
        """The innermost task of an event's thread."""
        return self.running[at][-1] if self.running[at] else None

    def judged(self, begin: int) -> bool:
        """Whether it is known whose time it is what begins at an event."""
        task = self.task(begin)
        return task is None or task not in self.unsure and task[0] not in self.lost

    def times(self, begin: int, end: int) -> list[Time]:
        """The times of threads that belong to an interval from one event to another."""
        task, first, last = self.task(begin), self.events[begin], self.events[end]
        if task is None:
            return [(first.tid, first.ts, last.ts)]
        turns = sorted(turn for turn in self.turns[task] if turn.begin <= end and turn.end > begin)
        turns.sort(key=lambda turn: turn.begin)
        ends = [last.ts if turn.end >= end else self.events[turn.end].ts for turn in turns]
        return [
            (turn.tid, max(first.ts, self.events[turn.begin].ts), until) for turn, until in zip(turns, ends)
        ]

    @staticmethod
    def parts(threads: Threads, times: list[Time], dur: int) -> Parts:
        """Where their time went, and what of the whole was none of it."""
        all_parts = [threads.parts(*time) for time in times]
        ns: Counter[str] = Counter()
        for parts in all_parts:
            ns.update(parts.ns)
        ns["parked"] = dur - sum(until - since for _, since, until in times)
        doubtful = sum(parts.doubtful_ns for parts in all_parts)
        begin = times[0][1]
        # What is missing while the task was parked may have been a turn of it.
        edge = any(parts.doubtful_edge for parts in all_parts) or threads.lost_in(begin, begin + dur)
        return Parts(ns, doubtful, edge)

    @staticmethod
    def occupants(threads: Threads, times: list[Time], doing: tuple[str, ...] = WAITS) -> Shares:
        """Who had the CPU while they could run and did not."""
        shares = Shares()
        for time in times:
            shares.merge(threads.occupants(*time, doing))
        return shares

    @staticmethod
    def counts(threads: Threads, times: list[Time]) -> dict[str, Wanted]:
        """How often something happened in them. What counters show is not told of several."""
        if len(times) == 1:
            return threads.counts.between(*times[0])
        each = [threads.counts.within(tid, [(since, until)], True) for tid, since, until in times]
        names = [name for name in each[0] if "counter" not in name]
        return {name: sum_of([row[name] for row in each]) for name in names} | {"counter0": None, "counter1": None}


def sum_of(counts: list[Wanted]) -> Wanted:
    """That of counts which are known, or known to lie between two."""
    if any(count is None for count in counts):
        return None
    if not all(isinstance(count, (int, Within)) for count in counts):
        return Anything()
    low = sum(count.low if isinstance(count, Within) else count for count in counts)
    high = sum(count.high if isinstance(count, Within) else count for count in counts)
    return low if low == high else Within(low, high)
