"""Traces of Feather-Trace in pandas.

`load` opens a trace; `timeline`, `cdf` and `compare` answer what people ask most; `connect` opens it in DuckDB, and `fleet`
all traces of a catalogue; `percentile_sql` asks for percentiles of many traces at once, and `across` for requests that cross hosts. Times are CLOCK_MONOTONIC in nanoseconds, as everywhere in a trace.
Names in data frames are those of the trace, whoever made it: `legible` and `shown` make them such that a terminal or a page obeys none.
"""

from feather_trace.comparison import compare
from feather_trace.distribution import cdf
from feather_trace.foreign import legible, shown
from feather_trace.histograms import percentile_sql
from feather_trace.hosts import across
from feather_trace.sql import connect, fleet
from feather_trace.timelines import PARTS, parts, timeline
from feather_trace.trace import Trace, load

__all__ = ["PARTS", "Trace", "across", "cdf", "compare", "connect", "fleet", "legible", "load", "parts", "percentile_sql", "shown", "timeline"]
