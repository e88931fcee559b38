"""Traces that somebody else has made, to do harm: what is no file, what is too much, and names that a terminal obeys."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import feather_trace as ft
import feather_trace.spark
from conftest import restated

RUST = Path(__file__).parents[2] / "ft-trace/src"

# Turns a terminal red, a C1 control that does the same, turns what follows around, is not seen (and is no mark of format to Python), and a
# text that looks like one that was made legible.
EVIL = "\x1b[31m\x9b31m\u202e\ufe0f\u3164\\u{202e}\nend"
LEGIBLE = "?[31m?31m\\u{202e}\\u{fe0f}\\u{3164}\\u{5c}u{202e}?end"

TEXT = pa.dictionary(pa.int32(), pa.string())


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    """A test that waits for somebody fails."""

    def fail(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("it waits, or does not end")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def columns(number: int, **others: Any) -> dict[str, pa.Array]:
    """So many events of a site."""
    found = {"ts": pa.array(range(number), pa.int64())}
    found |= {name: pa.array([7] * number, pa.int32()) for name in ("pid", "tid", "cpu", "site")}
    found["kind"] = pa.array(["event"] * number).cast(TEXT)
    for i in range(6):
        found[f"arg{i}"] = pa.nulls(number, pa.int64())
        found[f"argf{i}"] = pa.nulls(number, pa.float64())
        found[f"argt{i}"] = pa.array([EVIL] * number).cast(TEXT)
    return found | others


def store(path: Path, found: dict[str, pa.Array] | pa.Table, **options: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(found if isinstance(found, pa.Table) else pa.table(found), path, **options)


META: dict[str, Any] = {
    "schema_version": 8,
    "start": {"host": "h", "boot_id": "b"},
    "clock": {"bound_ns": 1, "realtime_offset_ns": 2},
}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A small trace whose names are hostile, and its directory's, too."""
    trace = tmp_path / f"trace {EVIL}"
    trace.mkdir()
    (trace / "meta.json").write_text(json.dumps(META))
    (trace / "views.sql").write_text("")
    store(trace / "user_events/part-00000.parquet", columns(3))
    site = {"site": pa.array([7], pa.int32()), "event": pa.array([EVIL]).cast(TEXT), "args": pa.array([f"{EVIL}:str"]).cast(TEXT)}
    store(trace / "sites/part-00000.parquet", site)
    thread = {"ts": pa.array([0], pa.int64()), "pid": pa.array([7], pa.int32()), "tid": pa.array([7], pa.int32()), "name": pa.array([EVIL]).cast(TEXT)}
    store(trace / "threads/part-00000.parquet", thread)
    return trace


def is_seen(text: str) -> bool:
    """Whether nobody is fooled by a text: by Unicode's own list, and not by that of the package."""
    return not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") or c in "\u3164\ufe0f" for c in text)


def refused(what: Callable[[], object], words: str, kind: type[Exception] = ValueError) -> None:
    """It is refused in one sentence, which says what to do."""
    with pytest.raises(kind, match=words) as error:
        what()
    text = str(error.value)
    assert is_seen(text), text
    assert len(text) < 1500 and "; " in text, text


def fifo(path: Path) -> None:
    os.mkfifo(path)


