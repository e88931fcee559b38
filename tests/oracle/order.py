"""`lock_order` as it should be: which lock was acquired where while which other was held from where."""

from compare import Expected, OneOf, Table, Wanted
from holds import EXACT, LOWER_BOUND, depth_mark
from locks import SEMAPHORE, Hold, Locks

# Gates that are kept: a documented limit of the column.
GATES = 8


def table(locks: Locks) -> Table:
    """One row for each pair of locks, with their kinds and places."""
    pairs: dict[tuple, list[tuple[Hold, Hold]]] = {}
    for hold in (hold for hold in locks.holds if hold.kind != SEMAPHORE):
        for held in hold.held_before:
            if held.lock != hold.lock:
                key = (held.lock, held.kind, held.place, hold.lock, hold.kind, hold.place)
                pairs.setdefault(key, []).append((held, hold))
    expected = []
    for (held_lock, held_kind, held_place, lock, kind, place), found in pairs.items():
        tids = {hold.tid for _, hold in found}
        gates = set.intersection(*({g.lock[1] for g in before(*pair)} for pair in found))
        expected.append(Expected(
            {
                "pid": lock[0],
                "held_lock": held_lock[1],
                "lock": lock[1],
                "held_kind": held_kind,
                "kind": kind,
                "held_place": held_place,
                "place": place,
                "ts": found[0][1].start.ts,
                "count": len(found),
                "tid": tids.pop() if len(tids) == 1 else None,
                "held_name": locks.name(held_lock),
                "lock_name": locks.name(lock),
                "mark": worst([depth_mark(locks, hold.tid, lock[0], hold.start.ts) for _, hold in found]),
            },
            checks=[has_gates(gates)],
        ))
    key = ("pid", "held_lock", "held_kind", "held_place", "lock", "kind", "place")
    return Table("lock_order", key, expected)


def worst(marks: list[Wanted]) -> Wanted:
    """Where a lock may be held unseen at one acquisition, it may be a gate of the pair."""
    if LOWER_BOUND in [mark for mark in marks if isinstance(mark, str)]:
        return LOWER_BOUND
    return next((mark for mark in marks if isinstance(mark, OneOf)), EXACT)


def before(held: Hold, hold: Hold) -> list[Hold]:
    """What had been acquired before both and lets nobody else in."""
    return [gate for gate in held.held_before if gate in hold.held_before and not gate.kind.endswith("-read")]


def has_gates(gates: set[int]):
    """A check: these are the gates of a row, or 8 of them."""
    words = {f"{gate & (1 << 64) - 1:#x}" for gate in gates}

    def check(row: dict) -> str | None:
        found = set(row["gates"].split())
        right = found == words if len(words) <= GATES else found < words and len(found) == GATES
        return None if right else f"its gates are {row['gates']!r}, not {sorted(words)}"

    return check
