"""Whatever an agent hands over, the judge can read what is sent, and reads the same from the hashes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwarden.gateway.payloads import as_read, safe_name, safe_tool
from loopwarden.gateway.writer import MAX_PAYLOAD_BYTES, Writer
from loopwarden.judge.outcome import Hashed, hash_call
from loopwarden_schemas.codec import decode_record
from loopwarden_schemas.digests import digest
from loopwarden_schemas.events import CONTROL_CHARACTER, MAX_NAME_BYTES, MAX_RECORD_BYTES
from loopwarden_schemas.structs import Rejected


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Proxy:
    """As frameworks make them for what is there only within a request."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("outside of a request")

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


class RudeText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


class RudeError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


class Series(Enum):
    PAIR = (1, object())


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


_itself: list[Any] = []
_itself.extend([_itself] * 5)
_everything: list[list[Any]] = [[] for _ in range(12)]
for _each in _everything:
    _each.extend(_everything)

ODD = [
    math.nan,
    -math.inf,
    2**70,
    10**400,
    "half a pair \ud800",
    {1: "number", "1": "text"},
    {None: 1, (1, 2): 2},
    {"a", "b", 3},
    (1, 2),
    Colour.RED,
    Point(1),
    object(),
    Rude(),
    Proxy(),
    {"user": [Proxy()]},
    RudeText("x"),
    RudeError(),
    Series.PAIR,
    b"bytes",
    _nested(100),
    *(_nested(depth) for depth in (62, 63, 64, 65)),
    {"details": _nested(64)},
    _itself,
    _everything,
]


def _read(writer: Writer, kind: str, **fields: Any) -> Any:
    (event,) = decode_record(writer.write({"type": kind, "run_id": "run", "call_id": "c", **fields}).record)
    assert not isinstance(event, Rejected), event
    return event


@pytest.mark.parametrize("number", range(len(ODD)), ids=lambda number: type(ODD[number]).__name__)
def test_whatever_is_handed_over_can_be_asked_about(number: int) -> None:
    value = ODD[number]  # pytest itself could not look at all of them
    writer = Writer("full", MAX_PAYLOAD_BYTES, None)
    name = "read" if value is _everything else value  # whose own text would take Python years
    tool, args_hash = writer.signature(name, value)
    event = _read(writer, "tool_call.started", tool=name, args=value, agent_id=name)
    assert (event.tool, hash_call(event).args_hash) == (tool, args_hash)


def test_a_series_that_is_an_enums_value_is_sent_as_one() -> None:
    assert as_read(Series.PAIR).value == [1, "<object object>"]


@pytest.mark.parametrize("number", range(len(ODD)), ids=lambda number: type(ODD[number]).__name__)
def test_odd_payloads_are_made_readable(number: int) -> None:
    value = ODD[number]
    for part in ("args", "result", "error"):
        for tool in ("t", "sessions_send"):
            event = _read(Writer("full", MAX_PAYLOAD_BYTES, None), "tool_call.finished", tool=tool, **{part: value})
            hash_call(event)  # raises where the judge could not


def test_equal_payloads_stay_equal_and_different_ones_different() -> None:
    assert as_read({"a": object()}).digest == as_read({"a": object()}).digest
    assert as_read({"x", "y", "z"}).digest == as_read({"z", "y", "x"}).digest
    assert as_read({1: "a"}).digest != as_read({1: "b"}).digest
    assert as_read(_nested(100)).digest != as_read([_nested(100)]).digest


def test_plain_payloads_are_not_touched() -> None:
    value = {"path": "/x", "n": 1.5, "list": [None, True, {"deep": "ü 💥"}]}
    assert as_read(value).value == value and not as_read(value).changed
    assert as_read(value).digest == digest(value)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
RESULTS = VALUES | st.fixed_dictionaries(
    {
        "content": st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text()}), max_size=2),
        "details": st.dictionaries(
            st.sampled_from(["status", "deniedReason", "exitCode", "aggregated", "tail", "messageId"]),
            st.sampled_from(["running", "completed", "blocked", "tool-loop", "x", 1, None]),
        ),
    }
)
TOOLS = st.sampled_from(["read", "exec", "bash", "process", "message", "slack", "sessions_send", "command_status"])
ARGS = VALUES | st.sampled_from([{"action": "poll"}, {"action": "log"}, {"action": "send"}, {"to": "me"}])
OUTCOMES = st.one_of(
    st.fixed_dictionaries({"result": RESULTS}),
    st.fixed_dictionaries({"error": VALUES | st.just('unknown tool "x"') | st.just({"message": "tool y not found"})}),
    st.just({}),
)


