"""The entry point. It imports next to nothing, so that Ctrl-C ends quietly while all the rest is imported."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing itself takes a while
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import NoReturn

_INTERRUPTED = 130
"""128 and the number of SIGINT, as shells say it."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `loopwarden` with these arguments (None: the process's own) and exit with the command's code."""
    try:
        run = _imported()
        code = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    sys.exit(code)


def _imported() -> Callable[[Sequence[str]], int]:
    import signal

    # An exception would not do: raised in one of the import system's callbacks it is printed, and the import goes on.
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from loopwarden.cli.running import run

    signal.signal(signal.SIGINT, before)
    return run


def _end(number: int, frame: FrameType | None) -> NoReturn:
    # Nothing is open yet that would have to be closed.
    os._exit(_INTERRUPTED)
