"""A trace in DuckDB, under names; and all traces of a catalogue."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from feather_trace.foreign import brief, first_line, legible, looked_at, no_trace, said, whole
from feather_trace.whole import left_out

if TYPE_CHECKING:
    import duckdb


def connect(directory: str | Path, incomplete: bool = False) -> duckdb.DuckDBPyConnection:
    """A connection with the views of a trace: its tables, and `event."NAME"` for each event.

    Executes the trace's `views.sql`: of a trace that somebody else gave you, let `ft-agent analyze` write that file anew.
    Needs DuckDB (`pip install feather-trace[sql]`). Raises `FileNotFoundError` when the trace has no views, `ValueError` where its files are
    not what they should be: also where a part is missing or is not what was written. With `incomplete`, such parts are left out, with a
    warning; of each table one must be left.
    """
    import duckdb

    directory = Path(directory)
    script = directory / "views.sql"
    try:
        views = whole(script)
    except (FileNotFoundError, NotADirectoryError):
        shown = legible(directory)
        if not (directory / "meta.json").exists():
            raise no_trace(directory) from None
        raise FileNotFoundError(f"{shown} has no views.sql; run `ft-agent analyze {shown}`, which makes it") from None
    out: frozenset[str] = frozenset()
    # Without it the script says what it needs.
    if (directory / "meta.json").exists():
        out = left_out(directory, said(directory / "meta.json"), incomplete)
    # DuckDB passes over a part that is no regular file, without a word.
    for part in directory.glob("*/part-*.parquet"):
        if f"{part.parent.name}/{part.name}" not in out:
            looked_at(part)
    connection = duckdb.connect()
    try:
        connection.execute("SET VARIABLE trace = $1", [pattern(directory)])
        connection.execute("SET VARIABLE incomplete = $1", [incomplete])
        connection.execute(views)
    except duckdb.Error as error:
        raise ValueError(
            f"{legible(script)} does not fit the tables beside it: {brief(first_line(error))}; "
            f"or run `ft-agent analyze {legible(directory)}`, which writes the views anew"
        ) from None
    return connection


def pattern(place: Path) -> str:
    """The pattern that matches a directory alone, as DuckDB has patterns. Raises `ValueError` where there is none."""
    path = str(place.absolute())
    # DuckDB takes one for a separator, between brackets, too.
    if "\\" in path or path != path.encode(errors="replace").decode():
        raise ValueError(f"DuckDB finds nothing below {legible(path)}, whose name has a backslash or is not UTF-8; give it another name, or a link to it")
    return glob.escape(path)


def fleet(catalogue: str | Path) -> duckdb.DuckDBPyConnection:
    """A connection with all traces of a catalogue, a directory or s3://BUCKET/PREFIX (with DuckDB's extension httpfs).

    `traces()` has a row for each, `every('critical_sections')` a table of all of them, with `host`, `date` and `trace`, and
    `percentile_ns(array_agg(bucket(to_ns, count, max_ns)), 99)` is a percentile over rows of `histograms()`. What lies in the
    catalogue without a row is no trace, and in none of them. The definitions are `fleet_duckdb.sql`, which DuckDB's own shell reads, too.
    Needs DuckDB (`pip install feather-trace[sql]`).
    """
    import duckdb

    connection = duckdb.connect()
    is_url = "://" in str(catalogue)
    # The variable begins patterns.
    place = glob.escape(str(catalogue).rstrip("/")) if is_url else pattern(Path(catalogue))
    connection.execute("SET VARIABLE fleet = $1", [place])
    connection.execute(Path(__file__).with_name("fleet_duckdb.sql").read_text())
    return connection
