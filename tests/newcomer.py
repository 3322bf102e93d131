"""Somebody who has cloned the project, started all of it, and types what a page shows."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HANG_S = 120


class Newcomer:
    """A folder that looks like a clone, an environment of its own, and everything up.

    Args:
        folder: An empty one.
        up: The arguments of `loopwarden` that start everything.
        more: What else is in the environment.
    """

    def __init__(self, folder: Path, up: Sequence[str], **more: str) -> None:
        self.folder = folder
        for name in ("streams", "infra", ".venv", "schemas"):
            (folder / name).symlink_to(ROOT / name)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("LOOPWARDEN_", "KAFKA_"))},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "XDG_DATA_HOME": str(folder / "data"),
            "COLUMNS": "160",
            **more,
        }
        self.log = folder / "up.log"
        with self.log.open("wb") as log:
            self.up = subprocess.Popen(
                [sys.executable, "-m", "loopwarden.cli", *up],
                cwd=folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, text: str) -> str:
        """Wait until the output of `up` has this pattern; return what it matched."""
        deadline = time.monotonic() + HANG_S
        while True:
            shown = self.log.read_text(encoding="utf-8", errors="replace")
            found = re.search(text, shown)
            if found is not None:
                return found[0]
            assert self.up.poll() is None and time.monotonic() < deadline, shown
            time.sleep(0.2)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    def type(self, command: str, columns: int) -> tuple[int, str]:
        """Run a command at a plain terminal so wide; return its exit code, and what the terminal shows."""
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        plain = {**self.environment, "COLUMNS": str(columns), "TERM": "dumb", "NO_COLOR": "1"}
        with subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env=plain,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            os.close(theirs)
            hung = threading.Timer(HANG_S, process.kill)
            hung.start()
            shown = b""
            while chunk := _read(ours):
                shown += chunk
            code = process.wait()
            hung.cancel()
        os.close(ours)
        return code, shown.decode().replace("\r\n", "\n")

    def follow(self, command: str) -> int:
        """Run a command that follows, and end it as a person would."""
        with subprocess.Popen(
            command.split(), cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as following:
            assert following.stderr is not None
            hung = threading.Timer(HANG_S, following.kill)
            hung.start()
            # A person ends it once it says that it is there.
            told = next((line for line in following.stderr if re.search(b"Ctrl-C ends|listening on", line)), None)
            hung.cancel()
            assert told is not None, command
            following.send_signal(signal.SIGINT)
            following.communicate(timeout=HANG_S)
            return following.returncode

    def stop(self) -> int:
        """End everything as a person would; return its exit code."""
        self.up.send_signal(signal.SIGINT)
        return self.up.wait(HANG_S)

    def kill(self) -> None:
        self.up.kill()
        self.up.wait(HANG_S)


def _read(terminal: int) -> bytes:
    # Linux ends the reading of a terminal that nobody has open any more with an error.
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
