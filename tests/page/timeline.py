"""What the timeline of a page must show, from the trace's tables alone, as JSON."""

import json
import sys
from pathlib import Path

import duckdb

# The time of each thread by part, the holds, and how often each event was recorded.
QUERIES = {
    "time": "SELECT tid, part, sum(spent_ns)::BIGINT FROM thread_time GROUP BY ALL",
    "holds": "SELECT tid, ts, dur, lock_name, mark FROM critical_sections ORDER BY dur DESC LIMIT 10",
    "waits": "SELECT tid, ts, dur, lock_name, mark FROM lock_waits ORDER BY dur DESC LIMIT 10",
    "events": "SELECT event, count(*) FROM user_events GROUP BY ALL",
}


def main(trace: Path) -> None:
    """Prints {query: rows}."""
    found = {}
    for name, query in QUERIES.items():
        table = query.split(" FROM ")[1].split()[0]
        files = [str(part) for part in (trace / table).glob("*.parquet")]
        query = query.replace(f" FROM {table}", f" FROM read_parquet({files})")
        found[name] = duckdb.sql(query).fetchall() if files else []
    print(json.dumps(found))


main(Path(sys.argv[1]))
