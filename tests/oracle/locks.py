"""Holds and waits of locks: user events paired as their meaning says, one thread at a time.

`ft-user/src/layout/site.rs` says what the events mean. Nesting depth is that of the Feather-Trace paper, section 3:
a request has depth n if n locks are held at its time.
"""

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, NamedTuple

from tables import Loss, Task, Trace, UserEvent
from threads import DEAD, Threads
from turns import Id, Time, Turns

Lock = tuple[int, int]  # process, address

# It counts, and is held only where one thread takes and posts it; it never adds to the depth of a lock.
SEMAPHORE = "semaphore"


class At(NamedTuple):
    """A moment: of equal times the later event has the larger place in the trace."""

    ts: int
    order: int


@dataclass(eq=False)
class Hold:
    """From an acquisition to a release."""

    tid: int
    lock: Lock
    kind: str
    site: int
    place: str
    start: At
    depth: int
    wait_ns: int
    condition: bool
    # Locks that the thread held already, in the order of their acquisition.
    held_before: list["Hold"]
    # Two places of one line have the same text.
    place_id: int
    end: At | None = None
    # From when on nobody knows of it: its process executed another program, events were lost, or it was acquired again.
    dropped: At | None = None
    # Its thread ended with it.
    left: At | None = None
    # What its release tells of a time-slice extension.
    slice: str = "none"
    # The task in which it began, and the thread that released it.
    task: Id | None = None
    ended_by: int | None = None
    # Of one of a task, when which thread ran that.
    times: list[Time] = field(default_factory=list)

    def is_on(self, ts: int) -> bool:
        """Whether a thread holds it at a time, and no task that none runs."""
        return self.task is None or any(since <= ts < until for _, since, until in self.times)


@dataclass(eq=False)
class Wait:
    """From the request of a taken lock to its acquisition, or to whatever ended it."""

    tid: int
    lock: Lock
    kind: str
    site: int
    place: str
    start: At
    depth: int
    end: At | None = None
    acquired: bool = False
    # The thread ended first, or its process executed another program.
    cut: int | None = None
    executed: bool = False
    # How it went on is not known: its thread's events were lost, or its task was left meanwhile.
    lost: bool = False
    # The task in which it began.
    task: Id | None = None
    # Who held the lock, moment by moment; filled by `blame.py`.
    moments: list = field(default_factory=list)


class Step(NamedTuple):
    """One change: of a wait or a hold, which begins or ends."""

    at: At
    wait: Wait | None
    hold: Hold | None
    begins: bool


