from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .reading import bad, events, items_of, left_out, read_file

SESSION = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z"}


def call(call_id: str | None = "c", tool: str = "read", **entry: Any) -> dict[str, Any]:
    content = [{"type": "toolCall", "id": call_id, "name": tool, "arguments": {"path": "a"}}]
    return {"type": "message", "message": {"role": "assistant", "content": content}, **entry}


def result(call_id: str = "c", content: Any = "text", is_error: Any = False, **entry: Any) -> dict[str, Any]:
    message = {"role": "toolResult", "toolCallId": call_id, "toolName": "read", "content": content, "isError": is_error}
    return {"type": "message", "message": message, **entry}


def test_version_1_has_no_ids_and_its_entries_follow_one_another(sample: Callable[[str], Path]) -> None:
    found = events(read_file(sample("pi-version-1.jsonl")))

    assert [(event["type"], event.get("call_id")) for event in found] == [
        ("tool_call.started", "toolu_1"),
        ("tool_call.finished", "toolu_1"),
        ("compaction", None),
        ("tool_call.started", "toolu_2"),
        ("tool_call.finished", "toolu_2"),
        ("tool_call.started", "toolu_3"),
        ("tool_call.started", "toolu_4"),
        ("tool_call.finished", "toolu_3"),
    ]


def test_the_session_is_the_run_and_each_entrys_time_the_events(sample: Callable[[str], Path]) -> None:
    found = events(read_file(sample("pi-version-1.jsonl")))

    assert {(event["run_id"], event["session_id"]) for event in found} == {
        ("7e57ab1e-0000-4000-8000-000000000001",) * 2
    }
    # 2025-12-08T22:41:02.500Z
    assert found[0]["ts"] == 1765233662500


def test_a_result_is_its_content_and_details() -> None:
    blocks = [{"type": "text", "text": "alpha"}]
    with_details = result("c", blocks)
    with_details["message"]["details"] = {"lines": 1}

    (_, finished) = events(items_of(SESSION, call(), with_details))

    assert finished["result"] == {"content": blocks, "details": {"lines": 1}}
    assert "error" not in finished


def test_content_that_is_a_string_is_one_text_part() -> None:
    (_, finished) = events(items_of(SESSION, call(), result(content="alpha")))

    assert finished["result"] == {"content": [{"type": "text", "text": "alpha"}]}


def test_an_error_is_the_text_of_its_content(sample: Callable[[str], Path]) -> None:
    failed = events(read_file(sample("pi-version-1.jsonl")))[4]

    assert failed["error"] == "cat: b.txt:\nNo such file"
    assert "result" not in failed


def test_a_finished_repeats_the_arguments_since_what_counts_as_outcome_depends_on_them() -> None:
    started, finished = events(items_of(SESSION, call(), result()))

    assert started["args"] == finished["args"] == {"path": "a"}


def test_a_compaction_without_trigger_happened_in_an_attempt_and_succeeded(sample: Callable[[str], Path]) -> None:
    compaction = events(read_file(sample("openclaw-tree.jsonl")))[4]

    assert (compaction["type"], compaction["trigger"], compaction["succeeded"]) == ("compaction", "in_attempt", True)


def test_a_refused_call_is_started_and_then_blocked(sample: Callable[[str], Path]) -> None:
    refused = [event for event in events(read_file(sample("openclaw-tree.jsonl"))) if event.get("call_id") == "call_4"]

    assert [event["type"] for event in refused] == ["tool_call.started", "tool_call.blocked"]
    assert refused[1]["args"] == {"command": "ls"}


def test_a_call_that_somebody_else_refused_has_an_outcome() -> None:
    vetoed = result("c", "no", True)
    vetoed["message"]["details"] = {"status": "blocked", "deniedReason": "plugin-before-tool-call"}

    (_, finished) = events(items_of(SESSION, call(), vetoed))

    assert (finished["type"], finished["error"]) == ("tool_call.finished", "no")


def test_abandoned_branches_are_not_the_run_and_it_is_said(sample: Callable[[str], Path]) -> None:
    items = read_file(sample("openclaw-tree.jsonl"))

    assert {event["call_id"] for event in events(items) if "call_id" in event} == {"call_1", "call_4", "call_5"}
    assert [item.what for item in left_out(items)] == ["a call on an abandoned branch"] * 2


def test_a_parent_may_be_named_by_one_of_its_calls(sample: Callable[[str], Path]) -> None:
    found = events(read_file(sample("openclaw-tree.jsonl")))

    assert [event["type"] for event in found[:2]] == ["tool_call.started", "tool_call.finished"]
    assert found[1]["call_id"] == "call_1"


def test_the_run_is_the_branch_of_the_last_entry() -> None:
    items = items_of(
        SESSION,
        call("old", id="a", parentId=None),
        call("new", id="b", parentId=None),
        {"type": "custom", "id": "c", "parentId": "a"},
    )

    assert [event["call_id"] for event in events(items)] == ["old"]


def test_a_parent_that_is_nowhere_is_said_and_the_entry_before_it_taken() -> None:
    items = items_of(SESSION, call("one", id="a", parentId=None), result("one", id="b", parentId="lost"))

    assert [event["type"] for event in events(items)] == ["tool_call.started", "tool_call.finished"]
    assert "parentId" in left_out(items)[0].what


