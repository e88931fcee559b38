"""How often something happened to a thread in an interval: by the records themselves."""

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

    def between(self, tid: int, start: int, end: int) -> dict[str, Wanted]:
        """The columns. What happens at the very begin or end may count or not."""

        def count(name: str) -> Wanted:
            times = self.times[name][tid]
            least = bisect_left(times, end) - bisect_right(times, start)
            most = bisect_right(times, end) - bisect_left(times, start)
            return max(least, 0) if least == most else Within(max(least, 0), most)

        counts = {name: count(name) for name in self.times}
        faults = ("faults", "major_faults")
        if self.first_fault is None or self.first_fault > end:
            return counts | dict.fromkeys(faults)
        if self.lossy or self.first_fault == end:
            return counts | dict.fromkeys(faults, Anything())
        return counts

    def within(self, tid: int, times: list[tuple[int, int]], kernel: bool) -> dict[str, Wanted]:
        """Those of several intervals together."""
        if not kernel:
            return dict.fromkeys(self.times)

        def count(name: str) -> Wanted:
            seen = self.times[name][tid]
            inner = [bisect_left(seen, until) - bisect_right(seen, start) for start, until in times]
            outer = [bisect_right(seen, until) - bisect_left(seen, start) for start, until in times]
            least, most = sum(max(n, 0) for n in inner), sum(outer)
            return least if least == most else Within(least, most)

        counts = {name: count(name) for name in self.times}
        faults = ("faults", "major_faults")
        if self.first_fault is None:
            return counts | dict.fromkeys(faults)
        # Whether they are recorded shows the first one, which the thread may have ended before.
        if self.lossy or any(self.first_fault >= start for start, _ in times) or not times:
            return counts | dict.fromkeys(faults, Anything())
        return counts
