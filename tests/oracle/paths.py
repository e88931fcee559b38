"""`requests` and `critical_path` as they should be.

From the top down: the path of a thread in a time is what it did then; where it slept, the path of whoever woke it in that
part of the time. The path of a task is that of the threads that polled it; before it was woken, of whoever woke it; and then
until its poll, of the thread that polls it. (The analysis goes back in time, with a list of waits.)
"""

import json
import re
from bisect import bisect_left, bisect_right, insort
from itertools import groupby, pairwise
from typing import Callable, Iterator, NamedTuple

from compare import Anything, Expected, OneOf, Table, Wanted, Within
from cpus import touched
from holds import EXACT, LOWER_BOUND, agent, decomposition
from ledger import ThreadTime
from tables import Irq, Probe, Trace, UserEvent, Waking
from tasks import Life, Poll, Said, Tasks
from threads import IRQ_PARTS, OF_TASKS, UNSEEN, WAITS, Stretch, Threads
from turns import Turns

# Requests of a kind whose path is stored: those that were among so many slowest when they ended.
SLOWEST = 100
# A softirq that begins so soon after an interrupt follows it.
FOLLOWS_NS = 2_000
KINDS = ("running", "preempted", "dispatch", "interrupt", "timer", "device", "outside", "unknown")


class Doubt(Exception):
    """Records are missing on the way."""


class Cause(NamedTuple):
    """What begins a reaction and is no event: when, and whose waking it is, if it is one."""

    ts: int
    pid: int
    tid: int


class Request(NamedTuple):
    """From its begin to its end."""

    kind: str
    key: int | None
    begin: UserEvent | Probe | Cause
    end: UserEvent | Probe
    # Since when a loss may have hidden what it would have begun with; none: only since its begin.
    since: int | None = None


class Piece(NamedTuple):
    """Some of a path."""

    start: int
    end: int
    depth: int
    tid: int
    kind: str
    # Who it may be: names and numbers.
    culprits: tuple[tuple[str | None, int | None], ...]
    wait: str | None
    waiter: int | None
    # Who woke it may have been an interrupt without a record.
    loose: bool = False

    @property
    def unsure(self) -> bool:
        """Some of what was done is not known."""
        return self.kind == "unknown" or self.loose


NOBODY = ((None, None),)


