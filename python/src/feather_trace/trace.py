"""A trace as tables of pandas, in which every number is what it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from feather_trace import foreign, whole
from feather_trace.foreign import NotThere, brief, damaged, first_line, legible, listed, part, said

# The version of tables and `meta.json` that this package reads.
SCHEMA_VERSION = 8

# Columns that can be null get these types: a float cannot hold all numbers beyond 2^53.
NULLABLE: dict[pa.DataType, Any] = {
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.float64(): pd.Float64Dtype(),
}

# The types that columns have. Texts are dictionaries: one that stands in each row has its length once.
TEXT = pa.dictionary(pa.int32(), pa.string())
TYPES = {*NULLABLE, TEXT} - {pa.uint64()}

# The columns of which this package makes others, by their type, and the tables that are read for them without being named.
OURS = {
    pa.int64(): {"ts", "dur", "wall_ns", "bound_ns", "bracket_ns", "realtime_offset_ns", *(f"arg{i}" for i in range(6))},
    pa.int32(): {"pid", "tid", "cpu", "site", "prev_tid", "next_tid", "target_cpu", "waker_tid"},
    pa.float64(): {f"argf{i}" for i in range(6)},
    pa.bool_(): {"prev_woken"},
    TEXT: {"name", "event", "args", "kind", "origin", "mark", "comm", "next_comm", "prev_state", *(f"argt{i}" for i in range(6))},
}
NEEDED = {
    "sites": {"site", "event", "args"},
    "threads": {"pid", "tid", "name"},
    "user_events": {"ts", "pid", "tid", "cpu", "site", "kind", *(f"arg{kind}{i}" for kind in ("", "f", "t") for i in range(6))},
    "clock": {"ts", "bracket_ns", "bound_ns", "realtime_offset_ns"},
    "host_clock": {"ts", "bound_ns"},
}

# What this package takes from `meta.json`.
SAID = {("clock", "bound_ns"): int, ("clock", "realtime_offset_ns"): int, ("start", "host"): str, ("start", "boot_id"): str}

# The columns that each event has, whatever its arguments.
EVENT_COLUMNS = ["ts", "pid", "tid", "cpu", "site", "kind"]


def load(directory: str | Path, incomplete: bool = False) -> Trace:
    """Opens the trace in a directory that `ft-agent record` made.

    Raises `FileNotFoundError` where there is no finished trace, `ValueError` for one of another version, or whose files are not what
    they should be: also where a part is missing or is not what was written. With `incomplete`, such parts are left out, with a warning.
    """
    return Trace(directory, incomplete)


class Trace:
    """A trace. `trace["critical_sections"]` is a table of it."""

    def __init__(self, directory: str | Path, incomplete: bool = False) -> None:
        self.directory = Path(directory)
        path = self.directory / "meta.json"
        try:
            #: What the trace says of itself: the machine, the command, the clock, losses, warnings.
            self.meta: dict[str, Any] = said(path)
        except (FileNotFoundError, NotADirectoryError):
            raise foreign.no_trace(self.directory) from None
        version = self.meta.get("schema_version")
        if version != SCHEMA_VERSION:
            raise ValueError(
                f"{legible(self.directory)} has schema version {brief(version)}, this package reads version "
                f"{SCHEMA_VERSION}; use the package of the agent that wrote it"
            )
        for (group, name), kind in SAID.items():
            about = self.meta.get(group)
            value = about.get(name) if isinstance(about, dict) else None
            if type(value) is not kind or isinstance(value, int) and not -(2**63) <= value < 2**63:
                what = "whole number of 64 bits" if kind is int else "text"
                raise damaged(path, f"`{group}.{name}` is no {what}", foreign.RESTORE)
        #: Parts that are not read, as `TABLE/part-00000.parquet`; none of a trace that is whole.
        self.left_out = whole.left_out(self.directory, self.meta, incomplete)

    def __repr__(self) -> str:
        return f"Trace('{legible(self.directory)}')"

    def __getitem__(self, table: str) -> pd.DataFrame:
        return self.table(table)

    @property
    def tables(self) -> list[str]:
        """The names of its tables; those of the analyses once it is analysed."""
        return sorted({path.parent.name for path in self.directory.glob("*/part-*.parquet") if self.is_read(path)})

    def table(
        self, table: str, columns: Sequence[str] | None = None, where: ds.Expression | None = None
    ) -> pd.DataFrame:
        """The rows of a table in the order of its first column, or some of its columns and rows.

        Threads that have a number and no name in the table get their newest name, `comm`, when all columns are read.
        Raises `KeyError` when there is no such table: those of results are made by the analyses.
        """
        rows = self.arrow(table, columns, where)
        frame = pd.DataFrame({field.name: series(rows.column(field.name), field) for field in rows.schema})
        if columns is None and {"pid", "tid"} <= set(frame) and not {"comm", "name"} & set(frame):
            frame["comm"] = self.comms(frame)
        return frame

    def arrow(
        self, table: str, columns: Sequence[str] | None = None, where: ds.Expression | None = None
    ) -> pa.Table:
        """The same as an Arrow table: addresses unsigned, else as stored, with unit and meaning in each field."""
        rows = self.read(table, columns, where)
        order = rows.schema.names[0]
        wanted = list(columns) if columns is not None else rows.schema.names
        # Parts may overlap in time.
        if rows.column(order).num_chunks > 1:
            rows = rows.take(pc.sort_indices(rows.column(order), sort_keys=[("", "ascending")]))
        rows = rows.select(wanted)
        for i, field in enumerate(rows.schema):
            if (field.metadata or {}).get(b"unit") == b"address":
                rows = rows.set_column(i, field.with_type(pa.uint64()), unsigned(rows.column(i)))
        return rows

    def is_read(self, part: Path) -> bool:
        """Whether a part is none of those that are left out."""
        return f"{part.parent.name}/{part.name}" not in self.left_out

    def parts(self, table: str) -> list[Path]:
        """The files of a table in their order."""
        there = filter(self.is_read, (self.directory / table).glob("part-*.parquet"))
        found = sorted(there, key=lambda path: (len(path.name), path.name))
        if not found:
            raise NotThere(
                f"{legible(self.directory)} has no table '{legible(table)}'; it has {listed(self.tables)}; "
                f"`ft-agent analyze` makes those of results"
            )
        return found

    def read(self, table: str, columns: Sequence[str] | None, where: ds.Expression | None) -> pa.Table:
        """The first column of a table and those that are asked for, of all parts: no more than there is room for."""
        found: list[pa.RecordBatch] = []
        before = pa.total_allocated_bytes()
        schema = None
        for path in self.parts(table):
            with part(path) as rows:
                check(rows.physical_schema, table, path)
                schema = schema or rows.physical_schema
                if not rows.physical_schema.equals(schema):
                    raise damaged(path, "its columns are not those of the other parts of this table")
                missing = [name for name in columns or () if name not in schema.names]
                if missing:
                    raise NotThere(f"table {table} of {legible(self.directory)} has no column {listed(missing)}; it has {listed(schema.names)}")
                chosen = list(dict.fromkeys([schema.names[0], *(columns if columns is not None else schema.names)]))
                try:
                    scanner = rows.scanner(columns=chosen, filter=where, batch_readahead=1)
                except pa.ArrowException as error:
                    raise ValueError(f"`where` does not fit table {table}: {brief(first_line(error))}; it has {listed(schema.names)}") from None
                try:
                    for batch in scanner.to_batches():
                        batch.validate(full=True)
                        found.append(batch)
                        if pa.total_allocated_bytes() - before > foreign.MAX_TABLE_BYTES:
                            raise MemoryError
                except MemoryError:
                    raise ValueError(
                        f"table {table} of {legible(self.directory)} takes more than {foreign.MAX_TABLE_BYTES >> 20} MiB of memory, half of "
                        f"what this machine has; name fewer `columns`, say `where`, or ask with `feather_trace.connect`"
                    ) from None
                except (pa.ArrowException, OSError) as error:
                    raise damaged(path, first_line(error)) from None
        return pa.Table.from_batches(found, scanner.projected_schema)

    def about(self, table: str) -> pd.DataFrame:
        """What the columns of a table are: unit, meaning, and the words that a column can have."""
        with part(path := self.parts(table)[0]) as found:
            fields = found.physical_schema
            check(fields, table, path)
        rows = [
            {key: (field.metadata or {}).get(key.encode(), b"").decode(errors="replace") for key in ("unit", "meaning", "words")}
            for field in fields
        ]
        return pd.DataFrame(rows, index=pd.Index(fields.names, name="column"))

    @cached_property
    def sites(self) -> pd.DataFrame:
        """Where events are written in the source, by the number of the site."""
        return self.table("sites").set_index("site")

    @property
    def events(self) -> list[str]:
        """The names of the events that its programs can record, whether they did or not."""
        return sorted(self.sites["event"].astype(str).unique())

    def event(self, name: str) -> pd.DataFrame:
        """The events of a name, with their arguments as columns of their own names and types.

        Where sites of that name differ, there are the columns of all; a name that is taken gets a number. Raises
        `KeyError` when there is no such event.
        """
        sites = self.sites[self.sites["event"].astype(str) == name]
        if sites.empty:
            raise NotThere(f"{legible(self.directory)} has no event '{legible(name)}'; it has {listed(self.events)}")
        rows = self.arrow("user_events", where=ds.field("site").isin([int(site) for site in sites.index]))
        frames = []
        for args, group in sites.groupby(sites["args"].astype(str), sort=False):
            chosen = rows.filter(pc.is_in(rows.column("site"), pa.array([int(s) for s in group.index], pa.int32())))
            frames.append(with_arguments(chosen, str(args)))
        frame = pd.concat(frames).sort_values("ts", kind="stable", ignore_index=True) if len(frames) > 1 else frames[0]
        frame.insert(3, "comm", self.comms(frame))
        return frame

    def comms(self, frame: pd.DataFrame) -> pd.Series[Any]:
        """The newest name of each row's thread; thread 0 is idle."""
        numbers = frame[["pid", "tid"]].astype("Int64").fillna(-1).astype("int64")
        found = self._comms.reindex(pd.MultiIndex.from_frame(numbers)).to_numpy()
        return pd.Series(found, index=frame.index, dtype="str").mask(numbers["tid"] == 0, "idle")

    @cached_property
    def _comms(self) -> pd.Series[Any]:
        threads = self.table("threads", ["pid", "tid", "name"])
        index = pd.MultiIndex.from_frame(threads[["pid", "tid"]].astype("int64"))
        # One object for each name.
        return pd.Series(threads["name"].astype("object").to_numpy(), index=index)

    def wall(self, ts: pd.Series[Any]) -> pd.Series[Any]:
        """Times as the time of day, UTC, by the offset at the beginning of the trace."""
        return pd.to_datetime(ts.astype("int64") + int(self.meta["clock"]["realtime_offset_ns"]), utc=True)


