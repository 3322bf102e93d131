from __future__ import annotations

import json
from typing import Any

import pytest

from .reading import bad, events, items_of, left_out

OLD = "019f0000-0000-7000-8000-000000000000"
PARENT = "019f1000-0000-7000-8000-000000000000"
CHILD = "019f2000-0000-7000-8000-000000000000"
NEW = "019f3000-0000-7000-8000-000000000000"


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:01.000Z", "type": kind, "payload": payload}


def call(
    call_id: str = "c", tool: str = "exec_command", arguments: Any = '{"cmd": "ls"}', **more: Any
) -> dict[str, Any]:
    return line("response_item", type="function_call", call_id=call_id, name=tool, arguments=arguments, **more)


def result(call_id: str = "c", output: Any = "text") -> dict[str, Any]:
    return line("response_item", type="function_call_output", call_id=call_id, output=output)


META = line("session_meta", id=PARENT)


def outcome_of(output: Any) -> dict[str, Any]:
    return events(items_of(META, call(), result(output=output)))[1]


def test_a_call_and_its_result() -> None:
    started, finished = events(items_of(META, call(), result()))

    assert (started["type"], started["run_id"], started["ts"]) == ("tool_call.started", PARENT, 1767225601000)
    assert (started["tool"], started["args"]) == ("exec_command", {"cmd": "ls"})
    assert finished["result"] == {"content": [{"type": "text", "text": "text"}]}


def test_arguments_that_are_no_json_and_the_input_of_a_custom_tool_are_text() -> None:
    custom = line("response_item", type="custom_tool_call", call_id="d", name="apply_patch", input="*** Begin Patch")
    found = events(items_of(META, call(arguments="{broken"), custom))

    assert [event["args"] for event in found] == ["{broken", "*** Begin Patch"]


@pytest.mark.parametrize(
    "outputs",
    [
        [f"Chunk ID: {n}\nWall time: 0.{n} seconds\nProcess exited with code 0\nOutput:\nok" for n in (12, 34)],
        [[{"type": "input_text", "text": f"Script completed\nWall time 0.{n} seconds\nOutput:\n"}] for n in (1, 2)],
        [json.dumps({"output": "ok", "metadata": {"exit_code": 0, "duration_seconds": n}}) for n in (1, 2)],
        [f'{{"chunk_id":"a{n}","wall_time_seconds":0.{n},"exit_code":0}}' for n in (1, 2)],
    ],
)
def test_what_codex_adds_that_is_new_each_time_is_cut_out(outputs: list[Any]) -> None:
    one, other = map(outcome_of, outputs)

    assert one["result"] == other["result"]


@pytest.mark.parametrize(
    "output",
    [
        "Wall time: 1 seconds\nProcess exited with code 2\nOutput:\nbroken",
        "Exit code: 2\nWall time: 1 seconds\nOutput:\nbroken",
        json.dumps({"output": "broken", "metadata": {"exit_code": 2, "duration_seconds": 0.1}}),
        {"content": "broken", "success": False},
    ],
)
def test_an_exit_code_that_is_not_0_is_an_error(output: Any) -> None:
    assert "broken" in outcome_of(output)["error"]


def test_an_exit_code_in_the_output_itself_is_none() -> None:
    assert "result" in outcome_of("Process exited with code 0\nOutput:\nProcess exited with code 1\n")


def test_a_compaction_is_told_twice_and_counts_once() -> None:
    compacted, told = line("compacted", message="so far"), line("event_msg", type="context_compacted")
    found = events(items_of(META, compacted, told, call(), told, compacted, told))

    assert [event["type"] for event in found] == ["compaction", "tool_call.started", "compaction", "compaction"]
    assert (found[0]["trigger"], found[0]["succeeded"]) == ("in_attempt", True)


def test_a_session_that_is_gone_on_with_begins_again_with_its_meta_data_and_is_one_run() -> None:
    found = events(items_of(META, call("a"), META, call("b")))

    assert [(event["run_id"], event["call_id"]) for event in found] == [(PARENT, "a"), (PARENT, "b")]


@pytest.mark.parametrize(
    "born",
    [
        {"forked_from_id": PARENT},
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT}}}},
        {"parent_thread_id": PARENT},
    ],
)
def test_a_fork_or_sub_agent_is_a_run_below_its_parent_without_the_history_that_it_begins_with(
    born: dict[str, Any],
) -> None:
    items = items_of(
        line("session_meta", id=CHILD, **born),
        line("session_meta", id=PARENT, forked_from_id=OLD),
        line("session_meta", id=OLD),
        line("turn_context", turn_id=PARENT[:-1] + "1"),
        call("copied"),
        result("copied"),
        line("compacted"),
        line("turn_context", turn_id=NEW),
        call("own"),
        result("own"),
    )

    assert [(event["type"], event["run_id"]) for event in events(items)] == [
        ("run.started", CHILD),
        ("tool_call.started", CHILD),
        ("tool_call.finished", CHILD),
    ]
    assert events(items)[0]["parent_run_id"] == PARENT
    assert [item.line for item in left_out(items)] == [5, 6, 7]


def test_a_calls_own_turn_says_more_than_the_last_one_that_began() -> None:
    about: dict[str, Any] = {"internal_chat_message_metadata_passthrough": {"turn_id": NEW}}
    items = items_of(
        line("session_meta", id=CHILD, forked_from_id=PARENT), line("turn_context", turn_id=PARENT), call(**about)
    )

    assert [event["type"] for event in events(items)] == ["run.started", "tool_call.started"]


def test_several_sessions_may_follow_one_another() -> None:
    found = events(items_of(META, call("a"), line("session_meta", id=CHILD), call("a")))

    assert [event["run_id"] for event in found] == [PARENT, CHILD]


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        (line("invented"), "a line of type 'invented'"),
        (line("response_item", type="invented"), "a response_item of type 'invented'"),
        (line("response_item", type="function_call", call_id="x"), "a tool call without a name"),
        (result("nowhere"), "a result without its call"),
        (
            line("event_msg", type="mcp_tool_call_end", call_id="exec-1"),
            "a tool's call from within another call: mcp_tool_call_end",
        ),
    ],
)
def test_what_is_not_understood_is_said_and_the_rest_goes_on(entry: dict[str, Any], what: str) -> None:
    items = items_of(META, call("before"), entry, call("after"))

    assert [event["call_id"] for event in events(items)] == ["before", "after"]
    assert [(item.line, item.what) for item in left_out(items)] == [(3, what)]


@pytest.mark.parametrize("entry", [5, {}, {"type": "response_item"}, line("session_meta", id="")])
def test_a_line_that_is_none_of_a_session_is_a_bad_line(entry: Any) -> None:
    assert [item.line for item in bad(items_of(META, call(), entry))] == [3]


def test_without_its_meta_data_a_session_has_no_name_and_every_line_is_told() -> None:
    assert [item.line for item in bad(items_of(call(), result()))] == [1, 2]
