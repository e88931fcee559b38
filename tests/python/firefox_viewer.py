"""Compares what the Firefox Profiler makes of an exported profile with the tables that it was made of.

    firefox_viewer.py TRACE EXPORT PROFILER-CLI

The profiler's own command (`@firefox-devtools/profiler-cli`) loads and upgrades profiles as the web site does, and says
what that shows: the call tree of each thread, its CPU time, its markers by name.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter

import duckdb

TRACE, EXPORT, CLI = sys.argv[1:4]
PARTS = ["running", "preempted", "dispatch", "blocked", "hardirq", "softirq", "vector", "unexplained"]


def rows(query):
    return duckdb.sql(query).fetchall()


def ask(*words, patient=False):
    """Runs the command; `patient`: until the process behind it, which loads the profile, answers."""
    for _ in range(120 if patient else 1):
        command = [os.environ["FT_NODE"], CLI, *words, "--session", "test"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout) if "--json" in words else done.stdout
        time.sleep(0.5)
    sys.exit(f"{' '.join(words)}: {done.stdout}{done.stderr}")


def main():
    table = Counter()
    for pid, tid, part, culprit, spent in rows(f"SELECT pid, tid, part, culprit, spent_ns FROM '{TRACE}/thread_time/*.parquet'"):
        # A thread that says so of itself had the CPU by the kernel's account.
        table[str(pid), str(tid), "running" if culprit == "in gaps" else part] += spent
    named = Counter()
    for kind, query in {
        "": "critical_sections", "wait for ": "lock_waits",
    }.items():
        for pid, tid, name, count in rows(f"SELECT pid, tid, lock_name, count(*) FROM '{TRACE}/{query}/*.parquet' GROUP BY ALL"):
            named[str(pid), str(tid), kind + name] += count
    for name, query in {"wake-up": "dispatch_latency", "gap": "gaps"}.items():
        for pid, tid, count in rows(f"SELECT pid, tid, count(*) FROM '{TRACE}/{query}/*.parquet' GROUP BY ALL"):
            named[str(pid), str(tid), name] += count
    for pid, tid, name, count in rows(f"SELECT pid, tid, event, count(*) FROM '{TRACE}/user_events/*.parquet' WHERE kind = 'event' GROUP BY ALL"):
        named[str(pid), str(tid), name] += count

    # It answers at once, and loads behind that.
    subprocess.run([os.environ["FT_NODE"], CLI, "load", EXPORT, "--session", "test"], capture_output=True)
    try:
        info = ask("profile", "info", "--json", "--all", patient=True)
        trees = markers = 0
        for process in info["processes"]:
            for thread in process["threads"]:
                who = process["pid"], thread["tid"]
                if who[0] in ("CPUs", "recording"):
                    continue
                handle = ["--thread", thread["threadHandle"], "--json"]
                tree = ask("thread", "samples-top-down", "--include-idle", *handle)["regularCallTree"]
                shown = {node["name"]: round(node["totalSamples"] * 1e6) for node in tree["children"]}
                expected = {part: table[*who, part] for part in PARTS if table[*who, part]}
                assert shown == expected, f"{who}: {shown} shown, {expected} in the table"
                assert round(thread["cpuMs"] * 1e6) == table[*who, "running"], who
                trees += bool(shown)
                found = ask("thread", "markers", *handle)
                counts = {group["markerName"]: group["count"] for group in found["byType"]}
                assert sum(counts.values()) == found["totalMarkerCount"]
                for name, count in counts.items():
                    expected = named.pop((*who, name), None)
                    # Those of the life of a thread are compared elsewhere, and what did not end is in no table.
                    assert name.startswith(("task.", "wait for ")) or count == expected, f"{who} {name}: {count}, {expected}"
                markers += found["totalMarkerCount"]
        assert not named, f"not shown: {named}"
        assert trees and markers
        print(f"the viewer's call trees of {trees} threads and {markers} markers are as in the tables")
    finally:
        ask("stop")


# Its sessions and logs go nowhere else.
with tempfile.TemporaryDirectory() as home:
    os.environ["HOME"] = home
    main()
