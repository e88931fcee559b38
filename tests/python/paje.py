"""Compares what pajeng's pj_dump reads of an exported trace with the tables that it was made of.

    paje.py TRACE EXPORT [FROM TO]

Times are compared to the nanosecond. Rows of the tables are all there, at their times; what there is besides did not
end, or not where that was recorded, and says so. With a window only what lies in it is compared.
"""

import re
import subprocess
import sys
from collections import Counter, defaultdict

from exported import EXPORT, begin, compare, rows, visible, window

FROM, TO, WHOLE = window(sys.argv[3:])
NUMBER = r"(-?\d+\.\d{9})"
LINES = [
    # Names hold commas, so a line is told by its numbers.
    re.compile(rf"(State), (.*), (running|interrupt|state|task|scope|gap|holder), {NUMBER}, {NUMBER}, {NUMBER}, {NUMBER}, (.*), (.*), (exact|disturbed|lower bound|censored)"),
    re.compile(rf"(Variable), (.*), (holders|waiters), {NUMBER}, {NUMBER}, {NUMBER}, {NUMBER}"),
    re.compile(rf"(Event), (.*), (event|loss), {NUMBER}, (.*)"),
    re.compile(rf"(Link), machine, (wake-up|wake-up from idle), {NUMBER}, {NUMBER}, {NUMBER}, (exact|disturbed|lower bound|censored), (.*), (.*), (\d+)"),
    re.compile(r"(Container), (.*), (.*), \S+, \S+, \S+, (.*)"),
]


def shown(text):
    """Control characters are shown by their pictures, and no name holds a quotation mark."""
    return visible(text).replace('"', "'")


# Time 0 of the file.
BEGIN = begin() if WHOLE else FROM


def ns(seconds):
    """A time of the file."""
    return int(seconds.replace(".", "")) + BEGIN


def dump():
    command = ["pj_dump", "-u", "-l", "9", EXPORT]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stdout[:1000] + done.stderr
    found = defaultdict(list)
    for line in done.stdout.split("\n")[:-1]:
        match = next((m for m in (form.fullmatch(line) for form in LINES) if m), None)
        assert match, line
        found[match[1]].append(match.groups()[1:])
    return found


def tid(label):
    """A thread's label ends in its number."""
    return 0 if label == "idle" else int(label.rpartition(" ")[2])


def inside(e):
    """A row lies in the window, and is drawn as it is."""
    return FROM <= e["ts"] and e["ts"] + e["dur"] <= TO and e["ts"] < TO


