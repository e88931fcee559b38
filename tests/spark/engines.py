"""The engines of these tests, each on this machine alone, and the module that drives them."""

import importlib.util
import os
import sys
from pathlib import Path

# Not the whole package, whose readers need more than an engine has.
spec = importlib.util.spec_from_file_location(
    "fleet_by_spark", Path(__file__).parents[2] / "python/src/feather_trace/spark.py"
)
driver = importlib.util.module_from_spec(spec)
sys.modules["fleet_by_spark"] = driver
spec.loader.exec_module(driver)


def session(engine):
    """`spark`, with two executors in processes of their own, or `sail`, in this one."""
    return {"spark": spark_session, "sail": sail_session}[engine]()


def spark_session():
    # It asks the name server for its own name otherwise, and listens where others can reach it.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.executor.memory", "512m").config("spark.log.level", "ERROR")
    return builder.getOrCreate()


def sail_session():
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    # It ends with this object, so the object is kept.
    global server
    server = SparkConnectServer()
    server.start()
    _, port = server.listening_address
    return SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
