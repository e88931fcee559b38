"""`async_tasks` and `async_switches` as they should be: what tasks said of themselves, and what their threads did then."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Iterator, NamedTuple

from chains import Chains
from compare import Anything, Expected, OneOf, Table, Wanted
from futexes import last_moments
from holds import EXACT, LOWER_BOUND, agent, decomposition, mark, occupant, sums_to
from ledger import ThreadTime
from locks import SEMAPHORE, Locks
from tables import Trace, UserEvent
from threads import Parts, Stretch, Threads

OUTCOMES = ("pending", "ready", "panic")
# Polls of a thread that are remembered.
REMEMBERED = 256
CENSORED = "censored"
# Tasks from this number on are told of by hooks, which tell of no wake-up.
HOOKED = 10**15

# A process, a registration of it, a number.
Id = tuple[int, int, int]


class Said(NamedTuple):
    """An event of a task: its place among all events, when, by whom, and in the poll of which task that thread was."""

    at: int
    ts: int
    tid: int
    kind: str
    word: int
    inside: int | None
    # Where its site is, if it tells no place.
    site: str | None


@dataclass
class Poll:
    """One poll."""

    id: Id
    begin: Said
    end: int
    how: str
    depth: int
    # It ends with the thread's next fiber.
    is_fiber: bool = False
    # The place of its end among all events; none without one.
    ended_at: int | None = None
    # The task's name and place, by the event with which it began.
    name: str = ""
    place: str = ""

    @property
    def tid(self) -> int:
        """The thread."""
        return self.begin.tid


@dataclass
class Life:
    """One task."""

    id: Id
    said: list[Said]
    end: int
    how: str
    polls: list[Poll] = field(default_factory=list)

    @property
    def is_hooked(self) -> bool:
        """Nobody tells of its wake-ups."""
        return self.id[2] >= HOOKED


class Tasks:
    """All tasks and polls of a trace."""

    def __init__(
        self, trace: Trace, threads: Threads, locks: Locks, ledger: ThreadTime, chains: Chains
    ) -> None:
        self.trace, self.threads, self.ledger, self.chains = trace, threads, ledger, chains
        self.locks = locks
        self.last = trace.end()
        self.gone = last_moments(trace)
        self.said: dict[Id, list[Said]] = {}
        self.polls: list[Poll] = []
        # Where the events of a thread were lost, or a fiber was left in a poll, nothing of its process can be judged.
        self.deaf = {loss.pid for loss in trace.losses if loss.origin not in ("kernel", "kernel-skipped", "child")}
        self.listen()
        self.lives = [life for id in self.said for life in self.split(id)]

    def listen(self) -> None:
        """Sorts events by task, and pairs the begins and ends of polls, thread by thread."""
        open_in: dict[int, list[Poll]] = {}
        for at, event in enumerate(self.trace.events):
            site = self.trace.sites.get(event.site)
            if not site or not site.kind.startswith("task_"):
                continue
            id, mine = (event.pid, site.source, event.arg0), open_in.setdefault(event.tid, [])
            self.leave(mine, event)
            kind = site.kind.removeprefix("task_")
            here = None if ", " in site.args else f"{site.file}:{site.line}"
            said = Said(at, event.ts, event.tid, kind, event.arg1 or 0, mine[-1].id[2] if mine else None, here)
            if kind == "switch":
                fiber = max((i for i, poll in enumerate(mine) if poll.is_fiber), default=len(mine))
                for within in mine[fiber + 1 :]:
                    # Whether it goes on with the fiber, and where, is not told.
                    self.deaf.add(within.id[0])
                    mine.remove(within)
                if mine and mine[-1].is_fiber:
                    left = mine.pop()
                    left.end, left.how, left.ended_at = event.ts, "pending", at
                    self.said[left.id].append(said._replace(kind="polled", word=0))
                if event.arg0 == 0:
                    continue
                said = said._replace(kind="poll")
            self.said.setdefault(id, []).append(said)
            if said.kind == "poll":
                poll = Poll(id, said, self.last, "unended", len(mine), kind == "switch")
                mine.append(poll)
                self.polls.append(poll)
            elif said.kind == "polled":
                poll = next((poll for poll in reversed(mine) if poll.id == id), None)
                if poll:
                    mine.remove(poll)
                    outcome = event.arg1 if event.arg1 in (1, 2) else 0
                    poll.end, poll.how, poll.ended_at = event.ts, OUTCOMES[outcome], at
        for mine in open_in.values():
            self.leave(mine, None)

    def leave(self, mine: list[Poll], event: UserEvent | None) -> None:
        """A thread that has ended since, or executed another program, is in no poll any more."""
        for poll in list(mine):
            ends = [ts for ts in self.gone.get(poll.tid, []) if ts >= poll.begin.ts]
            if ends and (event is None or min(ends) <= event.ts):
                poll.end = min(ends)
                mine.remove(poll)

    def over(self, pid: int, ts: int) -> int:
        """When the process ended, or what it executed before; or the recording."""
        execs = [t.ts for t in self.trace.tasks if t.kind == "exec" and t.pid == pid and t.ts >= ts]
        lines = [line for tid, line in self.threads.timelines.items() if self.threads.pids[tid] == pid]
        exits = [max(line.stretches[-1].end for line in lines)] if all(line.ended for line in lines) else []
        return min([*execs, *exits, self.last])

    def split(self, id: Id) -> Iterator[Life]:
        """The lives of what has one number, one after the other."""
        polls = [poll for poll in self.polls if poll.id == id]
        life: Life | None = None
        for said in self.said[id]:
            if life and said.kind == "new":
                life.end = said.ts
                yield life
                life = None
            if not life:
                if said.kind not in ("new", "poll"):
                    continue
                life = Life(id, [], self.over(id[0], said.ts), "unended")
            life.said.append(said)
            life.polls += [poll for poll in polls if poll.begin is said]
            if said.kind == "drop" or said.kind == "polled" and said.word in (1, 2):
                life.end = said.ts
                life.how = "dropped" if said.kind == "drop" else OUTCOMES[said.word]
                yield life
                life = None
        if life:
            yield life

    def name(self, id: Id, said: Said) -> tuple[str, str]:
        """Name and place by the number that an event tells."""
        if said.site is not None:
            return "", said.site
        name = self.trace.names.get((id[1], said.word >> 32 & 0xFFFFFFFF, "name"))
        place = self.trace.names.get((id[1], said.word & 0xFFFFFFFF, "place"))
        return name.text if name else "", f"{place.text}:{place.line}" if place else ""

    def tables(self) -> tuple[Table, Table]:
        """Both."""
        lives, polls = [], []
        for life in self.lives:
            for poll in life.polls:
                poll.name, poll.place = self.name(life.id, life.said[0])
        for life in self.lives:
            rows = [self.poll(life, poll) for poll in life.polls]
            deaf = life.id[0] in self.deaf
            polls += [Expected(r, deaf, [sums_to(r["dur"])]) for r in rows]
            row = self.life(life, rows)
            lives.append(Expected(row, deaf, [sums_to(row["polled_ns"])]))
        return (
            Table("async_tasks", ("ts", "pid", "task"), lives, lambda row: row["pid"] in self.deaf),
            Table("async_switches", ("ts", "tid", "task"), polls, lambda row: row["pid"] in self.deaf),
        )

    def life(self, life: Life, polls: list[dict[str, Wanted]]) -> dict[str, Wanted]:
        """The row of a task, whose polls have these."""
        first, ns = life.said[0], self.states(life)
        made = first.kind == "new"
        total: Counter[str] = Counter()
        doubtful = 0
        for poll in life.polls:
            parts = self.threads.parts(poll.tid, poll.begin.ts, poll.end)
            total.update(parts.ns)
            doubtful += parts.doubtful_ns
        name, place = self.name(life.id, first)
        return {
            "ts": first.ts,
            "dur": life.end - first.ts,
            "pid": life.id[0],
            "task": life.id[2],
            "name": name,
            "place": place,
            "maker_tid": first.tid if made else None,
            "maker_comm": self.threads.named(first.tid) if made else None,
            "parent": first.inside if made else None,
            "end": life.how,
            **{f"{state}_ns": ns[state] for state in ("unstarted", "queued", "waiting", "polled", "unknown")},
            **decomposition(Parts(total, doubtful)),
            **{name: self.counted([poll[name] for poll in polls]) for name in ("counter0", "counter1")},
            "polls": len(life.polls),
            "wakes": sum(said.kind == "wake" for said in life.said),
            "longest_poll_ns": max((poll.end - poll.begin.ts for poll in life.polls), default=0),
            "longest_queue_ns": max((poll.begin.ts - since for poll in life.polls
                                     if (since := self.queued(life, poll)[0]) is not None), default=0),
            "mark": self.mark(life, made, [poll["mark"] for poll in polls]),
        }

    @staticmethod
    def counted(counts: list[Wanted]) -> int | None:
        """What a counter counted in all polls, where that is known of each."""
        known = [count for count in counts if isinstance(count, int)]
        return sum(known) if known and len(known) == len(counts) else None

    def mark(self, life: Life, made: bool, marks: list[Wanted]) -> Wanted:
        """The worst of its polls' marks, and of what is not known of its begin and its end."""
        if life.how == "unended":
            return CENSORED
        if not made or LOWER_BOUND in marks or life.is_hooked:
            return LOWER_BOUND
        sure = all(one == EXACT for one in marks) and not self.trace.losses
        return EXACT if sure else OneOf((EXACT, LOWER_BOUND))

    def states(self, life: Life) -> Counter[str]:
        """How long it was in each state: at each moment, what the events before it say."""
        ns: Counter[str] = Counter()
        moments = [*life.said, None]
        for before, after in zip(moments, moments[1:]):
            end = after.ts if after else life.end
            ns[self.state(life, before.at)] += end - before.ts
        for poll in life.polls:
            if poll.how == "unended" and poll.end < life.end:
                ns["polled"] -= life.end - poll.end
                ns["unknown" if life.is_hooked else "waiting"] += life.end - poll.end
        return ns

    def state(self, life: Life, at: int) -> str:
        """What a task is in just after an event."""
        until = [said for said in life.said if said.at <= at]
        begun = [poll for poll in life.polls if poll.begin.at <= at]
        if not begun:
            woken = any(said.kind == "wake" for said in until)
            return "queued" if woken else "unknown" if life.is_hooked else "unstarted"
        if sum(said.kind == "polled" for said in until) < len(begun):
            return "polled"
        since = [said.kind for said in until if said.at > begun[-1].begin.at]
        return "queued" if "wake" in since else "unknown" if life.is_hooked else "waiting"

    def queued(self, life: Life, poll: Poll) -> tuple[int | None, Said | None]:
        """Since when a task was queued that is polled now, and the event by which it was woken."""
        before = [other for other in life.polls if other.begin.at < poll.begin.at]
        begun = before[-1].begin.at if before else -1
        wakes = [s for s in life.said if s.kind == "wake" and begun < s.at < poll.begin.at]
        if not wakes:
            return None, None
        return max(wakes[0].ts, before[-1].end if before else 0), wakes[0]

    def poll(self, life: Life, poll: Poll) -> dict[str, Wanted]:
        """The row of a poll."""
        tid, start, end = poll.tid, poll.begin.ts, poll.end
        parts = self.threads.parts(tid, start, end)
        preempted = self.threads.occupants(tid, start, end, ("preempted",))
        sure = not self.trace.losses or poll.how == "unended"
        how = CENSORED if poll.how == "unended" else mark(parts, preempted)
        return {
            "ts": start,
            "dur": end - start,
            "pid": poll.id[0],
            "tid": tid,
            "comm": self.threads.named(tid),
            "task": poll.id[2],
            "name": poll.name,
            "place": poll.place,
            "depth": poll.depth,
            "end": poll.how,
            **decomposition(parts),
            **self.threads.counts.between(tid, start, end),
            **self.blocked(tid, start, end, parts),
            **occupant("preemptor", preempted, self.threads),
            "agent_ns": agent(self.threads.occupants(tid, start, end), self.threads),
            **self.held(poll),
            **self.wait(life, poll),
            "mark": how if sure else OneOf((EXACT, LOWER_BOUND)),
        }

    def blocked(self, tid: int, start: int, end: int, parts: Parts) -> dict[str, Wanted]:
        """What it was blocked for longest, and where in the code."""
        columns = ("blocked_for", "blocked_for_ns", "blocked_stack")
        if parts.doubtful_ns or parts.doubtful_edge:
            return dict.fromkeys(columns, Anything())
        sleeps: list[tuple[int, str, int | None]] = []
        before: Stretch | None = None
        for stretch in self.threads.stretches(tid, start, end):
            if stretch.doing == "blocked":
                why = next(self.ledger.reasons(tid, stretch, before))[0]
                if before and before.doing == "blocked":
                    # It was moved to another CPU meanwhile.
                    ns, why, stack = sleeps.pop()
                    sleeps.append((ns + stretch.end - stretch.start, why, stack))
                else:
                    chains = self.chains.left.get(tid, [])
                    here = [c for c in chains if c.ts < stretch.end and c.ts + c.dur > stretch.start]
                    stacks = [c.stack for c in here if c.stack is not None]
                    sleeps.append((stretch.end - stretch.start, why, stacks[-1] if stacks else None))
            before = stretch
        if not sleeps:
            return dict.fromkeys(columns)
        ns, why, stack = max(sleeps, key=lambda sleep: sleep[0])
        return {"blocked_for": why, "blocked_for_ns": ns, "blocked_stack": stack}

    def held(self, poll: Poll) -> dict[str, Wanted]:
        """What its thread acquired in it and had not given back at its end."""
        at = poll.ended_at
        ends = [(hold, hold.end or hold.dropped) for hold in self.locks.holds if hold.tid == poll.tid]
        held = [] if at is None else [
            hold for hold, end in ends
            if hold.kind != SEMAPHORE and poll.begin.at < hold.start.order < at and (end is None or end.order >= at)
        ]
        first = held[0] if held else None
        return {
            "held": len(held),
            "held_lock": first and self.locks.name(first.lock),
            "held_place": first and first.place,
        }

    def wait(self, life: Life, poll: Poll) -> dict[str, Wanted]:
        """Who woke the task for it, and what the thread did until then."""
        since, woken = self.queued(life, poll)
        if since is None or woken is None:
            columns = ["queued_ns", "waker_tid", "waker_comm", "waker_task", "queued_dispatch_ns", "behind_ns"]
            return dict.fromkeys([*columns, "behind_polls", "behind_task", "behind_name", "behind_task_ns"])
        start, tid = poll.begin.ts, poll.tid
        mine = [p for p in self.polls if p.tid == tid and p.begin.at < poll.begin.at]
        outer = [p for p in mine if p.end > start or p.how == "unended"]
        # Behind the poll before, or in the outer one, it can only have waited for work.
        edges = [p.begin.ts for p in outer[-1:]] or [p.end for p in mine if p.depth == 0][-1:]
        idle = max([since, *edges])
        slept = [d for d in self.threads.timelines[tid].delays if d.cause == "woken" and d.end <= start]
        dispatch = max(slept[-1].end - max(slept[-1].start, idle), 0) if slept else 0
        doubt = self.threads.parts(tid, idle, start)
        return {
            "queued_ns": start - since,
            "waker_tid": woken.tid,
            "waker_comm": self.threads.named(woken.tid),
            "waker_task": woken.inside,
            "queued_dispatch_ns": Anything() if doubt.doubtful_ns or doubt.doubtful_edge else dispatch,
            **self.behind(poll, since, mine),
        }

    def behind(self, poll: Poll, since: int, mine: list[Poll]) -> dict[str, Wanted]:
        """What its thread polled while it was queued."""
        if poll.depth:
            return dict.fromkeys(["behind_ns", "behind_polls", "behind_task", "behind_name", "behind_task_ns"])
        start = poll.begin.ts
        over = [p for p in mine if p.depth == 0 and p.end > since and p.end <= start]
        over = over[-REMEMBERED:]
        ns: Counter[Id] = Counter()
        for other in over:
            ns[other.id] += other.end - max(other.begin.ts, since)
        most = max(ns.values(), default=None)
        longest = [p for p in over if ns[p.id] == most]
        return {
            "behind_ns": ns.total(),
            "behind_polls": len(over),
            "behind_task": OneOf(tuple(p.id[2] for p in longest)) if longest else None,
            "behind_name": OneOf(tuple(p.name or p.place for p in longest)) if longest else None,
            "behind_task_ns": most,
        }
