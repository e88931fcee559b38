"""What differs between two traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from feather_trace.trace import Trace

#: Into how many stretches of equal length a single trace is cut.
BLOCKS = 20

#: Groups of fewer rows on either side get no interval.
FEWEST = 20


def compare(
    a: Trace | Sequence[Trace],
    b: Trace | Sequence[Trace],
    table: str = "critical_sections",
    by: str | Sequence[str] = "lock_name",
    value: str = "dur",
    quantile: float = 0.5,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """By how much a quantile of a column differs from `a` to `b`, for each group of rows, the largest effect first.

    Columns `count_a`, `count_b`, the quantile in `a` and in `b`, `change` (0.1: 10 % more in `b`), and its confidence
    interval from `low` to `high`; `marked`: rows that are not exact; `differs`: the interval, widened for the number of
    groups (Bonferroni), does not contain 0. Groups of fewer than 20 rows on a side have no interval.

    What is drawn anew is not single rows: those that follow each other have a common fate, and taken for independent
    they would make every interval too narrow. With several traces on both sides whole traces are drawn, which says how
    sure the difference between the programs is. With one on a side, 20 stretches of its time are: then the interval
    says how the quantile varies *within* a run, and runs differ by more than that (the state of the machine, the layout
    of memory). A verdict on a change wants repetitions of both, and `ft-agent compare`.
    """
    sides = [[a] if isinstance(a, Trace) else list(a), [b] if isinstance(b, Trace) else list(b)]
    keys = [by] if isinstance(by, str) else list(by)
    whole = min(len(side) for side in sides) > 1
    rows = [draws(side, table, keys, value, whole) for side in sides]
    groups = [{key: group for key, group in frame.groupby(keys, sort=True, observed=True)} for frame in rows]
    common = [key for key in groups[0] if key in groups[1]]
    random = np.random.default_rng(seed)
    found = []
    for key in common:
        pair = [groups[0][key], groups[1][key]]
        counts = [int(frame["block"].max()) + 1 for frame in rows]
        samples = [Sample(group, value, count) for group, count in zip(pair, counts)]
        low_high = [np.nan] * 4
        if min(len(group) for group in pair) >= FEWEST:
            drawn = [sample.resampled(quantile, resamples, random) for sample in samples]
            changes = drawn[1] / drawn[0] - 1
            changes = changes[np.isfinite(changes)]
            narrow, wide = (1 - confidence) / 2, (1 - confidence) / 2 / len(common)
            low_high = list(np.quantile(changes, [narrow, 1 - narrow, wide, 1 - wide]))
        before, after = (sample.quantile(quantile) for sample in samples)
        found.append(
            {
                **dict(zip(keys, key)),
                "count_a": len(pair[0]),
                "count_b": len(pair[1]),
                "a": before,
                "b": after,
                "change": after / before - 1 if before else np.nan,
                "low": low_high[0],
                "high": low_high[1],
                "marked": sum(int(group["marked"].sum()) for group in pair),
                "differs": bool(low_high[2] > 0 or low_high[3] < 0),
            }
        )
    columns = [*keys, "count_a", "count_b", "a", "b", "change", "low", "high", "marked", "differs"]
    frame = pd.DataFrame(found, columns=columns)
    order = frame["change"].abs().sort_values(ascending=False, kind="stable", na_position="last").index
    return frame.loc[order].reset_index(drop=True)


def draws(side: Sequence[Trace], table: str, keys: list[str], value: str, whole: bool) -> pd.DataFrame:
    """The rows of one side, with the number of what they are drawn with: their trace, or a stretch of its time."""
    frames = []
    for number, trace in enumerate(side):
        frame = trace[table]
        marked = frame["mark"].astype(str) != "exact" if "mark" in frame else pd.Series(False, index=frame.index)
        chosen = frame[[*dict.fromkeys([*keys, value])]].astype({key: str for key in keys if key != value})
        span = max(int(frame["ts"].max() - frame["ts"].min()), 1) if len(frame) else 1
        stretch = (frame["ts"] - frame["ts"].min()) * BLOCKS // (span + 1)
        block = pd.Series(number, index=frame.index) if whole else number * BLOCKS + stretch
        frames.append(chosen.assign(marked=marked, block=block.astype("int64")))
    return pd.concat(frames, ignore_index=True).dropna(subset=[value])


class Sample:
    """The values of a group in their order, with the number of what each is drawn with."""

    def __init__(self, group: pd.DataFrame, value: str, blocks: int) -> None:
        ordered = group.sort_values(value, kind="stable")
        self.values = ordered[value].to_numpy(dtype="float64")
        self.block = ordered["block"].to_numpy()
        self.blocks = blocks

    def quantile(self, q: float, weights: np.ndarray[Any, Any] | None = None) -> float:
        """The least value that at least the share `q` does not exceed; each counts as often as its weight says."""
        counted = np.ones(len(self.values)) if weights is None else weights[self.block]
        reached = counted.cumsum()
        if not len(reached) or reached[-1] == 0:
            return float("nan")
        return float(self.values[np.searchsorted(reached, q * reached[-1])])

    def resampled(self, q: float, resamples: int, random: np.random.Generator) -> np.ndarray[Any, Any]:
        """The quantile of each of so many new samples."""
        chance = np.full(self.blocks, 1 / self.blocks)
        return np.array([self.quantile(q, random.multinomial(self.blocks, chance)) for _ in range(resamples)])
