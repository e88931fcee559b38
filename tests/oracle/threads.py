"""What each thread did when: running, preempted, waiting to be dispatched, or blocked."""

from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import dropwhile, groupby, pairwise
from typing import Callable, Iterator, NamedTuple

from compare import OneOf
from counts import Counts
from cpus import Cpus, Shares, kernel_losses, missed_interrupts, touched
from tables import Irq, Migrate, Sleep, Switch, Trace, Waking

PARTS = ["running", "preempted", "dispatch", "blocked", "hardirq", "softirq", "vector", "unexplained"]
# Of an interval of a task, all of them: in what is parked no thread ran the task.
OF_TASKS = [*PARTS, "parked"]
# The parts in which a thread could run and did not.
WAITS = ("preempted", "dispatch")
# `state` of a thread that runs although no switch let it.
UNSEEN = "unseen"
# `prev_state` of a thread that does not come back.
DEAD = ("X", "Z")
IRQ_PARTS = {"hard": "hardirq", "soft": "softirq", "vector": "vector"}


class Wakes(NamedTuple):
    """A thread wakes another, or an interrupt does that strikes it: it has a CPU."""

    ts: int
    cpu: int


class Stretch(NamedTuple):
    """A time in which a thread did one thing, at one CPU."""

    start: int
    end: int
    # `running`, `preempted`, `dispatch` (woken, not running yet), `blocked`, `unknown`.
    doing: str
    # Where it ran, or for which it waited.
    cpu: int
    # The `prev_state` with which it left; of one that runs, whether its coming was not recorded.
    state: str
    # A record of it is missing here.
    doubt: bool


class Delay(NamedTuple):
    """A time in which a thread could run and did not: from a switch or a waking to the next switch."""

    start: int
    end: int
    # `preempted` or `woken`.
    cause: str
    waking: Waking | None
    # On which CPU it then ran, and with which name and priority.
    cpu: int
    comm: str
    prio: int
    migrated: bool
    doubt: bool


class Parts(NamedTuple):
    """Where the time of an interval went."""

    ns: Counter[str]
    # Of all of them: time in which something is missing, so that it may belong to another part.
    doubtful_ns: int
    # Something is missing just outside: before, at the edge, or of the CPU on which it is.
    doubtful_edge: bool = False


class Timeline:
    """One thread, which may have left for good."""

    def __init__(self, stretches: list[Stretch], delays: list[Delay], ended: bool) -> None:
        self.stretches = stretches
        self.delays = delays
        self.ended = ended
        self.starts = [s.start for s in stretches]

    def during(self, start: int, end: int) -> Iterator[Stretch]:
        """Its stretches in a time, cut to it."""
        at = max(bisect_right(self.starts, start) - 1, 0)
        for s in self.stretches[at:]:
            if s.start >= end:
                break
            cut = s._replace(start=max(s.start, start), end=min(s.end, end))
            if cut.end > cut.start:
                yield cut


