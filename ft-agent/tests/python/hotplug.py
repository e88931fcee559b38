"""Says of a trace whether a CPU that went and came was recorded while it was there, and only then.

usage: python hotplug.py DIR TIMES

TIMES has lines `WHAT SECONDS`: when the recorded command began, CPU 1 was gone, came, was back, and the command ended, since
the boot. Ends with status 1 if something is not as it should be.
"""

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq

# Samples of a second on a CPU, of 997 that are asked for: emulated timers come late.
FEW = 20


def times(path: Path) -> dict[str, int]:
    """The times, ns; CLOCK_MONOTONIC is what it is since the boot, for nothing is suspended."""
    words = [line.split() for line in path.read_text().splitlines()]
    return {
        what: int(float(seconds) * 1e9)
        for what, seconds in (w for w in words if len(w) == 2)
        if what in {"begins", "gone", "comes", "back", "ends"}
    }


def main() -> int:
    """Prints what was found of CPU 1 before, while it was gone, and afterwards."""
    trace, at = Path(sys.argv[1]), times(Path(sys.argv[2]))

    def count(table: str, cpu: int, begin: str, end: str) -> int:
        rows = pq.read_table(trace / table, columns=["ts", "cpu"]).to_pydict()
        pairs = zip(rows["ts"], rows["cpu"], strict=True)
        # The times are those of a clock with steps of 10 ms.
        return sum(
            c == cpu and at[begin] + 10_000_000 < ts < at[end] - 10_000_000 for ts, c in pairs
        )

    before, while_gone, after = (
        tuple(count(table, 1, *ends) for table in ("samples", "sched_switch"))
        for ends in (("begins", "gone"), ("gone", "comes"), ("back", "ends"))
    )
    cpus = sorted(set(pq.read_table(trace / "sched_switch", columns=["cpu"])["cpu"].to_pylist()))
    late = count("samples", 3, "back", "ends") if 3 in cpus else FEW
    early = count("sched_switch", 3, "begins", "gone")
    lost = json.loads((trace / "meta.json").read_text())["lost"]
    print(f"samples and switches of CPU 1: {before}, then {while_gone}, then {after}")
    print(f"of CPU 3: {early} switches while it was missing, then {late} samples; lost {lost}")
    right = min(*before[:1], *after[:1], late) >= FEW and min(before[1], after[1]) > 0
    right = right and while_gone == (0, 0) and early == 0 and not any(lost.values())
    print(f"{before[0]} samples, {while_gone[0]} while it was gone, then {after[0]}, of {len(cpus)} CPUs")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
