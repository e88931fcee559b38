"""Counts the samples of a trace anew, by DuckDB, and compares the sums of its profile, and its shares and how sure they are.

usage: profile.py TRACE REPORT, where REPORT is what `ft-agent report TRACE profile --json` has printed
"""

import json
import math
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
    "processes": """
        SELECT coalesce(nullif(arg_max(threads.name, threads.ts), ''), samples.pid::VARCHAR), count(DISTINCT samples.n)
        FROM (SELECT *, row_number() OVER () AS n FROM samples) samples LEFT JOIN threads ON threads.tid = samples.pid
        GROUP BY samples.pid
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
    # Whole ways, the outermost function first.
    "chains": """
        SELECT coalesce(way, []), count(*)
        FROM samples LEFT JOIN (SELECT stack, list(label ORDER BY depth DESC) AS way FROM functions GROUP BY stack)
        USING (stack) GROUP BY ALL
        """,
}

# The quantile of the normal distribution between which and its opposite 99 % lie.
QUANTILE = 2.5758293035489004


# What names a row of the report: its function or lock, what that is in, its thread.
NAMES = {
    "processes": lambda row: (row["name"],),
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
    if grouping == "chains":
        return {tuple(way): n for way, n in report["chains"]}
    rows, figure = report.get(grouping), "samples"
    if grouping == "with callees":
        # Of functions that samples were in themselves; the others have no row.
        rows, figure = report["functions"], "with_callees"
    return {NAMES[grouping](row): row[figure] for row in rows if figure in row}


def likely(share: float, of: int) -> tuple[float, float]:
    """The shares at which one that was met is at the edge of what 99 % of samples are.

    These are the roots of the equation that says so, (share - x)² = QUANTILE² · x · (1 - x) / of.
    """
    a, b, c = 1 + QUANTILE**2 / of, 2 * share + QUANTILE**2 / of, share**2
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (b - root) / (2 * a), (b + root) / (2 * a)


def misjudged(report: dict, grouping: str) -> list[str]:
    """Rows whose share is of another number, or whose bounds are others."""
    of_locks = {row["name"]: row["samples"] for row in report["locks"]}
    wrong = []
    for row in report[grouping]:
        of = of_locks[row["name"]] if grouping == "held" else report["samples"]
        bounds = likely(row["samples"] / of, of)
        said = (row["at_least"], row["at_most"])
        if row["of"] != of or any(abs(a - b) > 1e-9 for a, b in zip(said, bounds)):
            wrong.append(f"{row}: should be of {of}, and between {bounds}")
    return wrong


def main() -> int:
    """Compares all groupings."""
    trace = Path(sys.argv[1])
    report = json.loads(Path(sys.argv[2]).read_text())["sections"]["profile"]["values"]
    db = duckdb.connect()
    for table in ["samples", "stacks", "frames", "lock_chains", "threads"]:
        db.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{trace}/{table}/*.parquet')")
    db.execute(FUNCTIONS)
    db.execute(TAKEN)
    faults = 0
    for grouping, query in GROUPINGS.items():
        said = reported(report, grouping)
        counted: dict[tuple, int] = {}
        for *names, n in db.execute(query).fetchall():
            key = tuple(names[0]) if grouping == "chains" else tuple(names)
            # Processes of one name, and ways of one name by different addresses, are one.
            counted[key] = counted.get(key, 0) + n
        counted = {key: n for key, n in counted.items() if n}
        if grouping == "with callees":
            counted = {names: n for names, n in counted.items() if names in said}
        differences = {names for names in said.keys() | counted.keys() if said.get(names) != counted.get(names)}
        print(f"{grouping}: {len(counted)} rows, {sum(counted.values())} samples, {len(differences)} differences")
        for names in sorted(differences, key=str)[:20]:
            print(f"  {names}: counted {counted.get(names)}, reported {said.get(names)}")
        wrong = [] if grouping in ("chains", "with callees") else misjudged(report, grouping)
        print("".join(f"  {line}\n" for line in wrong), end="")
        faults += len(differences) + len(wrong)
    if db.execute("SELECT count(*), count(*) FILTER (in_kernel) FROM samples").fetchone() != (
        report["samples"],
        report["in_kernel"],
    ):
        print("  of all samples so many are in the kernel: not as reported")
        faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
