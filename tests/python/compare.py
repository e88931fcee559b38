"""A second implementation of `ft-agent compare`, from the tables and with SciPy.

    compare.py rows FILE       rows, labelings and results of `ft_report::compare::permute`, as JSON
    compare.py traces FILE     what `ft-agent compare --json` has printed of four and four traces or so

Every figure must agree; the program ends with the first that does not.
"""

import itertools
import json
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
from scipy import stats

# Rounded values have little variance, which SciPy remarks on.
warnings.simplefilter("ignore", RuntimeWarning)


def trim(values):
    """The part that is left out at each end: a fifth, of eight and more."""
    return 0.2 if len(values) >= 8 else 0.0


def trimmed(values):
    """The mean without the ends, how many that is of, and the squares that its error is made of (Yuen)."""
    winsorized = np.asarray(stats.mstats.winsorize(values, (trim(values), trim(values))))
    left = len(values) - 2 * int(trim(values) * len(values))
    return stats.trim_mean(values, trim(values)), left, np.sum((winsorized - winsorized.mean()) ** 2)


def differences(values, resolution, of_a):
    """Difference of the trimmed means and its error, by SciPy's test of Yuen (or Student's, of a single unit)."""
    a, b = [side[~np.isnan(side)] for side in (values[of_a], np.delete(values, of_a))]
    if min(len(a), len(b)) == 0 or len(a) + len(b) < 3:
        return 0.0, math.inf
    (mean_a, left_a, squares_a), (mean_b, left_b, squares_b) = trimmed(a), trimmed(b)
    by = mean_b - mean_a
    if trim(a) == trim(b):
        pooled = min(len(a), len(b)) < 2
        t = stats.ttest_ind(b, a, equal_var=pooled, trim=trim(a)).statistic
        error = 0.0 if by == 0 or math.isinf(t) else by / t
    elif min(len(a), len(b)) < 2:
        # SciPy trims both sides alike, or none.
        error = math.sqrt((squares_a + squares_b) / (left_a + left_b - 2) * (1 / left_a + 1 / left_b))
    else:
        error = math.sqrt(squares_a / (left_a - 1) / left_a + squares_b / (left_b - 1) / left_b)
    rounding = resolution**2 / 12 * (1 / left_a + 1 / left_b)
    return by, math.sqrt(error**2 + rounding)


def size(values, resolution, of_a):
    by, error = differences(values, resolution, of_a)
    return 0.0 if by == 0 else by / error if error else math.copysign(math.inf, by)


def labelings(n, a):
    return [list(units) for units in itertools.combinations(range(n), a)]


def maxima(rows, a, both=True):
    n = len(rows[0][0])
    sizes = [[size(values, resolution, of_a) for values, resolution in rows] for of_a in labelings(n, a)]
    return np.sort(np.max(np.abs(sizes) if both else sizes, axis=1))[::-1]


def critical(largest):
    beyond = math.floor(0.05 * len(largest))
    return math.inf if beyond == 0 else largest[beyond]


def close(found, expected, what, relative=1e-9):
    same = found == expected or math.isclose(found, expected, rel_tol=relative, abs_tol=1e-12)
    assert same, f"{what}: {found}, and here {expected}"


def rows(path):
    count = 0
    for case in json.loads(Path(path).read_text()):
        a, both = case["a"], case["both"]
        made = [
            (np.array([math.nan if v is None else v for v in row["values"]]), row["resolution"])
            for row in case["rows"]
        ]
        # Where not all labelings were looked at, which were is not known here.
        largest = maxima(made, a, both) if case["labelings"] else None
        if largest is not None:
            assert len(largest) == case["labelings"]
            close(case["critical"], critical(largest), "critical", 1e-6)
        for (values, resolution), row in zip(made, case["rows"]):
            by, error = differences(values, resolution, list(range(a)))
            close(row["by"], by, "difference")
            close(row["error"], error, "error")
            count += 1
            if largest is None:
                continue
            t = abs(by / error) if both else by / error
            close(row["p"], np.mean(largest >= t * (1 - 1e-9) if t > 0 else largest >= t * (1 + 1e-9)), "p")
        # Of a single row, the adjusted p is that of an ordinary permutation test.
        if len(made) == 1 and both:
            values = made[0][0]
            of_one = stats.permutation_test(
                (values[:a], values[a:]),
                lambda x, y: abs(stats.ttest_ind(y, x, equal_var=False, trim=trim(x)).statistic),
                alternative="greater",
                n_resamples=np.inf,
            )
            close(case["rows"][0]["p"], of_one.pvalue, "p by SciPy")
    print(f"{count} rows")


PARTS = {
    "running": ["running"],
    "preempted": ["preempted"],
    "dispatch": ["dispatch"],
    "blocked": ["blocked"],
    "interrupts": ["hardirq", "softirq", "vector"],
    "unexplained": ["unexplained"],
}


