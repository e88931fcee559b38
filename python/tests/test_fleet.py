"""All traces of a catalogue in DuckDB and in Spark: those that exist, and percentiles over them beside those of their rows."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from conftest import agent, unpack

import feather_trace as ft
from feather_trace.histograms import ERROR

RECORDINGS = ("scenarios", "killed", "preload")

HOME = Path(__file__).parents[1]

# Of both engines.
SHARES = "sum(exact) / sum(count) AS exact"
PERCENTILES = ", ".join(f"percentile_ns(array_agg(bucket(to_ns, count, max_ns)), {p})" for p in (50, 99, 99.9))
OF_ROWS = {"hold": ("critical_sections", "lock_name"), "wait": ("lock_waits", "lock_name"), "request": ("requests", "kind")}


def question(histograms: str) -> str:
    columns = f"host, quantity, name, CAST(sum(count) AS BIGINT), {SHARES}, {PERCENTILES}"
    return f"SELECT {columns} FROM {histograms} WHERE mark <> 'censored' GROUP BY host, quantity, name"


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of hosts, and beside one of them its files once more, as of a trace whose row was not written."""
    folder = tmp_path_factory.mktemp("fleet")
    root = folder / "a [b]'s" / "fleet"
    root.parent.mkdir()
    for recording in RECORDINGS:
        trace = unpack(recording, folder / recording)
        agent("convert", trace)
        of_host(trace, f"host of {recording}")
        agent("convert", trace, "--to", root)
    agent("analyze", root)
    for trace in root.glob("host=*/date=*/trace=*"):
        rowless = trace.with_name(trace.name[:-16] + "0" * 16)
        shutil.copytree(trace, rowless)
    return root


def of_host(trace: Path, host: str) -> None:
    meta = json.loads((trace / "meta.json").read_text())
    meta["start"]["host"] = host
    (trace / "meta.json").write_text(json.dumps(meta))


def existing(catalogue: Path) -> list[Path]:
    rows = {path.stem for path in (catalogue / "traces").glob("*.parquet")}
    return [path for path in catalogue.glob("host=*/date=*/trace=*") if path.name.removeprefix("trace=") in rows]


def test_what_has_no_row_is_in_no_answer(catalogue: Path) -> None:
    traces = existing(catalogue)
    assert len(traces) == len(RECORDINGS) == len(list(catalogue.glob("host=*/date=*/trace=*"))) / 2
    db = ft.fleet(catalogue)
    assert db.sql("SELECT count(*) FROM traces()").fetchall() == [(len(RECORDINGS),)]
    for table in ("critical_sections", "histograms", "threads", "clock"):
        found = db.sql(f"SELECT trace, count(*) FROM every('{table}') GROUP BY ALL").fetchall()
        assert sorted(found) == sorted((path.name.removeprefix("trace="), n) for path in traces if (n := len(ft.load(path)[table])))
    hosts = db.sql("SELECT DISTINCT host FROM every('threads') JOIN (SELECT trace, start_ns FROM traces()) USING (trace)").fetchall()
    assert len(hosts) == len(RECORDINGS)


def test_percentiles_of_a_fleet_are_those_of_its_rows_and_say_which_share_is_exact(catalogue: Path) -> None:
    db = ft.fleet(catalogue)
    found = {tuple(row[:3]): row[3:] for row in db.sql(question("histograms()")).fetchall()}
    compared = 0
    for quantity, (table, name) in OF_ROWS.items():
        of_rows = db.sql(f"""
            SELECT host, {name}, count(*), count(*) FILTER (mark = 'exact') / count(*),
                   quantile_disc(dur, 0.5), quantile_disc(dur, 0.99), quantile_disc(dur, 0.999)
            FROM every('{table}') WHERE mark <> 'censored' GROUP BY ALL""")
        for host, subject, count, exact, *percentiles in of_rows.fetchall():
            of_buckets = found.pop((host, quantity, subject))
            assert of_buckets[:2] == (count, exact)
            for true, merged in zip(percentiles, of_buckets[2:], strict=True):
                assert true <= merged <= true * (1 + ERROR), (host, quantity, subject)
            compared += 1
    assert compared > 5 and not {key for key in found if key[1] in OF_ROWS}
    # By the other query, which adds buckets before it looks for a percentile.
    by = ["host", "quantity", "name"]
    added = db.sql(ft.percentile_sql("histograms()", by)).select(*by, "p50_ns", "p99_ns", "p99_9_ns").fetchall()
    assert sorted(added) == sorted((*row[:3], *row[5:]) for row in db.sql(question("histograms()")).fetchall())


