"""Rows as they should be, held against rows as they are."""

from dataclasses import dataclass, field, replace
from typing import Callable


@dataclass(frozen=True)
class OneOf:
    """Any of these values is right."""

    values: tuple

    def accepts(self, value: object) -> bool:
        return value in self.values


@dataclass(frozen=True)
class Within:
    """A number between two, both included."""

    low: int
    high: int

    def accepts(self, value: object) -> bool:
        return isinstance(value, int) and self.low <= value <= self.high


@dataclass(frozen=True)
class Anything:
    """The row's mark promises nothing of this column, or its meaning is not the oracle's matter."""

    def accepts(self, value: object) -> bool:
        return True


Wanted = OneOf | Within | Anything | int | str | bool | None


@dataclass
class Expected:
    """A row that should be there."""

    values: dict[str, Wanted]
    # Something is missing there: the row may be missing, too.
    optional: bool = False
    # What else must hold of the row as a whole: says what is wrong, or nothing.
    checks: list[Callable[[dict], str | None]] = field(default_factory=list)

    def faults(self, row: dict) -> list[str]:
        """What of a row is not as it should be."""
        found = [
            f"{name} is {row[name]!r}, should be {wanted!r}"
            for name, wanted in self.values.items()
            if not accepts(wanted, row[name])
        ]
        return found + [fault for check in self.checks if (fault := check(row))]


def accepts(wanted: Wanted, value: object) -> bool:
    """Whether a value is what is wanted."""
    if isinstance(wanted, (OneOf, Within, Anything)):
        return wanted.accepts(value)
    return wanted == value and type(wanted) is type(value)


@dataclass
class Table:
    """One result table: what it should hold, and by which columns its rows are told apart."""

    name: str
    key: tuple[str, ...]
    expected: list[Expected]
    # Rows that are neither expected nor wrong: because of something that is missing there.
    tolerates: Callable[[dict], bool] = lambda row: False

    def differences(self, rows: list[dict]) -> list[str]:
        """One line for each row that is missing, not expected, or different."""
        waiting: dict[tuple, list[Expected]] = {}
        for expected in self.expected:
            waiting.setdefault(tuple(expected.values[k] for k in self.key), []).append(expected)
        lines = []
        for row in rows:
            key = tuple(row[k] for k in self.key)
            candidates = waiting.get(key)
            if not candidates:
                if not self.tolerates(row):
                    lines.append(f"{self.describe(key)}: not expected: {row}")
                continue
            best = min(candidates, key=lambda c: len(c.faults(row)))
            candidates.remove(best)
            lines += [f"{self.describe(key)}: {fault}" for fault in best.faults(row)]
        for key, rest in waiting.items():
            lines += [f"{self.describe(key)}: missing: {e.values}" for e in rest if not e.optional]
        return lines

    def judges(self, row: dict) -> bool:
        """Whether a row that is there must be as expected."""
        return True

    def narrowed(self, rows: list[dict], row: dict) -> tuple["Table", list[dict]]:
        """What concerns one row, which is quicker to compare."""

        def same(other: dict) -> bool:
            return all(row[k] == other[k] for k in self.key)

        expected = [e for e in self.expected if same(e.values)]
        return replace(self, expected=expected), [r for r in rows if same(r)]

    def accepts(self, row: dict, column: str, value: object) -> bool:
        """Whether another value would be as right: of two that had a CPU equally long, or where one is in doubt."""
        same = [e for e in self.expected if all(row[k] == e.values[k] for k in self.key)]
        best = min(same, key=lambda e: len(e.faults(row)))
        return column in best.values and accepts(best.values[column], value)

    def describe(self, key: tuple) -> str:
        """A row's name in a message."""
        return self.name + " " + " ".join(f"{k}={v}" for k, v in zip(self.key, key))