def check(schema: pa.Schema, table: str, path: Path) -> None:
    """Raises `ValueError` where columns are not what the agent writes: before they are unpacked."""
    names = schema.names
    missing = NEEDED.get(table, set()).difference(names)
    if missing or not names:
        raise damaged(path, f"it has no column {listed(sorted(missing)) or 'at all'}")
    if len(set(names)) < len(names):
        raise damaged(path, "two of its columns have one name")
    if schema.types[0] not in (pa.int32(), pa.int64()):
        raise damaged(path, f"its first column, `{names[0]}`, is no whole number")
    kinds = {name: kind for kind, ours in OURS.items() for name in ours}
    for name, kind in zip(names, schema.types):
        if kind not in TYPES or kinds.get(name, kind) != kind:
            raise damaged(path, f"its column `{name}` is of the type {kind}, which the agent does not write")


def series(column: pa.ChunkedArray[Any], field: pa.Field[Any]) -> pd.Series[Any]:
    """A column in a type of pandas that holds all its values."""
    mapper = NULLABLE.get if field.nullable else None
    found: pd.Series[Any] = column.to_pandas(types_mapper=mapper)
    return found


def spelled(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Each row's text, which rows share in the file: one that is long and in all rows takes no room there."""
    total = 0
    chunk: Any
    for chunk in column.chunks:
        lengths: Any = pc.binary_length(chunk.dictionary)
        total += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    if total > foreign.MAX_TABLE_BYTES:
        raise ValueError(f"its texts take more than {foreign.MAX_TABLE_BYTES >> 20} MiB of memory; ask with `feather_trace.connect`")
    return column.cast(pa.string())


def unsigned(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """The same bits as unsigned numbers."""
    return pa.chunked_array([chunk.view(pa.uint64()) for chunk in column.chunks], pa.uint64())


def with_arguments(rows: pa.Table, args: str) -> pd.DataFrame:
    """Events of sites with the same arguments, `name:type, …` (`sites.args`)."""
    frame = pd.DataFrame({name: series(rows.column(name), rows.schema.field(name)) for name in EVENT_COLUMNS})
    for i, argument in enumerate(args.split(", ") if args else []):
        name, _, kind = argument.rpartition(":")
        kind = kind.removesuffix("?")
        # Events have no more.
        if f"arg{i}" not in rows.schema.names:
            break
        if kind in ("str", "bytes"):
            value: pd.Series[Any] = spelled(rows.column(f"argt{i}")).to_pandas().astype("str")
        elif kind == "float":
            value = rows.column(f"argf{i}").to_pandas(types_mapper=NULLABLE.get)
        else:
            whole = rows.column(f"arg{i}")
            whole = unsigned(whole) if kind in ("unsigned", "pointer") else whole
            value = whole.to_pandas(types_mapper=NULLABLE.get)
            value = (value != 0) if kind == "bool" else value
        frame[free(name or "unnamed", frame.columns)] = value
    return frame


def free(name: str, taken: Iterable[str]) -> str:
    """The name, with a number where it is taken."""
    names = {"comm", *taken}
    numbers = (f"{name}_{n}" for n in range(2, len(names) + 3))
    return name if name not in names else next(other for other in numbers if other not in names)
