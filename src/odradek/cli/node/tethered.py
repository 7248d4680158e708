"""`python -m odradek.cli.node.tethered ARGUMENTS`: the command, in a process that ends when its input ends.

The parent keeps the other end of that pipe: if it is killed, the pipe closes and this process ends.
"""

import os
import signal
import threading

from odradek.cli.main import main


def _end_with_input() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_end_with_input, daemon=True).start()
    main()
