"""Opens every table of a trace with pyarrow, pandas, Polars and DuckDB, and compares what they see.

usage: readers.py DIR

Checked: the documented column types, the same number of rows everywhere, the documented order, the
footer's key-values, that the parts of a decomposition sum to the interval, and that joins by the
documented keys work. Ends with status 1 and one line for each fault.
"""

import json
import sys
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.parquet

I64, I32, BOOL, F64 = "int64", "int32", "bool", "double"
NAME = "dictionary<values=string, indices=int32, ordered=0>"
PARTS = [
    "running",
    "preempted",
    "dispatch",
    "blocked",
    "hardirq",
    "softirq",
    "vector",
    "unexplained",
]
DECOMPOSITION = {f"{part}_ns": I64 for part in PARTS}

# Columns in their order; the first is the one by which the table is sorted.
TABLES = {
    "user_events": {
        "ts": I64, "tsc": I64, "pid": I32, "tid": I32, "cpu": I32, "site": I32,
        "event": NAME, "category": NAME, "kind": NAME,
        **{f"arg{i}": I64 for i in range(6)},
        **{f"argf{i}": F64 for i in range(6)},
        **{f"argt{i}": NAME for i in range(6)},
    },
    "sched_switch": {
        "ts": I64, "cpu": I32,
        "prev_tid": I32, "prev_pid": I32, "prev_comm": NAME, "prev_prio": I32, "prev_state": NAME,
        "prev_woken": BOOL,
        "next_tid": I32, "next_pid": I32, "next_comm": NAME, "next_prio": I32,
    },
    "sched_waking": {
        "ts": I64, "cpu": I32, "waker_tid": I32, "tid": I32, "pid": I32, "prio": I32,
        "target_cpu": I32, "is_new": BOOL,
    },
    "sched_migrate": {
        "ts": I64, "cpu": I32, "tid": I32, "pid": I32, "from_cpu": I32, "to_cpu": I32,
    },
    "irq": {
        "ts": I64, "dur": I64, "cpu": I32, "kind": NAME, "number": I32, "name": NAME, "tid": I32,
        "pid": I32,
    },
    "task_events": {
        "ts": I64, "cpu": I32, "kind": NAME, "tid": I32, "pid": I32, "comm": NAME,
        "parent_pid": I32,
    },
    "contention": {
        "ts": I64, "dur": I64, "cpu": I32, "tid": I32, "pid": I32, "lock": I64, "kind": NAME,
        "flags": I32,
    },
    "syscalls": {
        "ts": I64, "dur": I64, "cpu": I32, "tid": I32, "pid": I32, "number": I32, "name": NAME,
        "ret": I64,
    },
    "futex_calls": {
        "ts": I64, "dur": I64, "cpu": I32, "tid": I32, "pid": I32, "kind": NAME, "address": I64, "shared": BOOL,
        "second": I64, "value": I32, "word": I32, "timeout_ns": I64, "ret": I64, "result": NAME,
    },
    "page_faults": {
        "ts": I64, "cpu": I32, "tid": I32, "pid": I32, "address": I64, "access": NAME,
        "cause": NAME, "error": I32,
    },
    "call_chains": {
        "ts": I64, "dur": I64, "cpu": I32, "tid": I32, "pid": I32, "kind": NAME, "woken_tid": I32,
        "woken_pid": I32, "stack": I64, "user": I32, "cut": BOOL,
    },
    "samples": {
        "ts": I64, "cpu": I32, "tid": I32, "pid": I32, "stack": I64, "user": I32, "in_kernel": BOOL, "cut": BOOL,
    },
    "stacks": {"stack": I64, "position": I32, "pid": I32, "address": I64},
    "frames": {
        "pid": I32, "address": I64, "inlined": I32, "function": NAME, "file": NAME, "line": I32, "object": NAME,
        "build_id": NAME, "offset": I64,
    },
    "binaries": {"functions": I32, "framed": I32, "object": NAME, "build_id": NAME},
    "threads": {
        "ts": I64, "tid": I32, "pid": I32, "name": NAME, "process": NAME, "prio": I32,
        "observed": BOOL,
    },
    "sites": {
        "site": I32, "pid": I32, "event": NAME, "category": NAME, "kind": NAME, "file": NAME,
        "line": I32, "args": NAME, "format": NAME, "triggers": I32, "started": I64,
    },
    "symbols": {
        "pid": I32,
        "address": I64,
        "kind": NAME,
        "symbol": NAME,
        "file": NAME,
        "line": I32,
        "object": NAME,
        "offset": I64,
    },
    "names": {"pid": I32, "id": I32, "kind": NAME, "text": NAME, "line": I32, "column": I32},
    "clock": {
        "ts": I64, "tsc": I64, "bracket_ns": I64, "residual_ns": I64, "bound_ns": I64,
        "realtime_offset_ns": I64, "boottime_offset_ns": I64, "cpu": I32,
    },
    "loss": {
        "ts": I64, "dur": I64, "origin": NAME, "what": NAME, "cpu": I32, "pid": I32, "tid": I32,
        "count": I64,
    },
    "critical_sections": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "lock": I64, "lock_name": NAME, "kind": NAME,
        "site": I32, "place": NAME, "depth": I32, "depth_mark": NAME, "wait_ns": I64, "condition": BOOL,
        **DECOMPOSITION,
        "preemptor_tid": I32, "preemptor_comm": NAME, "preemptor_ns": I64, "agent_ns": I64,
        "mark": NAME,
    },
    "dispatch_latency": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "cpu": I32, "prio": I32,
        "waker_tid": I32, "waker_comm": NAME, "running_tid": I32, "running_comm": NAME,
        "running_ns": I64, "migrated": BOOL, "stack": I64, "agent_ns": I64, "mark": NAME,
    },
    "gaps": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "cpu": I32, "cause": NAME,
        "culprit": NAME, "culprit_tid": I32, **DECOMPOSITION, "agent_ns": I64, "inferred": NAME, "mark": NAME,
    },
    "thread_time": {
        "ts": I64, "pid": I32, "tid": I32, "comm": NAME, "part": NAME, "culprit": NAME,
        "culprit_tid": I32, "spent_ns": I64, "stretches": I64, "agent_ns": I64, "wall_ns": I64, "mark": NAME,
    },
    "lock_waits": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "lock": I64, "lock_name": NAME,
        "kind": NAME, "site": I32, "place": NAME, "depth": I32, "depth_mark": NAME, "holders": I32, "holder_tid": I32,
        "holder_comm": NAME, "holder_place": NAME, "holder_ns": I64, "holder_waits_ns": I64,
        "chain": I32, "root_tid": I32, "root_comm": NAME, "root_lock": NAME, "root_place": NAME,
        "root_ns": I64, **DECOMPOSITION, "no_holder_ns": I64, "cycle_ns": I64,
        "free_asleep_ns": I64, "free_runnable_ns": I64, "free_running_ns": I64, "free_unknown_ns": I64,
        "waker_tid": I32, "waker_comm": NAME, "woken_after_ns": I64,
        "behind_tid": I32, "behind_comm": NAME, "behind_ns": I64, "overtaken": I32, "stack": I64,
        "agent_ns": I64, "mark": NAME,
    },
    "unfinished_waits": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "lock": I64, "lock_name": NAME,
        "kind": NAME, "place": NAME, "ended": NAME, "holder_tid": I32, "holder_comm": NAME,
        "holder_place": NAME, "holder_since": I64, "holder_gone": BOOL, "cycle": I32,
    },
    "lock_preemptions": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "lock": I64, "lock_name": NAME,
        "kind": NAME, "site": I32, "place": NAME, "depth": I32, "depth_mark": NAME, "innermost": BOOL, "cause": NAME,
        "nth": I32, "stack": I64, "preemptor_tid": I32, "preemptor_comm": NAME, "preemptor_prio": I32,
        "preemptor_ns": I64, "waiters": I32, "delayed_ns": I64, "longest_waiter_tid": I32,
        "longest_waiter_ns": I64, "ran_after_ns": I64, "agent_ns": I64, "mark": NAME,
    },
    "lock_order": {
        "ts": I64, "count": I64, "pid": I32, "tid": I32, "held_lock": I64, "held_name": NAME,
        "held_kind": NAME, "held_place": NAME, "lock": I64, "lock_name": NAME, "kind": NAME,
        "place": NAME, "gates": NAME,
    },
    "lock_chains": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "kind": NAME, "lock": I64, "lock_name": NAME,
        "place": NAME, "innermost": BOOL, "stack": I64,
    },
    "scopes": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "site": I32, "event": NAME,
        "depth": I32, "depth_mark": NAME, **DECOMPOSITION, "lock_wait_ns": I64,
        "preemptor_tid": I32, "preemptor_comm": NAME, "preemptor_ns": I64, "agent_ns": I64, "mark": NAME,
    },
    "requests": {
        "ts": I64, "dur": I64, "request": I64, "kind": NAME, "key": I64, "pid": I32, "tid": I32, "comm": NAME,
        "end_pid": I32, "end_tid": I32, "end_comm": NAME, **DECOMPOSITION, "agent_ns": I64, "path_running_ns": I64,
        "path_preempted_ns": I64, "path_dispatch_ns": I64, "path_interrupt_ns": I64, "path_timer_ns": I64,
        "path_device_ns": I64, "path_outside_ns": I64, "path_unknown_ns": I64, "path_elsewhere_ns": I64,
        "path_pieces": I32, "path_mark": NAME, "mark": NAME,
    },
    "critical_path": {
        "ts": I64, "dur": I64, "request": I64, "depth": I32, "pid": I32, "tid": I32, "comm": NAME, "kind": NAME,
        "culprit": NAME, "culprit_tid": I32, "wait": NAME, "waiter_tid": I32, "mark": NAME,
    },
    "futex_waits": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "kind": NAME, "address": I64, "name": NAME,
        "own_kind": NAME, "own_name": NAME, "timeout_ns": I64, "end": NAME, "again": BOOL, "owner_tid": I32,
        **DECOMPOSITION, "woken_ns": I64, "waker_tid": I32, "waker_pid": I32, "waker_comm": NAME,
        "waker_call": NAME, "waker_stack": I64, "behind_tid": I32, "behind_comm": NAME, "behind_ns": I64,
        "stack": I64, "agent_ns": I64, "mark": NAME,
    },
    "loop_histogram": {
        "ts": I64, "pid": I32, "tid": I32, "comm": NAME, "from_cycles": I64, "to_cycles": I64,
        "from_ns": F64, "to_ns": F64, "passes": I64, "of_passes": I64, "mark": NAME,
    },
    "loop_peaks": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "cpu": I32, "pass": I64, "own_ns": I64,
        "excess_ns": I64, "cause": NAME, "culprit": NAME, "culprit_tid": I32, "culprit_ns": I64,
        "interrupt_ns": I64, "preempted_ns": I64, "blocked_ns": I64, "tracer_ns": I64, "unexplained_ns": I64,
        "mark": NAME,
    },
    "workers": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "worker": I32, "workload": NAME,
        "amount_ns": I64, "period_ns": I64, "timer": NAME, "policy": NAME, "priority": I32, "reserved_ns": I64,
        "reserved_period_ns": I64, "only_cpu": I32, "bound_ns": I64, "runs": I64, "run_ns": I64, "gap_ns": I64,
        "jobs": I64, "hit": I64, "missed": I64, "sleeps": I64, "mark": NAME,
    },
    "runs": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "worker": I32, "cpu": I32, "ended": NAME,
        "gap_ns": I64, **DECOMPOSITION, "mark": NAME,
    },
    "jobs": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "worker": I32, "number": I64, "due": I64,
        "start": I64, "finish": I64, "deadline": NAME, "backlog_ns": I64, **DECOMPOSITION, "culprit": NAME,
        "culprit_tid": I32, "culprit_ns": I64, "mark": NAME,
    },
    "timer_latency": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "comm": NAME, "worker": I32, "timer": NAME, "cpu": I32,
        "timer_ns": I64, "interrupt_ns": I64, "dispatch_ns": I64, "return_ns": I64, "interrupt": NAME,
        "running_tid": I32, "running_comm": NAME, "running_ns": I64, "mark": NAME,
    },
    "switches": {
        "ts": I64, "dur": I64, "pid": I32, "tid": I32, "worker": I32, "from_tid": I32, "from_worker": I32,
        "cpu": I32, "ended": NAME, "inferred": NAME, "kernel": NAME, "out_ns": I64, "others_ns": I64, "in_ns": I64,
        "mark": NAME,
    },
}

