"""Compares what Perfetto's trace processor says of an exported trace with the tables that it was made of.

    perfetto.py TRACE EXPORT [FROM TO]

The trace processor is asked by SQL, and the tables by DuckDB. With a window, intervals of the tables are cut to it
here, and those that reach over its end may be without an end.
"""

import glob
import os
import sys
from collections import Counter, defaultdict

import duckdb

import exported
from exported import EXPORT, TRACE
from trace_processor import ask

FROM, TO, WHOLE = exported.window(sys.argv[3:])


def tables(sql):
    """Rows of the tables: `{name}` is one of them."""
    for name in ("user_events", "sites"):
        sql = sql.replace("{" + name + "}", f"'{TRACE}/{name}/*.parquet'")
    return duckdb.sql(sql).fetchall()


def table(name, columns, where="true"):
    files = f"{TRACE}/{name}/*.parquet"
    if not glob.glob(files):
        return []
    return duckdb.sql(f"SELECT {columns} FROM '{files}' WHERE {where}").fetchall()


def clean(text):
    """NUL separates results."""
    return None if text is None else text.replace("\0", "\u2400")


def slices(category, *columns):
    """Slices and instants of a category, with arguments, and the thread of their track, if it is one's."""
    args = "".join(f", extract_arg(s.arg_set_id, 'debug.{c}')" for c in columns)
    return f"""SELECT s.ts, s.dur, s.name, extract_arg(s.arg_set_id, 'debug.over') IS NOT NULL{args}
               FROM slice s WHERE s.category = '{category}'"""


def cut(rows):
    """Intervals `(ts, dur, …)` as far as they lie in the window."""
    for ts, dur, *rest in rows:
        inside = FROM <= ts < TO if dur == 0 else ts + dur > FROM and ts < TO
        if inside:
            begin, end = max(ts, FROM), min(ts + dur, TO)
            yield (begin, end - begin, *rest)


def compare(what, expected, found, more=()):
    """`more` may be found, too: intervals without a known end, which no table has."""
    found = Counter(found)
    exported.compare(what, found, expected, more)
    counted.append(f"{found.total():,} {what}")


counted = []
THREAD = "LEFT JOIN thread_track tt ON s.track_id = tt.id LEFT JOIN thread t USING (utid)"
(errors, holds, waits, unmet, scopes, polls, gaps, dispatches, flows, events, losses, syscalls, sched, states, interrupts, vectors, begins, clocks, tracks, contention, faults, rows_of_threads) = ask(
    EXPORT,
    "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value != 0",
    slices("hold", "lock", "address", "depth", "place", "mark"),
    slices("wait", "lock", "address", "holder", "mark"),
    slices("unmet wait", "lock", "address"),
    slices("scope", "lock_wait_ns"),
    slices("poll", "task", "queued_ns"),
    slices("gap", "culprit"),
    f"SELECT s.ts, t.tid, extract_arg(s.arg_set_id, 'debug.waited_ns') FROM slice s {THREAD} WHERE s.category = 'wake-up'",
    """SELECT o.ts, ot.tid, i.ts, it.tid FROM flow f
       JOIN slice o ON f.slice_out = o.id JOIN thread_track ott ON o.track_id = ott.id JOIN thread ot ON ott.utid = ot.utid
       JOIN slice i ON f.slice_in = i.id JOIN thread_track itt ON i.track_id = itt.id JOIN thread it ON itt.utid = it.utid""",
    f"""SELECT s.id, s.ts, t.tid, s.name, a.key, coalesce(a.int_value, a.real_value, a.string_value)
        FROM slice s {THREAD} LEFT JOIN args a ON s.arg_set_id = a.arg_set_id AND a.key LIKE 'debug.%' WHERE s.category = 'event'""",
    slices("loss", "count"),
    slices("syscall"),
    "SELECT ts, dur, cpu, tid, priority FROM sched JOIN thread USING (utid) ORDER BY cpu, ts",
    "SELECT tid, state, ts, dur FROM thread_state JOIN thread USING (utid)",
    """SELECT s.ts, s.dur, t.name LIKE '%softirq%' OR t.type LIKE '%softirq%' FROM slice s JOIN track t ON s.track_id = t.id
       WHERE s.category IS NULL OR s.category IN ('irq', 'softirq') AND t.name NOT LIKE 'interrupt vectors%'""",
    "SELECT s.ts, s.dur, s.name FROM slice s JOIN track t ON s.track_id = t.id WHERE t.name LIKE 'interrupt vectors%'",
    "SELECT trace_start(), trace_end()",
    "SELECT clock_name, clock_value FROM clock_snapshot",
    """SELECT DISTINCT s.category, s.track_id, t.name, p.pid, extract_arg(s.arg_set_id, 'debug.lock'), extract_arg(s.arg_set_id, 'debug.address')
       FROM slice s JOIN track t ON s.track_id = t.id JOIN track l ON t.parent_id = l.id
       LEFT JOIN process_track pt ON pt.id = l.id LEFT JOIN process p USING (upid)
       WHERE s.category IN ('hold', 'wait', 'unmet wait')""",
    slices("kernel lock"),
    f"SELECT s.ts, t.tid FROM slice s {THREAD} WHERE s.category = 'fault'",
    # A track below that of a thread is the thread's, too.
    f"SELECT s.category, s.ts, t.tid FROM slice s {THREAD} WHERE s.category IN ('scope', 'poll', 'gap', 'syscall', 'kernel lock')",
)
hostile = os.path.basename(TRACE) == "hostile"