class Paths:
    """Who woke whom, and what is on a path because of that."""

    def __init__(self, trace: Trace, threads: Threads, ledger: ThreadTime, tasks: Tasks) -> None:
        self.threads, self.ledger, self.tasks = threads, ledger, tasks
        self.place = {id(event): at for at, event in enumerate(trace.events)}
        self.wakings: dict[tuple[int, int], Waking] = {}
        for waking in trace.wakings:
            self.wakings.setdefault((waking.tid, waking.ts), waking)
        # Before the first of them, whoever wakes may be an interrupt.
        self.interrupts_from = trace.irqs[0].ts if trace.irqs else None
        self.own = {cpu: self.delivered(irqs) for cpu, irqs in threads.irqs.items()}

    def delivered(self, irqs: list[Irq]) -> list[bool]:
        """Of each interrupt of a CPU, whether it is a packet that its thread delivers itself."""
        own: list[bool] = []
        interrupted = -1 << 62
        for at, irq in enumerate(irqs):
            before = [(i, o) for i, o in zip(irqs[max(0, at - 16) : at], own[max(0, at - 16) :])]
            ended = [i.ts + i.dur for i, o in before if not o and i.ts + i.dur <= irq.ts]
            interrupted = max([interrupted, *ended])
            inside = any(i.ts + i.dur > irq.ts for i, _ in before)
            packet = irq.kind == "soft" and irq.name == "NET_RX" and irq.tid != 0
            own.append(packet and not inside and irq.ts - interrupted > FOLLOWS_NS)
        return own

    def interrupt(self, waking: Waking) -> tuple[Irq, bool] | None:
        """The interrupt in which it was done, the innermost one, and whether its thread did it itself."""
        irqs = self.threads.irqs.get(waking.cpu, [])
        upto = bisect_left(self.threads.irq_starts.get(waking.cpu, []), waking.ts)
        for at in range(upto - 1, max(upto - 64, -1), -1):
            if irqs[at].ts + irqs[at].dur > waking.ts:
                return irqs[at], self.own[waking.cpu][at]
        return None

    def asleep(self, tid: int, sleep: Stretch, whole: Stretch, what: str, depth: int) -> Iterator[Piece]:
        """The path of a sleep, of which `sleep` is looked at."""
        sure = self.interrupts_from is not None and self.interrupts_from < whole.end
        for piece in self.woken(tid, sleep, whole, what, depth):
            yield piece if sure else piece._replace(loose=True)

    def woken(self, tid: int, sleep: Stretch, whole: Stretch, what: str, depth: int) -> Iterator[Piece]:
        """What was done meanwhile by whoever woke it."""

        def leaf(kind: str, name: str | None, number: int | None) -> Piece:
            return Piece(sleep.start, sleep.end, depth, tid, kind, ((name, number),), what, tid)

        waking = self.wakings.get((tid, whole.end)) if sleep.end == whole.end else None
        if waking is None:
            raise Doubt
        found = self.interrupt(waking)
        if found and not found[1]:
            irq = found[0]
            yield leaf("timer" if is_timer(irq) else "device", irq.name, None)
            return
        waker = waking.waker_tid
        if waker == 0:
            yield leaf("unknown", "an interrupt without a record", None)
        elif waker in self.threads.observed:
            yield from self.path(waker, sleep.start, sleep.end, depth + 1, what, tid)
        else:
            names = self.threads.comms.get(waker, {""})
            piece = leaf("outside", None, None)
            whose = tuple((name, waker) for name in names)
            yield piece._replace(culprits=whose, loose=found is not None)

    def path(
        self, tid: int, start: int, end: int, depth: int = 0, wait: str | None = None, waiter: int | None = None
    ) -> Iterator[Piece]:
        """What a thread did in a time, in order; of its sleeps, what others did."""
        timeline = self.threads.timelines.get(tid)
        if timeline is None:
            raise Doubt
        at = start
        born = timeline.stretches[0].start
        waking = self.wakings.get((tid, born))
        if start < born < end and waking and waking.is_new:
            before = Stretch(start, born, "blocked", -1, "", False)
            yield from self.asleep(tid, before, before, "its birth", depth)
            start = at = born
        for doing, run in groupby(self.runs(timeline.stretches, start, end), lambda run: run.doing):
            for whole in run:
                if whole.doubt or doing == "unknown" or whole.state == UNSEEN:
                    raise Doubt
                if whole.start > at:
                    raise Doubt
                cut = whole._replace(start=max(whole.start, start), end=min(whole.end, end))
                if cut.end > cut.start:
                    at = cut.end
                    yield from self.piece(tid, cut, whole, (depth, wait, waiter))
        if at < end:
            raise Doubt

    def runs(self, stretches: list[Stretch], start: int, end: int) -> Iterator[Stretch]:
        """Stretches that touch a time, uncut; a wait for a CPU is one, wherever the thread was moved meanwhile."""
        first = max(bisect_right(stretches, start, key=lambda s: s.start) - 1, 0)
        while first and stretches[first].doing in WAITS and stretches[first - 1].doing == stretches[first].doing:
            first -= 1
        last: Stretch | None = None
        for stretch in stretches[first:]:
            if last and stretch.doing in WAITS and stretch.doing == last.doing and last.end == stretch.start:
                last = last._replace(end=stretch.end, doubt=last.doubt or stretch.doubt)
                continue
            if last:
                yield last
            if stretch.start >= end:
                return
            last = stretch
        if last:
            yield last

    def piece(self, tid: int, cut: Stretch, whole: Stretch, around: tuple) -> Iterator[Piece]:
        """What a thread did in one stretch."""
        depth, wait, waiter = around
        if cut.doing == "running":
            at = cut.start
            for part, name, spent in self.threads.recorded_on_cpu(cut):
                kind = {"running": "running", "unexplained": "unknown"}.get(part, "interrupt")
                culprits = ((name, None),) if name else NOBODY
                yield Piece(at, at + spent, depth, tid, kind, culprits, wait, waiter)
                at += spent
        elif cut.doing in WAITS:
            if cut.end < whole.end:
                # The event that ends the request is later than the switch, by the error of the clock.
                raise Doubt
            shares = self.threads.occupants(tid, whole.start, whole.end)
            if shares.doubtful_ns:
                raise Doubt
            longest = max(shares.ns.values(), default=0)
            most = [who for who, ns in shares.ns.items() if ns == longest]
            culprits = tuple((name, who) for who in most for name in shares.comms[who]) or NOBODY
            yield Piece(cut.start, cut.end, depth, tid, cut.doing, culprits, wait, waiter)
        else:
            timeline = self.threads.timelines[tid]
            at = timeline.stretches.index(whole)
            before = timeline.stretches[at - 1] if at else None
            *_, (what, _) = self.ledger.reasons(tid, whole, before)
            yield from self.asleep(tid, cut, whole, what, depth)

    def inside(self, tid: int, at: int | None) -> Poll | None:
        """The innermost poll in which a thread is at a place among all events."""
        polls = [
            poll for poll in self.tasks.polls
            if at is not None and poll.tid == tid and poll.begin.at < at and (poll.ended_at is None or poll.ended_at > at)
        ]
        return polls[-1] if polls else None

    def followed(self, request: Request) -> Poll | None:
        """The poll in which a request of a task ends."""
        begin, end = (self.inside(event.tid, self.place.get(id(event))) for event in (request.begin, request.end))
        return begin and end

    def life(self, poll: Poll) -> Life:
        """The task that is polled."""
        return next(life for life in self.tasks.lives if any(poll is own for own in life.polls))

    def label(self, poll: Poll) -> str:
        """The name of the task, or where it was made."""
        life = self.life(poll)
        name, place = self.tasks.name(life.id, life.said[0])
        return name or place

    def task_path(self, last: Poll, start: int, end: int, depth: int, around: tuple) -> Iterator[Piece]:
        """What a task did until its poll `last`, and what was done for it."""
        life = self.life(last)
        before: Poll | None = None
        at = start
        for poll in life.polls:
            if poll.end > start:
                upto = min(poll.begin.ts, end)
                if upto > at:
                    yield from self.unpolled(life, before, poll, (at, upto), depth)
                at = max(at, upto)
                if min(poll.end, end) > at:
                    yield from self.path(poll.tid, at, min(poll.end, end), depth, *around)
                    at = min(poll.end, end)
            before = poll
            if poll is last:
                break
        if at < end:
            raise Doubt

    def unpolled(self, life: Life, before: Poll | None, poll: Poll, when: tuple, depth: int) -> Iterator[Piece]:
        """What was done for a task before a poll."""
        start, end = when
        name = self.label(poll)
        task = f"task {name}" if name else "task"
        _, woken = self.tasks.queued(life, poll)
        made = life.said[0] if before is None and life.said[0].kind == "new" else None
        if made and made.ts > start:
            upto = min(made.ts, end)
            yield from self.by(made, start, upto, depth, ("its birth", poll.tid))
            start = upto
        if woken is None and not made:
            culprit = (("no waking", None),)
            yield Piece(start, end, depth, poll.tid, "unknown", culprit, f"{task} pending", poll.tid)
            return
        if woken and woken.ts > start:
            upto = min(woken.ts, end)
            yield from self.by(woken, start, upto, depth, (f"{task} pending", poll.tid))
            start = upto
        state = "queued" if woken else "unstarted"
        others = [
            p for p in self.tasks.polls
            if p.tid == poll.tid and p.depth == 0 and p.ended_at is not None and p.ended_at < poll.begin.at
        ]
        edges = {edge for p in others for edge in (p.begin.ts, p.end) if start < edge < end}
        for since, upto in pairwise(sorted({start, end} | edges)):
            behind = next((f" behind {self.label(p)}" for p in others if p.begin.ts <= since and upto <= p.end), "")
            yield from self.path(poll.tid, since, upto, depth + 1, f"{task} {state}{behind}", poll.tid)

    def by(self, said: Said, start: int, end: int, depth: int, around: tuple) -> Iterator[Piece]:
        """The path of who made or woke a task."""
        poll = self.inside(said.tid, said.at)
        if end <= start:
            return
        if poll:
            yield from self.task_path(poll, start, end, depth + 1, around)
        else:
            yield from self.path(said.tid, start, end, depth + 1, *around)

    def of(self, request: Request) -> list[Piece] | None:
        """The path of a request, with neighbours that are the same as one; `None` where something is missing."""
        pieces: list[Piece] = []
        poll = self.followed(request)
        if poll and request.end.pid in self.tasks.deaf:
            return None
        start, end = request.begin.ts, request.end.ts
        path = self.task_path(poll, start, end, 0, (None, None)) if poll else self.path(request.end.tid, start, end)
        try:
            for piece in path:
                if pieces and piece[2:] == pieces[-1][2:] and piece.kind not in WAITS:
                    pieces[-1] = pieces[-1]._replace(end=piece.end)
                else:
                    pieces.append(piece)
        except Doubt:
            return None
        return pieces


