"""A first look at a trace: python first_look.py TRACE (needs duckdb and polars)."""

import sys

import duckdb
import polars as pl

trace = sys.argv[1]

# Which locks were held longest, and for how much of that was the holder preempted?
print(duckdb.sql(f"""
    SELECT lock_name, count(*) AS holds,
           round(sum(dur) / 1e6, 3) AS held_ms,
           round(100 * sum(preempted_ns) / sum(dur), 1) AS preempted_pct,
           round(quantile_cont(dur, 0.99) / 1e3, 1) AS p99_us,
           mode(preemptor_comm) AS usual_preemptor
    FROM '{trace}/critical_sections/*.parquet'
    GROUP BY lock_name ORDER BY held_ms DESC
"""))

# What took each thread's time, the largest causes first?
print(duckdb.sql(f"""
    SELECT comm, part, culprit, round(sum(spent_ns) / 1e6, 3) AS spent_ms
    FROM '{trace}/thread_time/*.parquet'
    WHERE part <> 'running'
    GROUP BY comm, part, culprit ORDER BY spent_ms DESC LIMIT 10
"""))

# What ran on the CPU of the thread that waited longest for one, from its waking to its dispatch?
worst = pl.read_parquet(f"{trace}/dispatch_latency/*.parquet").sort("dur").tail(1)
for wake in worst.iter_rows(named=True):
    switches = pl.read_parquet(f"{trace}/sched_switch/*.parquet").filter(
        pl.col("cpu") == wake["cpu"],
        pl.col("ts").is_between(wake["ts"], wake["ts"] + wake["dur"]),
    )
    print(f"{wake['comm']} waited {wake['dur'] / 1e3:.1f} us, woken by {wake['waker_comm']}; then ran:")
    print(switches.select((pl.col("ts") - wake["ts"]).alias("after_ns"), "prev_comm", "next_comm"))
