"""`call_chains` beside `sched_switch`: each chain is of a time off the CPU, and each long one has a chain.

Both are raw tables, of two programs at one tracepoint, which read the clock one after the other; so times need not be equal,
but belong to the same switch.
"""

from bisect import bisect_left
from typing import NamedTuple

from cpus import KERNEL, touched
from tables import Loss, Switch, Trace

# Times off the CPU that are so many times as long as the shortest that has a chain must have one. What a hypervisor takes
# between the two readings of the clock is a part of one of them alone.
SURELY = 50

RUNNABLE = ("R", "R+")


class Away(NamedTuple):
    """A time off the CPU: from one switch of a thread to its next."""

    left: Switch
    came: Switch
    # When it left again, if it did.
    next: int | None
    # No switch of the thread is missing since the time before.
    whole: bool
    # It must have a chain: it is long, nothing is missing, and the thread was recorded before.
    surely: bool


class Taken:
    """Judges the table as a whole."""

    name = "call_chains"

    def __init__(self, trace: Trace, shortest: int, only: int | None = None) -> None:
        self.trace, self.shortest, self.only = trace, shortest, only
        self.losses = [loss for loss in trace.losses if loss.origin == "agent" or loss.origin in KERNEL]
        self.aways = aways(trace, shortest, self.losses)

    def differences(self, rows: list[dict]) -> list[str]:
        """One line for each chain of no time off the CPU or of another one, and for each long one that has none, or two."""
        lines, seen = [], set()
        for row in rows:
            if row["kind"] == "wake":
                continue
            away = self.away(row)
            if away is None:
                continue
            faults = list(self.faults(row, away))
            if (key := (row["tid"], away.left.ts)) in seen:
                faults.append("a second one")
            seen.add(key)
            lines += [f"call_chains tid={row['tid']} ts={row['ts']}: {fault}" for fault in faults]
        for tid, mine in self.aways.items():
            if self.only in (None, tid):
                missing = [a.left.ts for a in mine if a.surely and a.next and (tid, a.left.ts) not in seen]
                lines += [f"call_chains tid={tid} left={ts}: missing" for ts in missing]
        return lines

    def away(self, row: dict) -> Away | None:
        """The time that a chain is of; none where switches are missing."""
        mine = self.aways.get(row["tid"], [])
        at = bisect_left(mine, row["ts"], key=lambda away: away.came.ts)
        if at == len(mine) or not mine[at].whole or touched(self.losses, mine[at].left.ts, mine[at].came.ts):
            return None
        if self.losses and row["ts"] + row["dur"] <= mine[at].left.ts:
            # It is of an earlier one, whose switches are missing.
            return None
        return mine[at]

    def faults(self, row: dict, away: Away) -> list[str]:
        """What of a chain is not of this time."""
        kind = "preempted" if away.left.prev_state in RUNNABLE else "wait"
        end = row["ts"] + row["dur"]
        return [
            what
            for what, wrong in (
                (f"kind is {row['kind']}, should be {kind}", row["kind"] != kind),
                (f"cpu is {row['cpu']}, should be {away.came.cpu}", row["cpu"] != away.came.cpu),
                ("shorter than any", row["dur"] < self.shortest),
                ("it ends at another switch", not away.left.ts < end < (away.next or end + 1)),
            )
            if wrong
        ]

    def judges(self, row: dict) -> bool:
        """Whether its absence would be noticed."""
        away = None if row["kind"] == "wake" else self.away(row)
        return away is not None and away.surely and away.next is not None

    def narrowed(self, rows: list[dict], row: dict) -> tuple["Taken", list[dict]]:
        """What concerns one row."""
        near = Taken.__new__(Taken)
        near.trace, near.shortest, near.only, near.aways = self.trace, self.shortest, row["tid"], self.aways
        near.losses = self.losses
        return near, [other for other in rows if other["tid"] == row["tid"]]

    def accepts(self, row: dict, column: str, value: object) -> bool:
        """No other value of what is judged is right."""
        return False


def aways(trace: Trace, shortest: int, losses: list[Loss]) -> dict[int, list[Away]]:
    """The times off the CPU of each thread that the recording observes."""
    # The kernel tells of wakings of such threads alone: from the first on a thread is one of them.
    since: dict[int, int] = {}
    for waking in trace.wakings:
        since.setdefault(waking.tid, waking.ts)
    # Its program begins later than that of the switches.
    first = min((chain.ts for chain in trace.chains if chain.kind != "wake"), default=trace.end())
    left: dict[int, Switch] = {}
    broken: set[int] = set()
    found: dict[int, list[Away]] = {}
    for switch in trace.switches:
        if (tid := switch.next_tid) in since:
            if gone := left.pop(tid, None):
                long = switch.ts - gone.ts >= SURELY * shortest and gone.ts > max(since[tid], first)
                surely = long and not touched(losses, gone.ts, switch.ts)
                whole = tid not in broken
                found.setdefault(tid, []).append(Away(gone, switch, None, whole, surely and whole))
                broken.discard(tid)
            else:
                broken.add(tid)
        if (tid := switch.prev_tid) in since:
            if tid in left:
                broken.add(tid)
            left[tid] = switch
            if (mine := found.get(tid)) and mine[-1].next is None:
                # Its chain is recorded behind the switch with which it came, and may be missing on its own.
                surely = mine[-1].surely and not touched(losses, mine[-1].came.ts, switch.ts)
                mine[-1] = mine[-1]._replace(next=switch.ts, surely=surely)
    return found
