"""`critical_sections` as it should be."""

from compare import Anything, Expected, OneOf, Table, Wanted, Within
from cpus import Shares
from locks import Locks
from threads import OF_TASKS, Parts, Threads
from turns import Turns

EXACT, LOWER_BOUND = "exact", "lower bound"


def table(locks: Locks, threads: Threads, turns: Turns) -> Table:
    """One row for each hold whose acquisition and release were recorded."""
    expected = []
    for hold in locks.holds:
        if hold.end is None:
            continue
        start, end = hold.start.ts, hold.end.ts
        times = turns.times(hold.start.order, hold.end.order)
        parts = turns.parts(threads, times, end - start)
        shares = turns.occupants(threads, times, ("preempted",))
        away = turns.occupants(threads, times)
        values: dict[str, Wanted] = {
            "ts": start,
            "tid": hold.ended_by or hold.tid,
            "lock": hold.lock[1],
            "dur": end - start,
            "pid": hold.lock[0],
            "lock_name": locks.name(hold.lock),
            "kind": hold.kind,
            "site": hold.site,
            "place": hold.place,
            "depth": hold.depth,
            "depth_mark": depth_mark(locks, hold.tid, hold.lock[0], start),
            "wait_ns": hold.wait_ns,
            "condition": hold.condition,
            "slice": hold.slice,
            **decomposition(parts),
            **turns.counts(threads, times),
            **occupant("preemptor", shares, threads),
            "agent_ns": agent(away, threads),
            "mark": mark(parts, shares, away),
        }
        if not turns.judged(hold.start.order):
            told = ("ts", "tid", "lock", "dur", "kind", "site", "place", "wait_ns", "condition", "slice")
            values = {name: wanted if name in told else Anything() for name, wanted in values.items()}
        expected.append(Expected(values, checks=[sums_to(end - start)]))
    return Table("critical_sections", ("ts", "tid", "lock"), expected)


def depth_mark(locks: Locks, tid: int, pid: int, ts: int) -> Wanted:
    """The mark of a depth: a lock may be held whose acquisition was not recorded.

    It was lost, its release shows it, or its site was not on since before the thread or its program began.
    """
    losses = [loss for loss in locks.trace.losses if loss.ts <= ts]
    if any(loss.origin == "ring" and loss.tid == tid for loss in losses):
        return LOWER_BOUND
    # An exec ends all that was held.
    begun = max([0, *(task.ts for task in locks.trace.tasks if task.tid == tid and task.ts <= ts and task.kind == "exec")])
    if any(by == tid and begun <= when <= ts for by, when in locks.unseen):
        return LOWER_BOUND
    on = [site.on_ns for site in locks.trace.sites.values() if site.pid == pid and site.event.startswith("lock.")]
    if any(since is None for since in on) and not any(since == 0 for since in on):
        return LOWER_BOUND
    if any(since != 0 for since in on):
        return OneOf((EXACT, LOWER_BOUND))
    return OneOf((EXACT, LOWER_BOUND)) if losses else EXACT


def mark(parts: Parts, *occupants: Shares) -> Wanted:
    """The mark of an interval: is anything missing of it, or of who had the CPU? At its very edge either is right."""
    if parts.doubtful_ns or (occupants and mark_of(occupants[0]) == LOWER_BOUND):
        return LOWER_BOUND
    edge = parts.doubtful_edge or any(shares.doubtful_ns for shares in occupants)
    return OneOf((EXACT, LOWER_BOUND)) if edge else EXACT


def mark_of(shares: Shares) -> Wanted:
    """The mark of who had the CPU.

    A thread that is moved to another CPU and ends its wait there can have its row before the next switch of the first
    CPU shows that one is missing there. Either mark is right then, since a row is not taken back.
    """
    if shares.doubtful_ns > shares.noticed_late_ns:
        return LOWER_BOUND
    return OneOf((EXACT, LOWER_BOUND)) if shares.doubtful_ns else EXACT


def decomposition(parts: Parts) -> dict[str, Wanted]:
    """The columns of a decomposition. What is in doubt may be in any part."""
    return {f"{part}_ns": at_most(parts.ns[part], parts) for part in OF_TASKS}


def at_most(ns: int, parts: Parts) -> Wanted:
    """A lower bound is no more than what it can be."""
    if parts.doubtful_ns == 0:
        return ns
    return Within(max(0, ns - parts.doubtful_ns), ns + parts.doubtful_ns)


def sums_to(total: int, *more: str):
    """A check: the parts of a row sum to this."""

    def check(row: dict) -> str | None:
        found = sum(row[f"{part}_ns"] for part in OF_TASKS) + sum(row[name] for name in more)
        return None if found == total else f"its parts sum to {found}, not {total}"

    return check


def occupant(prefix: str, shares: Shares, threads: Threads) -> dict[str, Wanted]:
    """Who had the CPU longest: number, name, time."""
    columns = [f"{prefix}_tid", f"{prefix}_comm", f"{prefix}_ns"]
    if shares.doubtful_ns:
        most = max(shares.ns.values(), default=0) + shares.doubtful_ns
        return {columns[0]: Anything(), columns[1]: Anything(), columns[2]: AtMost(most)}
    if not shares.ns:
        return dict.fromkeys(columns)
    longest = max(shares.ns.values())
    tids = [tid for tid, ns in shares.ns.items() if ns == longest]
    comms = [comm for tid in tids for comm in shares.comms[tid]]
    return {columns[0]: OneOf(tuple(tids)), columns[1]: OneOf(tuple(comms)), columns[2]: longest}


def agent(shares: Shares, threads: Threads) -> Wanted:
    """How long threads of the agent had the CPU; null where it is not known which they are."""
    if threads.agents is None:
        return None
    ns = sum(ns for tid, ns in shares.ns.items() if tid in threads.agents)
    loose = shares.doubtful_ns
    return Within(max(0, ns - loose), ns + loose) if loose else ns


class AtMost(Within):
    """Nothing, or no more than this."""

    def __init__(self, high: int) -> None:
        super().__init__(0, high)

    def accepts(self, value: object) -> bool:
        return value is None or super().accepts(value)
