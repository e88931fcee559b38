"""`views.sql` in DuckDB, beside the tables themselves."""

from __future__ import annotations

import glob
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import feather_trace as ft
from conftest import agent, restated, unpack, values

HOSTILE = [
    'quote"; DROP VIEW threads; --',
    "it's",
    "line\n.shell touch harmed\nend",
    "nul\0end",
    "</script>",
    "",
    "ORDER.PLACED",
    "order.placed",
    "threads",
    "ünï.\u202e\U0001f512",
    "x" * 4096,
]


def count(sql: str, connection: duckdb.DuckDBPyConnection) -> int:
    return int(connection.sql(sql).fetchall()[0][0])


def test_each_table_has_the_rows_and_values_of_its_file(directory: Path) -> None:
    views = ft.connect(directory)
    tables = ft.load(directory).tables
    assert len(tables) > 20
    for table in tables:
        file = f"read_parquet('{directory}/{table}/*.parquet')"
        columns = views.sql(f"DESCRIBE SELECT * FROM {file}").fetchall()
        # Addresses are unsigned in the views: the bits are compared.
        bits = [
            f'("{name}"::HUGEINT & 18446744073709551615) AS "{name}"' if kind == "BIGINT" else f'"{name}"'
            for name, kind, *_ in columns
        ]
        rows = count(f"SELECT count(*) FROM {file}", views)
        assert count(f'SELECT count(*) FROM "{table}"', views) == rows, table
        differ = f'SELECT {", ".join(bits)} FROM "{table}" EXCEPT ALL SELECT {", ".join(bits)} FROM {file}'
        assert count(f"SELECT count(*) FROM ({differ})", views) == 0, table


def test_what_is_trusted_is_what_no_missing_record_touches(directory: Path) -> None:
    views = ft.connect(directory)
    marked = views.sql("SELECT table_name FROM duckdb_columns() WHERE schema_name = 'main' AND column_name = 'mark'")
    tables = [table for (table,) in marked.fetchall()]
    assert {"critical_sections", "lock_waits", "dispatch_latency"} <= set(tables)
    for table in tables:
        exact = count(f"SELECT count(*) FROM {table} WHERE mark = 'exact'", views)
        assert count(f"SELECT count(*) FROM trusted.{table}", views) == exact, table
    # The arguments are columns that the table of doubts has, too.
    for table in ["critical_sections", "sched_switch", "doubts"]:
        until = "t.ts" if table == "sched_switch" else "t.ts + t.dur"
        joined = f"SELECT t.ts FROM {table} t SEMI JOIN doubts d ON d.ts <= {until} AND d.ts + d.dur >= t.ts"
        expected = count(f"SELECT count(*) FROM ({joined})", views)
        asked = until.replace("t.", "")
        assert count(f"SELECT count(*) FROM {table} WHERE doubted(ts, {asked})", views) == expected, table


