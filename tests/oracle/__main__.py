"""Recomputes the result tables of a trace from its raw tables, and compares them row by row.

usage: python oracle DIR [--alter]

A second implementation of the analyses, written from the meaning of the columns, and as simple as can be: to find
what happened in an interval, it walks through what happened in it. Prints every difference; ends with status 1 if
there is one. With --alter it alters the results, too, and fails if it does not notice.
"""

import sys
from pathlib import Path

import blame
import dispatch
import functions
import futexes
import gaps
import held_up
import histograms
import holds
import kernel_locks
import lock_chains
import loads
import loops
import lost
import order
import pairs
import paths
import places
import tasks
import turns
import what_ifs
from alter import unnoticed
from chains import Chains
from cpus import Cpus
from ledger import ThreadTime
from locks import Locks
from tables import Trace, results
from taken import Taken
from threads import Threads

# Differences of one table that are printed.
SHOWN = 20


def main() -> int:
    """Compares all tables."""
    directory = Path(sys.argv[1])
    alter = "--alter" in sys.argv[2:]
    trace = Trace.load(directory)
    end = trace.end()
    cpus = Cpus(trace, end)
    threads = Threads(trace, cpus, end)
    whose = turns.Turns(trace)
    locks = Locks(trace, threads, whose)
    blame.watch(locks, end)
    ledger = ThreadTime(trace, threads, locks)
    inside = places.of_threads(trace, threads)
    chains = Chains(trace)
    async_tasks = tasks.Tasks(trace, threads, locks, ledger, chains)
    critical = paths.Paths(trace, threads, ledger, async_tasks)
    faults = 0
    tables = [
        holds.table(locks, threads, whose),
        blame.table(locks, threads),
        blame.unfinished(locks, threads),
        held_up.table(locks, threads),
        what_ifs.table(trace, locks, threads),
        order.table(locks),
        lock_chains.table(trace, locks, threads),
        dispatch.table(threads),
        gaps.table(trace, threads),
        functions.table(trace, threads, end),
        futexes.table(trace, threads, locks, chains),
        kernel_locks.table(trace, threads, locks),
        loops.peaks(trace, threads),
        loops.histogram(trace, threads),
        loads.runs(trace, threads),
        loads.jobs(trace, threads),
        loads.timers(trace, threads),
        ledger,
        places.table(trace, threads, inside, ledger),
        pairs.table(trace, threads, critical, inside),
        lost.Lost(trace, threads, ledger, critical),
        *paths.tables(trace, threads, critical, whose),
        *async_tasks.tables(),
        histograms.table(directory),
    ]
    if trace.stack_min_ns is not None:
        tables.append(Taken(trace, trace.stack_min_ns))
    chains.judge(tables)
    for table in tables:
        rows = results(directory, table.name)
        lines = table.differences(rows)
        exact = sum(row.get("mark", "exact") == "exact" for row in rows)
        print(f"{table.name}: {len(rows)} rows, {exact} exact, {len(lines)} differences")
        if alter and not lines:
            lines = [f"not noticed: {line}" for line in unnoticed(table, rows, bool(trace.losses))]
        for line in lines[:SHOWN]:
            print("  " + line)
        faults += len(lines)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
