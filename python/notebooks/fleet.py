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
# # Many hosts
#
# Which locks are the worst of a fleet, which hosts differ, is the new build slower, and what do the kernel, the neighbour and the
# hour have to do with it. The traces are those of a catalogue, which each host fills, and somebody has analysed:
#
# ```sh
# ft-agent record -d 10s -p 4711 --to /srv/traces --label build=1.4
# ft-agent analyze /srv/traces
# ```
#
# `FT_STORE` names the catalogue, and `FT_LABEL` the label whose values are compared. A question of one host or day opens
# the files of that host or day alone; and what has no row in the catalogue is no trace, so nothing that is being brought
# or removed is in any answer.

# %%
import json
import os
import subprocess

import altair as alt
import numpy as np
import pandas as pd

import feather_trace as ft

STORE = os.environ.get("FT_STORE", "/srv/traces")
AGENT = os.environ.get("FT_AGENT", "ft-agent")
LABEL = os.environ.get("FT_LABEL", "build")
db = ft.fleet(STORE)
db.execute("SET VARIABLE label = $1", [LABEL])
db.execute("""
    CREATE TEMP TABLE fleet AS
    SELECT trace, host, kernel, program, build_id, coalesce(labels->>getvariable('label'), '(none)') AS label,
           make_timestamp(start_ns // 1000) AS begin_utc, clock, clock_bound_ns, events, lost FROM traces()
""")
db.execute("""
    CREATE MACRO holds() AS TABLE
    SELECT h.* EXCLUDE (host), f.*, CASE WHEN h.name SIMILAR TO '0x[0-9a-f]+' THEN '(unnamed)' ELSE h.name END AS lock
    FROM histograms() AS h JOIN fleet AS f USING (trace) WHERE quantity = 'hold'
""")
traces = db.sql("FROM fleet ORDER BY begin_utc").df()
assert traces["trace"].is_unique
db.sql("FROM fleet SELECT host, label, count(*) AS traces, min(begin_utc) AS first, max(begin_utc) AS last, sum(lost) AS lost GROUP BY ALL ORDER BY ALL").df()

# %% [markdown]
# ## Which locks?
#
# Percentiles of several traces cannot be made of those of each, but the rows of `histograms` can be added: a percentile is then never too
# low and at most 1/32 too high. Beside it stands which share of the holds has an exact length; the rest are at least as long as they are
# told, for records of them are missing or the tracer was in their way.


# %%
def by(what: str) -> pd.DataFrame:
    """Holds of all traces by an expression over the columns of `histograms` and of the fleet, those with the most time first."""
    return db.sql(f"""
        SELECT {what} AS what, CAST(sum(count) AS BIGINT) AS holds, count(DISTINCT host) AS hosts, sum(exact) / sum(count) AS exact,
               sum(sum_ns) / 1e9 AS held_s, percentile_ns(array_agg(bucket(to_ns, count, max_ns)), 50) / 1e3 AS p50_us,
               percentile_ns(array_agg(bucket(to_ns, count, max_ns)), 99) / 1e3 AS p99_us, max(max_ns) / 1e3 AS max_us
        FROM holds() GROUP BY ALL ORDER BY held_s DESC, what
    """).df()


def drawn(found: pd.DataFrame, title: str) -> alt.LayerChart:
    """Median, 99th percentile and the longest of each line."""
    found = ft.shown(found.head(20))
    lengths = ["p50_us", "p99_us", "max_us"]
    # No length has no place on a scale of powers of ten.
    found[lengths] = found[lengths].clip(lower=1e-3)
    base = alt.Chart(found, title=title, width=460, height=alt.Step(22)).encode(
        y=alt.Y("what:N", title=None, sort=list(found["what"]), axis=alt.Axis(labelLimit=260)),
        tooltip=["what:N", "holds:Q", "hosts:Q", alt.Tooltip("exact:Q", format=".1%"), "p50_us:Q", "p99_us:Q", "max_us:Q"],
    )
    scale = alt.Scale(type="log")
    span = base.mark_rule().encode(x=alt.X("p50_us:Q", title="median to 99th percentile, and the longest, µs", scale=scale), x2="p99_us:Q")
    tail = base.mark_circle(opacity=1).encode(x=alt.X("p99_us:Q", scale=scale), color=alt.Color("exact:Q", scale=alt.Scale(domain=[0, 1]), title="exact"))
    return span + tail + base.mark_tick(thickness=2).encode(x=alt.X("max_us:Q", scale=scale))


locks = by("lock")
rows = db.sql("SELECT count(*), max(dur), sum(dur) FROM every('critical_sections')").fetchall()[0]
assert (locks["holds"].sum(), locks["max_us"].max()) == (rows[0], rows[1] / 1e3)
assert abs(locks["held_s"].sum() - rows[2] / 1e9) < 1e-6 * locks["held_s"].sum()
drawn(locks, "Holds of all hosts, the locks with the most time first")

# %% [markdown]
# ## Which hosts differ?
#
# `ft-agent fleet` asks that of every lock and every host at once, so that a fleet without a difference shows one in 5 of 100 cases and not in
# each: traces are dealt out to hosts anew 2,000 times, and a host differs when it stands further off than the furthest of 95 % of the dealings.