def found(trace: Trace, turns: Turns) -> Iterator[Request]:
    """The requests of a trace, in the order of their ends."""
    counts = json.loads((trace.directory / "analysis.json").read_text()).get("requests", {})
    asked = counts.get("asked", [])
    named = {kind["begin"] for kind in asked if kind["end"] is None}
    pairs = [kind for kind in asked if kind["end"] is not None and "cause" not in kind]
    reactions = [kind for kind in asked if "cause" in kind]
    # Of each kind of reaction and key, the oldest cause without an answer.
    waiting: dict[tuple[int, int | None], Cause] = {}
    # Of each kind of reaction, the newest answer.
    answered: dict[int, int] = {}
    # Of each thread, what it is in: name, the kind that was asked for, the event; and what has a key.
    inside: dict[int, list[tuple[str, int | None, UserEvent, bool]]] = {}
    place = {id(event): at for at, event in enumerate(trace.events)}

    def newest(own: list, at: int, fits: Callable[[tuple], bool]) -> int | None:
        """Of what a thread is in: its own, and that of tasks that it runs; outside of fibers, that of others that it ran last, too."""
        mine = [i for i, entry in enumerate(own) if fits(entry)]
        here = [i for i in mine if turns.task(place[id(own[i][2])]) in (None, *turns.running[at])]
        return max(here or ([] if turns.fibers[at] else mine), default=None, key=lambda i: own[i][2].ts)
    keyed: dict[tuple[int, int], list[UserEvent]] = {}

    def key_of(event: UserEvent, key: str | None) -> int | None:
        if key is None:
            return None
        names = [arg.rsplit(":", 1)[0] for arg in trace.sites[event.site].args.split(", ")]
        return getattr(event, f"arg{names.index(key)}") or 0

    rows = [(loss.ts, 0, loss) for loss in trace.losses] + [(task.ts, 1, task) for task in trace.tasks]
    # Of calls that return at one time, on several CPUs, the table's order is theirs.
    order = {id(hit): place for place, hit in enumerate(trace.probes)}
    rows += [(call[1].ts, 2, call) for call in sorted(calls(trace), key=lambda call: order[id(call[1])])]
    # Of the kernel's at one time, causes come first.
    rows += [(seen, -1, (number, cause)) for number, kind in enumerate(reactions) for seen, cause in causes(trace, kind)]
    rows += [(event.ts, 3, event) for event in trace.events]
    for _, rank, row in sorted(rows, key=lambda row: row[:2]):
        if rank == -1:
            number, cause = row
            waiting.setdefault((number, None), cause)
            continue
        if rank == 2:
            yield Request(row[0].probe, None, *row)
            continue
        if rank < 2:
            for tid in list(inside):
                if rank == 0 and ends_all(row, tid, trace):
                    del inside[tid]
                elif rank == 1 and row.kind in ("exit", "exec") and row.tid == tid:
                    del inside[tid]
            continue
        site = trace.sites.get(row.site)
        if site is None:
            continue
        own, at_event = inside.setdefault(row.tid, []), place[id(row)]
        if site.kind in ("task_poll", "task_switch", "task_drop"):
            # The task brings along what it has begun.
            task = (row.pid, site.source, row.arg0)
            for theirs in inside.values():
                brought = [entry for entry in theirs if turns.task(place[id(entry[2])]) == task]
                for entry in brought:
                    theirs.remove(entry)
                    own.append(entry)
        if site.kind == "scope_begin":
            around = [entry for entry in own if turns.task(place[id(entry[2])]) in (None, *turns.running[at_event])]
            is_one = not any(scope for *_, scope in around) or row.event in named
            own.append((row.event, None if is_one else -1, row, True))
        elif site.kind == "scope_end":
            at = newest(own, at_event, lambda entry: entry[3] and entry[0] == row.event)
            if at is not None:
                name, kind, begin, _ = own.pop(at)
                if kind is None:
                    yield Request(name, None, begin, row)
        for number, kind in enumerate(reactions):
            answers = fits(kind["end"], row.event)
            if not answers and not (kind["cause"] == "event" and fits(kind["begin"], row.event)):
                continue
            key = key_of(row, kind["key"])
            if not answers:
                waiting.setdefault((number, key), row)
                continue
            # By order, a cause that was lost since the answer before would have counted.
            since = answered.get(number, 0) if kind["key"] is None else None
            answered[number] = row.ts
            if cause := waiting.pop((number, key), None):
                name = f"{kind['cause']}:{kind['begin']},event:{kind['end']}"
                yield Request(name, key, cause, row, since)
        for number, kind in enumerate(pairs):
            key = key_of(row, kind["key"]) if row.event in (kind["begin"], kind["end"]) else None
            name = f"{kind['begin']},{kind['end']}"
            if row.event == kind["begin"]:
                if kind["key"] is None:
                    own.append((name, number, row, False))
                else:
                    keyed.setdefault((number, key), []).append(row)
            elif row.event == kind["end"] and kind["key"] is None:
                at = newest(own, at_event, lambda entry: entry[:2] == (name, number))
                if at is not None:
                    yield Request(name, None, own.pop(at)[2], row)
            elif row.event == kind["end"] and (open_ := keyed.get((number, key))):
                same = [begin for begin in open_ if begin.pid == row.pid] or open_
                open_.remove(same[-1])
                yield Request(name, key, same[-1], row)


