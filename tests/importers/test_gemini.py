from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .reading import bad, events, items_of, left_out, read_file

HEAD = {"sessionId": "s", "projectHash": "h", "startTime": "2026-01-01T00:00:00.000Z", "kind": "main"}


def call(call_id: str = "c", status: str = "success", response: Any = None, **more: Any) -> dict[str, Any]:
    answer = {"functionResponse": {"id": call_id, "name": "ls", "response": response or {"output": "a.txt"}}}
    told = {"id": call_id, "name": "ls", "args": {"path": "."}, "status": status, "result": [answer]}
    return {**told, "timestamp": "2026-01-01T00:00:02.000Z", **more}


def message(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"id": "m", "type": "gemini", "timestamp": "2026-01-01T00:00:01.000Z", "toolCalls": list(calls), **more}


def test_a_session_that_is_one_document(sample: Callable[[str], Path]) -> None:
    items = read_file(sample("gemini.json"))
    found = events(items)

    assert [(event["type"][10:], event["call_id"], event["ts"] % 60_000) for event in found] == [
        ("started", "read_file-1", 1000),
        ("started", "read_file-2", 1000),
        ("finished", "read_file-1", 2000),
        ("finished", "read_file-2", 3000),
    ]
    assert found[2]["result"] == {"content": [{"type": "text", "text": "alpha\nbeta"}]}
    assert found[3]["error"] == "File not found."
    assert len(items) == len(found)


def test_a_session_of_lines_in_which_a_message_is_written_anew_as_it_changes() -> None:
    found = events(
        items_of(
            HEAD,
            message(call(status="executing", result=None)),
            {"$set": {"lastUpdated": "2026-01-01T00:00:03.000Z"}},
            message(call()),
            {"$rewindTo": "m"},
            {"$set": {"messages": [message(call())]}},
            message(call("d")),
        )
    )

    assert [(event["type"][10:], event["call_id"]) for event in found] == [
        ("started", "c"),
        ("finished", "c"),
        ("started", "d"),
        ("finished", "d"),
    ]
    assert {event["run_id"] for event in found} == {"s"}


def test_an_answers_own_id_is_no_part_of_the_result() -> None:
    finished = [event for event in events(items_of(HEAD, message(call("c"), call("d")))) if "result" in event]

    assert finished[0]["result"] == finished[1]["result"]


def test_the_processes_that_a_shell_started_are_no_part_of_the_result() -> None:
    outputs = [f"Output: ok\nProcess Group PGID: {n}" for n in (1, 2)]
    found = events(items_of(HEAD, message(*(call(o, response={"output": o}) for o in outputs))))

    assert {event["result"]["content"][0]["text"] for event in found if "result" in event} == {"Output: ok\n"}


def test_a_sub_agents_session_is_a_run_below_the_one_whose_folder_it_lies_in(tmp_path: Path) -> None:
    file = tmp_path / "chats" / "the-parent" / "s.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in ({**HEAD, "kind": "subagent"}, message(call()))))
    begun = events(read_file(file))[0]

    assert (begun["type"], begun["run_id"], begun["parent_run_id"]) == ("run.started", "s", "the-parent")


def test_a_cancelled_call_failed() -> None:
    assert events(items_of(HEAD, message(call(status="cancelled", result=None))))[1]["error"] == "cancelled"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ({"id": "x", "type": "invented"}, "a message of type 'invented'"),
        (message({"id": "x"}), "a tool call without a name"),
        (message(call("x", "dreaming")), "a call with status 'dreaming'"),
    ],
)
def test_what_is_not_understood_is_said(line: dict[str, Any], what: str) -> None:
    assert what in [item.what for item in left_out(items_of(HEAD, line))]


@pytest.mark.parametrize("line", [5, {**HEAD, "sessionId": ""}])
def test_a_line_that_is_none_of_a_session_is_a_bad_line(line: Any) -> None:
    assert [item.line for item in bad(items_of(HEAD, line))] == [2]
