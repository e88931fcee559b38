"""`lock_waits` and `unfinished_waits` as they should be: who was to blame for a wait, moment by moment."""

from collections import Counter, defaultdict
from typing import NamedTuple

import own
from compare import Expected, OneOf, Table, Wanted
from cpus import Shares, touched
from holds import LOWER_BOUND, agent, at_most, depth_mark, mark, sums_to
from locks import Hold, Lock, Locks, Wait
from spared import Spared
from tables import Trace
from threads import PARTS, Parts, Threads


class Moment(NamedTuple):
    """A time between two neighbouring changes of any lock, as one wait sees it."""

    start: int
    end: int
    # The holder of the lock, the holder of the lock for which that one waits, and so on.
    chain: tuple[Hold, ...]
    # `root`: the last one waits for no lock. `no holder`: for one that nobody is known to hold. `circle`: for one
    # that the waiter holds; `cycle`: for one that another one of the chain holds.
    ends: str


def watch(locks: Locks, end: int) -> None:
    """Goes from change to change, and notes for each wait that is open who is to blame until the next one."""
    held: dict[Lock, list[Hold]] = {}
    waiting: dict[int, Wait] = {}
    steps = locks.steps
    for step, after in zip(steps, [*steps[1:], None]):
        if step.wait and step.begins:
            waiting[step.wait.tid] = step.wait
        elif step.wait:
            waiting.pop(step.wait.tid, None)
        elif step.hold and step.begins:
            # Whoever has it shows that those have it no longer whom it excludes, whose releases are recorded later.
            shared = step.hold.kind.endswith("-read")
            others = [h for h in held.get(step.hold.lock, []) if shared and h.kind.endswith("-read")]
            held[step.hold.lock] = [*others, step.hold]
        elif step.hold and step.hold in held[step.hold.lock]:
            held[step.hold.lock].remove(step.hold)
        until = after.at.ts if after else end
        for wait in waiting.values():
            chain, ends = follow(wait, held, waiting)
            wait.moments.append(Moment(step.at.ts, until, chain, ends))


def follow(wait: Wait, held: dict[Lock, list[Hold]], waiting: dict[int, Wait]) -> tuple[tuple[Hold, ...], str]:
    """From holder to holder; of readers at once the one that came first counts."""
    chain: list[Hold] = []
    waiter = wait.tid
    seen = {waiter}
    while True:
        others = [hold for hold in held.get(wait.lock, []) if hold.tid != wait.tid]
        if not others:
            return tuple(chain), "no holder"
        if others[0].tid in seen:
            return tuple(chain), "circle" if others[0].tid == waiter else "cycle"
        chain.append(others[0])
        seen.add(others[0].tid)
        next_wait = waiting.get(others[0].tid)
        if next_wait is None:
            return tuple(chain), "root"
        wait = next_wait


class Longest(NamedTuple):
    """Those of equal and greatest time, and that time."""

    holds: list[Hold]
    ns: int | None


def longest(times: Counter[tuple], holds: dict[tuple, Hold]) -> Longest:
    """Who has the greatest sum."""
    ns = max(times.values(), default=None)
    return Longest([holds[key] for key in times if times[key] == ns], ns)


class Blame:
    """The sums over the moments of a wait."""

    def __init__(self, wait: Wait, threads: Threads) -> None:
        holder_ns: Counter[tuple] = Counter()
        root_ns: Counter[tuple] = Counter()
        holders: dict[tuple, Hold] = {}
        roots: dict[tuple, Hold] = {}
        self.no_holder_ns = self.cycle_ns = self.holder_waits_ns = self.chain = doubtful = 0
        edge = False
        # Who had the CPU while those to blame waited for it.
        self.occupants = Shares()
        parts: Counter[str] = Counter()
        for moment in wait.moments:
            ns = moment.end - moment.start
            if ns == 0:
                # Of two changes at one time neither one shows who had the lock between them.
                continue
            self.chain = max(self.chain, len(moment.chain))
            if moment.chain:
                holder = moment.chain[0]
                holder_ns[holder.tid, holder.place_id] += ns
                holders[holder.tid, holder.place_id] = holder
                waits = len(moment.chain) > 1 or moment.ends != "root"
                self.holder_waits_ns += ns if waits else 0
            if moment.ends == "no holder":
                self.no_holder_ns += ns
            elif moment.ends != "root":
                self.cycle_ns += ns
            else:
                root = moment.chain[-1]
                key = (root.tid, root.lock, root.place_id)
                root_ns[key] += ns
                roots[key] = root
                found = threads.parts(root.tid, moment.start, moment.end)
                parts.update(found.ns)
                doubtful += found.doubtful_ns
                edge |= found.doubtful_edge
                occupants = threads.occupants(root.tid, moment.start, moment.end)
                self.occupants.ns.update(occupants.ns)
                self.occupants.doubtful_ns += occupants.doubtful_ns
        # Of the waiter itself no switch is needed, but the row may say that one is missing.
        if wait.end:
            edge |= threads.parts(wait.tid, wait.start.ts, wait.end.ts).doubtful_edge
        self.parts = Parts(parts, doubtful, edge)
        self.holder = longest(holder_ns, holders)
        self.root = longest(root_ns, roots)