def test_who_had_each_cpu_and_all_of_a_thread_can_be_asked_for(directory: Path) -> None:
    views = ft.connect(directory)
    # Between its first and its last switch a CPU is always somebody's.
    ends = """SELECT cpu, max(ts) - min(ts) AS dur FROM sched_switch GROUP BY cpu HAVING count(*) > 1"""
    slices = "SELECT cpu, sum(dur)::BIGINT AS dur FROM cpu_slices GROUP BY cpu"
    assert count(f"SELECT count(*) FROM ({slices} EXCEPT {ends})", views) == 0
    spread = """SELECT coalesce(max(abs(a.ns - b.ns)), 0)::BIGINT FROM
        (SELECT cpu, tid, sum(share) * 1e6 AS ns FROM cpu_share(1_000_000) GROUP BY ALL) a
        JOIN (SELECT cpu, tid, sum(dur) AS ns FROM cpu_slices WHERE seen GROUP BY ALL) b USING (cpu, tid)"""
    assert count(spread, views) < 1000

    of_thread = {"user_events": "tid = {}", "sched_switch": "{} IN (prev_tid, next_tid)", "scopes": "tid = {}"}
    for (tid,) in views.sql("SELECT DISTINCT tid FROM threads").fetchall():
        for table, is_its in of_thread.items():
            rows = count(f"SELECT count(*) FROM {table} WHERE {is_its.format(tid)}", views)
            asked = f"FROM everything({tid}, -9e18::BIGINT, 9e18::BIGINT) WHERE kind = '{table}'"
            assert count(f"SELECT count(*) {asked}", views) == rows, (tid, table)
    # What is missing of all, or of all threads of its process, is missing of a thread.
    for tid, pid in views.sql("SELECT tid, max(pid) FROM threads GROUP BY tid").fetchall():
        is_its = f"coalesce(tid, {tid}) = {tid} AND coalesce(pid, {pid}) = {pid}"
        rows = count(f"SELECT count(*) FROM doubts WHERE {is_its}", views)
        asked = f"FROM everything({tid}, -9e18::BIGINT, 9e18::BIGINT) WHERE kind = 'doubts'"
        assert count(f"SELECT count(*) {asked}", views) >= rows, tid
    moment = "(SELECT quantile_disc(ts, 0.5) FROM user_events)"
    near = count(f"SELECT count(*) FROM user_events WHERE abs(ts - {moment}) <= 100_000", views)
    (at,) = views.sql(f"SELECT {moment}").fetchall()[0]
    found = f"SELECT count(*) FROM around({at}, 100_000) WHERE kind = 'user_events'"
    assert count(found, views) == near if at is not None else near == 0


def test_each_event_has_its_rows_and_arguments(directory: Path) -> None:
    views, trace = ft.connect(directory), ft.load(directory)
    all_events = 0
    for event in trace.events:
        mine = trace.event(event)
        # Not through a type of pandas that could round.
        rows = views.sql(f'SELECT * FROM event."{event}"').to_arrow_table()
        theirs = pd.DataFrame({name: pd.Series(rows.column(name).to_pylist(), dtype=object) for name in rows.column_names})
        all_events += len(theirs)
        assert len(mine) == len(theirs), event
        for column in mine.columns.intersection(theirs.columns):
            if column == "place":
                # Text in the view, the number that stands for it here.
                continue
            found, expected = values(theirs[column]), values(mine[column])
            assert sorted(map(str, found)) == sorted(map(str, expected)), (event, column)
    assert all_events == len(trace["user_events"]) > 0


def test_times_go_to_the_time_of_day_and_back(directory: Path) -> None:
    views, trace = ft.connect(directory), ft.load(directory)
    assert count("SELECT count(*) FROM threads WHERE mono(wall(ts)) <> ts", views) == 0
    start = trace.meta["start"]["start_ns"]
    [(rel, text, first)] = views.sql("SELECT rel(min(ts)), wall(min(ts))::VARCHAR, min(ts) FROM user_events").fetchall()
    assert rel == first - start
    # From a text, as one of a log; row groups are ruled out by it.
    assert count(f"SELECT count(*) FROM user_events WHERE ts = mono('{text}')", views) >= 1
    plan = "\n".join(str(row) for row in views.sql(f"EXPLAIN FROM user_events WHERE ts = mono('{text}')").fetchall())
    assert f"ts={first}" in plan.replace(" ", ""), plan


def test_arguments_have_their_types(converted: Callable[[str], Path]) -> None:
    views = ft.connect(converted("scenarios"))
    types = {
        name: kind
        for (event,) in views.sql("SELECT view_name FROM duckdb_views() WHERE schema_name = 'event'").fetchall()
        for name, kind, *_ in views.sql(f'DESCRIBE event."{event}"').fetchall()
    }
    assert {"UBIGINT", "BIGINT", "DOUBLE", "BOOLEAN", "VARCHAR"} <= set(types.values()), types


