"""`load`: every value as it is in the files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import feather_trace as ft
from conftest import restated, values


def test_every_value_is_that_of_the_file(directory: Path) -> None:
    trace = ft.load(directory)
    for table in trace.tables:
        file = f"read_parquet('{directory}/{table}/*.parquet')"
        frame = trace[table]
        for name, kind, *_ in duckdb.sql(f"DESCRIBE SELECT * FROM {file}").fetchall():
            found = values(frame[name])
            stored = [None if row[0] != row[0] else row[0] for row in duckdb.sql(f'SELECT "{name}" FROM {file}').fetchall()]
            if kind == "BIGINT" and str(frame[name].dtype).lower() == "uint64":
                stored = [value if value is None else value % 2**64 for value in stored]
            key = lambda value: (value is None, value if value is not None else 0)  # noqa: E731
            assert sorted(found, key=key) == sorted(stored, key=key), f"{table}.{name}"


def test_no_whole_number_is_a_float(directory: Path) -> None:
    trace = ft.load(directory)
    for table in trace.tables:
        about, frame = trace.about(table), trace[table]
        assert (about["meaning"] != "").all(), table
        part = next((directory / table).glob("*.parquet"))
        stored = pq.read_schema(part)
        for name in about.index[about["unit"] != ""]:
            if pa.types.is_integer(stored.field(name).type):
                assert pd.api.types.is_integer_dtype(frame[name].dtype), f"{table}.{name}"
            if about["unit"][name] == "address":
                assert str(frame[name].dtype) in ("uint64", "UInt64"), f"{table}.{name}"


def test_numbers_of_64_bits_stay_whole(converted: Callable[[str], Path], tmp_path: Path) -> None:
    """The largest unsigned, an odd number beyond 2^53, and an absent one."""
    trace = tmp_path / "trace"
    shutil.copytree(converted("killed"), trace)
    for part in sorted((trace / "user_events").glob("*.parquet"))[1:]:
        part.unlink()
    part = trace / "user_events/part-00000.parquet"
    rows = pq.read_table(part).slice(0, 3)
    sites = pq.read_table(trace / "sites/part-00000.parquet")
    number = rows.column("site")[0].as_py()
    for name, values in (
        ("site", [number] * 3),
        ("arg0", [-1, 2**53 + 1, None]),
        ("arg1", [-1, -(2**53) - 1, None]),
        ("arg2", [1, 0, None]),
    ):
        at = rows.schema.get_field_index(name)
        field = rows.schema.field(name)
        rows = rows.set_column(at, field, pa.array(values, field.type))
    pq.write_table(rows, part)
    args = ["u:unsigned, s:signed, b:bool?" for _ in range(len(sites))]
    at = sites.schema.get_field_index("args")
    field = sites.schema.field("args")
    sites = sites.set_column(at, field, pa.array(args).dictionary_encode().cast(field.type))
    pq.write_table(sites, trace / "sites/part-00000.parquet")
    restated(trace)
    opened = ft.load(trace)
    event = str(opened.sites.loc[number, "event"])
    found = opened.event(event)
    assert list(found["u"]) == [2**64 - 1, 2**53 + 1, pd.NA]
    assert list(found["s"]) == [-1, -(2**53) - 1, pd.NA]
    assert list(found["b"]) == [True, False, pd.NA]


def test_what_is_not_there_is_said(tmp_path: Path, trace: ft.Trace) -> None:
    with pytest.raises(FileNotFoundError, match="ft-agent record"):
        ft.load(tmp_path)
    with pytest.raises(KeyError, match="it has .*clock"):
        trace["nothing"]
    with pytest.raises(KeyError, match="no event 'nothing'"):
        trace.event("nothing")
    for read in (ft.load, ft.connect):
        with pytest.raises(FileNotFoundError, match="not a finished trace.*ft-agent record"):
            read(tmp_path)
        with pytest.raises(FileNotFoundError, match="there is no nowhere; name the directory"):
            read("nowhere")
    (tmp_path / "meta.json").write_text('{"schema_version": 1}')
    with pytest.raises(ValueError, match="schema version 1"):
        ft.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="views.sql; run `ft-agent analyze"):
        ft.connect(tmp_path)


def test_the_time_of_day_is_that_of_the_views(directory: Path) -> None:
    trace = ft.load(directory)
    mine = trace.wall(trace["clock"]["ts"]).astype("int64")
    theirs = ft.connect(directory).sql("SELECT epoch_ns(wall(ts)) FROM clock ORDER BY ts").fetchall()
    assert list(mine) == [row[0] for row in theirs]
