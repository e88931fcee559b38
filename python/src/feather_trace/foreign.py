"""What somebody else has made: a file is looked at before it is read, and a name is made legible before it is shown.

The rules are the agent's, and so are the limits (LIMITS.md).
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

#: Largest file that is read as a whole.
MAX_WHOLE_BYTES = 64 << 20

#: How deep values of JSON lie within each other; the agent reads none that are deeper.
MAX_DEPTH = 127

#: Most bytes of the footer of a part, and of a column of a row group, packed or unpacked.
MAX_FOOTER_BYTES = 16 << 20
MAX_COLUMN_BYTES = 512 << 20

#: Most columns and row groups of a part: ours have some tens of columns, and a row group for each million rows.
MAX_COLUMNS = 1024
MAX_ROW_GROUPS = 16_384

#: Most rows of a row group, which pyarrow unpacks as a whole, and equal ones take no room in a file; ours have a million.
MAX_GROUP_ROWS = 4 << 20

#: Most memory that the rows of a table take: half of what the machine has.
MAX_TABLE_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2

#: Most names that an error lists.
MOST_NAMES = 100

#: Characters that cannot be seen and have an effect on others, as in `ft-trace/src/legible.rs`, which says why.
INVISIBLE = (
    (0xA0, 0xA0),
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE01EF),
)

# A control character, what stands in a path for a byte that is no text, an invisible character, and a backslash that would look as
# if it began one that was escaped.
TO_ESCAPE = re.compile(
    r"(?P<control>[\x00-\x1f\x7f-\x9f])|(?P<byte>[\ud800-\udfff])|\\(?=u\{[0-9a-f]+\})|["
    + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in INVISIBLE)
    + "]"
)


def legible(text: object) -> str:
    r"""A text as the agent shows it: control characters, which a terminal obeys, as `?`, invisible ones as their code points.

    So `\u{202e}` stands for a mark of direction. Where a text itself has these eight characters, its backslash becomes `\u{5c}`.
    """

    def escaped(found: re.Match[str]) -> str:
        if found["control"]:
            return "?"
        return "\ufffd" if found["byte"] else f"\\u{{{ord(found[0]):x}}}"

    return TO_ESCAPE.sub(escaped, str(text))


def shown(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with texts that are legible, to be printed or drawn; what compares texts wants those of the trace."""
    is_text = [not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind)) for kind in frame.dtypes]
    texts = frame.columns[is_text]
    made = {name: frame[name].astype(object).map(lambda value: legible(value) if isinstance(value, str) else value) for name in texts}
    return frame.assign(**made).rename(columns=lambda name: legible(name) if isinstance(name, str) else name)


def listed(names: Iterable[object]) -> str:
    """Names in an error: so many that it can be read."""
    found = list(names)
    more = f", and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else ""
    return ", ".join(legible(name) for name in found[:MOST_NAMES]) + more


def no_trace(directory: Path) -> FileNotFoundError:
    """The error of a directory that is no finished trace, or is not there."""
    if not directory.exists():
        return FileNotFoundError(f"there is no {legible(directory)}; name the directory that `ft-agent record` made")
    return FileNotFoundError(
        f"{legible(directory)} is not a finished trace: it holds no meta.json; "
        f"name the directory that `ft-agent record` made, or run `ft-agent convert` on it"
    )


class NotThere(KeyError):
    """A `KeyError` that reads as a sentence."""

    def __str__(self) -> str:
        return str(self.args[0])


def damaged(path: Path, reason: str, remedy: str = "restore this file, or move it away to read the rest of the table") -> ValueError:
    """The error of a file that is not what it should be."""
    return ValueError(f"{legible(path)} is damaged: {brief(reason)}; {remedy}")


def brief(reason: object) -> str:
    """What may quote what is in a file."""
    text = legible(reason)
    return text if len(text) <= 400 else text[:400] + "…"


def first_line(error: Exception) -> str:
    """What a library says, which can go on for long."""
    return next(iter(str(error).splitlines()), "")


