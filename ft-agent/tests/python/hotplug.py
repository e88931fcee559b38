"""Says of a trace whether a CPU that went and came was recorded while it was there, and only then.

usage: python hotplug.py DIR TIMES

TIMES has lines `WHAT SECONDS`: when the recorded command began, when CPU 1 was gone, was about to come, was back and was about
to go, over and over, and when the command ended, since the boot. Ends with status 1 if something is not as it should be.
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq

# Samples of the work on a CPU, which takes about a second, of 997 that are asked for in each: emulated timers come late.
FEW = 20

# The times are those of a clock with steps of 10 ms.
STEP = 10_000_000


def times(path: Path) -> list[tuple[str, int]]:
    """The times, ns; CLOCK_MONOTONIC is what it is since the boot, for nothing is suspended."""
    words = [line.split() for line in path.read_text().splitlines()]
    known = {"begins", "gone", "comes", "back", "goes", "ends"}
    return [(w[0], int(float(w[1]) * 1e9)) for w in words if len(w) == 2 and w[0] in known]


def main() -> int:
    """Prints what was found of CPU 1 while it was there, and while it was gone."""
    trace, said = Path(sys.argv[1]), Path(sys.argv[2])
    at = times(said)
    rows = {
        table: pq.read_table(trace / table, columns=["ts", "cpu"]).to_pydict()
        for table in ("samples", "sched_switch")
    }

    def count(table: str, cpu: int, begin: int, end: int) -> int:
        pairs = zip(rows[table]["ts"], rows[table]["cpu"], strict=True)
        return sum(c == cpu and begin + STEP < ts < end - STEP for ts, c in pairs)

    def between(first: str, then: str) -> list[tuple[int, int]]:
        ends = [(b, e) for (what, b), (after, e) in pairwise(at) if (what, after) == (first, then)]
        return [(count("samples", 1, *pair), count("sched_switch", 1, *pair)) for pair in ends]

    there = between("begins", "gone") + between("back", "goes")
    while_gone = between("gone", "comes")
    cpus = sorted(set(rows["sched_switch"]["cpu"]))
    last = dict(at)
    late = count("samples", 3, last["goes"], last["ends"]) if 3 in cpus else FEW
    early = count("sched_switch", 3, 0, dict(reversed(at))["gone"])
    lost = json.loads((trace / "meta.json").read_text())["lost"]
    print(f"samples and switches of CPU 1 while it was there: {there}; while it was gone: {while_gone}")
    print(f"of CPU 3: {early} switches while it was missing, then {late} samples; lost {lost}")
    right = all(samples >= FEW and switches > 0 for samples, switches in there) and late >= FEW
    right = right and while_gone == [(0, 0)] * 4 and early == 0 and not any(lost.values())
    if not right:
        print(said.read_text(), end="")
    found = ", ".join(str(samples) for samples, _ in there)
    print(f"{found} samples, {sum(map(sum, while_gone))} while it was gone, of {len(cpus)} CPUs")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
