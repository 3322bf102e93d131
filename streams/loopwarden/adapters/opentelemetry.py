"""Tool calls out of OpenTelemetry traces, as the OTel Collector's Kafka exporter writes them.

    python -m loopwarden.adapters.opentelemetry --topic otlp_spans

A span is there when its call is over, so nothing is refused here: each call becomes one lone `tool_call.finished`,
which is judged as a call of that moment. A trace is one run. Ids come from the trace, so that a record that is read
again, after a crash, changes nothing.

What a trace withholds is not empty. Most instrumentations leave arguments and results out unless told otherwise; a
call without arguments would then equal every other call of its tool, and healthy runs would be loops. Such a call gets
an `args_hash` of its own, which equals no other's, and a withheld result is no outcome (a void one).
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from loopwarden.adapters.errors import MissingExtra
from loopwarden.adapters.otlp import NotOtlp, Span, spans_of
from loopwarden.client.connect import connected
from loopwarden.client.errors import ClusterError
from loopwarden.client.settings import Connection
from loopwarden.gateway import Gateway

TOOL: Final = (
    "gen_ai.tool.name",
    "tool.name",  # OpenInference
    "traceloop.entity.name",
    "ai.toolCall.name",  # Vercel's AI SDK
)
CALL_ID: Final = ("gen_ai.tool.call.id", "tool_call.id", "tool.id", "ai.toolCall.id")
ARGUMENTS: Final = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",  # Pydantic AI before the convention had a name for it
    "gcp.vertex.agent.tool_call_args",  # Google's ADK, likewise
    "ai.toolCall.args",
    "input.value",
    "traceloop.entity.input",
)
RESULT: Final = (
    "gen_ai.tool.call.result",
    "tool_response",
    "gcp.vertex.agent.tool_response",
    "ai.toolCall.result",
    "output.value",
    "traceloop.entity.output",
)
SESSION: Final = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id")
AGENT: Final = ("gen_ai.agent.name", "gen_ai.agent.id", "service.name")

_IS_A_CALL: Final = (
    ("gen_ai.operation.name", "execute_tool"),
    ("openinference.span.kind", "TOOL"),
    ("traceloop.span.kind", "tool"),
    ("ai.operationId", "ai.toolCall"),
)
_HIDDEN: Final = ("__REDACTED__", "<not serializable>", "<elided>")
"""What instrumentations put in place of a value that they were told to hide."""

_GROUP: Final = "loopwarden-otel"
_POLL_MS: Final = 500
_LOOK_AGAIN_MS: Final = 5_000

logger = logging.getLogger("loopwarden.adapters.opentelemetry")


@dataclass
class Calls:
    """What was found in spans, summed over all that were looked at.

    Attributes:
        events: As the wire has them; of the newest record only, where records are read one by one.
        spans: All spans.
        calls: Those that are tool calls.
        nested: Those that repeat the call of the span around them, as two instrumentations do; left out.
        withheld_arguments, withheld_results: Calls whose trace does not have them.
        unreadable: Records that are no OTLP traces.
    """

    events: list[dict[str, Any]] = field(default_factory=list)
    spans: int = 0
    calls: int = 0
    nested: int = 0
    withheld_arguments: int = 0
    withheld_results: int = 0
    unreadable: int = 0

    def __str__(self) -> str:
        return (
            f"{self.calls} tool calls in {self.spans} spans; arguments withheld of {self.withheld_arguments}, results "
            f"of {self.withheld_results}; {self.nested} told twice; {self.unreadable} records unreadable"
        )

    def look_at(self, spans: Iterable[Span]) -> list[dict[str, Any]]:
        """Find the calls in the spans of one record, in the order in which they ended; return their events."""
        spans = list(spans)
        tools = {(each.trace_id, each.span_id): _tool(each) for each in spans}
        self.spans += len(spans)
        self.events = []
        for span in sorted(spans, key=lambda each: each.end_ms):
            tool = tools[span.trace_id, span.span_id]
            if tool is None:
                continue
            if tools.get((span.trace_id, span.parent_id)) == tool:
                self.nested += 1
                continue
            self.calls += 1
            self.events.append(self._event(span, tool))
        return self.events

    def _event(self, span: Span, tool: str) -> dict[str, Any]:
        event: dict[str, Any] = {
            "schema": 1,
            "type": "tool_call.finished",
            "event_id": f"{span.trace_id}-{span.span_id}",
            "run_id": span.trace_id,
            "ts": int(span.end_ms),
            "tool": tool,
            "call_id": _text(span, CALL_ID) or span.span_id,
            "duration_ms": max(0.0, span.end_ms - span.start_ms),
        }
        for name, names in (("session_id", SESSION), ("agent_id", AGENT)):
            if _text(span, names):
                event[name] = _text(span, names)
        arguments = _first(span, ARGUMENTS)
        if arguments is _NONE:
            self.withheld_arguments += 1
            event["args_hash"] = f"withheld-{span.span_id}"
        else:
            event["args"] = _traceloop_input(arguments)
        if span.failed:
            event["error"] = _error(span)
            return event
        result = _first(span, RESULT)
        if result is _NONE:
            self.withheld_results += 1
        else:
            event["result"] = _traceloop_output(result)
        return event


def consume(
    connection: Connection, topic: str, gateway: Gateway, group: str = _GROUP, records: int | None = None
) -> Calls:
    """Read a topic of traces, from its beginning or where the group left off, and publish its calls.

    An offset is committed when the broker has the events of everything below it.

    Args:
        connection: Where the topic is; its prefix is not put in front of it.
        topic: The Collector's: `otlp_spans` unless it is told otherwise.
        gateway: Publishes the events; it should block when it is full.
        group: The consumer group.
        records: Stop after so many; None: go on.

    Raises:
        ClusterError: no broker there.
    """
    from kafka import KafkaConsumer

    settings: dict[str, Any] = {
        "group_id": group,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "allow_auto_create_topics": False,
        "metadata_max_age_ms": _LOOK_AGAIN_MS,
    }
    found, read = Calls(), 0
    with connected(KafkaConsumer, connection, **settings) as consumer:
        if not consumer.partitions_for_topic(topic):
            logger.warning("%s: there is no such topic at %s yet; waiting for it", topic, connection.bootstrap_servers)
        consumer.subscribe([topic])
        while records is None or read < records:
            polled = consumer.poll(timeout_ms=_POLL_MS)
            for each in (record for batch in polled.values() for record in batch):
                read += 1
                for event in _found(found, each.value, f"{topic}, partition {each.partition}, offset {each.offset}"):
                    gateway.send(event)
            if polled and gateway.flush(None):
                consumer.commit()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    given = _parser().parse_args(arguments)
    logging.basicConfig(format="loopwarden: %(message)s")
    try:
        if given.file is not None:
            found = Calls()
            with given.file.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    for event in _found(found, line, f"{given.file}, line {number}"):
                        print(json.dumps(event))
        else:
            connection = Connection.given(given.broker, given.prefix, properties_file=given.client_properties)
            with Gateway(connection, when_away="block") as gateway:
                found = consume(connection, given.topic, gateway, given.group, given.records)
    except (ClusterError, MissingExtra) as error:
        print(f"loopwarden: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"loopwarden: {where}cannot be read: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(f"loopwarden: {found}", file=sys.stderr)
    return 0


def _found(found: Calls, value: bytes | None, where: str) -> list[dict[str, Any]]:
    try:
        return found.look_at(spans_of(value or b""))
    except NotOtlp as error:
        found.unreadable += 1
        logger.warning("%s: %s", where, error)
        return []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m loopwarden.adapters.opentelemetry",
        description="Publishes the tool calls in the traces that the OTel Collector's Kafka exporter writes.",
    )
    parser.add_argument("--topic", default="otlp_spans", help="the Collector's; default: otlp_spans")
    parser.add_argument("--file", type=Path, help="JSON lines of the Collector's file exporter; events go to stdout")
    parser.add_argument("--group", default=_GROUP, help=f"the consumer group; default: {_GROUP}")
    parser.add_argument("--records", type=int, help="stop after so many records; default: go on")
    parser.add_argument("--broker", help="HOST:PORT; default: LOOPWARDEN_BOOTSTRAP_SERVERS, else localhost:9092")
    parser.add_argument("--prefix", help="of Loopwarden's topics; default: LOOPWARDEN_TOPIC_PREFIX, else none")
    parser.add_argument("--client-properties", metavar="FILE", help="default: LOOPWARDEN_CLIENT_PROPERTIES, else none")
    return parser


_NONE: Final = object()


def _tool(span: Span) -> str | None:
    """The tool that a span's call is of; None for other spans."""
    is_a_call = any(span.attributes.get(name) == value for name, value in _IS_A_CALL)
    # Older ones name a tool without an operation; a span of a model's names no tool, or several.
    if not is_a_call and ("gen_ai.operation.name" in span.attributes or "gen_ai.tool.name" not in span.attributes):
        return None
    return _text(span, TOOL) or span.name.removeprefix("execute_tool ").removeprefix("running tool: ") or "tool"


