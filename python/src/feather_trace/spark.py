"""The traces of a catalogue in Spark: analysed by its executors, or by those of an engine with its interface (Sail); and read.

A trace is a task, and the agent does it: it fetches the trace, and stores what it finds beside it, whole. So there is
nothing here that could differ from `ft-agent analyze` of the same trace.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# What becomes of a trace, as Spark has it.
COLUMNS = "path string, outcome string, events bigint, why string"

FAILED = "failed"


def analyze(
    spark: SparkSession, catalogue: str, only: Sequence[str] = (), agent: str | os.PathLike[str] = "ft-agent"
) -> pd.DataFrame:
    """Computes the results that traces of a catalogue lack, one trace a task; returns what has become of each.

    `catalogue` is what `ft-agent catalogue` takes: a directory that all executors see under this absolute path, or
    s3://BUCKET/PREFIX. `only` names tables of results; all are made otherwise. `agent` is the program here: a path is
    sent to the executors with the job, a mere name is looked up where each runs; by Spark Connect nothing is sent, and
    the path must be the same there.

    The columns are `path`, `outcome` (`analysed`, `was analysed already`, `failed`), `events` of those analysed now, and
    `why` of those that failed, which do not keep the others. Running it again does what is left. A task whose executor
    is lost is done again by Spark, at times by two executors at once, and finds its results where they were stored already. The
    keys of a store come from the executors' environment (`spark.executorEnv.AWS_ACCESS_KEY_ID` and the like), and each task
    needs room for one trace in its TMPDIR.

    Raises `RuntimeError` when the catalogue cannot be listed.
    """
    from pyspark import cloudpickle

    agent = os.fspath(agent)
    listing = answer([agent, "catalogue", catalogue, "--json"])
    if "traces" not in listing:
        raise RuntimeError(listing["why"])
    paths = [trace["path"] for trace in listing["traces"]]
    # Executors need not have this package.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    context = getattr(spark, "sparkContext", None)
    is_sent = False
    if context is not None and os.sep in agent:
        context.addFile(agent)
        is_sent = True

    def tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        program = agent
        if is_sent:
            from pyspark import SparkFiles

            program = SparkFiles.get(os.path.basename(agent))
        return results(batches, program, catalogue, list(only))

    # From one part, rows are dealt out one by one: each trace is a task.
    frame = spark.createDataFrame([(path,) for path in paths], "path string").coalesce(1).repartition(max(1, len(paths)))
    done: pd.DataFrame = frame.mapInArrow(tasks, COLUMNS).toPandas()
    # Rows that cannot be read name no trace.
    for row, wrong in enumerate(listing["wrong"], start=len(done)):
        done.loc[row] = [None, FAILED, None, wrong]
    done["events"] = done["events"].astype("Int64")
    return done.sort_values("path", ignore_index=True)


def results(
    batches: Iterable[pa.RecordBatch], program: str, catalogue: str, only: list[str]
) -> Iterator[pa.RecordBatch]:
    """What becomes of the traces of these paths, each as soon as it is known. Runs on an executor."""
    import pyarrow as pa

    fields: list[pa.Field[Any]] = [pa.field("path", pa.string()), pa.field("outcome", pa.string())]
    fields += [pa.field("events", pa.int64()), pa.field("why", pa.string())]
    schema = pa.schema(fields)
    for batch in batches:
        for path in batch.column(0).to_pylist():
            row = task(program, catalogue, str(path), only)
            yield pa.RecordBatch.from_pylist([row], schema=schema)


def task(program: str, catalogue: str, path: str, only: list[str]) -> dict[str, Any]:
    """Has one trace analysed."""
    command = [program, "analyze", f"{catalogue.rstrip('/')}/{path}", "--json"]
    said = answer([*command, "--only", ",".join(only)] if only else command)
    if "traces" not in said:
        return {"path": path, "outcome": FAILED, "why": said["why"]}
    [trace] = said["traces"]
    return {"path": path, "outcome": trace["outcome"], "events": trace.get("events"), "why": trace.get("why")}


def answer(command: list[str]) -> dict[str, Any]:
    """What the agent says, or `why` there is no answer."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError as error:
        return {"why": f"{command[0]} cannot be started: {error.strerror}"}
    try:
        said: dict[str, Any] = json.loads(done.stdout)
        return said
    except ValueError:
        why = done.stderr.strip().splitlines() or ["it said nothing"]
        ended = f"was ended by signal {-done.returncode}" if done.returncode < 0 else why[-1]
        return {"why": f"{Path(command[0]).name} {command[1]}: {ended}"}


def plain(catalogue: str) -> str:
    """A catalogue that is no pattern. Raises `ValueError` for one that Spark would take for one."""
    if found := re.search(r"[*?\[\]{}\\\x00-\x1f]", catalogue):
        raise ValueError(f"Spark takes {found[0]!r} in the path of a catalogue for a pattern; give it another name, or a link to it")
    return catalogue.rstrip("/")


def every(spark: SparkSession, catalogue: str, table: str) -> DataFrame:
    """The rows of a table of every trace, with its `host`, `date` and `trace`; `catalogue` is a path or URL as Spark takes it (s3a://…).

    What lies in the catalogue without a row is no trace. Raises what Spark does when no trace has the table.
    """
    root = plain(catalogue)
    # A host may be called 007.
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    rows = spark.read.option("basePath", root).parquet(f"{root}/host=*/date=*/trace=*/{table}")
    return rows.join(spark.read.parquet(f"{root}/traces").select("trace"), "trace", "left_semi")


def views(spark: SparkSession, catalogue: str) -> None:
    """Makes the views `traces` and `histograms` of a catalogue, and the functions `bucket` and `percentile_ns`, in a session.

    They are those of `fleet_spark.sql`, which Spark's own shell reads, too; Spark must be 4.0 or newer.
    """
    script = Path(__file__).with_name("fleet_spark.sql").read_text()
    # As the literal of a text.
    place = plain(catalogue).replace("'", "\\'")
    script = re.sub("^--.*$", "", script, flags=re.MULTILINE)
    for statement in script.split(";"):
        if statement.strip():
            spark.sql(statement.replace("${fleet}", place))
