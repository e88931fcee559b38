"""Opens every table of traces with Spark, and compares it with what another Python has read.

usage: readers.py FILE

FILE is JSON: a list of tables, each with its `directory`, its `columns` (name to Spark's name of the type) and its
`rows`, lists of values. Ends with status 1 and one line for each fault.
"""

import json
import os
import sys


def plain(value):
    """A value as it is in the file: what is no number is text."""
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)


def main():
    # It asks the name server for its own name otherwise, and listens where others can reach it.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # For questions as small as these a Java machine should neither compile much nor collect garbage in parallel.
    os.environ["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    # Not before it is known that the arguments make sense: this starts a Java machine.
    from pyspark.sql import SparkSession

    with open(sys.argv[1]) as file:
        tables = json.load(file)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.codegen.wholeStage", "false")
    spark = builder.config("spark.log.level", "ERROR").getOrCreate()
    faults = []
    for table in tables:
        frame = spark.read.parquet(table["directory"])
        if dict(frame.dtypes) != table["columns"]:
            faults.append(f"{table['directory']}: {frame.dtypes} instead of {table['columns']}")
            continue
        found = sorted(repr([plain(value) for value in row]) for row in frame.collect())
        expected = sorted(map(repr, table["rows"]))
        if found != expected:
            faults.append(f"{table['directory']}: {found} instead of {expected}")
    spark.stop()
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(tables)} tables")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
