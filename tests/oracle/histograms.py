"""`histograms` as it should be: the rows of other result tables, which are judged by themselves, counted by their lengths."""

from collections import defaultdict
from pathlib import Path

from compare import Expected, OneOf, Table
from tables import results

# Quantity, table, and its columns of name, place and thread: of holds that is looked up, and of wake-ups there is no name. Then what
# the columns of the neighbour begin with, who had the CPU instead of the thread.
SOURCES = (
    ("hold", "critical_sections", "lock_name", "place", None, "preemptor"),
    ("wait", "lock_waits", "lock_name", "place", "comm", None),
    ("dispatch", "dispatch_latency", None, None, "comm", "running"),
    ("gap", "gaps", "cause", None, "comm", "culprit"),
    ("scope", "scopes", "event", None, "comm", "preemptor"),
    ("request", "requests", "kind", None, "end_comm", None),
)


def bounds(ns: int) -> tuple[int, int]:
    """Lengths that are counted together with this one: each power of two from 64 on is divided into 32."""
    width = 1 if ns < 64 else 2 ** (ns.bit_length() - 6)
    least = ns // width * width
    return least, least + width - 1


def neighbour(row: dict, prefix: str | None) -> str:
    """Who had the CPU; interrupts, which have no thread, had it for themselves."""
    if prefix is None or row[prefix + "_tid"] is None:
        return ""
    name = "culprit" if prefix == "culprit" else prefix + "_comm"
    return "swapper" if row[prefix + "_tid"] == 0 else row[name]


def table(directory: Path) -> Table:
    """A row for each length that there was, of each quantity, name, place, thread, neighbour and mark."""
    names = {(row["pid"], row["tid"]): row["name"] for row in results(directory, "threads")}
    groups: defaultdict[tuple, list[dict]] = defaultdict(list)
    for quantity, source, name, place, comm, beside in SOURCES:
        end = "end_" if quantity == "request" else ""
        for row in results(directory, source):
            thread = (row[end + "pid"], row[end + "tid"])
            called = row[comm] if comm else names.get(thread, "")
            what = (row[name] or "" if name else "", row[place] if place else "")
            key = (quantity, *what, called, neighbour(row, beside), row["mark"], *bounds(row["dur"]))
            groups[key].append({"ts": row["ts"], "thread": thread, "ns": row["dur"]})
    expected = []
    for (quantity, name, place, comm, behind, mark, least, greatest), rows in groups.items():
        most = max(row["ns"] for row in rows)
        longest = [row for row in rows if row["ns"] == most]
        expected.append(
            Expected(
                {
                    "ts": OneOf(tuple(row["ts"] for row in longest)),
                    "pid": OneOf(tuple(row["thread"][0] for row in longest)),
                    "tid": OneOf(tuple(row["thread"][1] for row in longest)),
                    "quantity": quantity,
                    "name": name,
                    "place": place,
                    "comm": comm,
                    "neighbour": behind,
                    "from_ns": least,
                    "to_ns": greatest,
                    "count": len(rows),
                    "sum_ns": sum(row["ns"] for row in rows),
                    "max_ns": most,
                    "mark": mark,
                }
            )
        )
    return Table("histograms", ("quantity", "name", "place", "comm", "neighbour", "mark", "from_ns"), expected)
