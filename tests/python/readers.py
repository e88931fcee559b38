"""Opens every table of a trace with pyarrow, pandas, Polars and DuckDB, and compares what they see.

usage: readers.py DIR TABLES

TABLES is what `ft-agent tables --json` says. Checked: that there are these tables with these columns and no other, the same
number of rows everywhere, the documented order, the footer's key-values, that the parts of a decomposition sum to the
interval, and that joins by the documented keys work. Ends with status 1 and one line for each fault.
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

# Documented types, as pyarrow shows them.
SHOWN = {"int64": I64, "int32": I32, "bool": BOOL, "double": F64, "text": NAME}

# A table that has these and `dur` has a decomposition in each row.
PARTS = [
    f"{part}_ns"
    for part in ("running", "preempted", "dispatch", "blocked", "hardirq", "softirq", "vector", "unexplained", "parked")
]

# What else belongs to the sum.
BESIDE = {"lock_waits": ["no_holder_ns", "cycle_ns"], "jobs": ["backlog_ns"]}

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


def check_parts(directory, documented):
    """Footer and order of each part; the schema as pyarrow sees it."""
    columns = shown(documented)
    for part in sorted(directory.glob("*.parquet")):
        file = pyarrow.parquet.ParquetFile(part)
        found = {field.name: str(field.type) for field in file.schema_arrow}
        expect(f"{part}: columns", found, columns)
        expect(f"{part}: order of columns", list(found), list(columns))
        about = {field.name: field.metadata or {} for field in file.schema_arrow}
        for column in documented:
            name = column["name"]
            said = {key: about.get(name, {}).get(key.encode(), b"").decode() for key in ("meaning", "unit")}
            expect(f"{part}: what {name} means", said, {"meaning": column["meaning"], "unit": column["unit"] or ""})
            if not column["meaning"] or bool(column["unit"]) != (column["type"] in ("int64", "int32", "double")):
                faults.append(f"{part}: the meaning or the unit of {name} is not documented: {column!r}")
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


def shown(documented):
    """Name and type of each column, as pyarrow shows them."""
    return {column["name"]: SHOWN[column["type"]] for column in documented}


def check_table(table, directory, documented):
    """The same rows and types in every reader; returns their number."""
    glob = str(directory / "*.parquet")
    check_parts(directory, documented)
    columns = shown(documented)

    arrow = pyarrow.dataset.dataset(directory, format="parquet").to_table()
    rows = arrow.num_rows
    if arrow.schema.names != list(columns):
        # The fault is noted.
        return rows

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
    total = " + ".join(PARTS + more)
    wrong = duckdb.sql(
        f"SELECT count(*) FROM read_parquet('{glob}') WHERE {total} <> dur"
    ).fetchall()[0][0]
    expect(f"{table}: rows whose parts do not sum to dur", wrong, 0)
    nulls = " + ".join(f"({part} IS NULL)::INT" for part in PARTS)
    mixed = duckdb.sql(
        f"SELECT count(*) FROM read_parquet('{glob}') WHERE {nulls} NOT IN (0, {len(PARTS)})"
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
    expect("meta.json: schema_version", meta["schema_version"], 8)
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
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    trace = Path(sys.argv[1])
    tables = {table["name"]: table for table in json.loads(Path(sys.argv[2]).read_text())}
    rows = {}
    for name, table in tables.items():
        if (trace / name).is_dir():
            rows[name] = check_table(name, trace / name, table["columns"])
        # What the analyses write need not be there.
        elif table["origin"] != "analyses":
            faults.append(f"the table {name} is missing")
    for directory in sorted(path for path in trace.iterdir() if path.is_dir()):
        if directory.name not in tables:
            faults.append(f"{directory.name} is no table that is documented")
    for name in rows:
        if {"dur", *PARTS} <= {column["name"] for column in tables[name]["columns"]}:
            check_sums(trace, name, BESIDE.get(name, []))
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
