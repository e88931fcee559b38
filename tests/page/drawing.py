"""What a timeline has to draw, from the trace's tables alone, as JSON: gaps, scopes, wake-ups, losses and events, with their times."""

import json
import sys
from pathlib import Path

import duckdb

QUERIES = {
    "gaps": "SELECT pid, tid, ts, dur FROM gaps",
    "scopes": "SELECT pid, tid, ts, dur FROM scopes",
    # Of some the end was not recorded: they are in no row, and are drawn as far as they are known.
    "open_scopes": """SELECT pid, tid, ts FROM user_events
                      WHERE kind = 'scope_begin' AND (pid, tid, ts) NOT IN (SELECT (pid, tid, ts) FROM scopes)""",
    "wakes": "SELECT pid, tid, ts, dur, waker_tid FROM dispatch_latency",
    "losses": "SELECT ts, dur FROM loss",
    "events": "SELECT pid, tid, ts, kind = 'event' FROM user_events",
}


def main(trace: Path) -> None:
    """Prints {what: rows}."""
    for table in ("gaps", "scopes", "dispatch_latency", "loss", "user_events"):
        duckdb.sql(f"CREATE VIEW {table} AS FROM '{trace}/{table}/*.parquet'")
    print(json.dumps({what: duckdb.sql(query).fetchall() for what, query in QUERIES.items()}))


main(Path(sys.argv[1]))
