"""`lock_preemptions` as they should be: times in which a thread held a lock, could run, and did not."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from compare import Anything, Expected, OneOf, Table, Wanted, Within
from cpus import Shares
from holds import LOWER_BOUND, agent, depth_mark, mark, occupant
from locks import SEMAPHORE, Hold, Lock, Locks, Wait
from threads import Delay, Threads

ON_CPU = ("running", "hardirq", "softirq", "vector")

# Times of a hold of which is told what ran afterwards: a documented limit of `ran_after_ns`.
FOLLOWED = 32


class Time(NamedTuple):
    """A time in which a thread could run and did not, with what it held."""

    delay: Delay
    held: list[Hold]


def table(locks: Locks, threads: Threads) -> Table:
    """One row for each lock that was held in such a time."""
    expected = []
    waits: dict[Lock, list[Wait]] = {}
    for wait in locks.waits:
        waits.setdefault(wait.lock, []).append(wait)
    for tid, timeline in threads.timelines.items():
        holds = [hold for hold in locks.holds if hold.tid == tid and hold.kind != SEMAPHORE]
        times = with_locks(timeline.delays, holds, locks.gone.get(tid))
        held_up = {hold for time in times for hold in time.held}
        followed = {hold: those_followed(hold, times) for hold in held_up}
        # Where records are missing there may be no row, and then another one is followed.
        sure = [time for time in times if not time.delay.doubt]
        otherwise = {hold: those_followed(hold, sure) for hold in held_up}
        seen: Counter[tuple[Hold, str]] = Counter()
        without_row: Counter[tuple[Hold, str]] = Counter()
        for delay, held in times:
            shares = threads.occupants(tid, delay.start, delay.end)
            for hold in held:
                seen[hold, delay.cause] += 1
                nth = seen[hold, delay.cause]
                # Where records are missing there may be no row, which then does not count.
                least = nth - without_row[hold, delay.cause]
                without_row[hold, delay.cause] += delay.doubt
                values: dict[str, Wanted] = {
                    "ts": delay.start,
                    "tid": tid,
                    "lock": hold.lock[1],
                    "dur": delay.end - delay.start,
                    "pid": hold.lock[0],
                    "comm": threads.named(tid),
                    "lock_name": locks.name(hold.lock),
                    "kind": hold.kind,
                    "site": hold.site,
                    "place": hold.place,
                    "depth": hold.depth,
                    "depth_mark": depth_mark(locks, tid, hold.lock[0], hold.start.ts),
                    "innermost": hold is held[-1],
                    "cause": delay.cause,
                    "nth": nth if least == nth else Within(least, nth),
                    **occupant("preemptor", shares, threads),
                    "preemptor_prio": priority(shares),
                    **waiters(delay, waits.get(hold.lock, [])),
                    "ran_after_ns": either(
                        lambda: ran_after(threads, delay, hold),
                        delay in followed[hold],
                        delay in otherwise[hold],
                    ),
                    "agent_ns": agent(shares, threads),
                    "mark": LOWER_BOUND if delay.doubt else mark(threads.parts(tid, delay.start, delay.end), shares),
                }
                expected.append(Expected(values, optional=delay.doubt))
    return Table("lock_preemptions", ("ts", "tid", "lock"), expected)


def those_followed(hold: Hold, times: list[Time]) -> list[Delay]:
    """The first time of each cause and the last ones, so many in all."""
    own = [time.delay for time in times if hold in time.held]
    first = [next(d for d in own if d.cause == cause) for cause in sorted({d.cause for d in own})]
    rest = [delay for delay in own if delay not in first]
    return first + rest[max(0, len(rest) - (FOLLOWED - len(first))) :]


def either(ask: Callable[[], Wanted], followed: bool, otherwise: bool) -> Wanted:
    """What is told of a time that is followed, or may be."""
    if not followed and not otherwise:
        return None
    ran = ask()
    return ran if followed == otherwise or isinstance(ran, Anything) else OneOf((ran, None))


def with_locks(delays: list[Delay], holds: list[Hold], gone: int | None) -> list[Time]:
    """The times of one thread in which it held locks, each with these in the order of their acquisition."""
    delays = [delay for delay in delays if gone is None or delay.start < gone]
    changes: list[tuple[int, int, bool, Delay | Hold]] = []
    # At equal times a switch comes before an event of the thread.
    changes += [(delay.start, -1, False, delay) for delay in delays]
    changes += [(hold.start.ts, hold.start.order, True, hold) for hold in holds]
    changes += [(at.ts, at.order, False, hold) for hold in holds if (at := hold.end or hold.dropped)]
    held: list[Hold] = []
    times = []
    for _, _, begins, what in sorted(changes, key=lambda change: change[:2]):
        if isinstance(what, Delay):
            here = [hold for hold in held if hold.is_on(what.start)]
            times += [Time(what, here)] if here else []
        elif begins:
            held.append(what)
        else:
            held.remove(what)
    return times


def priority(shares: Shares) -> Wanted:
    """Of the one that had the CPU longest."""
    if shares.doubtful_ns:
        return Anything()
    most = max(shares.ns.values(), default=0)
    return OneOf(tuple(p for t, ns in shares.ns.items() if ns == most for p in shares.prios[t]) or (None,))


def waiters(delay: Delay, waits: list[Wait]) -> dict[str, Wanted]:
    """Who waited for the lock meanwhile, and still did at the end."""
    delayed = {
        wait.tid: delay.end - max(wait.start.ts, delay.start)
        for wait in waits
        if wait.start.ts < delay.end and not over(wait, delay.end)
    }
    most = max(delayed.values(), default=None)
    return {
        "waiters": len(delayed),
        "delayed_ns": sum(delayed.values()),
        "longest_waiter_tid": OneOf(tuple(t for t in delayed if delayed[t] == most)) if delayed else None,
        "longest_waiter_ns": most,
    }


def over(wait: Wait, ts: int) -> bool:
    """Whether a wait has ended by then, with the lock or without."""
    end = wait.end.ts if wait.end else wait.cut
    return end is not None and end <= ts


def ran_after(threads: Threads, delay: Delay, hold: Hold) -> Wanted:
    """What the holder ran from then to the release."""
    if hold.end is None:
        return None
    parts = threads.parts(hold.tid, delay.end, hold.end.ts)
    if parts.doubtful_ns:
        return Anything()
    return sum(parts.ns[part] for part in ON_CPU)