class Threads:
    """The timelines of all observed threads."""

    def __init__(self, trace: Trace, cpus: Cpus, end: int) -> None:
        self.trace, self.cpus, self.end = trace, cpus, end
        self.observed = {t.tid for t in trace.threads if t.observed}
        self.comms: dict[int, set[str]] = {0: {"swapper"}}
        self.pids = {t.tid: t.pid for t in trace.threads}
        # The threads of the process that recorded, where the trace says so.
        recorded_by = {t.tid for t in trace.threads if t.pid == trace.agent_pid}
        self.agents = None if trace.agent_pid is None else recorded_by
        self.irqs: dict[int, list[Irq]] = {}
        for irq in trace.irqs:
            self.irqs.setdefault(irq.cpu, []).append(irq)
        self.irq_starts = {cpu: [irq.ts for irq in irqs] for cpu, irqs in self.irqs.items()}
        self.missed = missed_interrupts(trace)
        self.losses = kernel_losses(trace)
        self.longest_irq = max((irq.dur for irq in trace.irqs), default=0)
        self.scheduled = {tid for switch in trace.switches for tid in (switch.prev_tid, switch.next_tid)}
        self.scheduled |= {waking.tid for waking in trace.wakings}
        self.timelines = self.walk()
        self.counts = Counts(trace)

    def walk(self) -> dict[int, Timeline]:
        """Sorts the records by thread; of equal time: waking, move, switch, whatever shows it running."""
        records: dict[int, list[tuple[int, int, int, object]]] = {t: [] for t in self.observed}

        def note(tid: int, rank: int, row) -> None:
            if tid in records:
                records[tid].append((row.ts, rank, len(records[tid]), row))

        for thread in self.trace.threads:
            self.comms.setdefault(thread.tid, set()).add(thread.name)
        for task in self.trace.tasks:
            self.comms.setdefault(task.tid, set()).add(task.comm)
        for waking in self.trace.wakings:
            note(waking.tid, 0, waking)
            note(waking.waker_tid, 4, Wakes(waking.ts, waking.cpu))
        for move in self.trace.migrations:
            note(move.tid, 1, move)
        for switch in self.trace.switches:
            self.comms.setdefault(switch.prev_tid, set()).add(switch.prev_comm)
            self.comms.setdefault(switch.next_tid, set()).add(switch.next_comm)
            note(switch.prev_tid, 2, switch)
            note(switch.next_tid, 2, switch)
        for sleep in self.trace.sleeps:
            note(sleep.tid, 1, sleep)
        for rows in (self.trace.syscalls, self.trace.contention, self.trace.faults):
            for row in rows:
                note(row.tid, 3, row)
        for rows in (self.trace.irqs, self.trace.probes, self.trace.events):
            for row in rows:
                note(row.tid, 4, row)
        for call in self.trace.futexes:
            note(call.tid, 3, call)
            if call.result != "unfinished" and call.ts + call.dur <= self.end:
                # It runs when it comes back, too.
                note(call.tid, -1, call._replace(ts=call.ts + call.dur))
        for wait in self.trace.contention:
            if wait.end in ("acquired", "failed") and wait.ts + wait.dur <= self.end:
                note(wait.tid, -1, wait._replace(ts=wait.ts + wait.dur))
        walker = Walker(self.cpus, self.losses, self.end, self.trace.clock_bound_ns)
        return {tid: walker.timeline(tid, rows) for tid in records if (rows := seen(records[tid]))}

    def named(self, tid: int) -> OneOf:
        """Any of the names that a thread has had."""
        return OneOf(tuple(self.comms[tid]))

    def waker_named(self, tid: int) -> OneOf:
        """Any of its names; none, too, where no switch and no waking of it is recorded."""
        names = self.comms.get(tid, {""})
        return OneOf(tuple(names if tid in self.scheduled else names | {""}))

    def stretches(self, tid: int, start: int, end: int) -> Iterator[Stretch]:
        """What a thread did in a time; what no record covers is `unknown`."""
        timeline = self.timelines.get(tid)
        at = start
        for stretch in timeline.during(start, end) if timeline else ():
            yield stretch
            at = stretch.end
        if at < end:
            yield Stretch(at, end, "unknown", -1, "", False)

    def parts(self, tid: int, start: int, end: int) -> Parts:
        """The decomposition of a time of a thread."""
        ns: Counter[str] = Counter()
        doubtful = 0
        for stretch in self.stretches(tid, start, end):
            length = stretch.end - stretch.start
            doubtful += length if stretch.doubt else 0
            if stretch.doing == "running":
                doubtful += self.missed_ns(stretch)
                for part, _, spent in self.on_cpu(stretch):
                    ns[part] += spent
            elif stretch.doing == "unknown":
                ns["unexplained"] += length
            else:
                ns[stretch.doing] += length
        around = self.stretches(tid, start - 1, end + 1)
        edge = any(s.doubt or s.state == UNSEEN for s in around) or touched(self.missed, start, end)
        return Parts(ns, doubtful, edge)

    def lost_in(self, start: int, end: int) -> bool:
        """Whether records of switches or interrupts are missing in a time."""
        return touched(self.losses, start, end) or touched(self.missed, start, end)

    def missed_ns(self, stretch: Stretch) -> int:
        """How much of a time on a CPU may have been that of interrupts that are missing."""
        if stretch.doubt:
            return 0
        missed = ((loss.ts, loss.ts + loss.dur) for loss in self.missed)
        return sum(max(min(end, stretch.end) - max(start, stretch.start), 0) for start, end in missed)

    def on_cpu(self, stretch: Stretch) -> list[tuple[str, str, int]]:
        """A running stretch as (part, name of the interrupt, time): of handlers that nest, the inner one counts."""
        irqs = self.irqs.get(stretch.cpu, [])
        starts = self.irq_starts.get(stretch.cpu, [])
        first = bisect_left(starts, stretch.start - self.longest_irq)
        open_in = [i for i in irqs[first : bisect_left(starts, stretch.end)] if i.ts + i.dur > stretch.start]
        if not open_in:
            return [("running", "", stretch.end - stretch.start)]
        edges = {stretch.start, stretch.end}
        edges |= {t for i in open_in for t in (i.ts, i.ts + i.dur) if stretch.start < t < stretch.end}
        found = []
        for start, end in zip(sorted(edges), sorted(edges)[1:]):
            inside = [i for i in open_in if i.ts <= start and end <= i.ts + i.dur]
            if inside:
                inner = max(inside, key=lambda i: (i.ts, -i.dur))
                found.append((IRQ_PARTS[inner.kind], inner.name, end - start))
            else:
                found.append(("running", "", end - start))
        return found

    def recorded_on_cpu(self, stretch: Stretch) -> Iterator[tuple[str, str, int]]:
        """The same, without what is not known where interrupts are missing."""
        windows = [(loss.ts, loss.ts + loss.dur) for loss in self.missed]
        edges = {stretch.start, stretch.end}
        edges |= {t for window in windows for t in window if stretch.start < t < stretch.end}
        for start, end in pairwise(sorted(edges)):
            if any(since <= start and end <= until for since, until in windows):
                yield "unexplained", "no record", end - start
            else:
                yield from self.on_cpu(stretch._replace(start=start, end=end))

    def occupants(self, tid: int, start: int, end: int, doing: tuple[str, ...] = WAITS) -> Shares:
        """Who had the CPU while a thread could run and did not."""
        shares = Shares()
        for stretch in self.stretches(tid, start, end):
            if stretch.doing in doing:
                for piece in self.cpus.during(stretch.cpu, stretch.start, stretch.end):
                    shares.add(piece.ns, None if stretch.doubt else piece.occupant)
                    late = not stretch.doubt and piece.noticed > end
                    shares.noticed_late_ns += piece.ns if late else 0
            elif stretch.doubt:
                shares.doubtful_ns += stretch.end - stretch.start
        return shares

    def shared(self, tid: int, start: int, end: int, cuts: Callable[[int, int], bool]) -> bool:
        """Whether several had the CPU in a wait for it that lies in a time and is cut: the analysis has one sum of each."""
        for waits, group in groupby(self.stretches(tid, start, end), lambda stretch: stretch.doing in WAITS):
            pieces = list(group)
            begun, over = pieces[0].start, pieces[-1].end
            if waits and cuts(begun, over) and len(self.occupants(tid, begun, over).ns) > 1:
                return True
        return False