# Written by the analyses, so they need not be there.
OPTIONAL = {
    "critical_sections", "dispatch_latency", "gaps", "thread_time", "lock_waits", "unfinished_waits",
    "lock_preemptions", "lock_order", "lock_chains", "scopes", "requests", "critical_path", "futex_waits", "loop_histogram",
    "loop_peaks", "workers",
    "runs", "jobs", "timer_latency", "switches",
}

# Tables of which each row is an interval with a decomposition, and what else belongs to its sum.
DECOMPOSED = {
    "critical_sections": [], "scopes": [], "requests": [], "futex_waits": [], "gaps": [], "lock_waits": ["no_holder_ns", "cycle_ns"], "runs": [],
    "jobs": ["backlog_ns"],
}

FOOTER = ["schema_version", "host", "boot_id", "tsc_hz", "clock_bound_ns", "loss"]

DUCKDB_TYPES = {I64: "BIGINT", I32: "INTEGER", BOOL: "BOOLEAN", F64: "DOUBLE", NAME: "VARCHAR"}
PANDAS_TYPES = {I64: "int64", I32: "int32", BOOL: "bool", F64: "float64", NAME: "category"}
PANDAS_NULLABLE = {**PANDAS_TYPES, I64: "Int64", I32: "Int32"}
POLARS_TYPES = {I64: "Int64", I32: "Int32", BOOL: "Boolean", F64: "Float64", NAME: "Categorical"}

