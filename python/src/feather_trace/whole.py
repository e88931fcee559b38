"""Whether the parts of a trace are those that were written: what the agent compares, too (`ft-trace/src/store/parts.rs`)."""

from __future__ import annotations

import os
import re
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from feather_trace import foreign
from feather_trace.foreign import legible, opened, said

#: The name of a table and that of its part, as the agent gives them.
TABLE = re.compile(r"[a-z0-9_]{1,64}")


class Fault(str):
    """A part that is not what was written: its file, as `TABLE/part-00000.parquet`, and what is wrong with it."""

    wrong: str
    recorded: bool

    def __new__(cls, file: str, wrong: str, recorded: bool) -> Fault:
        made = super().__new__(cls, file)
        made.wrong, made.recorded = wrong, recorded
        return made


def left_out(directory: Path, meta: Mapping[str, Any], incomplete: bool) -> frozenset[str]:
    """The parts of a trace that are not to be read, of one whose `meta.json` this is.

    Raises `ValueError` where there are any, unless the rest is wanted: then it warns. Only footers are read.
    """
    analysis = analysed(directory)
    of_tables = meta.get("tables")
    recorded = {name: table.get("files") for name, table in of_tables.items() if isinstance(table, dict)} if isinstance(of_tables, dict) else {}
    found = [fault for name, parts in recorded.items() for fault in faults(directory, name, parts, True)]
    without = analysis.get("left_out", [])
    if not isinstance(without, list) or not all(isinstance(file, str) for file in without):
        raise ValueError(f"{legible(directory)} is damaged: `left_out` of its analysis.json is no list of files")
    without = [file for file in without if file not in found]
    tables = analysis.get("tables")
    if isinstance(tables, dict):
        found += [fault for name, parts in tables.items() for fault in faults(directory, name, parts, False)]
    shown = legible(directory)
    again = f"run `ft-agent analyze {shown}`, which makes its results anew"
    rest = "or say `incomplete=True` for the rest of it"
    if found:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        what = f"{shown} is not whole: {found[0]} {found[0].wrong}{more}"
        if not incomplete:
            remedy = "bring the trace again from where it was recorded" if found[0].recorded else again
            raise ValueError(f"{what}; {remedy}, {rest}")
        warnings.warn(f"{what}; none of these parts is in any table", stacklevel=4)
    if without:
        what = f"the results of {shown} were made without {legible(without[0])}, which is there now"
        if not incomplete:
            raise ValueError(f"{what}; {again}, {rest}")
        warnings.warn(what, stacklevel=4)
    return frozenset(found)


def analysed(directory: Path) -> dict[str, Any]:
    """What the results say of themselves; nothing where there are none, or the file is damaged: it can be made again."""
    try:
        return said(directory / "analysis.json")
    except (OSError, ValueError):
        return {}


def faults(directory: Path, table: str, parts: object, recorded: bool) -> list[Fault]:
    """What is wrong with the parts of a table; nothing where they stand nowhere, as in traces of earlier versions."""
    if not isinstance(parts, list) or not parts or not TABLE.fullmatch(table):
        return []
    found, names = [], set()
    for part in parts:
        number, rows, size, footer = (part.get(key) if isinstance(part, dict) else None for key in ("part", "rows", "bytes", "footer_crc32"))
        name = f"part-{number:05}.parquet" if isinstance(number, int) else "part"
        names.add(name)
        if wrong := what_is_wrong(directory / table / name, rows, size, footer):
            found.append(Fault(f"{table}/{name}", wrong, recorded))
    added = sorted(path.name for path in (directory / table).glob("*.parquet") if path.name not in names)
    return found + [Fault(f"{table}/{legible(name)}", "was not written with the others of its table", recorded) for name in added]


def what_is_wrong(path: Path, rows: object, size: object, footer: object) -> str | None:
    """What is wrong with a part of so many rows and bytes, whose footer has this checksum."""
    try:
        file = opened(path)
    except (FileNotFoundError, NotADirectoryError):
        return f"is missing ({rows:,} rows)" if isinstance(rows, int) else "is missing"
    with file:
        there = os.fstat(file.fileno()).st_size
        if there != size:
            return f"has {there:,} bytes and was written with {size:,}" if isinstance(size, int) else "is another file than was written"
        length = int.from_bytes(os.pread(file.fileno(), 4, there - 8), "little") if there >= 8 else 0
        if length > min(foreign.MAX_FOOTER_BYTES, there - 8):
            return "is another file than was written"
        if zlib.crc32(os.pread(file.fileno(), length, there - 8 - length)) != footer:
            return "is another file than was written"
    return None