def test_results_of_another_version_are_in_no_percentile(catalogue: Path, tmp_path: Path) -> None:
    """As in `ft-agent fleet`, which says so."""
    root = tmp_path / "fleet"
    shutil.copytree(catalogue, root)
    for trace in root.glob("host=*/date=*/trace=*"):
        if trace not in existing(root):
            shutil.rmtree(trace)
    earlier, late, same = sorted(existing(root))
    results = json.loads((earlier / "analysis.json").read_text())
    results["version"] = 16
    (earlier / "analysis.json").write_text(json.dumps(results))
    (late / "analysis.json").unlink()
    db = ft.fleet(root)
    assert db.sql("SELECT trace FROM analysed()").fetchall() == [(same.name.removeprefix("trace="),)]
    found = dict(db.sql("SELECT quantity, sum(count)::BIGINT FROM histograms() WHERE mark <> 'censored' GROUP BY ALL").fetchall())
    said = json.loads(agent("fleet", root, "--json"))["trace"]
    assert (said["traces"], len(said["not_read"])) == (1, 2)
    assert found["hold"] == len(ft.load(same)["critical_sections"]) == said["exact"] + said["lower_bounds"]


def test_what_the_pages_say_of_duckdb_runs_as_it_stands(catalogue: Path, tmp_path: Path) -> None:
    duckdb_shell = shutil.which("duckdb", path=str(Path(sys.executable).parent))
    assert duckdb_shell, "duckdb-cli is installed for these tests"
    page = (HOME.parent / "docs/many-hosts.md").read_text()
    [block] = re.findall(r"```sh\n(duckdb -cmd.*?)```", page, flags=re.DOTALL)
    (tmp_path / "python").symlink_to(HOME)
    (tmp_path / "traces").symlink_to(catalogue)
    block = block.replace("/srv/traces", "traces")
    path = f"{Path(duckdb_shell).parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-ec", block], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert done.stdout.count("host of ") + done.stdout.count("host%20of%20") >= 2 * len(RECORDINGS) - 1, done.stdout


SPARK = """
import importlib.util, json, os, sys
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
from pyspark.sql import SparkSession
asked = json.load(sys.stdin)
# Not the whole package, whose readers need more than an engine has.
spec = importlib.util.spec_from_file_location("traces_in_spark", asked["module"])
traces = importlib.util.module_from_spec(spec)
sys.modules["traces_in_spark"] = traces
spec.loader.exec_module(traces)
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.log.level", "ERROR").config("spark.sql.shuffle.partitions", "1").getOrCreate()
traces.views(spark, asked["catalogue"])
found = [[list(row) for row in spark.sql(sql).collect()] for sql in asked["sql"]]
rows = traces.every(spark, asked["catalogue"], "critical_sections").groupBy("trace").count()
print(json.dumps([*found, [list(row) for row in rows.collect()]]))
"""


def test_spark_finds_the_same(catalogue: Path, tmp_path: Path) -> None:
    spark = os.environ.get("FT_SPARK")
    if spark is None:
        pytest.skip("FT_SPARK names no Python with Spark; run `cargo xtask test readers`")
    # Spark takes brackets in a path for a pattern.
    here = tmp_path / "it's here"
    here.symlink_to(catalogue)
    count = "SELECT count(*), count(DISTINCT trace) FROM traces"
    asked = {
        "module": str(HOME / "src/feather_trace/spark.py"),
        "catalogue": str(here),
        "sql": [count, question("histograms")],
    }
    done = subprocess.run([spark, "-c", SPARK], input=json.dumps(asked), capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    traces, merged, rows = json.loads(done.stdout.splitlines()[-1])
    assert traces == [[len(RECORDINGS)] * 2]
    db = ft.fleet(catalogue)
    expected = [list(row) for row in db.sql(question("histograms()")).fetchall()]
    assert sorted(merged) == sorted(expected) and len(expected) > 5
    of_rows = db.sql("SELECT trace, count(*) FROM every('critical_sections') GROUP BY ALL").fetchall()
    assert sorted(map(tuple, rows)) == sorted(of_rows)


def test_a_percentile_of_a_few_lengths_is_the_one_of_that_rank() -> None:
    db = duckdb.connect()
    db.execute((HOME / "src/feather_trace/fleet_duckdb.sql").read_text())
    db.execute("CREATE TABLE histogram AS SELECT * FROM (VALUES (10, 3, 10), (20, 1, 19), (20, 0, 0), (100, 6, 97)) AS t(to_ns, count, max_ns)")
    for p, expected in {0.1: 10, 30: 10, 30.1: 20, 40: 20, 40.1: 97, 100: 97}.items():
        found = db.sql(f"SELECT percentile_ns(array_agg(bucket(to_ns, count, max_ns)), {p}) FROM histogram").fetchall()
        assert found == [(expected,)], p
