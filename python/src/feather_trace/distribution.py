"""Distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike


def cdf(values: ArrayLike | pd.Series[Any], points: int | None = None) -> pd.DataFrame:
    """The share of values that are at most so large: columns `value`, `share` (0 to 1) and `count`.

    One row for each different value, in their order; absent ones do not count. With `points` no more than so many rows,
    among them the least and the greatest value: each is exact, and the others are left out.
    """
    found = pd.Series(values).dropna().to_numpy()
    value, at = np.unique(found, return_counts=True)
    count = at.cumsum()
    frame = pd.DataFrame({"value": value, "share": count / max(len(found), 1), "count": count})
    if points is None or len(frame) <= points:
        return frame
    # Rows at equal distances of the share, and the tail, where few values are far apart.
    if points < 2:
        raise ValueError("a distribution has two points at least, its least and its greatest value")
    half = points // 2
    even = np.searchsorted(frame["share"].to_numpy(), np.linspace(0, 1, points - half, endpoint=False))
    tail = np.searchsorted(frame["share"].to_numpy(), 1 - np.geomspace(1, 1 / len(found), half))
    kept = np.unique(np.concatenate([even, tail, [len(frame) - 1]]).clip(0, len(frame) - 1))
    # The last point is one more than was asked for.
    kept = np.delete(kept, len(kept) // 2) if len(kept) > points else kept
    return frame.iloc[kept].reset_index(drop=True)
