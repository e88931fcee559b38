"""Writes what `readers.py` expects of all tables of some traces, as pyarrow reads them: expected.py FILE TRACE…"""

import json
import sys
from pathlib import Path

import pyarrow.dataset

TYPES = {"int64": "bigint", "int32": "int", "bool": "boolean", "double": "double"}


def plain(value):
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)


def table(directory):
    data = pyarrow.dataset.dataset(directory, format="parquet").to_table()
    return {
        "directory": str(directory),
        "columns": {field.name: TYPES.get(str(field.type), "string") for field in data.schema},
        "rows": [[plain(value) for value in row] for row in zip(*(column.to_pylist() for column in data.columns))],
    }


tables = [table(part.parent) for trace in sys.argv[2:] for part in sorted(Path(trace).glob("*/part-00000.parquet"))]
Path(sys.argv[1]).write_text(json.dumps(tables))
