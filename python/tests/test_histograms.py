"""Percentiles of merged histograms, beside those of the rows that they count."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import feather_trace as ft
from feather_trace.histograms import ERROR, column

PERCENTILES = (10, 50, 90, 99, 99.9, 100)

# Each quantity's rows, as the table `histograms` names them.
ROWS = {
    "hold": "SELECT 'hold' AS quantity, lock_name AS name, place, preemptor_tid AS beside, preemptor_comm AS neighbour, dur, mark FROM critical_sections",
    "wait": "SELECT 'wait', lock_name, place, NULL, '', dur, mark FROM lock_waits",
    "dispatch": "SELECT 'dispatch', '', '', running_tid, running_comm, dur, mark FROM dispatch_latency",
    "gap": "SELECT 'gap', coalesce(cause, ''), '', culprit_tid, CASE WHEN culprit_tid IS NOT NULL THEN culprit END, dur, mark FROM gaps",
    "scope": "SELECT 'scope', event, '', preemptor_tid, preemptor_comm, dur, mark FROM scopes",
    "request": "SELECT 'request', kind, '', NULL, '', dur, mark FROM requests",
}
NAMED = "SELECT * REPLACE (CASE WHEN beside = 0 THEN 'swapper' ELSE coalesce(neighbour, '') END AS neighbour)"
TABLES = ("histograms", "critical_sections", "lock_waits", "dispatch_latency", "gaps", "scopes", "requests")


def opened(*traces: Path) -> duckdb.DuckDBPyConnection:
    """The tables of all these traces together."""
    db = duckdb.connect()
    for table in TABLES:
        files = [str(trace / table / "*.parquet") for trace in traces]
        db.read_parquet(files).create_view(table)
    return db


def check(db: duckdb.DuckDBPyConnection, by: tuple[str, ...], where: str) -> int:
    """Compares; how many groups there were."""
    columns = ", ".join(by)
    exact = ", ".join(f"quantile_disc(dur, {p / 100}) AS {column(p)}" for p in PERCENTILES)
    of_rows = db.sql(
        f"""SELECT {columns}, count(*) AS count, sum(dur)::DOUBLE AS total, max(dur) AS max_ns,
                   count(*) FILTER (mark = 'exact') / count(*) AS exact, {exact}
            FROM ({NAMED} FROM ({" UNION ALL ".join(ROWS.values())})) WHERE {where} GROUP BY {columns}"""
    ).df()
    merged = db.sql(ft.percentile_sql("histograms", by, PERCENTILES, where)).df()
    both = of_rows.merge(merged, on=list(by), suffixes=("", "_merged"))
    assert len(both) == len(of_rows) == len(merged)
    assert (both["count"] == both["count_merged"]).all()
    assert (both["max_ns"] == both["max_ns_merged"]).all()
    assert (both["exact"] == both["exact_merged"]).all()
    assert ((both["total"] / both["count"] - both["mean_ns"]).abs() <= 1e-9 * both["mean_ns"].abs()).all()
    for p in PERCENTILES:
        true, found = both[column(p)], both[column(p) + "_merged"]
        assert ((found >= true) & (found <= true * (1 + ERROR))).all(), both[(found < true) | (found > true * (1 + ERROR))]
    return len(both)


def test_percentiles_are_those_of_the_rows_within_the_stated_error(directory: Path) -> None:
    db = opened(directory)
    assert check(db, ("quantity", "name"), "TRUE") > 1
    assert check(db, ("quantity", "name", "place"), "mark = 'exact'") > 1


def test_histograms_of_several_traces_are_added(converted: Callable[[str], Path]) -> None:
    traces = [converted(name) for name in ("scenarios", "killed", "system")]
    both = opened(*traces)
    assert check(both, ("quantity",), "mark <> 'censored'") >= 4
    assert check(both, ("quantity", "neighbour"), "TRUE") > 10
    alone = sum(opened(trace).sql("SELECT sum(count) FROM histograms").fetchall()[0][0] for trace in traces)
    assert both.sql("SELECT sum(count) FROM histograms").fetchall()[0][0] == alone > 10_000


def test_what_no_percentile_is_gets_a_sentence() -> None:
    for by, percentiles in (((), (50,)), (("name",), (0,)), (("name",), (100.1,))):
        with pytest.raises(ValueError, match="percentiles above 0"):
            ft.percentile_sql("histograms", by, percentiles)


SPARK = """
import json, os, sys
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession
asked = json.load(sys.stdin)
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.log.level", "ERROR").config("spark.sql.shuffle.partitions", "1").getOrCreate()
spark.read.parquet(*asked["files"]).createOrReplaceTempView("histograms")
print(json.dumps([list(row) for row in spark.sql(asked["sql"]).collect()]))
"""


def test_spark_says_the_same(converted: Callable[[str], Path], tmp_path: Path) -> None:
    spark = os.environ.get("FT_SPARK")
    if spark is None:
        pytest.skip("FT_SPARK names no Python with Spark; run `cargo xtask test readers`")
    traces = [converted(name) for name in ("scenarios", "killed")]
    sql = ft.percentile_sql("histograms")
    asked = json.dumps({"sql": sql, "files": [str(trace / "histograms") for trace in traces]})
    done = subprocess.run([spark, "-c", SPARK], input=asked, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    expected = [list(row) for row in opened(*traces).sql(sql).fetchall()]
    assert len(expected) > 5
    assert same(sorted(found), sorted(expected)), (found, expected)


def same(found: list[list[object]], expected: list[list[object]]) -> bool:
    """Equal, and numbers to the last digits of a double."""
    return len(found) == len(expected) and all(
        a == b or (isinstance(a, (int, float)) and a == pytest.approx(b, rel=1e-12))
        for row, other in zip(found, expected, strict=True)
        for a, b in zip(row, other, strict=True)
    )
