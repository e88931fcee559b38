"""Says of traces whether their clocks were right, and what they lost.

usage: python clocks.py DIR...

Ends with status 1 if an event lies outside of its thread's running time.
"""

import json
import sys
from pathlib import Path


def main() -> int:
    """Prints a line for each trace, and one for all."""
    metas = [json.loads((Path(path) / "meta.json").read_text()) for path in sys.argv[1:]]
    clocks = [meta["clock"] for meta in metas]
    for path, meta in zip(sys.argv[1:], metas, strict=True):
        clock = meta["clock"]
        print(f"{path}: {clock['violations']} of {clock['checked']}, lost {meta['lost']}")
    checked, wrong = (sum(clock[name] for clock in clocks) for name in ("checked", "violations"))
    bound = max(clock["bound_ns"] for clock in clocks) / 1000
    lost = {name: 0 for meta in metas for name in meta["lost"]}
    for meta in metas:
        for name, count in meta["lost"].items():
            lost[name] += count
    losses = ", ".join(f"{count} {name}" for name, count in lost.items() if count) or "nothing"
    print(f"{wrong} of {checked:,} wrong; within {bound:.1f} µs; lost {losses}")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