def test_a_command_that_a_person_ran_is_no_call() -> None:
    own = {"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "", "exitCode": 0}}

    assert items_of(SESSION, own) == []


def test_a_call_without_a_result_stays_pending() -> None:
    assert [event["type"] for event in events(items_of(SESSION, call()))] == ["tool_call.started"]


def test_a_result_without_its_call_is_left_out_and_it_is_said() -> None:
    items = items_of(SESSION, call("c"), result("c"), result("c"), result("other"))

    assert len(events(items)) == 2
    assert [(item.line, item.what) for item in left_out(items)] == [
        (4, "a result without its call"),
        (5, "a result without its call"),
    ]


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({"type": "invented"}, "an entry of type 'invented'"),
        ({"type": "message"}, "an entry of type 'message'"),
        ({"type": "message", "message": {"role": "oracle"}}, "a message with role 'oracle'"),
        ({"type": "message", "message": {"role": "toolResult"}}, "a result without toolCallId"),
        (call(tool=5), "a tool call without a name"),  # type: ignore[arg-type]
        (
            {"type": "message", "message": {"role": "assistant", "content": [{"type": "hologram"}]}},
            "a part of type 'hologram' in an assistant's message",
        ),
    ],
)
def test_what_is_not_understood_is_said_and_the_rest_goes_on(entry: dict[str, Any], what: str) -> None:
    items = items_of(SESSION, call("before"), entry, call("after"))

    assert [event["call_id"] for event in events(items)] == ["before", "after"]
    assert [(item.line, item.what) for item in left_out(items)] == [(3, what)]


@pytest.mark.parametrize("entry", [5, [], {}, {"type": 5}])
def test_a_line_that_is_no_entry_is_a_bad_line(entry: Any) -> None:
    items = items_of(SESSION, entry, call())

    assert [item.line for item in bad(items)] == [2]
    assert len(events(items)) == 1


def test_a_missing_time_is_that_of_the_event_before() -> None:
    first = call("a", timestamp="2026-01-01T00:00:05.25+01:00")
    found = events(items_of(SESSION, call("0"), first, call("b"), call("c", timestamp="yesterday")))

    assert [event["ts"] - found[0]["ts"] for event in found] == [0, -3594750, -3594750, -3594750]


def test_the_messages_own_time_counts_where_the_entry_has_none() -> None:
    entry = call()
    entry["message"]["timestamp"] = 1765238036367

    assert events(items_of(SESSION, entry))[0]["ts"] == 1765238036367


def test_a_call_id_of_hundreds_of_bytes_is_shortened_the_same_way_in_call_and_result() -> None:
    started, finished = events(items_of(SESSION, call("call|" + "x" * 400), result("call|" + "x" * 400)))

    assert started["call_id"] == finished["call_id"]
    assert len(started["call_id"]) <= 64


def test_event_ids_are_unique_also_for_calls_of_one_message(sample: Callable[[str], Path]) -> None:
    for name in ("pi-version-1.jsonl", "openclaw-tree.jsonl"):
        ids = [event["event_id"] for event in events(read_file(sample(name)))]
        assert len(set(ids)) == len(ids)


def test_several_sessions_may_follow_one_another() -> None:
    items = items_of(SESSION, call("a"), {**SESSION, "id": "t"}, call("a"))

    assert [(event["run_id"], event["call_id"]) for event in events(items)] == [("s", "a"), ("t", "a")]


def test_a_session_that_comes_twice_is_read_once() -> None:
    items = items_of(SESSION, call("a"), SESSION, call("a"))

    assert len(events(items)) == 1
    assert "'s' was here before" in bad(items)[0].reason
    assert len(left_out(items)) == 1


@pytest.mark.parametrize("session_id", [None, "", 5, "s" * 257])
def test_a_session_without_a_usable_id_is_left_out(session_id: Any) -> None:
    items = items_of({**SESSION, "id": session_id}, call("a"))

    assert events(items) == []
    assert bad(items)[0].reason.startswith("id: must be")


def test_reading_a_file_twice_gives_the_same_events(sample: Callable[[str], Path]) -> None:
    assert read_file(sample("openclaw-tree.jsonl")) == read_file(sample("openclaw-tree.jsonl"))


@pytest.mark.parametrize(
    ("name", "calls", "compactions", "missing", "errors"),
    [("pi-compacted", 454, 2, 6, 12), ("openclaw-small", 2, 0, 0, 0)],
)
def test_real_sessions_are_read_whole(
    name: str, calls: int, compactions: int, missing: int, errors: int, shared: Callable[[str], Path]
) -> None:
    items = read_file(shared(f"sessions/{name}.jsonl.gz"))
    found = events(items)
    kinds = Counter(event["type"] for event in found)

    assert len(items) == len(found)
    assert kinds["tool_call.started"] == calls
    assert kinds["compaction"] == compactions
    assert calls - kinds["tool_call.finished"] - kinds["tool_call.blocked"] == missing
    assert sum("error" in event for event in found) == errors
