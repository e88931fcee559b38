"""`thread_time` as it should be: all the time of each thread, by part and culprit."""

from bisect import bisect_right
from collections import Counter, defaultdict
from copy import copy
from itertools import takewhile
from typing import Iterator

from cpus import touched
from locks import Locks
from tables import Trace
from threads import WAITS, Stretch, Threads, Timeline

# Why a thread that waits for nothing known was blocked, by the state in which it left the CPU.
STATES = {"D": "uninterruptible", "T": "stopped", "t": "stopped", "P": "stopped"}

# What a wait within the kernel is called.
LOCK = "kernel lock"

# A page fault without a recorded end among the records of a thread.
FAULT = 1

# A culprit: a thread's number, or what else it was.
Culprit = int | str | None


class Account:
    """The time of one thread."""

    def __init__(self) -> None:
        self.ns: defaultdict[str, Counter[Culprit]] = defaultdict(Counter)
        self.doubtful_ns = 0
        # Of the time in which it could run: it was moved away before one could see that nobody knows who did.
        self.noticed_late_ns = 0


    def loose_ns(self, part: str) -> int:
        """How much of a part may be another culprit's."""
        return self.doubtful_ns + (self.noticed_late_ns if part in WAITS else 0)


class ThreadTime:
    """The table, which is compared thread by thread."""

    name = "thread_time"

    def __init__(self, trace: Trace, threads: Threads, locks: Locks) -> None:
        self.threads, self.locks = threads, locks
        born = {row.tid for row in trace.wakings if row.is_new}
        self.gaps: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for event in trace.events:
            site = trace.sites.get(event.site)
            if site and site.kind == "poll_gap":
                self.gaps[event.tid].append((event.arg0, event.arg1))
        self.waits: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)
        for start, end, tid, why in locks.blocked_by(threads.end):
            self.waits[tid].append((start, end, why))
        for waits in self.waits.values():
            waits.sort()
        # Where in the kernel a thread was, from when to when; and what it did, to see what was last.
        self.stays: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)
        self.records: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for call in trace.syscalls:
            self.stays[call.tid].append((call.ts, call.ts + call.dur, f"system call {call.name}"))
            self.records[call.tid].append((call.ts, 0))
        for wait in trace.contention:
            self.stays[wait.tid].append((wait.ts, wait.ts + wait.dur, f"{LOCK} {wait.kind}"))
        for event in trace.events:
            self.records[event.tid].append((event.ts, 0))
        for fault in trace.faults:
            if not fault.in_kernel and fault.dur is None:
                self.records[fault.tid].append((fault.ts, FAULT))
            elif not fault.in_kernel:
                self.records[fault.tid].append((fault.ts, 0))
                self.stays[fault.tid].append((fault.ts, fault.ts + fault.dur, "page fault"))
        # In which call a thread left its CPU, and when.
        self.left: defaultdict[int, list[tuple[int, str | None]]] = defaultdict(list)
        for sleep in trace.sleeps:
            self.left[sleep.tid].append((sleep.ts, sleep.call))
        for rows in self.records.values():
            rows.sort()
        self.accounts = {
            tid: self.account(tid, timeline)
            for tid, timeline in threads.timelines.items()
            if tid != 0
        }
        # One can end with the last record of the trace.
        self.whole = {tid: tid in born and timeline.ended for tid, timeline in threads.timelines.items()}

    def account(self, tid: int, timeline: Timeline) -> Account:
        """Adds up all stretches of a thread."""
        account = Account()
        # What the thread did before it was blocked.
        before = None
        for stretch in timeline.stretches:
            ns = stretch.end - stretch.start
            account.doubtful_ns += ns if stretch.doubt else 0
            if stretch.doing in WAITS:
                for piece in self.threads.cpus.during(stretch.cpu, stretch.start, stretch.end):
                    known = piece.occupant and not stretch.doubt
                    account.noticed_late_ns += piece.ns if piece.noticed > stretch.end else 0
                    who = piece.occupant.tid if piece.occupant and known else "not known"
                    account.ns[stretch.doing][who] += piece.ns
            elif stretch.doing == "running":
                account.doubtful_ns += self.threads.missed_ns(stretch)
                for cut in self.around_gaps(tid, stretch):
                    for part, name, spent in self.threads.on_cpu(cut):
                        in_gap = cut.doing == "gap" and part == "running"
                        culprit = "in gaps" if in_gap else name or None
                        account.ns["unexplained" if in_gap else part][culprit] += spent
            elif stretch.doing == "blocked":
                for why, spent in self.reasons(tid, stretch, before):
                    account.ns["blocked"][why] += spent
            else:
                account.ns["unexplained"]["no record"] += ns
            before = before if stretch.doing == "blocked" else stretch
        return account

    def around_gaps(self, tid: int, stretch: Stretch) -> Iterator[Stretch]:
        """A stretch cut at the gaps that the thread saw itself; what lies in one does a `gap`."""
        at = stretch.start
        gaps = self.gaps[tid]
        # Gaps of one poller do not overlap: only the one before can reach into it.
        first = max(bisect_right(gaps, (stretch.start, 0)) - 1, 0)
        for start, end in takewhile(lambda gap: gap[0] < stretch.end, gaps[first:]):
            start, end = max(start, at), min(end, stretch.end)
            if start < end:
                if at < start:
                    yield stretch._replace(start=at, end=start)
                yield stretch._replace(start=start, end=end, doing="gap")
                at = end
        if at < stretch.end:
            yield stretch._replace(start=at)

    def reasons(self, tid: int, stretch: Stretch, before: Stretch | None) -> Iterator[tuple[str, int]]:
        """What a blocked thread waited for, and how long: of what encloses it the innermost that is known."""
        # A thread waits for one thing at a time.
        at = bisect_right(self.waits[tid], stretch.start, key=lambda wait: wait[0])
        if at and stretch.start < self.waits[tid][at - 1][1]:
            yield self.waits[tid][at - 1][2], stretch.end - stretch.start
            return
        stays = [stay for stay in self.stays[tid] if stay[0] < stretch.end and stretch.start < stay[1]]
        edges = {stretch.start, stretch.end}
        edges |= {t for stay in stays for t in stay[:2] if stretch.start < t < stretch.end}
        for start, end in zip(sorted(edges), sorted(edges)[1:]):
            inside = [(LOCK in why, since, why) for since, until, why in stays if since <= start < until]
            # Locks of the kernel are waited for within system calls, and one within the other.
            yield max(inside)[2] if inside else self.state(tid, stretch, before), end - start

    def state(self, tid: int, stretch: Stretch, before: Stretch | None) -> str:
        """The call in which it left the CPU, or the state in which it did, or the page that it had touched as the last thing that it did there, if nobody knows
        for how long."""
        left = self.left[tid]
        at = bisect_right(left, stretch.start, key=lambda sleep: sleep[0]) - 1
        if at >= 0 and left[at][0] >= (before.end if before else stretch.start):
            if call := left[at][1]:
                return f"system call {call}"
            if stretch.state == "D":
                return "page fault"
        if stretch.state == "D" and before and before.doing == "running":
            at = bisect_right(self.records[tid], (stretch.start, 2)) - 1
            if at >= 0 and before.start <= self.records[tid][at][0] and self.records[tid][at][1] == FAULT:
                return "page fault"
        return STATES.get(stretch.state[:1], "asleep")

    def judges(self, row: dict) -> bool:
        """Whether a row that is there must be as expected."""
        return True

    def differences(self, rows: list[dict]) -> list[str]:
        """One line for each part of a thread that differs."""
        found: defaultdict[int, list[dict]] = defaultdict(list)
        for row in rows:
            found[row["tid"]].append(row)
        # One that comes with the last record of the trace has no time, and no row.
        timed = (tid for tid, account in self.accounts.items() if sum(ns.total() for ns in account.ns.values()))
        lines = [f"thread_time tid={tid}: missing" for tid in timed if tid not in found]
        for tid, theirs in found.items():
            if tid not in self.accounts:
                lines.append(f"thread_time tid={tid}: not expected")
            else:
                lines += [f"thread_time tid={tid}: {line}" for line in self.compare(tid, theirs)]
        return lines

    def narrowed(self, rows: list[dict], row: dict) -> tuple["ThreadTime", list[dict]]:
        """What concerns the thread of one row."""
        one = copy(self)
        one.accounts = {row["tid"]: self.accounts[row["tid"]]}
        return one, [r for r in rows if r["tid"] == row["tid"]]

    def accepts(self, row: dict, column: str, _value: object) -> bool:
        """Whether another value would be as right: another culprit, where one is in doubt or several share a row."""
        shared = row["part"] in WAITS and row["culprit_tid"] is None
        loose = self.accounts[row["tid"]].loose_ns(row["part"]) > 0
        if column == "agent_ns":
            return (shared or loose) and self.threads.agents is not None
        return column == "culprit" and (shared or loose) or column == "culprit_tid" and loose

    def marks(self, tid: int) -> set[str]:
        """The marks that are true of a thread's rows."""
        account, stretches = self.accounts[tid], self.threads.timelines[tid].stretches
        start = stretches[0].start
        doubtful = account.doubtful_ns
        mark = {"lower bound"} if doubtful else {"exact"} if self.whole[tid] else {"censored"}
        # Nobody looks whether the thread had a CPU where an interrupt is missing.
        missed = touched(self.threads.missed, start, stretches[-1].end)
        mark = {"lower bound"} if missed else mark
        # Who had the CPU was told before the record by which one sees that it was not so.
        mark |= {"lower bound"} if account.noticed_late_ns else set()
        # Both are true of one that lived before the trace, or lives on.
        mark |= set() if self.whole[tid] or not doubtful else {"censored"}
        # So they are of one that came to its CPU unseen before its first record, which may be that it leaves.
        first = next((s for s in stretches if s.end > s.start), stretches[0])
        period = self.threads.cpus.at(first.cpu, start) if first.doing == "running" else None
        unseen = any(s.doubt for s in stretches if s.end == start) or (period and period.doubt)
        mark |= {"lower bound"} if unseen and not self.whole[tid] else set()
        return mark

    def compare(self, tid: int, rows: list[dict]) -> Iterator[str]:
        """The rows of one thread."""
        account, stretches = self.accounts[tid], self.threads.timelines[tid].stretches
        start, wall = stretches[0].start, stretches[-1].end - stretches[0].start
        doubtful, mark = account.doubtful_ns, self.marks(tid)
        for row in rows:
            if (row["ts"], row["wall_ns"], row["pid"]) != (start, wall, self.threads.pids[tid]):
                yield f"from {start}, {wall} ns of process {self.threads.pids[tid]}, but {row}"
            if row["mark"] not in mark:
                yield f"mark {row['mark']!r}, should be one of {mark}"
            if row["comm"] not in self.threads.comms[tid]:
                yield f"its name is {row['comm']!r}, should be of {self.threads.comms[tid]}"
            yield from self.agent(row)
            if not 1 <= row["stretches"] <= row["spent_ns"]:
                yield f"{row['stretches']} stretches in {row['spent_ns']} ns of {row['part']}"
        if sum(row["spent_ns"] for row in rows) != wall:
            yield f"its parts sum to {sum(row['spent_ns'] for row in rows)}, not {wall}"
        theirs = Account()
        for row in rows:
            number = row["culprit_tid"]
            if number is not None and row["culprit"] not in self.threads.comms.get(number, ()):
                yield f"{number} was never called {row['culprit']!r}"
            theirs.ns[row["part"]][row["culprit"] if number is None else number] += row["spent_ns"]
        for part in sorted(set(account.ns) | set(theirs.ns)):
            mine, stated = account.ns[part].total(), theirs.ns[part].total()
            if abs(mine - stated) > doubtful:
                yield f"{part} {stated} ns, should be {mine} (of it in doubt: {doubtful})"
            else:
                yield from self.culprits(part, account, theirs)

    def agent(self, row: dict) -> Iterator[str]:
        """What of a row is the recording's own; threads of the agent share rows with others of their name."""
        agents, stated = self.threads.agents, row["agent_ns"]
        if agents is None:
            right = stated is None
        elif row["part"] in WAITS and row["culprit_tid"] is None:
            right = 0 <= stated <= row["spent_ns"]
        else:
            right = stated == (row["spent_ns"] if row["part"] in WAITS and row["culprit_tid"] in agents else 0)
        if not right:
            yield f"{stated} ns of the agent in {row}"

    def culprits(self, part: str, account: Account, theirs: Account) -> Iterator[str]:
        """One part of one thread by culprit."""
        loose = account.loose_ns(part)
        mine, stated = account.ns[part], theirs.ns[part]
        # Behind the 64th, threads share a row with one of their name, or one with all others.
        told = {who for who in stated if part not in WAITS or isinstance(who, int)}
        for who in told:
            if abs(stated[who] - mine[who]) > loose:
                yield f"{part} by {who!r} {stated[who]} ns, should be {mine[who]} (loose: {loose})"
        shared = sum(ns for who, ns in stated.items() if who not in told)
        missing = {who: ns for who, ns in mine.items() if who not in told}
        if abs(sum(missing.values()) - shared) > loose:
            yield f"{part} by all others {shared} ns, should be {missing} (loose: {loose})"
