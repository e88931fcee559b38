"""`lock_chains` as it should be: of each call chain and each sample, the locks that its thread held and waited for then."""

from compare import Expected, Table
from locks import SEMAPHORE, Hold, Locks, Wait
from tables import Chain, Sample, Trace
from threads import Threads

KINDS = {"wait": "sleeps", "preempted": "preempted"}

# Of equal times what was lost comes first, then what the kernel says, then events.
LOST, TAKEN, EVENT = range(3)


def table(trace: Trace, locks: Locks, threads: Threads) -> Table:
    """A row for each lock of each of them; the chain of a waker says nothing of its locks."""
    changes: dict[int, list[tuple[int, int, int, bool, Hold | Wait | Chain | Sample]]] = {}

    def add(tid: int, ts: int, rank: int, order: int, begins: bool, what: Hold | Wait | Chain | Sample) -> None:
        changes.setdefault(tid, []).append((ts, rank, order, begins, what))

    for number, taken in enumerate([*trace.chains, *trace.samples]):
        if isinstance(taken, Sample) or taken.kind in KINDS:
            add(taken.tid, taken.ts, TAKEN, number, True, taken)
    for hold in locks.holds:
        if hold.kind != SEMAPHORE:
            add(hold.tid, hold.start.ts, EVENT, hold.start.order, True, hold)
            over, rank = (hold.end, EVENT) if hold.end else (hold.dropped or hold.left, LOST)
            if over:
                add(hold.tid, over.ts, rank, over.order, False, hold)
    for wait in locks.waits:
        add(wait.tid, wait.start.ts, EVENT, wait.start.order, True, wait)
        if wait.end:
            add(wait.tid, wait.end.ts, EVENT, wait.end.order, False, wait)
        elif wait.cut is not None:
            add(wait.tid, wait.cut, LOST, 0, False, wait)

    expected = []
    for own in changes.values():
        held: list[Hold] = []
        waits: list[Wait] = []
        for _, _, _, begins, what in sorted(own, key=lambda change: change[:3]):
            if isinstance(what, (Chain, Sample)):
                here = [hold for hold in held if hold.is_on(what.ts)]
                expected += rows(what, here, waits, locks, threads)
            elif isinstance(what, Hold):
                held = [*held, what] if begins else [hold for hold in held if hold is not what]
            else:
                # It waits for one thing at a time.
                waits = [what] if begins else []
    return Table("lock_chains", ("ts", "tid", "lock", "kind"), expected)


def rows(taken: Chain | Sample, held: list[Hold], waits: list[Wait], locks: Locks, threads: Threads) -> list[Expected]:
    """Those of one of them."""
    kind = KINDS[taken.kind] if isinstance(taken, Chain) else "runs"
    found: list[tuple[str, Hold | Wait, bool]] = [("waits", wait, True) for wait in waits if kind == "sleeps"]
    found += [(kind, hold, hold is held[-1]) for hold in held]
    return [
        Expected({
            "ts": taken.ts,
            "dur": taken.dur if isinstance(taken, Chain) else 0,
            "pid": of.lock[0],
            "tid": taken.tid,
            "comm": threads.named(taken.tid),
            "kind": kind,
            "lock": of.lock[1],
            "lock_name": locks.name(of.lock),
            "place": of.place,
            "innermost": innermost,
            "stack": taken.stack,
        })
        for kind, of, innermost in found
    ]
