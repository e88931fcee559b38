"""Where in the code threads were when they left the CPU, or woke others: what `call_chains` says of a time."""

from typing import Iterable

from compare import Expected, Table
from tables import Chain, Trace


class Chains:
    """The call chains of each thread that left the CPU, and of who woke it, in the order of time."""

    def __init__(self, trace: Trace) -> None:
        self.left: dict[int, list[Chain]] = {}
        self.woken: dict[int, list[Chain]] = {}
        for chain in trace.chains:
            by, tid = (self.woken, chain.woken_tid) if chain.kind == "wake" else (self.left, chain.tid)
            by.setdefault(tid, []).append(chain)

    def sleeps(self, tid: int, start: int, end: int) -> list[Chain]:
        """Of a thread that began to wait in a time; those that were kept."""
        chains = [c for c in self.left.get(tid, []) if c.kind == "wait" and start <= c.ts <= end]
        return [chain for chain in chains if chain.stack is not None]

    def wakers(self, tid: int, by: int, start: int, end: int) -> list[int | None]:
        """Of one that woke a thread in a time."""
        return [c.stack for c in self.woken.get(tid, []) if c.tid == by and start <= c.ts <= end]

    def judge(self, tables: Iterable[object]) -> None:
        """Adds the column `stack` to what is expected of these tables."""
        of = {"lock_waits": self.longest_sleep, "lock_preemptions": self.left_at, "dispatch_latency": self.waker}
        for table in tables:
            if isinstance(table, Table) and table.name in of:
                for expected in table.expected:
                    expected.values["stack"] = of[table.name](expected)

    def longest_sleep(self, wait: Expected) -> int | None:
        """Of those in the wait; the first of equal ones."""
        longest = max(self.sleeps(wait.values["tid"], *interval(wait)), key=lambda c: c.dur, default=None)
        return longest and longest.stack

    def left_at(self, time: Expected) -> int | None:
        """Where the thread left the CPU that it had no longer."""
        start, end = interval(time)
        chains = [c for c in self.left.get(time.values["tid"], []) if c.ts < end and c.ts + c.dur > start]
        return next((c.stack for c in reversed(chains) if c.stack is not None), None)

    def waker(self, wake: Expected) -> int | None:
        """Where the waker was, as soon as it had woken the thread."""
        stacks = self.wakers(wake.values["tid"], wake.values["waker_tid"], *interval(wake))
        return next((stack for stack in stacks if stack is not None), None)


def interval(expected: Expected) -> tuple[int, int]:
    """From when to when."""
    return expected.values["ts"], expected.values["ts"] + expected.values["dur"]