def intervals(what, rows, found, key):
    """`key` chooses of what was found what the tables have: all of it but intervals without a known end."""
    expected = Counter((ts, dur, *map(str, rest)) for ts, dur, *rest in cut(rows))
    chosen = Counter()
    for row in found:
        at = tuple([row[0], row[1], *map(str, key(row))])
        if expected[at] > chosen[at] or not row[3]:
            chosen[at] += 1
    compare(what, expected, chosen)


def address(number):
    return number % 2**64


intervals(
    "holds",
    [(ts, dur, clean(n), address(a), d, clean(p) or None, f"{clean(c)}/{t}") for ts, dur, n, a, d, p, c, t in duckdb.sql(
        f"""SELECT ts, dur, lock_name, lock, depth, place, coalesce(t.name, ''), h.tid FROM '{TRACE}/critical_sections/*.parquet' h
            LEFT JOIN (SELECT pid, tid, name FROM '{TRACE}/threads/*.parquet') t ON h.pid = t.pid AND h.tid = t.tid""").fetchall()],
    holds,
    lambda row: (row[4], address(row[5]), row[6], row[7], row[2]),
)
holder = lambda comm, tid: None if tid is None else f"{clean(comm)}/{tid}"
if WHOLE:
    intervals(
        "waits",
        [(ts, dur, clean(n), address(a), holder(hc, ht), f"{clean(c)}/{t}") for ts, dur, n, a, hc, ht, c, t in
         table("lock_waits", "ts, dur, lock_name, lock, holder_comm, holder_tid, comm, tid")],
        waits,
        lambda row: (row[4], address(row[5]), row[6], row[2]),
    )
    expected = table("unfinished_waits", "ts, dur, lock")
    found = Counter((ts, dur, address(lock)) for ts, dur, _, _, _, lock in unmet)
    assert not Counter((ts, dur, address(lock)) for ts, dur, lock in expected) - found, "unfinished waits"
    intervals(
        "gaps",
        [(ts, dur, c or "no account", clean(by) or None) for ts, dur, c, by in table("gaps", "ts, dur, cause, culprit")],
        gaps,
        lambda row: (row[2], row[4]),
    )
else:
    # One that goes on at the window's end has not got its lock.
    intervals("waits", [(ts, dur, clean(n)) for ts, dur, n in table("lock_waits", "ts, dur, lock_name")], waits + unmet, lambda row: (row[4],))