def _text(span: Span, names: Sequence[str]) -> str | None:
    return next((str(span.attributes[name]) for name in names if span.attributes.get(name) not in (None, "")), None)


def _first(span: Span, names: Sequence[str]) -> Any:
    """The first of the attributes that is there and not hidden; JSON in text is read: its spacing does not count."""
    for name in names:
        value = span.attributes.get(name)
        if value is None or value in _HIDDEN:
            continue
        if isinstance(value, str) and value[:1] in ("{", "["):
            try:
                return json.loads(value)
            except (ValueError, RecursionError):
                return value
        return value
    return _NONE


def _traceloop_input(value: Any) -> Any:
    """Traceloop wraps arguments together with tags and metadata, which name steps and checkpoints."""
    if isinstance(value, dict) and "inputs" in value and "metadata" in value:
        return value["inputs"] or value.get("input_str")
    if isinstance(value, dict) and value.keys() == {"args", "kwargs"}:
        return value["kwargs"] if not value["args"] else value
    return value


def _traceloop_output(value: Any) -> Any:
    """Traceloop wraps a result likewise, and LangChain's message in it names its call."""
    if not isinstance(value, dict) or value.keys() != {"output", "kwargs"}:
        return value
    output = value["output"]
    message = output.get("kwargs") if isinstance(output, dict) else None
    return message["content"] if isinstance(message, dict) and "content" in message else output


def _error(span: Span) -> dict[str, Any]:
    """What the span says of its failure, in the form in which errors are hashed."""
    of_exception: dict[str, Any] = next((each for name, each in span.events if name == "exception"), {})
    name = of_exception.get("exception.type") or span.attributes.get("error.type") or "Error"
    message = of_exception.get("exception.message") or span.status_message or span.attributes.get("error.message") or ""
    return {"name": str(name), "message": str(message)}


if __name__ == "__main__":
    sys.exit(main())
