"""Has the traces of a catalogue analysed by an engine, and compares every file with what one process made.

usage: executors.py spark|sail AGENT CATALOGUE SERIAL

CATALOGUE is not analysed yet; SERIAL holds the same traces, analysed by the agent itself. `spark` has two executors in
processes of their own, of which one is killed, twice: as if its machine went away. First when it has taken up a trace and the
agent has not begun on it: the program that the executors get starts the agent, but for that trace, once, waits instead until the
executor is killed. Then in the middle of storing a trace's results: there the agent is killed as it stores one of their tables,
by strace, and the executor after it. Without strace that is not done, and nothing is printed of it.
"""

import os
import shutil
import signal
import subprocess
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
    if mkdir "{here}/taken" 2>/dev/null; then
        {before}
        ls "{catalogue}/{path}" >"{here}/left"
        echo $$ >"{here}/pid.new"; mv "{here}/pid.new" "{here}/pid"; sleep 600
    fi
    ;;
esac
exec "{agent}" "$@"
"""

# The table at which the agent is killed: neither the first nor the last that it stores.
TABLE = "gaps"
KILLED = 'strace -f -o "{here}/strace" -P "{catalogue}/{path}/{table}" -e trace=renameat -e inject=renameat:signal=KILL:when=1 "{agent}" "$@"'


def files(root):
    """All files but scripts that name their place, and what was on its way when somebody was killed, which is in no table."""
    found = (path for path in Path(root).rglob("*") if path.is_file() and path.name != "views.sql")
    found = (path for path in found if not path.parent.name.startswith(".incoming-"))
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


def killed_at(spark, moment, agent, fresh, path, here):
    """Analyses a fresh catalogue, and has an executor killed; how often the trace was taken up, what became of all, and what was there of
    the trace when the executor was killed."""
    here.mkdir()
    catalogue = here / "fleet"
    shutil.copytree(fresh, catalogue)
    places = {"path": path, "here": here, "agent": agent, "catalogue": catalogue}
    before = KILLED.format(table=TABLE, **places) if moment == "within" else ":"
    program = here / f"ft-agent-killed-{moment}"
    program.write_text(WAITING.format(before=before, **places))
    program.chmod(0o755)
    killed = []
    killer = threading.Thread(target=kill_the_executor, args=(here, killed), daemon=True)
    killer.start()
    done = driver.analyze(spark, str(catalogue), agent=str(program))
    killer.join(timeout=60)
    assert len(killed) == 1, "an executor was killed"
    return len((here / "taken-up").read_text()), done, (here / "left").read_text().split()


def can_trace():
    try:
        return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


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
        for moment in ("before", "within"):
            if moment == "within" and not can_trace():
                continue
            taken, done, left = killed_at(spark, moment, agent, fresh, path, here / moment)
            # A task can be lost between its results' being stored and its own: then they are found there.
            failed = int((done["outcome"] == "failed").sum())
            # More than twice where the lost executor had dealt out the tasks: Spark begins again with all that are not done, and
            # those that it had begun go on.
            taken = "again" if taken >= 2 else taken
            print(engine, moment, "taken", taken, "done", len(done) - failed, "failed", failed)
            if moment == "within":
                is_begun = "critical_sections" in left and "histograms" not in left and "analysis.json" not in left
                print(engine, "left", "some of its results" if is_begun else left)
            print(engine, "differences", differences(here / moment / "fleet", serial))
    spark.stop()


main()
