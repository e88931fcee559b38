"""Traces for the tests: the recordings that are stored in the repository, converted by the agent.

`FT_AGENT` names the agent; `cargo xtask test readers` builds it and calls these tests.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
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
