"""The notebooks, run on recordings: `FT_STORE` has two traces or more, as host=…/date=…/trace=…; that about many hosts, on a catalogue
of several.

Each must run to its end, with all its assertions, and draw its figures, without a network. `FT_FIGURES` names a directory
where they are left to be looked at.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import vl_convert
from nbclient import NotebookClient

import feather_trace as ft
from conftest import restated

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.py"))


def recordings() -> list[Path]:
    """The traces of the store."""
    store = os.environ.get("FT_STORE")
    if store is None:
        pytest.skip("FT_STORE does not name recordings; run `cargo xtask test readers`")
    return sorted(Path(store).absolute().glob("host=*/date=*/trace=*"))


def run(notebook: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, traces: list[Path]) -> nbformat.NotebookNode:
    source = Path(__file__).parents[1] / "src"
    for name, value in {
        "FT_STORE": traces[0].parents[2],
        "FT_TRACE": traces[0],
        "FT_TRACE_B": traces[1],
        # Whatever Jupyter keeps of a run.
        "HOME": folder,
        "IPYTHONDIR": folder,
        "JUPYTER_RUNTIME_DIR": folder,
        "PYTHONPATH": source,
    }.items():
        monkeypatch.setenv(name, str(value))
    book = jupytext.read(notebook)
    # Figures as their descriptions, and not as pages that load a library from elsewhere.
    book.cells.insert(0, nbformat.v4.new_code_cell("import altair; altair.renderers.enable('json');"))
    client = NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    # What fails stands in the outputs.
    client.allow_errors = True
    return client.execute()


def not_positive(view: dict[str, Any], datasets: dict[str, Any], data: Any = None, above: dict[str, Any] | None = None) -> Iterator[str]:
    """Values that a logarithmic scale has no place for: with one of them such an axis is empty."""
    data = view.get("data", data)
    encoding = {**(above or {}), **view.get("encoding", {})}
    below = [*view.get("layer", []), *view.get("vconcat", []), *view.get("hconcat", []), *([view["spec"]] if "spec" in view else [])]
    for inner in below:
        yield from not_positive(inner, datasets, data, encoding)
    if below or not data:
        return
    for row in data.get("values") or datasets.get(data.get("name"), []):
        for channel in encoding.values():
            is_log = isinstance(channel, dict) and (channel.get("scale") or {}).get("type") == "log"
            if is_log and row.get(channel["field"], 1) is not None and row.get(channel["field"], 1) <= 0:
                yield f"{channel['field']} = {row[channel['field']]}"


@pytest.mark.recordings
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn(run(notebook, tmp_path, monkeypatch, recordings()), notebook)


def test_what_has_no_length_is_drawn_on_a_scale_of_powers_of_ten(
    converted: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = []
    for name in ("a", "b"):
        traces.append(tmp_path / name)
        shutil.copytree(converted("scenarios"), traces[-1])
        path = traces[-1] / "critical_sections/part-00000.parquet"
        holds = pq.read_table(path)
        assert len(holds) > 20
        for column in ("dur", *(f"{part}_ns" for part in ft.PARTS)):
            at = holds.schema.get_field_index(column)
            shortened = pa.array([0] * 3 + holds.column(column).to_pylist()[3:], pa.int64())
            holds = holds.set_column(at, holds.schema.field(at), shortened)
        pq.write_table(holds, path)
        restated(traces[-1])
    for notebook in NOTEBOOKS:
        if notebook.stem in ("locks", "compare"):
            drawn(run(notebook, tmp_path, monkeypatch, traces), notebook)


def drawn(book: nbformat.NotebookNode, notebook: Path) -> None:
    """It ran to its end, and all its figures show something."""
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    failed = [o.get("text") or "\n".join(o.traceback) for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    assert not failed, failed[0]
    assert sum(cell.source.count("assert ") for cell in code) >= 3
    figures = [o.data["application/json"] for o in outputs if "application/json" in o.get("data", {})]
    assert len(figures) >= 2
    for number, figure in enumerate(figures):
        assert not (harmful := list(not_positive(figure, figure.get("datasets", {})))), harmful[0]
        # What is drawn has marks: an empty figure has none.
        svg = vl_convert.vegalite_to_svg(figure)
        assert len(re.findall(r'aria-roledescription="(?:bar|line mark|circle|point|rect mark|rule mark|area mark|text mark)"', svg)) >= 1, number
        if folder := os.environ.get("FT_FIGURES"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            png = vl_convert.vegalite_to_png(figure, scale=1.5)
            (Path(folder) / f"{notebook.stem}-{number}.png").write_bytes(png)


@pytest.mark.recordings
def test_every_recording_opens_by_names() -> None:
    for trace in map(ft.load, recordings()):
        views = ft.connect(trace.directory)
        events = " UNION ALL ".join(f'SELECT ts FROM event."{event}"' for event in trace.events)
        for table, rows in {"user_events": events, "critical_sections": "critical_sections", "threads": "threads"}.items():
            found = views.sql(f"SELECT count(*) FROM ({rows})").fetchall()[0][0]
            assert found == len(trace[table]) > 0, (trace, table)


def test_each_notebook_is_text_and_named_in_the_page() -> None:
    page = (Path(__file__).parents[1] / "README.md").read_text()
    assert len(NOTEBOOKS) == 5
    for notebook in NOTEBOOKS:
        assert f"notebooks/{notebook.name}" in page
        assert notebook.read_text().startswith("# ---\n# jupyter:"), "no outputs, no binary"