class Walker:
    """Turns the records of a thread into its timeline."""

    def __init__(self, cpus: Cpus, losses: list, end: int, bound_ns: int) -> None:
        self.cpus, self.losses, self.end, self.bound_ns = cpus, losses, end, bound_ns

    def timeline(self, tid: int, records: list[tuple]) -> Timeline:
        """Walks them in the order of time."""
        self.tid = tid
        rows = [record[3] for record in records]
        switches, decisive = following(rows, Switch), following(rows, (Waking, Switch))
        self.stretches: list[Stretch] = []
        self.delays: list[Delay] = []
        self.now = Stretch(rows[0].ts, 0, "unknown", -1, "", False)
        # Wakings while it still had the CPU; since when it can run.
        self.early: Waking | None = None
        self.since: tuple[int, str, Waking | None] | None = None
        self.migrated = self.doubt = self.slept_after_all = False
        for at, row in enumerate(rows):
            if isinstance(row, Switch) and row.next_tid == tid:
                self.comes(row)
            elif isinstance(row, Switch):
                self.leaves(row, isinstance(decisive[at], Waking))
            elif isinstance(row, Waking):
                self.woken(row)
            elif isinstance(row, Sleep):
                # It is seen with it. Where it goes, the switch tells, which may be missing.
                continue
            elif isinstance(row, Migrate):
                self.migrated = True
                if self.now.doing != "running":
                    self.turn(row.ts, self.now.doing, row.to_cpu, self.now.state)
                    # That it is moved does not show that it has not run meanwhile.
                    self.now = self.now._replace(doubt=self.stretches[-1].doubt)
            else:
                self.shows_that_it_runs(tid, row, leaves_from(switches[at], tid))
        ended = self.now.state in DEAD
        if not ended:
            self.turn(max(self.end, self.now.start), "unknown", -1, "", self.has_left_unseen())
        return Timeline(self.stretches, self.delays, ended)

    def has_left_unseen(self) -> int | None:
        """Since when one that runs by its last record may not, because another left its CPU."""
        period = self.cpus.at(self.now.cpu, self.now.start) if self.now.doing == "running" else None
        if not period or not period.doubt:
            return None
        # Seen there behind one loss, it may have left in the next.
        later = [max(loss.ts, self.now.start) for loss in self.losses if touched([loss], self.now.start, period.end)]
        if later:
            return min(later)
        # It came in a loss, and is the one who leaves, or nobody does.
        stays = period.left_by == self.tid or period.end >= self.end
        return None if stays else max(self.now.start, period.known_until)

    def turn(self, ts: int, doing: str, cpu: int, state: str, doubt_from: int | None = None) -> None:
        """Ends the current stretch, doubtful from a moment on, and begins another."""
        now = self.now
        lost = [loss.ts for loss in self.losses if touched([loss], now.start, ts)]
        if now.doubt or lost:
            # Up to where the first record can be missing all is known.
            since = now.start if now.doubt else min(lost)
            doubt_from = since if doubt_from is None else min(since, doubt_from)
        if doubt_from is not None:
            self.doubt = True
            doubt_from = max(doubt_from, now.start)
            self.stretches.append(now._replace(end=doubt_from))
            self.stretches.append(now._replace(start=doubt_from, end=ts, doubt=True))
        else:
            self.stretches.append(now._replace(end=ts))
        self.now = Stretch(ts, 0, doing, cpu, state, False)

    def comes(self, switch: Switch) -> None:
        """It gets a CPU."""
        # A thread that runs or sleeps does not come: the record of its leaving or waking is missing. It may be among those that were lost.
        explained = any(touched([loss], self.now.start, switch.ts) for loss in self.losses)
        missing = self.now.start if self.now.doing in ("running", "blocked") and not explained else None
        moved = self.now.doing in WAITS and self.now.cpu != switch.cpu
        self.turn(switch.ts, "running", switch.cpu, "", missing)
        if moved:
            # No record says when, so that somebody else may have had the CPU for which it waited.
            self.migrated = True
            self.stretches[-1] = self.stretches[-1]._replace(doubt=True)
        if self.since:
            start, cause, waking = self.since
            self.delays.append(
                Delay(start, switch.ts, cause, waking, switch.cpu, switch.next_comm, switch.next_prio,
                      self.migrated, self.doubt)
            )
        self.since = self.early = None

    def leaves(self, switch: Switch, woken_later: bool) -> None:
        """It loses its CPU."""
        before = self.cpus.before(switch.cpu, switch.ts)
        missing = None
        if self.now.doing == "running" and self.now.cpu in (switch.cpu, -1):
            # Another one had this CPU after it had come: it has left and come again.
            if before and before.tid != switch.prev_tid and self.now.start <= before.start:
                missing = before.start
        elif self.now.doing != "unknown" or before:
            missing = before.start if before else self.now.start
        if switch.prev_state.startswith("R"):
            self.turn(switch.ts, "preempted", switch.cpu, switch.prev_state, missing)
            self.since = (switch.ts, "preempted", None)
        elif self.early and not woken_later:
            # Woken on its way out: nobody wakes it again, because it is awake.
            self.turn(switch.ts, "dispatch", switch.cpu, switch.prev_state, missing)
            self.since = (switch.ts, "woken", self.early)
        else:
            self.turn(switch.ts, "blocked", switch.cpu, switch.prev_state, missing)
            self.since = None
            # It was to sleep and a waking seemed to be under way: that it slept, the next waking shows.
            self.slept_after_all = bool(self.early and switch.prev_woken)
        self.early = None
        self.migrated = self.doubt = False

    def shows_that_it_runs(self, tid: int, row: tuple, leaves: int | None) -> None:
        """It records an event, or something else that only a running thread does."""
        # Of what lasts, the record has the CPU of its end, where the thread can have come meanwhile.
        cpu = getattr(row, "cpu", -1) if leaves is None else leaves
        period = self.cpus.at(cpu, row.ts)
        lost = self.now.doubt or touched(self.losses, self.now.start, row.ts)
        if self.now.doing == "unknown" or lost and not touched(self.losses, row.ts, row.ts):
            # Whatever was lost before, now it runs.
            self.turn(row.ts, "running", cpu, "")
        elif isinstance(row, (Irq, Wakes)):
            # The tables do not promise to use it.
            return
        elif self.now.doing != "running" and row.ts - self.now.start > self.bound_ns:
            # It has recorded something although it had no CPU: both switches are missing.
            self.turn(row.ts, "running", cpu, UNSEEN, self.now.start)
            self.since = self.early = None
        elif self.now.doing != "running" and period and period.doubt and period.left_by == tid:
            # The switch to it is missing, the one from it will come.
            self.turn(row.ts, "running", cpu, UNSEEN, period.start)
            self.since = self.early = None

    def woken(self, waking: Waking) -> None:
        """Somebody wakes it."""
        # What it did before a loss it need not do any more.
        lost = self.now.doubt or touched(self.losses, self.now.start, waking.ts)
        if self.now.doing == "running" and not lost:
            self.early = waking
        elif lost or self.now.doing in ("blocked", "unknown"):
            missing = self.now.start if self.slept_after_all else self.has_left_unseen()
            self.turn(waking.ts, "dispatch", waking.target_cpu, self.now.state, missing)
            self.slept_after_all = False
            self.since = (waking.ts, "woken", waking)
            self.migrated = self.doubt = False


def seen(records: list[tuple]) -> list[tuple]:
    """The records of a thread in the order of time, from its first sight on: one that is only moved, or only wakes another, is
    not seen."""
    return list(dropwhile(lambda record: isinstance(record[3], (Migrate, Wakes)), sorted(records)))


def following(rows: list, kinds: type | tuple[type, ...]) -> list:
    """For each row the next one of these kinds, or `None`."""
    found, nearest = [], None
    for row in reversed(rows):
        found.append(nearest)
        nearest = row if isinstance(row, kinds) else nearest
    return found[::-1]


def leaves_from(switch: Switch | None, tid: int) -> int | None:
    """The CPU that a thread which runs leaves with its next switch; `None` where that is to it, or there is none."""
    return switch.cpu if switch and switch.prev_tid == tid else None
