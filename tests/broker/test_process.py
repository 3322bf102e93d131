from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loopwarden.broker.process import spawn, stop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent")

# Spawned from a thread that ends at once: the child must be tied to the process, not to that thread.
OWNER = """
import os, signal, sys, threading
from pathlib import Path
from loopwarden.broker.process import spawn

held = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
children = []
thread = threading.Thread(target=lambda: children.append(spawn(["/bin/sleep", "600"], Path(sys.argv[2]), held)))
thread.start()
thread.join()
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
print(children[0].pid, flush=True)
while True:
    signal.pause()
"""


@contextmanager
def _owner(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "held"), str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        try:
            _wait_until(lambda: Path(f"/proc/{child}/comm").read_text() == "sleep\n")
            yield owner, child
        finally:
            owner.kill()


def _wait_until(true: object, seconds: float = 30.0) -> None:
    assert callable(true)
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_process_dies_with_the_one_that_spawned_it(tmp_path: Path) -> None:
    with _owner(tmp_path) as (owner, child):
        owner.kill()
        _wait_until(lambda: not _lives(child))


def test_a_terminals_ctrl_c_does_not_reach_it(tmp_path: Path) -> None:
    with _owner(tmp_path) as (owner, child):
        assert owner.stdout is not None
        os.killpg(owner.pid, signal.SIGINT)
        assert owner.stdout.readline() == "interrupted\n"
        assert os.getpgid(child) != owner.pid
        assert os.getsid(child) != owner.pid
        assert _lives(child)


def test_it_holds_the_descriptor_it_was_given(tmp_path: Path) -> None:
    with _owner(tmp_path) as (_, child):
        held = [str(descriptor.readlink()) for descriptor in Path(f"/proc/{child}/fd").iterdir()]
        assert str(tmp_path / "held") in held


def _spawned(tmp_path: Path, script: str) -> subprocess.Popen[bytes]:
    process = spawn(["/bin/sh", "-c", f"{script}; echo ready; while :; do sleep 0.05; done"], tmp_path / "out")
    _wait_until(lambda: "ready" in (tmp_path / "out").read_text())
    return process


def test_stopped_it_ends_in_order(tmp_path: Path) -> None:
    process = _spawned(tmp_path, "trap 'exit 7' TERM")
    stop(process, 30.0)
    assert process.returncode == 7


def test_what_does_not_stop_in_time_is_killed(tmp_path: Path) -> None:
    process = _spawned(tmp_path, "trap '' TERM")
    stop(process, 0.1)
    assert process.returncode == -signal.SIGKILL
