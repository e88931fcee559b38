"""`blame` as it should be: the time in which a thread did not run, by what others did for which it waited.

The parts of each thread are those of the ledger, but for what is in doubt there; each of its sleeps is divided as the path of a request
would be. Where a record is missing on the way, only the sums of the parts are judged.
"""

from collections import Counter, defaultdict
from typing import Iterator

from ledger import ThreadTime
from paths import Doubt, Paths
from tables import Trace
from threads import Stretch, Threads

# From here on a row says no more than that there are so many waits.
MOST_DEPTH = 3
# From so many rows on, all others of a thread, a part and a call are one (`MAX_BLAMED`, twice).
MOST_ROWS = 2 * 65_536
# Of more pieces and wakings (`MAX_REMEMBERED`, half), not all may have been kept until they are needed.
MOST_KEPT = 1 << 17
# Pieces of sleeps that are looked at.
MOST_PIECES = 200_000

Sums = Counter[tuple[str, int, str]]


class Lost:
    """What the rows of each thread sum to."""

    name = "blame"

    def __init__(self, trace: Trace, threads: Threads, ledger: ThreadTime, paths: Paths) -> None:
        self.left = MOST_PIECES
        self.has_sums_alone = False
        self.parts: dict[int, Counter[str]] = {}
        self.sleeps: dict[int, Sums] = {}
        # How much of each part may be of another one.
        self.doubtful = {tid: account.doubtful_ns for tid, account in ledger.accounts.items()}
        # Of each thread, what a quota kept it from the CPU, and what timers came late by.
        self.withheld: dict[int, Counter[str]] = {}
        self.until = {(sleep.tid, sleep.ts): sleep.until for sleep in trace.sleeps}
        if sum(len(line.stretches) for line in threads.timelines.values()) + len(trace.wakings) > MOST_KEPT:
            self.left = 0
        for tid, account in ledger.accounts.items():
            parts = Counter({part: ns.total() for part, ns in account.ns.items() if part != "running"})
            parts["unexplained"] -= account.ns["unexplained"]["in gaps"]
            self.parts[tid] = +parts
            try:
                late: Counter[str] = Counter()
                self.sleeps[tid] = self.divided(tid, threads.timelines[tid].stretches, paths, late)
                self.withheld[tid] = late
            except Doubt:
                pass
        for throttle in trace.throttles:
            if (mine := self.withheld.get(throttle.tid)) is None:
                continue
            end = throttle.ts + throttle.dur
            for stretch in threads.timelines[throttle.tid].stretches:
                if stretch.doing in ("preempted", "dispatch"):
                    mine["quota"] += max(0, min(end, stretch.end) - max(throttle.ts, stretch.start))

    def divided(self, tid: int, stretches: list[Stretch], paths: Paths, late: Counter[str]) -> Sums:
        """All sleeps of a thread, by what was done meanwhile."""
        sums: Sums = Counter()
        for sleep in sleeps(stretches):
            if sleep.doubt or self.left <= 0:
                raise Doubt
            if sleep.end == stretches[-1].end and (tid, sleep.end) not in paths.wakings:
                sums["blocked", 0, "unknown"] += sleep.end - sleep.start
                continue
            for piece in paths.asleep(tid, sleep, sleep, "", 0):
                self.left -= 1
                if piece.loose:
                    raise Doubt
                sums["blocked", min(piece.depth, MOST_DEPTH), piece.kind] += piece.end - piece.start
                until = self.until.get((tid, sleep.start))
                if piece.kind == "timer" and piece.depth == 0 and until is not None:
                    late["late timer"] += max(0, piece.end - max(until, piece.start))
        return +sums

    def judges(self, row: dict) -> bool:
        """Whether a row that is there must be as expected."""
        return row["part"] == "blocked" and row["tid"] in self.sleeps and not self.has_sums_alone

    def differences(self, rows: list[dict]) -> list[str]:
        """One line for each sum that differs."""
        parts: defaultdict[int, Counter[str]] = defaultdict(Counter)
        divided: defaultdict[int, Sums] = defaultdict(Counter)
        withheld: defaultdict[int, Counter[str]] = defaultdict(Counter)
        for row in rows:
            if row["withheld"] in ("quota", "late timer"):
                withheld[row["tid"]][row["withheld"]] += row["ns"]
            parts[row["tid"]][row["part"]] += row["ns"]
            if row["part"] == "blocked":
                divided[row["tid"]]["blocked", row["depth"], row["kind"]] += row["ns"]
        compared = [(tid, self.doubtful[tid], sums, parts[tid]) for tid, sums in self.parts.items()]
        self.has_sums_alone = len(rows) >= MOST_ROWS
        if not self.has_sums_alone:
            compared += [(tid, 0, sums, divided[tid]) for tid, sums in self.sleeps.items()]
            compared += [(tid, self.doubtful[tid], sums, withheld[tid]) for tid, sums in self.withheld.items()]
        return [
            f"blame tid={tid}: {what}: {found[what]} and not {expected[what]} (in doubt: {doubtful})"
            for tid, doubtful, expected, found in compared
            for what in sorted({*expected, *found}, key=str)
            if abs(expected[what] - found[what]) > doubtful
        ] + [f"blame tid={tid}: not expected" for tid in parts if tid not in self.parts]

    def narrowed(self, rows: list[dict], _row: dict) -> tuple["Lost", list[dict]]:
        """All: each sum is of many rows."""
        return self, rows

    def accepts(self, _row: dict, _column: str, _value: object) -> bool:
        """Whether another value would be as right."""
        return False


def sleeps(stretches: list[Stretch]) -> Iterator[Stretch]:
    """Each sleep as a whole."""
    last: Stretch | None = None
    for stretch in stretches:
        if stretch.doing == "blocked" and last and last.end == stretch.start:
            last = last._replace(end=stretch.end, doubt=last.doubt or stretch.doubt)
            continue
        if last:
            yield last
        last = stretch if stretch.doing == "blocked" and stretch.end > stretch.start else None
    if last:
        yield last
