"""What a waiter itself did while nobody held its lock, and who took it before: columns of `lock_waits`."""

from compare import Anything, Wanted, Within
from cpus import Shares
from dispatch import waker
from holds import AtMost, occupant
from locks import Hold, Wait
from threads import Threads

DID = {"blocked": "asleep", "preempted": "runnable", "dispatch": "runnable", "unexplained": "unknown"}


def columns(wait: Wait, holds: list[Hold], waits: dict[int, Wait], threads: Threads) -> dict[str, Wanted]:
    """All of them, of a wait that ended with the lock; `waits`: by the order of their ends."""
    assert wait.end
    # Of what is not known of the waiter, anything is right.
    loose = threads.parts(wait.tid, wait.start.ts, wait.end.ts).doubtful_ns
    return {
        **did(wait, loose, threads),
        **woken(wait, loose, threads),
        **behind(wait, loose, threads),
        "overtaken": overtaken(wait, holds, waits),
    }


def free(wait: Wait) -> list[tuple[int, int]]:
    """When nobody was to blame."""
    return [(m.start, m.end) for m in wait.moments if m.ends == "no holder" and m.start < m.end]


def did(wait: Wait, loose: int, threads: Threads) -> dict[str, Wanted]:
    """Its own time, in four parts."""
    sums = dict.fromkeys(["asleep", "runnable", "running", "unknown"], 0)
    for start, end in free(wait):
        for part, ns in threads.parts(wait.tid, start, end).ns.items():
            sums[DID.get(part, "running")] += ns
    return {f"free_{what}_ns": Within(max(0, ns - loose), ns + loose) if loose else ns for what, ns in sums.items()}


def woken(wait: Wait, loose: int, threads: Threads) -> dict[str, Wanted]:
    """Who woke it last, if the lock was free from before until it ran."""
    assert wait.end
    names = ("waker_tid", "waker_comm", "woken_after_ns")
    if loose:
        return dict.fromkeys(names, Anything())
    nothing: dict[str, Wanted] = dict.fromkeys(names)
    delays = threads.timelines[wait.tid].delays if wait.tid in threads.timelines else []
    last = [d for d in delays if d.waking and wait.start.ts < d.end <= wait.end.ts]
    if not last:
        return nothing
    since = None
    for moment in wait.moments:
        if moment.chain:
            since = None
        elif since is None:
            since = moment.start
        if moment.start <= last[-1].end < moment.end or moment.end == last[-1].end == wait.end.ts:
            break
    if since is None or since > last[-1].start:
        return nothing
    by = last[-1].waking
    assert by
    return {"waker_tid": by.waker_tid, "waker_comm": waker(by, threads), "woken_after_ns": last[-1].start - since}


def behind(wait: Wait, loose: int, threads: Threads) -> dict[str, Wanted]:
    """Who had the CPU while it could run; of several that had it in a time in part, at least something is known."""
    assert wait.end
    shares, times = Shares(), free(wait)
    for start, end in times:
        shares.merge(threads.occupants(wait.tid, start, end))

    def cuts(start: int, end: int) -> bool:
        return 0 < sum(max(0, min(end, b) - max(start, a)) for a, b in times) < end - start

    if loose or threads.shared(wait.tid, wait.start.ts, wait.end.ts, cuts):
        shares.doubtful_ns += loose
        most = max(shares.ns.values(), default=0) + shares.doubtful_ns
        return {"behind_tid": Anything(), "behind_comm": Anything(), "behind_ns": AtMost(most)}
    return occupant("behind", shares, threads)


def overtaken(wait: Wait, holds: list[Hold], waits: dict[int, Wait]) -> Wanted:
    """Acquisitions meanwhile by others that had begun to wait later, or had not waited."""
    assert wait.end
    first, last = wait.start.order, wait.end.order
    count = 0
    for hold in holds:
        if hold.tid != wait.tid and first < hold.start.order < last:
            own = waits.get(hold.start.order)
            count += own is None or own.start.order > first
    return count
