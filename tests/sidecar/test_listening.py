"""Where a sidecar listens, and for whom."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopwarden.serving import CannotListen, Listening, TokenMissing, WrongToken
from loopwarden.sidecar import SIDECAR

from .conftest import NOBODY

SPOOL_AFTER_BYTES = 64 * 1024

CALL = {"run_id": "r", "tool": "read"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "agents.example"])
def test_beyond_loopback_it_needs_a_token(host: str) -> None:
    with pytest.raises(TokenMissing, match=r"--host .*LOOPWARDEN_SIDECAR_TOKEN .*--token-file"):
        Listening.given(SIDECAR, host, environment={})
    assert Listening.given(SIDECAR, host, environment={"LOOPWARDEN_SIDECAR_TOKEN": "t"}).token == "t"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_on_loopback_it_needs_none(host: str) -> None:
    assert Listening.given(SIDECAR, host, environment={}).token is None


@pytest.mark.parametrize("text", ["", "two words", "schlüssel"])
def test_a_token_that_no_header_carries_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(WrongToken, match="must be one word of printable ASCII characters"):
        Listening.given(SIDECAR, token_file=str(file), environment={})


def test_a_token_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(WrongToken, match=r"--token-file .*cannot be read: \w"):
        Listening.given(SIDECAR, token_file=str(tmp_path / "none"), environment={})


def test_a_socket_in_a_folder_that_is_not_there_is_told() -> None:
    with pytest.raises(CannotListen, match="the folder /nowhere is not there"):
        Listening.given(SIDECAR, unix="/nowhere/x.sock", environment={})


def test_with_a_token_only_who_brings_it_is_answered(start: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    sidecar = start("--host", "0.0.0.0", "--token-file", str(tmp_path / "token"), "--broker", NOBODY)
    assert sidecar.request("POST", "/v1/calls/before", CALL)[0] == 401
    assert sidecar.request("POST", "/v1/calls/before", CALL, Authorization="Bearer guess")[0] == 401
    assert sidecar.request("POST", "/v1/calls/before", CALL, Authorization="Bearer s3cret")[0] == 200
    # Probes have none, and both say nothing of any run.
    assert sidecar.request("GET", "/healthz")[0] == sidecar.request("GET", "/openapi.json")[0] == 200


def test_on_a_unix_socket_it_serves_its_own_user_and_leaves_nothing_behind(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "s"
    sidecar = start("--unix", str(path), "--broker", NOBODY)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert sidecar.post("/v1/calls/before", **CALL)["action"] == "allow"
    assert sidecar.stop() == 0
    assert not path.exists()


def test_a_socket_that_a_killed_one_left_is_taken_over_and_a_living_one_is_not(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "s"
    first = start("--unix", str(path), "--broker", NOBODY)
    command = [sys.executable, "-m", "loopwarden.cli", "sidecar", "--unix", str(path), "--broker", NOBODY]
    second = subprocess.run(command, capture_output=True, text=True)
    assert (second.returncode, second.stderr) == (2, f"loopwarden: --unix {path}: another process listens there\n")
    first.process.kill()
    first.process.wait()
    assert start("--unix", str(path), "--broker", NOBODY).post("/v1/calls/before", **CALL)["action"] == "allow"


def test_one_that_ends_leaves_the_socket_of_its_successor(start: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "s"
    first = start("--unix", str(path), "--broker", NOBODY)
    path.unlink()  # as a supervisor does that starts the next one before it ends this one
    second = start("--unix", str(path), "--broker", NOBODY)
    assert first.stop() == 0
    assert second.post("/v1/calls/before", **CALL)["action"] == "allow"


def test_one_that_is_stopped_as_soon_as_it_listens_ends(start: Callable[..., Any]) -> None:
    for _ in range(3):
        assert start("--broker", NOBODY).stop() == 0


def test_a_folder_for_the_spool_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = str(tmp_path / "file" / "spool")
    command = [sys.executable, "-m", "loopwarden.cli", "sidecar", "--port", "0", "--spool-dir", folder]
    ended = subprocess.run([*command, "--broker", NOBODY], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"loopwarden: --spool-dir {folder}: must be a folder that can be written: ")
    assert len(ended.stderr.splitlines()) == 1


def test_of_the_events_that_wait_for_the_broker_most_lie_in_files_when_it_is_killed(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    sidecar = start("--broker", NOBODY, "--spool-dir", str(spool))
    for number in range(40):
        sidecar.post(
            "/v1/events", type="tool_call.started", run_id="r", tool="read", args={"n": number, "x": "x" * 8192}
        )
    sidecar.process.kill()
    sidecar.process.wait()
    held = sum(file.stat().st_size for file in spool.rglob("*") if file.is_file())
    assert held >= 40 * 8192 - SPOOL_AFTER_BYTES


def test_a_port_that_is_taken_is_told(start: Callable[..., Any]) -> None:
    port = start("--broker", NOBODY).place.rsplit(":", 1)[1]
    command = [sys.executable, "-m", "loopwarden.cli", "sidecar", "--port", port, "--broker", NOBODY]
    second = subprocess.run(command, capture_output=True, text=True)
    assert second.returncode == 2
    assert second.stderr.startswith(f"loopwarden: cannot listen on 127.0.0.1:{port}: ")


def test_a_missing_extra_is_told_with_its_name(tmp_path: Path) -> None:
    # As where the extra is not installed: a package of that name that cannot be imported stands in its place.
    without = "import sys; sys.modules['fastapi'] = None; from loopwarden.cli import main; main(['sidecar'])"
    ended = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr == (
        "loopwarden: the sidecar needs fastapi, which is not installed: pip install 'loopwarden[sidecar]'\n"
    )
