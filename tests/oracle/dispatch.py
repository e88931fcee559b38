"""`dispatch_latency` as it should be."""

from compare import Anything, Expected, OneOf, Table, Wanted, Within
from holds import agent, mark_of, occupant
from tables import Waking
from threads import Threads


def table(threads: Threads) -> Table:
    """One row for each waking that led to a switch."""
    expected = []
    for tid, timeline in threads.timelines.items():
        for delay in timeline.delays:
            waking = delay.waking
            if waking is None:
                continue
            shares = threads.occupants(tid, delay.start, delay.end)
            values: dict[str, Wanted] = {
                # Who is woken on its way off the CPU can run, and waits, from when it has left it.
                "ts": delay.start,
                "tid": tid,
                "dur": delay.end - delay.start,
                "pid": threads.pids[tid],
                "comm": threads.named(tid),
                "cpu": delay.cpu,
                "prio": OneOf((waking.prio, delay.prio)),
                "waker_tid": waking.waker_tid,
                "waker_comm": waker(waking, threads),
                **occupant("running", shares, threads),
                # Where a record of it is missing, nobody need have followed it until it came, or it may have come before.
                "migrated": Anything() if delay.doubt else delay.migrated,
                "agent_ns": known_before(agent(shares, threads)) if delay.doubt else agent(shares, threads),
                "mark": "censored" if delay.doubt else mark_of(shares),
            }
            expected.append(Expected(values, optional=delay.doubt))

    def missing(row: dict) -> bool:
        """A switch of that thread is missing there, so that it may have slept."""
        return any(s.doubt for s in threads.stretches(row["tid"], row["ts"], row["ts"] + row["dur"]))

    return Table("dispatch_latency", ("ts", "tid"), expected, tolerates=missing)


def known_before(ns: Wanted) -> Wanted:
    """A time of which a part may not be told, for what was lost began in it."""
    high = ns.high if isinstance(ns, Within) else ns
    return Within(0, high) if isinstance(high, int) else ns


def waker(waking: Waking, threads: Threads) -> Wanted:
    """The name of who woke; each CPU has an idle thread of its own."""
    tid = waking.waker_tid
    return threads.waker_named(tid) if tid else f"swapper/{waking.cpu}"
