"""The wire: records of `agent-events` to events, events and verdicts to bytes. (design.md, "Topics".)

Readers take MessagePack and JSON everywhere. One event that cannot be read never hides the others of its record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgpack
import msgspec
import orjson
from pydantic import ValidationError

from loopwarden_schemas import structs
from loopwarden_schemas.events import EVENT, EVENT_TYPES, MAX_EVENTS_PER_RECORD, MAX_NAME_BYTES, MAX_RECORD_BYTES
from loopwarden_schemas.structs import Event, PolicyApplied, Rejected, Verdict

MESSAGEPACK: Final = "application/msgpack"
JSON: Final = "application/json"

MESSAGEPACK_HEADER: Final = ("content-type", MESSAGEPACK.encode())
"""What our own records say of themselves."""

_SURELY_SHORT: Final = MAX_NAME_BYTES // 4
"""So many characters are within the limit, whatever they are."""


_STRUCTS: Final[dict[str, type[Any]]] = {
    "run.started": structs.RunStarted,
    "tool_call.started": structs.ToolCallStarted,
    "tool_call.finished": structs.ToolCallFinished,
    "tool_call.blocked": structs.ToolCallBlocked,
    "compaction": structs.Compaction,
    "run.finished": structs.RunFinished,
    "operator.override": structs.OperatorOverride,
    "policy.applied": structs.PolicyApplied,
}
_msgpack_events = msgspec.msgpack.Decoder(Event | list[Event])
_json_events = msgspec.json.Decoder(Event | list[Event])
_msgpack_event = msgspec.msgpack.Decoder(Event)
_json_event = msgspec.json.Decoder(Event)
_msgpack_elements = msgspec.msgpack.Decoder(list[msgspec.Raw])
_json_elements = msgspec.json.Decoder(list[msgspec.Raw])
_msgpack_encoder = msgspec.msgpack.Encoder()
_json_encoder = msgspec.json.Encoder()
_msgpack_verdict = msgspec.msgpack.Decoder(Verdict)
_json_verdict = msgspec.json.Decoder(Verdict)


def decode_record(
    value: bytes | None, append_time: int | None = None, content_type: str | None = None
) -> list[Event | Rejected]:
    """Return the events of one record in their order, each one that cannot be read as `Rejected` in its place.

    Args:
        value: The record's bytes: one event or a list of at most 100, as MessagePack or JSON.
        append_time: When the broker appended the record (ms); None (files): what the event itself says, as an exported
            one does in `append_time`, else its `ts`.
        content_type: The record's `content-type` header; without one the first byte decides.
    """
    if not value:
        return [Rejected(0, "undecodable", "the record has no value")]
    if len(value) > MAX_RECORD_BYTES:
        return [Rejected(0, "too_large", f"a record must be at most {MAX_RECORD_BYTES} bytes, got {len(value)}")]
    is_json = _is_json(value, content_type)
    try:
        decoded = (_json_events if is_json else _msgpack_events).decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError, TypeError):
        return _decode_one_by_one(value, append_time, is_json)
    if type(decoded) is list:
        if not 0 < len(decoded) <= MAX_EVENTS_PER_RECORD:
            return [_wrong_length(len(decoded))]
    else:
        decoded = [decoded]
    for event in decoded:
        if not _ids_surely_fit(event):
            return _decode_one_by_one(value, append_time, is_json)
        event.append_time = append_time if append_time is not None else event.append_time or event.ts
    return decoded


def content_type_of(headers: Iterable[tuple[str, bytes | None]]) -> str | None:
    """Return what a record's headers say that it is; None where they do not."""
    for name, text in headers:
        if name == "content-type" and text:
            return text.decode("latin-1")
    return None


def element_of(value: bytes, index: int, content_type: str | None = None) -> bytes | None:
    """Return the bytes of one event of a record: as a record of its own, it is read as within its list.

    Args:
        value: The record's bytes.
        index: Which one; 0 where the record is one event.
        content_type: The record's `content-type` header.

    Returns:
        None: the record holds no such event, or cannot be read.
    """
    if not value:
        return None
    decoder = _json_elements if _is_json(value, content_type) else _msgpack_elements
    try:
        elements = decoder.decode(value)
    except (msgspec.MsgspecError, RecursionError):
        # No list. What is one event, or nothing at all, is told by reading it.
        return value if index == 0 else None
    return bytes(elements[index]) if index < len(elements) else None


def _is_json(value: bytes, content_type: str | None) -> bool:
    if content_type is not None:
        kind = content_type.partition(";")[0].strip().lower()
        if kind == JSON:
            return True
        if kind == MESSAGEPACK:
            return False
    return value[0] in b"{[ \t\r\n"


def _wrong_length(length: int) -> Rejected:
    detail = f"a record must hold 1 to {MAX_EVENTS_PER_RECORD} events, got {length}"
    return Rejected(0, "too_many_events" if length else "invalid_event", detail)


def _decode_one_by_one(value: bytes, append_time: int | None, is_json: bool) -> list[Event | Rejected]:
    try:
        elements = (_json_elements if is_json else _msgpack_elements).decode(value)
    except (msgspec.MsgspecError, RecursionError):
        return [_decode_one(value, append_time, 0, is_json)]
    if not 0 < len(elements) <= MAX_EVENTS_PER_RECORD:
        return [_wrong_length(len(elements))]
    return [_decode_one(bytes(element), append_time, index, is_json) for index, element in enumerate(elements)]