def fits(glob: str, name: str) -> bool:
    """Whether a name is meant: `*` for anything, `?` for one character."""
    words = {"*": ".*", "?": "."}
    return re.fullmatch("".join(words.get(c) or re.escape(c) for c in glob), name, re.DOTALL) is not None


def causes(trace: Trace, kind: dict) -> Iterator[tuple[int, Cause]]:
    """What may begin a reaction of a kind and is no event, with the time at which it is known."""
    if kind["cause"] == "irq":
        for irq in trace.irqs:
            if fits(kind["begin"], irq.name):
                yield irq.ts, Cause(irq.ts, 0, 0)
    if kind["cause"] not in ("timer", "packet", "wake"):
        return
    threads = {thread.tid: thread for thread in trace.threads}
    irqs: dict[int, list[Irq]] = {}
    for irq in trace.irqs:
        irqs.setdefault(irq.cpu, []).append(irq)
    for waking in trace.wakings:
        thread = threads.get(waking.tid)
        if thread is None or not thread.observed or not fits(kind["begin"], thread.name):
            continue
        if kind["cause"] == "wake":
            yield waking.ts, Cause(waking.ts, thread.pid, thread.tid)
            continue
        own = irqs.get(waking.cpu, [])
        upto = bisect_right(own, waking.ts, key=lambda irq: irq.ts)
        within = [irq for irq in own[max(0, upto - 64) : upto] if irq.ts + irq.dur > waking.ts]
        is_cause = is_timer if kind["cause"] == "timer" else brings_packets
        if within and is_cause(within[-1]):
            yield waking.ts, Cause(within[-1].ts, thread.pid, thread.tid)