def opened(path: Path) -> BinaryIO:
    """Opens a file for reading, whoever owns it and wherever a link leads. Raises `ValueError` for what is no regular file."""
    # Without blocking: a FIFO waits for a writer, a lease for its holder (open(2)).
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        # A socket.
        if error.errno == errno.ENXIO:
            raise no_file(path) from None
        raise OSError(error.errno, error.strerror, legible(path)) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise no_file(path)
    return os.fdopen(descriptor, "rb")


def no_file(path: Path) -> ValueError:
    return ValueError(f"{legible(path)} is no regular file, and is not read; bring the trace again from where it was recorded")


def whole(path: Path) -> str:
    """The text of a file."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > MAX_WHOLE_BYTES:
            raise too_large(path)
        # Some files of the kernel have no size.
        content = file.read(MAX_WHOLE_BYTES + 1) or b""
    if len(content) > MAX_WHOLE_BYTES:
        raise too_large(path)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise damaged(path, "it is not UTF-8", RESTORE) from None


RESTORE = "restore it, or convert the recording again"


def too_large(path: Path) -> ValueError:
    return ValueError(f"{legible(path)} is larger than {MAX_WHOLE_BYTES >> 20} MiB, and is not read; {RESTORE}")


def said(path: Path) -> dict[str, Any]:
    """The object that a file of JSON is."""

    def refused(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    text = whole(path)
    try:
        if depth(text) > MAX_DEPTH:
            raise ValueError(f"its values lie more than {MAX_DEPTH} deep within each other")
        found = json.loads(text, parse_constant=refused)
    except ValueError as error:
        raise damaged(path, first_line(error), RESTORE) from None
    if not isinstance(found, dict):
        raise damaged(path, "it is no object of JSON", RESTORE)
    return found


def depth(json: str) -> int:
    """How deep values lie within each other. Stops where that is too deep."""
    now = most = 0
    # Possessive: what is in a text takes no memory to look at.
    for found in re.finditer(r'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]', json, re.DOTALL):
        now += (found[0] in "[{") - (found[0] in "]}")
        most = max(most, now)
        if most > MAX_DEPTH:
            break
    return most


def has_footer(file: BinaryIO, path: Path) -> None:
    """Raises `ValueError` where a part says that its footer is larger than ours are: eight bytes before its end."""
    at = os.fstat(file.fileno()).st_size - 8
    if at >= 0 and int.from_bytes(os.pread(file.fileno(), 4, at), "little") > MAX_FOOTER_BYTES:
        raise damaged(path, "its footer is larger than any that the agent writes")


@contextmanager
def part(path: Path) -> Iterator[ds.ParquetFileFragment]:
    """A part of a table, of which no more than the footer was read."""
    with opened(path) as file:
        has_footer(file, path)
        try:
            # From this descriptor: its name may lead elsewhere by now.
            found = cast("ds.ParquetFileFragment", ds.ParquetFileFormat().make_fragment(file))
            if found.metadata.num_columns > MAX_COLUMNS or found.metadata.num_row_groups > MAX_ROW_GROUPS:
                raise damaged(path, f"it has {found.metadata.num_columns} columns and {found.metadata.num_row_groups} row groups")
            groups = [found.metadata.row_group(i) for i in range(found.metadata.num_row_groups)]
            columns = [(group, group.column(i)) for group in groups for i in range(group.num_columns)]
        except (pa.ArrowException, OSError) as error:
            raise damaged(path, first_line(error)) from None
        for group, column in columns:
            for size in (column.total_uncompressed_size, column.total_compressed_size):
                if not 0 <= size <= MAX_COLUMN_BYTES:
                    raise damaged(path, f"a part of its column {column.path_in_schema} takes {size} bytes of memory")
            if not 0 <= group.num_rows <= MAX_GROUP_ROWS:
                raise damaged(path, f"a part of it has {group.num_rows} rows")
        yield found


def looked_at(path: Path) -> None:
    """Raises `ValueError` for a part that an engine should not open."""
    with opened(path) as file:
        has_footer(file, path)
