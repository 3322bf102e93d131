"""Turns into another program that dies with the process that started it: `tether.py PARENT_PID PROGRAM ARGUMENT…`

Run as a script of its own, in the child: what `preexec_fn` would do here is not safe in a process with threads.
"""

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h; it outlives the exec


def _tether(parent: int, command: list[str]) -> None:
    # Linux only; elsewhere a killed parent leaves its broker behind.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the process that started this is gone")
    os.execv(command[0], command)


if __name__ == "__main__":
    _tether(int(sys.argv[1]), sys.argv[2:])
