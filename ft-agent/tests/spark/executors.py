"""Has the traces of a catalogue analysed by an engine, and compares every file with what one process made.

usage: executors.py spark|sail AGENT CATALOGUE SERIAL

CATALOGUE is not analysed yet; SERIAL holds the same traces, analysed by the agent itself. `spark` has two executors in
processes of their own. The executor that first takes up a trace is killed before the agent has begun on it: the program that
they get starts the agent, but for that trace, once, waits instead until the executor is killed.
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from engines import driver, session

WAITING = """#!/bin/sh
case "$*" in
*"{path}"*)
    echo >>"{here}/taken-up"
    if mkdir "{here}/taken" 2>/dev/null; then echo $$ >"{here}/pid.new"; mv "{here}/pid.new" "{here}/pid"; sleep 600; fi
    ;;
esac
exec "{agent}" "$@"
"""


def files(root):
    """All files but scripts that name their place."""
    found = (path for path in Path(root).rglob("*") if path.is_file() and path.name != "views.sql")
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def differences(one, other):
    one, other = files(one), files(other)
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def executor_of(pid):
    """The executor among the ancestors of a process."""
    while pid > 1:
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    raise LookupError("the agent is no child of an executor")


def kill_the_executor(here, killed):
    while not (here / "pid").exists():
        time.sleep(0.05)
    executor = executor_of(int((here / "pid").read_text()))
    os.kill(executor, signal.SIGKILL)
    killed.append(executor)


def outcomes(done):
    return {outcome: int(count) for outcome, count in done["outcome"].value_counts().sort_index().items()}


def main():
    engine, agent, catalogue, serial = sys.argv[1:]
    here = Path(tempfile.mkdtemp(dir=Path(catalogue).parent))
    fresh = str(here / "fresh")
    shutil.copytree(catalogue, fresh)
    spark = session(engine)

    done = driver.analyze(spark, catalogue, agent=agent)
    print(engine, "first", outcomes(done))
    print(*done["why"].dropna())
    print(engine, "differences", differences(catalogue, serial))
    again = driver.analyze(spark, catalogue, agent=agent)
    print(engine, "again", outcomes(again))

    if engine == "spark":
        path = done[done["outcome"] == "analysed"]["path"].iloc[7]
        program = here / "ft-agent-that-waits"
        program.write_text(WAITING.format(path=path, here=here, agent=agent))
        program.chmod(0o755)
        killed = []
        killer = threading.Thread(target=kill_the_executor, args=(here, killed), daemon=True)
        killer.start()
        done = driver.analyze(spark, fresh, agent=str(program))
        killer.join(timeout=60)
        taken = len((here / "taken-up").read_text())
        # A task can be lost between its results' being stored and its own: then they are found there.
        failed = int((done["outcome"] == "failed").sum())
        print(engine, "killed", len(killed), "taken", taken, "done", len(done) - failed, "failed", failed)
        print(engine, "differences", differences(fresh, serial))
    spark.stop()


main()
