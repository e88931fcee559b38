"""Says of a trace whether a CPU that went and came was recorded while it was there, and only then.

usage: python hotplug.py DIR TIMES

TIMES has a line `cpus GOING MISSING TABLE`, the CPU that went and came, the one that was missing until then, and the table
with what only an event of the CPU's own records, and lines `WHAT SECONDS`: when the recorded command began, when the former was gone, was about to come, was back and was about to go, over and
over, and when the command ended, since the boot. Ends with status 1 if something is not as it should be.
"""

import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

# Samples of the work on a CPU, which takes about a second, of 997 that are asked for in each: emulated timers come late. Or,
# where these are not recorded, ends of page faults, of which the start of a program has more than a hundred.
FEW = 20

# The times are those of a clock with steps of 10 ms.
STEP = 10_000_000


def times(path: Path) -> list[tuple[str, int]]:
    """The times, ns; CLOCK_MONOTONIC is what it is since the boot, for nothing is suspended."""
    words = [line.split() for line in path.read_text().splitlines()]
    known = {"begins", "gone", "comes", "back", "goes", "ends"}
    return [(w[0], int(float(w[1]) * 1e9)) for w in words if len(w) == 2 and w[0] in known]


def words(path: Path) -> tuple[int, int, str]:
    """The CPU that goes and comes, the one that is missing at first, and the table in which they are looked for."""
    line = next(line for line in path.read_text().splitlines() if line.startswith("cpus "))
    _, going, missing, table = line.split()
    return int(going), int(missing), table


def lost(trace: Path) -> tuple[Counter[str], bool]:
    """What was lost, by program, and whether that may be: runs that the kernel itself left out, each with a time within the recording."""
    meta = json.loads((trace / "meta.json").read_text())
    counted = {origin: count for origin, count in meta["lost"].items() if count}
    begin, end = meta["start"]["start_ns"], (meta["end"] or {"ts": 0})["ts"]
    programs: Counter[str] = Counter()
    for row in pq.read_table(trace / "loss").to_pylist():
        if row["origin"] == "kernel-skipped" and begin <= row["ts"] and row["ts"] + row["dur"] <= end:
            programs[row["what"]] += row["count"]
    return programs, counted == ({"kernel-skipped": programs.total()} if programs else {})


def main() -> int:
    """Prints what was found of the CPU while it was there, and while it was gone."""
    trace, said = Path(sys.argv[1]), Path(sys.argv[2])
    at = times(said)
    going, missing, what = words(said)
    columns = ["ts", "cpu"] if what == "samples" else ["ts", "cpu", "kind"]
    found = pq.read_table(trace / what, columns=columns)
    if what == "page_faults":
        # Their ends are seen by the event of the CPU; their begins are not.
        found = found.filter(pc.field("kind").is_valid())
    rows = {what: found.to_pydict()}
    rows["sched_switch"] = pq.read_table(trace / "sched_switch", columns=["ts", "cpu"]).to_pydict()

    def count(table: str, cpu: int, begin: int, end: int) -> int:
        pairs = zip(rows[table]["ts"], rows[table]["cpu"], strict=True)
        return sum(c == cpu and begin + STEP < ts < end - STEP for ts, c in pairs)

    def between(first: str, then: str) -> list[tuple[int, int]]:
        ends = [(b, e) for (what, b), (after, e) in pairwise(at) if (what, after) == (first, then)]
        return [(count(what, going, *pair), count("sched_switch", going, *pair)) for pair in ends]

    there = between("begins", "gone") + between("back", "goes")
    while_gone = between("gone", "comes")
    cpus = sorted(set(rows["sched_switch"]["cpu"]))
    last = dict(at)
    late = count(what, missing, last["goes"], last["ends"]) if missing in cpus else FEW
    early = count("sched_switch", missing, 0, dict(reversed(at))["gone"])
    skipped, may_be = lost(trace)
    name = what.replace("_", " ")
    print(f"{name} and switches of CPU {going} while it was there: {there}; while it was gone: {while_gone}")
    print(f"of CPU {missing}: {early} switches while it was missing, then {late} {name}; left out: {dict(skipped)}")
    right = len(there) == 5 and all(seen >= FEW and switches > 0 for seen, switches in there)
    right = right and late >= FEW
    right = right and while_gone == [(0, 0)] * 4 and early == 0 and may_be
    if not right:
        print(said.read_text(), end="")
    each = ", ".join(str(seen) for seen, _ in there)
    less = f"; {skipped.total()} runs of programs left out by the kernel" if skipped else ""
    print(f"{each} {name} of CPU {going}, {sum(map(sum, while_gone))} while it was gone, of {len(cpus)} CPUs{less}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
