"""An installation on the broker with ACLs, whose principals have what `loopwarden topics acls` prints and no more."""

from __future__ import annotations

import itertools
import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import pytest

if TYPE_CHECKING:
    from tests.secure_broker import SecureBroker

    from loopwarden.client import Connection
    from loopwarden_schemas.topics import Topics

HANG_S = 60

Protocol = Literal["SASL_PLAINTEXT", "SASL_SSL", "SSL"]


class Ran(NamedTuple):
    code: int
    out: str
    err: str
    seconds: float


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run `loopwarden` with arguments in this process; what it says is checked for secrets by `secured`."""
    from loopwarden.cli import main

    monkeypatch.setenv("COLUMNS", "300")

    def run(*arguments: str | Path) -> Ran:
        started = time.monotonic()
        with pytest.raises(SystemExit) as exited:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert isinstance(exited.value.code, int)
        return Ran(exited.value.code, out, err, time.monotonic() - started)

    return run


@dataclass
class Secured:
    """Topics under a prefix of their own, which nobody has any right to yet."""

    broker: SecureBroker
    topics: Topics
    folder: Path
    run: Callable[..., Ran]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def log(self) -> str:
        return (self.folder / "worker.log").read_text()

    def properties(self, name: str, protocol: Protocol = "SASL_SSL", mechanism: str = "SCRAM-SHA-512") -> Path:
        return self.broker.properties(name, protocol, mechanism)

    def connection(self, name: str, protocol: Protocol = "SASL_SSL", mechanism: str = "SCRAM-SHA-512") -> Connection:
        from loopwarden.client import Connection

        file = self.properties(name, protocol, mechanism)
        return Connection.given(prefix=self.topics.prefix, environment={}, properties_file=str(file))

    def commands(self, role: str, name: str) -> list[list[str]]:
        """The words of the commands that `loopwarden topics acls` prints for a role."""
        ran = self.run("topics", "acls", f"--{role}", name, "--prefix", self.topics.prefix)
        assert ran.code == 0, ran.err
        return [shlex.split(line) for line in ran.out.splitlines() if not line.startswith("#")]

    def grant(self, role: str, name: str, *, but: tuple[str, str] = ("", "")) -> None:
        """Carry out what is printed for a role, but for one (operation, name of topic or group)."""
        from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

        from loopwarden.client import admin_client
        from loopwarden.client.rights import acl_name

        acls = []
        for words in self.commands(role, name):
            kind, resource = words[-2].removeprefix("--"), words[-1]
            principal = words[words.index("--allow-principal") + 1]
            pattern = ResourcePattern(ResourceType[kind.upper()], resource)
            for flag, operation in itertools.pairwise(words):
                if flag == "--operation" and (operation, resource) != but:
                    right = ACLOperation[acl_name(operation)]
                    acls.append(ACL(principal, "*", right, ACLPermissionType.ALLOW, pattern))
        with admin_client(self.broker.bootstrap_servers) as client:
            assert client.create_acls(acls)["failed"] == []

    def revoke(self, name: str, right: str, topic: str) -> None:
        """Take away a right to a topic that was granted."""
        from kafka.admin import ACLFilter, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

        from loopwarden.client import admin_client

        operation, pattern = ACLOperation[right.upper()], ResourcePattern(ResourceType.TOPIC, topic)
        with admin_client(self.broker.bootstrap_servers) as client:
            granted = ACLFilter(f"User:{name}", "*", operation, ACLPermissionType.ALLOW, pattern)
            [(_, revoked, _)] = client.delete_acls([granted])
        assert len(revoked) == 1

    def start_worker(self, name: str, protocol: Protocol, mechanism: str) -> subprocess.Popen[bytes]:
        """`loopwarden worker` with the properties of a principal, and nothing else."""
        file = self.properties(name, protocol, mechanism)
        arguments = ("worker", "--client-properties", str(file), "--prefix", self.topics.prefix)
        environment = {**os.environ, "LOOPWARDEN_SESSION_SECONDS": "6", "LOOPWARDEN_DATA_DIR": str(self.folder)}
        with (self.folder / "worker.log").open("wb") as log:
            command = [sys.executable, "-W", "ignore", "-m", "loopwarden.cli", *arguments]
            self.workers.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        return self.workers[-1]

    def wait_for_log(self, text: str) -> None:
        deadline = time.monotonic() + HANG_S
        while text not in self.log:
            assert time.monotonic() < deadline and self.workers[-1].poll() is None, self.log
            time.sleep(0.1)

    def wait_until_judging(self) -> None:
        """Wait until an event of every partition is judged: then all of it is read."""
        from loopwarden.client import Connection, event_producer, wait_until_judged
        from loopwarden_schemas.codec import encode_event

        everybody = Connection(self.broker.bootstrap_servers, self.topics.prefix)
        with event_producer(everybody) as producer:
            for number in range(20):
                event = {"type": "run.started", "event_id": str(number), "run_id": f"run-{number}", "ts": 0}
                producer.publish(f"run-{number}", encode_event(event), "an event of the test")
        assert set(producer.ends) == {0, 1}
        for partition, end in producer.ends.items():
            assert wait_until_judged(everybody, partition, end - 1, HANG_S) is not None, self.log

    def exit_code(self) -> int:
        """How the worker ends by itself."""
        try:
            return self.workers[-1].wait(HANG_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker goes on:\n{self.log}") from None

    def stop_worker(self) -> int:
        self.workers[-1].send_signal(signal.SIGTERM)
        return self.workers[-1].wait(HANG_S)


@pytest.fixture
def secured(secure_broker: SecureBroker, tmp_path: Path, run: Callable[..., Ran]) -> Iterator[Secured]:
    from loopwarden.client import create_topics
    from loopwarden_schemas.topics import declared_topics

    topics = declared_topics(f"t{secrets.token_hex(4)}-", partitions=2)
    create_topics(secure_broker.bootstrap_servers, topics)
    secured = Secured(secure_broker, topics, tmp_path, run)
    yield secured
    for worker in secured.workers:
        if worker.poll() is None:
            worker.kill()
            worker.wait(HANG_S)
