"""A real worker, as the worker's own tests start it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ..worker.conftest import STRICT, installation  # noqa: TID252 - tests are no package that could be named

if TYPE_CHECKING:
    from loopwarden.client import Connection

__all__ = ["installation"]


@pytest.fixture
def strict() -> dict[str, Any]:
    """A policy that warns at the second repetition and blocks at the fourth."""
    return STRICT


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
