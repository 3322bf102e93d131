from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwarden.importers import OPENCLAW, TRAJECTORIES, WIRE, BadLine, InputError, LeftOut, check, read_events
from loopwarden.importers.formats import format_of

from .reading import events, items_of, source_of

SESSION = {"type": "session", "id": "s"}
CALL = {"type": "message", "message": {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "t"}]}}
AGENTS: list[dict[str, Any]] = [
    {"type": "session_meta", "payload": {"id": "s", "forked_from_id": "p"}},
    {"type": "user", "sessionId": "s", "uuid": "u"},
    {"sessionId": "s", "projectHash": "h"},
    {"info": {"id": "s"}, "messages": []},
]
STARTED = {"type": "tool_call.started", "run_id": "r", "tool": "read"}
TRAJECTORY = {"run": "r", "events": [{"tool": "t", "args": {}, "result": ""}]}


@pytest.mark.parametrize("values", [(STARTED,), (TRAJECTORY,), (SESSION, CALL)])
def test_a_files_format_is_recognised_by_its_contents(values: tuple[Any, ...]) -> None:
    assert events(items_of(*values))


@pytest.mark.parametrize("values", [(STARTED,), (TRAJECTORY,), (SESSION, CALL)])
def test_a_broken_first_line_does_not_hide_the_format(values: tuple[Any, ...]) -> None:
    items = items_of(b"{broken", *values)

    assert isinstance(items[0], BadLine)
    assert events(items)


def test_in_a_file_that_is_nothing_known_every_line_is_reported() -> None:
    assert [item.line for item in items_of(b"# Title", b"", b"text")] == [1, 3]


def test_an_empty_file_holds_nothing() -> None:
    assert items_of() == []


def test_a_command_for_one_format_refuses_another() -> None:
    with pytest.raises(InputError, match="test: must be trajectories, but this looks like OpenClaw or pi session"):
        list(read_events(source_of(json.dumps(SESSION).encode()), (TRAJECTORIES,)))
    assert list(read_events(source_of(b""), (OPENCLAW, WIRE))) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("Claude Code", b'{"type":"summary","summary":"x","leafUuid":"u"}'),
        ("Claude Code", b'{"parentUuid":null,"sessionId":"s","type":"user","uuid":"u"}'),
        ("Codex", b'{"timestamp":"t","type":"session_meta","payload":{"id":"s"}}'),
        ("opencode", b'{"info":{"id":"s"},"messages":[]}'),
        ("opencode", b'{\n  "info": {"id": "s"},\n  "messages": [\n  ]\n}\n'),
        ("Gemini", b'{"sessionId":"s","projectHash":"h","messages":[]}'),
        ("Gemini", b'{\n  "sessionId": "s",\n  "messages": [\n  ]\n}\n'),
        ("OpenClaw or pi", b'{"type":"session","id":"s"}'),
    ],
)
def test_each_agents_session_is_recognised(name: str, content: bytes) -> None:
    found, _ = format_of(source_of(content))

    assert found is not None
    assert found.name == f"{name} session"


def test_what_was_only_come_upon_and_is_nothing_known_is_refused() -> None:
    with pytest.raises(InputError, match="test: is no file of runs"):
        list(read_events(source_of(b'{"name": "package"}'), sought=True))


def test_a_session_that_is_still_being_written_ends_in_a_line_that_is_left_out() -> None:
    items = list(read_events(source_of(json.dumps(SESSION).encode() + b'\n{"type": "mess')))

    assert items == [LeftOut(2, "a last line that is not whole yet")]


def test_a_document_over_many_lines_that_is_no_json_is_one_mistake_with_its_line() -> None:
    (item,) = read_events(source_of(b'{\n  "sessionId": "s",\n  "messages": [x]\n}\n'))

    assert isinstance(item, BadLine)
    assert item.line == 3


@pytest.mark.parametrize("first", [SESSION, *AGENTS])
def test_a_kind_that_is_no_text_is_no_kind_that_is_known(first: dict[str, Any]) -> None:
    part = {"type": ["x"], "role": ["x"], "status": ["x"], "name": "read", "id": "c"}
    line = {
        "type": ["x"],
        "subtype": {},
        "payload": part,
        "message": {"role": ["x"], "content": [part]},
        "parts": [part],
        "info": {"role": "assistant"},
        "toolCalls": [part],
    }
    lines = [first, line, *({**line, "type": kind} for kind in ("gemini", "assistant", "response_item", "system"))]
    content = b"\n".join(json.dumps(value).encode() for value in lines)
    assert all(1 <= item.line <= len(lines) for item in check(read_events(source_of(content))))


names = st.sampled_from(
    "type run run_id events event_id tool args result error id parentId message role content toolCall session ts"
    " toolResult toolCallId name arguments assistant compaction timestamp details isError tool_call.started"
    " payload response_item function_call call_id output session_meta sessionId uuid tool_use tool_use_id tool_result"
    " user system subtype compact_boundary info messages parts state status completed callID toolCalls gemini".split()
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | names | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.lists(json_values, max_size=6), st.sampled_from([STARTED, TRAJECTORY, SESSION, *AGENTS]))
def test_no_json_makes_reading_fail(values: list[Any], first: dict[str, Any]) -> None:
    lines = b"\n".join(json.dumps(value).encode() for value in [first, *values])
    for item in check(read_events(source_of(lines))):
        assert 1 <= item.line <= len(values) + 1


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_reading_fail(content: bytes) -> None:
    for item in check(read_events(source_of(content))):
        assert item.line >= 1
