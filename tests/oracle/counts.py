"""How often something happened to a thread in an interval, and what its counters counted: by the records themselves."""

from bisect import bisect_left, bisect_right
from collections import defaultdict

from compare import Anything, Wanted, Within
from tables import Trace


class Counts:
    """When each thing happened to each thread."""

    def __init__(self, trace: Trace) -> None:
        self.first_fault = min((fault.ts for fault in trace.faults), default=None)
        self.lossy = any(loss.origin != "ring" for loss in trace.losses)
        self.times: dict[str, defaultdict[int, list[int]]] = {
            name: defaultdict(list) for name in ("sleeps", "switches", "moves", "faults", "major_faults")
        }
        # What the counters of a thread showed at an event of its own: the stretch of counting, and both.
        counters = {site.site for site in trace.sites.values() if site.kind == "counters"}
        self.readings: dict[tuple[int, int], tuple[int, int, int]] = {
            (event.tid, event.ts): (event.arg0, event.arg1, event.arg2)
            for event in trace.events
            if event.site in counters and event.arg0 >= 0
        }
        cpus: dict[int, int] = {}
        for switch in sorted(trace.switches, key=lambda switch: switch.ts):
            left = "switches" if switch.prev_state.startswith("R") else "sleeps"
            self.times[left][switch.prev_tid].append(switch.ts)
            cpus[switch.prev_tid] = switch.cpu
            if cpus.get(switch.next_tid, switch.cpu) != switch.cpu:
                self.times["moves"][switch.next_tid].append(switch.ts)
            cpus[switch.next_tid] = switch.cpu
        for fault in sorted(trace.faults, key=lambda fault: fault.ts):
            self.times["faults"][fault.tid].append(fault.ts)
            if fault.kind == "major":
                self.times["major_faults"][fault.tid].append(fault.ts)

    def counted(self, tid: int, times: list[tuple[int, int]]) -> dict[str, Wanted]:
        """What counters counted in several intervals together, where that is known of each."""

        def of(start: int, end: int, i: int) -> int | None:
            before, after = self.readings.get((tid, start)), self.readings.get((tid, end))
            if not before or not after or before[0] != after[0] or -1 in (before[i], after[i]):
                return None
            return after[i] - before[i] if after[i] >= before[i] else None

        def total(i: int) -> int | None:
            counts = [count for start, end in times if (count := of(start, end, i)) is not None]
            is_known = len(counts) == len(times) and any(start < end for start, end in times)
            return sum(counts) if is_known else None

        return {"counter0": total(1), "counter1": total(2)}

    def between(self, tid: int, start: int, end: int) -> dict[str, Wanted]:
        """The columns. What happens at the very begin or end may count or not."""

        def count(name: str) -> Wanted:
            times = self.times[name][tid]
            least = bisect_left(times, end) - bisect_right(times, start)
            most = bisect_right(times, end) - bisect_left(times, start)
            return max(least, 0) if least == most else Within(max(least, 0), most)

        counts = {name: count(name) for name in self.times} | self.counted(tid, [(start, end)])
        faults = ("faults", "major_faults")
        if self.first_fault is None or self.first_fault > end:
            return counts | dict.fromkeys(faults)
        if self.lossy or self.first_fault == end:
            return counts | dict.fromkeys(faults, Anything())
        return counts

    def within(self, tid: int, times: list[tuple[int, int]], kernel: bool) -> dict[str, Wanted]:
        """Those of several intervals together."""
        if not kernel:
            return dict.fromkeys(self.times) | self.counted(tid, times)

        def count(name: str) -> Wanted:
            seen = self.times[name][tid]
            inner = [bisect_left(seen, until) - bisect_right(seen, start) for start, until in times]
            outer = [bisect_right(seen, until) - bisect_left(seen, start) for start, until in times]
            least, most = sum(max(n, 0) for n in inner), sum(outer)
            return least if least == most else Within(least, most)

        counts = {name: count(name) for name in self.times} | self.counted(tid, times)
        faults = ("faults", "major_faults")
        if self.first_fault is None:
            return counts | dict.fromkeys(faults)
        # Whether they are recorded shows the first one, which the thread may have ended before.
        if self.lossy or any(self.first_fault >= start for start, _ in times) or not times:
            return counts | dict.fromkeys(faults, Anything())
        return counts
