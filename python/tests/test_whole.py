"""A trace of which a part is not what was written is refused, or read without it where that is asked for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import feather_trace as ft
from conftest import agent

# Of what was recorded, and of results.
TABLES = ["user_events", "critical_sections"]


def missing(part: Path) -> None:
    part.unlink()


def cut(part: Path) -> None:
    os.truncate(part, part.stat().st_size // 2)


def added(part: Path) -> None:
    shutil.copy(part, part.with_name("part-00777.parquet"))


def swapped(part: Path) -> None:
    shutil.copy(part.parents[1] / "other/part-00000.parquet", part)


def altered(part: Path) -> None:
    """Of the same size, and with the same columns and rows: a footer of another recording."""
    content = part.read_bytes()
    assert content.count(b"feather_trace.loss") > 0
    part.write_bytes(content.replace(b"feather_trace.loss", b"feather_trace.lost"))


HARMS: dict[Callable[[Path], None], str] = {
    missing: r"part-00000.parquet is missing \(",
    cut: "part-00000.parquet has .* bytes and was written with",
    added: "part-00777.parquet was not written with the others",
    swapped: "part-00000.parquet has .* bytes and was written with",
    altered: "part-00000.parquet is another file than was written",
}


def harmed(whole: Path, other: Path, to: Path, table: str, harm: Callable[[Path], None]) -> Path:
    trace = to / "trace"
    shutil.copytree(whole, trace)
    (trace / "other").mkdir(exist_ok=True)
    shutil.copy(other / table / "part-00000.parquet", trace / "other")
    harm(trace / table / "part-00000.parquet")
    shutil.rmtree(trace / "other")
    return trace


def script(trace: Path, incomplete: bool) -> duckdb.DuckDBPyConnection:
    """`views.sql` as DuckDB's own shell reads it."""
    connection = duckdb.connect()
    connection.execute(f"SET VARIABLE trace = '{trace}'; SET VARIABLE incomplete = {incomplete}")
    connection.execute((trace / "views.sql").read_text())
    return connection


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_a_trace_is_read_whole_or_refused(
    converted: Callable[[str], Path], tmp_path: Path, table: str, harm: Callable[[Path], None]
) -> None:
    whole = converted("scenarios")
    trace = harmed(whole, converted("preload"), tmp_path, table, harm)
    remedy = "ft-agent analyze" if table == "critical_sections" else "bring the trace again"
    words = f"is not whole: {table}/{HARMS[harm]}.*; .*{remedy}"
    for read in (ft.load, ft.connect):
        with pytest.raises(ValueError, match=words):
            read(trace)
    with pytest.warns(UserWarning, match=f"is not whole: {table}/{HARMS[harm]}"):
        opened = ft.load(trace, incomplete=True)
    # The other tables are as they were, and of this one nothing is doubled or made up.
    rows = len(ft.load(whole)[table])
    assert len(opened["threads"]) == len(ft.load(whole)["threads"]) > 0
    first = whole / table / "part-00000.parquet"
    of_first = 0 if harm is added else pq.read_metadata(first).num_rows
    if len(list(first.parent.iterdir())) > 1 or harm is added:
        assert len(opened[table]) == rows - of_first > 0
    else:
        with pytest.raises(KeyError, match="has no table"):
            opened[table]
    # DuckDB has no checksum.
    if harm is not altered:
        with pytest.raises(duckdb.Error, match=words):
            script(trace, incomplete=False)
    if table in opened.tables and harm is not altered:
        with pytest.warns(UserWarning, match="is not whole"):
            views = ft.connect(trace, incomplete=True)
        assert views.sql(f"SELECT count(*) FROM {table}").fetchall() == [(rows - of_first,)]
        [fault] = script(trace, incomplete=True).sql("SELECT name, file FROM known.fault").fetchall()
        assert fault == (table, "part-00777.parquet" if harm is added else "part-00000.parquet")


def test_what_is_missing_is_left_out_where_that_is_asked_for(converted: Callable[[str], Path], tmp_path: Path) -> None:
    """A table of several parts, one of which is lost."""
    trace = tmp_path / "trace"
    shutil.copytree(converted("scenarios"), trace)
    first = trace / "user_events/part-00000.parquet"
    rows = len(ft.load(trace)["user_events"])
    left = rows - pq.read_metadata(first).num_rows
    assert 0 < left < rows
    shutil.copy(first, tmp_path / "aside")
    first.unlink()
    with pytest.raises(ValueError, match=r"user_events/part-00000.parquet is missing"):
        ft.connect(trace)
    with pytest.warns(UserWarning, match="user_events/part-00000.parquet is missing"):
        assert len(ft.load(trace, incomplete=True)["user_events"]) == left
    views = script(trace, incomplete=True)
    assert views.sql("SELECT count(*) FROM user_events").fetchall() == [(left,)]
    # Results that were made of the rest are not those of the whole.
    program = os.environ["FT_AGENT"]
    done = subprocess.run([program, "analyze", trace, "--incomplete"], capture_output=True, text=True)
    assert done.returncode == 0 and "is not whole: user_events/part-00000.parquet is missing" in done.stderr
    shutil.copy(tmp_path / "aside", first)
    with pytest.raises(ValueError, match="were made without user_events/part-00000.parquet, which is there now; run `ft-agent analyze"):
        ft.load(trace)
    agent("report", trace)
    assert len(ft.load(trace)["user_events"]) == rows


def test_a_list_of_what_was_left_out_that_is_none_is_named(converted: Callable[[str], Path], tmp_path: Path) -> None:
    for number, wrong in enumerate((5, None, True, [1], "x")):
        trace = tmp_path / str(number)
        shutil.copytree(converted("scenarios"), trace)
        analysis = trace / "analysis.json"
        said = json.loads(analysis.read_text()) if analysis.exists() else {}
        analysis.write_text(json.dumps({**said, "left_out": wrong}))
        with pytest.raises(ValueError, match="left_out"):
            ft.load(trace)



def test_a_trace_of_an_earlier_version_is_taken_as_it_is(converted: Callable[[str], Path], tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    shutil.copytree(converted("preload"), trace)
    meta = json.loads((trace / "meta.json").read_text())
    for table in meta["tables"].values():
        del table["files"]
    (trace / "meta.json").write_text(json.dumps(meta))
    agent("analyze", trace)
    (trace / "user_events/part-00000.parquet").unlink()
    assert "user_events" not in ft.load(trace).tables