def is_timer(irq: Irq) -> bool:
    """Whether it is the interrupt of a clock."""
    timer = {
        "vector": irq.name == "local_timer",
        "soft": irq.name in ("TIMER", "HRTIMER"),
        "hard": irq.name in ("timer", "rtc0") or irq.name.startswith("hpet"),
    }
    return timer[irq.kind]


def brings_packets(irq: Irq) -> bool:
    """Whether it is the softirq that hands packets to sockets."""
    return (irq.kind, irq.name) == ("soft", "NET_RX")


def calls(trace: Trace) -> Iterator[tuple[Probe, Probe]]:
    """Each call of a probed function with its return, and what lies between two marks: back from the end."""
    forgets = [loss.ts for loss in trace.losses if loss.origin == "agent" or loss.what.startswith("probe_")]
    ends = [(task.ts, task.tid) for task in trace.tasks if task.kind in ("exit", "exec")]
    for tid, hits in groupby(sorted(trace.probes, key=lambda hit: hit.tid), key=lambda hit: hit.tid):
        own, begun = list(hits), set()
        gone = sorted(forgets + [ts for ts, whose in ends if whose == tid])
        for at, end in enumerate(own):
            if end.kind != "end":
                continue
            place = end.stack_pointer
            for before in reversed(range(at)):
                hit = own[before]
                if bisect_right(gone, end.ts) > bisect_left(gone, hit.ts):
                    break
                same = (hit.probe, hit.stack_pointer) == (end.probe, place) and hit.kind == "begin"
                if same and before not in begun:
                    begun.add(before)
                    yield hit, end
                    break
                # Whoever is called above it, or returns there, has left it behind; so has who is called in its place.
                above = place is not None and hit.stack_pointer is not None and hit.stack_pointer > place
                if above or same and place is not None:
                    break


