"""Timelines, beside the results that another program computed in another language."""

from __future__ import annotations

from pathlib import Path

import pytest

import feather_trace as ft


def test_the_parts_are_those_of_the_threads_time(directory: Path) -> None:
    trace = ft.load(directory)
    times = trace["thread_time"]
    compared = 0
    for tid, rows in times.groupby("tid"):
        line = ft.timeline(trace, int(tid))
        assert line["dur"].sum() == rows["wall_ns"].iloc[0]
        assert (line["ts"].to_numpy()[1:] == (line["ts"] + line["dur"]).to_numpy()[:-1]).all()
        if rows["mark"].iloc[0] == "lower bound" or (line["mark"] != "exact").any():
            # A record is missing: where the time went is a matter of rules.
            continue
        # Time in a gap that the thread saw itself is not *running* there, nor known to be anything else.
        in_gaps = rows.loc[rows["culprit"] == "in gaps", "spent_ns"].sum()
        theirs = rows.groupby("part", observed=True)["spent_ns"].sum().reindex(ft.PARTS, fill_value=0)
        theirs["running"] += in_gaps
        theirs["unexplained"] -= in_gaps
        mine = ft.parts(line, int(line["ts"].iloc[0]), int(line["ts"].iloc[-1] + line["dur"].iloc[-1]))
        assert mine.to_dict() == theirs.to_dict(), tid
        compared += 1
    assert compared >= 1


def test_the_parts_of_holds_and_scopes_are_those_of_the_results(directory: Path) -> None:
    trace = ft.load(directory)
    columns = [f"{part}_ns" for part in ft.PARTS]
    compared = 0
    for table in ("critical_sections", "scopes"):
        rows = trace[table]
        rows = rows[(rows["mark"] == "exact") & rows["running_ns"].notna()]
        for tid, group in rows.groupby("tid"):
            line = ft.timeline(trace, int(tid))
            for row in group.head(40).to_dict("records"):
                mine = ft.parts(line, row["ts"], row["ts"] + row["dur"])
                during = (line["ts"] < row["ts"] + row["dur"]) & (line["ts"] + line["dur"] > row["ts"])
                if (line["mark"][during] != "exact").any():
                    continue
                assert list(mine) == [row[column] for column in columns], row
                compared += 1
    if directory.parent.name.startswith(("scenarios", "preload")):
        assert compared > 50


def test_a_thread_is_named_by_its_number(trace: ft.Trace) -> None:
    thread = trace["threads"].iloc[-1]
    with pytest.raises(TypeError, match=f"by its number, not by .*; threads of that name have .*{thread['tid']}"):
        ft.timeline(trace, thread["name"])
    with pytest.raises(TypeError, match="not by 'nobody'; the table `threads` has those of all names"):
        ft.timeline(trace, "nobody")  # type: ignore[arg-type]


def test_a_thread_that_was_not_observed_has_none(trace: ft.Trace) -> None:
    with pytest.raises(KeyError, match="no times of thread -5"):
        ft.timeline(trace, -5)