intervals("scopes", [(ts, dur, clean(e)) for ts, dur, e in table("scopes", "ts, dur, event")], scopes, lambda row: (row[2],))
intervals(
    "polls",
    [(ts, dur, clean(n or p), task, queued or None) for ts, dur, n, p, task, queued in table("async_switches", "ts, dur, name, place, task, queued_ns")],
    polls,
    lambda row: (row[2], row[4], row[5]),
)
intervals("losses", [(ts, dur, clean(f"{o}: {w}"), n) for ts, dur, o, w, n in table("loss", "ts, dur, origin, what, count")], losses, lambda row: (row[2], row[4]))
intervals("system calls", [(ts, dur, clean(n)) for ts, dur, n in table("syscalls", "ts, dur, name")], syscalls, lambda row: (row[2],))
intervals("waits for kernel locks", [(ts, dur, clean(k)) for ts, dur, k in table("contention", "ts, dur, kind")], contention, lambda row: (row[2],))
compare("page faults", table("page_faults", "ts, tid", f"ts >= {FROM} AND ts < {TO}"), faults)

# Each in a row of its own thread; what does not end is in no table.
OF_THREADS = {"scope": "scopes", "poll": "async_switches", "gap": "gaps", "syscall": "syscalls", "kernel lock": "contention"}
for category, name in OF_THREADS.items():
    drawn = Counter((ts, tid) for kind, ts, tid in rows_of_threads if kind == category)
    expected = Counter((ts, tid) for ts, _, tid in cut(table(name, "ts, dur, tid")))
    assert not expected - drawn or category == "gap" and not WHOLE, (category, expected - drawn)

ended = lambda ts, dur: (FROM < ts + dur if dur else FROM <= ts) and (ts + dur < TO)
woken = [row for row in table("dispatch_latency", "ts, dur, tid, waker_tid") if ended(row[0], row[1])]
compare("wake-ups", [(ts + dur, tid, dur) for ts, dur, tid, _ in woken], dispatches)
compare("flows", [(ts, waker, ts + dur, tid) for ts, dur, tid, waker in woken if ts >= FROM], flows)

# A track is of one lock of one process, of its holders or of its waiters, but for the one of those that have none of their own.
owners = defaultdict(set)
for category, track, name, pid, lock, at in tracks:
    word = "holders" if category == "hold" else "waiters"
    shared = name == f"further locks: {word}"
    assert shared or name == f"{lock}: {word}", (category, name, lock)
    owners[track].add((pid, None if shared else address(at)))
assert all(len(of) == 1 for of in owners.values()), [of for of in owners.values() if len(of) > 1]
if WHOLE:
    held = {(pid, address(lock)) for pid, lock in table("critical_sections", "DISTINCT pid, lock")}
    told = {(pid, address(at)) for category, _, _, pid, _, at in tracks if category == "hold"}
    assert held <= told, held - told
counted.append(f"{len(owners):,} tracks of locks")

# Clocks are apart by what the trace says, which is of one moment.
clocks = dict(clocks)
for clock, offset in (("REALTIME", "realtime_offset_ns"), ("BOOTTIME", "boottime_offset_ns")):
    assert clocks[clock] - clocks["MONOTONIC"] == exported.META["clock"][offset], (clock, clocks)

# The application's events, with their arguments.
names = {site: args for site, args in table("sites", "site, args")}
expected = Counter()
for ts, tid, event, site, *values in table(
    "user_events",
    "ts, tid, event, site, " + ", ".join(f"arg{i}, argf{i}, argt{i}" for i in range(6)),
    f"kind = 'event' AND ts >= {FROM} AND ts < {TO}",
):
    args = []
    if not hostile:
        for i, arg in enumerate(filter(None, (names.get(site) or "").split(", "))):
            name, kind = arg.rsplit(":", 1)
            value = next((v for v in values[3 * i : 3 * i + 3] if v is not None), None)
            if value is not None:
                # SQLite has no NaN.
                value = clean(value) if isinstance(value, str) else value if value == value else None
                args.append((f"debug.{name}", value))
    expected[(ts, tid, clean(event), tuple(sorted(args)))] += 1