def main():
    found = dump()
    labels = {(t["pid"], t["tid"]): shown(f"{t['name']} {t['tid']}") for t in rows("threads")}
    label = lambda e: labels[e["pid"], e["tid"]]
    states = defaultdict(list)
    for container, ty, begin, end, length, _, value, cause, mark in found["State"]:
        begin, end = ns(begin), ns(end)
        assert max(FROM, BEGIN) <= begin <= end <= TO
        states[ty].append((container, begin, end, value, cause, mark))
    counts = {}

    # Who had the CPUs: between two switches that fit together, where none can be missing.
    holes = [(e["ts"], e["ts"] + e["dur"]) for e in rows("loss") if e["origin"] in ("kernel", "kernel-skipped", "agent")]
    hole = lambda begin, end: any(a <= end and begin <= b for a, b in holes)
    switches, runs = defaultdict(list), []
    for s in rows("sched_switch", "true ORDER BY ts"):
        switches[s["cpu"]].append(s)
    for cpu, seen in switches.items():
        for a, b in zip(seen, seen[1:]):
            if a["next_tid"] == b["prev_tid"] and FROM <= a["ts"] and b["ts"] < TO and a["ts"] < b["ts"] and not hole(a["ts"], b["ts"]):
                runs.append((f"CPU {cpu}", a["ts"], b["ts"], a["next_tid"]))
    drawn = [(c, a, b, tid(v)) for c, a, b, v, _, _ in states["running"]]
    edges = [d for d, s in zip(drawn, states["running"]) if s[5] == "censored" or d[1] == FROM or d[2] == TO or hole(d[1], d[2])]
    first = {min((d for d in drawn if d[0] == cpu), default=None) for cpu in {d[0] for d in drawn}}
    counts["times on a CPU"] = compare("running", drawn, runs, edges + list(first))

    # What threads did, in sum.
    if WHOLE and rows("thread_time"):
        sums, table = Counter(), Counter()
        for container, begin, end, value, _, _ in states["state"]:
            sums[tid(container), value] += end - begin
        for e in rows("thread_time"):
            # A thread that says so of itself had the CPU by the kernel's account, which is what is drawn.
            part = "running" if e["culprit"] == "in gaps" else e["part"]
            table[e["tid"], part] += e["spent_ns"]
        kernel = bool(switches)
        for key, spent in (+table).items():
            assert sums[key] == spent or not kernel, f"{key}: {sums[key]} drawn, {spent} in the table"
        assert not kernel or set(sums) <= set(table), set(sums) - set(table)
        counts["states of threads"] = len(states["state"])

    # Locks.
    locks = lambda e: f"{shown(e['lock_name'])} {e['lock'] % 2**64:#x}"
    holds = [e for e in rows("critical_sections") if inside(e)]
    exclusive = [(locks(e), e["ts"], e["ts"] + e["dur"], e["tid"]) for e in holds if e["kind"] != "rwlock-read"]
    drawn = [(c, a, b, tid(v)) for c, a, b, v, _, _ in states["holder"]]
    others = [d for d, s in zip(drawn, states["holder"]) if s[5] == "censored" or d[1] == max(FROM, BEGIN) or d[2] == TO]
    counts["holds"] = compare("holders", drawn, exclusive, others)
    variables = {"holders": Counter(), "waiters": Counter()}
    for container, ty, begin, end, _, value in found["Variable"]:
        variables[ty][container] += (ns(end) - ns(begin)) * round(float(value))
    if WHOLE:
        for ty, tables in (("holders", ["critical_sections"]), ("waiters", ["lock_waits", "unfinished_waits"])):
            table = Counter()
            for e in (e for name in tables for e in rows(name)):
                table[locks(e)] += e["dur"]
            assert not +(table - variables[ty]), (ty, table - variables[ty])
            # What ended otherwise is in no table.
            exact = [lock for lock in table if table[lock] == variables[ty][lock]]
            assert len(exact) * 2 > len(table) or not table, ty
            counts[f"locks with the same time of {ty}"] = len(exact)

    # The rest of the states.
    irqs = [(f"CPU {e['cpu']}", e["ts"], e["ts"] + e["dur"], shown(e["name"])) for e in rows("irq") if inside(e)]
    drawn = [(c, a, b, v) for c, a, b, v, _, _ in states["interrupt"]]
    counts["interrupts"] = compare("interrupts", drawn, irqs, [d for d in drawn if d[1] == FROM or d[2] == TO])
    scopes = [(label(e), e["ts"], e["ts"] + e["dur"], shown(e["event"])) for e in rows("scopes") if inside(e)]
    drawn = [(c, a, b, v) for c, a, b, v, _, _ in states["scope"]]
    others = [d for d, s in zip(drawn, states["scope"]) if s[5] == "censored" or d[1] == FROM or d[2] == TO]
    counts["scopes"] = compare("scopes", drawn, scopes, others)
    gaps = [(label(e), e["ts"], e["ts"] + e["dur"], e["cause"] or "-", e["mark"]) for e in rows("gaps") if inside(e)]
    # A culprit may have a comma.
    drawn = [(c, a, b, v.partition(",")[0], m) for c, a, b, v, _, m in states["gap"]]
    counts["gaps"] = compare("gaps", drawn, gaps, [d for d in drawn if d[1] == FROM or d[2] == TO])

    # Async tasks, each with all of its polls that lie in the window, and its time in the queue before each of them.
    name = lambda e: f"{shown(e['name'] or e['place'])} {e['task']}"
    polls = rows("async_switches")
    polled = [(name(e), e["ts"], e["ts"] + e["dur"], "polled", label(e), e["mark"]) for e in polls if inside(e)]
    since = lambda e: max(e["ts"] - e["queued_ns"], FROM, BEGIN)
    queued = [(name(e), since(e), e["ts"], "queued", shown(e["waker_comm"] or "-"), e["mark"]) for e in polls if e["queued_ns"] and FROM <= e["ts"] < TO]
    drawn = states["task"]
    edges = [d for d in drawn if d[3] == "polled" and (d[1] == FROM or d[2] == TO or d[5] == "censored")]
    ended = {(d[0], d[1]) for d in drawn if d[3] == "polled"}
    # That of a poll behind the window's end is not told.
    queued = [q for q in queued if (q[0], q[2]) in ended]
    counts["states of tasks"] = compare("tasks", drawn, polled + queued, edges)

    # Wake-ups.
    wakes = [(e["ts"], e["ts"] + e["dur"], label(e), e["mark"]) for e in rows("dispatch_latency") if inside(e)]
    drawn = [(ns(a), ns(b), woken, mark) for _, a, b, _, mark, _, woken, _ in found["Link"]]
    counts["wake-ups"] = compare("wake-ups", drawn, wakes)
    wakers = {(e["ts"], e["tid"]): e["waker_tid"] for e in rows("dispatch_latency")}
    for kind, begin, _, _, _, waker, woken, _ in found["Link"]:
        if kind == "wake-up":
            assert tid(waker) == wakers[ns(begin), tid(woken)]

    # Events.
    window = f"ts >= {FROM} AND ts < {TO}"
    events = [(label(e), e["ts"], shown(e["event"])) for e in rows("user_events", f"kind = 'event' AND {window}")]
    events += [(label(e), e["ts"], f"task.{e['kind']}") for e in rows("task_events", window)]
    drawn = [(c, ns(at), value) for c, ty, at, value in found["Event"] if ty == "event"]
    # With the words of the event behind its name.
    names = {(c, at): [] for c, at, _ in events}
    for c, at, name in events:
        names[c, at].append(name)
    drawn = [(c, at, next((n for n in names.get((c, at), []) if value.startswith(f"{n}, ")), value)) for c, at, value in drawn]
    counts["events"] = compare("events", drawn, events)
    losses = [e for e in rows("loss", window)]
    assert len(losses) == sum(ty == "loss" for _, ty, *_ in found["Event"])

    threads = sum(ty == "thread" for _, ty, _ in found["Container"])
    print(", ".join(f"{count} {what}" for what, count in counts.items() if count), f"are as in the tables; {threads} threads")


main()
