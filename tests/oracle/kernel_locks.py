"""`kernel_lock_waits` as it should be: waits for locks of the kernel, from their records and what the scheduler did."""

from compare import Anything, Expected, OneOf, Table, Wanted
from cpus import touched
from futexes import last_moments, what_ended
from holds import agent, decomposition, mark, sums_to
from locks import SEMAPHORE, Hold, Locks
from tables import Contention, Trace, Waking
from threads import Threads


def table(trace: Trace, threads: Threads, locks: Locks) -> Table:
    """One row for each wait of an observed thread whose begin was recorded."""
    observed = {(t.pid, t.tid) for t in trace.threads if t.observed}
    waits = [w for w in trace.contention if w.end != "end-only" and (w.pid, w.tid) in observed]
    wakings: dict[int, list[Waking]] = {}
    for waking in trace.wakings:
        wakings.setdefault(waking.tid, []).append(waking)
    held: dict[int, list[Hold]] = {}
    for hold in locks.holds:
        held.setdefault(hold.tid, []).append(hold)
    gone, last = last_moments(trace), trace.end()
    ends = [ended(wait, gone.get(wait.tid, []), last) for wait in waits]
    mine: dict[int, list[tuple[int, int]]] = {}
    for wait, (end, _) in zip(waits, ends):
        mine.setdefault(wait.tid, []).append((wait.ts, end))
    expected = []
    for wait, (end, how) in zip(waits, ends):
        start, tid = wait.ts, wait.tid
        parts = threads.parts(tid, start, end)
        waking = what_ended(threads, wakings.get(tid, []), wait, end)
        values: dict[str, Wanted] = {
            "ts": start,
            "tid": tid,
            "lock": wait.lock,
            "dur": end - start,
            "pid": wait.pid,
            "comm": threads.named(tid),
            "name": wait.name,
            "caller": wait.caller,
            "kind": wait.kind,
            "end": how,
            "nested": any(a < start < b for a, b in mine[tid]),
            **decomposition(parts),
            "woken_ns": waking.ts - start if waking else None,
            "waker_tid": waking.waker_tid if waking else None,
            "waker_comm": threads.waker_named(waking.waker_tid) if waking else None,
            **holding(held.get(tid, []), wait, locks),
            "request": request(trace, wait),
            "stack": wait.stack,
            "agent_ns": agent(threads.occupants(tid, start, end), threads),
            "mark": "censored" if how == "trace" else mark(parts, threads.occupants(tid, start, end)),
        }
        if touched(threads.losses, start, end):
            values |= dict.fromkeys(("woken_ns", "waker_tid", "waker_comm"), Anything())
        expected.append(Expected(values, checks=[sums_to(end - start)]))
    return Table("kernel_lock_waits", ("ts", "tid", "lock"), expected)


def ended(wait: Contention, gone: list[int], last: int) -> tuple[int, str]:
    """When a wait ended, and how."""
    end = wait.ts + wait.dur
    if wait.end != "unfinished" and end <= last:
        return end, wait.end
    exits = [ts for ts in gone if ts >= wait.ts]
    return (min(exits), "thread") if exits else (last, "trace")


def holding(holds: list[Hold], wait: Contention, locks: Locks) -> dict[str, Wanted]:
    """The locks of the application that the thread held when the wait began."""

    def is_held(hold: Hold) -> bool:
        over = [at.ts for at in (hold.end, hold.dropped, hold.left) if at]
        is_of_lock = hold.kind != SEMAPHORE and hold.is_on(wait.ts)
        return is_of_lock and hold.start.ts < wait.ts and all(ts >= wait.ts for ts in over)

    held = sorted((hold for hold in holds if is_held(hold)), key=lambda hold: hold.start)
    if not held:
        return {"depth": 0, "hold_lock": None, "hold_name": None, "hold_place": None}
    hold = held[-1]
    return {
        "depth": len(held),
        "hold_lock": hold.lock[1],
        "hold_name": locks.name(hold.lock),
        "hold_place": hold.place,
    }


def request(trace: Trace, wait: Contention) -> Wanted:
    """The outermost scope in which the thread was."""
    inside: list[str] = []
    for event in trace.events:
        if event.tid != wait.tid or event.ts >= wait.ts:
            continue
        site = trace.sites.get(event.site)
        if site and site.kind == "scope_begin":
            inside.append(site.event)
        elif site and site.kind == "scope_end" and site.event in inside:
            inside.reverse()
            inside.remove(site.event)
            inside.reverse()
    if trace.losses:
        return Anything()
    return inside[0] if inside else None
