from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import msgpack
import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from loopwarden_schemas import verdicts
from loopwarden_schemas.codec import (
    JSON,
    MESSAGEPACK,
    content_type_of,
    decode_record,
    decode_verdict,
    element_of,
    encode_event,
    encode_verdict,
    event_from_value,
    verdict_json,
)
from loopwarden_schemas.events import EVENT, EVENT_TYPES
from loopwarden_schemas.structs import Event, Rejected, ToolCallFinished, ToolCallStarted, Verdict

STARTED: dict[str, Any] = {"type": "tool_call.started", "event_id": "e", "run_id": "r", "ts": 1, "tool": "read"}
FORMS = [pytest.param(msgpack.packb, id="messagepack"), pytest.param(orjson.dumps, id="json")]
PAYLOADS = ("args", "result", "error", "policy")

NAMES = st.one_of(
    st.sampled_from(("", "a", "x" * 64, "x" * 65, "x" * 256, "x" * 257, "é" * 32, "é" * 33, "é" * 128, "é" * 129)),
    st.sampled_from(("😀" * 64, "😀" * 65, "a\n", "a" * 64 + "\n", "a" * 63 + "\n", "İ" * 86, "\x00", "run/a:b")),
    st.text(max_size=4),
)
NUMBERS = st.one_of(
    st.sampled_from((0, 1, -1, 2**53, 2**53 + 1, 2**64 - 1, -(2**63), 1e15, 1.0000001e15, -0.0, 0.5, 1.0, 5e-324)),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, NAMES)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "schema": st.sampled_from((1, 1.0, True, 0, "1", None)),
    "event_id": NAMES,
    "run_id": NAMES,
    "ts": NUMBERS,
    **dict.fromkeys(("session_id", "agent_id", "source", "parent_run_id", "cause", "call_id"), NAMES),
    **dict.fromkeys(("args_hash", "result_hash", "digest", "unknown_tool", "verdict_id", "tool"), NAMES),
    **dict.fromkeys(("seq", "duration_ms", "until", "number"), NUMBERS),
    **dict.fromkeys(("by", "why", "reason"), NAMES),
    "usage": st.dictionaries(st.sampled_from(("input_tokens", "output_tokens", "cost_usd", "new")), NUMBERS),
    "known_poll": st.booleans(),
    "succeeded": st.booleans(),
    "trigger": st.sampled_from(("overflow", "manual", "new")),
    "action": st.sampled_from(("allow", "release", "abort", "shrug")),
    **dict.fromkeys(PAYLOADS, ANYTHING),
    "append_time": SCALARS,
    "unknown_field": ANYTHING,
}


@st.composite
def wire_events(draw: st.DrawFn) -> dict[str, Any]:
    """An event that is nearly right: some fields at their limits, some missing, perhaps one of a wrong type."""
    event: dict[str, Any] = {
        "type": draw(st.sampled_from(sorted(EVENT_TYPES))),
        "event_id": "e",
        "run_id": "r",
        "ts": 1,
        "tool": "read",
        "action": "allow",
        "number": 7,
        "digest": "d",
    }
    for name in draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=5, unique=True)):
        event[name] = draw(FIELDS[name])
    broken = draw(st.sampled_from(("nothing", "nothing", "missing", "wrong", "type")))
    if broken == "missing":
        event.pop(draw(st.sampled_from(sorted(event))))
    if broken == "wrong":
        event[draw(st.sampled_from(sorted(FIELDS)))] = draw(ANYTHING)
    if broken == "type":
        event["type"] = draw(st.one_of(ANYTHING, st.just("tool_call.renamed")))
    return event


def by_the_models(value: Any) -> BaseModel | None:
    """The event as the pydantic models read it; None where they refuse it."""
    try:
        return EVENT.validate_python(value)
    except ValidationError:
        return None


def assert_same_fields(event: Event, model: BaseModel) -> None:
    for name in type(model).model_fields:
        field = {"schema_": "schema"}.get(name, name)
        if name == "type":
            continue
        read, expected = getattr(event, field), getattr(model, name)
        if field in PAYLOADS:
            assert (read is not msgspec.UNSET) is (name in model.model_fields_set)
            if read is not msgspec.UNSET:
                assert_same_value(read, expected)
        elif field == "usage" and expected is not None:
            assert msgspec.structs.asdict(read) == expected.model_dump()
        else:
            assert read == expected


def assert_same_value(read: Any, expected: Any) -> None:
    # 1 and True are equal to Python.
    assert orjson.dumps(read) == orjson.dumps(expected)


