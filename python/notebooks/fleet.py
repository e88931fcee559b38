# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Many traces at once
#
# The same question of all traces of a fleet. They lie as every engine that reads Parquet prunes by, each in a directory that
# says where and when it was recorded:
#
# ```sh
# ft-agent record -o "store/host=$(hostname)/date=$(date -I)/trace=$(date +%H%M%S)" -- CMD
# ```
#
# A question of one host, or of last week, then opens the files of that host, or of that week, and no other. There is nothing
# to import and no server: the directory is the database.

# %%
import os

import altair as alt
import duckdb

import feather_trace as ft

STORE = os.environ.get("FT_STORE", "../../store")
db = duckdb.connect()
db.execute("SET VARIABLE store = $1", [STORE])
db.execute("""
    CREATE MACRO every(name) AS TABLE
    SELECT * FROM read_parquet(getvariable('store') || '/host=*/date=*/trace=*/' || name || '/*.parquet',
                               hive_partitioning = true, hive_types_autocast = false, union_by_name = true)
""")
db.sql("FROM every('critical_sections') SELECT host, date, count(DISTINCT trace) AS traces, count(*) AS holds GROUP BY ALL ORDER BY ALL")

# %% [markdown]
# ## Which traces stand out?
#
# The 99th percentile of holds, per lock and trace. Names of locks and places stay the same from trace to trace, where numbers
# of processes and addresses of locks do not.

# %%
p99 = db.sql("""
    SELECT host || ' ' || date || ' ' || trace AS trace, lock_name AS lock, count(*) AS holds,
           quantile_disc(dur, 0.99) / 1e3 AS p99_us, 100 * sum(preempted_ns) / sum(dur) AS preempted_pct
    FROM every('critical_sections') GROUP BY ALL ORDER BY ALL
""").df()
traces = sorted(os.path.dirname(path) for path, in db.execute("SELECT file FROM glob(getvariable('store') || '/host=*/date=*/trace=*/meta.json')").fetchall())
assert p99["trace"].nunique() == len(traces)
assert p99["holds"].sum() == sum(len(ft.load(trace)["critical_sections"]) for trace in traces)

cells = alt.Chart(p99, title="99th percentile of holds, µs", width=alt.Step(80), height=alt.Step(34)).encode(
    x=alt.X("lock:N", title=None, axis=alt.Axis(labelAngle=0)), y=alt.Y("trace:N", title=None, axis=alt.Axis(labelLimit=260))
)
heat = cells.mark_rect().encode(color=alt.Color("p99_us:Q", scale=alt.Scale(type="log", scheme="oranges"), title="µs"))
heat + cells.mark_text().encode(text=alt.Text("p99_us:Q", format=",.1f"))

# %% [markdown]
# ## Under which neighbour?
#
# Percentiles of several traces cannot be made of those of each, but histograms can be added: `ft.percentile_sql` is the query, and its
# percentiles are at most 1/32 too high. The neighbour of a hold is who had the CPU longest when the holder was preempted.

# %%
merged = db.sql(ft.percentile_sql("every('histograms')", ["host", "neighbour"], where="quantity = 'hold'")).df()
assert merged["count"].sum() == p99["holds"].sum()
longest = db.sql("FROM every('critical_sections') SELECT max(dur)").fetchall()[0][0]
assert merged["max_ns"].max() == longest

beside = merged.assign(p99_us=merged["p99_ns"] / 1e3, neighbour=merged["neighbour"].replace("", "(not preempted)"))
alt.Chart(beside.head(15), title="99th percentile of holds by who preempted them", width=460, height=alt.Step(22)).mark_bar().encode(
    x=alt.X("p99_us:Q", title="µs", scale=alt.Scale(type="symlog")),
    y=alt.Y("neighbour:N", title=None, sort="-x", axis=alt.Axis(labelLimit=260)),
    tooltip=["host:N", "neighbour:N", "count:Q", "p50_ns:Q", "p99_ns:Q", "max_ns:Q", "exact:Q"],
)

# %% [markdown]
# ## Whose fault?
#
# All the time of all threads, in all traces: what is not *running* has a culprit.

# %%
culprits = db.sql("""
    SELECT part, coalesce(culprit, '') AS culprit, count(DISTINCT trace) AS traces, sum(spent_ns) / 1e9 AS s
    FROM every('thread_time') WHERE part NOT IN ('running', 'unexplained') GROUP BY ALL ORDER BY s DESC LIMIT 15
""").df()
total = sum(ft.load(trace)["thread_time"].query("part not in ['running', 'unexplained']")["spent_ns"].sum() for trace in traces)
assert 0 < culprits["s"].sum() * 1e9 <= total * 1.000001

culprits["what"] = culprits["part"] + ": " + culprits["culprit"]
alt.Chart(culprits, title="What threads waited for, most first", width=460, height=alt.Step(22)).mark_bar().encode(
    x=alt.X("s:Q", title="s"),
    y=alt.Y("what:N", title=None, sort=None, axis=alt.Axis(labelLimit=260)),
    color=alt.Color("part:N", scale=alt.Scale(domain=list(ft.PARTS), scheme="tableau10"), title=None),
    tooltip=["what:N", "traces:Q", "s:Q"],
)

# %% [markdown]
# ## How far can it be believed?
#
# What was lost, where, and how many of the rows above it touches. A trace with losses has lower bounds, and says so in each
# row: they can be left out (`WHERE mark = 'exact'`) or counted.

# %%
marks = db.sql("FROM every('critical_sections') SELECT trace, mark, count(*) AS rows GROUP BY ALL ORDER BY ALL").df()
lost = db.sql("FROM every('loss') SELECT trace, origin, sum(count) AS lost GROUP BY ALL ORDER BY ALL").df()
assert marks["rows"].sum() == p99["holds"].sum()
marks.pivot(index="trace", columns="mark", values="rows").fillna(0).astype(int), lost
