"""What waits could have been spared had their holders, and whoever those waited for, always had a CPU: a column of `lock_waits`."""

from collections import defaultdict

from compare import Anything, Wanted
from cpus import touched
from locks import SEMAPHORE, Hold, Lock, Locks, Wait
from threads import Threads


class NotKnown(Exception):
    """Something of a hold or a wait is missing: nothing is promised."""


class Spared:
    """Goes from each wait to the holds in it, and from each hold to the waits in it, however often it comes to one."""

    def __init__(self, locks: Locks, threads: Threads) -> None:
        self.trace, self.threads = locks.trace, threads
        self.holds: defaultdict[Lock, list[Hold]] = defaultdict(list)
        self.waits: defaultdict[int, list[Wait]] = defaultdict(list)
        self.strays = locks.strays
        for hold in locks.holds:
            if hold.kind != SEMAPHORE:
                self.holds[hold.lock].append(hold)
        for wait in locks.waits:
            self.waits[wait.tid].append(wait)
        self.known: dict[Hold, int] = {}

    def column(self, wait: Wait) -> Wanted:
        """Of a wait that ended with the lock."""
        assert wait.end
        try:
            return min(self.of(wait), wait.end.ts - wait.start.ts)
        except NotKnown:
            return Anything()

    def of(self, wait: Wait) -> int:
        """The sum over the holds that ended in it and left the lock to nobody."""
        if wait.end is None or any(lock == wait.lock and wait.start < at < wait.end for at, lock in self.strays):
            raise NotKnown
        total = 0
        for hold in self.holds[wait.lock]:
            if hold.dropped and wait.start < hold.dropped < wait.end:
                raise NotKnown
            if hold.end and wait.start < hold.end < wait.end and not self.stays_taken(hold):
                total += max(0, hold.end.ts - max(self.earliest(hold), wait.start.ts))
        return total

    def stays_taken(self, hold: Hold) -> bool:
        """Whether other readers have the lock when one releases it."""
        assert hold.end

        def has_it(other: Hold) -> bool:
            assert hold.end
            over = other.end or other.dropped
            return other is not hold and other.start < hold.end and (over is None or hold.end < over)

        return hold.kind.endswith("-read") and any(map(has_it, self.holds[hold.lock]))

    def earliest(self, hold: Hold) -> int:
        """When it could have ended."""
        assert hold.end
        if hold not in self.known:
            start, end = hold.start.ts, hold.end.ts
            parts = self.threads.parts(hold.tid, start, end)
            if parts.doubtful_ns or parts.doubtful_edge or touched(self.trace.losses, start, end):
                raise NotKnown
            without = sum(parts.ns[part] for part in ("preempted", "dispatch", "unexplained"))
            within = [w for w in self.waits[hold.tid] if hold.start < w.start < hold.end]
            self.known[hold] = max(start, end - without - sum(map(self.of, within)))
        return self.known[hold]
