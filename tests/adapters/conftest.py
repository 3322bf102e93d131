"""One worker that judges for all adapters, with a gateway and a guard in this process, or a sidecar beside it.

Each test has runs of its own, so that none needs a worker of its own.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..sidecar.conftest import NOBODY, Sidecar, start  # noqa: TID252 - tests are no package that could be named
from ..worker.conftest import Installation  # noqa: TID252

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker
    from loopwarden.gateway import Gateway
    from loopwarden.runner import RunGuard

__all__ = ["start"]

HANG_S = 60

# LangChain and FastMCP are there from Python 3.11 on.
collect_ignore = (
    []
    if sys.version_info >= (3, 11)
    else ["test_langchain.py", "test_fastmcp.py", "test_mcp_proxy.py", "test_examples.py"]
)
ENDS_THE_RUN = {
    "tools": {
        "loopDetection": {"enabled": True, "warningThreshold": 2, "criticalThreshold": 4},
        "loopwarden": {"abortAfterBlocks": 2},
    }
}
"""Warned at the second repetition, blocked at the fourth, ended at the second call that is blocked."""


@dataclass
class Watched:
    """A gateway and a guard on an installation whose worker judges."""

    gateway: Gateway
    guard: RunGuard
    installation: Installation
    before: int

    def events(self, count: int | None = None) -> list[Any]:
        """The events since the test began, in the order of their append times; where given, exactly so many."""
        assert self.gateway.flush(HANG_S)
        events: list[Any] = []

        def are_there() -> bool:
            events[:] = events_of(self.installation)[self.before :]
            return count is None or len(events) >= count

        self.installation.until(are_there)
        assert count is None or len(events) == count
        return events

    def named(self, name: str) -> list[Any]:
        """The events of one type, by the name of its struct."""
        return [event for event in self.events() if type(event).__name__ == name]


def events_of(installation: Installation) -> list[Any]:
    """All events of runs in the log, in the order of their append times."""
    from loopwarden_schemas.codec import decode_record

    records = sorted(installation.read(installation.topics.events.name), key=lambda record: record.timestamp)
    events = [event for record in records for event in decode_record(record.value, record.timestamp)]
    return [event for event in events if hasattr(event, "run_id")]


@pytest.fixture(scope="session")
def judging(broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation whose worker judges."""
    from loopwarden.broker import create_topics
    from loopwarden_schemas.topics import declared_topics

    # One partition: the order of all events is then that of the log.
    topics = declared_topics(f"t{secrets.token_hex(4)}-", partitions=1)
    create_topics(broker.bootstrap_servers, topics)
    folder = tmp_path_factory.mktemp("adapters")
    with closing(Installation(broker.bootstrap_servers, topics, folder)) as installation:
        installation.apply(ENDS_THE_RUN)
        installation.start_worker().wait_for_log("detectors are")
        yield installation


@pytest.fixture
def watched(judging: Installation) -> Iterator[Watched]:
    """Certain answers, so that each test ends the same every time."""
    from loopwarden.client import Connection
    from loopwarden.gateway import Gateway
    from loopwarden.runner import RunGuard

    connection = Connection(judging.servers, judging.topics.prefix)
    with ExitStack() as open_ones:
        gateway = open_ones.enter_context(Gateway(connection))
        guard = open_ones.enter_context(RunGuard(gateway=gateway, certain=HANG_S))
        yield Watched(gateway, guard, judging, len(events_of(judging)))


@pytest.fixture
def unwatched() -> Iterator[RunGuard]:
    """A guard, and its gateway, whose broker is away."""
    from loopwarden.gateway import Gateway
    from loopwarden.runner import RunGuard

    gateway = Gateway(bootstrap_servers=NOBODY)
    with RunGuard(gateway=gateway) as guard:
        yield guard
    gateway.close(0)


@pytest.fixture
def sidecar(judging: Installation, start: Callable[..., Sidecar]) -> Sidecar:
    """A sidecar beside the worker."""
    return start("--broker", judging.servers, "--prefix", judging.topics.prefix)


def run(coroutine: Any) -> Any:
    """Run to the end, with a limit that catches a hang."""

    async def limited() -> Any:
        return await asyncio.wait_for(coroutine, HANG_S)

    return asyncio.run(limited())


def program_of(page: Path) -> str:
    """The one program on a page."""
    (program,) = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return str(program)


@pytest.fixture
def on_the_broker(judging: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment says where the broker is."""
    monkeypatch.setenv("LOOPWARDEN_BOOTSTRAP_SERVERS", judging.servers)
    monkeypatch.setenv("LOOPWARDEN_TOPIC_PREFIX", judging.topics.prefix)