def bound(path: Path) -> None:
    # A path of a socket is short.
    here = os.open(path.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


NO_FILES: dict[str, Callable[[Path], None]] = {
    "fifo": fifo,
    "socket": bound,
    "zeros": lambda path: path.symlink_to("/dev/zero"),
    "link to a fifo": lambda path: (os.mkfifo(path.with_suffix(".fifo")), path.symlink_to(path.with_suffix(".fifo")))[1],
    "directory": Path.mkdir,
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_neither_waited_for_nor_read(made: Path, kind: str) -> None:
    trace, meta = ft.load(made), (made / "meta.json").read_bytes()
    for name, ask in {
        "threads/part-00000.parquet": lambda: trace["threads"],
        "user_events/part-00001.parquet": lambda: trace["user_events"],
        "views.sql": lambda: ft.connect(made),
        "meta.json": lambda: ft.load(made),
    }.items():
        (made / name).unlink(missing_ok=True)
        NO_FILES[kind](made / name)
        refused(ask, "no regular file.*bring the trace again")
    # DuckDB would leave out the rows of such a part, and not say so.
    (made / "views.sql").rename(made / "gone") if (made / "views.sql").is_dir() else (made / "views.sql").unlink()
    (made / "views.sql").write_text("")
    (made / "meta.json").rename(made / "gone too")
    (made / "meta.json").write_bytes(meta)
    refused(lambda: ft.connect(made), "part-0000.*no regular file")


def test_a_link_to_a_file_is_one(made: Path) -> None:
    (made / "meta.json").rename(made.parent / "elsewhere")
    (made / "meta.json").symlink_to(made.parent / "elsewhere")
    assert len(ft.load(made)["threads"]) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 100_000, "more than 127 deep"),
        (b'{"a": ' + b"[" * 127 + b"]" * 127 + b"}", "more than 127 deep"),
        (b"[]", "no object"),
        (b'{"schema_version": 8, "start": NaN}', "NaN is no JSON"),
        (b'{"schema_version": ' + b"6" * 10_000 + b"}", "damaged"),
        (b'{"\xff": 1}', "not UTF-8"),
        (b"{", "damaged"),
        (json.dumps({**META, "clock": []}).encode(), "`clock.bound_ns` is no whole number"),
        (json.dumps({**META, "clock": {"bound_ns": 10**30, "realtime_offset_ns": 0}}).encode(), "`clock.bound_ns` is no whole number"),
        (json.dumps({**META, "start": {"host": 1, "boot_id": ""}}).encode(), "`start.host` is no text"),
        (json.dumps({**META, "schema_version": EVIL * 1000}).encode(), "has schema version .*use the package"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_what_a_trace_says_of_itself_is_checked(made: Path, content: bytes, words: str) -> None:
    (made / "meta.json").write_bytes(content)
    refused(lambda: ft.load(made), words)


def test_values_may_lie_deep_within_each_other(made: Path) -> None:
    deep: Any = "[" * 1000 + '"]}'
    for _ in range(125):
        deep = [deep]
    (made / "meta.json").write_text(json.dumps({**META, "deep": deep}))
    assert ft.load(made).meta["deep"] == deep


def test_what_is_too_large_is_not_read(made: Path) -> None:
    for name in ("meta.json", "views.sql"):
        os.truncate(made / name, (64 << 20) + 1)
        refused(lambda: ft.load(made) if name == "meta.json" else ft.connect(made), "larger than 64 MiB")  # noqa: B023


def test_limits_are_those_of_the_agent() -> None:
    from feather_trace import foreign

    for name, file in {"MAX_WHOLE_BYTES": "dir.rs", "MAX_FOOTER_BYTES": "store/parts.rs", "MAX_COLUMN_BYTES": "store/reader.rs"}.items():
        [found] = re.findall(rf"const {name}: \w+ = (\d+) << 20;", (RUST / file).read_text())
        assert getattr(foreign, name) == int(found) << 20
    source = (RUST / "legible.rs").read_text()
    listed = source[source.index("matches!(") : source.index("/// A text in which")]
    ranges = re.findall(r"'\\u\{(\w+)\}'(?:..='\\u\{(\w+)\}')?", listed)
    assert tuple((int(first, 16), int(last or first, 16)) for first, last in ranges) == foreign.INVISIBLE
    [rows] = re.findall(r"const ROW_GROUP_ROWS: usize = ([\d_]+);", (RUST / "store/part.rs").read_text())
    assert foreign.MAX_GROUP_ROWS >= 4 * int(rows)


def test_what_cannot_be_seen_is_shown() -> None:
    # As `legible` of the agent; a text that has the look of its result differs here.
    for text, shown in [
        ("worker \u00e4\u65e5", "worker \u00e4\u65e5"),
        ("a\u202e gpj.exe", "a\\u{202e} gpj.exe"),
        ("\u200bzero\ufeff", "\\u{200b}zero\\u{feff}"),
        ("\x1b[31m\0\x9b", "?[31m??"),
        ("\U000e0041", "\\u{e0041}"),
        (" a\u00a0\u2800 \u3000", " a\\u{a0}\\u{2800} \\u{3000}"),
        ("\\u{202e}", "\\u{5c}u{202e}"),
        ("\\u{5c}u{202e}", "\\u{5c}u{5c}u{202e}"),
        ("C:\\users \\u{} \\u202e \\", "C:\\users \\u{} \\u202e \\"),
        (os.fsdecode(b"\xff"), "\ufffd"),
        (EVIL, LEGIBLE),
    ]:
        assert ft.legible(text) == shown


def test_names_are_shown_and_kept(made: Path) -> None:
    trace = ft.load(made)
    shown = f"trace {LEGIBLE}"
    assert repr(trace) == str(trace) == f"Trace('{made.parent}/{shown}')"
    frame = trace.event(EVIL)
    # As they are, in what computes with them.
    assert trace.events == [EVIL] and frame["comm"].iloc[0] == EVIL and frame[EVIL].iloc[0] == EVIL
    assert trace["threads"]["name"].iloc[0] == EVIL
    drawn = ft.shown(frame)
    assert drawn["comm"].iloc[0] == drawn[LEGIBLE].iloc[0] == LEGIBLE and list(drawn["ts"]) == list(frame["ts"])
    assert is_seen("".join(drawn.columns))
    (made / EVIL).mkdir()
    shutil.copy(made / "threads/part-00000.parquet", made / EVIL)
    for ask, words in {
        lambda: trace["nothing"]: f"trace {LEGIBLE} has no table 'nothing'; it has {LEGIBLE}, ",
        lambda: trace.about("nothing"): f"trace {LEGIBLE} has no table",
        lambda: trace.table("threads", [EVIL]): f"trace {LEGIBLE} has no column {LEGIBLE}; it has ts",
        lambda: trace.event("nothing"): f"has no event 'nothing'; it has {LEGIBLE}",
        lambda: ft.across([trace], EVIL, EVIL, "nothing"): f"'{LEGIBLE}' of .*trace {LEGIBLE} has no argument",
    }.items():
        with pytest.raises(KeyError) as error:
            ask()
        assert re.search(re.escape(words).replace("\\.\\*", ".*"), str(error.value)) and is_seen(str(error.value)), str(error.value)
    (made / "views.sql").unlink()
    refused(lambda: ft.connect(made), "no views.sql", FileNotFoundError)
    (made / "meta.json").unlink()
    refused(lambda: ft.load(made), "no meta.json", FileNotFoundError)


def test_an_error_lists_some_names(made: Path) -> None:
    names = [f"event {i} {'x' * 10}" for i in range(100_000)]
    site = {"site": pa.array(range(100_000), pa.int32()), "event": pa.array(names).cast(TEXT), "args": pa.array([""] * 100_000).cast(TEXT)}
    store(made / "sites/part-00000.parquet", site)
    with pytest.raises(KeyError, match="and 99900 more") as error:
        ft.load(made).event("nothing")
    assert len(str(error.value)) < 5000


def test_a_footer_says_how_much_it_takes_to_read_it(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = made / "user_events/part-00000.parquet"
    whole = part.read_bytes()
    # A file of holes, whose footer is said to fill it.
    os.truncate(part, 32 << 20)
    with part.open("r+b") as file:
        file.seek((32 << 20) - 8)
        file.write(((32 << 20) - 12).to_bytes(4, "little") + b"PAR1")
    refused(lambda: ft.load(made)["user_events"], "footer is larger")
    refused(lambda: ft.connect(made), "footer is larger")
    for damage in (b"", b"PAR1", whole[:-5], whole[:-100] + b"\xff" * 92 + whole[-8:]):
        part.write_bytes(damage)
        refused(lambda: ft.load(made)["user_events"], "is damaged")
    part.write_bytes(whole)
    monkeypatch.setattr("feather_trace.foreign.MAX_COLUMN_BYTES", 10)
    refused(lambda: ft.load(made)["user_events"], "column ts takes .* bytes of memory")


def test_a_part_has_some_columns_and_row_groups(made: Path) -> None:
    part = made / "loss/part-00000.parquet"
    store(part, {f"c{i}": pa.array([1]) for i in range(10_000)})
    refused(lambda: ft.load(made)["loss"], "10000 columns and 1 row groups")
    with pq.ParquetWriter(part, pa.schema([("ts", pa.int64())])) as writer:
        for _ in range(20_000):
            writer.write_table(pa.table({"ts": pa.array([1])}))
    refused(lambda: ft.load(made)["loss"], "1 columns and 20000 row groups")


def test_equal_rows_take_no_room_in_a_file_and_are_bounded_in_memory(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = made / "loss/part-00000.parquet"
    rows = pa.table({"ts": pa.repeat(pa.scalar(0, pa.int64()), 6_000_000)})
    store(part, rows, row_group_size=6_000_000)
    assert part.stat().st_size < 100_000
    refused(lambda: ft.load(made)["loss"], "6000000 rows")
    store(part, rows, row_group_size=1_000_000)
    assert len(ft.load(made)["loss"]) == 6_000_000
    monkeypatch.setattr("feather_trace.foreign.MAX_TABLE_BYTES", 24 << 20)
    refused(lambda: ft.load(made)["loss"], "more than 24 MiB of memory.*name fewer")
    # What is looked for need not be all that is looked at.
    assert ft.load(made).table("loss", where=ds.field("ts") * 2 > 0).empty


def test_a_text_that_stands_in_each_row_has_its_length_once(made: Path) -> None:
    """In a file it does, and in memory where it is a dictionary: the agent writes no other texts."""
    part = made / "threads/part-00000.parquet"
    large = pq.read_table(part).set_column(3, "name", pa.array([EVIL]))
    store(part, large)
    refused(lambda: ft.load(made)["threads"], "column `name` is of the type string, which the agent does not write")


def test_columns_are_those_that_the_agent_writes(made: Path) -> None:
    trace, part = ft.load(made), made / "user_events/part-00000.parquet"
    for found, words in [
        ({"tid": pa.array([EVIL] * 3).cast(TEXT)}, "column `tid` is of the type dictionary"),
        ({"pid": pa.array([1, 2, 3], pa.float64())}, "column `pid` is of the type double"),
        ({EVIL: pa.array([[1]] * 3)}, "is of the type list"),
        ({"ts": pa.array(["a"] * 3).cast(TEXT)}, "first column, `ts`, is no whole number"),
    ]:
        store(part, columns(3, **found))
        refused(lambda: trace["user_events"], words)
        refused(lambda: trace.table("user_events", ["cpu"]), words)
    short = columns(3)
    del short["site"], short["kind"]
    store(part, short)
    refused(lambda: trace.event(EVIL), "no column kind, site")
    whole = columns(3)
    store(part, pa.table([*whole.values(), whole["ts"]], [*whole, "ts"]))
    refused(lambda: trace["user_events"], "two of its columns have one name")
    store(part, pa.table({}))
    refused(lambda: trace["user_events"], "no column")
    store(part, whole)
    store(part.with_name("part-00001.parquet"), columns(3, more=pa.array([1] * 3)))
    refused(lambda: trace["user_events"], "not those of the other parts")
    refused(lambda: trace.table("user_events", where=ds.field(EVIL) == 1), "`where` does not fit")


def test_a_text_is_one(made: Path) -> None:
    part = made / "threads/part-00000.parquet"
    broken = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    rows = pq.read_table(part)
    names = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), broken)
    store(part, rows.set_column(rows.schema.get_field_index("name"), rows.schema.field("name"), names))
    refused(lambda: ft.load(made)["threads"], "is damaged")


def test_arguments_beyond_those_that_an_event_has_are_none(made: Path) -> None:
    site = {"site": pa.array([7], pa.int32()), "event": pa.array(["e"]).cast(TEXT), "args": pa.array(["a:str, " * 100_000]).cast(TEXT)}
    store(made / "sites/part-00000.parquet", site)
    assert len(ft.load(made).event("e").columns) == 7 + 6


PLACES = ["it's", 'quo"te', "[a]", "*", "**", "a?b", "a[!b]", "{a,b}", "a;b -- c", "line\nend", "\u202e", "%41 ~"]


@pytest.mark.parametrize("name", PLACES)
def test_a_trace_is_found_whatever_its_directory_is_called(converted: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    there = tmp_path / name / "trace"
    there.parent.mkdir()
    there.symlink_to(converted("killed"))
    # Which a pattern would find, too.
    for other in ("a", "aab", "b"):
        (tmp_path / other).mkdir(exist_ok=True)
    expected = len(ft.load(there)["threads"])
    assert ft.connect(there).sql("FROM threads").aggregate("count(*)").fetchall() == [(expected,)]


@pytest.mark.parametrize("name", ["a\\b", "tail\\", os.fsdecode(b"\xff")])
def test_a_directory_that_duckdb_cannot_name_is_refused(made: Path, name: str) -> None:
    there = made.parent / name
    (made / "views.sql").write_text("SELECT 1")
    made.rename(there)
    refused(lambda: ft.connect(there), "backslash or is not UTF-8; give it another name")
    refused(lambda: ft.fleet(there), "backslash or is not UTF-8; give it another name")
    assert len(ft.load(there)["threads"]) == 1


def test_a_catalogue_that_is_a_pattern_to_spark_is_refused() -> None:
    for name in ("/a[b]", "/a*", "/a\\b", "/{a}", "/a?", "/a\n"):
        refused(lambda: feather_trace.spark.every(None, name, "threads"), "for a pattern; give it another name")  # type: ignore[arg-type] # noqa: B023
        refused(lambda: feather_trace.spark.views(None, name), "for a pattern; give it another name")  # type: ignore[arg-type] # noqa: B023


def changed(trace: Path, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    for part in (trace / table).glob("*.parquet"):
        store(part, change(pq.read_table(part)))


def as_text(column: str) -> Callable[[pa.Table], pa.Table]:
    def change(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(column)
        return rows.set_column(at, column, rows.column(at).cast(pa.string()))

    return change


@pytest.mark.parametrize(
    ("table", "change", "words"),
    [
        ("threads", lambda rows: rows.drop_columns(["name"]), "the table threads of this trace has other columns"),
        ("threads", lambda rows: rows.append_column(EVIL, rows.column(0)), "the table threads of this trace has other columns"),
        ("sched_switch", as_text("next_tid"), "the table sched_switch of this trace has other columns"),
        ("user_events", lambda rows: rows.select(["ts"]), "the table user_events of this trace has other columns"),
        ("critical_sections", lambda rows: rows.drop_columns(["lock"]), "lock.*ft-agent analyze"),
    ],
)
def test_views_that_do_not_fit_the_tables_are_refused(
    converted: Callable[[str], Path], tmp_path: Path, table: str, change: Callable[[pa.Table], pa.Table], words: str
) -> None:
    trace = tmp_path / "trace"
    shutil.copytree(converted("killed"), trace)
    changed(trace, table, change)
    restated(trace)
    refused(lambda: ft.connect(trace), words)


def test_what_duckdb_says_of_views_is_legible(made: Path) -> None:
    there = made.rename(made.parent / "\x1b[31m\u202e")
    (there / "views.sql").write_text("SELECT 1 " + EVIL.replace("\n", ""))
    refused(lambda: ft.connect(there), "does not fit the tables beside it.*or run `ft-agent analyze")
