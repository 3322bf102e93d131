"""A server of ours as a process of its own, for as long as a test needs it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_HANG_S = 60


class Listening(NamedTuple):
    """A process that listens, where it writes its log, and where it says that it listens."""

    process: subprocess.Popen[bytes]
    log_file: Path
    place: str


@contextmanager
def listening(command: str, folder: Path, *arguments: str, **environment: str) -> Iterator[Listening]:
    """Start `loopwarden COMMAND` on a free port, or where the arguments say, and kill it at the end."""
    log_file = folder / f"{command}-{len(list(folder.glob(f'{command}-*')))}.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "loopwarden.cli", command, "--port", "0", *arguments],
            stderr=log,
            env={**os.environ, **environment},
        )
    try:
        deadline = time.monotonic() + _HANG_S
        while "listening on " not in log_file.read_text():
            assert process.poll() is None and time.monotonic() < deadline, log_file.read_text()
            time.sleep(0.02)
        yield Listening(process, log_file, log_file.read_text().partition("listening on ")[2].split()[0])
    finally:
        process.kill()
        process.wait()
