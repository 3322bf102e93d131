"""A sidecar as a process of its own, and a client for it."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ..serving import listening  # noqa: TID252 - tests are no package that could be named
from ..worker.conftest import STRICT, Installation, installation  # noqa: TID252 - tests are no package that could be named

__all__ = ["installation"]

HANG_S = 60

NOBODY = "127.0.0.1:9"
"""A broker that is away: nobody listens on the discard port."""


@dataclass
class Sidecar:
    """A running sidecar."""

    process: subprocess.Popen[bytes]
    log_file: Path
    place: str

    def request(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Send a request; return the status and what the JSON of the answer holds."""
        connection = self.connect()
        given = {"Content-Type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, content, given)
            response = connection.getresponse()
            assert response.headers["content-type"] == "application/json"
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def post(self, path: str, **body: Any) -> Any:
        status, answer = self.request("POST", path, body)
        assert status < 300, answer
        return answer

    def connect(self) -> http.client.HTTPConnection:
        if self.place.startswith("http://"):
            return http.client.HTTPConnection(self.place.removeprefix("http://"), timeout=HANG_S)
        connection = http.client.HTTPConnection("localhost", timeout=HANG_S)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.place)
        return connection

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HANG_S)


@contextmanager
def running(folder: Path, *arguments: str, **environment: str) -> Iterator[Sidecar]:
    with listening("sidecar", folder, *arguments, **environment) as process:
        yield Sidecar(*process)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Sidecar]]:
    """`start(*arguments, **environment)`: start a sidecar; it is killed at the end."""
    with ExitStack() as all_of_them:
        yield lambda *arguments, **environment: all_of_them.enter_context(running(tmp_path, *arguments, **environment))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    """A sidecar whose broker is away."""
    with running(tmp_path_factory.mktemp("alone"), "--broker", NOBODY) as sidecar:
        yield sidecar


@pytest.fixture
def judging(installation: Installation) -> Installation:
    """An installation with the strict policy in force and a worker that judges."""
    installation.apply(STRICT)
    installation.start_worker().wait_for_log("detectors are")
    return installation


@pytest.fixture
def sidecar(judging: Installation, start: Callable[..., Sidecar]) -> Sidecar:
    """A sidecar beside it: warned is at the second repetition, blocked at the fourth."""
    return start("--broker", judging.servers, "--prefix", judging.topics.prefix)
