"""`histograms` as it should be: the rows of other result tables, which are judged by themselves, counted by their lengths."""

from collections import defaultdict
from pathlib import Path

from compare import Expected, OneOf, Table
from tables import results

# Quantity, table, and its columns of name, place and thread: of holds that is looked up, and of wake-ups there is no name.
SOURCES = (
    ("hold", "critical_sections", "lock_name", "place", None),
    ("wait", "lock_waits", "lock_name", "place", "comm"),
    ("dispatch", "dispatch_latency", None, None, "comm"),
    ("gap", "gaps", "cause", None, "comm"),
    ("scope", "scopes", "event", None, "comm"),
    ("request", "requests", "kind", None, "end_comm"),
)


def bounds(ns: int) -> tuple[int, int]:
    """Lengths that are counted together with this one: each power of two from 64 on is divided into 32."""
    width = 1 if ns < 64 else 2 ** (ns.bit_length() - 6)
    least = ns // width * width
    return least, least + width - 1


def table(directory: Path) -> Table:
    """A row for each length that there was, of each quantity, name, place, thread and mark."""
    names = {(row["pid"], row["tid"]): row["name"] for row in results(directory, "threads")}
    groups: defaultdict[tuple, list[dict]] = defaultdict(list)
    for quantity, source, name, place, comm in SOURCES:
        end = "end_" if quantity == "request" else ""
        for row in results(directory, source):
            thread = (row[end + "pid"], row[end + "tid"])
            called = row[comm] if comm else names.get(thread, "")
            what = (row[name] or "" if name else "", row[place] if place else "")
            key = (quantity, *what, called, row["mark"], *bounds(row["dur"]))
            groups[key].append({"ts": row["ts"], "thread": thread, "ns": row["dur"]})
    expected = []
    for (quantity, name, place, comm, mark, least, greatest), rows in groups.items():
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
                    "from_ns": least,
                    "to_ns": greatest,
                    "count": len(rows),
                    "sum_ns": sum(row["ns"] for row in rows),
                    "max_ns": most,
                    "mark": mark,
                }
            )
        )
    return Table("histograms", ("quantity", "name", "place", "comm", "mark", "from_ns"), expected)
