"""What becomes of gateways when their process ends, or forks."""

from __future__ import annotations

import atexit

# Looking up a name imports it, in the sending thread: forked meanwhile, nobody there could import it any more.
import encodings.idna  # noqa: F401
import os
import sys
import time
import weakref
from typing import TYPE_CHECKING, Final

from loopwarden.gateway.sender import sending

if TYPE_CHECKING:
    from loopwarden.gateway.gateway import Gateway

_AT_EXIT_S: Final = 2.0
"""For all gateways of the process together."""

gateways: Final[weakref.WeakSet[Gateway]] = weakref.WeakSet()

_pid_told = 0


def end_with_process() -> None:
    """Have what waits sent at the end of a process that `multiprocessing` forked: it ends without `atexit`."""
    global _pid_told
    process = sys.modules.get("multiprocessing.process")
    if _pid_told != os.getpid() and process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        _pid_told = os.getpid()
        Finalize(None, _end, exitpriority=0)


@atexit.register
def _end() -> None:
    deadline = time.monotonic() + _AT_EXIT_S
    for sender in sending.copy():
        try:
            sender.close(max(0.0, deadline - time.monotonic()))
        except KeyboardInterrupt:  # noqa: PERF203 - each has to be closed
            deadline = 0.0


def _begin_in_child() -> None:
    sending.clear()
    for gateway in list(gateways):
        gateway.begin_afresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
