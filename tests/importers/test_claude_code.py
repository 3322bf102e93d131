from __future__ import annotations

from typing import Any

import pytest

from loopwarden_schemas.events import MAX_RECORD_BYTES

from .reading import bad, check_all, events, items_of, left_out

HEAD = {"sessionId": "s", "uuid": "u", "timestamp": "2026-01-01T00:00:01.000Z", "isSidechain": False}


def call(call_id: Any = "c", args: Any = None, **line: Any) -> dict[str, Any]:
    part = {"type": "tool_use", "id": call_id, "name": "Read", "input": {"path": "a"} if args is None else args}
    return {**HEAD, "type": "assistant", "message": {"role": "assistant", "content": [part]}, **line}


def result(call_id: str = "c", content: Any = "text", **more: Any) -> dict[str, Any]:
    part = {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}
    return {**HEAD, "type": "user", "message": {"role": "user", "content": [part]}}


def test_a_call_and_its_result() -> None:
    started, finished = events(items_of(call(), result()))

    assert (started["type"], started["run_id"], started["session_id"], started["ts"]) == (
        "tool_call.started",
        "s",
        "s",
        1767225601000,
    )
    assert (started["tool"], started["args"]) == ("Read", {"path": "a"})
    assert (finished["call_id"], finished["args"]) == ("c", {"path": "a"})
    assert finished["result"] == {"content": [{"type": "text", "text": "text"}]}


def test_an_error_is_its_text() -> None:
    (_, finished) = events(items_of(call(), result(content=[{"type": "text", "text": "no such file"}], is_error=True)))

    assert finished["error"] == "no such file"
    assert "result" not in finished


def test_a_call_that_stands_on_several_lines_is_one() -> None:
    assert [event["type"] for event in events(items_of(call(), call(), result(), call()))] == [
        "tool_call.started",
        "tool_call.finished",
    ]


def test_two_pictures_are_two_results_and_the_same_one_is_the_same() -> None:
    def picture(content: str) -> dict[str, Any]:
        return {"type": "image", "source": {"type": "base64", "data": content}}

    found = events(items_of(*(line for c in "abc" for line in (call(c), result(c, [picture(c.replace("c", "a"))])))))
    one, other, again = (event["result"] for event in found if "result" in event)

    assert one == again != other


def test_what_a_tool_adds_that_is_new_each_time_is_cut_out() -> None:
    looks = [
        f"<status>running</status>\n\n<timestamp>2026-01-01T00:00:{second}Z</timestamp>" for second in ("01.5", "02.5")
    ]
    answers = [f"done\nagentId: {agent} (for resuming)\n<usage>tokens: {agent}</usage>" for agent in ("a1", "b2")]
    found = events(
        items_of(*(line for n, t in enumerate(looks + answers) for line in (call(f"{n}"), result(f"{n}", t))))
    )
    texts = [event["result"]["content"][0]["text"] for event in found if "result" in event]

    assert texts == ["<status>running</status>"] * 2 + ["done"] * 2


@pytest.mark.parametrize(("trigger", "expected"), [("auto", "in_attempt"), ("manual", "manual"), (None, "in_attempt")])
def test_a_compaction_says_whether_a_person_asked_for_it(trigger: str | None, expected: str) -> None:
    line = {**HEAD, "type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": trigger}}
    summary = {**HEAD, "type": "user", "isCompactSummary": True, "message": {"role": "user", "content": "so far"}}
    (compaction,) = events(items_of(line, summary))

    assert (compaction["type"], compaction["trigger"], compaction["succeeded"]) == ("compaction", expected, True)


def test_a_microcompaction_is_none() -> None:
    assert items_of({**HEAD, "type": "system", "subtype": "microcompact_boundary"}) == []


def test_a_sub_agent_is_a_run_of_its_own_below_its_session() -> None:
    inside: dict[str, Any] = {"isSidechain": True, "agentId": "a1"}
    found = events(items_of(call("main"), call("sub", **inside), {**result("sub"), **inside}, result("main")))

    assert [(event["type"], event["run_id"]) for event in found] == [
        ("tool_call.started", "s"),
        ("run.started", "s/a1"),
        ("tool_call.started", "s/a1"),
        ("tool_call.finished", "s/a1"),
        ("tool_call.finished", "s"),
    ]
    assert found[1]["parent_run_id"] == "s"
    assert {event["session_id"] for event in found} == {"s"}


def test_sub_agents_that_are_not_named_are_told_apart_by_their_first_line() -> None:
    lines = [
        {**HEAD, "type": "user", "isSidechain": True, "uuid": root, "parentUuid": None, "message": {"content": "go"}}
        for root in ("r1", "r2")
    ]
    calls = [
        call("1", isSidechain=True, uuid="x", parentUuid="r1"),
        call("2", isSidechain=True, uuid="y", parentUuid="r2"),
        call("3", isSidechain=True, uuid="z", parentUuid="x"),
    ]
    found = [event for event in events(items_of(*lines, *calls)) if event["type"] == "tool_call.started"]

    assert [event["run_id"] for event in found] == ["s/r1", "s/r2", "s/r1"]


def test_what_is_too_large_for_a_record_travels_as_its_hash() -> None:
    large = "x" * MAX_RECORD_BYTES
    items = check_all(call(args={"text": large}), result(content=large), call("d"), result("d", large))
    started, finished, _, again = events(items)

    assert bad(items) == []
    assert "args" not in started
    assert finished["args_hash"] == started["args_hash"]
    assert finished["result_hash"] == again["result_hash"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ({**HEAD, "type": "invented"}, "a line of type 'invented'"),
        ({**HEAD, "type": "system", "subtype": "invented"}, "a system line of subtype 'invented'"),
        (
            {**HEAD, "type": "assistant", "message": {"content": [{"type": "hologram"}]}},
            "a part of type 'hologram' in a message",
        ),
        (result("nowhere"), "a result without its call"),
        (call(5), "a call without an id"),
        (
            {**HEAD, "type": "progress", "data": {"type": "agent_progress"}},
            "a sub-agent's message as its parent saw it: its own file has it",
        ),
    ],
)
def test_what_is_not_understood_is_said_and_the_rest_goes_on(line: dict[str, Any], what: str) -> None:
    items = items_of(call("before"), line, call("after"))

    assert [event["call_id"] for event in events(items)] == ["before", "after"]
    assert [(item.line, item.what) for item in left_out(items)] == [(2, what)]


@pytest.mark.parametrize("line", [5, [], {"sessionId": "s"}, {**call(), "sessionId": ""}, {**call(), "sessionId": 5}])
def test_a_line_that_is_none_of_a_session_is_a_bad_line(line: Any) -> None:
    items = items_of(call("before"), line, call("after"))

    assert [item.line for item in bad(items)] == [2]
    assert len(events(items)) == 2
