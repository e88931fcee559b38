"""Requests that cross hosts, whose clocks differ."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import feather_trace as ft
from conftest import restated

# Of the stored recording `scenarios`: an order is a number that comes twice.
BEGIN, END, KEY = "order.placed", "order.settled", "id"


def of_host(trace: Path, to: Path, host: str, ahead_ns: int, bound_ns: int | None) -> ft.Trace:
    """The same trace as of a host whose clock is ahead, and how far off the kernel there thinks it is."""
    shutil.copytree(trace, to)
    meta = json.loads((to / "meta.json").read_text())
    meta["start"]["host"] = host
    (to / "meta.json").write_text(json.dumps(meta))
    for part in (to / "clock").glob("*.parquet"):
        rows = pq.read_table(part)
        offsets = pa.array([ns + ahead_ns for ns in rows.column("realtime_offset_ns").to_pylist()], pa.int64())
        at = rows.schema.get_field_index("realtime_offset_ns")
        pq.write_table(rows.set_column(at, rows.schema.field(at), offsets), part)
    # The recording is from before the host's clock was looked at.
    samples = pq.read_table(to / "clock").column("ts").to_pylist()[::10]
    [part] = (to / "host_clock").glob("*.parquet")
    schema = pq.read_schema(part)
    columns = {"ts": samples, "state": ["synchronised" if bound_ns else "unsynchronised"] * len(samples), "bound_ns": [bound_ns] * len(samples)}
    rows = [pa.array(columns.get(field.name, [None] * len(samples))).cast(field.type) for field in schema]
    pq.write_table(pa.table(rows, schema=schema), part)
    restated(to)
    return ft.load(to)


@pytest.fixture
def hosts(converted: Callable[[str], Path], tmp_path: Path) -> Callable[..., ft.Trace]:
    trace = converted("scenarios")

    def make(host: str, ahead_ns: int, bound_ns: int | None) -> ft.Trace:
        return of_host(trace, tmp_path / host, host, ahead_ns, bound_ns)

    return make


def test_the_order_of_two_hosts_is_known_as_far_as_their_clocks_are(hosts: Callable[..., ft.Trace]) -> None:
    a, b, c = hosts("a", 0, 1_000_000), hosts("b", 50_000_000, 2_000_000), hosts("c", 0, None)
    found = ft.across([a, b, c], BEGIN, END, KEY)
    assert len(found) > 10 * 9
    pairs = {pair: rows for pair, rows in found.groupby(["begin_host", "end_host"])}
    assert len(pairs) == 9
    own = pairs["a", "a"].set_index("key")
    assert (own["error_ns"] == 0).all() and (own["order"] == "in order").all()
    assert (own["dur_ns"] == own["end_ts"] - own["begin_ts"]).all()
    # The second host's clock is 50 ms ahead: that is in the difference, and the bounds of both are its error.
    there, back = (pairs[pair].set_index("key") for pair in (("a", "b"), ("b", "a")))
    error = there["error_ns"]
    # Samples of the two clocks of one host are not taken in one instant.
    assert ((there["dur_ns"] - own["dur_ns"] - 50_000_000).abs() <= error - 3_000_000).all()
    assert ((back["dur_ns"] - own["dur_ns"] + 50_000_000).abs() <= error - 3_000_000).all()
    # And 500 ppm since the sample, of a second at most or a few where the recording was held up.
    assert ((error >= 3_000_000) & (error < 3_000_000 + 2 * 10_000_000)).all(), error.describe()
    for rows in (there, back):
        is_far = rows["dur_ns"].abs() > rows["error_ns"]
        assert (rows.loc[~is_far, "order"] == "not known").all()
        assert (rows.loc[is_far & (rows["dur_ns"] > 0), "order"] == "in order").all()
        assert (rows.loc[is_far & (rows["dur_ns"] < 0), "order"] == "reversed").all()
    assert (there["order"] == "in order").any()
    # Nobody knows how far off the third one is.
    unknown = pd.concat([pairs["a", "c"], pairs["c", "b"]])
    assert unknown["error_ns"].isna().all() and (unknown["order"] == "not known").all()


def test_what_nobody_recorded_is_said(hosts: Callable[..., ft.Trace]) -> None:
    a = hosts("a", 0, 1)
    with pytest.raises(KeyError, match="no trace has an event 'no.such'"):
        ft.across([a], "no.such", END, KEY)
    with pytest.raises(KeyError, match="no argument 'no_such'"):
        ft.across([a], BEGIN, END, "no_such")
