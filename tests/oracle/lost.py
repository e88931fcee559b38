"""`blame` as it should be: the time in which a thread did not run, by what others did for which it waited.

The parts of each thread are those of the ledger, but for what is in doubt there; each of its sleeps is divided as the path of a request
would be. Where a record is missing on the way, only the sums of the parts are judged.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from itertools import takewhile
from typing import Hashable, Iterable, Iterator, NamedTuple

from ledger import ThreadTime
from paths import Doubt, Paths, Piece, is_timer
from tables import Sleep, Trace
from threads import Stretch, Threads

# From here on a row says no more than that there are so many waits.
MOST_DEPTH = 3
# From so many rows on, all others of a thread, a part and a call are one (`MAX_BLAMED`, twice).
MOST_ROWS = 2 * 65_536
# Of more pieces and wakings (`MAX_REMEMBERED`, half), not all may have been kept until they are needed.
MOST_KEPT = 1 << 17
# Pieces of sleeps that are looked at.
MOST_PIECES = 200_000
# Parts of a wait that its own timers have cut (`MAX_PARTS`).
MOST_PARTS = 1 << 12
# Calls in which another thread can say something, whatever they are about.
HEARS = "futex futex_wait flock fcntl poll ppoll select pselect6".split()

Sums = Counter[tuple[str, bool, int, str]]


class GoesOn(NamedTuple):
    """A part of a wait that a timer has ended: who has ended the wait at last, and when."""

    slept: Stretch
    waker: int
    end: int


class Lost:
    """What the rows of each thread sum to."""

    name = "blame"

    def __init__(self, trace: Trace, threads: Threads, ledger: ThreadTime, paths: Paths) -> None:
        self.left = MOST_PIECES
        self.has_sums_alone = False
        self.parts: dict[int, Counter[str]] = {}
        self.sleeps: dict[int, Sums] = {}
        # How much of each part may be of another one.
        self.doubtful = Counter({tid: account.doubtful_ns for tid, account in ledger.accounts.items()})
        # Of each thread, what a quota kept it from the CPU, and what timers came late by.
        self.withheld: dict[int, Counter[str]] = {}
        # Of these latenesses, those that nobody tells, for the way from the sleep to a CPU is in doubt.
        self.untold: Counter[int] = Counter()
        self.asleep = {(sleep.tid, sleep.ts): sleep for sleep in trace.sleeps}
        # Of each thread, the parts of its waits that went on, if they were asked for.
        self.parts_of: dict[int, list[GoesOn]] = {}
        self.pids = {thread.tid: thread.pid for thread in trace.threads}
        self.stacks: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for chain in trace.chains:
            if chain.kind != "wake" and chain.stack is not None:
                self.stacks[chain.tid].append((chain.ts, chain.stack))
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

    def waits(self, tid: int, paths: Paths) -> Iterator[tuple[Stretch, list[Stretch], int | str | None]]:
        """All sleeps of a thread, each with the parts before it that timers had cut, and who has ended it."""
        stretches = paths.threads.timelines[tid].stretches
        parts: deque[Stretch] = deque()
        waits_at: Hashable = None
        runs = [stretch.start for stretch in stretches if stretch.doing == "running"]
        for sleep in sleeps(stretches):
            if sleep.doubt:
                raise Doubt
            waker = self.waker(tid, sleep.end, paths)
            next_run = bisect_left(runs, sleep.end)
            place = self.place(tid, sleep.start, runs[next_run] if next_run < len(runs) else sleep.end)
            cut = waker == "timer" and self.may_go_on(tid, sleep.start)
            if parts and (place != waits_at or not cut and not isinstance(waker, int)):
                yield from ((part, [], "timer") for part in parts)
                parts.clear()
            if cut:
                waits_at = place
                parts.append(sleep)
                if len(parts) > MOST_PARTS:
                    yield parts.popleft(), [], "timer"
                continue
            yield sleep, list(parts), waker
            parts.clear()
        yield from ((part, [], "timer") for part in parts)

    def divided(self, tid: int, stretches: list[Stretch], paths: Paths, late: Counter[str]) -> Sums:
        """All sleeps of a thread, by what was done meanwhile."""
        sums: Sums = Counter()
        for sleep, parts, waker in self.waits(tid, paths):
            if self.left <= 0:
                raise Doubt
            if sleep.end == stretches[-1].end and (tid, sleep.end) not in paths.wakings:
                sums["blocked", False, 0, "unknown"] += sleep.end - sleep.start
                continue
            for part in parts:
                goes_on = GoesOn(part, waker, sleep.end)
                self.add(sums, self.meanwhile(tid, goes_on, (part.start, part.end), 0, paths, [tid]), True)
            pieces = list(self.through(paths.asleep(tid, sleep, sleep, "", 0), sleep.end, paths, [tid]))
            self.add(sums, pieces, False)
            known = self.asleep.get((tid, sleep.start))
            for piece in pieces:
                if known and known.until is not None and piece.kind == "timer" and piece.depth == 0:
                    ns = max(0, piece.end - max(known.until, piece.start))
                    late["late timer"] += ns
                    self.untold[tid] += ns if in_doubt(stretches, sleep.end) else 0
        return +sums

    def add(self, sums: Sums, pieces: Iterable[Piece], again: bool) -> None:
        """Sums what was done; `again`: in a part of a wait that goes on."""
        for piece in pieces:
            self.left -= 1
            if piece.loose:
                raise Doubt
            sums["blocked", again, min(piece.depth, MOST_DEPTH), piece.kind] += piece.end - piece.start

    def meanwhile(
        self, tid: int, part: GoesOn, when: tuple[int, int], depth: int, paths: Paths, waiters: list[int]
    ) -> Iterator[Piece]:
        """What the one did who ended a wait at last, in some of a part of it that a timer had ended."""
        start, end = when
        pieces = paths.path(part.waker, part.slept.start, part.end, depth + 1, "", tid)
        within = (p._replace(start=max(p.start, start), end=min(p.end, end)) for p in pieces)
        yield from self.through((p for p in within if p.end > p.start), part.end, paths, waiters)

    def through(self, pieces: Iterable[Piece], over: int, paths: Paths, waiters: list[int]) -> Iterator[Piece]:
        """The same, on through those whose own waits, over by then, timers had cut."""
        for piece in pieces:
            if piece.depth > 0 and piece.tid in waiters[:-1]:
                raise Doubt
            part = self.part(piece, paths) if piece.depth > 0 and piece.kind == "timer" else None
            if part is None or part.end > over:
                yield piece
                continue
            if piece.tid in waiters:
                raise Doubt
            around = [*waiters, piece.tid]
            yield from self.meanwhile(piece.tid, part, (piece.start, piece.end), piece.depth, paths, around)

    def part(self, piece: Piece, paths: Paths) -> GoesOn | None:
        """The part of a wait in which a thread sleeps, if it went on."""
        if piece.tid not in self.parts_of:
            found = self.waits(piece.tid, paths)
            self.parts_of[piece.tid] = [GoesOn(part, waker, sleep.end) for sleep, parts, waker in found for part in parts]
        parts = self.parts_of[piece.tid]
        at = bisect_right(parts, piece.start, key=lambda part: part.slept.start)
        return parts[at - 1] if at and piece.start < parts[at - 1].slept.end else None

    def waker(self, tid: int, end: int, paths: Paths) -> int | str | None:
        """The thread that ends a sleep, or a timer, if it is known."""
        waking = paths.wakings.get((tid, end))
        if waking is None:
            return None
        found = paths.interrupt(waking)
        if found and not found[1]:
            return "timer" if is_timer(found[0]) else None
        return waking.waker_tid if waking.waker_tid in paths.threads.observed else None

    def may_go_on(self, tid: int, start: int) -> bool:
        """Whether it is a sleep that another thread may end, for no time, nor for the end of a thread."""
        sleep = self.asleep.get((tid, start))
        if sleep is None or sleep.call is None or sleep.until is not None:
            return False
        own = self.pids.get(tid)
        joins = sleep.call == "futex" and sleep.argument2 != tid and self.pids.get(sleep.argument2 or 0) == own
        hears = sleep.call in HEARS or sleep.call.startswith("epoll") or sleep.file in ("pipe", "socket", "eventfd")
        return hears and not joins

    def place(self, tid: int, start: int, end: int) -> Hashable:
        """Where a thread sleeps: in a call, and there in the code, or else for what."""
        sleep = self.asleep.get((tid, start))
        chains = self.stacks[tid]
        at = bisect_left(chains, (end, -1 << 63))
        stack = chains[at - 1][1] if at and chains[at - 1][0] >= start else None
        what = sleep and self.object(sleep)
        return sleep and sleep.call, what if stack is None else stack

    @staticmethod
    def object(sleep: Sleep) -> int | None:
        """The futex or the descriptor."""
        is_futex = sleep.call in ("futex", "futex_wait")
        return sleep.argument0 if is_futex or sleep.file is not None else None

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
                divided[row["tid"]]["blocked", row["again"], row["depth"], row["kind"]] += row["ns"]
        compared = [(tid, self.doubtful[tid], sums, parts[tid]) for tid, sums in self.parts.items()]
        self.has_sums_alone = len(rows) >= MOST_ROWS
        if not self.has_sums_alone:
            compared += [(tid, 0, sums, divided[tid]) for tid, sums in self.sleeps.items()]
            loose = self.doubtful + self.untold
            compared += [(tid, loose[tid], sums, withheld[tid]) for tid, sums in self.withheld.items()]
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


def in_doubt(stretches: list[Stretch], end: int) -> bool:
    """Whether something is missing on the way from the end of a sleep to a CPU."""
    at = bisect_left(stretches, end, key=lambda stretch: stretch.start)
    way = takewhile(lambda stretch: stretch.doing != "blocked", stretches[at:])
    return any(stretch.doubt for stretch in takewhile(lambda stretch: stretch.doing != "running", way))


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