@pytest.mark.parametrize("encode", FORMS)
@given(value=wire_events())
def test_an_event_is_read_exactly_as_the_models_read_it(encode: Any, value: dict[str, Any]) -> None:
    (event,) = decode_record(encode(value), append_time=5)
    model = by_the_models(value)
    if model is None:
        assert isinstance(event, Rejected)
        assert event.index == 0
        assert event.reason in ("invalid_event", "unknown_type", "unsupported_schema")
    else:
        assert not isinstance(event, Rejected), event
        assert_same_fields(event, model)
        assert event.append_time == 5


@pytest.mark.parametrize("encode", FORMS)
@given(values=st.lists(st.one_of(wire_events(), wire_events(), ANYTHING), min_size=1, max_size=5))
def test_each_element_of_a_list_stands_alone(encode: Any, values: list[Any]) -> None:
    together = decode_record(encode(values), append_time=5)
    assert len(together) == len(values)
    for index, (value, event) in enumerate(zip(values, together, strict=True)):
        if isinstance(value, list):
            assert isinstance(event, Rejected), "a list in a list is no event"
            continue
        # With the header, for the first byte of a number or a text decides nothing.
        content_type = MESSAGEPACK if encode is msgpack.packb else JSON
        (alone,) = decode_record(encode(value), 5, content_type)
        if isinstance(alone, Rejected):
            alone = Rejected(index, alone.reason, alone.detail)
        assert event == alone


@pytest.mark.parametrize("encode", FORMS)
@given(value=wire_events(), unknown=st.dictionaries(st.text(min_size=1, max_size=3), ANYTHING, max_size=3))
def test_unknown_fields_never_matter(encode: Any, value: dict[str, Any], unknown: dict[str, Any]) -> None:
    (with_them,) = decode_record(encode({**{f"x-{name}": item for name, item in unknown.items()}, **value}), 5)
    (without,) = decode_record(encode(value), 5)
    assert with_them == without


def test_an_unreadable_unknown_field_does_not_matter_beside_a_bad_event_either() -> None:
    broken = msgpack.packb({**STARTED, "x": "XXXX"}).replace(b"XXXX", b"\xff\xfe\xfd\xfc")
    (alone,) = decode_record(broken)
    _, beside = decode_record(b"\x92\xc0" + broken)
    assert isinstance(alone, ToolCallStarted)
    assert beside == alone


@given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda data: b"\x92" + data)))
def test_no_bytes_whatever_make_the_reader_fail(data: bytes) -> None:
    for content_type in (None, JSON, MESSAGEPACK):
        assert decode_record(data, 5, content_type)


@pytest.mark.parametrize("encode", FORMS)
@given(value=wire_events(), data=st.data())
def test_no_damage_to_a_record_makes_the_reader_fail(encode: Any, value: dict[str, Any], data: st.DataObject) -> None:
    record = bytearray(encode([value, STARTED]))
    for _ in range(data.draw(st.integers(1, 3))):
        record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    assert decode_record(bytes(record), 5)


@pytest.mark.parametrize("depth", [65, 400, 900, 990, 1000, 1010, 1020, 1030, 5_000, 250_000])
@pytest.mark.parametrize("field", ["tool", "args", "usage", "event_id", "type", "schema", "append_time", "x"])
@pytest.mark.parametrize("shape", ["lists", "objects"])
@pytest.mark.parametrize("form", ["messagepack", "json"])
def test_no_depth_makes_the_reader_fail(form: str, shape: str, field: str, depth: int) -> None:
    others = {name: value for name, value in STARTED.items() if name != field}
    if form == "json":
        deep = b"[" * depth + b"]" * depth if shape == "lists" else b'{"k":' * depth + b"1" + b"}" * depth
        if len(deep) > 1_000_000:
            deep = deep[:900_000]
        record = orjson.dumps(others)[:-1] + b',"' + field.encode() + b'":' + deep + b"}"
    else:
        deep = b"\x91" * depth + b"\xc0" if shape == "lists" else b"\x81\xa1k" * depth + b"\xc0"
        record = msgpack.Packer().pack_map_header(len(others) + 1) + b"".join(
            msgpack.packb(part) for item in others.items() for part in item
        )
        record += msgpack.packb(field) + deep
    for value in (record, b"[" + record + b"]" if form == "json" else b"\x91" + record):
        assert len(decode_record(value, 5)) == 1