def _told(hashed: Hashed) -> dict[str, Any]:
    return {name: getattr(hashed, name) for name in Hashed.__slots__}


@given(tool=TOOLS, args=ARGS, outcome=OUTCOMES, limit=st.sampled_from([0, 20, MAX_PAYLOAD_BYTES]))
def test_the_judge_sees_the_same_in_hashes_and_in_payloads(tool: str, args: Any, outcome: Any, limit: int) -> None:
    full, hashed, limited = (
        hash_call(_read(writer, "tool_call.finished", event_id="e", tool=tool, args=args, **outcome))
        for writer in (Writer("full", MAX_PAYLOAD_BYTES, None), Writer("hash", 0, None), Writer("full", limit, None))
    )
    assert _told(full) == _told(hashed) == _told(limited)
    assert full.args_hash == Writer("full", limit, None).signature(tool, args)[1]


def test_hashes_say_nothing_of_the_payloads() -> None:
    writer = Writer("hash", MAX_PAYLOAD_BYTES, None)
    fields = {"tool": "read", "args": {"path": "SECRET"}, "result": {"content": "SECRET"}}
    written = writer.write({"type": "tool_call.finished", "run_id": "run", **fields})
    assert b"SECRET" not in written.record and writer.hashed == 0


def test_a_payload_over_the_limit_is_hashed_and_counted() -> None:
    writer = Writer("full", 100, None)
    event = _read(writer, "tool_call.finished", tool="write", args={"text": "x" * 200}, result="short")
    assert event.args_hash == digest({"text": "x" * 200}) and event.result == "short"
    assert writer.hashed == 1


def test_an_event_at_every_limit_still_fits_into_a_record() -> None:
    writer = Writer("full", MAX_PAYLOAD_BYTES, None)
    long = "x" * (MAX_PAYLOAD_BYTES - 10)
    fields = {"tool": "t" * 1000, "args": long, "result": long, "agent_id": "a" * 1000, "usage": {"input_tokens": -1}}
    event = writer.write({"type": "tool_call.finished", "run_id": "r" * 1000, "call_id": "c" * 1000, **fields})
    assert len(event.record) <= MAX_RECORD_BYTES
    (read,) = decode_record(event.record)
    assert not isinstance(read, Rejected) and read.usage is None
    policy = writer.write({"type": "run.started", "run_id": "r", "policy": "x" * 2**21, "cause": "y" * 2**21})
    assert not isinstance(decode_record(policy.record)[0], Rejected)
    assert writer.failed == 2


@given(st.text(st.characters(), max_size=400))
def test_names_are_within_the_limits_and_the_same_each_time(name: str) -> None:
    assert safe_tool(name) == safe_tool(name)
    assert len(safe_tool(name).lower().encode()) <= MAX_NAME_BYTES
    assert len((safe_name(name) or "").encode()) <= MAX_NAME_BYTES
    assert safe_name(name + "\n") != safe_name(name), "other ids stay other ids"
    assert not CONTROL_CHARACTER.search(safe_name(name + "\n\x1b") or "")


def test_redaction_comes_before_hashing() -> None:
    def redact(tool: str, part: str, value: Any) -> Any:
        return {**value, "key": "***"} if part == "args" else value

    one, other = ({"key": secret, "path": "/x"} for secret in ("secret 1", "secret 2"))
    full, hashing = Writer("full", MAX_PAYLOAD_BYTES, redact), Writer("hash", 0, redact)
    event = _read(full, "tool_call.started", tool="t", args=one)
    assert event.args == {"key": "***", "path": "/x"} and one["key"] == "secret 1"
    assert full.signature("t", one) == full.signature("t", other) == hashing.signature("t", other)
    assert hash_call(event).args_hash == full.signature("t", one)[1]


def test_where_redaction_fails_nothing_is_seen(caplog: pytest.LogCaptureFixture) -> None:
    def redact(tool: str, part: str, value: Any) -> Any:
        value.clear()
        raise ValueError("cannot")

    writer = Writer("full", MAX_PAYLOAD_BYTES, redact)
    written = writer.write({"type": "tool_call.started", "run_id": "r", "tool": "t", "args": {"key": "SECRET"}})
    assert b"SECRET" not in written.record and writer.hashed == 1
    (event,) = decode_record(written.record)
    assert not isinstance(event, Rejected)
    assert writer.signature("t", {"key": "SECRET"})[1] == digest({"key": "SECRET"}) == hash_call(event).args_hash  # type: ignore[arg-type]
