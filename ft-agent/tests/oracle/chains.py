"""The call chains that waits for locks, held-up holders and wake-ups have, by what `call_chains` says of their time."""

from pathlib import Path
from typing import Iterable

from compare import Expected, Table
from tables import results


class Chains:
    """The rows of `call_chains`, of each thread and of each that was woken, in the order of time."""

    def __init__(self, directory: Path) -> None:
        rows = sorted(results(directory, "call_chains"), key=lambda row: row["ts"])
        self.left: dict[int, list[dict]] = {}
        self.woken: dict[int, list[dict]] = {}
        for row in rows:
            by, tid = (self.woken, row["woken_tid"]) if row["kind"] == "wake" else (self.left, row["tid"])
            by.setdefault(tid, []).append(row)

    def judge(self, tables: Iterable[object]) -> None:
        """Adds the column `stack` to what is expected of these tables."""
        of = {"lock_waits": self.longest_sleep, "lock_preemptions": self.left_at, "dispatch_latency": self.waker}
        for table in tables:
            if isinstance(table, Table) and table.name in of:
                for expected in table.expected:
                    expected.values["stack"] = of[table.name](expected)

    def longest_sleep(self, wait: Expected) -> int | None:
        """Of those in the wait; the first of equal ones."""
        begin, end = interval(wait)
        sleeps = [r for r in self.left.get(wait.values["tid"], []) if r["kind"] == "wait" and begin <= r["ts"] <= end]
        sleeps = [row for row in sleeps if row["stack"] is not None]
        return max(sleeps, key=lambda row: row["dur"])["stack"] if sleeps else None

    def left_at(self, time: Expected) -> int | None:
        """Where the thread left the CPU that it had no longer."""
        begin, end = interval(time)
        chains = [r for r in self.left.get(time.values["tid"], []) if r["ts"] < end and r["ts"] + r["dur"] > begin]
        chains = [row for row in chains if row["stack"] is not None]
        return chains[-1]["stack"] if chains else None

    def waker(self, wake: Expected) -> int | None:
        """Where the waker was, as soon as it had woken the thread."""
        begin, end = interval(wake)
        waker = wake.values["waker_tid"]
        chains = [r for r in self.woken.get(wake.values["tid"], []) if begin <= r["ts"] <= end and r["tid"] == waker]
        chains = [row for row in chains if row["stack"] is not None]
        return chains[0]["stack"] if chains else None


def interval(expected: Expected) -> tuple[int, int]:
    """From when to when."""
    return expected.values["ts"], expected.values["ts"] + expected.values["dur"]