def ends_all(loss, tid: int, trace: Trace) -> bool:
    """Whether what a thread was in is not known after a loss."""
    if loss.origin == "agent":
        return True
    process = next((thread.pid for thread in trace.threads if thread.tid == tid), None)
    return loss.origin not in ("kernel", "child") and loss.pid == process and loss.tid in (-1, tid)


def sums(path: list[Piece] | None, agents: set[int] | None) -> dict[str, Wanted]:
    """What a path sums to, by kind, and what of it threads of the agent had the CPU."""
    if path is None:
        columns = [*(f"path_{kind}_ns" for kind in KINDS), "path_elsewhere_ns", "path_agent_ns", "path_pieces"]
        return dict.fromkeys(columns, Anything())
    ns: dict[str, Wanted] = {"path_agent_ns": None if agents is None else of_agents(path, agents)}
    ns |= {f"path_{kind}_ns": sum(p.end - p.start for p in path if p.kind == kind) for kind in KINDS}
    return ns | {"path_elsewhere_ns": sum(p.end - p.start for p in path if p.depth), "path_pieces": len(path)}


def of_agents(path: list[Piece], agents: set[int]) -> Wanted:
    """Of its waits for a CPU those in which one of these had it longest; where several had it as long, it may be any."""
    least = most = 0
    for piece in path:
        theirs = [tid in agents for _, tid in piece.culprits]
        if piece.kind in WAITS and any(theirs):
            most += piece.end - piece.start
            least += piece.end - piece.start if all(theirs) else 0
    return Within(least, most) if least < most else least


class Tiled(Table):
    """The pieces of each request follow one another without a hole, whatever is missing."""

    whole = True

    def differences(self, rows: list[dict]) -> list[str]:
        lines = super().differences(rows)
        for row, after in pairwise(sorted(rows, key=lambda row: (row["request"], row["ts"]))):
            tiles = row["ts"] + row["dur"] == after["ts"] or row["request"] != after["request"]
            if self.whole and not tiles:
                lines.append(f"{self.name}: a hole behind {row}")
        return lines

    def judges(self, row: dict) -> bool:
        return not self.tolerates(row)

    def narrowed(self, rows: list[dict], row: dict) -> tuple["Table", list[dict]]:
        table, same = super().narrowed(rows, row)
        table.whole = False
        return table, same


