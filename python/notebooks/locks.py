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
# # The locks of a program
#
# Which locks does a program hold and wait for, and where does the time of their holders go? Every hold and every wait of
# the trace is a row, whose parts (*running*, *preempted*, *blocked*, …) sum to its length, to the nanosecond.

# %%
import os

import altair as alt

import feather_trace as ft

TRACE = os.environ.get("FT_TRACE", "../../trace/demo")
trace, db = ft.load(TRACE), ft.connect(TRACE)
" ".join(trace.meta["start"]["command"]), trace.meta["start"]["host"], trace.meta["lost"] or "no loss reported"

# %% [markdown]
# ## Held, and waited for
#
# The views of the trace have names in place of numbers, so a question is a line of SQL. Half of the time that a lock is
# held can be a single hold: look at the sum beside the median.

# %%
locks = db.sql("""
    SELECT lock_name AS lock, count(*) AS holds, sum(dur) / 1e6 AS held_ms,
           median(dur) / 1e3 AS p50_us, quantile_disc(dur, 0.99) / 1e3 AS p99_us, max(dur) / 1e6 AS max_ms,
           100 * sum(preempted_ns) / sum(dur) AS preempted_pct, mode(preemptor_comm) AS usual_preemptor,
           waits, waited_ms
    FROM critical_sections
    LEFT JOIN (SELECT lock_name, count(*) AS waits, sum(dur) / 1e6 AS waited_ms FROM lock_waits GROUP BY ALL)
        USING (lock_name)
    GROUP BY lock_name, waits, waited_ms ORDER BY held_ms DESC
""").df()
locks.round(2)

# %%
holds, waits = trace["critical_sections"], trace["lock_waits"]
assert len(holds), f"{TRACE} has no holds of locks: record a program with ft-user's locks, or any with --preload"
assert locks["holds"].sum() == len(holds) and locks["waits"].sum() == len(waits)

# %% [markdown]
# ## What the holders did
#
# Time in which a holder runs is the program's own. Time in which it is *preempted*, or waits for a CPU (*dispatch*), is the
# scheduler's: whoever waits for the lock then waits for a thread that has nothing to do with it.

# %%
parts = [f"{part}_ns" for part in ft.PARTS]
known = holds.dropna(subset=parts)
assert (known[parts].sum(axis=1) == known["dur"]).all(), "the parts of a hold sum to its length"

spent = known.groupby("lock_name", observed=True)[parts].sum().rename(columns=lambda name: name.removesuffix("_ns"))
spent = spent.astype(float).rename_axis(columns="part").stack().rename("ns").reset_index()
order = {part: i for i, part in enumerate(ft.PARTS)}
spent = spent[spent["ns"] > 0].assign(ms=lambda frame: frame["ns"] / 1e6, order=lambda frame: frame["part"].map(order))

COLORS = alt.Scale(domain=list(ft.PARTS), scheme="tableau10")
alt.Chart(ft.shown(spent), title="Held time by what the holder did", width=520, height=alt.Step(26)).mark_bar().encode(
    x=alt.X("ms:Q", title="held, ms"),
    y=alt.Y("lock_name:N", title=None, sort="-x"),
    color=alt.Color("part:N", scale=COLORS, title=None),
    order="order:Q",
    tooltip=["lock_name:N", "part:N", alt.Tooltip("ms:Q", format=",.3f")],
)

# %% [markdown]
# ## How long holds are
#
# Lengths span many powers of ten. Where a curve has a second step far to the right, its holders lose their CPU. A hold of 0 ns, whose
# begin and end the clock cannot tell apart, is drawn at 1 ns.

# %%
lengths = [
    ft.cdf(group["dur"], points=150).assign(lock=ft.legible(name), us=lambda frame: frame["value"].clip(lower=1) / 1e3)
    for name, group in holds.groupby("lock_name", observed=True)
]
assert all(frame["share"].iloc[-1] == 1 for frame in lengths)

alt.layer(
    *(alt.Chart(frame).mark_line(interpolate="step-after") for frame in lengths),
    title="Share of holds that are at most so long",
    width=520,
    height=260,
).encode(
    x=alt.X("us:Q", scale=alt.Scale(type="log"), title="length, µs"),
    y=alt.Y("share:Q", axis=alt.Axis(format="%"), title=None),
    color=alt.Color("lock:N", title=None, scale=alt.Scale(scheme="category10")),
)

# %% [markdown]
# ## Who waits for what
#
# One cell for each thread and lock: the time that the thread waited for it, and by whom that was caused most.

# %%
matrix = db.sql("""
    SELECT comm AS thread, lock_name AS lock, sum(dur) / 1e6 AS waited_ms, count(*) AS waits, mode(root_comm) AS because_of
    FROM lock_waits GROUP BY ALL
""").df()
assert matrix["waits"].sum() == len(waits)

cells = alt.Chart(ft.shown(matrix), title="Waits for locks, ms", width=alt.Step(80), height=alt.Step(30)).encode(
    x=alt.X("lock:N", title=None, axis=alt.Axis(labelAngle=0)), y=alt.Y("thread:N", title=None)
)
heat = cells.mark_rect().encode(color=alt.Color("waited_ms:Q", scale=alt.Scale(scheme="oranges"), title="ms"))
heat + cells.mark_text().encode(text=alt.Text("waited_ms:Q", format=",.1f"), tooltip=["because_of:N", "waits:Q"])

# %% [markdown]
# ## When
#
# The longest holds over the time of the trace: bursts have a common cause, and `worst_case.py` looks into one of them.

# %%
longest = holds.nlargest(1000, "dur").copy()
longest["s"] = (longest["ts"] - holds["ts"].min()) / 1e9
longest["ms"] = longest["dur"].clip(lower=1) / 1e6
assert longest["dur"].iloc[0] == holds["dur"].max()

alt.Chart(
    ft.shown(longest[["s", "ms", "lock_name", "comm", "preemptor_comm", "place"]]),
    title="The longest holds",
    width=520,
    height=220,
).mark_circle(size=28).encode(
    x=alt.X("s:Q", title="time, s"),
    y=alt.Y("ms:Q", scale=alt.Scale(type="log"), title="length, ms"),
    color=alt.Color("lock_name:N", title=None, scale=alt.Scale(scheme="category10")),
    tooltip=["lock_name:N", "comm:N", "place:N", "preemptor_comm:N", "ms:Q"],
)
