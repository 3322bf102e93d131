"""From where a run's verdicts are read."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from loopwarden.gateway import Dropped, Gateway, Receipt, Run
from loopwarden.runner.read_back import READ_BACK_MS, read_back_from

NOW = 1_800_000_000_000
MINUTE = 60_000


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    """Without a broker: nothing is sent."""
    gateway = Gateway(bootstrap_servers="127.0.0.1:9")
    yield gateway
    gateway.close(0)


def _receipt(append_time: int | None = None, error: Dropped | None = None) -> Receipt:
    receipt = Receipt("e", threading.Condition())
    if append_time is not None or error is not None:
        receipt.settle(partition=0, offset=0, append_time=append_time, error=error)
    return receipt


def _run(gateway: Gateway, started: Receipt | None, last: Receipt | None, run_id: str | None = None) -> Run:
    run = gateway.run(run_id)
    run.started, run.last = started, last
    return run


def test_a_run_of_an_id_that_was_given_may_have_begun_a_day_ago(gateway: Gateway) -> None:
    assert read_back_from(None, NOW) == (NOW - READ_BACK_MS, True)
    assert read_back_from(gateway.run("given"), NOW) == (NOW - READ_BACK_MS, True)


def test_a_new_run_that_said_nothing_yet_begins_now(gateway: Gateway) -> None:
    assert read_back_from(gateway.run(), NOW) == (None, False)
    for begun in (_receipt(), _receipt(NOW - 1000)):
        assert read_back_from(_run(gateway, begun, begun), NOW) == (None, False)


@pytest.mark.parametrize("ago", [1000, 11 * MINUTE, 30 * 60 * MINUTE])
def test_a_new_run_that_went_on_began_when_its_start_was_appended(gateway: Gateway, ago: int) -> None:
    assert read_back_from(_run(gateway, _receipt(NOW - ago), _receipt()), NOW) == (NOW - ago, False)


def test_a_new_run_that_began_long_ago_did_so_whatever_came_after(gateway: Gateway) -> None:
    begun = _receipt(NOW - 11 * MINUTE)
    assert read_back_from(_run(gateway, begun, begun), NOW) == (NOW - 11 * MINUTE, False)


@pytest.mark.parametrize("started", [None, _receipt(error=Dropped("")), _receipt()])
def test_where_it_is_not_known_when_a_new_run_began_it_is_read_back_as_any(
    gateway: Gateway, started: Receipt | None
) -> None:
    assert read_back_from(_run(gateway, started, _receipt(NOW)), NOW) == (NOW - READ_BACK_MS, True)
