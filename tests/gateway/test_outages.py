"""The broker goes away and comes back: a broker of each test's own is killed and started again."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopwarden.broker import LocalBroker, create_topics
from loopwarden.client import Connection
from loopwarden.gateway import Dropped, Gateway
from loopwarden_schemas.topics import declared_topics

HANG_S = 90

# kafka-python forgets to close the sockets with which it tried again.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _forgotten_sockets() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture(name="own_broker")
def _own_broker(tmp_path: Path) -> Any:
    with LocalBroker(tmp_path / "broker", port=0) as broker:
        create_topics(broker.bootstrap_servers, declared_topics(partitions=2))
        yield broker


def _call_ids(events: list[Any], run_id: str) -> list[str]:
    """In their order, each event once, however often it lies in the log."""
    return list({event.event_id: event.call_id for event in events if event.run_id == run_id}.values())


def test_nothing_is_lost_and_the_order_is_kept_over_a_kill(own_broker: LocalBroker, logged: Any) -> None:
    connection = Connection(own_broker.bootstrap_servers)
    with Gateway(connection) as gateway:
        for number in range(300):
            if number == 100:
                own_broker.kill()
            if number == 200:
                own_broker.start()
            for run_id in ("a", "b"):
                gateway.started(run_id, "read", call_id=str(number))
            time.sleep(0.002)
        assert gateway.flush(HANG_S)
        assert gateway.stats.acknowledged == gateway.stats.sent == 600
    events = logged(connection)
    assert _call_ids(events, "a") == _call_ids(events, "b") == [str(number) for number in range(300)]


def test_a_spool_keeps_the_order_and_is_sent_when_the_broker_is_back(
    own_broker: LocalBroker, logged: Any, tmp_path: Path
) -> None:
    connection = Connection(own_broker.bootstrap_servers)
    own_broker.kill()
    settings: dict[str, Any] = {"when_away": "spool", "spool_dir": tmp_path / "spool", "max_buffer_bytes": 5_000}
    with Gateway(connection, **settings) as gateway:
        receipts = [gateway.started("run", "read", call_id=str(number)) for number in range(1000)]
        assert gateway.stats.spooled > 500 and gateway.stats.buffered == 1000
        own_broker.start()
        assert gateway.flush(HANG_S)
        assert all(receipt.acknowledged for receipt in receipts)
        assert gateway.stats.buffered == gateway.stats.dropped == 0
    assert _call_ids(logged(connection), "run") == [str(number) for number in range(1000)]
    assert not list((tmp_path / "spool").rglob("*.events"))


def test_what_a_gateway_leaves_in_its_spool_the_next_one_sends_first(
    connection: Connection, logged: Any, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"when_away": "spool", "spool_dir": tmp_path, "max_buffer_bytes": 5_000}
    away = Gateway(bootstrap_servers="127.0.0.1:1", **settings)
    for number in range(250):
        away.started("run", "read", call_id=str(number))
    away.close(0)
    assert away.stats.dropped == 0
    with Gateway(connection, **settings) as gateway:
        gateway.started("run", "read", call_id="250")
        assert gateway.flush(HANG_S)
    assert _call_ids(logged(connection), "run") == [str(number) for number in range(251)]
    assert not list(tmp_path.rglob("*.events"))


def test_the_oldest_are_dropped_and_counted_where_that_is_the_policy() -> None:
    gateway = Gateway(bootstrap_servers="127.0.0.1:1", max_buffer_bytes=5_000)
    receipts = [gateway.started("run", "read", call_id=str(number)) for number in range(100)]
    assert isinstance(receipts[0].error, Dropped) and not receipts[-1].done
    stats = gateway.stats
    assert stats.dropped > 0 and stats.dropped + stats.buffered == stats.sent == 100
    gateway.close(0)


def test_a_caller_that_is_to_be_blocked_waits_no_longer_than_it_said() -> None:
    gateway = Gateway(bootstrap_servers="127.0.0.1:1", when_away="block", max_buffer_bytes=1_000, max_block_s=0.05)
    receipts = [gateway.started("run", "read", call_id=str(number)) for number in range(10)]
    assert not receipts[0].done and isinstance(receipts[-1].error, Dropped)
    gateway.close(0)


def test_a_caller_that_is_blocked_goes_on_when_the_broker_is_back(connection: Connection, logged: Any) -> None:
    with Gateway(connection, when_away="block", max_buffer_bytes=1_000) as gateway:
        for number in range(200):
            gateway.started("run", "read", call_id=str(number))
        assert gateway.flush(HANG_S)
        assert (gateway.stats.acknowledged, gateway.stats.dropped) == (200, 0)
    assert _call_ids(logged(connection), "run") == [str(number) for number in range(200)]
