"""Checks an exported profile against the published format, and compares it with the tables that it was made of.

    firefox.py TRACE EXPORT REFERENCE [FROM TO]

The format is told by REFERENCE, a profile that the library of the format's authors wrote (`fxprof-processed-profile`):
whatever that has, the export has, of the same type. What lies beneath is checked here: columns of one length, indices
that lead somewhere, colours and formats that the viewer knows (`src/types/` of github.com/firefox-devtools/profiler).
"""

import json
import sys
from collections import Counter
from decimal import Decimal

from exported import EXPORT, META, begin, compare, rows, window

REFERENCE = sys.argv[3]
FROM, TO, WHOLE = window(sys.argv[4:])
COLORS = {"transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red", "lightred", "darkgrey", "grey"}
FORMATS = {"url", "file-path", "sanitized-string", "string", "unique-string", "duration", "time", "seconds", "milliseconds", "microseconds", "nanoseconds", "bytes", "percentage", "integer", "decimal", "pid", "tid", "list"}
PLACES = {"marker-chart", "marker-table", "timeline-overview", "timeline-memory", "timeline-ipc", "timeline-fileio", "timeline-network", "stack-chart"}
PARTS = {"running": "Running", "preempted": "Preempted", "dispatch": "Waiting for a CPU", "blocked": "Blocked", "hardirq": "Interrupt", "softirq": "Interrupt", "vector": "Interrupt", "unexplained": "Unexplained"}


# Time 0 of the profile.
BEGIN = begin() if WHOLE else FROM


def ns(ms):
    """A length of the profile; its numbers are read as decimals, so that none is rounded."""
    length = ms * 1_000_000
    assert length == int(length), ms
    return int(length)


# The format.


def same_shape(have, want, path):
    """All that the reference has, of the same type."""
    number = (int, Decimal)
    if want is None or have is None:
        return
    if isinstance(want, bool) or not isinstance(want, number):
        assert type(have) is type(want), f"{path} is {have!r}"
    else:
        assert isinstance(have, number) and not isinstance(have, bool), f"{path} is {have!r}"
    if isinstance(want, dict):
        missing = set(want) - set(have)
        assert not missing, f"{path} has no {missing}"
        for key in want:
            same_shape(have[key], want[key], f"{path}.{key}")
    elif isinstance(want, list) and want:
        for i, item in enumerate(have):
            same_shape(item, want[0], f"{path}[{i}]")


def table(found, name):
    """All columns are as long as the table says."""
    for key, column in found.items():
        if isinstance(column, list):
            assert len(column) == found["length"], f"{name}.{key}"


