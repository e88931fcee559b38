"""`gaps` as they should be: times in which a polling thread says that it did not run."""

from collections import Counter

from compare import Anything, Expected, OneOf, Table, Wanted
from holds import agent, decomposition, mark, sums_to
from tables import Trace
from threads import Parts, Threads

# What a cause is called where it is not the name of the part.
CAUSES = {"preempted": "switched-out"}


def table(trace: Trace, threads: Threads) -> Table:
    """One row for each gap that a poller recorded."""
    expected = []
    for event in trace.events:
        site = trace.sites.get(event.site)
        if not site or site.kind != "poll_gap":
            continue
        start, end = event.arg0, event.arg1
        parts = not_running(threads.parts(event.tid, start, end))
        shares = threads.occupants(event.tid, start, end)
        values: dict[str, Wanted] = {
            "ts": start,
            "tid": event.tid,
            "dur": end - start,
            "pid": event.pid,
            "comm": threads.named(event.tid),
            "cpu": event.cpu,
            "cause": cause(parts),
            **culprit(event.tid, start, end, parts, threads),
            **decomposition(parts),
            "agent_ns": agent(shares, threads),
            # Inferred from the length of the gap and of its neighbours: a guess, with tests of its own.
            "inferred": Anything(),
            "mark": mark(parts, shares),
        }
        expected.append(Expected(values, checks=[sums_to(end - start)]))
    return Table("gaps", ("ts", "tid"), expected)


def not_running(parts: Parts) -> Parts:
    """A poller that has the CPU and does not poll does not run."""
    ns = Counter(parts.ns)
    ns["unexplained"] += ns.pop("running", 0)
    return parts._replace(ns=ns)


def largest(parts: Parts) -> list[str]:
    """The recorded parts that took most."""
    recorded = {part: ns for part, ns in parts.ns.items() if part != "unexplained" and ns}
    # Being off the CPU is one cause.
    if off := recorded.pop("preempted", 0) + recorded.pop("dispatch", 0):
        recorded["preempted"] = off
    most = max(recorded.values(), default=0)
    return [part for part, ns in recorded.items() if ns == most]


def cause(parts: Parts) -> Wanted:
    """The largest recorded part."""
    if parts.doubtful_ns:
        return Anything()
    names = [CAUSES.get(part, part) for part in largest(parts)]
    return OneOf((*names, *(("unexplained", "steal") if hardly_recorded(parts) else ())))


def hardly_recorded(parts: Parts) -> bool:
    """Something else may have had the most of it; how much of it an interruption's own cost can be is a guess."""
    return 2 * parts.ns["unexplained"] >= parts.ns.total()


def culprit(tid: int, start: int, end: int, parts: Parts, threads: Threads) -> dict[str, Wanted]:
    """Which thread had the CPU for most of it, or which interrupt took most; anybody if it is hardly recorded."""
    either: dict[str, Wanted] = {"culprit": Anything(), "culprit_tid": Anything()}
    if parts.doubtful_ns or hardly_recorded(parts) or len(largest(parts)) != 1:
        return either
    [part] = largest(parts)
    if part == "preempted":
        shares = threads.occupants(tid, start, end)
        most = max(shares.ns.values(), default=0)
        if shares.doubtful_ns or not most:
            return either
        tids = [t for t, ns in shares.ns.items() if ns == most]
        comms = [comm for t in tids for comm in shares.comms[t]]
        return {"culprit": OneOf(tuple(comms)), "culprit_tid": OneOf(tuple(tids))}
    if part == "blocked":
        return either | {"culprit_tid": None}
    names: Counter[str] = Counter()
    for stretch in threads.stretches(tid, start, end):
        if stretch.doing == "running":
            for kind, name, ns in threads.on_cpu(stretch):
                names[name] += ns if kind == part else 0
    most = max(names.values())
    return {"culprit": OneOf(tuple(n for n in names if names[n] == most)), "culprit_tid": None}
