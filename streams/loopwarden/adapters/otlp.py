"""OTLP traces as the OTel Collector writes them, to Kafka or a file: protobuf (`otlp_proto`) and JSON (`otlp_json`)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from loopwarden.adapters.errors import MissingExtra

_ERROR: Final = (2, "STATUS_CODE_ERROR")
_NS_PER_MS: Final = 1_000_000


class NotOtlp(ValueError):
    """A value that is no OTLP traces; the message says why."""


@dataclass(frozen=True)
class Span:
    """A span, however it was encoded.

    Attributes:
        trace_id, span_id, parent_id: Lower-case hex; a root's parent is empty.
        start_ms, end_ms: Milliseconds since the epoch.
        attributes: Of the span, with those of its resource below them.
        events: Name and attributes of each.
        failed: Whether its status is an error.
        status_message: What the status says.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start_ms: float
    end_ms: float
    attributes: dict[str, Any]
    events: tuple[tuple[str, dict[str, Any]], ...]
    failed: bool
    status_message: str


def spans_of(value: bytes) -> list[Span]:
    """Return the spans of one record, or of one line of a file.

    Raises:
        NotOtlp: it is none.
        MissingExtra: it is protobuf, and the extra `otel` is not installed.
    """
    if value.lstrip()[:1] == b"{":
        try:
            return list(_of_json(json.loads(value)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotOtlp(f"must be OTLP traces as JSON: {type(error).__name__}: {error}") from None
    return _of_protobuf(value)


def _of_protobuf(value: bytes) -> list[Span]:
    try:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError as missing:
        raise MissingExtra("otel", missing) from missing
    try:
        traces = TracesData.FromString(value)
    except DecodeError as error:
        raise NotOtlp(f"must be OTLP traces as protobuf or JSON: {error}") from None
    return [
        Span(
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.name,
            span.start_time_unix_nano / _NS_PER_MS,
            span.end_time_unix_nano / _NS_PER_MS,
            {**_message_attributes(resource.resource.attributes), **_message_attributes(span.attributes)},
            tuple((event.name, _message_attributes(event.attributes)) for event in span.events),
            span.status.code in _ERROR,
            span.status.message,
        )
        for resource in traces.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _message_attributes(attributes: Iterable[Any]) -> dict[str, Any]:
    return {each.key: _message_value(each.value) for each in attributes}


def _message_value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_message_value(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return _message_attributes(value.kvlist_value.values)
    return getattr(value, kind)


def _of_json(traces: dict[str, Any]) -> Iterator[Span]:
    for resource in traces["resourceSpans"]:
        below = _json_attributes(resource.get("resource", {}))
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                status = span.get("status", {})
                yield Span(
                    span["traceId"].lower(),
                    span["spanId"].lower(),
                    span.get("parentSpanId", "").lower(),
                    span.get("name", ""),
                    int(span.get("startTimeUnixNano", 0)) / _NS_PER_MS,
                    int(span.get("endTimeUnixNano", 0)) / _NS_PER_MS,
                    {**below, **_json_attributes(span)},
                    tuple((event.get("name", ""), _json_attributes(event)) for event in span.get("events", ())),
                    status.get("code") in _ERROR,
                    status.get("message", ""),
                )


def _json_attributes(holder: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: _json_value(each.get("value", {})) for each in holder.get("attributes", ())}


def _json_value(value: dict[str, Any]) -> Any:
    for kind, content in value.items():
        if kind == "arrayValue":
            return [_json_value(each) for each in content.get("values", ())]
        if kind == "kvlistValue":
            return {each["key"]: _json_value(each.get("value", {})) for each in content.get("values", ())}
        if kind == "intValue":
            return int(content)  # 64 bits, which JSON writes as text
        if kind == "bytesValue":
            return base64.b64decode(content)
        return content
    return None
