"""The command as a process of its own, for what only a process has: signals, a terminal, children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HANG_S = 90.0


def wait_until(true: Callable[[], object], state: Callable[[], object]) -> None:
    deadline = time.monotonic() + HANG_S
    while not true():
        assert time.monotonic() < deadline, state()
        time.sleep(0.05)


@dataclass
class Command:
    """A running `loopwarden`. Everything it starts carries a mark in its environment."""

    process: subprocess.Popen[bytes]
    mark: str
    out_file: Path
    err_file: Path

    @property
    def out(self) -> str:
        return self.out_file.read_text()

    @property
    def err(self) -> str:
        return self.err_file.read_text()

    def wait_for(self, text: str) -> None:
        """Wait until it has said something."""
        wait_until(lambda: text in self.out + self.err or self.process.poll() is not None, lambda: self.out + self.err)
        assert text in self.out + self.err, self.out + self.err

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def exit_code(self) -> int:
        """How it ends, by itself or after a signal."""
        return self.process.wait(HANG_S)

    def others(self) -> dict[int, str]:
        """The processes it has started and that still live, by their ids, with their command lines."""
        found = {}
        for process in Path("/proc").iterdir():
            if not process.name.isdecimal() or int(process.name) == self.process.pid:
                continue
            try:
                if self.mark.encode() in (process / "environ").read_bytes():
                    found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
        return found


@pytest.fixture(name="command")
def _command(tmp_path: Path) -> Any:
    """`with command(*arguments) as running`: start `loopwarden`; it and all it started is killed at the end."""
    return lambda *arguments: command(tmp_path, *arguments)


@contextmanager
def command(folder: Path, *arguments: str | Path) -> Iterator[Command]:
    number = len(list(folder.glob("*.out")))
    out_file, err_file = folder / f"{number}.out", folder / f"{number}.err"
    mark = f"LOOPWARDEN_TEST_MARK={folder}-{number}-{time.monotonic_ns()}"
    environment = {**os.environ, "COLUMNS": "120", "PYTHONUNBUFFERED": "1", **dict([mark.split("=", 1)])}
    with out_file.open("wb") as out, err_file.open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "loopwarden.cli", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment,
            start_new_session=True,
        )
    running = Command(process, mark, out_file, err_file)
    try:
        yield running
    finally:
        process.kill()
        process.wait()
        for other in running.others():
            os.kill(other, signal.SIGKILL)
