"""Standard output that says so itself when nothing more can be written to it.

A full disk, or a reader that went away, may come up in any `print` of any command; an `OSError` does not say of which
file it is.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDOUT: Final = 1
_STDERR: Final = 2


class OutputLost(Exception):
    """Standard output takes nothing more: the text says why."""


class _Raw(io.FileIO):
    """The descriptor. What could not be written is reported once, and then let go: Python tries again at its exit."""

    _lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        if self._lost:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            self._lost = True
            raise OutputLost(f"standard output: cannot be written: {error.strerror}") from error


def report_lost_output() -> None:
    """Let `sys.stdout` raise `OutputLost` where a write fails, if it is still the interpreter's own."""
    if sys.stderr is None:
        # `print` would take None for standard output.
        _occupy(_STDERR)
        sys.stderr = open(_STDERR, "w", closefd=False)  # noqa: SIM115 open until the process ends
    if sys.stdout is None:
        _occupy(_STDOUT)
        sys.stdout = _text(line_buffering=False, encoding="utf-8", errors="strict")
    elif sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        given = sys.stdout
        # Unbuffered (-u) there is nothing between; the console of Windows has a raw stream of another kind.
        if not isinstance(getattr(given.buffer, "raw", given.buffer), io.FileIO):
            return
        given.flush()
        sys.stdout = _text(given.line_buffering or given.write_through, given.encoding, given.errors or "strict")


def _text(line_buffering: bool, encoding: str, errors: str) -> io.TextIOWrapper:
    raw = _Raw(_STDOUT, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, line_buffering=line_buffering)


def _occupy(descriptor: int) -> None:
    """Keep the number of a closed descriptor from the next file that is opened; to write there fails, or is lost."""
    free = os.open(os.devnull, os.O_WRONLY if descriptor == _STDERR else os.O_RDONLY)
    if free != descriptor:
        os.dup2(free, descriptor)
        os.close(free)