# %%
def asked(*options: str) -> dict:
    """What `ft-agent fleet` says of this catalogue: the values of its head and its sections."""
    done = subprocess.run([AGENT, "fleet", STORE, *options, "--json"], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    return {"head": said["trace"], **{name: section["values"] for name, section in said["sections"].items()}}


fleet = asked()
# Of the same traces.
assert fleet["head"]["sum_ns"] == rows[2]
differing = pd.DataFrame(fleet["hosts"], columns=["host", "name", "place", "change", "p", "mark"])
# The lock to look at: the one of the least likely difference, or the one with the most time.
looked_at = differing.iloc[0] if len(differing) else pd.Series(fleet["worst"][0])
lock, place = looked_at["name"], looked_at.get("place", "")
db.execute("SET VARIABLE lock = $1", [lock])
db.execute("SET VARIABLE place = $1", [place if isinstance(place, str) else ""])
means = db.sql("""
    SELECT host, trace, label, sum(sum_ns) / sum(count) / 1e3 AS mean_us, sum(exact) / sum(count) AS exact
    FROM holds() WHERE lock = getvariable('lock') AND place = getvariable('place') GROUP BY ALL ORDER BY host, trace
""").df()
assert len(means)
if len(differing):
    logs, of_host = np.log(means["mean_us"]), means["host"] == looked_at["host"]
    assert np.isclose(np.expm1(logs[of_host].mean() - logs[~of_host].mean()), looked_at["change"])

alt.Chart(ft.shown(means), title=f"Mean hold of '{ft.legible(lock)}', each trace", width=460, height=alt.Step(30)).mark_circle(size=70).encode(
    x=alt.X("mean_us:Q", title="µs", scale=alt.Scale(type="log")),
    y=alt.Y("host:N", title=None),
    color=alt.Color("label:N", title=LABEL),
    tooltip=["trace:N", "label:N", "mean_us:Q", alt.Tooltip("exact:Q", format=".1%")],
)

# %%
differing

# %% [markdown]
# ## Is the new build slower, and how sure is that?
#
# Of two values of the label, B against A: on each host that has both, because hosts differ more than builds do. The mean of the hosts'
# differences (of logarithms) has random effects over the hosts, and the interval holds in 95 of 100 cases for one line; `p` is adjusted for all lines.

# %%
values = sorted(set(traces["label"]) - {"(none)"})[:2]
compared = pd.DataFrame(columns=["name", "place", "what", "hosts", "change", "interval", "p", "differs", "mark"])
if len(values) == 2:
    compared = pd.DataFrame(asked("--compare", f"{LABEL}={','.join(values)}")["compared"], columns=compared.columns)
    low, high = compared["interval"].str[0], compared["interval"].str[1]
    assert ((low <= compared["change"]) & (compared["change"] <= high)).all()
    assert (compared["differs"] == (compared["p"] <= 0.05)).all()
    line = compared["what"] + " of " + compared["name"] + " " + compared["place"]
    compared = compared.assign(line=line, low=1 + low, high=1 + high, times=1 + compared["change"])

shown = ft.shown(compared.head(15).drop(columns="interval"))
lines = alt.Chart(shown, title=f"{ft.legible(' against '.join(reversed(values)))}: how many times as long holds are", width=460, height=alt.Step(22)).encode(
    y=alt.Y("line:N", title=None, sort=None, axis=alt.Axis(labelLimit=260)),
    color=alt.Color("differs:N", scale=alt.Scale(domain=[True, False], range=["#c0392b", "#999999"])),
    tooltip=["line:N", "hosts:Q", "times:Q", "low:Q", "high:Q", "p:Q", "mark:N"],
)
interval = lines.mark_rule().encode(x=alt.X("low:Q", title="times as long", scale=alt.Scale(type="log")), x2="high:Q")
interval + lines.mark_circle(size=60, opacity=1).encode(x="times:Q")

# %% [markdown]
# ## By the kernel, the neighbour, the hour?
#
# The same holds, by what the row of their trace says, or by who had the CPU longest when the holder was preempted. What the hosts of one
# kernel have in common besides it is in its line, too: this is where to look, and not yet the reason.

# %%
kernels = by("kernel")
assert kernels["holds"].sum() == locks["holds"].sum()
drawn(kernels, "By release of the kernel")

# %%
neighbours = by("CASE neighbour WHEN '' THEN '(nobody, or not known)' ELSE neighbour END")
assert neighbours["holds"].sum() == locks["holds"].sum()
drawn(neighbours, "By who preempted the holder longest")

# %%
hours = by("strftime(begin_utc, '%H:00')").sort_values("what")
assert hours["holds"].sum() == locks["holds"].sum()
drawn(hours, "By the hour (UTC) at which the trace began")

# %% [markdown]
# ## How far can it be believed?
#
# What was lost, how many lengths are exact, and how far each host's clock could be off: null where nobody keeps it synchronised, and then no
# event of that host has an order among those of other hosts.

# %%
marks = db.sql("SELECT host, mark, CAST(sum(count) AS BIGINT) AS holds FROM holds() GROUP BY ALL ORDER BY ALL").df()
assert marks["holds"].sum() == rows[0]
assert marks.loc[marks["mark"] == "exact", "holds"].sum() == round((locks["exact"] * locks["holds"]).sum())
believed = marks.pivot(index="host", columns="mark", values="holds").fillna(0).astype(int)
clocks = db.sql("FROM fleet SELECT host, sum(lost) AS lost, max(clock_bound_ns) / 1e3 AS clock_bound_us, list(DISTINCT clock) AS clock GROUP BY ALL ORDER BY ALL").df()
believed.join(clocks.set_index("host"), how="outer"), fleet["head"]["not_read"]