def table(locks: Locks, threads: Threads) -> Table:
    """One row for each wait that ended with the lock."""
    expected = []
    holds: defaultdict[Lock, list[Hold]] = defaultdict(list)
    for hold in locks.holds:
        holds[hold.lock].append(hold)
    acquired = {w.end.order: w for w in locks.waits if w.acquired and w.end}
    spared = Spared(locks, threads)
    for wait in locks.waits:
        if not wait.acquired or wait.end is None:
            continue
        blame = Blame(wait, threads)
        dur = wait.end.ts - wait.start.ts
        values: dict[str, Wanted] = {
            "ts": wait.start.ts,
            "tid": wait.tid,
            "lock": wait.lock[1],
            "dur": dur,
            "pid": wait.lock[0],
            "comm": threads.named(wait.tid),
            "lock_name": locks.name(wait.lock),
            "kind": wait.kind,
            "site": wait.site,
            "place": wait.place,
            "depth": wait.depth,
            "depth_mark": depth_mark(locks, wait.tid, wait.lock[0], wait.start.ts),
            "holders": holders(holds[wait.lock], wait),
            **who("holder", blame.holder, threads),
            "holder_waits_ns": blame.holder_waits_ns,
            "chain": blame.chain,
            **who("root", blame.root, threads),
            "root_lock": one_of([locks.name(h.lock) for h in blame.root.holds]),
            **{f"{part}_ns": at_most(blame.parts.ns[part], blame.parts) for part in PARTS},
            "no_holder_ns": blame.no_holder_ns,
            "cycle_ns": blame.cycle_ns,
            **own.columns(wait, holds[wait.lock], acquired, threads),
            "own_cpu_ns": spared.column(wait),
            "agent_ns": agent(blame.occupants, threads),
            "mark": LOWER_BOUND if events_lost(locks.trace, wait) else mark(blame.parts),
        }
        expected.append(Expected(values, checks=[sums_to(dur, "no_holder_ns", "cycle_ns")]))
    return Table("lock_waits", ("ts", "tid", "lock"), expected)


def events_lost(trace: Trace, wait: Wait) -> bool:
    """Whether any thread of the process lost events meanwhile: it may have held the lock."""
    assert wait.end
    own = [loss for loss in trace.losses if loss.origin in ("ring", "shared-ring") and loss.pid == wait.lock[0]]
    return touched(own, wait.start.ts, wait.end.ts)


def holders(holds: list[Hold], wait: Wait) -> int:
    """Of the holds of a lock, those by others that overlap the wait."""
    assert wait.end
    first, last = wait.start.order, wait.end.order
    return sum(
        hold.tid != wait.tid and hold.start.order < last and (over is None or over.order > first)
        for hold in holds
        for over in [hold.end or hold.dropped]
    )


def who(prefix: str, longest: Longest, threads: Threads) -> dict[str, Wanted]:
    """Number, name, place and time."""
    comms = [comm for hold in longest.holds for comm in threads.comms[hold.tid]]
    return {
        f"{prefix}_tid": one_of([hold.tid for hold in longest.holds]),
        f"{prefix}_comm": one_of(comms),
        f"{prefix}_place": one_of([hold.place for hold in longest.holds]),
        f"{prefix}_ns": longest.ns,
    }


def one_of(values: list) -> Wanted:
    """Any of them; null if there are none."""
    return OneOf(tuple(values)) if values else None


def unfinished(locks: Locks, threads: Threads) -> Table:
    """One row for each wait that had not ended."""
    expected = []
    for wait in locks.waits:
        if wait.end is not None or wait.lost:
            continue
        end = wait.cut if wait.cut is not None else threads.end
        last = wait.moments[-1].chain if wait.moments else ()
        holder = last[0] if last else None
        # It does not end when the first of them is killed.
        circles = [[wait.tid, *(h.tid for h in m.chain)] for m in wait.moments if m.ends == "circle"]
        expected.append(Expected({
            "ts": wait.start.ts,
            "tid": wait.tid,
            "lock": wait.lock[1],
            "dur": end - wait.start.ts,
            "pid": wait.lock[0],
            "comm": threads.named(wait.tid),
            "lock_name": locks.name(wait.lock),
            "kind": wait.kind,
            "place": wait.place,
            "ended": "exec" if wait.executed else "trace" if wait.cut is None else "thread",
            "holder_tid": holder and holder.tid,
            "holder_comm": one_of(list(threads.comms[holder.tid])) if holder else None,
            "holder_place": holder and holder.place,
            "holder_since": holder and holder.start.ts,
            "holder_gone": bool(holder and locks.gone.get(holder.tid, end + 1) <= end),
            "cycle": min(circles[-1]) if circles else None,
        }))
    return Table("unfinished_waits", ("ts", "tid", "lock"), expected)
