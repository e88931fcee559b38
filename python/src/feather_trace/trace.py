"""A trace as tables of pandas, in which every number is what it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

# The version of tables and `meta.json` that this package reads.
SCHEMA_VERSION = 7

# Columns that can be null get these types: a float cannot hold all numbers beyond 2^53.
NULLABLE: dict[pa.DataType, Any] = {
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.float64(): pd.Float64Dtype(),
}

# The columns that each event has, whatever its arguments.
EVENT_COLUMNS = ["ts", "pid", "tid", "cpu", "site", "kind"]


def load(directory: str | Path) -> Trace:
    """Opens the trace in a directory that `ft-agent record` made.

    Raises `FileNotFoundError` where there is no finished trace, `ValueError` for one of another version.
    """
    return Trace(directory)


class Trace:
    """A trace. `trace["critical_sections"]` is a table of it."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        path = self.directory / "meta.json"
        if not path.exists():
            raise FileNotFoundError(
                f"{self.directory} is not a finished trace: it holds no meta.json; "
                f"name the directory that `ft-agent record` made, or run `ft-agent convert` on it"
            )
        #: What the trace says of itself: the machine, the command, the clock, losses, warnings.
        self.meta: dict[str, Any] = json.loads(path.read_text())
        if self.meta.get("schema_version") != SCHEMA_VERSION:
            raise ValueError(
                f"{self.directory} has schema version {self.meta.get('schema_version')}, this package reads version "
                f"{SCHEMA_VERSION}; use the package of the agent that wrote it"
            )

    def __repr__(self) -> str:
        return f"Trace({str(self.directory)!r})"

    def __getitem__(self, table: str) -> pd.DataFrame:
        return self.table(table)

    @property
    def tables(self) -> list[str]:
        """The names of its tables; those of the analyses once it is analysed."""
        return sorted(path.parent.name for path in self.directory.glob("*/part-00000.parquet"))

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
        parts = sorted((self.directory / table).glob("part-*.parquet"), key=lambda part: (len(part.name), part.name))
        if not parts:
            raise KeyError(
                f"{self.directory} has no table {table!r}; it has {', '.join(self.tables)}; "
                f"`ft-agent analyze` makes those of results"
            )
        data = ds.dataset([str(part) for part in parts], format="parquet")
        order = data.schema.names[0]
        wanted = list(columns) if columns is not None else data.schema.names
        rows = data.to_table(columns=list(dict.fromkeys([order, *wanted])), filter=where)
        # Parts may overlap in time.
        if len(parts) > 1:
            rows = rows.take(pc.sort_indices(rows.column(order), sort_keys=[("", "ascending")]))
        rows = rows.select(wanted)
        for i, field in enumerate(rows.schema):
            if (field.metadata or {}).get(b"unit") == b"address":
                rows = rows.set_column(i, field.with_type(pa.uint64()), unsigned(rows.column(i)))
        return rows

    def about(self, table: str) -> pd.DataFrame:
        """What the columns of a table are: unit, meaning, and the words that a column can have."""
        path = next(iter(sorted((self.directory / table).glob("part-*.parquet"))), None)
        if path is None:
            raise KeyError(f"{self.directory} has no table {table!r}; it has {', '.join(self.tables)}")
        fields = ds.dataset(str(path), format="parquet").schema
        rows = [
            {key: (field.metadata or {}).get(key.encode(), b"").decode() for key in ("unit", "meaning", "words")}
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
            raise KeyError(f"{self.directory} has no event {name!r}; it has {', '.join(self.events)}")
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
        return pd.Series(threads["name"].astype("str").to_numpy(), index=index)

    def wall(self, ts: pd.Series[Any]) -> pd.Series[Any]:
        """Times as the time of day, UTC, by the offset at the beginning of the trace."""
        return pd.to_datetime(ts.astype("int64") + int(self.meta["clock"]["realtime_offset_ns"]), utc=True)


def series(column: pa.ChunkedArray[Any], field: pa.Field[Any]) -> pd.Series[Any]:
    """A column in a type of pandas that holds all its values."""
    mapper = NULLABLE.get if field.nullable else None
    found: pd.Series[Any] = column.to_pandas(types_mapper=mapper)
    return found


def unsigned(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """The same bits as unsigned numbers."""
    return pa.chunked_array([chunk.view(pa.uint64()) for chunk in column.chunks], pa.uint64())


def with_arguments(rows: pa.Table, args: str) -> pd.DataFrame:
    """Events of sites with the same arguments, `name:type, …` (`sites.args`)."""
    frame = pd.DataFrame({name: series(rows.column(name), rows.schema.field(name)) for name in EVENT_COLUMNS})
    for i, argument in enumerate(args.split(", ") if args else []):
        name, _, kind = argument.rpartition(":")
        kind = kind.removesuffix("?")
        if kind in ("str", "bytes"):
            value: pd.Series[Any] = rows.column(f"argt{i}").cast(pa.string()).to_pandas().astype("str")
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
