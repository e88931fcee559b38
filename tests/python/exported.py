"""What the judges of exports share: the tables of the trace, the window, and how what was found is compared with them."""

import json
import sys
import unicodedata
from collections import Counter

import duckdb

TRACE, EXPORT = sys.argv[1:3]
META = json.load(open(f"{TRACE}/meta.json"))
EVENTS = ["user_events", "loss", "sched_switch", "sched_waking", "sched_migrate", "task_events", "irq", "syscalls", "contention", "page_faults"]


def window(words):
    """Begin and end of the window that these words of the command line name, and whether that is all of the trace."""
    return (*map(int, words), False) if words else (-(2**63), 2**63 - 1, True)


def rows(table, where="true"):
    """The rows of a table as dictionaries."""
    result = duckdb.sql(f"SELECT * FROM '{TRACE}/{table}/*.parquet' WHERE {where}")
    return [dict(zip(result.columns, row)) for row in result.fetchall()]


def begin():
    """When the recording began, or its first event, if that was before."""
    first = [duckdb.sql(f"SELECT min(ts) FROM '{TRACE}/{t}/*.parquet'").fetchall()[0][0] for t in EVENTS if t in META["tables"]]
    return min([META["start"]["start_ns"], *(ts for ts in first if ts is not None)])


def visible(text):
    """Control characters are shown by their pictures, and invisible ones by one that stands for any."""
    hidden = ("Cc", "Cf", "Zl", "Zp")
    other = lambda c: "\ufffd" if unicodedata.category(c) in hidden else c
    picture = lambda c: chr(0x2400 + ord(c)) if c < " " else "\u2421" if c == "\x7f" else other(c)
    return "".join(map(picture, text))


def compare(what, found, expected, besides=()):
    """All that is expected is there, and nothing else but `besides`; returns how much that is."""
    have, want = Counter(found), Counter(expected)
    missing, more = want - have, have - want - Counter(besides)
    for name, rest in (("missing", missing), ("not in the table", more)):
        for item in list(rest)[:5]:
            print(f"{what}, {name}: {item}", file=sys.stderr)
    assert not missing and not more, what
    return want.total()
