"""Distributions and comparisons."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import feather_trace as ft
from feather_trace import comparison


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


def test_equal_programs_seldom_differ(made: Callable[..., Any]) -> None:
    """Recordings of one program, which differ from each other as runs do, split in all ways."""
    named = tried = 0
    for program in range(12):
        runs = np.random.default_rng(program).lognormal(0, 0.1, 8)
        traces = [made(100 * program + n, slower=factor) for n, factor in enumerate(runs)]
        for chosen in list(itertools.combinations(range(1, 8), 3))[:: 35 // 10]:
            side = [traces[0], *(traces[n] for n in chosen)]
            frame = ft.compare(side, [trace for trace in traces if trace not in side])
            assert frame["differs"].notna().all()
            named += bool(frame["differs"].any())
            tried += 1
    # Stated: at most 5 %. Splits of a program share its traces, so this is not the error of as many that are independent.
    assert tried >= 120
    assert named <= 0.05 * tried, f"{named} of {tried}"


def test_a_slower_program_is_named(made: Callable[..., Any]) -> None:
    before, after = [made(n) for n in range(4)], [made(n, slower=1.5) for n in range(10, 14)]
    frame = ft.compare(before, after)
    assert frame["lock_name"].iloc[0] == "b", "the largest effect comes first"
    frame = frame.set_index("lock_name")
    assert frame["differs"].to_dict() == {"a": False, "b": True, "c": False}
    assert frame["verdict"].to_dict() == {"a": "no difference shown", "b": "differs", "c": "no difference shown"}
    assert frame["count_a"].to_dict() == dict.fromkeys("abc", 4800)
    slower = frame.loc["b"]
    assert 0 < slower["low"] < slower["change"] < slower["high"] and slower["low"] < 0.5 < slower["high"]
    assert slower["change"] == slower["b"] / slower["a"] - 1


@pytest.mark.parametrize(("a", "b", "tells"), [(1, 1, False), (2, 2, False), (3, 3, False), (1, 5, False), (3, 4, True), (4, 4, True), (1, 19, True), (9, 9, True)])
def test_too_few_recordings_tell_nothing(made: Callable[..., Any], a: int, b: int, tells: bool) -> None:
    sides = [[made(n) for n in range(a)], [made(n, slower=3) for n in range(50, 50 + b)]]
    frame = ft.compare(*(side[0] if len(side) == 1 else side for side in sides)).set_index("lock_name")
    assert frame.loc["b", "change"] > 1.5
    assert set(frame["verdict"] != "too few recordings to tell") == {tells}
    assert frame[["low", "high", "differs"]].isna().all(axis=None) == (not tells)


def test_the_test_is_that_of_the_agent() -> None:
    """Values, and what Yuen's statistic makes of them, as in `ft-report/src/compare/permute.rs` (a fifth of ten is left out at each end)."""
    values = np.array([[1.0, 2, 3, 4, 5, 6, 7, 8, 9, 100, 2, 4, 4, 5]])
    by, error = comparison.difference(values, np.zeros(1), np.arange(14) < 10)
    # Left are 3 to 8; winsorised: 3, 3, 3, 4, 5, 6, 7, 8, 8, 8.
    winsorised = np.array([3.0, 3, 3, 4, 5, 6, 7, 8, 8, 8])
    expected = ((winsorised - winsorised.mean()) ** 2).sum() / 5 / 6 + np.var([2, 4, 4, 5], ddof=1) / 4
    assert by[0] == pytest.approx(3.75 - 5.5) and error[0] ** 2 == pytest.approx(expected)
    assert [comparison.can_tell(a, b) for a, b in ((3, 3), (3, 4), (4, 4), (2, 6), (2, 8))] == [False, True, True, True, True]
    assert len(comparison.labelings(8, 4, 0)) == 70 and comparison.labelings(8, 4, 0)[0].tolist() == [True] * 4 + [False] * 4
    assert len(comparison.labelings(20, 10, 0)) == comparison.MAX_LABELINGS


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
