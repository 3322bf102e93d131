"""A real worker, as the worker's own tests start it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..worker.conftest import STRICT, Installation, installation  # noqa: TID252 - tests are no package that could be named

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker
    from loopwarden.client import Connection
    from loopwarden_schemas.topics import Topics

__all__ = ["installation"]


@pytest.fixture
def strict() -> dict[str, Any]:
    """A policy that warns at the second repetition and blocks at the fourth."""
    return STRICT


@pytest.fixture
def installed_on(tmp_path: Path) -> Callable[[LocalBroker, Topics], closing[Installation]]:
    """Makes an installation on a broker of the test's own."""
    return lambda broker, topics: closing(Installation(broker.bootstrap_servers, topics, tmp_path))


@pytest.fixture
def connection(installation: Any) -> Connection:
    from loopwarden.client import Connection

    return Connection(installation.servers, installation.topics.prefix)


@pytest.fixture
def judging(installation: Any, strict: dict[str, Any]) -> Any:
    """An installation with the strict policy in force and a worker that judges."""
    installation.apply(strict)
    installation.start_worker().wait_for_log("detectors are")
    return installation
