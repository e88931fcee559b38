"""`wake_pairs` as it should be: who ended whose waits, by the calls of both."""

from collections import defaultdict

from compare import Expected, OneOf, Table
from paths import Paths
from places import Places
from tables import Trace, Waking
from threads import Stretch, Threads

TIMERS = {"vector": ("local_timer",), "soft": ("TIMER", "HRTIMER"), "hard": ("timer", "rtc0")}


class NotJudged(Table):
    """Where records are missing."""

    def judges(self, row: dict) -> bool:
        return False


def table(trace: Trace, threads: Threads, paths: Paths, places: dict[int, Places]) -> Table:
    """A row for each pair; none is judged where records are missing."""
    # What is known of calls begins with the first of them.
    first = min((call.ts for call in trace.syscalls), default=None)
    missing = trace.losses or any(s.doubt for t in threads.timelines.values() for s in t.stretches)
    if first is None or missing:
        return NotJudged("wake_pairs", ("ts",), [], tolerates=lambda row: bool(missing))
    pairs: defaultdict[tuple, list[tuple[int, int, int]]] = defaultdict(list)
    for waking in trace.wakings:
        timeline = threads.timelines.get(waking.tid)
        if waking.ts <= first or timeline is None or waking.tid == 0:
            continue
        at = next((n for n, s in enumerate(timeline.stretches) if s.start < waking.ts <= s.end), None)
        if at is None or timeline.stretches[at].doing != "blocked" or timeline.stretches[at].end != waking.ts:
            continue
        since = asleep_since(timeline.stretches[: at + 1])
        pair = (*waker(waking, threads, paths, places), threads.pids[waking.tid], *call(places, waking.tid, waking.ts))
        pairs[pair].append((waking.ts, waking.ts - since, dispatch(timeline.stretches[at + 1 :])))
    expected = []
    for (kind, pid, name, by, by_file, woken, in_call, file), wakes in pairs.items():
        expected.append(
            Expected(
                {
                    "ts": min(ts for ts, _, _ in wakes),
                    "waker": kind,
                    "waker_pid": pid,
                    "waker_name": name if pid is None else OneOf(tuple(threads.comms.get(pid, {""}))),
                    "waker_call": by,
                    "waker_file": by_file,
                    "pid": woken,
                    "name": OneOf(tuple(threads.comms.get(woken, {""}))),
                    "call": in_call,
                    "file": file,
                    "count": len(wakes),
                    "blocked_ns": sum(ns for _, ns, _ in wakes),
                    "longest_ns": max(ns for _, ns, _ in wakes),
                    "dispatch_ns": sum(ns for _, _, ns in wakes),
                    "mark": "exact" if kind != "thread" or trace.irqs else "lower bound",
                }
            )
        )
    return Table("wake_pairs", ("waker", "waker_pid", "waker_call", "waker_file", "pid", "call", "file", "ts"), expected)


def waker(waking: Waking, threads: Threads, paths: Paths, places: dict[int, Places]) -> tuple:
    """Who wakes: kind, process, name, call and its descriptor."""
    found = paths.interrupt(waking)
    if found and not found[1]:
        irq = found[0]
        timer = irq.name in TIMERS[irq.kind] or irq.kind == "hard" and irq.name.startswith("hpet")
        return ("timer" if timer else "device", None, irq.name, None, None)
    if waking.waker_tid == 0:
        return ("unknown", None, "an interrupt without a record", None, None)
    return ("thread", threads.pids[waking.waker_tid], "", *call(places, waking.waker_tid, waking.ts))


def call(places: dict[int, Places], tid: int, t: int) -> tuple[str | None, str | None]:
    """The call in which a thread is, where its entry was recorded."""
    inside = [s.place for s in places[tid].calls if 0 <= s.start < t < s.end] if tid in places else []
    return (inside[-1].call, inside[-1].file) if inside else (None, None)


def asleep_since(stretches: list[Stretch]) -> int:
    """When the sleep began that ends with these: one who is moved in its sleep sleeps on."""
    since = stretches[-1].start
    for stretch in reversed(stretches):
        if stretch.doing != "blocked" or stretch.end < since:
            break
        since = stretch.start
    return since


def dispatch(after: list[Stretch]) -> int:
    """From the wake-up to the CPU, if it got one."""
    waited = 0
    for stretch in after:
        if stretch.doing == "running":
            return waited
        if stretch.doing != "dispatch":
            return 0
        waited += stretch.end - stretch.start
    return 0
