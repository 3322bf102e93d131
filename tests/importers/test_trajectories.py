from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .reading import bad, events, items_of, read_file


def trajectory(run: Any = "r", **fields: Any) -> dict[str, Any]:
    call = {"tool": "bash", "args": {"cmd": "ls"}, "result": "a.txt", "error": False}
    return {"source": "s", "run": run, "outcome": None, "exit": None, "events": [call], **fields}


def test_each_call_is_started_and_finished_and_then_the_run_is_finished(sample: Callable[[str], Path]) -> None:
    found = [event for event in events(read_file(sample("trajectories.jsonl"))) if event["run_id"].endswith("#0")]

    assert [event["type"] for event in found] == ["tool_call.started", "tool_call.finished"] * 3 + ["run.finished"]
    assert found[0]["args"] == found[1]["args"] == {"cmd": "ls"}
    assert found[1]["result"] == "a.txt"
    assert found[-1]["reason"] == "max_turns, unresolved"


def test_the_order_in_the_run_stands_for_the_time(sample: Callable[[str], Path]) -> None:
    found = events(read_file(sample("trajectories.jsonl")))

    assert [event["ts"] for event in found] == [*range(7), *range(3)]


def test_a_result_that_is_an_error_text_becomes_the_error(sample: Callable[[str], Path]) -> None:
    found = events(read_file(sample("trajectories.jsonl")))

    assert found[3]["error"] == "cat: b: No such file"
    assert "result" not in found[3]


def test_a_call_without_a_result_is_void_and_a_null_one_is_an_outcome() -> None:
    void, null = {"tool": "t", "args": {}}, {"tool": "t", "args": {}, "result": None}

    _, first, _, second, _ = events(items_of(trajectory(events=[void, null])))

    assert "result" not in first
    assert second["result"] is None


def test_ids_are_readable_short_and_unique(sample: Callable[[str], Path]) -> None:
    found = events(read_file(sample("trajectories.jsonl")))
    ids = [event["event_id"] for event in found]

    assert ids[0] == "runs/one.json#0/0/started"
    assert len(set(ids)) == len(ids)
    assert all(len(event_id.encode()) <= 64 for event_id in ids)


def test_reading_a_file_twice_gives_the_same_events(sample: Callable[[str], Path]) -> None:
    assert read_file(sample("trajectories.jsonl")) == read_file(sample("trajectories.jsonl"))


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (trajectory(run=""), "run: must be text that is not empty"),
        (trajectory(run=5), "run: must be text that is not empty, got 5"),
        (trajectory(run="r" * 257), "run: must be at most 256 bytes, got 257"),
        (trajectory(events=None), "events: must be a list"),
        (trajectory(events=[{"tool": "t"}, {"args": {}}]), "events[1].tool: must be text"),
        (trajectory(events=[{"tool": "t", "error": "yes"}]), "events[0].error: must be true or false, got 'yes'"),
        (trajectory(run="first"), "line 1 has 'first' too"),
        ({"tool": "t"}, "must be an object with `run` and `events`"),
    ],
)
def test_a_run_with_a_mistake_is_left_out_whole_and_the_rest_goes_on(run: dict[str, Any], why: str) -> None:
    items = items_of(trajectory("first"), run, trajectory("last"))

    assert {event["run_id"] for event in events(items)} == {"first", "last"}
    ((line, reason),) = bad(items)
    assert line == 2
    assert why in reason


@pytest.mark.parametrize(
    ("name", "runs", "calls"),
    [("intercode", 16409, 90811), ("tau_gpt4o_airline", 182, 1164), ("sweagent_demos", 18, 205)],
)
def test_real_trajectories_are_read_whole(name: str, runs: int, calls: int, shared: Callable[[str], Path]) -> None:
    items = read_file(shared(f"traces/{name}.jsonl.gz"))
    kinds = Counter(event["type"] for event in events(items))

    assert kinds == {"tool_call.started": calls, "tool_call.finished": calls, "run.finished": runs}
    assert len(items) == kinds.total()
