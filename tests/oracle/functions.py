"""`functions` as it should be: the calls of each function in each thread, and the time inside of it.

A list of the calls in which the thread is, made anew from its events; and of each time between two events the functions
that it was in, whose parts are asked of the thread's timeline.
"""

from collections import Counter, defaultdict
from typing import NamedTuple

from compare import Expected, OneOf, Table, Within
from cpus import Shares
from holds import agent
from tables import Site, Trace, UserEvent
from threads import Threads

KINDS = ("function_enter", "function_exit", "function_called")
# The columns of each part of a thread's time.
COLUMNS = {
    "running": ["running"],
    "preempted": ["preempted", "dispatch"],
    "blocked": ["blocked"],
    "interrupts": ["hardirq", "softirq", "vector"],
    "unexplained": ["unexplained"],
}
UNKNOWN = ("(unknown)", None, "")
# An end without a begin, a begin without an end.
EDGES = ("begun_before", "unfinished", "left")


class Call(NamedTuple):
    function: tuple
    # Height in the stack, where it returns to, where it was told; nothing of a function with a site of its own.
    frame: tuple[int, int, int] | None


def left(call: Call, other: Call, begins: bool) -> bool:
    """Whether an event of another call, its begin or its end, shows that this one was left without an end."""
    if not call.frame or not other.frame or call.frame[0] > other.frame[0]:
        return False
    again = begins and call.function == other.function and call.frame[2] == other.frame[2]
    return call.frame[0] < other.frame[0] or call.frame[1] != other.frame[1] or again


class Calls:
    """What one thread called."""

    def __init__(self) -> None:
        self.open: list[Call] = []
        # Times: from, to, the function to which it belongs, and all that it was in.
        self.times: list[tuple[int, int, tuple, set]] = []
        self.counts: defaultdict[tuple, Counter] = defaultdict(Counter)
        self.first: dict[tuple, int] = {}
        self.doubtful: set[tuple] = set()
        self.last = 0

    def settle(self, now: int, gone: int) -> None:
        """The time since the last event, in which the innermost so many calls were left."""
        if self.open:
            kept = self.open[: len(self.open) - gone]
            inside = {call.function for call in kept}
            if gone:
                self.first.setdefault(UNKNOWN, self.last)
                self.doubtful |= {call.function for call in self.open[len(kept) :] + kept[-1:]}
                for call in self.open[len(kept) :]:
                    self.counts[call.function]["left"] += 1
                inside.add(UNKNOWN)
                self.times.append((self.last, now, UNKNOWN, inside))
            else:
                self.times.append((self.last, now, self.open[-1].function, inside))
            self.open = kept
        self.last = now

    def event(self, ts: int, call: Call, begins: bool) -> None:
        self.first.setdefault(call.function, ts)
        if not begins and call.frame and call.frame[2] == 1:
            return self.told_late(ts, call)
        rest = list(self.open)
        while rest and left(rest[-1], call, begins):
            rest.pop()
        if begins:
            self.settle(ts, len(self.open) - len(rest))
            self.open.append(call)
            self.counts[call.function]["calls"] += 1
            return
        known = any(other.function == call.function for other in rest)
        while known and rest[-1].function != call.function:
            rest.pop()
        self.settle(ts, len(self.open) - len(rest))
        if known:
            self.open.pop()
        else:
            self.counts[call.function]["begun_before"] += 1

    def entered(self, ts: int, function: tuple) -> None:
        """A call of which no end is ever told."""
        self.first.setdefault(function, ts)
        self.counts[function]["entered"] += 1

    def told_late(self, ts: int, call: Call) -> None:
        """An end that was told when the frame was gone, and tells its upper end."""
        height = call.frame[0] if call.frame else 0
        first = len(self.open)
        while first and (frame := self.open[first - 1].frame) and frame[0] <= height:
            first -= 1
        of_it = [i for i in range(first, len(self.open)) if self.open[i].function == call.function]
        if of_it:
            self.settle(ts, len(self.open) - 1 - of_it[0])
            self.open.pop()
            around = self.open[first:]
            for other in around:
                self.counts[other.function]["left"] += 1
            del self.open[first:]
            self.doubtful |= {other.function for other in around + self.open[-1:] if around}
        else:
            self.settle(ts, len(self.open) - first)
            self.counts[call.function]["begun_before"] += 1

    def end(self, ts: int) -> None:
        """Nothing more is known of the calls that are open."""
        self.settle(ts, 0)
        for call in self.open:
            self.counts[call.function]["unfinished"] += 1
        self.open = []


def call_of(event: UserEvent, site: Site) -> Call:
    """Which function an event is about, by name, address and place, and where it has its frame."""
    if not site.args.startswith("function:pointer"):
        return Call((event.event.split(".", 1)[1], None, f"{site.file}:{site.line}"), None)
    word = event.arg1 & (1 << 64) - 1
    return Call(("", event.arg0, ""), (word >> 21, word >> 11 & 0x3FF, word & 0x7FF))


