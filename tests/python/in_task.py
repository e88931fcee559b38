"""The tasks that `views.sql` has beside what happened, against the polls that threads tell of themselves.

usage: python in_task.py DIR

Walks through the events of each thread and keeps the polls in which it is. Then again, with every second outermost poll no row of
`async_switches`, as if records of it had been lost: nothing may say in what its own events were. What is wrong is printed, and then
the status is 1; else how many events were in a task, and in one within another.
"""

import bisect
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import duckdb


class Poll(NamedTuple):
    """A poll in which a thread is."""

    task: int
    is_fiber: bool
    is_lost: bool


class Walk:
    """The events of a trace, one after the other."""

    def __init__(self, trace: Path, loses: bool) -> None:
        self.db = duckdb.connect()
        self.db.execute("SET VARIABLE trace = ?", [str(trace)])
        polls, some = "FROM part_rows('async_switches')", "(depth > 0 OR task % 2 = 0)"
        text = (trace / "views.sql").read_text()
        assert text.count(f"{polls} WHERE") == 1
        self.db.execute(text.replace(f"{polls} WHERE", f"{polls} WHERE {some} AND") if loses else text)
        self.loses = loses
        self.polls: dict[tuple[int, int], list[Poll]] = defaultdict(list)
        # In what each thread is, from when on.
        self.turns: dict[tuple[int, int], list[tuple[int, int | None]]] = defaultdict(list)
        self.lossy = {pid for (pid,) in self.rows("SELECT DISTINCT pid FROM loss WHERE origin NOT LIKE 'kernel%'")}
        self.wrong: list[str] = []
        self.inside = self.deep = self.of_kernel = 0

    def rows(self, sql: str) -> list[Any]:
        """What a query says."""
        return self.db.sql(sql).fetchall()

    def innermost(self, thread: tuple[int, int]) -> int | None:
        """The task in whose poll a thread is, if that is known."""
        mine = self.polls[thread]
        return mine[-1].task if mine and not mine[-1].is_lost else None

    def of_programs(self) -> None:
        """What applications recorded."""
        for ts, pid, tid, kind, task, found, event in self.rows(
            "SELECT ts, pid, tid, kind, arg0, in_task, event FROM with_task.user_events ORDER BY ts"
        ):
            if pid in self.lossy:
                continue
            mine, before = self.polls[pid, tid], self.innermost((pid, tid))
            if kind == "task_switch":
                while any(poll.is_fiber for poll in mine):
                    mine.pop()
            if kind == "task_poll" or kind == "task_switch" and task != 0:
                is_lost = self.loses and not mine and task % 2 == 1
                mine.append(Poll(task, kind == "task_switch", is_lost))
            if kind == "task_polled":
                mine.remove(next(poll for poll in reversed(mine) if poll.task == task))
            self.turns[pid, tid].append((ts, self.innermost((pid, tid))))
            # The event that ends a poll is the last one in it.
            expected = before if kind == "task_polled" else self.innermost((pid, tid))
            if found != expected:
                self.wrong.append(f"{event} of {tid} at {ts}: in {found}, not {expected}")
            self.inside += expected is not None
            self.deep += expected is not None and len(mine) > 1

    def of_the_kernel(self, table: str, owner: str) -> None:
        """What the kernel recorded of the same threads, while they were told of."""
        for ts, pid, tid, found in self.rows(f"SELECT ts, {owner}pid, {owner}tid, {owner}in_task FROM with_task.{table}"):
            mine = self.turns.get((pid, tid))
            if pid in self.lossy or not mine or ts > mine[-1][0]:
                continue
            at = bisect.bisect_right(mine, ts, key=lambda turn: turn[0]) - 1
            expected = mine[at][1] if at >= 0 else None
            if found != expected:
                self.wrong.append(f"{table} of {tid} at {ts}: in {found}, not {expected}")
            self.of_kernel += expected is not None


def main() -> int:
    """Compares all events of processes that lost none."""
    wrong: list[str] = []
    for loses in (True, False):
        walk = Walk(Path(sys.argv[1]), loses)
        walk.of_programs()
        for table, owner in (("sched_switch", "prev_"), ("sched_switch", "next_"), ("sched_waking", "")):
            walk.of_the_kernel(table, owner)
        wrong += walk.wrong
    print("\n".join(wrong[:20]) or f"{walk.inside} events in a task, {walk.deep} of them in one within another, "
          f"{walk.of_kernel} of the kernel's")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
