from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwarden.importers import OPENCLAW, TRAJECTORIES, WIRE, BadLine, InputError, check, read_events

from .reading import events, items_of, read_file, source_of

SESSION = {"type": "session", "id": "s"}
CALL = {"type": "message", "message": {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "t"}]}}
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
    ("agent", "content"),
    [
        ("Claude Code", b'{"type":"summary","summary":"x","leafUuid":"u"}'),
        ("Claude Code", b'{"parentUuid":null,"sessionId":"s","type":"user","uuid":"u"}'),
        ("Codex", b'{"timestamp":"t","type":"session_meta","payload":{"id":"s"}}'),
        ("opencode", b'{"info":{"id":"s"},"messages":[]}'),
        ("opencode", b'{\n  "info": {"id": "s"},\n  "messages": [\n  ]\n}\n'),
        ("Gemini", b'{"sessionId":"s","projectHash":"h","messages":[]}'),
        ("Gemini", b'{\n  "sessionId": "s",\n  "messages": [\n  ]\n}\n'),
    ],
)
def test_another_agents_session_is_refused_by_name(agent: str, content: bytes) -> None:
    with pytest.raises(InputError, match=f"test: this is a session of {agent}, which a later version will read"):
        list(read_events(source_of(content)))


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("claude-code-auto.jsonl.gz", "Claude Code"),
        ("claude-code-manual.jsonl.gz", "Claude Code"),
        ("codex-polls.jsonl.gz", "Codex"),
        ("codex-compacted.jsonl.gz", "Codex"),
        ("opencode.json.gz", "opencode"),
    ],
)
def test_real_sessions_of_other_agents_are_refused_by_name(
    name: str, agent: str, shared: Callable[[str], Path]
) -> None:
    with pytest.raises(InputError, match=agent):
        read_file(shared(f"sessions/{name}"))


names = st.sampled_from(
    "type run run_id events event_id tool args result error id parentId message role content toolCall session ts"
    " toolResult toolCallId name arguments assistant compaction timestamp details isError tool_call.started".split()
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | names | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.lists(json_values, max_size=6), st.sampled_from([STARTED, TRAJECTORY, SESSION]))
def test_no_json_makes_reading_fail(values: list[Any], first: dict[str, Any]) -> None:
    lines = b"\n".join(json.dumps(value).encode() for value in [first, *values])
    for item in check(read_events(source_of(lines))):
        assert 1 <= item.line <= len(values) + 1


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_reading_fail(content: bytes) -> None:
    for item in check(read_events(source_of(content))):
        assert item.line >= 1
