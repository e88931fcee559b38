"""`futex_waits` as it should be: waits at futexes and semaphores, from the calls and what the scheduler did."""

from chains import Chains
from compare import Anything, Expected, OneOf, Table, Wanted
from cpus import touched
from holds import agent, decomposition, mark, occupant, sums_to
from locks import Locks
from tables import Futex, Trace, Waking
from threads import DEAD, Threads

WAITS = ("wait", "waitv", "lock-pi", "wait-requeue-pi", "semaphore-wait")
WAKES = ("wake", "requeue", "wake-op", "unlock-pi", "requeue-pi", "semaphore-post")
# What these wait for, or wake, is at the one address that is recorded.
ONE_ADDRESS = {"wait", "lock-pi", "wake", "requeue", "unlock-pi"}
SEMAPHORES = ("semaphore-wait", "semaphore-post")
# Of these, a call that comes back without an error may not have waited at all.
PERHAPS_FREE = ("lock-pi", "semaphore-wait")
# Who woke a thread. Where records are missing, that may be another one; and how it ended is not sure.
WAKER = ("woken_ns", "waker_tid", "waker_pid", "waker_comm", "waker_call", "waker_stack")
UNSURE = -1
TID_MASK = 0x3FFFFFFF
ENDS = {"timed-out": "timed-out", "interrupted": "interrupted", "changed": "changed", "failed": "failed"}


def table(trace: Trace, threads: Threads, locks: Locks, chains: Chains) -> Table:
    """One row for each call that may wait."""
    calls: dict[int, list[Futex]] = {}
    for call in trace.futexes:
        calls.setdefault(call.tid, []).append(call)
    wakings: dict[int, list[Waking]] = {}
    for waking in trace.wakings:
        wakings.setdefault(waking.tid, []).append(waking)
    gone = last_moments(trace)
    last = trace.end()
    waits = sorted(locks.blocked_by(last))
    expected = []
    for tid, mine in calls.items():
        woken_at = None
        for call in mine:
            before, woken_at = woken_at, None
            if call.kind not in WAITS:
                continue
            end, how = ended(call, gone.get(tid, []), last)
            waking = what_ended(threads, wakings.get(tid, []), call, end)
            lossy = touched(threads.losses, call.ts, end)
            unsure = lossy and how is None and call.kind in PERHAPS_FREE
            if how is None:
                how = "at-once" if call.kind in PERHAPS_FREE and waking is None else "woken"
            if how == "woken":
                woken_at = call.address
            row = values(trace, threads, call, end, how)
            row |= waker(threads, waking if how not in ("timed-out", "changed") else None, call, end, calls, chains)
            row["stack"] = next((chain.stack for chain in chains.sleeps(tid, call.ts, end)), None)
            row["again"] = Anything() if before == UNSURE else before == call.address
            if lossy:
                row |= dict.fromkeys(WAKER, Anything())
            if unsure:
                row["end"], woken_at = Anything(), UNSURE
            row |= own(waits, call)
            expected.append(Expected(row, checks=[sums_to(end - call.ts)]))
    return Table("futex_waits", ("ts", "tid"), expected)


def last_moments(trace: Trace) -> dict[int, list[int]]:
    """When each thread ended, by its number."""
    moments: dict[int, list[int]] = {}
    for task in trace.tasks:
        if task.kind in ("exit", "exec"):
            moments.setdefault(task.tid, []).append(task.ts)
    for switch in trace.switches:
        if switch.prev_state in DEAD:
            moments.setdefault(switch.prev_tid, []).append(switch.ts)
    return moments


def ended(call: Futex, gone: list[int], last: int) -> tuple[int, str | None]:
    """When a wait ended, and how; `None`: without an error."""
    end = call.ts + call.dur
    if call.result != "unfinished" and end <= last:
        return end, ENDS.get(call.result)
    exits = [ts for ts in gone if ts >= call.ts]
    return (min(exits), "thread") if exits else (last, "trace")


def what_ended(threads: Threads, wakings: list[Waking], call: Futex, end: int) -> Waking | None:
    """The wake-up that ended a wait: of those that found the thread not runnable the last, and else the first."""
    found = None
    for waking in wakings:
        if not call.ts < waking.ts < end:
            continue
        doing = [s.doing for s in threads.stretches(call.tid, waking.ts - 1, waking.ts)]
        if found is None or doing[-1] not in ("preempted", "dispatch"):
            found = waking
    return found


def values(trace: Trace, threads: Threads, call: Futex, end: int, how: str) -> dict[str, Wanted]:
    """The columns of one row that tell nothing of others."""
    start, tid = call.ts, call.tid
    parts = threads.parts(tid, start, end)
    shares = threads.occupants(tid, start, end, ("dispatch",))
    owner = (call.word or 0) & TID_MASK if call.kind == "lock-pi" else 0
    return {
        "ts": start,
        "tid": tid,
        "dur": end - start,
        "pid": call.pid,
        "comm": threads.named(tid),
        "kind": call.kind,
        "address": call.address,
        "name": name(trace, call),
        "timeout_ns": call.timeout_ns,
        "end": how,
        "owner_tid": owner or None,
        **decomposition(parts),
        **occupant("behind", shares, threads),
        "agent_ns": agent(threads.occupants(tid, start, end), threads),
        "mark": "censored" if how == "trace" else mark(parts, shares, threads.occupants(tid, start, end)),
    }


def own(waits: list[tuple[int, int, int, str]], call: Futex) -> dict[str, Wanted]:
    """What the thread itself had said that it was about to wait for."""
    said = [what for start, until, tid, what in waits if tid == call.tid and start <= call.ts < until]
    kind, _, of = said[-1].rpartition(" ") if said else (None, None, None)
    return {"own_kind": kind, "own_name": of}


def name(trace: Trace, call: Futex) -> str:
    """What a call is about, by name."""
    if call.kind in SEMAPHORES:
        return f"semaphore {call.address >> 32} of set {call.address & 0xFFFFFFFF}"
    symbol = trace.symbols.get((call.pid, call.address, "lock"))
    return symbol.symbol if symbol else hex(call.address & 0xFFFFFFFFFFFFFFFF)


def waker(
    threads: Threads, waking: Waking | None, call: Futex, end: int, calls: dict[int, list[Futex]], chains: Chains
) -> dict[str, Wanted]:
    """Who woke a thread, by what call, and where in the code it was then."""
    nobody = dict.fromkeys(WAKER)
    if waking is None:
        return nobody
    by = waking.waker_tid
    inside = [c for c in calls.get(by, []) if c.ts < waking.ts < c.ts + c.dur]
    kind = inside[-1].kind if inside and inside[-1].kind in WAKES else None
    could = kind is not None
    if could and threads.pids.get(by) == call.pid and {call.kind, kind} <= ONE_ADDRESS:
        could = inside[-1].address == call.address
    if not could and call.timeout_ns is not None and waking.ts - call.ts >= call.timeout_ns:
        # A timer has woken it, on top of whomever it struck.
        return nobody
    stacks = chains.wakers(call.tid, by, waking.ts, end)
    return {
        "woken_ns": waking.ts - call.ts,
        "waker_tid": by,
        "waker_pid": 0 if by == 0 else OneOf((threads.pids.get(by), None)),
        "waker_comm": threads.waker_named(by),
        "waker_call": kind,
        "waker_stack": stacks[-1] if stacks else None,
    }
