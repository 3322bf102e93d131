"""What a person sees of the worker's log."""

from __future__ import annotations

import logging

from loopwarden.worker.run import Sparingly


def test_the_same_line_comes_once_in_a_while_only() -> None:
    sparingly = Sparingly(seconds=3600)
    lines = ["broker 1 is away", "broker 1 is away", "broker 2 is away"]
    records = [logging.LogRecord("aiokafka", logging.ERROR, "", 0, line, (), None) for line in lines]
    assert [sparingly.filter(record) for record in records] == [True, False, True]
    assert all(Sparingly(seconds=0).filter(record) for record in records)
