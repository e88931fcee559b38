"""What differs between two sets of traces, by more than chance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from feather_trace.trace import Trace

#: Groups of fewer rows on either side are not tested.
FEWEST = 20

#: Chance that a comparison of what does not differ names any group.
ALPHA = 0.05

#: Ways to call traces A that are looked at: all, or where there are more, this many, drawn at random.
MAX_LABELINGS = 5_000

#: Traces of a side from which on a fifth of them is left out at each end.
TRIMMED_FROM = 8

DIFFERS, SAME, FEW_ROWS = "differs", "no difference shown", "too few rows to tell"
FEW_TRACES = "too few recordings to tell"

Floats = npt.NDArray[np.float64]


def compare(
    a: Trace | Sequence[Trace],
    b: Trace | Sequence[Trace],
    table: str = "critical_sections",
    by: str | Sequence[str] = "lock_name",
    value: str = "dur",
    quantile: float = 0.5,
    seed: int = 2007,
) -> pd.DataFrame:
    """By how much a quantile of a column differs from `a` to `b`, for each group of rows, the largest effect first.

    Columns `count_a`, `count_b`, the quantile in `a` and in `b` (of several traces the geometric mean of theirs), `change` (0.1: 10 %
    more in `b`), and its interval from `low` to `high`; `marked`: rows that are not exact; `differs`: the interval does not contain 0; and
    `verdict`, which says so in words, or why it cannot be said: then `differs`, `low` and `high` are absent.

    The test is that of `ft-agent compare` (`ft-report/src/compare/permute.rs` gives the reasons): if the programs are equal, it is chance
    which recordings are called A, and a group differs when its studentised difference is larger than the largest of all groups in
    all but 5 % of the ways to call them. So of comparisons of equal programs at most 5 % name any group. Recordings are compared, not rows,
    since rows of one run have a common fate. Fewer than four recordings against four (or three against four) cannot tell: the
    verdict then is `too few recordings to tell`. Record them in turns.
    """
    sides = [[a] if isinstance(a, Trace) else list(a), [b] if isinstance(b, Trace) else list(b)]
    keys = [by] if isinstance(by, str) else list(by)
    split = len(sides[0])
    frames = [rows_of(trace, table, keys, value) for trace in itertools.chain(*sides)]
    groups = [{key: group for key, group in frame.groupby(keys, sort=True, observed=True)} for frame in frames]
    both = [list(dict.fromkeys(key for of in side for key in of)) for side in (groups[:split], groups[split:])]
    tells = can_tell(split, len(frames) - split)
    found, tested = [], []
    for key in sorted(set(both[0]) & set(both[1]), key=str):
        units = [group.get(key) for group in groups]
        values = np.array([np.nan if unit is None else quantile_of(unit[value], quantile) for unit in units])
        counts = [sum(0 if unit is None else len(unit) for unit in side) for side in (units[:split], units[split:])]
        is_ratio = bool(np.nanmin(values) > 0)
        scaled = np.log(values) if is_ratio else values
        before, after = (mean(side) for side in (scaled[:split], scaled[split:]))
        if is_ratio:
            before, after = (exact(side, m) for side, m in zip((values[:split], values[split:]), (before, after)))
        row: dict[str, Any] = {
            **dict(zip(keys, key)),
            "count_a": counts[0],
            "count_b": counts[1],
            "a": before,
            "b": after,
            "change": after / before - 1 if before else np.nan,
            "low": np.nan,
            "high": np.nan,
            "marked": sum(int(unit["marked"].sum()) for unit in units if unit is not None),
            "differs": pd.NA,
            "verdict": FEW_TRACES,
        }
        has = ~np.isnan(values)
        if tells:
            is_tested = min(counts) >= FEWEST and 2 * has[:split].sum() >= split and 2 * has[split:].sum() >= len(has) - split
            row["verdict"] = SAME if is_tested else FEW_ROWS
            if is_tested:
                # Whole numbers lie anywhere in their step.
                step = 1.0 if all(unit is None or pd.api.types.is_integer_dtype(unit[value]) for unit in units) else 0.0
                tested.append((row, scaled, step / float(np.exp(np.nanmean(scaled))) if is_ratio else step, is_ratio))
        found.append(row)
    judge(tested, split, seed)
    columns = [*keys, "count_a", "count_b", "a", "b", "change", "low", "high", "marked", "differs", "verdict"]
    frame = pd.DataFrame(found, columns=columns).astype({"differs": "boolean"})
    order = frame["change"].abs().sort_values(ascending=False, kind="stable", na_position="last").index
    return frame.loc[order].reset_index(drop=True)


def rows_of(trace: Trace, table: str, keys: list[str], value: str) -> pd.DataFrame:
    """The rows of a trace that have a value."""
    frame = trace[table]
    marked = frame["mark"].astype(str) != "exact" if "mark" in frame else pd.Series(False, index=frame.index)
    chosen = frame[[*dict.fromkeys([*keys, value])]].astype({key: str for key in keys if key != value})
    return chosen.assign(marked=marked).dropna(subset=[value])


def quantile_of(values: pd.Series[Any], q: float) -> float:
    """The least value that at least the share `q` does not exceed."""
    ordered = np.sort(values.to_numpy(dtype="float64"))
    return float(ordered[max(math.ceil(q * len(ordered)) - 1, 0)])


def exact(values: Floats, mean_of_logs: float) -> float:
    """The mean of one value is that value, whatever a logarithm makes of it."""
    return float(values[0]) if len(values) == 1 else math.exp(mean_of_logs)


def mean(values: Floats) -> float:
    """The trimmed mean of those that are there."""
    return float(trimmed(np.sort(values)[None, :])[1][0])


def judge(tested: list[tuple[dict[str, Any], Floats, float, bool]], split: int, seed: int) -> None:
    """Gives rows their intervals and verdicts, all together."""
    if not tested:
        return
    values = np.array([scaled for _, scaled, _, _ in tested])
    steps = np.array([step for _, _, step, _ in tested])
    of = [largest(values, steps, labeling) for labeling in labelings(values.shape[1], split, seed)]
    maxima = np.sort(np.array(of))[::-1]
    critical = float(maxima[int(ALPHA * len(maxima))]) * (1 + 1e-9)
    by, error = difference(values, steps, np.arange(values.shape[1]) < split)
    for i, (row, _, _, is_ratio) in enumerate(tested):
        low, high = by[i] - critical * error[i], by[i] + critical * error[i]
        if is_ratio:
            row["low"], row["high"] = math.expm1(low), math.expm1(high)
        elif row["a"]:
            row["low"], row["high"] = sorted((low / row["a"], high / row["a"]))
        row["differs"] = bool(low > 0 or high < 0)
        row["verdict"] = DIFFERS if row["differs"] else SAME


def largest(values: Floats, steps: Floats, is_a: npt.NDArray[np.bool_]) -> float:
    """The largest studentised difference of all rows."""
    by, error = difference(values, steps, is_a)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(by == 0, 0.0, np.abs(by) / error).max())


def difference(values: Floats, steps: Floats, is_a: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """By how much the values that are not of A are larger than those that are, row by row, and the standard error.

    Yuen's statistic, which is Welch's where nothing is left out; with a single value on a side, Student's.
    """
    (n, m, s), (k, w, r) = (trimmed(np.sort(values[:, chosen], axis=1)) for chosen in (is_a, ~is_a))
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = (s + r) / (n + k - 2) * (1 / n + 1 / k)
        welch = s / (n - 1) / n + r / (k - 1) / k
        error = np.sqrt(np.where((n < 2) | (k < 2), pooled, welch) + steps**2 / 12 * (1 / n + 1 / k))
    none = (n == 0) | (k == 0) | (n + k < 3)
    return np.where(none, 0.0, w - m), np.where(none, np.inf, error)


def trimmed(ordered: Floats) -> tuple[Floats, Floats, Floats]:
    """How many values of each row are left, their mean, and the squares of distances, where those left out count as the next that is not.

    The rows are in order, and what is no number comes last.
    """
    there = (~np.isnan(ordered)).sum(axis=1)
    out = np.where(there < TRIMMED_FROM, 0, there // 5)
    place = np.arange(ordered.shape[1])
    is_left = (place >= out[:, None]) & (place < (there - out)[:, None])
    left = there - 2 * out
    ends = [np.take_along_axis(ordered, np.maximum(at, 0)[:, None], axis=1)[:, 0] for at in (out, there - out - 1)]
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.where(is_left, ordered, 0.0).sum(axis=1)
        middle = (total + np.where(out > 0, out * (ends[0] + ends[1]), 0.0)) / there
        squares = np.where(is_left, (ordered - middle[:, None]) ** 2, 0.0).sum(axis=1)
        squares += np.where(out > 0, out * ((ends[0] - middle) ** 2 + (ends[1] - middle) ** 2), 0.0)
        return left.astype("float64"), total / left, squares


def can_tell(a: int, b: int) -> bool:
    """Whether so many recordings on each side can show that anything differs."""
    # Where both sides are as many, a labeling and its mirror are equally far apart.
    return a > 0 and b > 0 and (2 if a == b else 1) / math.comb(a + b, a) <= ALPHA


def labelings(n: int, a: int, seed: int) -> list[npt.NDArray[np.bool_]]:
    """Which of `n` recordings are called A: first those that are, then the other ways, all or some."""
    seen = np.arange(n) < a
    if math.comb(n, a) <= MAX_LABELINGS:
        return [np.isin(np.arange(n), chosen) for chosen in itertools.combinations(range(n), a)]
    random = np.random.default_rng(seed)
    return [seen, *(random.permutation(seen) for _ in range(MAX_LABELINGS - 1))]