found = defaultdict(list)
for id, ts, tid, name, key, value in events:
    found[(id, ts, tid, name)] += [(key, value)] if key is not None and not hostile else []
compare("events", expected, Counter((ts, tid, name, tuple(sorted(args))) for (_, ts, tid, name), args in found.items()))

# Who had each CPU, from one switch to the next.
switches = table("sched_switch", "cpu, ts, next_tid, next_prio, prev_tid", f"ts >= {FROM} AND ts < {TO} ORDER BY cpu, ts")
pairs = [(a, b) for a, b in zip(switches, switches[1:]) if a[0] == b[0]]
# Where the thread that leaves is another, switches are missing, and the first one was there for less than that.
lost = table("loss", "ts, ts + dur", "origin IN ('kernel', 'kernel-skipped', 'agent')")
hidden = lambda begin, end: any(begin <= to and since <= end for since, to in lost)
unseen = {(a[0], a[1]): b[1] - a[1] for a, b in pairs if a[2] != b[4] or hidden(a[1], b[1])}
expected = [(a[1], b[1] - a[1], a[0], a[2], a[3]) for a, b in pairs if a[2] != 0]
sched = [(ts, unseen.get((cpu, ts), dur) if dur <= unseen.get((cpu, ts), dur) else dur, cpu, *rest) for ts, dur, cpu, *rest in sched]
last = {(cpu, ts) for cpu, ts, *_ in {row[0]: row for row in switches}.values()}
before = {(cpu, FROM) for cpu, *_ in switches}
found = [row for row in sched if row[3] != 0 and (row[2], row[0]) not in last | before]
compare("times on a CPU", expected, found)

# Times of interrupts.
for kinds, what, rows in (("'hard'", "interrupts of lines", [r[:2] for r in interrupts if not r[2]]), ("'soft'", "softirqs", [r[:2] for r in interrupts if r[2]])):
    if not hostile:
        compare(what, [row for row in cut(table("irq", "ts, dur", f"kind IN ({kinds})"))], rows)
compare("vectors", [(ts, dur, clean(n)) for ts, dur, n in cut(table("irq", "ts, dur, name", "kind = 'vector'"))], vectors)

# The states of threads, which the trace processor makes of switches and wakings by itself.
errors = dict(errors)
assert errors.pop("mismatched_sched_switch_tids", 0) <= len(unseen), (errors, len(unseen))
if not hostile:
    assert not errors, errors
if WHOLE and not hostile and switches:
    KINDS = {"Running": "running", "R": "runnable", "R+": "runnable"}
    sums = defaultdict(int)
    for tid, state, ts, dur in states:
        if state not in ("X", "Z"):
            sums[(tid, KINDS.get(state, "blocked"))] += begins[0][1] - ts if dur < 0 else dur
    PARTS = {"preempted": "runnable", "dispatch": "runnable", "blocked": "blocked"}
    ours, doubtful = defaultdict(int), set()
    for tid, part, culprit, ns, mark in table("thread_time", "tid, part, culprit, spent_ns, mark"):
        if mark == "lower bound":
            doubtful.add(tid)
        if part != "unexplained" or culprit == "in gaps":
            ours[(tid, PARTS.get(part, "running"))] += ns
    sure = {key: ns for key, ns in ours.items() if key[0] not in doubtful}
    wrong = {key: (ns, sums[key]) for key, ns in sure.items() if ns != sums[key]}
    assert not wrong, f"states of threads, ours and Perfetto's: {wrong}"
    counted.append(f"{len(sure)} sums of states of {len({tid for tid, _ in sure})} threads")
print("; ".join(what for what in counted if not what.startswith("0 ")))