@pytest.mark.parametrize(
    ("field", "fits", "too_long"),
    [
        *((name, "x" * 256, "x" * 257) for name in ("event_id", "run_id", "session_id", "agent_id", "call_id", "tool")),
        *((name, "é" * 128, "é" * 128 + "x") for name in ("event_id", "run_id", "session_id", "call_id", "tool")),
        ("run_id", "😀" * 64, "😀" * 65),
        ("args_hash", "x" * 64, "x" * 65),
        ("args_hash", "é" * 32, "é" * 33),
        ("args_hash", "x" * 63 + "\n", "x" * 64 + "\n"),
        ("args_hash", "x", ""),
        ("event_id", "x", ""),
        ("run_id", "x", ""),
    ],
    ids=lambda text: f"{text[:2]}*{len(text)}" if len(text) < 300 else None,
)
@pytest.mark.parametrize("encode", FORMS)
def test_ids_and_hashes_have_their_limits_in_bytes(encode: Any, field: str, fits: str, too_long: str) -> None:
    (event,) = decode_record(encode({**STARTED, field: fits}))
    assert getattr(event, field) == fits
    (event,) = decode_record(encode({**STARTED, field: too_long}))
    assert isinstance(event, Rejected)
    assert event.reason == "invalid_event"
    assert event.detail.startswith(f"{field}: ")


@pytest.mark.parametrize("encode", FORMS)
def test_a_record_holds_1_to_100_events(encode: Any) -> None:
    assert len(decode_record(encode([STARTED] * 100))) == 100
    (rejected,) = decode_record(encode([STARTED] * 101))
    assert rejected == Rejected(0, "too_many_events", "a record must hold 1 to 100 events, got 101")
    (rejected,) = decode_record(encode([{}] * 101))
    assert rejected == Rejected(0, "too_many_events", "a record must hold 1 to 100 events, got 101")
    (rejected,) = decode_record(encode([]))
    assert rejected == Rejected(0, "invalid_event", "a record must hold 1 to 100 events, got 0")


@pytest.mark.parametrize("encode", FORMS)
def test_a_record_is_at_most_1_mib(encode: Any) -> None:
    room = 1024 * 1024 - len(encode({**STARTED, "args": "x" * 70_000})) + 70_000
    (event,) = decode_record(encode({**STARTED, "args": "x" * room}))
    assert isinstance(event, ToolCallStarted)
    (rejected,) = decode_record(encode({**STARTED, "args": "x" * (room + 1)}))
    assert rejected == Rejected(0, "too_large", "a record must be at most 1048576 bytes, got 1048577")


@pytest.mark.parametrize("encode", FORMS)
@pytest.mark.parametrize(
    ("change", "reason", "detail"),
    [
        (
            {"type": "tool_call.renamed"},
            "unknown_type",
            "type: must be one of compaction, operator.override, policy.appl",
        ),
        ({"type": None}, "invalid_event", "type: must be a string, got none"),
        ({"type": 5}, "invalid_event", "type: must be a string"),
        ({"schema": 2}, "unsupported_schema", "schema: this reader knows version 1, got 2"),
        ({"schema": 2, "type": "new"}, "unsupported_schema", "schema: this reader knows version 1, got 2"),
        ({"schema": 0}, "invalid_event", "schema: "),
        ({"run_id": None}, "invalid_event", "run_id: Input should be a valid string, got None"),
        ({"run_id": 5}, "invalid_event", "run_id: Input should be a valid string, got 5"),
        ({"ts": "now"}, "invalid_event", "ts: Input should be a valid integer, got 'now'"),
        ({"ts": 1.5}, "invalid_event", "ts: "),
        ({"ts": -1}, "invalid_event", "ts: "),
        ({"tool": [["secret"]]}, "invalid_event", "tool: Input should be a valid string, got list"),
        ({"usage": {"input_tokens": -1}}, "invalid_event", "usage.input_tokens: "),
    ],
    ids=str,
)
def test_a_rejected_event_says_what_is_wrong_and_where(
    encode: Any, change: dict[str, Any], reason: str, detail: str
) -> None:
    (rejected,) = decode_record(encode({**STARTED, **change}))
    assert isinstance(rejected, Rejected)
    assert rejected.reason == reason
    assert rejected.detail.startswith(detail)