faults = []


def expect(what, found, wanted):
    """Notes a fault when the two differ."""
    if found != wanted:
        faults.append(f"{what}: {found!r} instead of {wanted!r}")


def check_parts(table, directory, columns):
    """Footer and order of each part; the schema as pyarrow sees it."""
    for part in sorted(directory.glob("*.parquet")):
        file = pyarrow.parquet.ParquetFile(part)
        found = {field.name: str(field.type) for field in file.schema_arrow}
        expect(f"{part}: columns", found, columns)
        expect(f"{part}: order of columns", list(found), list(columns))
        for field in file.schema_arrow:
            about = field.metadata or {}
            if b"meaning" not in about or (b"unit" in about) != (str(field.type) in (I64, I32, F64)):
                faults.append(f"{part}: what {field.name} means is not there: {about!r}")
        metadata = file.metadata.metadata or {}
        for key in FOOTER:
            if f"feather_trace.{key}".encode() not in metadata:
                faults.append(f"{part}: the footer lacks feather_trace.{key}")
        for group in range(file.metadata.num_row_groups):
            row_group = file.metadata.row_group(group)
            order = [(c.column_index, c.descending) for c in row_group.sorting_columns]
            expect(f"{part}: sorting columns", order, [(0, False)])
            if row_group.num_rows > 1_000_000:
                faults.append(f"{part}: a row group of {row_group.num_rows} rows")
        keys = file.read(columns=[next(iter(columns))]).column(0).to_pylist()
        if keys != sorted(keys):
            faults.append(f"{part}: not sorted")


