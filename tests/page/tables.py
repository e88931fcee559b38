"""What tables of a report must show, from the trace's tables alone: DuckDB's sums, as JSON."""

import json
import sys
from pathlib import Path

import duckdb

# Section, beginning of the table's title, titles of its columns, and the same of the trace's table.
TABLES = [
    ("locks", "Hold times", ["holds", "total", "max"],
     "SELECT count(*), sum(dur), max(dur) FROM critical_sections GROUP BY pid, lock_name, kind"),
    ("waits", "By lock", ["waits", "total", "max"],
     "SELECT count(*), sum(dur), max(dur) FROM lock_waits GROUP BY pid, lock_name, kind"),
    ("waits", "By place of the acquisition", ["waits", "total", "max"],
     "SELECT count(*), sum(dur), max(dur) FROM lock_waits GROUP BY pid, lock_name, place"),
    ("preempted", "By lock", ["times", "total", "max", "delay in all"],
     "SELECT count(*), sum(dur), max(dur), sum(delayed_ns) FROM lock_preemptions GROUP BY pid, lock_name, kind"),
    ("dispatch", "By thread", ["tid", "wake-ups", "max", ">1 ms", ">50 ms"],
     "SELECT tid, count(*), max(dur), count(*) FILTER (dur > 1e6), count(*) FILTER (dur > 5e7) "
     "FROM dispatch_latency WHERE mark <> 'censored' GROUP BY pid, tid"),
    ("gaps", "By polling thread", ["tid", "gaps", "total", "max"],
     "SELECT tid, count(*), sum(dur), max(dur) FROM gaps GROUP BY pid, tid"),
    ("time", "Where the time went", ["tid", "running", "preempted", "dispatch", "blocked", "irqs"],
     "SELECT tid, " + ", ".join(
         f"coalesce(sum(spent_ns) FILTER (part IN ({parts})), 0)"
         for parts in ("'running'", "'preempted'", "'dispatch'", "'blocked'", "'hardirq', 'softirq', 'vector'"))
     + " FROM thread_time GROUP BY pid, tid, ts"),
]


def main(trace: Path) -> None:
    """Prints {section: {title: {columns, rows}}}."""
    found: dict[str, dict[str, object]] = {}
    for section, title, columns, query in TABLES:
        table = query.split(" FROM ")[1].split()[0]
        files = sorted(str(part) for part in (trace / table).glob("*.parquet"))
        rows = []
        if files:
            relation = duckdb.read_parquet(files)
            rows = [[int(n) for n in row] for row in relation.query(table, query).fetchall()]
        found.setdefault(section, {})[title] = {"columns": columns, "rows": rows}
    print(json.dumps(found))


main(Path(sys.argv[1]))
