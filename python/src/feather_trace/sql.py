"""A trace in DuckDB, under names."""

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
