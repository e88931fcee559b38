"""Proof that the comparison can fail: alters the results in every way that should be noticed."""

from typing import Iterator, Protocol

# Of these columns the oracle judges too little to notice every change.
NOT_JUDGED = {
    ("gaps", "inferred"),
    # A gap may be called unexplained, so only what is not null is judged.
    ("gaps", "cause"),
    ("gaps", "culprit"),
    ("gaps", "culprit_tid"),
    # Any positive number of stretches is right.
    ("thread_time", "stretches"),
}

# Rows of each table in which every column is altered.
ROWS = 3


class Compared(Protocol):
    """A table of the oracle."""

    name: str

    def differences(self, rows: list[dict]) -> list[str]: ...

    def narrowed(self, rows: list[dict], row: dict) -> tuple["Compared", list[dict]]: ...


def unnoticed(table: Compared, rows: list[dict]) -> Iterator[str]:
    """What was altered of rows that are right, without a difference."""
    exact = [row for row in rows if row.get("mark", "exact") == "exact"]
    for row in exact[:: max(1, len(exact) // ROWS)][:ROWS]:
        near, same = table.narrowed(rows, row)
        at = same.index(row)
        for what, altered in alterations(table.name, row):
            if not near.differences([*same[:at], *altered, *same[at + 1 :]]):
                yield f"{table.name}: {what}: {row}"


def alterations(table: str, row: dict) -> Iterator[tuple[str, list[dict]]]:
    """What can be wrong with a row, and what is there in its place."""
    yield "dropped", []
    yield "doubled", [row, row]
    for column, value in row.items():
        if (table, column) not in NOT_JUDGED:
            yield f"{column} made {other(value)!r}", [row | {column: other(value)}]


def other(value: object) -> object:
    """The smallest change."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return "nobody" if isinstance(value, str) else 1