def test_a_missing_field_is_named() -> None:
    without_run = {name: value for name, value in STARTED.items() if name != "run_id"}
    assert decode_record(orjson.dumps(without_run)) == [Rejected(0, "invalid_event", "run_id: Field required")]


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\xc1",
        b"{",
        b"[1,",
        b'{"a": NaN}',
        orjson.dumps(STARTED) + b" x",
        orjson.dumps(STARTED).replace(b"read", b"\xff\xfe"),
        orjson.dumps(STARTED).replace(b'"read"', b'"\\ud800"'),
        orjson.dumps({**STARTED, "args": 1})[:-1].replace(b'"args":1', b'"args":NaN') + b"}",
        msgpack.packb(STARTED) + b"\xc0",
        msgpack.packb(STARTED)[:-1],
        msgpack.packb({**STARTED, "tool": "XXXX"}).replace(b"XXXX", b"\xff\xfe\xfd\xfc"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_bytes_that_are_neither_json_nor_messagepack_are_undecodable(value: bytes | None) -> None:
    (rejected,) = decode_record(value)
    assert isinstance(rejected, Rejected)
    assert (rejected.index, rejected.reason) == (0, "undecodable")
    assert rejected.detail


@pytest.mark.parametrize("value", [5, None, "text", True, 1.5, [[STARTED]]], ids=repr)
@pytest.mark.parametrize("form", [MESSAGEPACK, JSON])
def test_what_is_no_object_is_no_event(form: str, value: Any) -> None:
    encode = msgpack.packb if form == MESSAGEPACK else orjson.dumps
    (rejected,) = decode_record(encode(value), content_type=form)
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "invalid_event"
    assert rejected.detail.startswith("an event must be an object, got ")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused_where_a_number_is_read(bad: float) -> None:
    (rejected,) = decode_record(msgpack.packb({**STARTED, "duration_ms": bad}))
    assert isinstance(rejected, Rejected)
    assert rejected.detail.startswith("duration_ms: ")


@pytest.mark.parametrize(
    ("content_type", "encode", "is_read"),
    [
        (None, msgpack.packb, True),
        (None, orjson.dumps, True),
        ("application/json", orjson.dumps, True),
        ("Application/JSON; charset=utf-8", orjson.dumps, True),
        ("application/msgpack", msgpack.packb, True),
        # An unknown type says nothing: the first byte decides.
        ("application/octet-stream", orjson.dumps, True),
        ("application/octet-stream", msgpack.packb, True),
        # A header that is wrong is believed.
        ("application/json", msgpack.packb, False),
        ("application/msgpack", orjson.dumps, False),
    ],
)
def test_the_content_type_decides_and_without_one_the_first_byte(content_type: str, encode: Any, is_read: bool) -> None:
    for value in (STARTED, [STARTED, STARTED]):
        events = decode_record(encode(value), content_type=content_type)
        assert all(isinstance(event, ToolCallStarted) for event in events) is is_read


@pytest.mark.parametrize("space", [b" ", b"\n", b"\r\n", b"\t"])
def test_json_may_begin_with_white_space(space: bytes) -> None:
    assert isinstance(decode_record(space + orjson.dumps(STARTED))[0], ToolCallStarted)


def test_without_an_append_time_an_events_own_ts_stands_in() -> None:
    slow = {**STARTED, "session_id": "é" * 100, "ts": 7}
    for value in ({**STARTED, "ts": 7}, slow):
        assert decode_record(orjson.dumps(value))[0].append_time == 7  # type: ignore[union-attr]
        assert decode_record(orjson.dumps(value), 9)[0].append_time == 9  # type: ignore[union-attr]
        assert decode_record(orjson.dumps({**value, "append_time": 1}), 9)[0].append_time == 9  # type: ignore[union-attr]


@pytest.mark.parametrize("encode", FORMS)
def test_null_is_a_payload_and_absence_is_none(encode: Any) -> None:
    finished = {**STARTED, "type": "tool_call.finished"}
    (absent,) = decode_record(encode(finished))
    (null,) = decode_record(encode({**finished, "result": None, "error": None, "args": None}))
    assert isinstance(absent, ToolCallFinished)
    assert isinstance(null, ToolCallFinished)
    assert not any(payload is not msgspec.UNSET for payload in (absent.result, absent.error, absent.args))
    assert (null.result, null.error, null.args) == (None, None, None)


@given(wire_events())
def test_an_event_given_as_a_value_is_read_like_its_record(value: dict[str, Any]) -> None:
    assert event_from_value(value, 5) == decode_record(msgpack.packb(value), 5)[0]


def test_an_encoded_event_is_read_again() -> None:
    assert decode_record(encode_event(STARTED)) == [event_from_value(STARTED)]
    assert decode_record(encode_event([STARTED, STARTED])) == [event_from_value(STARTED)] * 2


VERDICT = Verdict(
    schema=1,
    verdict_id="0" * 32,
    begun=1,
    n=1,
    action="block",
    phase="order",
    detector="generic_repeat",
    run_id="r",
    session_id=None,
    agent_id="a",
    call_id=None,
    tool="read",
    args_hash="0" * 32,
    scope="call",
    count=20,
    threshold=20,
    reason="generic_repeat",
    message="words",
    event_id="e",
    evidence=["e1", "e2"],
    policy_digest="0" * 32,
    rules_version=1,
    ts=1,
)


def test_a_verdict_is_read_again_from_both_forms() -> None:
    assert decode_verdict(encode_verdict(VERDICT)) == VERDICT
    assert decode_verdict(verdict_json(VERDICT)) == VERDICT
    assert decode_verdict(verdict_json(VERDICT), JSON) == VERDICT
    with pytest.raises(ValueError, match="not a verdict"):
        decode_verdict(verdict_json(VERDICT), MESSAGEPACK)


def test_a_verdict_is_what_its_model_says_field_for_field() -> None:
    wire: Mapping[str, Any] = json.loads(verdict_json(VERDICT))
    model = verdicts.Verdict.model_validate(wire)
    assert model.model_dump(by_alias=True) == wire
    assert list(wire) == [field.alias or name for name, field in verdicts.Verdict.model_fields.items()]


@pytest.mark.parametrize("value", [b"", b"{}", b"\xc0", b"x", b"[" * 100_000, b"\x91" * 100_000])
def test_what_is_no_verdict_is_refused_with_a_reason(value: bytes) -> None:
    with pytest.raises(ValueError, match="not a verdict"):
        decode_verdict(value)


IDS = ("event_id", "run_id", "session_id", "agent_id", "source", "call_id", "verdict_id")


@pytest.mark.parametrize("encode", FORMS)
@pytest.mark.parametrize("name", [*IDS, "parent_run_id"])
@pytest.mark.parametrize(
    ("absurd", "why"),
    [
        ("", "String should have at least 1 character"),
        ("x" * 257, "at most 256 characters"),
        ("x" * 500_000, "at most 256 characters"),
        ("\u00e9" * 129, "must be at most 256 bytes, got 258"),
        ("a\nb", "must not hold control characters, has U+000A"),
        ("a\x1b[2J", "must not hold control characters, has U+001B"),
        ("\x00", "must not hold control characters, has U+0000"),
        ("\x7f", "must not hold control characters, has U+007F"),
        ("\u0085", "must not hold control characters, has U+0085"),
        (7, "valid string"),
    ],
)
def test_an_absurd_id_is_refused_with_its_name_and_the_rule(encode: Any, name: str, absurd: Any, why: str) -> None:
    event = {**STARTED, **({"type": "run.started"} if name == "parent_run_id" else {})}
    [rejected] = decode_record(encode({**event, name: absurd}))
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "invalid_event"
    assert rejected.detail.startswith(f"{name}: ")
    assert why in rejected.detail
    assert len(rejected.detail) < 300
    assert rejected.detail.isprintable()


@pytest.mark.parametrize("encode", FORMS)
@pytest.mark.parametrize(
    "text", ["run 7/a:b", "\u00a0", "\u200d", "\u2028", "\u00e9" * 128, "x" * 256, "\U0001f600", "None"]
)
def test_an_id_of_any_other_characters_is_taken(encode: Any, text: str) -> None:
    [event] = decode_record(encode({**STARTED, **dict.fromkeys(IDS, text)}))
    assert isinstance(event, ToolCallStarted)
    assert {getattr(event, name) for name in IDS} == {text}


@pytest.mark.parametrize("fields", [{"tool": "re\nad"}, {"args": {"path": "a\x00"}}, {"tool": ""}])
def test_what_a_model_or_a_tool_said_may_hold_anything(fields: dict[str, Any]) -> None:
    [event] = decode_record(msgpack.packb({**STARTED, **fields}))
    assert isinstance(event, ToolCallStarted)


def test_the_bytes_of_one_event_of_a_record_are_read_as_it_was_within_it() -> None:
    events = [{**STARTED, "event_id": f"e{number}"} for number in range(3)]
    for encode in (msgpack.packb, orjson.dumps):
        record = encode(events)
        assert [decode_record(element_of(record, index)) for index in range(3)] == [
            [event] for event in decode_record(record)
        ]
        assert element_of(record, 3) is None
        assert element_of(encode(STARTED), 0) == encode(STARTED)
    assert element_of(b"\xc1 nonsense", 0) == b"\xc1 nonsense"
    assert element_of(b"\xc1 nonsense", 1) is None
    assert element_of(b"", 0) is None


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ([], None),
        ([("content-type", None)], None),
        ([("content-type", b"")], None),
        ([("other", b"x"), ("content-type", b"application/json")], "application/json"),
        ([("content-type", b"\xff")], "\xff"),
    ],
)
def test_what_a_record_is_by_its_headers(headers: list[tuple[str, bytes | None]], told: str | None) -> None:
    assert content_type_of(headers) == told