def name_of(trace: Trace, pid: int, function: tuple) -> tuple[str, str]:
    """Name and place of a function."""
    name, address, place = function
    if address is None:
        return name, place
    symbol = trace.symbols.get((pid, address, "function"))
    if not symbol:
        return f"{address & (1 << 64) - 1:#x}", ""
    place = f"{symbol.file.rsplit('/')[-1]}:{symbol.line}" if symbol.file else ""
    plain = f"{symbol.object.rsplit('/')[-1]}+{symbol.offset:#x}"
    return symbol.symbol or plain, place


# Programs of which no time of a call follows.
HIDES_NOTHING = ("chain_switch", "chain_waking", "sample", "sleep", "throttle")


def table(trace: Trace, threads: Threads, end: int) -> Table:
    """The rows of all threads."""
    all_calls: defaultdict[int, Calls] = defaultdict(Calls)
    pids: dict[int, int] = {}
    kinds = {n: site for n, site in trace.sites.items() if site.kind in KINDS}
    what = [(e.ts, 2, e.tid, e) for e in trace.events if e.site in kinds]
    # A thread ends, replaces its memory, or has lost events.
    what += [(t.ts, 1, t.tid, None) for t in trace.tasks if t.kind in ("exit", "exec")]
    what += [(loss.ts, 0, loss.tid, None) for loss in trace.losses if loss.origin == "ring"]
    for ts, _, tid, event in sorted(what, key=lambda w: w[:2]):
        if event:
            pids[tid] = event.pid
            site = kinds[event.site]
            if site.kind == "function_called":
                all_calls[tid].entered(ts, call_of(event, site).function)
            else:
                all_calls[tid].event(ts, call_of(event, site), site.kind == "function_enter")
        elif tid in all_calls:
            all_calls[tid].end(ts)
    kernel = bool(trace.switches)
    expected = []
    for tid, calls in all_calls.items():
        calls.end(end)
        start = min(calls.first.values())
        losses = [loss for loss in trace.losses if loss.tid in (-1, tid) and loss.what not in HIDES_NOTHING]
        own: defaultdict[tuple, Counter] = defaultdict(Counter)
        total: defaultdict[tuple, Counter] = defaultdict(Counter)
        doubtful: Counter[tuple] = Counter()
        happened: defaultdict[tuple, list[tuple[int, int]]] = defaultdict(list)
        # Who had the CPU while the thread waited for it.
        shares: dict[str, defaultdict[tuple, Shares]] = {what: defaultdict(Shares) for what in ("total", "self")}
        for begin, until, owner, inside in calls.times:
            happened[owner].append((begin, until))
            parts = threads.parts(tid, begin, until) if kernel else None
            occupants = threads.occupants(tid, begin, until)
            for what, sums, functions in (("self", own, {owner}), ("total", total, inside)):
                for function in functions:
                    sums[function]["all"] += until - begin
                    sums[function] += parts.ns if parts else Counter()
                    shares[what][function].merge(occupants)
            for function in inside:
                doubtful[function] += parts.doubtful_ns if parts else 0
        for function, first in calls.first.items():
            counts, loose = calls.counts[function], doubtful[function]
            # Lost events may hide calls of it before the first known one; what the kernel hid then is not in its time, nor ever in
            # that of one that has none.
            untimed = counts["entered"] > 0 and not counts["calls"]
            lost = any(
                not untimed and loss.ts + loss.dur >= first
                if loss.origin.startswith("kernel")
                else loss.ts + loss.dur >= start
                for loss in losses
            )
            whole = threads.parts(tid, first, end)
            missing = kernel and not untimed and (whole.doubtful_ns > 0 or whole.doubtful_edge)
            name, place = name_of(trace, pids[tid], function)
            values: dict = {
                "tid": tid,
                "address": function[1],
                "function": name,
                "ts": first,
                "pid": pids[tid],
                "comm": OneOf(tuple(threads.comms[tid])),
                "place": place,
                **{what: counts[what] for what in ("calls", "unfinished", "left", "begun_before", "entered")},
                **threads.counts.within(tid, happened[function], kernel),
            }
            for what, sums in (("total", total), ("self", own)):
                values[f"{what}_ns"] = sums[function]["all"]
                values[f"{what}_agent_ns"] = agent(shares[what][function], threads) if kernel else None
                for column, parts_of in COLUMNS.items():
                    ns = sum(sums[function][part] for part in parts_of)
                    wanted = Within(max(0, ns - loose), ns + loose) if loose else ns
                    values[f"{what}_{column}_ns"] = wanted if kernel else None
            edge = any(counts[what] for what in EDGES)
            mark = {"censored"} if edge else {"lower bound"} if lost or function in calls.doubtful else {"exact"}
            mark |= {"lower bound"} if missing and not edge else set()
            expected.append(Expected({**values, "mark": OneOf(tuple(mark))}))
    return Table("functions", ("tid", "address", "function"), expected)
