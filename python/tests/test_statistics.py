"""Distributions and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import feather_trace as ft


def test_a_distribution_is_that_of_sql(directory: Path) -> None:
    values = ft.load(directory)["dispatch_latency"]["dur"]
    found = ft.cdf(values)
    sql = f"""SELECT DISTINCT dur AS value, cume_dist() OVER (ORDER BY dur) AS share,
            count(*) OVER (ORDER BY dur) AS count
        FROM '{directory}/dispatch_latency/*.parquet' ORDER BY value"""
    expected = duckdb.sql(sql).df()
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    if len(found) < 30:
        return
    thinned = ft.cdf(values, points=20)
    assert 2 < len(thinned) <= 20
    assert set(map(tuple, thinned.to_numpy())) <= set(map(tuple, found.to_numpy()))
    assert thinned["value"].iloc[[0, -1]].tolist() == found["value"].iloc[[0, -1]].tolist()


def test_absent_values_have_no_share() -> None:
    found = ft.cdf(pd.Series([3, None, 1, 3], dtype="Int64"))
    assert found.to_dict("list") == {"value": [1, 3], "share": [1 / 3, 1.0], "count": [1, 3]}
    assert ft.cdf([]).empty
    for points in range(2, 30):
        few = ft.cdf(np.arange(1000), points)
        assert len(few) <= points and few["value"].iloc[[0, -1]].tolist() == [0, 999]


class Made:
    """A trace of holds that were made up."""

    def __init__(self, holds: pd.DataFrame) -> None:
        self.holds = holds

    def __getitem__(self, table: str) -> pd.DataFrame:
        assert table == "critical_sections"
        return self.holds


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Holds of three locks over a second, whose neighbours have a common fate."""
    monkeypatch.setattr("feather_trace.comparison.Trace", Made)

    def make(seed: int, slower: float = 1.0) -> Made:
        random = np.random.default_rng(seed)
        frames = []
        for lock, length in (("a", 1000), ("b", 5000), ("c", 300)):
            ts = np.sort(random.integers(0, 1_000_000_000, 1200))
            # A common factor of each twentieth of a second.
            phase = random.lognormal(0, 0.1, 20)[ts // 50_000_000]
            dur = random.lognormal(np.log(length), 0.5, len(ts)) * phase
            dur *= slower if lock == "b" else 1
            frames.append(pd.DataFrame({"ts": ts, "dur": dur.astype(int), "lock_name": lock, "mark": "exact"}))
        return Made(pd.concat(frames))

    return make


def test_equal_programs_seldom_differ_and_a_slower_one_does(made: Callable[..., Any]) -> None:
    pairs = 40
    flagged = sum(ft.compare(made(2 * n), made(2 * n + 1), resamples=200)["differs"].any() for n in range(pairs))
    # Stated: 5 % of the comparisons, over all locks together. An interval of single rows flags more than half of these.
    assert flagged <= pairs * 0.15
    found = 0
    for n in range(10):
        frame = ft.compare(made(n), made(1000 + n, slower=1.5), resamples=200)
        assert frame["lock_name"].iloc[0] == "b", "the largest effect comes first"
        found += bool(frame["differs"].iloc[0])
        row = frame.iloc[0]
        assert row["low"] <= row["change"] <= row["high"]
    assert found == 10


def test_repetitions_are_drawn_as_a_whole(made: Callable[..., Any]) -> None:
    before, after = [made(n) for n in range(6)], [made(n, slower=1.3) for n in range(10, 16)]
    frame = ft.compare(before, after).set_index("lock_name")
    assert frame["differs"].to_dict() == {"a": False, "b": True, "c": False}
    assert frame["count_a"].to_dict() == dict.fromkeys("abc", 7200)


def test_a_comparison_has_the_figures_of_sql(converted: Callable[[str], Path]) -> None:
    first, second = converted("scenarios"), converted("preload")
    frame = ft.compare(ft.load(first), ft.load(second), by=["kind"], quantile=0.9)
    sql = """SELECT kind, count(*) AS n, quantile_disc(dur, 0.9) AS q, count(*) FILTER (mark <> 'exact') AS marked
        FROM '{}/critical_sections/*.parquet' GROUP BY kind"""
    a, b = ({row[0]: row[1:] for row in duckdb.sql(sql.format(trace)).fetchall()} for trace in (first, second))
    assert len(frame) >= 1 and set(frame["kind"]) == set(a) & set(b)
    for row in frame.to_dict("records"):
        (n_a, q_a, m_a), (n_b, q_b, m_b) = a[row["kind"]], b[row["kind"]]
        assert (row["count_a"], row["count_b"], row["marked"]) == (n_a, n_b, m_a + m_b)
        assert (row["a"], row["b"]) == (q_a, q_b)
        assert row["change"] == pytest.approx(q_b / q_a - 1)