class Trace:
    """The lengths of the intervals of a trace, by what a row names, and the time of its threads."""

    def __init__(self, run):
        path = Path(run["trace"])
        self.length_ns = run["length_ns"]
        threads = parquet.read_table(path / "threads").to_pylist()
        names = {(t["pid"], t["tid"]): t["name"] for t in threads}
        assert len({t["process"] for t in threads if t["observed"]}) == 1, "one program"

        def rows(table, *columns):
            columns = ["pid", "tid", "mark", *columns]
            return parquet.read_table(path / table, columns=columns).to_pylist()

        self.tables = {}
        for name, table in [("hold", "critical_sections"), ("wait", "lock_waits")]:
            self.tables[name] = [
                ({"name": r["lock_name"], "kind": r["kind"], "place": r["place"],
                  "thread": names[r["pid"], r["tid"]]}, r["dur"], r["mark"])
                for r in rows(table, "dur", "lock_name", "kind", "place")
            ]
        for name, table, column in [
            ("dispatch", "dispatch_latency", "comm"), ("gap", "gaps", "comm"), ("scope", "scopes", "event"),
        ]:
            self.tables[name] = [({"name": r[column]}, r["dur"], r["mark"]) for r in rows(table, "dur", column)]
        self.time = rows("thread_time", "comm", "part", "spent_ns")

    def share(self, row):
        """Of the time of the threads of a name; none where too much of it is not known."""
        mine = [r for r in self.time if r["comm"] == row["name"]]
        known = [r for r in mine if r["mark"] != "lower bound"]
        wall, all_ns = (sum(r["spent_ns"] for r in rows) for rows in (known, mine))
        if not known or (all_ns - wall) * 1000 > all_ns:
            return math.nan
        return sum(r["spent_ns"] for r in known if r["part"] in PARTS[row["quantity"]]) / wall

    def value(self, row):
        if row["class"] == "run":
            return self.length_ns
        if row["class"] == "time":
            return self.share(row)
        wanted = {key: row[key] for key in ("name", "kind", "place", "thread") if row[key]}
        table = self.tables[row["class"]]
        found = [(dur, mark) for of, dur, mark in table if all(of[k] == v for k, v in wanted.items())]
        lengths = sorted(dur for dur, mark in found if mark in ("exact", "lower bound"))
        n = len(lengths)
        if row["quantity"] == "rate":
            return len(found) / self.length_ns * 1e9
        if (len(found) - n) * 1000 > len(found):
            return math.nan
        match row["quantity"]:
            case "sum":
                return sum(lengths)
            case "mean":
                return sum(lengths) / n if n else math.nan
            case "median":
                return lengths[math.ceil(0.5 * n) - 1] if n else math.nan
            case "p99":
                return lengths[math.ceil(0.99 * n) - 1] if n >= 100 else math.nan


def traces(path):
    document = json.loads(Path(path).read_text())
    runs = [document["trace"][side] for side in "ab"]
    if any(run["lost_user_events"] or run["lost_kernel_records"] for side in runs for run in side):
        return print("0 rows: records were lost")
    sides = [[Trace(run) for run in side] for side in runs]
    compared = document["sections"]["compare"]["values"]
    assert compared["unit"] == "recording" and compared["all_labelings"]
    made = []
    for row in compared["rows"]:
        what = " ".join(row[key] for key in ("class", "name", "place", "thread", "quantity"))
        values = [np.array([float(trace.value(row)) for trace in side]) for side in sides]
        units = [int(np.sum(~np.isnan(side))) for side in values]
        assert row["units"] == units, f"{what}: {row['units']}, and here {units}"
        known = np.concatenate(values)
        logarithmic = bool((known[~np.isnan(known)] > 0).all())
        assert row["logarithmic"] == logarithmic, what
        known_mean = lambda v: trimmed(v[~np.isnan(v)])[0]
        mean = (lambda v: math.exp(known_mean(np.log(v)))) if logarithmic else known_mean
        # Percentiles of ours are at most 0.1 % too high.
        for side, of_side in zip("ab", values):
            if not np.isnan(of_side).all():
                close(row[side], mean(of_side), f"{side} of {what}", 2e-3)
        enough = all(2 * n >= len(side) for n, side in zip(units, sides))
        assert (row["p"] is not None) == enough, f"{what}: {row['not_tested']}"
        if enough:
            scaled = np.log(known) if logarithmic else known
            percentile = row["quantity"] in ("median", "p99")
            # The clock's step is a nanosecond or so; a thousandth is more than that for what takes microseconds.
            resolution = 1e-3 if percentile else 1e-6
            resolution *= 1 if logarithmic else np.nanmean(known)
            made.append((scaled, resolution, row, what))
    a = len(sides[0])
    largest = maxima([(values, resolution) for values, resolution, _, _ in made], a)
    limit = critical(largest)
    doubtful = 0
    for values, resolution, row, what in made:
        by, error = differences(values, resolution, list(range(a)))
        t = abs(by / error) if by else 0.0
        # Percentiles are rounded, so a row at the very limit may fall to either side.
        if abs(t / limit - 1) < 0.05:
            doubtful += 1
        else:
            assert row["differs"] == (t > limit), f"{what}: t {t}, limit {limit}, {row}"
            assert (row["p"] <= 0.05) == row["differs"], what
        if row["logarithmic"] and row["quantity"] not in ("median", "p99"):
            close(row["change"], math.exp(by) - 1, f"change of {what}", 1e-6)
            # Around the change by as much on either side, in logarithms. The lower end of a wide interval is rounded
            # to -1, whose logarithm says nothing.
            if row["at_most"] is not None:
                half = math.log1p(row["at_most"]) - math.log1p(row["change"])
                close(half, limit * error, f"upper end of {what}", 0.05)
                lower = math.exp(math.log1p(row["change"]) - half) - 1
                assert abs(row["at_least"] - lower) <= 1e-6 * abs(lower) + 1e-9, f"lower end of {what}"
    print(f"{len(made)} rows of {a} and {len(sides[1])} traces, {doubtful} at the limit")


if __name__ == "__main__":
    {"rows": rows, "traces": traces}[sys.argv[1]](sys.argv[2])