@pytest.mark.parametrize("recording", ["scenarios", "preload"])
def test_locks_and_places_of_events_are_those_of_the_holds(converted: Callable[[str], Path], recording: str) -> None:
    views = ft.connect(converted(recording))
    union = " UNION ALL BY NAME ".join(
        f'FROM event."{event}"'
        for (event,) in views.sql(
            "SELECT DISTINCT event FROM sites WHERE kind IN ('lock_acquire', 'cond_wake')"
        ).fetchall()
    )
    differ = f"""SELECT count(*) FROM critical_sections h LEFT JOIN ({union}) e USING (pid, tid, ts)
        WHERE h.lock IS DISTINCT FROM e.lock OR h.lock_name IS DISTINCT FROM e.lock_name
           OR h.place IS DISTINCT FROM e.place"""
    assert count("SELECT count(*) FROM critical_sections", views) > 100
    assert count(differ, views) == 0


def test_threads_have_their_names(directory: Path) -> None:
    views = ft.connect(directory)
    for table in ["user_events", "irq", "critical_sections", "sched_waking", "syscalls"]:
        wrong = f"""SELECT count(*) FROM "{table}" t
            LEFT JOIN read_parquet('{directory}/threads/*.parquet') n USING (pid, tid)
            WHERE t.comm IS DISTINCT FROM CASE t.tid WHEN 0 THEN 'idle' ELSE n.name END"""
        assert count(wrong, views) == 0, table


def test_a_trace_without_results_says_so(tmp_path: Path) -> None:
    trace = unpack("killed", tmp_path / "trace")
    agent("convert", trace)
    views = ft.connect(trace)
    assert count("SELECT count(*) FROM user_events", views) > 0
    with pytest.raises(duckdb.Error, match="not analysed: run `ft-agent analyze`"):
        views.sql("SELECT count(*) FROM critical_sections").fetchall()
    agent("analyze", trace)
    assert count("SELECT count(*) FROM critical_sections", ft.connect(trace)) > 0