def check_table(table, directory, columns):
    """The same rows and types in every reader; returns their number."""
    glob = str(directory / "*.parquet")
    check_parts(table, directory, columns)

    arrow = pyarrow.dataset.dataset(directory, format="parquet").to_table()
    rows = arrow.num_rows

    frame = pandas.read_parquet(directory)
    expect(f"{table}: rows in pandas", len(frame), rows)
    expect(f"{table}: columns in pandas", list(frame.columns), list(columns))
    for field in arrow.schema:
        types = PANDAS_NULLABLE if field.nullable else PANDAS_TYPES
        expect(f"{table}.{field.name}: type in pandas", str(frame[field.name].dtype),
               types[columns[field.name]])
    # No integer goes through a float on its way.
    for column in (c for c, kind in columns.items() if kind in (I64, I32)):
        found = [None if v is pandas.NA else int(v) for v in frame[column].astype(object)]
        expect(f"{table}.{column}: values in pandas", found, arrow.column(column).to_pylist())

    lazy = polars.scan_parquet(glob)
    found = {name: str(type(dtype).__name__ if not isinstance(dtype, type) else dtype.__name__)
             for name, dtype in lazy.collect_schema().items()}
    expect(f"{table}: types in Polars", found, {c: POLARS_TYPES[t] for c, t in columns.items()})
    expect(f"{table}: rows in Polars", lazy.select(polars.len()).collect().item(), rows)

    described = duckdb.sql(f"DESCRIBE SELECT * FROM read_parquet('{glob}')").fetchall()
    found = {row[0]: row[1] for row in described}
    expect(f"{table}: types in DuckDB", found, {c: DUCKDB_TYPES[t] for c, t in columns.items()})
    count = duckdb.sql(f"SELECT count(*) FROM read_parquet('{glob}')").fetchall()[0][0]
    expect(f"{table}: rows in DuckDB", count, rows)

    # The first column, summed, must not depend on the reader.
    key = next(iter(columns))
    total = sum(arrow.column(key).to_pylist())
    expect(f"{table}: sum in pandas", int(frame[key].astype(object).sum()), total)
    expect(f"{table}: sum in Polars", lazy.select(polars.col(key).cast(polars.Int128).sum())
           .collect().item() or 0, total)
    summed = duckdb.sql(f"SELECT sum({key}::HUGEINT) FROM read_parquet('{glob}')").fetchall()[0][0]
    expect(f"{table}: sum in DuckDB", int(summed or 0), total)
    return rows


