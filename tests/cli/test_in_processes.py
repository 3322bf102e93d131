"""Several processes on one history."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from loopwarden.cli import in_processes

from .conftest import Ran

Loopwarden = Callable[..., Ran]


@pytest.fixture
def two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_processes, "cores", lambda: 2)
    monkeypatch.setattr(in_processes, "_WORTH_PROCESSES", 1)


def loops(file: Path, runs: int, calls: int = 12) -> Path:
    """Runs that make the same call again and again."""
    call = {"tool": "read", "args": {"path": "x"}, "result": "same", "error": False}
    lines = [{"run": f"run-{at}", "outcome": "unresolved", "events": [call] * calls} for at in range(runs)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_two_processes_come_to_what_one_comes_to(
    run: Loopwarden, strict: Path, tmp_path: Path, two_processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("what-if", "--policy", strict, "--from-file", loops(tmp_path / "runs.jsonl", 40), "--json")
    two = run(*command)
    monkeypatch.setattr(in_processes, "cores", lambda: 1)
    one = run(*command)

    assert (two.code, two.err) == (0, "")
    assert two.out == one.out
    assert json.loads(two.out.splitlines()[-1])["runs"] == 40


def test_a_users_mistake_that_another_process_finds_is_told_as_one(
    run: Loopwarden, strict: Path, tmp_path: Path, two_processes: None
) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(1000))

    ran = run("what-if", "--policy", strict, "--from-file", picture)

    assert ran.code == 2
    assert ran.err.startswith(f"loopwarden: {picture}: ")


@pytest.mark.skipif(in_processes.cores() == 1, reason="one core has nothing for another process to do")
def test_ctrl_c_ends_all_processes(strict: Path, tmp_path: Path) -> None:
    file = loops(tmp_path / "runs.jsonl", 20_000)
    command = [sys.executable, "-m", "loopwarden.cli", "tune", "--policy", str(strict), "--from-file", str(file)]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while group_size(process.pid) < 2 and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)

        assert process.wait(60) == 130
    while group_size(process.pid):
        assert time.monotonic() < deadline + 60, "a process was left behind"
        time.sleep(0.05)


def group_size(group: int) -> int:
    """How many processes of a group there are."""
    found = subprocess.run(["ps", "-eo", "pgid,stat"], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in found.splitlines()[1:]]
    return sum(pgid == str(group) and not stat.startswith("Z") for pgid, stat in rows)
