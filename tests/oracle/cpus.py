"""Who had a CPU: occupancy, from `sched_switch` alone."""

from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Iterator, NamedTuple

from tables import Loss, Switch, Trace

# Where records of the kernel are missing: the buffer was full, or it did not run the program.
KERNEL = ("kernel", "kernel-skipped")

# The programs that show who has a CPU, and who can run; births and ends of threads, and their names, do not.
SCHEDULING = ("sched_switch", "sched_waking", "sched_wakeup_new", "sched_migrate_task")

# How the programs that record interrupts are called.
INTERRUPTS = ("irq_", "softirq_", "local_timer_", "reschedule_", "call_function_")


class Period(NamedTuple):
    """A time between two neighbouring switches of one CPU."""

    start: int
    end: int
    tid: int
    comm: str
    prio: int
    # Who had it at the end, by the switch there: another one, where a switch is missing.
    left_by: int
    # Something is missing: `tid` had it at the start, `left_by` at the end.
    doubt: bool
    # Up to when `tid` had it for sure: the end, where nothing is missing.
    known_until: int


class Piece(NamedTuple):
    """Some of the time in which a thread waits for a CPU."""

    ns: int
    # Who had it: nobody is known before the first switch of a CPU, and where a switch is missing.
    occupant: Period | None
    # When the switch is recorded by which one sees that another is missing.
    noticed: int


class Shares:
    """How long each thread had a CPU within some time."""

    def __init__(self) -> None:
        self.ns: Counter[int] = Counter()
        self.comms: dict[int, set[str]] = {}
        self.prios: dict[int, set[int]] = {}
        self.doubtful_ns = 0
        # Of it, what nobody could know before the end of that time.
        self.noticed_late_ns = 0

    def add(self, ns: int, period: Period | None) -> None:
        """Adds a time in which the CPU was occupied as in `period`."""
        if period is None:
            self.doubtful_ns += ns
            return
        self.ns[period.tid] += ns
        self.comms.setdefault(period.tid, set()).add(period.comm)
        self.prios.setdefault(period.tid, set()).add(period.prio)

    def merge(self, others: "Shares") -> None:
        """Adds those of another time."""
        self.ns.update(others.ns)
        for mine, theirs in ((self.comms, others.comms), (self.prios, others.prios)):
            for tid, values in theirs.items():
                mine.setdefault(tid, set()).update(values)
        self.doubtful_ns += others.doubtful_ns
        self.noticed_late_ns += others.noticed_late_ns


class Cpus:
    """The occupants of all CPUs."""

    def __init__(self, trace: Trace, end: int) -> None:
        by_cpu: dict[int, list[Switch]] = {}
        for switch in trace.switches:
            by_cpu.setdefault(switch.cpu, []).append(switch)
        losses, shown = kernel_losses(trace), shows(trace)
        self.periods = {cpu: list(periods(rows, end, losses, shown)) for cpu, rows in by_cpu.items()}
        self.starts = {cpu: [p.start for p in rows] for cpu, rows in self.periods.items()}

    def during(self, cpu: int, start: int, end: int) -> Iterator[Piece]:
        """Who had a CPU for how long, in the order of time."""
        rows = self.periods.get(cpu, [])
        at = bisect_right(self.starts.get(cpu, []), start) - 1
        first = rows[0].start if rows else end
        if start < first:
            yield Piece(min(first, end) - start, None, start)
        for period in rows[max(at, 0) :]:
            if period.start >= end:
                break
            sure = min(period.known_until, end) - max(period.start, start)
            if sure > 0:
                yield Piece(sure, period, start)
            doubtful = min(period.end, end) - max(period.known_until, start)
            if doubtful > 0:
                yield Piece(doubtful, None, period.end)

    def at(self, cpu: int, ts: int) -> Period | None:
        """Who had a CPU at a time."""
        return self.before(cpu, ts + 1)

    def before(self, cpu: int, ts: int) -> Period | None:
        """Who had a CPU up to a switch at this time."""
        rows = self.periods.get(cpu, [])
        at = bisect_right(self.starts.get(cpu, []), ts - 1) - 1
        return rows[at] if at >= 0 else None


def kernel_losses(trace: Trace) -> list[Loss]:
    """Losses of what shows who has a CPU; of the agent's own nobody knows what was in them."""
    return [
        loss
        for loss in trace.losses
        if loss.origin == "agent" or loss.origin in KERNEL and loss.what in SCHEDULING
    ]


def missed_interrupts(trace: Trace) -> list[Loss]:
    """When interrupts may be missing."""
    return [loss for loss in trace.losses if loss.origin in KERNEL and loss.what.startswith(INTERRUPTS)]


def touched(losses: list[Loss], start: int, end: int) -> bool:
    """Whether a loss lies in a time, or at its edge."""
    return any(loss.ts <= end and start <= loss.ts + loss.dur for loss in losses)


def shows(trace: Trace) -> dict[tuple[int, int], list[int]]:
    """When records show which thread on which CPU: a waking that it did, an interrupt that struck it, its events."""
    shown: dict[tuple[int, int], list[int]] = {}
    for waking in trace.wakings:
        shown.setdefault((waking.cpu, waking.waker_tid), []).append(waking.ts)
    for rows in (trace.irqs, trace.events):
        for row in rows:
            shown.setdefault((row.cpu, row.tid), []).append(row.ts)
    for times in shown.values():
        times.sort()
    return shown


def periods(
    switches: list[Switch], end: int, losses: list[Loss], shown: dict[tuple[int, int], list[int]]
) -> Iterator[Period]:
    """The periods of one CPU. What one switch says of who came, the next must say of who left."""
    for switch, after in zip(switches, [*switches[1:], None]):
        until = known_until = after.ts if after else max(end, switch.ts)
        agrees = after is None or after.prev_tid == switch.next_tid
        lost = touched(losses, switch.ts, until)
        if lost:
            known_until = max(switch.ts, min(loss.ts for loss in losses if switch.ts <= loss.ts + loss.dur))
        elif not agrees:
            # It was there at the last record that shows it there, and has left unseen since.
            times = shown.get((switch.cpu, switch.next_tid), [])
            last = bisect_left(times, until) - 1
            known_until = max(switch.ts, times[last]) if last >= 0 else switch.ts
        yield Period(
            start=switch.ts,
            end=until,
            tid=switch.next_tid,
            comm=switch.next_comm,
            prio=switch.next_prio,
            left_by=after.prev_tid if after else switch.next_tid,
            doubt=lost or not agrees,
            known_until=known_until,
        )
