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
# # A against B
#
# What became slower from one program to another? `FT_TRACE` and `FT_TRACE_B` name the traces of both, several with `:` between them.
# Two runs of one program differ, too: fewer than four recordings of each cannot tell whether the programs do, and then no difference
# is named. `ft-agent compare` makes the same test of more figures, and ends with a status for CI.

# %%
import os

import altair as alt
import pandas as pd

import feather_trace as ft

A = os.environ.get("FT_TRACE", "../../trace/a")
B = os.environ.get("FT_TRACE_B", "../../trace/b")
before, after = ([ft.load(directory) for directory in side.split(os.pathsep)] for side in (A, B))

# %% [markdown]
# ## Holds, per lock
#
# The median and the 99th percentile of the length of holds. `change` is what B has more, `low` to `high` its interval (95 % for all
# locks together), `marked` the rows that are not exact (losses), which are in the figures all the same.

# %%
tables = [ft.compare(before, after, quantile=q).assign(quantile=f"p{100 * q:g}") for q in (0.5, 0.99)]
holds = pd.concat(tables, ignore_index=True)
assert len(holds), f"no lock was held in {A} and in {B}: record a program with ft-user's locks, or any with --preload"
for row in holds.itertuples():
    assert not row.low > row.high
    assert row.change == row.b / row.a - 1
named = [trace["critical_sections"].loc[lambda h: h["lock_name"].isin(set(holds["lock_name"]))] for trace in before]
assert holds["count_a"].sum() == 2 * sum(map(len, named))
holds.round(3)

# %%
shown = holds.rename(columns={"lock_name": "lock"})
shown = ft.shown(shown[["lock", "quantile", "change", "low", "high", "verdict"]])
base = alt.Chart(shown).encode(y=alt.Y("lock:N", title=None))
interval = base.mark_rule(strokeWidth=3, opacity=0.5).encode(
    x=alt.X("low:Q", title="change from A to B", axis=alt.Axis(format="+%")), x2="high:Q", color=alt.Color("verdict:N", title=None)
)
point = base.mark_point(filled=True, size=60).encode(x="change:Q", color="verdict:N", tooltip=["lock:N", "change:Q", "low:Q", "high:Q"])
zero = alt.Chart().mark_rule(strokeDash=[4, 4]).encode(x=alt.datum(0))
alt.layer(zero, interval, point, data=shown).properties(width=260, height=alt.Step(28)).facet(
    column=alt.Column("quantile:N", title="Length of holds")
).resolve_scale(x="independent")

# %% [markdown]
# ## The whole distribution
#
# One quantile is one number. Where the curves cross, B is better for most holds and worse for the rest. A hold of 0 ns is drawn at 1 ns.

# %%
top = holds["lock_name"].iloc[0]
curves = []
for name, traces in (("A", before), ("B", after)):
    lengths = pd.concat([trace["critical_sections"].query("lock_name == @top")["dur"] for trace in traces])
    curves.append(ft.cdf(lengths, points=300).assign(trace=name, us=lambda frame: frame["value"].clip(lower=1) / 1e3))
    assert curves[-1]["count"].iloc[-1] == len(lengths)
alt.Chart(pd.concat(curves), title=f"Holds of '{ft.legible(top)}'", width=520, height=240).mark_line(interpolate="step-after").encode(
    x=alt.X("us:Q", scale=alt.Scale(type="log"), title="length, µs"),
    y=alt.Y("share:Q", axis=alt.Axis(format="%"), title=None),
    color=alt.Color("trace:N", title=None),
)

# %% [markdown]
# ## Where the time of each thread went
#
# Of one second of a thread's life, how much more was it preempted, blocked, …? Threads are matched by their names.

# %%
shares = []
for name, traces in (("A", before), ("B", after)):
    times = pd.concat([trace["thread_time"].assign(trace=number) for number, trace in enumerate(traces)])
    thread = ["trace", "pid", "tid"]
    assert times.groupby(thread)["spent_ns"].sum().eq(times.groupby(thread)["wall_ns"].first()).all(), "it balances"
    wall = times.drop_duplicates(thread).groupby("comm", observed=True)["wall_ns"].sum()
    spent = times.groupby(["comm", "part"], observed=True)["spent_ns"].sum()
    shares.append((spent / wall).rename(name))
change = pd.concat(shares, axis=1).fillna(0).reset_index().rename(columns={"comm": "thread"})
change["more"] = change["B"] - change["A"]
assert abs(change.groupby("thread")[["A", "B"]].sum().replace(0, 1) - 1).max().max() < 1e-9

alt.Chart(ft.shown(change), title="Share of a thread's time that went elsewhere in B", width=520, height=alt.Step(24)).mark_bar().encode(
    x=alt.X("more:Q", title="B − A", axis=alt.Axis(format="+%")),
    y=alt.Y("thread:N", title=None),
    color=alt.Color("part:N", scale=alt.Scale(domain=list(ft.PARTS), scheme="tableau10"), title=None),
    tooltip=["thread:N", "part:N", alt.Tooltip("A:Q", format=".2%"), alt.Tooltip("B:Q", format=".2%")],
)
