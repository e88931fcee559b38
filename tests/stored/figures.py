"""Recomputes figures of the reports from the tables of the analyses, and compares them.

usage: python figures.py TRACE REPORTS

REPORTS holds `locks.json`, `waits.json` and so on. Prints every difference; ends with status 1 if there is one.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Callable, Iterable

import pyarrow.dataset

PARTS = ["running", "preempted", "dispatch", "blocked", "hardirq", "softirq", "vector", "unexplained", "parked"]
# A wake-up is counted as later than each of these, ns.
LATE = [1_000_000, 5_000_000, 10_000_000, 50_000_000]

Rows = list[dict]
faults: list[str] = []
figures = 0


def same(what: str, stated: object, found: object) -> None:
    """Compares one figure."""
    global figures
    figures += 1
    if stated != found and not (isinstance(found, float) and abs(stated - found) <= 1e-9 * abs(found)):
        faults.append(f"{what}: the report says {stated!r}, the table {found!r}")


def groups(rows: Rows, *columns: str) -> dict[tuple, Rows]:
    """Rows by the values of these columns."""
    found: dict[tuple, Rows] = defaultdict(list)
    for row in rows:
        found[tuple(row[column] for column in columns)].append(row)
    return found


def named(rows: Rows, tid: str, name: str) -> Rows:
    """Rows with a column `who`: every CPU has an idle task, with a name of its own, and reports have one."""
    return [row | {"who": "(idle)" if row[tid] == 0 else row[name]} for row in rows]


def each(what: str, stated: Rows, keys: dict[str, str], rows: Rows, check: Callable[[str, dict, Rows], None]) -> None:
    """Compares a list of a report with the groups of rows that it stands for; `keys`: column to key of the report."""
    found = groups(rows, *keys)
    same(f"{what}: how many", len(stated), len(found))
    for entry in stated:
        key = tuple(entry[name] for name in keys.values())
        check(f"{what} {key}", entry, found[key])


def total(rows: Iterable[dict], column: str) -> int:
    """The sum of a column."""
    return sum(row[column] or 0 for row in rows)


def lengths(what: str, entry: dict, values: list[int]) -> None:
    """Sum, greatest, mean and percentiles by nearest rank, where they are stated."""
    values = sorted(values)
    if "total_ns" in entry:
        same(f"{what} total_ns", entry["total_ns"], sum(values))
    if "mean_ns" in entry:
        same(f"{what} mean_ns", entry["mean_ns"], sum(values) / len(values))
    same(f"{what} max_ns", entry["max_ns"], values[-1])
    for name, per_10000 in [("p50", 5000), ("p90", 9000), ("p99", 9900), ("p999", 9990), ("p9999", 9999)]:
        stated = entry.get(f"{name}_ns")
        if stated is not None:
            same(f"{what} {name}", stated, values[-(-len(values) * per_10000 // 10_000) - 1])


def parts(what: str, entry: dict, rows: Rows) -> None:
    """The sums of a decomposition."""
    for part in PARTS:
        same(f"{what} {part}", entry["parts"].get(f"{part}_ns", 0), total(rows, f"{part}_ns"))


def locks(report: dict, rows: Rows) -> None:
    """`locks` from `critical_sections`."""

    def group(what: str, entry: dict, holds: Rows) -> None:
        waits = [hold["wait_ns"] for hold in holds if hold["wait_ns"] > 0]
        same(f"{what} holds", entry["holds"], len(holds))
        same(f"{what} nested", entry["nested"], sum(hold["depth"] > 0 for hold in holds))
        same(f"{what} instances", entry["instances"], len({(hold["pid"], hold["lock"]) for hold in holds}))
        same(f"{what} condition", entry["condition"], sum(hold["condition"] for hold in holds))
        same(f"{what} lower bounds", entry["lower_bounds"], sum(hold["mark"] != "exact" for hold in holds))
        same(f"{what} waits", entry["waits"], len(waits))
        same(f"{what} wait_total_ns", entry["wait_total_ns"], sum(waits))
        same(f"{what} wait_max_ns", entry["wait_max_ns"], max(waits, default=0))
        bins = groups([{"bin": hold["dur"] // 100 * 100} for hold in holds if hold["dur"] < 10_000_000], "bin")
        stated = {(bin,): n for bin, n in entry["histogram_100ns"] if bin < 10_000_000}
        same(f"{what} histogram", stated, {bin: len(found) for bin, found in bins.items()})
        lengths(what, entry, [hold["dur"] for hold in holds])
        if report["decomposed"]:
            parts(what, entry, holds)

    if rows:
        group("locks all", report["all"], rows)
    each("locks", report["locks"], {"pid": "pid", "lock_name": "lock", "kind": "kind"}, rows, group)
    depths = groups(rows, "depth")
    same("locks depths", report["depths"], [len(depths[n,]) for n in range(len(report["depths"]))])


def waits(report: dict, rows: Rows) -> None:
    """`waits` from `lock_waits`."""

    def group(what: str, entry: dict, waits: Rows) -> None:
        same(f"{what} waits", entry["waits"], len(waits))
        for column in ["no_holder_ns", "cycle_ns", "holder_waits_ns"]:
            same(f"{what} {column}", entry[column], total(waits, column))
        lengths(what, entry, [wait["dur"] for wait in waits])
        if report["decomposed"]:
            parts(what, entry, waits)

    def root(what: str, entry: dict, waits: Rows) -> None:
        same(f"{what} waits", entry["waits"], len(waits))
        lengths(what, entry, [wait["root_ns"] for wait in waits])

    same("waits total_ns", report["total_ns"], total(rows, "dur"))
    each("waits", report["locks"], {"pid": "pid", "lock_name": "lock", "kind": "kind"}, rows, group)
    keys = {"pid": "pid", "root_comm": "comm", "root_lock": "lock", "root_place": "place"}
    each("roots", report["roots"], keys, [row for row in rows if row["root_tid"] is not None], root)


def preempted(report: dict, rows: Rows) -> None:
    """`preempted` from `lock_preemptions`: of locks that are held at once one counts, but for the locks themselves."""

    def group(what: str, entry: dict, times: Rows) -> None:
        same(f"{what} times", entry["times"], len(times))
        same(f"{what} delayed_ns", entry["delayed_ns"], total(times, "delayed_ns"))
        lengths(what, entry, [time["dur"] for time in times])

    each("preempted", report["locks"], {"pid": "pid", "lock_name": "lock", "kind": "kind"}, rows, group)
    innermost = [row for row in rows if row["innermost"]]
    same("preempted times", report["times"], len(innermost))
    same("preempted total_ns", report["total_ns"], total(innermost, "dur"))

    def instead(what: str, entry: dict, times: Rows) -> None:
        whole = [time for time in times if time["innermost"]]
        same(f"{what} times", entry["times"], len(whole))
        same(f"{what} total_ns", entry["total_ns"], total(whole, "dur"))
        same(f"{what} own_ns", entry["own_ns"], sum(time["preemptor_ns"] or 0 for time in whole))
        same(f"{what} delayed_ns", entry["delayed_ns"], total(times, "delayed_ns"))

    whose = named([row | {"preemptor_comm": row["preemptor_comm"] or ""} for row in rows], "preemptor_tid", "preemptor_comm")
    each("ran instead", report["preemptors"], {"who": "comm", "cause": "cause"}, whose, instead)


def what_if(report: dict, rows: Rows) -> None:
    """`what-if` from `what_ifs`: of holds in which nothing is missing."""

    def group(what: str, entry: dict, held_up: Rows) -> None:
        same(f"{what} holds", entry["holds"], len(held_up))
        same(f"{what} lost_ns", entry["lost_ns"], total(held_up, "preempted_ns") + total(held_up, "dispatch_ns"))
        waited_for = [row for row in held_up if row["waiters"] is not None]
        same(f"{what} waiters", entry["waiters"], total(waited_for, "waiters"))
        for name in ("waited_ns", "urgent_ns", "inherited_ns", "prioritized_ns", "own_cpu_ns"):
            same(f"{what} {name}", entry[name], total(waited_for, name))
        for grant in entry["grants"]:
            ends = [row for row in held_up if row["bar"] == "nothing" and row["running_ns"] <= grant["grant_ns"]]
            same(f"{what} ended in {grant['grant_ns']}", grant["ended"], len(ends))
            spared = sum(row["run_on_ns"] or 0 for row in ends)
            same(f"{what} spared by {grant['grant_ns']}", grant["spared_ns"], spared)

    rows = [row for row in rows if row["mark"] in ("exact", "disturbed")]
    group("what-if all", report["all"], rows)
    each("what-if", report["locks"], {"pid": "pid", "lock_name": "lock", "kind": "kind"}, rows, group)


def dispatch(report: dict, rows: Rows) -> None:
    """`dispatch` from `dispatch_latency`."""

    def group(what: str, entry: dict, wakes: Rows) -> None:
        same(f"{what} wakeups", entry["wakeups"], len(wakes))
        late = [sum(wake["dur"] > limit for wake in wakes) for limit in LATE]
        same(f"{what} later than", entry["later_than"], late)
        lengths(what, entry, [wake["dur"] for wake in wakes])

    # What is censored may be two wake-ups.
    rows = [row for row in rows if row["mark"] != "censored"]
    if rows:
        group("dispatch all", report["all"], rows)
    each("dispatch", report["threads"], {"pid": "pid", "tid": "tid"}, rows, group)


def gaps(report: dict, rows: Rows) -> None:
    """`gaps` from `gaps`."""

    def group(what: str, entry: dict, found: Rows) -> None:
        same(f"{what} gaps", entry["gaps"], len(found))
        lengths(what, entry, [gap["dur"] for gap in found])

    same("gaps", report["gaps"], len(rows))
    named = [row for row in rows if row["culprit"] is not None]
    stated = [entry for entry in report["culprits"] if entry["culprit"] is not None]
    each("gaps", stated, {"cause": "cause", "culprit": "culprit"}, named, group)


def time(report: dict, rows: Rows) -> None:
    """`time` from `thread_time`."""

    def thread(what: str, entry: dict, found: Rows) -> None:
        same(f"{what} wall_ns", entry["wall_ns"], found[0]["wall_ns"])
        same(f"{what} sum_ns", entry["sum_ns"], total(found, "spent_ns"))

    def culprit(what: str, entry: dict, found: Rows) -> None:
        same(f"{what} spent_ns", entry["spent_ns"], total(found, "spent_ns"))
        same(f"{what} stretches", entry["stretches"], total(found, "stretches"))

    each("time", report["threads"], {"pid": "pid", "tid": "tid", "ts": "from_ns"}, rows, thread)
    each("time", report["culprits"], {"part": "part", "who": "culprit"}, named(rows, "culprit_tid", "culprit"), culprit)


def main() -> int:
    """Compares all reports."""
    trace, reports = Path(sys.argv[1]), Path(sys.argv[2])
    for report, table in [
        (locks, "critical_sections"),
        (waits, "lock_waits"),
        (preempted, "lock_preemptions"),
        (what_if, "what_ifs"),
        (dispatch, "dispatch_latency"),
        (gaps, "gaps"),
        (time, "thread_time"),
    ]:
        rows = pyarrow.dataset.dataset(trace / table, format="parquet").to_table().to_pylist()
        name = report.__name__.replace("_", "-")
        found = json.loads((reports / f"{name}.json").read_text())
        # Stored under the names of before, or under those of now.
        report(found["sections"][name]["values"] if "sections" in found else found, rows)
    print("\n".join(faults[:30]))
    print(f"{figures} figures, {len(faults)} differences")
    return 1 if faults or not figures else 0


if __name__ == "__main__":
    sys.exit(main())
