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
# # One worst case, step by step
#
# The longest hold of a trace: what did its holder do meanwhile, who had its CPU, and who waited for it? Each step asks one
# question of the tables; the last one adds up what it cost.

# %%
import os

import altair as alt
import pandas as pd

import feather_trace as ft

TRACE = os.environ.get("FT_TRACE", "../../trace/demo")
trace, db = ft.load(TRACE), ft.connect(TRACE)

# %% [markdown]
# ## 1. Which hold?

# %%
holds = trace["critical_sections"]
assert len(holds), f"{TRACE} has no holds of locks: record a program with ft-user's locks, or any with --preload"
worst = holds.loc[holds["dur"].idxmax()]
begin, end = int(worst["ts"]), int(worst["ts"] + worst["dur"])
print(
    f"'{ft.legible(worst['comm'])}' held '{ft.legible(worst['lock_name'])}' for {worst['dur'] / 1e6:.3f} ms "
    f"from {ft.legible(worst['place'])} on, "
    f"{worst['dur'] / holds.loc[holds['lock_name'] == worst['lock_name'], 'dur'].median():,.0f} times the median ({worst['mark']})"
)
worst.to_frame("longest hold")

# %% [markdown]
# ## 2. What did the holder do?
#
# The timeline of the thread, made of the raw records of the scheduler, cut to the hold. Its sums are those of the row: two
# ways, one in this package and one in the agent, that have nothing in common but the records.

# %%
line = ft.timeline(trace, int(worst["tid"]))
mine = ft.parts(line, begin, end)
stated = worst[[f"{part}_ns" for part in ft.PARTS]].rename(lambda name: name.removesuffix("_ns"))
during = line[(line["ts"] < end) & (line["ts"] + line["dur"] > begin)].copy()
assert mine.sum() == worst["dur"]
exact = worst["mark"] == "exact" and (during["mark"] == "exact").all()
assert not exact or (mine == stated).all()
pd.DataFrame({"timeline_ns": mine, "stated_ns": stated, "share": mine / worst["dur"]})

# %%
during["from"] = (during["ts"].clip(lower=begin) - begin) / 1e6
during["to"] = ((during["ts"] + during["dur"]).clip(upper=end) - begin) / 1e6
during["row"] = worst["comm"]
assert abs((during["to"] - during["from"]).sum() * 1e6 - worst["dur"]) < 1

COLORS = alt.Scale(domain=list(ft.PARTS), scheme="tableau10")
AXIS = alt.X("from:Q", title="ms since the lock was acquired", scale=alt.Scale(nice=False))
longest = ft.shown(during.nlargest(2000, "dur")[["from", "to", "row", "part", "by", "cpu"]])
alt.Chart(longest, title="The holder", width=620, height=40).mark_bar(height=22).encode(
    x=AXIS, x2="to:Q", y=alt.Y("row:N", title=None), color=alt.Color("part:N", scale=COLORS, title=None), tooltip=["part:N", "by:N", "cpu:N"]
)

# %% [markdown]
# ## 3. Who had its CPU?
#
# While a thread is preempted or waits to be dispatched, somebody else runs where it ran. The switches of that CPU say who.

# %%
off = during[during["part"].isin(["preempted", "dispatch"])]
cpu = int(off.loc[off["dur"].idxmax(), "cpu"]) if len(off) else int(during["cpu"].iloc[0])
ran = db.execute("""
    SELECT next_comm AS thread, greatest(ts, $begin) AS ts, least(until, $end) AS until
    FROM (SELECT *, lead(ts, 1, $end) OVER (ORDER BY ts) AS until FROM sched_switch WHERE cpu = $cpu)
    WHERE until > $begin AND ts < $end ORDER BY ts
""", {"cpu": cpu, "begin": begin, "end": end}).df()
ran["ns"] = ran["until"] - ran["ts"]
assert ran["ns"].sum() <= worst["dur"]
ran.groupby("thread")["ns"].agg(["count", "sum"]).sort_values("sum", ascending=False).head(8)

# %% [markdown]
# ## 4. Who waited for the lock?
#
# All threads that waited for it meanwhile, beside the holder.

# %%
waits = db.execute("""
    SELECT comm AS row, 'waits' AS part, ts, dur, mark FROM lock_waits
    WHERE pid = $pid AND lock = $lock AND ts < $end AND ts + dur > $begin
    UNION ALL SELECT comm, 'waits', ts, dur, 'censored' FROM unfinished_waits
    WHERE pid = $pid AND lock = $lock AND ts < $end AND ts + dur > $begin
""", {"pid": int(worst["pid"]), "lock": int(worst["lock"]), "begin": begin, "end": end}).df()
waits["from"] = (waits["ts"].clip(lower=begin) - begin) / 1e6
waits["to"] = ((waits["ts"] + waits["dur"]).clip(upper=end) - begin) / 1e6
most = ran.groupby("thread")["ns"].sum().nlargest(7).index
others = ran.assign(row=f"CPU {cpu}", part=ran["thread"].where(ran["thread"].isin(most), "others"))
others["from"], others["to"] = (others["ts"] - begin) / 1e6, (others["until"] - begin) / 1e6
rows = [ft.legible(row) for row in (worst["comm"], f"CPU {cpu}", *sorted(set(waits["row"]) - {worst["comm"]}))]
waits, others = ft.shown(waits), ft.shown(others)
scene = pd.concat([longest.assign(who="holder"), waits.assign(who="waits"), others.nlargest(2000, "ns").assign(who="CPU")])
scene = scene[["row", "from", "to", "part", "who"]]

base = alt.Chart(width=620, height=alt.Step(30)).encode(
    x=AXIS, x2="to:Q", y=alt.Y("row:N", title=None, sort=rows, scale=alt.Scale(domain=rows)), tooltip=["row:N", "part:N"]
)
holder = base.mark_bar(height=20).encode(color=alt.Color("part:N", scale=COLORS, title="holder"))
cpus = base.mark_bar(height=20, stroke="white", strokeWidth=0.5).encode(
    color=alt.Color("part:N", title="on its CPU", scale=alt.Scale(scheme="set2"), legend=alt.Legend(columns=2))
)
waiting = base.mark_bar(height=8, color="firebrick")
alt.layer(
    *(chart.properties(data=scene[scene["who"] == who]) for chart, who in ((holder, "holder"), (cpus, "CPU"), (waiting, "waits"))),
    title=f"'{ft.legible(worst['lock_name'])}': its holder, who had the holder's CPU, and who waited (red)",
).resolve_scale(color="independent")

# %% [markdown]
# ## 5. What did it cost?
#
# The time in which the holder had no CPU, and what threads waited meanwhile: with a grant of so much more time, the holder
# would have released the lock before it lost its CPU.

# %%
cost = db.execute("""
    SELECT cause, nth, dur / 1e6 AS ms, preemptor_comm AS behind, waiters, delayed_ns / 1e6 AS delayed_ms, ran_after_ns / 1e3 AS grant_us
    FROM lock_preemptions WHERE tid = $tid AND lock = $lock AND ts >= $begin AND ts < $end ORDER BY ts
""", {"tid": int(worst["tid"]), "lock": int(worst["lock"]), "begin": begin, "end": end}).df()
without = mine["preempted"] + mine["dispatch"]
assert not exact or abs(cost["ms"].sum() * 1e6 - without) <= 1
times = "1 time" if len(cost) == 1 else f"{len(cost)} times"
print(
    f"{without / worst['dur']:.1%} of the hold without a CPU, in {times}; "
    f"others waited {(waits['to'] - waits['from']).sum():.2f} ms for it"
)
cost.round(3)
