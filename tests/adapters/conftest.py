"""A worker that judges, with a sidecar or with a gateway and a guard in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from ..sidecar.conftest import NOBODY, alone, judging, sidecar, start  # noqa: TID252 - as in the sidecar's tests
from ..worker.conftest import Installation, installation  # noqa: TID252

if TYPE_CHECKING:
    from loopwarden.gateway import Gateway
    from loopwarden.runner import RunGuard

__all__ = ["alone", "installation", "judging", "sidecar", "start"]

HANG_S = 60
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

    def events(self, run_id: str | None = None) -> list[Any]:
        """The events of a run, or of all, as they are in the log."""
        from loopwarden_schemas.codec import decode_record

        assert self.gateway.flush(HANG_S)
        records = self.installation.read(self.installation.topics.events.name)
        events = [event for record in records for event in decode_record(record.value, record.timestamp)]
        return [event for event in events if getattr(event, "run_id", run_id) == run_id or run_id is None]


@pytest.fixture
def watched(installation: Installation) -> Iterator[Watched]:
    """Certain answers, so that each test ends the same every time."""
    from loopwarden.client import Connection
    from loopwarden.gateway import Gateway
    from loopwarden.runner import RunGuard

    installation.apply(ENDS_THE_RUN)
    installation.start_worker().wait_for_log("detectors are")
    connection = Connection(installation.servers, installation.topics.prefix)
    with ExitStack() as open_ones:
        gateway = open_ones.enter_context(Gateway(connection))
        guard = open_ones.enter_context(RunGuard(gateway=gateway, certain=HANG_S))
        yield Watched(gateway, guard, installation)


@pytest.fixture
def unwatched() -> Iterator[tuple[Gateway, RunGuard]]:
    """A gateway and a guard whose broker is away."""
    from loopwarden.gateway import Gateway
    from loopwarden.runner import RunGuard

    gateway = Gateway(bootstrap_servers=NOBODY)
    with RunGuard(gateway=gateway) as guard:
        yield gateway, guard
    gateway.close(0)


def run(coroutine: Any) -> Any:
    """Run to the end, with a limit that catches a hang."""

    async def limited() -> Any:
        return await asyncio.wait_for(coroutine, HANG_S)

    return asyncio.run(limited())
