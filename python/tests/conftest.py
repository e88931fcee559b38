"""Traces for the tests: the recordings that are stored in the repository, converted by the agent.

`FT_AGENT` names the agent; `cargo xtask test readers` builds it and calls these tests.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import feather_trace as ft

SPOOLS = Path(__file__).parents[2] / "tests/stored/spools"


def agent(*args: str | Path) -> str:
    """What the agent prints."""
    program = os.environ.get("FT_AGENT")
    if program is None:
        pytest.skip("FT_AGENT does not name the agent; run `cargo xtask test readers`")
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def unpack(recording: str, trace: Path) -> Path:
    """Puts the spool of a stored recording into a new directory."""
    (trace / "spool").mkdir(parents=True)
    for packed in (SPOOLS / recording).glob("*.zst"):
        with pa.input_stream(packed, compression="zstd") as stream:
            (trace / "spool" / packed.stem).write_bytes(stream.read())
    return trace


def values(column: pd.Series[Any]) -> list[Any]:
    """The values of a column as those of Python; what is absent is `None`."""
    return [None if pd.isna(value) else value for value in column.astype(object)]


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes an analysed trace of a stored recording, once."""
    made: dict[str, Path] = {}

    def make(recording: str) -> Path:
        if recording not in made:
            trace = unpack(recording, tmp_path_factory.mktemp(recording) / "trace")
            agent("convert", trace)
            agent("analyze", trace)
            made[recording] = trace
        return made[recording]

    return make


@pytest.fixture(params=["scenarios", "preload", "killed", "system"])
def directory(request: pytest.FixtureRequest, converted: Callable[[str], Path]) -> Path:
    """Each stored recording as a trace."""
    return converted(request.param)


@pytest.fixture
def trace(directory: Path) -> ft.Trace:
    """The same, opened."""
    return ft.load(directory)


def restated(trace: Path) -> None:
    """Has a trace whose parts a test has written anew say that they are those that were written."""
    rows = []
    for name in ("meta.json", "analysis.json"):
        said = json.loads((trace / name).read_text())
        for table in said["tables"]:
            files = []
            for path in sorted((trace / table).glob("part-*.parquet")):
                content = path.read_bytes()
                footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
                about = {"part": int(path.stem[5:]), "rows": pq.read_metadata(path).num_rows, "bytes": len(content)}
                files.append({**about, "footer_crc32": zlib.crc32(footer)})
                rows.append(f"('{table}', '{path.name}', {about['rows']}, {about['bytes']}, {str(name == 'meta.json').lower()})")
            if name == "meta.json":
                said["tables"][table]["files"] = files
            else:
                said["tables"][table] = files
        (trace / name).write_text(json.dumps(said))
    script, changed = re.subn(r"\(VALUES.*?\) AS t\(name, file,", f"(VALUES {', '.join(rows)}) AS t(name, file,", (trace / "views.sql").read_text(), flags=re.DOTALL)
    assert changed == 1
    (trace / "views.sql").write_text(script)
