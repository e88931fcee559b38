"""Checks that each lock of an exported trace is one track of holders and one of waiters, as Perfetto's trace processor has them.

    perfetto_locks.py TRACE EXPORT

Slices that overlap need tracks of their own: what its viewer draws as one track is a group of them, which the trace processor makes
of tracks with the same parent and key.
"""

import sys
from collections import defaultdict

import duckdb

from exported import EXPORT, TRACE
from trace_processor import ask

QUERY = """SELECT s.category, p.pid, extract_arg(s.arg_set_id, 'debug.address'), t.name, t.id, coalesce(t.track_group_id, -t.id)
           FROM slice s JOIN track t ON s.track_id = t.id JOIN track locks ON t.parent_id = locks.id
           JOIN process_track pt ON pt.id = locks.id JOIN process p USING (upid)
           WHERE s.category IN ('hold', 'wait', 'unmet wait')"""


def main():
    assert len(sys.argv) == 3
    (rows,) = ask(EXPORT, QUERY)
    groups, owners, tracks, names = (defaultdict(set) for _ in range(4))
    for category, pid, address, name, track, group in rows:
        lock = pid, address % 2**64, "holders" if category == "hold" else "waiters"
        groups[lock].add(group)
        owners[group].add(lock)
        tracks[group].add(track)
        names[lock].add(name)
    expected = set()
    for table, role in (("critical_sections", "holders"), ("lock_waits", "waiters"), ("unfinished_waits", "waiters")):
        locks = duckdb.sql(f"SELECT DISTINCT pid, lock FROM '{TRACE}/{table}/*.parquet'").fetchall()
        expected |= {(pid, lock % 2**64, role) for pid, lock in locks}
    assert expected <= set(groups), expected - set(groups)
    assert all(len(found) == 1 for found in groups.values()), {lock: found for lock, found in groups.items() if len(found) > 1}
    assert all(len(found) == 1 for found in owners.values()), {group: found for group, found in owners.items() if len(found) > 1}
    assert all(len(found) == 1 for found in names.values()), {lock: found for lock, found in names.items() if len(found) > 1}
    # Or nothing would be shown by it.
    assert len({pid for pid, *_ in groups}) > 1, "processes"
    assert len({at for _, at, _ in groups}) < len({(pid, at) for pid, at, _ in groups}), "an address in two processes"
    assert any(len(found) > 1 for found in tracks.values()), "slices of one lock that overlap"
    print(f"{len(groups)} tracks of locks, of {len({(pid, at) for pid, at, _ in groups})} locks")


main()
