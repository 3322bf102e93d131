"""The real OpenClaw -> plugin -> sidecar -> Kafka -> worker, each a process of its own.

All runs go on at once, two at a time: each is mostly OpenClaw starting. The tests look at how they ended.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from loopwarden.recordings import recordings
from loopwarden_schemas.policy import PolicyDocument

from . import scenarios
from .agent import HANG_S, Ended, refused_in, run_agent, workspace_in
from .model_server import ScriptedModel, Step
from .release import HOW_TO_GET_IT, Release, installed_release, npm

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker
    from loopwarden.client import Connection
    from loopwarden_schemas.structs import Verdict

THRESHOLDS: Final = {"warningThreshold": 4, "criticalThreshold": 8}
"""Those of the recordings."""

ENDING: Final = "ending"
"""The agent whose runs are ended when they ignore their blocks."""

ABORT_AFTER_BLOCKS: Final = 3

PATIENT: Final = "patient"
"""The agent whose loops are blocked so late that it is the guard which ends them, after a compaction."""

POLICY: Final = {
    "tools": {"loopDetection": {"enabled": True, **THRESHOLDS}},
    "agents": {
        "list": [
            {"id": ENDING, "tools": {"loopwarden": {"abortAfterBlocks": ABORT_AFTER_BLOCKS}}},
            {"id": PATIENT, "tools": {"loopDetection": {"warningThreshold": 10, "criticalThreshold": 20}}},
        ]
    },
}

CERTAIN_S: Final = 30
"""So that no call escapes, whatever else runs on this machine; an answer usually takes a few milliseconds."""

KILLED_AT: Final = 5
"""The call before which the worker is killed: some are counted, and none is refused yet."""


@dataclass(frozen=True)
class Planned:
    """A run to be made.

    Attributes:
        script: Gets the agent's folder.
        own: Whether OpenClaw's own detection is on, with the same thresholds; None: as it is by default.
        agent: Its id.
        kills: Whether the worker is killed in the middle, and started again.
        sidecar: Whether there is one.
    """

    script: Callable[[Path], list[Step]]
    own: bool | None = False
    agent: str = "main"
    kills: bool = False
    sidecar: bool = True


PLANS: Final = {
    "same call, both": Planned(scenarios.same_call_exec, own=True),
    "ping-pong, both": Planned(scenarios.ping_pong, own=True),
    "poll, both": Planned(scenarios.poll, own=True),
    "same call, worker killed": Planned(scenarios.same_call_read, kills=True),
    "ping-pong": Planned(scenarios.ping_pong),
    "poll": Planned(scenarios.poll),
    "edit and check": Planned(scenarios.edit_and_check),
    "changing result": Planned(scenarios.changing_result),
    "loop across compaction": Planned(scenarios.loop_across_compaction, own=None, agent=PATIENT),
    "blocks ignored": Planned(scenarios.same_call_exec, agent=ENDING),
    "no sidecar": Planned(scenarios.changing_result, sidecar=False),
}


@dataclass
class Loopwarden:
    """Topics with the policy, a worker and a sidecar."""

    connection: Connection
    folder: Path
    sidecar_url: str

    def __post_init__(self) -> None:
        from loopwarden.cli.local_worker import LocalWorker

        self.worker = LocalWorker(self.connection, self.folder)
        self.worker.start(lambda: None)

    def kill_worker(self) -> None:
        """Kill it; another one is started while the agents go on."""
        self.worker.kill()
        self._starting = threading.Thread(target=self.worker.start, args=(lambda: None,))
        self._starting.start()

    def verdicts(self) -> list[Verdict]:
        """All there are, each once, run by run in their order."""
        from loopwarden.client import following
        from loopwarden_schemas.codec import decode_verdict

        found: dict[str, Verdict] = {}
        with following(self.connection, self.connection.topics().verdicts.name) as follower:
            starts, ends = follower.beginnings(), follower.ends()
            for records in follower.read({each: (starts[each], ends[each]) for each in follower.partitions}):
                for record in records:
                    if record.value:
                        verdict = decode_verdict(record.value)
                        found.setdefault(verdict.verdict_id, verdict)
        return list(found.values())


def session_of(name: str) -> str:
    """A plan's name as the id of its session."""
    return name.replace(" ", "-").replace(",", "")


