"""A fleet told by hand, the live page as a process of its own, and a real browser where there is one."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loopwarden.web.fleet import Fleet, Published
from loopwarden_schemas.codec import event_from_value
from loopwarden_schemas.structs import PolicyApplied, Rejected, Verdict

from ..serving import listening  # noqa: TID252 - tests are no package that could be named
from ..worker.conftest import STRICT, Installation, installation, repeated_call  # noqa: TID252 - tests are no package that could be named
from .browser import HOW_TO_GET_IT, Browser, chromium, running

__all__ = ["installation"]

HANG_S = 60

NOBODY = "127.0.0.1:9"
"""A broker that is away: nobody listens on the discard port."""


class Told:
    """A fleet, and what it is told."""

    def __init__(self, **options: Any) -> None:
        self.fleet = Fleet(**options)
        self.told = 0

    def event(self, kind: str, run_id: str = "r", at: int | None = None, **fields: Any) -> None:
        self.told += 1
        time_ = 1_000 * self.told if at is None else at
        value = {"type": kind, "event_id": f"e{self.told}", "run_id": run_id, "ts": time_, **fields}
        event = event_from_value(value)
        assert not isinstance(event, (Rejected, PolicyApplied)), event
        self.fleet.take_events(0, [event])

    def call(self, run_id: str = "r", args: Any = "x", tool: str = "read", **fields: Any) -> None:
        call = {"call_id": f"c{self.told}", "tool": tool, "args": args}
        self.event("tool_call.started", run_id, **call)
        self.event("tool_call.finished", run_id, **call, **(fields or {"result": "same"}))

    def verdict(self, action: str, run_id: str = "r", at: int | None = None, **fields: Any) -> Verdict:
        self.told += 1
        told: dict[str, Any] = {
            **dict.fromkeys(Verdict.__struct_fields__),
            "schema": 1,
            "verdict_id": f"v{self.told}",
            "begun": 1_000,
            "n": self.told,
            "action": action,
            "phase": "order",
            "run_id": run_id,
            "scope": "call",
            "reason": "generic_repeat",
            "message": "Stop.",
            "event_id": "e1",
            "policy_digest": "0" * 32,
            "rules_version": 1,
            "ts": 0,
            "delivered": 0,
            "obeyed": 0,
            "disobeyed": 0,
            **fields,
        }
        verdict = Verdict(**told)
        self.fleet.take_verdicts(0, [Published(1_000 * self.told if at is None else at, verdict)])
        return verdict


@pytest.fixture
def told() -> Told:
    return Told()


@dataclass
class Served:
    """A running page."""

    process: subprocess.Popen[bytes]
    log_file: Path
    place: str

    def get(self, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Ask for something; return the status, the headers and what came."""
        return self.request("GET", path, **headers)

    def request(self, method: str, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = http.client.HTTPConnection(self.place.removeprefix("http://"), timeout=HANG_S)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def json(self, path: str) -> Any:
        status, _, content = self.get(path)
        assert status == 200, content
        return json.loads(content)

    def until(self, path: str, condition: Callable[[Any], bool]) -> Any:
        """Ask until the answer is as it should be, and return it."""
        deadline = time.monotonic() + HANG_S
        while True:
            status, _, content = self.get(path)
            if status == 200 and condition(found := json.loads(content)):
                return found
            assert time.monotonic() < deadline, content.decode()
            time.sleep(0.1)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HANG_S)


@contextmanager
def serving(folder: Path, *arguments: str, **environment: str) -> Iterator[Served]:
    with listening("serve", folder, *arguments, **environment) as process:
        yield Served(*process)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """`start(*arguments, **environment)`: start a page; it is killed at the end."""
    with ExitStack() as all_of_them:
        yield lambda *arguments, **environment: all_of_them.enter_context(serving(tmp_path, *arguments, **environment))


@pytest.fixture
def judging(installation: Installation) -> Installation:
    """An installation with the strict policy in force and a worker that judges."""
    installation.apply(STRICT)
    installation.start_worker().wait_for_log("detectors are")
    return installation


def publish_loop(judging: Installation, run_id: str, calls: int, first: int = 0) -> None:
    """Publish calls that are the same each time."""
    for number in range(first, first + calls):
        for event in repeated_call(run_id, number):
            judging.publish(event)
    judging.producer.flush()


@pytest.fixture
def page(judging: Installation, start: Callable[..., Served]) -> Served:
    """A page beside it: warned is at the second repetition, blocked at the fourth."""
    return start("--broker", judging.servers, "--prefix", judging.topics.prefix)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if chromium() is None:
        terminalreporter.write_line(HOW_TO_GET_IT)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A Chromium for all tests; each opens pages of its own."""
    program = chromium()
    if program is None:
        # CI installs what is missing: that it did not must not look like success.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(HOW_TO_GET_IT)
    with running(program, tmp_path_factory.mktemp("chromium")) as browser:
        yield browser
