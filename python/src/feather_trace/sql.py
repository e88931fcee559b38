"""A trace in DuckDB, under names; and all traces of a catalogue."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def connect(directory: str | Path) -> duckdb.DuckDBPyConnection:
    """A connection with the views of a trace: its tables, and `event."NAME"` for each event.

    Executes the trace's `views.sql`: of a trace that somebody else gave you, let `ft-agent analyze` write that file anew.
    Needs DuckDB (`pip install feather-trace[sql]`). Raises `FileNotFoundError` when the trace has no views.
    """
    import duckdb

    script = Path(directory) / "views.sql"
    if not script.exists():
        raise FileNotFoundError(f"{directory} has no views.sql; run `ft-agent analyze {directory}`, which makes it")
    connection = duckdb.connect()
    # The variable is a pattern.
    connection.execute("SET VARIABLE trace = $1", [glob.escape(str(Path(directory).absolute()))])
    connection.execute(script.read_text())
    return connection


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
    place = str(catalogue).rstrip("/") if is_url else str(Path(catalogue).absolute())
    # The variable begins patterns.
    connection.execute("SET VARIABLE fleet = $1", [glob.escape(place)])
    connection.execute(Path(__file__).with_name("fleet_duckdb.sql").read_text())
    return connection
