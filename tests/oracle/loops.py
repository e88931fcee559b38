"""`loop_peaks` and `loop_histogram` as they should be: passes of a loop that took long, and how many took how long."""

from dataclasses import dataclass

from compare import Anything, Expected, OneOf, Table, Wanted
from holds import mark
from tables import Trace, UserEvent
from threads import Threads

IRQS = ("hardirq", "softirq", "vector")
PARTS = ("interrupt", "preempted", "blocked", "tracer", "unexplained")
# An interruption may cost so much more than its record says.
UNRECORDED_NS = 50_000


@dataclass
class Loop:
    """A loop that a thread is in, or was in."""

    begin: UserEvent
    end: UserEvent | None = None
    # The peak whose pass comes with the next event.
    peak: Expected | None = None

    def own_ns(self) -> int:
        """What a pass takes by itself."""
        return max(self.begin.arg1, 0) * 1_000_000_000 // self.begin.arg2 if self.begin.arg2 > 0 else 0


def peaks(trace: Trace, threads: Threads) -> Table:
    """One row for each pass of a loop that a poller has found to be a gap."""
    loops: dict[int, Loop] = {}
    expected = []
    for event in trace.events:
        site = trace.sites.get(event.site)
        loop = loops.get(event.tid)
        if not site:
            continue
        if site.event == "npt.begin":
            loops[event.tid] = Loop(event)
        elif loop and site.event == "npt.end":
            loops.pop(event.tid)
        elif loop and site.event == "npt.peak" and loop.peak:
            loop.peak.values["pass"] = event.arg0
            loop.peak = None
        elif loop and site.kind == "poll_gap" and event.arg0 >= loop.begin.ts:
            loop.peak = peak(event, loop.own_ns(), threads)
            expected.append(loop.peak)
    return Table("loop_peaks", ("ts", "tid"), expected)


def peak(event: UserEvent, own_ns: int, threads: Threads) -> Expected:
    """The row of one, whose pass is not known yet."""
    start, end = event.arg0, event.arg1
    parts = threads.parts(event.tid, start, end)
    shares = threads.occupants(event.tid, start, end)
    own_ns = min(own_ns, parts.ns["running"], end - start)
    off = parts.ns["preempted"] + parts.ns["dispatch"]
    agents = threads.agents or set()
    tracer = min(sum(ns for tid, ns in shares.ns.items() if tid in agents), off)
    excess = {
        "interrupt": sum(parts.ns[part] for part in IRQS),
        "preempted": off - tracer,
        "blocked": parts.ns["blocked"],
        "tracer": tracer,
        "unexplained": parts.ns["unexplained"] + parts.ns["running"] - own_ns,
    }
    doubt = bool(parts.doubtful_ns or shares.doubtful_ns)
    values: dict[str, Wanted] = {
        "ts": start,
        "tid": event.tid,
        "dur": end - start,
        "pid": event.pid,
        "comm": threads.named(event.tid),
        "cpu": event.cpu,
        "pass": None,
        "own_ns": Anything() if doubt else own_ns,
        "excess_ns": Anything() if doubt else end - start - own_ns,
        **{f"{part}_ns": Anything() if doubt else ns for part, ns in excess.items()},
        **(dict.fromkeys(("cause", "culprit", "culprit_tid", "culprit_ns"), Anything()) if doubt else {}),
        "mark": mark(parts, shares),
    }
    if not doubt:
        values |= culprit(event.tid, start, end, excess, threads)
    return Expected(values, checks=[sums])


def sums(row: dict) -> str | None:
    """The parts sum to the excess, and that with the pass's own time to its length."""
    found = sum(row[f"{part}_ns"] for part in PARTS)
    if found != row["excess_ns"] or row["own_ns"] + row["excess_ns"] != row["dur"]:
        return f"its parts sum to {found}: {row}"
    return None


def culprit(tid: int, start: int, end: int, excess: dict[str, int], threads: Threads) -> dict[str, Wanted]:
    """Which part was largest, and who or what had most of it."""
    recorded = {part: ns for part, ns in excess.items() if part != "unexplained" and ns > 0}
    nobody: dict[str, Wanted] = {"culprit": None, "culprit_tid": None, "culprit_ns": None}
    if not recorded or excess["unexplained"] > max(sum(recorded.values()), UNRECORDED_NS):
        return {"cause": "unexplained", **nobody}
    most = max(recorded.values())
    causes = [part for part, ns in recorded.items() if ns == most]
    if len(causes) > 1:
        return {"cause": OneOf(tuple(causes)), **dict.fromkeys(nobody, Anything())}
    [cause] = causes
    if cause == "blocked":
        return {"cause": cause, **nobody}
    had: dict[tuple, int] = {}
    if cause == "interrupt":
        for stretch in threads.stretches(tid, start, end):
            for part, name, ns in threads.on_cpu(stretch) if stretch.doing == "running" else ():
                if part in IRQS:
                    had[part, name] = had.get((part, name), 0) + ns
        return {"cause": cause} | named(had, {who: (who[1],) for who in had}, None)
    shares = threads.occupants(tid, start, end)
    agents = threads.agents or set()
    had = {(t,): min(ns, most) for t, ns in shares.ns.items() if (t in agents) == (cause == "tracer")}
    names = {who: tuple(shares.comms[who[0]]) for who in had}
    return {"cause": cause} | named(had, names, 0)


def named(had: dict[tuple, int], names: dict[tuple, tuple], tid: int | None) -> dict[str, Wanted]:
    """Who had most; of equals any."""
    most = max(had.values())
    who = [w for w, ns in had.items() if ns == most]
    comms = tuple(name for w in who for name in names[w])
    tids: Wanted = None if tid is None else OneOf(tuple(w[tid] for w in who))
    return {"culprit": OneOf(comms), "culprit_tid": tids, "culprit_ns": most}


def histogram(trace: Trace, threads: Threads) -> Table:
    """One row for each bin that a loop has told behind its end."""
    loops: dict[int, Loop] = {}
    expected = []
    for event in trace.events:
        loop = loops.get(event.tid)
        if event.event == "npt.begin":
            loops[event.tid] = Loop(event)
        elif loop and event.event == "npt.end":
            loop.end = event
        elif loop and loop.end and event.event == "npt.bin":
            hz = loop.begin.arg2
            values: dict[str, Wanted] = {
                "ts": loop.end.ts,
                "tid": event.tid,
                "from_cycles": event.arg0,
                "pid": event.pid,
                "comm": threads.named(event.tid),
                "to_cycles": event.arg1,
                "from_ns": event.arg0 * 1e9 / hz if hz > 0 else None,
                "to_ns": event.arg1 * 1e9 / hz if hz > 0 else None,
                "passes": event.arg2,
                "of_passes": loop.end.arg0,
                "mark": "exact" if not trace.losses else OneOf(("exact", "lower bound")),
            }
            expected.append(Expected(values))
    return Table("loop_histogram", ("ts", "tid", "from_cycles"), expected)
