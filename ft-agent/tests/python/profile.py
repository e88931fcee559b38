"""Counts the samples of a trace anew, by DuckDB, and compares the sums of its profile.

usage: profile.py TRACE REPORT, where REPORT is what `ft-agent report TRACE profile --json` has printed
"""

import json
import sys
from pathlib import Path

import duckdb

# Functions of each chain, the innermost first: those inlined into each other lie at one address, the deepest first.
FUNCTIONS = """
CREATE TABLE functions AS
SELECT stack,
       row_number() OVER (PARTITION BY stack ORDER BY position, inlined DESC) AS depth,
       coalesce(
           nullif(function, ''),
           CASE WHEN object IN ('', 'unseen') THEN printf('0x%x', address)
                ELSE regexp_extract(object, '[^/]*$') || printf('+0x%x', "offset") END,
           '(not kept)'
       ) AS label,
       coalesce(object, '') AS object,
       CASE WHEN coalesce(file, '') = '' THEN '' ELSE file || ':' || line END AS place
FROM stacks LEFT JOIN frames USING (pid, address)
"""

# Of each sample the function that it was in itself, and the line of the first function, from there outwards, that has one.
TAKEN = """
CREATE TABLE taken AS
SELECT samples.*, coalesce(label, '(not known)') AS label, coalesce(object, '') AS object,
       coalesce(place, '(not known)') AS place, coalesce(of_place, '') AS of_place
FROM samples
LEFT JOIN (SELECT stack, label, object FROM functions WHERE depth = 1) USING (stack)
LEFT JOIN (SELECT stack, arg_min(place, depth) AS place, arg_min(label, depth) AS of_place
           FROM functions WHERE place <> '' GROUP BY stack) USING (stack)
"""

# Each grouping of the report, as names and a number of samples.
GROUPINGS = {
    "functions": "SELECT label, object, count(*) FROM taken GROUP BY ALL",
    "with callees": """
        SELECT label, object, count(*)
        FROM samples JOIN (SELECT DISTINCT stack, label, object FROM functions) USING (stack) GROUP BY ALL
        """,
    "threads": "SELECT tid, count(*) FROM samples GROUP BY ALL",
    "lines": "SELECT place, of_place, count(*) FROM taken GROUP BY ALL",
    "locks": "SELECT lock_name, count(*) FROM lock_chains WHERE kind = 'runs' GROUP BY ALL",
    "held": """
        SELECT lock_name, label, count(*)
        FROM lock_chains JOIN taken USING (ts, tid) WHERE lock_chains.kind = 'runs' GROUP BY ALL
        """,
    "innermost": """
        SELECT lock_name, count(*) FROM lock_chains WHERE kind = 'runs' AND innermost GROUP BY ALL
        UNION ALL
        SELECT '(no lock)', (SELECT count(*) FROM samples) - count(*)
        FROM lock_chains WHERE kind = 'runs' AND innermost
        """,
}


# What names a row of the report: its function or lock, what that is in, its thread.
NAMES = {
    "functions": lambda row: (row["name"], row.get("object", "")),
    "with callees": lambda row: (row["name"], row.get("object", "")),
    "threads": lambda row: (row.get("tid", 0),),
    "lines": lambda row: (row["name"], row.get("object", "")),
    "locks": lambda row: (row["name"],),
    "held": lambda row: (row["name"], row["function"]),
    "innermost": lambda row: (row["name"],),
}


def reported(report: dict, grouping: str) -> dict[tuple, int]:
    """The same of the report."""
    rows, figure = report.get(grouping), "samples"
    if grouping == "with callees":
        # Of functions that samples were in themselves; the others have no row.
        rows, figure = report["functions"], "with_callees"
    return {NAMES[grouping](row): row[figure] for row in rows if figure in row}


def main() -> int:
    """Compares all groupings."""
    trace = Path(sys.argv[1])
    report = json.loads(Path(sys.argv[2]).read_text())["sections"]["profile"]["values"]
    db = duckdb.connect()
    for table in ["samples", "stacks", "frames", "lock_chains"]:
        db.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{trace}/{table}/*.parquet')")
    db.execute(FUNCTIONS)
    db.execute(TAKEN)
    faults = 0
    for grouping, query in GROUPINGS.items():
        said = reported(report, grouping)
        counted = {tuple(names): n for *names, n in db.execute(query).fetchall() if n}
        if grouping == "with callees":
            counted = {names: n for names, n in counted.items() if names in said}
        differences = {names for names in said.keys() | counted.keys() if said.get(names) != counted.get(names)}
        print(f"{grouping}: {len(counted)} rows, {sum(counted.values())} samples, {len(differences)} differences")
        for names in sorted(differences, key=str)[:20]:
            print(f"  {names}: counted {counted.get(names)}, reported {said.get(names)}")
        faults += len(differences)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
