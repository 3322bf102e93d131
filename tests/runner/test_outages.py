"""The broker goes away and comes back: one of the test's own is killed and started again. The test is the worker."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loopwarden.broker import LocalBroker, create_topics
from loopwarden.client import Connection
from loopwarden.gateway import Gateway
from loopwarden.runner import RunGuard
from loopwarden_schemas.topics import declared_topics

HANG_S = 90
SAME = {"path": "/x"}

# kafka-python forgets to close the sockets with which it tried again.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _forgotten_sockets() -> Iterator[None]:
    yield
    gc.collect()


def test_guard_and_gateway_outlive_their_broker(tmp_path: Path, strict: Any, installed_on: Any) -> None:
    topics = declared_topics("own-", partitions=2)
    with LocalBroker(tmp_path / "broker", port=0) as broker:
        create_topics(broker.bootstrap_servers, topics)
        with (
            installed_on(broker, topics) as judging,
            Gateway(Connection(broker.bootstrap_servers, "own-")) as gateway,
            RunGuard(gateway=gateway) as guard,
        ):
            judging.apply(strict)
            judging.start_worker().wait_for_log("detectors are")
            run = gateway.run()
            guarded = guard.run(run)
            for _ in range(4):
                assert guarded.before_call("read", SAME, certain=HANG_S).allowed
                with run.call("read", SAME) as call:
                    call.result("the same")
            assert guarded.before_call("read", SAME, certain=HANG_S).action == "block"
            judging.workers[-1].kill()
            broker.kill()
            # While it is away the orders that are known hold, and nobody waits longer than asked.
            assert guarded.before_call("read", SAME).action == "block"
            away = guarded.before_call("read", {"path": "/y"}, certain=0.1)
            assert away.allowed and not away.certain
            with run.call("read", {"path": "/y"}) as call:
                call.result("another")
            broker.start()
            judging.start_worker()
            answers = []
            for _ in range(5):
                answers.append(guarded.before_call("list", SAME, certain=HANG_S))
                if answers[-1].allowed:
                    with run.call("list", SAME) as call:
                        call.result("the same")
            assert [answer.action == "block" for answer in answers] == [False] * 4 + [True]
            assert all(answer.certain for answer in answers)


def test_a_broker_that_hangs_is_away_until_it_answers_again(tmp_path: Path) -> None:
    topics = declared_topics("own-", partitions=1)
    with LocalBroker(tmp_path / "broker", port=0) as broker:
        create_topics(broker.bootstrap_servers, topics)
        with RunGuard(Connection(broker.bootstrap_servers, "own-")) as guard:
            guarded = guard.run("run")
            _until(lambda: guarded.joined)
            assert broker.pid is not None
            os.kill(broker.pid, signal.SIGSTOP)  # its port takes connections all the same
            try:
                _until(lambda: not guard.stats.connected)
            finally:
                os.kill(broker.pid, signal.SIGCONT)
            _until(lambda: guard.stats.connected)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
