from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from loopwarden.broker import LocalBroker
    from loopwarden.client import Connection
    from loopwarden_schemas.topics import Topics


@pytest.fixture
def connection(broker: LocalBroker, topics: Topics) -> Connection:
    """The declared topics on the real broker, under the test's own prefix."""
    from loopwarden.client import Connection

    return Connection(broker.bootstrap_servers, topics.prefix)


@pytest.fixture
def strict() -> dict[str, Any]:
    return {"tools": {"loopDetection": {"enabled": True, "warningThreshold": 2, "criticalThreshold": 4}}}
