"""The log as JSON: a line an object, with run, partition and offset where they are known."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime
from typing import Any

import pytest

from loopwarden.worker import Settings, SettingsError
from loopwarden.worker.log import JsonLines


def written(message: str, *args: object, extra: dict[str, Any] | None = None, exc_info: Any = None) -> dict[str, Any]:
    logger = logging.getLogger("loopwarden.worker.lane")
    record = logger.makeRecord(logger.name, logging.WARNING, "", 0, message, args, exc_info, extra=extra)
    line = JsonLines().format(record)
    assert "\n" not in line
    fields: dict[str, Any] = json.loads(line)
    return fields


def test_a_line_has_time_level_logger_and_message() -> None:
    fields = written("policy %d in force", 7)
    time = datetime.fromisoformat(fields.pop("time").replace("Z", "+00:00"))
    assert time.utcoffset() is not None
    assert fields == {"level": "warning", "logger": "loopwarden.worker.lane", "message": "policy 7 in force"}


def test_a_line_has_run_partition_and_offset_where_they_are_known() -> None:
    fields = written("judged", extra={"run": "run-7", "partition": 0, "offset": 12})
    assert (fields["run"], fields["partition"], fields["offset"]) == ("run-7", 0, 12)


def test_a_run_cannot_write_lines_of_its_own() -> None:
    run = 'run\n{"level": "error"}\udcff'
    fields = written("guard armed (run %s)", run, extra={"run": run})
    assert fields["run"] == run
    assert fields["level"] == "warning"


def test_a_bug_comes_with_its_traceback() -> None:
    try:
        raise ValueError("a bug")
    except ValueError:
        fields = written("the judge failed", exc_info=sys.exc_info())
    assert "Traceback" in fields["exception"]
    assert "ValueError: a bug" in fields["exception"]


def test_the_format_is_text_or_json() -> None:
    assert Settings.from_environment({}).log_format == "text"
    assert Settings.from_environment({"LOOPWARDEN_LOG_FORMAT": "json"}).log_format == "json"
    with pytest.raises(SettingsError, match="LOOPWARDEN_LOG_FORMAT: must be one of text, json, got 'xml'"):
        Settings.from_environment({"LOOPWARDEN_LOG_FORMAT": "xml"})


def test_every_line_of_a_worker_is_an_object_and_tells_of_which_run_it_is(installation: Any) -> None:
    worker = installation.start_worker(LOOPWARDEN_LOG_FORMAT="json")
    event = {"run_id": "run-7", "event_id": "e1", "ts": 0, "type": "compaction", "trigger": "overflow"}
    installation.publish({**event, "succeeded": True})
    installation.wait_until_judged()
    worker.wait_for_log("guard armed")
    assert worker.stop() == 0
    lines = [json.loads(line) for line in worker.log.splitlines()]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    [armed] = [line for line in lines if "guard armed" in line["message"]]
    assert (armed["run"], armed["partition"], armed["offset"]) == ("run-7", installation.partition("run-7"), 0)
