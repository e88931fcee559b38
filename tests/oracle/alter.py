"""Proof that the comparison can fail: alters the results in every way that should be noticed."""

from typing import Iterator, Protocol

# Of these columns the oracle judges too little to notice every change.
NOT_JUDGED = {
    ("gaps", "inferred"),
    # A gap may be called unexplained, so only what is not null is judged.
    ("gaps", "cause"),
    ("gaps", "culprit"),
    ("gaps", "culprit_tid"),
    # As in `dispatch_latency`, which is judged; and the mark of that.
    ("timer_latency", "running_tid"),
    ("timer_latency", "running_comm"),
    ("timer_latency", "running_ns"),
    ("timer_latency", "mark"),
    # Two programs read the clock at one switch; and what a chain is of is checked by programs that know it.
    *(("call_chains", column) for column in ("ts", "dur", "pid", "woken_tid", "woken_pid", "stack", "user", "cut")),
    # Sums of sleeps are judged, by thread, depth and kind.
    *(
        ("blame", column)
        for column in (
            "ts", "pid", "comm", "call", "file", "object", "operation", "lock", "join", "turns", "asked", "vain", "withheld",
            "through_comm", "through_call", "through_needs", "through_stack", "holder_tid", "stack", "waker_tid", "waker_pid",
            "waker_comm", "waker_stack", "behind_tid", "behind_pid", "behind_comm", "culprit", "culprit_tid", "recording",
            "behind_call", "behind_file", "behind_stack", "sampled", "pieces", "waits", "longest_ns", "longest_ts", "mark",
        )
    ),
    # Any positive number of stretches is right.
    ("thread_time", "stretches"),
}

# Rows of each table in which every column is altered.
ROWS = 20

# Of fewer rows, each may be one in which a column is in doubt, so that any value is right.
FEW = 5


class Compared(Protocol):
    """A table of the oracle."""

    name: str

    def differences(self, rows: list[dict]) -> list[str]: ...

    def judges(self, row: dict) -> bool: ...

    def narrowed(self, rows: list[dict], row: dict) -> tuple["Compared", list[dict]]: ...

    def accepts(self, row: dict, column: str, value: object) -> bool: ...


def unnoticed(table: Compared, rows: list[dict], lossy: bool) -> Iterator[str]:
    """What was altered of rows that are right, without a difference; and columns that could not be altered in any of many,
    unless records are missing: of some columns nothing is sure then."""
    exact = [row for row in rows if row.get("mark", "exact") == "exact" and table.judges(row)]
    judged = {column for column in rows[0] if (table.name, column) not in NOT_JUDGED} if exact else set()
    altered_once: set[str] = set()
    for row in exact[:: max(1, len(exact) // ROWS)][:ROWS]:
        near, same = table.narrowed(rows, row)
        at = same.index(row)
        alterations = [("dropped", []), ("doubled", [row, row])]
        for column in judged:
            value = other(row[column])
            if not near.accepts(row, column, value):
                altered_once.add(column)
                alterations.append((f"{column} made {value!r}", [row | {column: value}]))
        for what, altered in alterations:
            if not near.differences([*same[:at], *altered, *same[at + 1 :]]):
                yield f"{table.name}: {what}: {row}"
    if len(exact) >= FEW and not lossy:
        yield from (f"{table.name}: any value of {column}" for column in sorted(judged - altered_once))


def other(value: object) -> object:
    """The smallest change."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return "nobody" if isinstance(value, str) else 1
