"""What the recording itself did, by DuckDB from the raw switches. usage: overhead.py DIR CPU

The agent and what it records must share this CPU. Fails with one line for each figure that differs.
"""

import json
import sys
from pathlib import Path

import duckdb

DIR, CPU = Path(sys.argv[1]), int(sys.argv[2])

# Who has the CPU from each switch on, and what the agent had of it until then.
PERIODS = f"""
    CREATE TABLE periods AS
    SELECT *, coalesce(sum(CASE WHEN before = ? THEN ts - since END) OVER (ORDER BY ts), 0) AS agent_ns
    FROM (SELECT *, lag(next_pid) OVER (ORDER BY ts) AS before, lag(ts) OVER (ORDER BY ts) AS since
          FROM '{DIR}/sched_switch/*.parquet' WHERE cpu = {CPU})
"""

# What the agent has had until a time in a period.
NOW = "p.agent_ns + CASE WHEN p.next_pid = ? THEN {ts} - p.ts ELSE 0 END"

# A round of a thread goes from one switch to it to the next. It can run again from the switch away from it, where that
# took the CPU from it or it was being woken already; else from its first waking afterwards.
WAITS = f"""
    WITH observed AS (SELECT DISTINCT pid FROM '{DIR}/threads/*.parquet' WHERE observed),
    marks AS (
        SELECT ts, prev_tid AS tid, 'leaves' AS what, prev_state, prev_woken, agent_ns
        FROM periods WHERE prev_pid IN (SELECT pid FROM observed)
        UNION ALL
        SELECT ts, next_tid, 'comes', NULL, NULL, agent_ns
        FROM periods WHERE next_pid IN (SELECT pid FROM observed)
        UNION ALL
        SELECT w.ts, w.tid, 'woken', NULL, NULL, {NOW.format(ts="w.ts")}
        FROM '{DIR}/sched_waking/*.parquet' w ASOF JOIN periods p ON w.ts >= p.ts
    ),
    rounds AS (
        SELECT *, count(*) FILTER (what = 'comes') OVER (
            PARTITION BY tid ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS round
        FROM marks
    ),
    left_at AS (
        SELECT *, max(ts) FILTER (what = 'leaves') OVER (PARTITION BY tid, round) AS left_ts FROM rounds
    ),
    waits AS (
        SELECT tid, round,
               max(agent_ns) FILTER (what = 'comes') AS until,
               max(prev_state) FILTER (what = 'leaves') LIKE 'R%' AS preempted,
               CASE WHEN bool_or(prev_woken OR prev_state LIKE 'R%') FILTER (what = 'leaves')
                    THEN max(agent_ns) FILTER (what = 'leaves')
                    ELSE min(agent_ns) FILTER (what = 'woken' AND (left_ts IS NULL OR ts > left_ts)) END AS since
        FROM left_at GROUP BY tid, round
    )
    SELECT CASE WHEN preempted THEN 'preempted' ELSE 'woken' END AS cause,
           count(*), sum(until - since), max(until - since)
    FROM waits WHERE until > since GROUP BY cause
"""


def main() -> int:
    """Compares."""
    agent = json.loads((DIR / "meta.json").read_text())["start"]["agent_pid"]
    tally = json.loads((DIR / "analysis.json").read_text())
    stated = tally["overhead"]
    base = duckdb.connect()
    base.execute(PERIODS, [agent])
    last = f"SELECT {NOW.format(ts='?')} FROM periods p ORDER BY p.ts DESC LIMIT 1"
    found: dict[str, object] = {"cpu_ns": int(base.execute(last, [agent, tally["last_ns"]]).fetchone()[0])}
    found |= dict.fromkeys(("preempted", "woken"), {"times": 0, "total_ns": 0, "longest_ns": 0})
    for cause, times, total, longest in base.execute(WAITS, [agent]).fetchall():
        found[cause] = {"times": times, "total_ns": int(total), "longest_ns": int(longest)}
    faults = [f"{name}: {stated[name]}, by DuckDB {found[name]}" for name in found if stated[name] != found[name]]
    print("\n".join(faults) or f"agree: {found}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