def check_format(profile, reference):
    # Payloads of markers and their schemas are of each profile's own.
    pruned = json.loads(json.dumps(reference, default=float), parse_float=Decimal)
    for thread in pruned["threads"]:
        thread["markers"]["data"] = []
    same_shape(profile, pruned, "profile")
    assert profile["meta"]["preprocessedProfileVersion"] == reference["meta"]["preprocessedProfileVersion"]
    categories = profile["meta"]["categories"]
    assert all(c["color"] in COLORS and c["subcategories"][0] == "Other" for c in categories)
    assert any(c["color"] == "grey" for c in categories)
    schemas = {}
    for schema in profile["meta"]["markerSchema"]:
        assert set(schema["display"]) <= PLACES and schema["name"] not in schemas
        assert all(field["format"] in FORMATS for field in schema["fields"])
        schemas[schema["name"]] = {field["key"]: field["format"] for field in schema["fields"]}
    for thread in profile["threads"]:
        strings, where = len(thread["stringArray"]), thread["name"]
        for name in ["samples", "markers", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols"]:
            table(thread[name], f"{where}: {name}")
        stacks, frames, functions = thread["stackTable"], thread["frameTable"], thread["funcTable"]
        assert all(prefix is None or prefix < i for i, prefix in enumerate(stacks["prefix"]))
        assert all(frame < frames["length"] for frame in stacks["frame"])
        assert all(function < functions["length"] for function in frames["func"])
        assert all(category < len(categories) for category in frames["category"] + thread["markers"]["category"])
        assert all(name < strings for name in functions["name"] + thread["markers"]["name"])
        assert all(stack is None or stack < stacks["length"] for stack in thread["samples"]["stack"])
        assert all(delta >= 0 for delta in thread["samples"]["timeDeltas"]), "samples are in order"
        markers = thread["markers"]
        for data, begin, end, phase in zip(markers["data"], markers["startTime"], markers["endTime"], markers["phase"]):
            fields = schemas[data["type"]]
            assert set(data) == {"type", *fields}
            for key, kind in fields.items():
                assert isinstance(data[key], str if kind == "string" else (int, Decimal)), (data, key)
            assert phase == (0 if end is None else 1) and (end is None or begin <= end)


# Its figures.


def markers(profile):
    """By schema: thread, begin, end, name, data."""
    found = {}
    for thread in profile["threads"]:
        table = thread["markers"]
        for data, name, begin, end in zip(table["data"], table["name"], table["startTime"], table["endTime"]):
            begin, end = BEGIN + ns(begin), None if end is None else BEGIN + ns(end)
            assert max(FROM, BEGIN) <= begin and (end is None or end <= TO)
            found.setdefault(data["type"], []).append((thread["pid"], thread["tid"], begin, end, thread["stringArray"][name], data))
    return found


def inside(e):
    return FROM <= e["ts"] and e["ts"] + e["dur"] <= TO and e["ts"] < TO


def main():
    profile = json.load(open(EXPORT), parse_float=Decimal)
    check_format(profile, json.load(open(REFERENCE), parse_float=Decimal))
    day = META["clock"]["realtime_offset_ns"] + BEGIN
    assert abs(float(profile["meta"]["startTime"]) * 1e6 - day) < 1000, "the time of day at the begin"
    found, counts = markers(profile), {}
    at_edge = lambda m: m[2] == max(FROM, BEGIN) or m[3] == TO or m[5].get("mark") == "censored"

    def rows_as(schema, table, name, *fields):
        """Rows of a table as markers of a schema, with fields that both have."""
        key = lambda m: (m[0], m[1], m[2], m[3], m[4], *(m[5][theirs] for theirs, _ in fields))
        drawn = found.get(schema, [])
        expected = [
            (str(e["pid"]), str(e["tid"]), e["ts"], e["ts"] + e["dur"], name(e), *(ours(e) for _, ours in fields))
            for e in rows(table)
            if inside(e)
        ]
        edges = [key(m) for m in drawn if at_edge(m) or schema == "Wait" and m[5]["outcome"] != "acquired"]
        counts[table] = compare(table, map(key, drawn), expected, edges)

    length = lambda column: lambda e: Decimal(e[column] or 0) / 1_000_000
    mark = ("mark", lambda e: e["mark"])
    lock = ("lock", lambda e: f"{e['lock'] % 2**64:#x}")
    place = ("place", lambda e: e["place"])
    hold = [lock, place, mark, ("depth", lambda e: e["depth"]), ("waited", length("wait_ns")), ("preempted", length("preempted_ns")), ("blocked", length("blocked_ns")), ("preemptor", lambda e: e["preemptor_comm"] or "")]
    rows_as("Hold", "critical_sections", lambda e: e["lock_name"], *hold)
    rows_as("Wait", "lock_waits", lambda e: f"wait for {e['lock_name']}", lock, place, mark, ("holder_place", lambda e: e["holder_place"] or ""))
    waker = lambda e: f"{e['waker_comm']} {e['waker_tid']}" if e["waker_tid"] else "idle"
    dispatch = [mark, ("waker", waker), ("behind", lambda e: e["running_comm"] or ""), ("cpu", lambda e: e["cpu"]), ("migrated", lambda e: "yes" if e["migrated"] else "no")]
    rows_as("Dispatch", "dispatch_latency", lambda e: "wake-up", *dispatch)
    rows_as("Scope", "scopes", lambda e: e["event"], mark, ("preempted", length("preempted_ns")), ("blocked", length("blocked_ns")))
    rows_as("Gap", "gaps", lambda e: "gap", mark, ("cause", lambda e: e["cause"] or ""), ("culprit", lambda e: e["culprit"] or ""), ("inferred", lambda e: e["inferred"]))

    window = f"ts >= {FROM} AND ts < {TO}"
    irqs = [(f"CPU {e['cpu']}", e["ts"], e["ts"] + e["dur"], e["name"], e["kind"]) for e in rows("irq") if inside(e)]
    drawn = [(tid, a, b, name, data["kind"]) for _, tid, a, b, name, data in found.get("Interrupt", [])]
    counts["interrupts"] = compare("irq", drawn, irqs, [d for d in drawn if d[1] == FROM or d[2] == TO])
    events = [(str(e["pid"]), str(e["tid"]), e["ts"], e["event"]) for e in rows("user_events", f"kind = 'event' AND {window}")]
    events += [(str(e["pid"]), str(e["tid"]), e["ts"], f"task.{e['kind']}") for e in rows("task_events", window)]
    drawn = [(pid, tid, a, name) for pid, tid, a, _, name, _ in found.get("Event", [])]
    counts["events"] = compare("events", drawn, events)
    losses = [(e["ts"], e["origin"], e["what"], e["count"]) for e in rows("loss", window)]
    drawn = [(a, name, data["what"], data["count"]) for _, _, a, _, name, data in found.get("Loss", [])]
    counts["losses"] = compare("losses", drawn, losses, [d for d in drawn if d[0] == FROM])

    # The samples of a thread are its time, by part; those of a CPU its occupants'.
    categories = [c["name"] for c in profile["meta"]["categories"]]
    sums, ran, occupied = Counter(), Counter(), Counter()
    for thread in profile["threads"]:
        samples, stacks, frames = thread["samples"], thread["stackTable"], thread["frameTable"]
        time = Decimal(0)
        for stack, delta, weight, cpu in zip(samples["stack"], samples["timeDeltas"], samples["weight"], samples["threadCPUDelta"]):
            time += delta
            if stack is None:
                continue
            category = categories[frames["category"][stacks["frame"][stack]]]
            root = stack
            while stacks["prefix"][root] is not None:
                root = stacks["prefix"][root]
            name = thread["stringArray"][thread["funcTable"]["name"][root]]
            if thread["pid"] == "CPUs":
                occupied[thread["tid"]] += ns(weight)
                continue
            assert PARTS[name] == category
            sums[thread["pid"], thread["tid"], name] += ns(weight)
        if thread["pid"] != "CPUs":
            ran[thread["pid"], thread["tid"]] += sum(samples["threadCPUDelta"])
    if WHOLE:
        table = Counter()
        for e in rows("thread_time"):
            part = "running" if e["culprit"] == "in gaps" else e["part"]
            table[str(e["pid"]), str(e["tid"]), part] += e["spent_ns"]
        if rows("sched_switch"):
            assert +sums == +table, (sums - table, table - sums)
            for (pid, tid, part), spent in table.items():
                assert part != "running" or ran[pid, tid] == spent
        counts["parts of threads"] = len(sums)
    assert occupied or not rows("sched_switch", window)
    print(", ".join(f"{count} {what}" for what, count in counts.items() if count), f"are as in the tables; {len(profile['threads'])} threads")


main()