def in_directory(directory: Path, script: str, before: str = "") -> str:
    """The number of holds by a DuckDB that was started in a directory and reads a script; or its error."""
    code = f"""import duckdb
c = duckdb.connect()
c.execute({before!r})
try:
    c.execute(open({script!r}).read())
    print(c.sql("SELECT count(*) FROM critical_sections").fetchall()[0][0])
except duckdb.Error as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=directory, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_views_find_their_trace_from_anywhere(converted: Callable[[str], Path], tmp_path: Path) -> None:
    first, second = converted("scenarios"), converted("preload")
    holds = [str(len(ft.load(trace)["critical_sections"])) for trace in (first, second)]
    assert holds[0] != holds[1]
    assert in_directory(first, "views.sql") == holds[0]
    assert in_directory(tmp_path, str(first / "views.sql")) == holds[0]
    # Not the one in which DuckDB was started.
    assert in_directory(second, str(first / "views.sql")) == holds[0]
    # One after the other, with the variable that leads to the first.
    assert in_directory(second, str(second / "views.sql"), f"SET VARIABLE trace = '{first}'") == holds[1]
    # Moved, to a name that is a pattern and needs quotes.
    moved = tmp_path / "it's [a] *? host=b"
    shutil.copytree(first, moved)
    first.rename(first.with_name("gone"))
    try:
        assert in_directory(moved, "views.sql") == holds[0]
        assert "SET VARIABLE trace" in in_directory(tmp_path, str(moved / "views.sql"))
        # As it is, and as a pattern.
        for path in (str(moved), glob.escape(str(moved))):
            said = f"SET VARIABLE trace = '{path.replace(chr(39), chr(39) * 2)}'"
            assert in_directory(tmp_path, str(moved / "views.sql"), said) == holds[0]
        assert len(ft.connect(moved).sql("FROM critical_sections").fetchall()) == int(holds[0])
        agent("analyze", moved)
        assert in_directory(tmp_path, str(moved / "views.sql")) == holds[0]
    finally:
        first.with_name("gone").rename(first)


def rename_events(trace: Path, names: list[str]) -> dict[str, int]:
    """Gives the sites of a trace other names, one after the other; returns how many events have which."""
    sites = trace / "sites/part-00000.parquet"
    table = pq.read_table(sites)
    chosen = {site: names[i % len(names)] for i, site in enumerate(table.column("site").to_pylist())}
    args = [
        ", ".join(f"{names[(i + j) % len(names)].replace(', ', ',')}:{a.rpartition(':')[2]}" for j, a in enumerate(args.split(", ")))
        if args
        else ""
        for i, args in enumerate(table.column("args").to_pylist())
    ]
    for column, values in (("event", chosen.values()), ("args", args)):
        at = table.schema.get_field_index(column)
        field = table.schema.field(column)
        table = table.set_column(at, field, pa.array(list(values), pa.string()).dictionary_encode().cast(field.type))
    pq.write_table(table, sites, compression="zstd")
    restated(trace)
    found = dict.fromkeys(names, 0)
    for site in pq.read_table(trace / "user_events", columns=["site"]).column("site").to_pylist():
        found[chosen[site]] += 1
    return found


def shell(directory: Path, *args: str) -> list[list[str]]:
    """What DuckDB's shell prints, which is of another version than its library."""
    program = Path(sys.executable).with_name("duckdb")
    done = subprocess.run([program, "-csv", *args], cwd=directory, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and "Error" not in done.stderr, done.stderr
    return [line.split(",") for line in done.stdout.splitlines()]


def test_the_shell_opens_a_trace_as_the_readme_says(converted: Callable[[str], Path], tmp_path: Path) -> None:
    trace = converted("scenarios")
    holds = [["count_star()"], [str(len(ft.load(trace)["critical_sections"]))]]
    question = "SELECT count(*) FROM critical_sections"
    assert shell(trace, "-init", "views.sql", "-c", question) == holds
    assert shell(tmp_path, "-c", f".read {trace}/views.sql", "-c", question) == holds


def test_hostile_names_stay_names(converted: Callable[[str], Path], tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    shutil.copytree(converted("scenarios"), trace)
    expected = rename_events(trace, HOSTILE)
    agent("analyze", trace)
    script = (trace / "views.sql").read_text()
    assert not any(c < " " and c != "\n" for c in script)
    assert not any(line.startswith(".") for line in script.splitlines())
    views = ft.connect(trace)
    events = views.sql("SELECT view_name FROM duckdb_views() WHERE schema_name = 'event'").fetchall()
    found = {name: count(f"SELECT count(*) FROM event.\"{name.replace(chr(34), chr(34) * 2)}\"", views) for (name,) in events}
    assert len(found) == len(HOSTILE)
    assert sorted(found.values()) == sorted(expected.values())
    same = set(HOSTILE) & set(found)
    assert len(same) >= 7 and all(found[name] == expected[name] for name in same)
    assert count("SELECT count(*) FROM threads", views) > 0
    # The shell reads line by line, and takes some for commands of its own.
    holds = count("SELECT count(*) FROM critical_sections", views)
    assert shell(trace, "-init", "views.sql", "-c", "SELECT count(*) FROM critical_sections") == [["count_star()"], [str(holds)]]
    assert not (trace / "harmed").exists()


def test_hive_directories_add_no_columns(converted: Callable[[str], Path], tmp_path: Path) -> None:
    trace = tmp_path / "host=a/date=2026-01-01/trace=b"
    shutil.copytree(converted("killed"), trace)
    columns = [row[0] for row in ft.connect(trace).sql("DESCRIBE threads").fetchall()]
    assert columns == ["ts", "tid", "pid", "name", "process", "prio", "observed"]
