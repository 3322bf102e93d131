from __future__ import annotations

import logging
from typing import Any

import pytest
from kafka import KafkaConsumer

from loopwarden.broker import LocalBroker
from loopwarden.broker.ports import free_port
from loopwarden.client.kept_connection import KeptConnection

logger = logging.getLogger("loopwarden.test")


def test_a_broker_that_is_away_is_tried_again_and_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    link = KeptConnection(KafkaConsumer, f"127.0.0.1:{free_port()}", {}, logger, "nothing is read")
    losses: list[bool] = []

    def lost() -> None:
        losses.append(link.established)
        if len(losses) == 3:
            link.closing.set()

    link.keep(lambda _: pytest.fail("there is nobody to talk to"), on_loss=lost)
    assert losses == [False] * 3
    [told] = caplog.messages
    assert told.startswith("nothing is read: 127.0.0.1:")


def test_whatever_happens_to_one_connection_the_next_is_made(
    broker: LocalBroker, caplog: pytest.LogCaptureFixture
) -> None:
    link = KeptConnection(KafkaConsumer, broker.bootstrap_servers, {}, logger, "nothing is read")
    clients: list[Any] = []

    def use(client: Any) -> None:
        clients.append(client)
        link.note_established()
        if len(clients) < 3:
            raise ValueError(f"connection {len(clients)} breaks")
        link.closing.set()

    link.keep(use)
    assert len(clients) == 3
    assert link.established
    assert caplog.messages == [f"nothing is read: connection {number} breaks" for number in (1, 2)]
