"""The raw tables of a trace, as typed rows in the order of time.

What the columns mean is documented in `TABLES.md`; nothing here knows more.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow.dataset

Row = TypeVar("Row", bound=tuple)


class Switch(NamedTuple):
    ts: int
    cpu: int
    prev_tid: int
    prev_comm: str
    prev_prio: int
    prev_state: str
    prev_woken: bool
    next_tid: int
    next_comm: str
    next_prio: int


class Waking(NamedTuple):
    ts: int
    cpu: int
    waker_tid: int
    tid: int
    prio: int
    target_cpu: int
    is_new: bool


class Migrate(NamedTuple):
    ts: int
    tid: int
    to_cpu: int


class Irq(NamedTuple):
    ts: int
    dur: int
    cpu: int
    kind: str
    name: str
    tid: int


class Task(NamedTuple):
    ts: int
    kind: str
    tid: int
    pid: int
    comm: str


class Syscall(NamedTuple):
    ts: int
    dur: int
    tid: int
    name: str
    ret: int
    file: str | None
    seen: str


class Sleep(NamedTuple):
    ts: int
    tid: int
    call: str | None
    file: str | None
    argument0: int | None
    argument2: int | None
    until: int | None


class Throttle(NamedTuple):
    ts: int
    dur: int
    tid: int


class Futex(NamedTuple):
    ts: int
    dur: int
    tid: int
    pid: int
    kind: str
    address: int
    word: int | None
    timeout_ns: int | None
    result: str


class Chain(NamedTuple):
    ts: int
    dur: int
    tid: int
    kind: str
    woken_tid: int | None
    stack: int | None


class Sample(NamedTuple):
    ts: int
    tid: int
    stack: int | None


class Contention(NamedTuple):
    ts: int
    dur: int
    tid: int
    pid: int
    lock: int
    name: str | None
    caller: str | None
    kind: str
    end: str
    stack: int | None


class Fault(NamedTuple):
    ts: int
    tid: int
    in_kernel: bool
    dur: int | None
    kind: str | None


class Probe(NamedTuple):
    ts: int
    pid: int
    tid: int
    kind: str
    probe: str
    stack_pointer: int | None


class Symbol(NamedTuple):
    pid: int
    address: int
    kind: str
    symbol: str
    file: str
    line: int
    object: str
    offset: int


class UserEvent(NamedTuple):
    ts: int
    pid: int
    tid: int
    cpu: int
    site: int
    event: str
    arg0: int
    arg1: int
    arg2: int


class Loss(NamedTuple):
    ts: int
    dur: int
    origin: str
    what: str
    pid: int
    tid: int


class Thread(NamedTuple):
    ts: int
    tid: int
    pid: int
    name: str
    observed: bool


class Site(NamedTuple):
    site: int
    pid: int
    source: int
    event: str
    kind: str
    args: str
    file: str
    line: int
    on_ns: int | None


class Name(NamedTuple):
    source: int
    id: int
    kind: str
    text: str
    line: int


def read(directory: Path, table: str, row: type[Row]) -> list[Row]:
    """The rows of a table, with the columns that `row` names, sorted by time if they have one."""
    data = pyarrow.dataset.dataset(directory / table, format="parquet")
    if not data.files:
        return []
    columns = data.to_table(columns=list(row._fields))
    rows = [row(*values) for values in zip(*(c.to_pylist() for c in columns.columns))]
    return sorted(rows, key=lambda r: r.ts) if "ts" in row._fields else rows


def results(directory: Path, table: str) -> list[dict]:
    """The rows of a table that the analyses wrote, with all columns."""
    return pyarrow.dataset.dataset(directory / table, format="parquet").to_table().to_pylist()


@dataclass
class Trace:
    """The raw tables of one trace."""

    directory: Path
    switches: list[Switch]
    wakings: list[Waking]
    migrations: list[Migrate]
    irqs: list[Irq]
    tasks: list[Task]
    syscalls: list[Syscall]
    sleeps: list[Sleep]
    throttles: list[Throttle]
    futexes: list[Futex]
    chains: list[Chain]
    samples: list[Sample]
    contention: list[Contention]
    faults: list[Fault]
    probes: list[Probe]
    events: list[UserEvent]
    losses: list[Loss]
    threads: list[Thread]
    sites: dict[int, Site]
    names: dict[tuple[int, int, str], Name]
    symbols: dict[tuple[int, int, str], Symbol]
    # Largest error of the times of user events beside those of the kernel, ns.
    clock_bound_ns: int
    # The process that recorded, where the trace says so.
    agent_pid: int | None
    # The shortest time off the CPU that has a call chain, ns; none where chains were not recorded.
    stack_min_ns: int | None

    @staticmethod
    def load(directory: Path) -> "Trace":
        """Reads a trace."""

        def rows(table: str, row: type[Row]) -> list[Row]:
            return read(directory, table, row)

        meta = json.loads((directory / "meta.json").read_text())
        return Trace(
            directory=directory,
            switches=rows("sched_switch", Switch),
            wakings=rows("sched_waking", Waking),
            migrations=rows("sched_migrate", Migrate),
            irqs=rows("irq", Irq),
            tasks=rows("task_events", Task),
            syscalls=rows("syscalls", Syscall),
            sleeps=rows("sleeps", Sleep),
            throttles=rows("throttles", Throttle),
            futexes=rows("futex_calls", Futex),
            chains=rows("call_chains", Chain),
            samples=rows("samples", Sample),
            contention=rows("contention", Contention),
            faults=rows("page_faults", Fault),
            probes=rows("probe_hits", Probe),
            events=rows("user_events", UserEvent),
            losses=rows("loss", Loss),
            threads=rows("threads", Thread),
            sites={site.site: site for site in rows("sites", Site)},
            names={(n.source, n.id, n.kind): n for n in rows("names", Name)},
            symbols={(s.pid, s.address, s.kind): s for s in rows("symbols", Symbol)},
            clock_bound_ns=meta["clock"]["bound_ns"],
            agent_pid=meta["start"].get("agent_pid"),
            stack_min_ns=meta["start"].get("stack_min_ns"),
        )

    def end(self) -> int:
        """When the last recorded thing happened."""
        lists = (self.switches, self.wakings, self.migrations, self.irqs, self.tasks, self.syscalls)
        lists += (self.futexes, self.chains, self.contention, self.faults, self.probes, self.events)
        lists += (self.samples, self.losses, self.sleeps, self.throttles)
        return max((rows[-1].ts for rows in lists if rows), default=0)
