"""`breakdown` as it should be: all the time of each thread by the system call and the page fault in which it was."""

from collections import Counter, defaultdict
from typing import NamedTuple

from compare import Expected, OneOf, Table
from cpus import touched
from holds import decomposition
from ledger import ThreadTime
from tables import Fault, Syscall, Trace
from threads import Parts, Stretch, Threads

# `ret` of a call that a signal has interrupted, and with which `restart_syscall` may go on.
RESTARTS = -516
# What a call waits for that takes no descriptor.
WAITS_FOR = {
    "futex": "futex", "futex_wait": "futex", "futex_waitv": "futex", "futex_requeue": "futex",
    "nanosleep": "timer", "clock_nanosleep": "timer",
    "poll": "descriptors", "ppoll": "descriptors", "select": "descriptors", "pselect6": "descriptors",
    "wait4": "child", "waitid": "child", "vfork": "child",
    "pause": "signal", "rt_sigsuspend": "signal", "rt_sigtimedwait": "signal",
    "semop": "semaphore", "semtimedop": "semaphore",
    "msgrcv": "message queue", "msgsnd": "message queue",
    "mq_timedreceive": "message queue", "mq_timedsend": "message queue",
} | dict.fromkeys(
    "open openat openat2 execve execveat stat newfstatat unlink unlinkat rename renameat2 mkdir rmdir".split(), "file"
)
# Programs whose losses hide calls or faults.
HIDES = {
    "sys_enter", "sys_exit", "call_end", "page_fault_user", "page_fault_kernel", "fault_minor", "fault_major", "fault_end",
}
FOREVER = 1 << 62


class Place(NamedTuple):
    """Where a thread is."""

    place: str
    call: str | None = None
    file: str | None = None
    fault: str | None = None


class Stay(NamedTuple):
    start: int
    end: int
    place: Place


class Places:
    """The places of one thread, by time."""

    def __init__(self, calls: list[Syscall], faults: list[Fault], has_recorded: bool) -> None:
        self.counts: Counter[Place] = Counter()
        self.unfinished: Counter[Place] = Counter()
        self.begun_before: Counter[Place] = Counter()
        self.incomplete = False
        first_fault = min((f.ts for f in faults if not f.in_kernel), default=FOREVER)
        # What nobody saw it enter it was in from the beginning.
        self.calls: list[Stay] = []
        self.unknown = not calls and first_fault == FOREVER and not has_recorded
        interrupted: Place | None = None
        for n, call in enumerate(calls):
            place = Place("call", call.name, call.file)
            before, interrupted = interrupted, None
            if call.seen == "return":
                self.begun_before[place] += 1
                if n == 0 and first_fault >= call.ts:
                    self.calls.append(Stay(-FOREVER, call.ts, place))
                else:
                    self.incomplete = True
                continue
            if before and call.name == "restart_syscall":
                place = before
            else:
                self.counts[place] += 1
            self.unfinished[place] += call.seen == "entry"
            end = FOREVER if call.seen == "entry" else call.ts + call.dur
            self.calls.append(Stay(call.ts, end, place))
            if call.seen == "whole" and call.ret == RESTARTS:
                interrupted = place
        self.faults: list[Stay] = []
        for fault in faults:
            if fault.kind is not None:
                place = self.outside_of_faults(fault.ts)._replace(fault=fault.kind)
                self.counts[place] += 1
                self.faults.append(Stay(fault.ts, fault.ts + fault.dur, place))

    def outside_of_faults(self, t: int) -> Place:
        """The call, or none."""
        for stay in reversed(self.calls):
            if stay.start <= t < stay.end:
                return stay.place
        return Place("unknown" if self.unknown else "user")

    def cut(self, stretch: Stretch) -> list[tuple[Place, Stretch]]:
        """A stretch of time by places."""
        stays = [s for s in self.calls + self.faults if s.start < stretch.end and stretch.start < s.end]
        edges = {stretch.start, stretch.end}
        edges |= {t for s in stays for t in (s.start, s.end) if stretch.start < t < stretch.end}
        found = []
        for start, end in zip(sorted(edges), sorted(edges)[1:]):
            inside = [s for s in stays if s.start <= start and end <= s.end]
            # A fault lies within a call.
            inner = max(inside, key=lambda s: (s.start, s.place.fault is not None), default=None)
            place = inner.place if inner else self.outside_of_faults(start)
            found.append((place, stretch._replace(start=start, end=end)))
        return found


def of_threads(trace: Trace, threads: Threads) -> dict[int, Places]:
    """The places of each thread."""
    calls: defaultdict[int, list[Syscall]] = defaultdict(list)
    faults: defaultdict[int, list[Fault]] = defaultdict(list)
    for call in trace.syscalls:
        calls[call.tid].append(call)
    for fault in trace.faults:
        faults[fault.tid].append(fault)
    recorded = {event.tid for event in trace.events}
    return {tid: Places(calls[tid], faults[tid], tid in recorded) for tid in threads.timelines}


def table(trace: Trace, threads: Threads, all_places: dict[int, Places], ledger: ThreadTime) -> Table:
    """The rows of all threads; none where no call was recorded."""
    lost = [loss for loss in trace.losses if loss.what in HIDES or loss.origin == "agent"]
    expected = []
    for tid, timeline in threads.timelines.items():
        if tid == 0 or not trace.syscalls or not timeline.stretches:
            continue
        places = all_places[tid]
        start, end = timeline.stretches[0].start, timeline.stretches[-1].end
        ns: defaultdict[Place, Counter[str]] = defaultdict(Counter)
        doubtful = missed = 0
        for stretch in timeline.stretches:
            doubtful += stretch.end - stretch.start if stretch.doubt else 0
            missed += threads.missed_ns(stretch) if stretch.doing == "running" else 0
            for place, cut in places.cut(stretch):
                if cut.doing == "running":
                    for part, _, spent in threads.on_cpu(cut):
                        ns[place][part] += spent
                else:
                    part = "unexplained" if cut.doing == "unknown" else cut.doing
                    ns[place][part] += cut.end - cut.start
        mark = {"lower bound"} if places.incomplete or touched(lost, start, end) else ledger.marks(tid)
        for place in {*ns, *places.counts, *places.begun_before}:
            if not (sum(ns[place].values()) or places.counts[place] or places.begun_before[place]):
                continue
            waits_for = "page" if place.fault else place.file or WAITS_FOR.get(place.call or "")
            values = {
                "tid": tid,
                **place._asdict(),
                "ts": start,
                "pid": threads.pids[tid],
                "comm": OneOf(tuple(threads.comms[tid])),
                "waits_for": waits_for,
                "count": places.counts[place],
                "unfinished": places.unfinished[place],
                "begun_before": places.begun_before[place],
                **decomposition(Parts(ns[place], doubtful + missed)),
                "wall_ns": end - start,
                "mark": OneOf(tuple(mark)),
            }
            expected.append(Expected(values, optional=bool(doubtful)))
    return Table("breakdown", ("tid", "place", "call", "file", "fault"), expected)