class Runs(Mapping[str, Ended]):
    """How the planned runs ended, by their names; whoever asks waits for it."""

    def __init__(self, loopwarden: Loopwarden, release: Release, pool: ThreadPoolExecutor) -> None:
        self.loopwarden = loopwarden
        self._release = release
        self._ended: dict[str, Future[Ended]] = {name: pool.submit(self._run, name) for name in PLANS}

    def __getitem__(self, name: str) -> Ended:
        return self._ended[name].result()

    def __iter__(self) -> Iterator[str]:
        return iter(self._ended)

    def __len__(self) -> int:
        return len(self._ended)

    def _run(self, name: str) -> Ended:
        plan = PLANS[name]
        home = self.loopwarden.folder / session_of(name)

        def at_step(step: int) -> None:
            if plan.kills and step == KILLED_AT:
                self.loopwarden.kill_worker()

        return run_agent(
            self._release,
            home,
            ScriptedModel(plan.script(workspace_in(home)), at_step),
            agent=plan.agent,
            loop_detection={} if plan.own is None else {"enabled": plan.own, **THRESHOLDS},
            # Nobody listens on the discard port.
            plugin={"url": self.loopwarden.sidecar_url if plan.sidecar else "http://127.0.0.1:9", "certain": CERTAIN_S},
        )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if npm() is None:
        terminalreporter.write_line(HOW_TO_GET_IT)


@pytest.fixture(scope="session")
def release() -> Release:
    if npm() is None:
        # CI installs what is missing: that it did not must not look like success.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(HOW_TO_GET_IT)
    from loopwarden.broker.jars import cache_folder

    return installed_release(cache_folder())


@pytest.fixture(scope="session")
def runs(release: Release, broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """All planned runs, begun."""
    from loopwarden.broker import create_topics
    from loopwarden.client import Connection, apply_policy
    from loopwarden_schemas.topics import declared_topics

    folder = tmp_path_factory.mktemp("openclaw")
    topics = declared_topics(f"o{secrets.token_hex(4)}-", partitions=2)
    create_topics(broker.bootstrap_servers, topics)
    connection = Connection(broker.bootstrap_servers, topics.prefix)
    apply_policy(connection, PolicyDocument.from_value(POLICY), by="test", why="test", ts=0)
    sidecar, url = start_sidecar(connection, folder)
    loopwarden = Loopwarden(connection, folder, url)
    with ThreadPoolExecutor(2) as pool:
        yield Runs(loopwarden, release, pool)
    sidecar.terminate()
    sidecar.wait(HANG_S)
    loopwarden.worker.stop()


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], list[int]]:
    """Which calls of a recording were refused: their places, from 0 on."""

    def refused(name: str) -> list[int]:
        return refused_in(recordings()[f"openclaw-{name}"])

    return refused


def start_sidecar(connection: Connection, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    log_file = folder / "sidecar.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "loopwarden.cli", "sidecar", "--port", "0"],
            stderr=log,
            env={
                **os.environ,
                "LOOPWARDEN_BOOTSTRAP_SERVERS": connection.bootstrap_servers,
                "LOOPWARDEN_TOPIC_PREFIX": connection.topic_prefix,
            },
        )
    deadline = time.monotonic() + HANG_S
    while "listening on " not in log_file.read_text():
        assert process.poll() is None and time.monotonic() < deadline, log_file.read_text()
        time.sleep(0.05)
    return process, log_file.read_text().partition("listening on ")[2].split()[0]
