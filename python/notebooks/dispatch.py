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
# # Dispatch under load
#
# A thread that is woken does not run yet: it waits until a CPU is free for it. How long, behind whom, and does it matter?
# Every wake-up of an observed thread is a row of `dispatch_latency`.

# %%
import os

import altair as alt
import numpy as np

import feather_trace as ft

TRACE = os.environ.get("FT_TRACE", "../../trace/demo")
trace, db = ft.load(TRACE), ft.connect(TRACE)

# %% [markdown]
# ## By thread
#
# A median of some microseconds is the cost of waking a CPU; what is above a millisecond is somebody else's time slice.

# %%
threads = db.sql("""
    SELECT comm AS thread, min(prio) AS prio, count(*) AS wakes, median(dur) / 1e3 AS p50_us,
           quantile_disc(dur, 0.99) / 1e3 AS p99_us, max(dur) / 1e6 AS max_ms,
           100 * count(*) FILTER (dur > 1e6) / count(*) AS above_1ms_pct, sum(dur) / 1e6 AS waited_ms
    FROM dispatch_latency GROUP BY ALL ORDER BY waited_ms DESC
""").df()
wakes = trace["dispatch_latency"]
assert len(wakes), f"{TRACE} has no wake-ups: record with the kernel group sched"
assert threads["wakes"].sum() == len(wakes)
threads.round(2)

# %% [markdown]
# ## The distribution
#
# Drawn from its upper end: how many wake-ups are later than so much. Threads of a higher priority should fall off early.

# %%
tails = []
for name, group in wakes.groupby("comm", observed=True):
    if len(group) >= 20:
        frame = ft.cdf(group["dur"], points=150).assign(thread=ft.legible(name))
        # The share that is at least so late.
        frame["later"] = 1 - (frame["count"] - frame["count"].diff().fillna(frame["count"])) / len(group)
        tails.append(frame.assign(us=frame["value"].clip(lower=1) / 1e3)[["us", "later", "thread"]])
ninety_nine = ft.cdf(wakes["dur"]).query("share >= 0.99")["value"].iloc[0]
assert ninety_nine == db.sql("SELECT quantile_disc(dur, 0.99) FROM dispatch_latency").fetchall()[0][0]

alt.layer(
    *(alt.Chart(frame).mark_line(interpolate="step-before") for frame in tails),
    title="Share of wake-ups that wait at least so long",
    width=520,
    height=260,
).encode(
    x=alt.X("us:Q", scale=alt.Scale(type="log"), title="µs from waking to running"),
    y=alt.Y("later:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~p"), title=None),
    color=alt.Color("thread:N", title=None, scale=alt.Scale(scheme="category10")),
)

# %% [markdown]
# ## Behind whom
#
# Who had the CPU longest while the thread waited: the sum of these times, by both of them. The diagonal would be a program
# that stands in its own way.

# %%
behind = db.sql("""
    SELECT comm AS thread, coalesce(running_comm, '(not known)') AS behind, count(*) AS wakes, sum(dur) / 1e6 AS waited_ms
    FROM dispatch_latency WHERE dur > 100_000 GROUP BY ALL ORDER BY waited_ms DESC
""").df()
assert behind["wakes"].sum() == (wakes["dur"] > 100_000).sum()
first = behind.groupby("behind")["waited_ms"].sum().nlargest(8).index
behind["behind"] = behind["behind"].where(behind["behind"].isin(first), "others")
behind = ft.shown(behind.groupby(["thread", "behind"], as_index=False)["waited_ms"].sum())

alt.Chart(behind, title="Wake-ups later than 100 µs: waited, by whom", width=520, height=alt.Step(24)).mark_bar().encode(
    x=alt.X("waited_ms:Q", title="ms"),
    y=alt.Y("thread:N", title=None, sort="-x"),
    color=alt.Color("behind:N", title="behind", sort=[*map(ft.legible, first), "others"], scale=alt.Scale(scheme="tableau10")),
    tooltip=["thread:N", "behind:N", alt.Tooltip("waited_ms:Q", format=",.2f")],
)

# %% [markdown]
# ## And the load
#
# How many threads want a CPU: the observed ones that can run, over the time of the trace, beside the latest wake-ups. It is
# a lower bound of the load: other programs want the same CPUs.

# %%
begin, end = int(wakes["ts"].min()), int((wakes["ts"] + wakes["dur"]).max())
edges = np.linspace(begin, end, 121)
wanted = np.zeros(120)
for tid in trace["thread_time"]["tid"].unique():
    line = ft.timeline(trace, int(tid))
    line = line[~line["part"].isin(["blocked", "unexplained"])]
    start, stop = line["ts"].to_numpy(), (line["ts"] + line["dur"]).to_numpy()
    # What of all intervals lies before a time; a bin has the difference of two.
    before = [np.minimum(stop, edge).clip(min=start).sum() - start.sum() for edge in edges]
    wanted += np.diff(before) / np.diff(edges)
load = alt.Data(values=[{"s": (at - begin) / 1e9, "threads": n} for at, n in zip(edges, wanted)])
cpus = trace.meta["start"]["cpus"]
assert 0 <= wanted.min() and wanted.max() <= trace["thread_time"]["tid"].nunique()

late = wakes.nlargest(1000, "dur").assign(s=lambda frame: (frame["ts"] - begin) / 1e9, ms=lambda frame: frame["dur"].clip(lower=1) / 1e6)
top = alt.Chart(load, title=f"Threads that want one of {cpus} CPUs", width=520, height=90).mark_area(interpolate="step-after", opacity=0.6)
top = top.encode(x=alt.X("s:Q", title=None), y=alt.Y("threads:Q", title=None, axis=alt.Axis(minExtent=40)))
dots = alt.Chart(ft.shown(late[["s", "ms", "comm", "running_comm"]]), title="The latest wake-ups", width=520, height=200).mark_circle(size=24)
dots = dots.encode(
    x=alt.X("s:Q", title="time, s"),
    y=alt.Y("ms:Q", scale=alt.Scale(type="log"), title="ms", axis=alt.Axis(minExtent=40)),
    color=alt.Color("comm:N", title=None, scale=alt.Scale(scheme="category10")),
    tooltip=["comm:N", "running_comm:N", "ms:Q"],
)
alt.vconcat(top, dots).resolve_scale(x="shared")