def check_sums(trace, table, more):
    """Every decomposition sums to its interval, and is all there or not at all."""
    glob = str(trace / table / "*.parquet")
    parts = list(DECOMPOSITION)
    total = " + ".join(parts + more)
    wrong = duckdb.sql(
        f"SELECT count(*) FROM read_parquet('{glob}') WHERE {total} <> dur"
    ).fetchall()[0][0]
    expect(f"{table}: rows whose parts do not sum to dur", wrong, 0)
    nulls = " + ".join(f"({part} IS NULL)::INT" for part in parts)
    mixed = duckdb.sql(
        f"SELECT count(*) FROM read_parquet('{glob}') WHERE {nulls} NOT IN (0, {len(parts)})"
    ).fetchall()[0][0]
    expect(f"{table}: rows with some parts null", mixed, 0)


def check_balance(trace):
    """The time of each thread sums to its wall time."""
    wrong = duckdb.sql(
        f"""SELECT count(*) FROM (
                SELECT sum(spent_ns) AS spent, any_value(wall_ns) AS wall
                FROM read_parquet('{trace}/thread_time/*.parquet') GROUP BY pid, tid, ts)
            WHERE spent <> wall"""
    ).fetchall()[0][0]
    expect("thread_time: threads whose parts do not sum to wall_ns", wrong, 0)


def check_meta(trace, rows):
    """`meta.json` agrees with the tables."""
    meta = json.loads((trace / "meta.json").read_text())
    expect("meta.json: schema_version", meta["schema_version"], 3)
    for table, entry in meta["tables"].items():
        expect(f"meta.json: rows of {table}", entry["rows"], rows.get(table))


def check_join(trace):
    """Every user event has its site, under the same name."""
    orphans = duckdb.sql(
        f"""SELECT count(*) FROM read_parquet('{trace}/user_events/*.parquet') e
            LEFT JOIN read_parquet('{trace}/sites/*.parquet') s USING (site)
            WHERE s.event IS DISTINCT FROM e.event"""
    ).fetchall()[0][0]
    expect("user_events: rows without their site", orphans, 0)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    trace = Path(sys.argv[1])
    rows = {}
    for table, columns in TABLES.items():
        directory = trace / table
        if directory.is_dir():
            rows[table] = check_table(table, directory, columns)
        elif table not in OPTIONAL:
            faults.append(f"the table {table} is missing")
    # A table that is not frozen above: its own schema, so that the readers still agree.
    for part in sorted(trace.glob("*/part-00000.parquet")):
        table = part.parent.name
        if table not in TABLES:
            columns = {f.name: str(f.type) for f in pyarrow.parquet.read_schema(part)}
            rows[table] = check_table(table, part.parent, columns)
    for table, more in DECOMPOSED.items():
        if table in rows:
            check_sums(trace, table, more)
    if "thread_time" in rows:
        check_balance(trace)
    check_meta(trace, rows)
    check_join(trace)
    for fault in faults:
        print(fault, file=sys.stderr)
    for table, count in rows.items():
        print(f"{table:18} {count:10}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