class Locks:
    """All holds and waits of a trace."""

    def __init__(self, trace: Trace, threads: Threads, turns: Turns) -> None:
        self.trace, self.turns = trace, turns
        self.holds: list[Hold] = []
        self.waits: list[Wait] = []
        self.steps: list[Step] = []
        self.names: dict[Lock, str] = {}
        # Condition waits: from, to, thread, name of the lock.
        self.conditions: list[list] = []
        self.in_condition: dict[int, list] = {}
        self.open: dict[int, list[Hold]] = {}
        self.waiting: dict[int, Wait] = {}
        # Waits for semaphores: nobody holds one, so they are in no table of waits.
        self.semaphores: list[Wait] = []
        # Releases of what was acquired before the recording, or in a loss; and who made each that nobody was seen to hold.
        self.strays: list[tuple[At, Lock]] = []
        self.unseen: list[tuple[int, int]] = []
        # Where that record is lost, the last switch tells.
        self.gone = {s.prev_tid: s.ts for s in trace.switches if s.prev_state in DEAD}
        self.gone |= {t.tid: t.ts for t in trace.tasks if t.kind == "exit"}
        # What interrupts all that is known; of equal times what the kernel says comes before events, and losses first.
        breaks = [(loss.ts, 0, loss) for loss in trace.losses]
        breaks += [(task.ts, 1, task) for task in trace.tasks if task.kind == "exec"]
        coming = deque(sorted(breaks, key=lambda entry: entry[:2]))
        for order, event in enumerate(trace.events):
            while coming and coming[0][0] <= event.ts:
                self.interrupt(coming.popleft()[2], order)
            self.leaves(event, order)
            site = trace.sites.get(event.site)
            if site and site.kind in HANDLERS:
                HANDLERS[site.kind](self, event, At(event.ts, order))
        for _, _, what in coming:
            self.interrupt(what, len(trace.events))
        for hold in self.holds:
            over = hold.end or hold.dropped
            hold.times = turns.times(hold.start.order, over.order if over else len(trace.events) - 1)
        for tid, held in self.open.items():
            for hold in held if tid in self.gone else ():
                hold.left = At(self.gone[tid], -1)
        for wait in self.waiting.values():
            wait.cut = self.gone.get(wait.tid)
            if wait.cut is not None:
                # Of equal times the end of a thread comes before an event.
                self.steps.append(Step(At(wait.cut, -1), wait, None, False))
        self.steps.sort(key=lambda step: step.at)

    def name(self, lock: Lock) -> str:
        """The lock's name; its address if it has none."""
        return self.names.get(lock) or f"{lock[1] & (1 << 64) - 1:#x}"

    def place(self, event: UserEvent) -> str:
        """The source place of a lock event, and by the way the lock's name."""
        word = event.arg1 & (1 << 64) - 1
        site = self.trace.sites[event.site]
        if site.args.split(", ")[1].endswith(":pointer"):
            return self.function(event)
        name = self.trace.names.get((site.source, word >> 32, "name"))
        if name:
            self.names[event.pid, event.arg0] = name.text
        place = self.trace.names.get((site.source, word & (1 << 32) - 1, "place"))
        return f"{place.text}:{place.line}" if place else ""

    def function(self, event: UserEvent) -> str:
        """The same of a program that does not know of tracing: where its call returns to, and which variable it is."""
        variable = self.trace.symbols.get((event.pid, event.arg0, "lock"))
        if variable:
            self.names[event.pid, event.arg0] = variable.symbol
        call = self.trace.symbols.get((event.pid, event.arg1, "call"))
        if call is None:
            return f"{event.arg1 & (1 << 64) - 1:#x}"
        in_object = f"{Path(call.object).name}+{call.offset:#x}"
        where = f"{Path(call.file).name}:{call.line}" if call.file else in_object
        return f"{call.symbol} ({where})" if call.symbol else in_object

    def held_at(self, tid: int, order: int) -> list[Hold]:
        """What a thread holds at an event of its own: itself, and the tasks that it runs."""
        of_tasks = [hold for held in self.open.values() for hold in held if hold.task in self.turns.running[order]]
        own = [hold for hold in self.open.get(tid, []) if hold.task is None]
        return sorted([*own, *of_tasks], key=lambda hold: hold.start)

    def locks_of(self, tid: int, order: int) -> list[Hold]:
        """What of it is no semaphore."""
        return [hold for hold in self.held_at(tid, order) if hold.kind != SEMAPHORE]

    def drop(self, hold: Hold, at: At) -> None:
        """Nobody knows of a hold any more."""
        hold.dropped = at
        self.open[hold.tid].remove(hold)
        self.steps.append(Step(at, None, hold, False))

    def interrupt(self, what: Task | Loss, order: int) -> None:
        """The memory of a process is replaced, with all locks; or events are lost, and what is held is not known."""
        # Before the first event that comes after it.
        at = At(what.ts, order - 1)
        for hold in [hold for held in self.open.values() for hold in held if concerns(what, hold.tid, hold.lock)]:
            self.drop(hold, at)
        for tid, wait in list(self.waiting.items()):
            if concerns(what, tid, wait.lock):
                wait.cut = what.ts
                wait.executed, wait.lost = isinstance(what, Task), isinstance(what, Loss)
                self.steps.append(Step(at, wait, None, False))
                del self.waiting[tid]

    def leaves(self, event: UserEvent, order: int) -> None:
        """A thread that runs another task does not wait for what that waited for."""
        wait = self.waiting.get(event.tid)
        if wait and wait.task and wait.task not in self.turns.running[order]:
            wait.cut, wait.lost = event.ts, True
            self.steps.append(Step(At(event.ts, order), wait, None, False))
            del self.waiting[event.tid]

    def waits_for(self, event: UserEvent, at: At) -> None:
        depth = len(self.locks_of(event.tid, at.order))
        kind, lock = kind_of(event), (event.pid, event.arg0)
        wait = Wait(event.tid, lock, kind, event.site, self.place(event), at, depth)
        wait.task = self.turns.task(at.order)
        self.waiting[event.tid] = wait
        if kind == SEMAPHORE:
            self.semaphores.append(wait)
            return
        self.waits.append(wait)
        self.steps.append(Step(at, wait, None, True))

    def stops_waiting(self, event: UserEvent, at: At) -> Wait | None:
        wait = self.waiting.get(event.tid)
        if wait is None or wait.lock != (event.pid, event.arg0):
            return None
        wait.end = at
        if wait.kind != SEMAPHORE:
            self.steps.append(Step(at, wait, None, False))
        return self.waiting.pop(event.tid)

    def acquires(self, event: UserEvent, at: At) -> None:
        wait = self.stops_waiting(event, at)
        if wait:
            wait.acquired = True
        self.holds_from(event, at, wait.start.ts if wait else at.ts, condition=False)

    def wakes(self, event: UserEvent, at: At) -> None:
        waited = self.in_condition.pop(event.tid, None)
        if waited:
            waited[1] = at.ts
        self.holds_from(event, at, at.ts, condition=True)

    def holds_from(self, event: UserEvent, at: At, since: int, condition: bool) -> None:
        held = self.open.setdefault(event.tid, [])
        lock, place = (event.pid, event.arg0), self.place(event)
        kind = "mutex" if condition else kind_of(event)
        mine = self.held_at(event.tid, at.order)
        for before in [hold for hold in mine if hold.lock == lock and not kind.endswith("-read")]:
            # Only a shared lock can be acquired twice: a release is missing.
            self.drop(before, at)
        wait_ns, place_id = at.ts - since, event.arg1
        before = self.locks_of(event.tid, at.order)
        hold = Hold(event.tid, lock, kind, event.site, place, at, len(before), wait_ns, condition, before, place_id)
        hold.task = self.turns.task(at.order)
        held.append(hold)
        self.holds.append(hold)
        self.steps.append(Step(at, None, hold, True))

    def releases(self, event: UserEvent, at: At) -> None:
        self.ends(event, at, condition=False)

    def waits_for_condition(self, event: UserEvent, at: At) -> None:
        self.ends(event, at, condition=True)
        self.in_condition[event.tid] = [at.ts, None, event.tid, (event.pid, event.arg0)]
        self.conditions.append(self.in_condition[event.tid])

    def blocked_by(self, end: int) -> Iterator[tuple[int, int, int, str]]:
        """From when to when which thread waited for what, in words."""
        for wait in [*self.waits, *self.semaphores]:
            until = wait.end.ts if wait.end else wait.cut if wait.executed or wait.lost else end
            what = "semaphore" if wait.kind == SEMAPHORE else "lock"
            yield wait.start.ts, until, wait.tid, f"{what} {self.name(wait.lock)}"
        for start, until, tid, lock in self.conditions:
            yield start, until or end, tid, f"condition of {self.name(lock)}"

    def ends(self, event: UserEvent, at: At, condition: bool) -> None:
        lock = (event.pid, event.arg0)
        mine = [hold for hold in self.held_at(event.tid, at.order) if hold.lock == lock]
        # Another task of the thread may release it.
        mine = mine or [hold for hold in self.open.get(event.tid, []) if hold.lock == lock]
        if mine:
            mine[-1].end, mine[-1].ended_by = at, event.tid
            mine[-1].condition |= condition
            mine[-1].slice = "none" if condition else EXTENSIONS.get(event.arg2, "none")
            self.open[mine[-1].tid].remove(mine[-1])
            self.steps.append(Step(at, None, mine[-1], False))
        else:
            lock = (event.pid, event.arg0)
            self.strays.append((at, lock))
            if not any(hold.lock == lock for held in self.open.values() for hold in held):
                self.unseen.append((event.tid, event.ts))


def concerns(what: Task | Loss, tid: int, lock: Lock) -> bool:
    """Whether a thread's locks are not known any more after this."""
    if isinstance(what, Task):
        return what.pid == lock[0]
    if what.origin in ("ring", "shared-ring"):
        return what.pid == lock[0] and what.tid in (-1, tid)
    return what.origin == "agent"


def kind_of(event: UserEvent) -> str:
    """`lock.rwlock_read_wait` is of the kind `rwlock-read`."""
    return event.event.removeprefix("lock.").rsplit("_", 1)[0].replace("_", "-")


# By the third argument of a release.
EXTENSIONS = {1: "impossible", 2: "pending", 3: "granted", 4: "over"}

HANDLERS = {
    "lock_wait": Locks.waits_for,
    "lock_acquire": Locks.acquires,
    "lock_release": Locks.releases,
    "lock_abandon": Locks.stops_waiting,
    "cond_wait": Locks.waits_for_condition,
    "cond_wake": Locks.wakes,
}