def tables(trace: Trace, threads: Threads, paths: Paths, turns: Turns) -> list[Table]:
    """Both tables."""
    waits_for_room = any(site.kind == "ring_wait" for site in trace.sites.values())
    slowest: dict[str, list[int]] = {}
    requests, pieces, unjudged = [], [], set()
    place = {id(event): at for at, event in enumerate(trace.events)}
    for number, request in enumerate(found(trace, turns)):
        start, end, tid = request.begin.ts, request.end.ts, request.end.tid
        dur = end - start
        longest = slowest.setdefault(request.kind, [])
        slow = len(longest) < SLOWEST or dur > longest[-SLOWEST]
        insort(longest, dur)
        path = paths.of(request) if trace.switches else None
        caused = isinstance(request.begin, Cause)
        stayed = tid == request.begin.tid and request.begin.pid == request.end.pid and not caused
        times, judged = [(tid, start, end)], True
        ends = place.get(id(request.begin)), place.get(id(request.end))
        if not caused and None not in ends and (task := turns.task(ends[0])) is not None:
            around = turns.running[ends[1]]
            stayed = task in around if around and request.begin.pid == request.end.pid else stayed
            times, judged = turns.times(*ends), turns.judged(ends[0])
        parts, shares = turns.parts(threads, times, dur), turns.occupants(threads, times)
        doubtful = parts.doubtful_ns or parts.doubtful_edge or shares.doubtful_ns
        unknown = any(piece.unsure for piece in path or ())
        if path is None and slow:
            unjudged.add(number)
        pids = (request.begin.pid, request.end.pid)
        since = start if request.since is None else request.since
        whole = [loss for loss in trace.losses if loss.origin != "child"]
        lost = [loss for loss in whole if loss.ts <= end and since <= loss.ts + loss.dur]
        reacts = ",event:" in request.kind
        lost = [loss for loss in lost if reacts or loss.origin in ("kernel", "agent") or loss.pid in pids]
        exact = not lost and not waits_for_room
        sure = path is not None and not waits_for_room and not (lost and paths.followed(request))
        values: dict[str, Wanted] = {
            "request": number,
            "ts": start,
            "dur": dur,
            "kind": request.kind,
            "key": request.key,
            "pid": request.begin.pid,
            "tid": request.begin.tid,
            "comm": threads.named(request.begin.tid) if request.begin.tid else "",
            "end_pid": request.end.pid,
            "end_tid": tid,
            "end_comm": threads.named(tid),
            **(decomposition(parts) if stayed else {f"{part}_ns": None for part in OF_TASKS}),
            "agent_ns": agent(shares, threads) if stayed else None,
            **sums(path, threads.agents),
            "path_mark": (LOWER_BOUND if unknown else EXACT) if sure else Anything(),
            "mark": EXACT if exact and not doubtful else Anything(),
        }
        if not judged:
            values |= {name: Anything() for name in (*decomposition(parts), "agent_ns", "mark")}
        requests.append(Expected(values))
        for piece in path if path and slow else ():
            names, numbers = zip(*piece.culprits)
            # Where interrupts are missing, any piece may be said to be a lower bound.
            judged_mark = sure and not touched(threads.missed, piece.start, piece.end)
            values = {
                "request": number,
                "ts": piece.start,
                "dur": piece.end - piece.start,
                "depth": piece.depth,
                "pid": threads.pids[piece.tid],
                "tid": piece.tid,
                "comm": threads.named(piece.tid),
                "kind": piece.kind,
                "culprit": OneOf(names),
                "culprit_tid": OneOf(numbers),
                "wait": piece.wait,
                "waiter_tid": piece.waiter,
                "mark": (LOWER_BOUND if piece.unsure else EXACT) if judged_mark else OneOf((EXACT, LOWER_BOUND)),
            }
            pieces.append(Expected(values))
    return [
        Table("requests", ("request",), requests),
        Tiled("critical_path", ("request", "ts"), pieces, tolerates=lambda row: row["request"] in unjudged),
    ]