def _decode_one(value: bytes, append_time: int | None, index: int, is_json: bool) -> Event | Rejected:
    # As alone in a record, an event is first tried as a struct, which reads nothing of unknown fields.
    try:
        event: Event = (_json_event if is_json else _msgpack_event).decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError, TypeError):
        pass
    else:
        if _ids_surely_fit(event):
            event.append_time = append_time if append_time is not None else event.append_time or event.ts
            return event
    try:
        decoded = orjson.loads(value) if is_json else msgpack.unpackb(value, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        detail = f"not {'JSON' if is_json else 'MessagePack'}: {str(error) or type(error).__name__}"
        return Rejected(index, "undecodable", detail)
    return event_from_value(decoded, append_time, index)


def _ids_surely_fit(event: Event) -> bool:
    """Whether none of an event's ids is too long or holds a control character; False: the pydantic models know."""
    # Spelled out: with a function for each id it would take as long as decoding.
    event_id, session_id, agent_id, source = event.event_id, event.session_id, event.agent_id, event.source
    if not (
        event_id.isprintable()
        and (len(event_id) <= _SURELY_SHORT or event_id.isascii())
        and (session_id is None or session_id.isprintable())
        and (agent_id is None or agent_id.isprintable())
        and (source is None or source.isprintable())
    ):
        return False
    if isinstance(event, PolicyApplied):
        return True
    if isinstance(event, structs.TOOL_CALL_EVENTS):
        call_id, verdict_id = event.call_id, event.verdict_id
        if not ((call_id is None or call_id.isprintable()) and (verdict_id is None or verdict_id.isprintable())):
            return False
    elif isinstance(event, structs.RunStarted) and not (
        event.parent_run_id is None or event.parent_run_id.isprintable()
    ):
        return False
    run_id = event.run_id
    return run_id.isprintable() and (len(run_id) <= _SURELY_SHORT or run_id.isascii())


def event_from_value(value: Any, append_time: int | None = None, index: int = 0) -> Event | Rejected:
    """Return the event that a decoded value is, by the pydantic models, or why it is none."""
    if not isinstance(value, dict):
        return Rejected(index, "invalid_event", f"an event must be an object, got {type(value).__name__}")
    kind = value.get("type")
    if not isinstance(kind, str):
        return Rejected(index, "invalid_event", "type: must be a string, " + ("got none" if kind is None else "is not"))
    schema = value.get("schema", 1)
    if type(schema) is int and schema > 1:
        return Rejected(index, "unsupported_schema", f"schema: this reader knows version 1, got {schema}")
    if kind not in EVENT_TYPES:
        known = ", ".join(sorted(EVENT_TYPES))
        return Rejected(index, "unknown_type", f"type: must be one of {known}, got {kind!r:.80}")
    try:
        model = EVENT.validate_python(value)
    except ValidationError as error:
        return Rejected(index, "invalid_event", _first_mistakes(error, kind))
    fields = {name: getattr(model, name) for name in model.model_fields_set if name not in ("type", "schema_")}
    if fields.get("usage") is not None:
        fields["usage"] = structs.Usage(**fields["usage"].model_dump())
    event: Event = _STRUCTS[kind](**fields)
    exported = value.get("append_time")
    if append_time is None:
        append_time = exported if type(exported) is int and exported else event.ts
    event.append_time = append_time
    return event


def _first_mistakes(error: ValidationError, kind: str) -> str:
    mistakes = []
    for mistake in error.errors(include_url=False, include_context=False)[:3]:
        where = ".".join(str(part) for part in mistake["loc"] if part != kind) or kind
        found = "" if mistake["type"] == "missing" else f", got {_shown(mistake['input'])}"
        rule = mistake["msg"].removeprefix("Value error, ")  # pydantic's, before the words of our own rules
        mistakes.append(f"{where}: {rule}{found}")
    return "; ".join(mistakes)


def _shown(value: Any) -> str:
    # Only what has nothing inside: the repr of deep arrays exceeds Python's recursion limit.
    return f"{value!r:.80}" if value is None or isinstance(value, (str, int, float)) else type(value).__name__


def encode_event(event: Mapping[str, Any] | list[Mapping[str, Any]]) -> bytes:
    """Return one wire event, or a list of events of the same run, as MessagePack."""
    return _msgpack_encoder.encode(event)


def encode_verdict(verdict: Verdict) -> bytes:
    """Return a verdict as MessagePack."""
    return _msgpack_encoder.encode(verdict)


def verdict_json(verdict: Verdict) -> bytes:
    """Return a verdict as one line of JSON, without the line's end."""
    return _json_encoder.encode(verdict)


def decode_verdict(value: bytes, content_type: str | None = None) -> Verdict:
    """Return the verdict in a record of `loop-verdicts`.

    Raises:
        ValueError: the bytes are no verdict.
    """
    try:
        decoder = _json_verdict if _is_json(value, content_type) else _msgpack_verdict
        return decoder.decode(value)
    except (msgspec.MsgspecError, IndexError) as error:
        raise ValueError(f"not a verdict: {error}") from None
