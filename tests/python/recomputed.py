"""Runs the oracle on traces.

usage: python recomputed.py DIR...

Ends with status 1 if a row of one differs.
"""

import re
import subprocess
import sys
from pathlib import Path

ORACLE = Path(__file__).parent.parent / "oracle"


def main() -> int:
    """Prints what the oracle says of each trace that it does not agree with, and a line for all."""
    rows, wrong = 0, 0
    for trace in sys.argv[1:]:
        ran = subprocess.run(
            [sys.executable, "-B", ORACLE, trace], capture_output=True, text=True, check=False
        )
        rows += sum(int(n) for n in re.findall(r": (\d+) rows, ", ran.stdout))
        if ran.returncode:
            wrong += 1
            print(f"{trace}:\n{ran.stdout}{ran.stderr}")
    print(f"{rows:,} rows of {len(sys.argv) - 1} traces")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
