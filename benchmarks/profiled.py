"""Runs `odradek` and samples where its CPU time goes: profiled.py OUTPUT ARGUMENTS...

A timer of CPU time interrupts the main thread every 2 ms; the innermost frames of the package are counted.
The table is written when the node stops. The cost is a few per cent, so timed runs are never profiled.
"""

import collections
import pathlib
import re
import signal
import sys
import types

INTERVAL_S = 0.002
ROWS = 25


def main() -> None:
    output = pathlib.Path(sys.argv.pop(1))
    own: collections.Counter[str] = collections.Counter()

    def sample(_: int, frame: types.FrameType | None) -> None:
        if frame is not None:
            code = frame.f_code
            # No path of the machine: what comes after the folder that holds packages or sources.
            name = re.sub(r".*/(?:site-packages|src|lib/python3\.\d+)/", "", code.co_filename)
            own[f"{name}:{code.co_qualname}"] += 1

    signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)
    from odradek.cli.main import main as odradek

    try:
        odradek()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        total = sum(own.values()) or 1
        lines = [f"{count / total:6.1%} {name}" for name, count in own.most_common(ROWS)]
        output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
