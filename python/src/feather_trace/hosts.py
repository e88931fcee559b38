"""Events of several hosts, whose clocks are not one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from feather_trace.foreign import NotThere, legible
from feather_trace.trace import Trace

# What the kernel adds to a clock's error from one time that it is told of it to the next: 500 µs a second.
PPM = 500

COLUMNS = ["key", "begin_host", "begin_tid", "begin_ts", "end_host", "end_tid", "end_ts", "dur_ns", "error_ns", "order"]


def utc(trace: Trace, ts: pd.Series[int]) -> pd.DataFrame:
    """Times of a trace as `utc_ns`, and how far each can be off, `bound_ns`: null where the host's clock is not bounded there.

    By the samples of the clocks before each time, or the first ones (tables `clock` and `host_clock`). The bound has the kernel's
    maximum error, 500 ppm of the time to the sample of that, the width of the other sample, and the error of times within the trace.
    """
    clock = before(trace["clock"], ts)
    found = pd.DataFrame({"utc_ns": ts + clock["realtime_offset_ns"], "bound_ns": pd.Series(pd.NA, ts.index, dtype="Int64")})
    if "host_clock" in trace.tables and len(host_clock := trace["host_clock"]):
        host = before(host_clock, ts)
        away = (ts - host["ts"]).abs() * PPM // 1_000_000 + 1
        found["bound_ns"] = host["bound_ns"].astype("Int64") + away + clock["bracket_ns"] + clock["bound_ns"]
    return found


def before(samples: pd.DataFrame, ts: pd.Series[int]) -> pd.DataFrame:
    """For each time the last of these rows before it, or the first one."""
    at = np.maximum(np.searchsorted(samples["ts"], ts, side="right") - 1, 0)
    return samples.iloc[at].set_index(ts.index)


def across(traces: Iterable[Trace], begin: str, end: str, key: str) -> pd.DataFrame:
    """Requests that begin with one event and end with another of the same key, on whichever hosts.

    A row for each begin and the first end on each host that has that key: `key`; host, thread and time (of its host's trace) of
    both; `dur_ns` between them by the hosts' own clocks; `error_ns`, by which that can be off, the sum of both bounds, 0 on one host and
    null where a clock is not bounded; and `order`: `in order` or `reversed` where the difference is larger than the error, else
    `not known`. Keys must not come twice on a host: the first event counts.

    Raises `KeyError` when no trace has such an event, or one has no argument of that name.
    """
    traces = list(traces)
    begins, ends = (events(traces, name, key) for name in (begin, end))
    both = begins.merge(ends, on="key", suffixes=("_begin", "_end"))
    is_same = (both["host_begin"] == both["host_end"]) & (both["boot_begin"] == both["boot_end"])
    # On one host both have one clock, the one that stands in the trace.
    by_clock = (both["ts_end"] - both["ts_begin"]).astype("Int64")
    dur = by_clock.where(is_same, (both["utc_ns_end"] - both["utc_ns_begin"]).astype("Int64"))
    error = (both["bound_ns_begin"] + both["bound_ns_end"]).astype("Int64").mask(is_same, 0)
    is_known = error.notna() & (dur.abs() > error.fillna(0))
    order = np.where(is_known, np.where(dur > 0, "in order", "reversed"), "not known")
    sides = {f"{side}_{name}": both[f"{name}_{side}"] for side in ("begin", "end") for name in ("host", "tid", "ts")}
    found = pd.DataFrame({"key": both["key"], **sides, "dur_ns": dur, "error_ns": error, "order": order})
    return found[COLUMNS].sort_values(["begin_ts", "end_ts"], kind="stable", ignore_index=True)


def events(traces: list[Trace], name: str, key: str) -> pd.DataFrame:
    """The first event of a name for each key and host, with its time in UTC."""
    frames = []
    for trace in traces:
        if name not in trace.events:
            continue
        found = trace.event(name)
        if key not in found:
            raise NotThere(f"'{legible(name)}' of {legible(trace.directory)} has no argument '{legible(key)}'")
        found = found[["ts", "tid", key]].rename(columns={key: "key"}).dropna(subset="key")
        start = trace.meta["start"]
        frames.append(found.assign(host=start["host"], boot=start["boot_id"]).join(utc(trace, found["ts"])))
    if not frames:
        raise NotThere(f"no trace has an event '{legible(name)}'")
    return pd.concat(frames).sort_values("utc_ns", kind="stable").drop_duplicates(["key", "host", "boot"])
