"""Whether a run had ended before it was begun anew: read from its own events."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from loopwarden.client import Connection, Record
from loopwarden.runner.ended import Ends, Question, last_end
from loopwarden_schemas.codec import encode_event

HANG_S = 60
DAY_MS = 24 * 3600 * 1000


def _record(offset: int, kind: str, at: int, key: str = "run") -> Record:
    event = {"schema": 1, "event_id": str(offset), "run_id": key, "ts": 0, "type": kind}
    return Record(0, offset, at, key.encode(), encode_event(event), [])


class Read:
    """Records as a follower reads them, in polls of one."""

    def __init__(self, *records: Record) -> None:
        self._records = records

    def read(self, ranges: Mapping[int, tuple[int, int]]) -> Iterator[list[Record]]:
        for record in self._records:
            start, end = ranges[record.partition]
            if start <= record.offset < end:
                yield [record]


def _last_end(*records: Record) -> int | None:
    reads: Any = Read(*records)
    return last_end(reads, Question("run", 0, 10, 20, lambda end: None))


def test_it_is_the_last_run_finished_of_the_run_before_its_start() -> None:
    assert _last_end(_record(10, "compaction", 1), _record(20, "run.started", 2)) is None
    ends = [_record(9, "run.finished", 1), _record(11, "run.finished", 1), _record(12, "run.finished", 1, "another")]
    assert _last_end(*ends, _record(20, "run.started", 2), _record(21, "run.finished", 3)) == 11


def test_a_day_without_an_event_ends_a_run_too() -> None:
    assert _last_end(_record(10, "compaction", 1), _record(20, "run.started", 1 + DAY_MS)) is None
    assert _last_end(_record(10, "compaction", 1), _record(20, "run.started", 2 + DAY_MS)) == 19


def test_where_it_cannot_be_read_no_end_is_known_which_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    ends = Ends(Connection("127.0.0.1:9", ""))
    found: list[int | None] = []
    for number in range(3):
        answered = threading.Event()

        def answer(end: int | None, answered: threading.Event = answered) -> None:
            found.append(end)
            answered.set()

        ends.ask(Question(f"run-{number}", 0, 0, 1, answer))
        assert answered.wait(HANG_S)
    assert found == [None] * 3
    assert [record.getMessage()[:17] for record in caplog.records if record.name == "loopwarden.runner"] == [
        "whether run run-0"
    ]
