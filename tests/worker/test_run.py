"""What a person sees of the worker's log."""

from __future__ import annotations

import logging
import signal
import sys
import time
from typing import Any

from loopwarden.worker.run import Sparingly


def test_the_same_line_comes_once_in_a_while_only() -> None:
    sparingly = Sparingly(seconds=3600)
    lines = ["broker 1 is away", "broker 1 is away", "broker 2 is away"]
    records = [logging.LogRecord("aiokafka", logging.ERROR, "", 0, line, (), None) for line in lines]
    assert [sparingly.filter(record) for record in records] == [True, False, True]
    assert all(Sparingly(seconds=0).filter(record) for record in records)


def test_a_worker_that_was_paused_for_a_while_says_so_calmly(installation: Any) -> None:
    worker = installation.start_worker()
    worker.wait_for_log("ready, judging partitions")
    worker.signal(signal.SIGSTOP)
    time.sleep(4)  # longer than Faust's threads wait for one another
    worker.signal(signal.SIGCONT)
    worker.wait_for_log("[WARNING] this worker did not run for some seconds")
    assert "keepalive" not in worker.log


def test_a_worker_that_has_nothing_to_warn_of_writes_nothing(installation: Any) -> None:
    worker = installation.start_worker(sys.executable, "-m", "loopwarden.cli", "worker", "--log-level", "error")
    installation.publish({"type": "run.finished", "event_id": "e", "ts": 1, "run_id": "r"})
    installation.wait_until_judged()
    assert worker.stop() == 0
    assert worker.log == ""
