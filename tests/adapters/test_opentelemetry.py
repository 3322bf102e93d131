"""Traces as the OTel Collector's Kafka exporter writes them, built with OpenTelemetry's own messages."""

from __future__ import annotations

import base64
import json
import re
import secrets
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status, TracesData

from loopwarden.adapters.opentelemetry import Calls
from loopwarden.adapters.otlp import NotOtlp, spans_of
from loopwarden_schemas.codec import decode_record, encode_event
from loopwarden_schemas.structs import Rejected

from .conftest import HANG_S, events_of

PAGE = Path(__file__).parents[2] / "docs" / "adapters" / "opentelemetry.md"
TRACE = bytes.fromhex("5b8efff798038103d269b633813fc60c")
EXECUTE = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read"}


def value(of: Any) -> AnyValue:
    if isinstance(of, bool):
        return AnyValue(bool_value=of)
    if isinstance(of, int):
        return AnyValue(int_value=of)
    if isinstance(of, dict):
        return AnyValue(kvlist_value=KeyValueList(values=pairs(of)))
    if isinstance(of, list):
        return AnyValue(array_value=ArrayValue(values=[value(each) for each in of]))
    return AnyValue(string_value=of)


def pairs(of: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=name, value=value(each)) for name, each in of.items()]


def span(number: int, attributes: dict[str, Any], parent: int = 0, failed: str | None = None, **fields: Any) -> Span:
    made = Span(
        trace_id=fields.pop("trace_id", TRACE),
        span_id=number.to_bytes(8, "big"),
        name=fields.pop("name", "execute_tool read"),
        start_time_unix_nano=(1_700_000_000_000 + number * 1000) * 1_000_000,
        end_time_unix_nano=(1_700_000_000_250 + number * 1000) * 1_000_000,
        attributes=pairs(attributes),
        **fields,
    )
    if parent:
        made.parent_span_id = parent.to_bytes(8, "big")
    if failed is not None:
        made.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=failed))
    return made


def traces(*spans: Span) -> TracesData:
    resource = ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])
    resource.resource.attributes.extend(pairs({"service.name": "docs"}))
    return TracesData(resource_spans=[resource])


def as_protobuf(data: TracesData) -> bytes:
    return data.SerializeToString()


def as_json(data: TracesData) -> bytes:
    """OTLP's JSON is that of protobuf, but for ids in hex. (OTLP specification, "JSON Protobuf Encoding".)"""
    made = MessageToDict(data)
    for resource in made["resourceSpans"]:
        for each in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
            for name in {"traceId", "spanId", "parentSpanId"} & each.keys():
                each[name] = base64.b64decode(each[name]).hex()
    return json.dumps(made).encode()


ENCODINGS = pytest.mark.parametrize("encoded", [as_protobuf, as_json])


def one(attributes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The event of one span's call, which the contract accepts."""
    (event,) = Calls().look_at(spans_of(as_protobuf(traces(span(1, attributes, **fields)))))
    (read,) = decode_record(encode_event(event))
    assert not isinstance(read, Rejected), read
    return event


@ENCODINGS
def test_a_span_is_one_finished_call_in_both_encodings(encoded: Any) -> None:
    arguments = {"path": "/x", "lines": 3, "deep": [{"all": True}]}
    told = {**EXECUTE, "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": arguments}
    told |= {"gen_ai.tool.call.result": "same", "gen_ai.conversation.id": "s", "gen_ai.agent.name": "Docs"}
    (event,) = Calls().look_at(spans_of(encoded(traces(span(1, told)))))
    assert event == {
        "schema": 1,
        "type": "tool_call.finished",
        "event_id": "5b8efff798038103d269b633813fc60c-0000000000000001",
        "run_id": "5b8efff798038103d269b633813fc60c",
        "session_id": "s",
        "agent_id": "Docs",
        "ts": 1_700_000_001_250,
        "tool": "read",
        "call_id": "c1",
        "duration_ms": 250.0,
        "args": arguments,
        "result": "same",
    }


@pytest.mark.parametrize(
    "attributes",
    [
        {**EXECUTE, "gen_ai.tool.call.arguments": '{"path":  "/x"}', "gen_ai.tool.call.result": '{"text": "same"}'},
        {"gen_ai.tool.name": "read", "tool_arguments": '{"path": "/x"}', "tool_response": '{"text": "same"}'},
        {
            **EXECUTE,
            "gcp.vertex.agent.tool_call_args": '{"path": "/x"}',
            "gcp.vertex.agent.tool_response": '{"text": "same"}',
        },
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "read",
            "input.value": '{"path": "/x"}',
            "output.value": '{"text": "same"}',
        },
        {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "read",
            "traceloop.entity.input": '{"input_str": "", "tags": [], "metadata": {"n": 7}, "inputs": {"path": "/x"}}',
            "traceloop.entity.output": '{"output": {"kwargs": {"content": {"text": "same"}, "id": "7"}}, "kwargs": {}}',
        },
        {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "read",
            "traceloop.entity.input": '{"args": [], "kwargs": {"path": "/x"}}',
            "traceloop.entity.output": '{"text": "same"}',
        },
        {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "read",
            "ai.toolCall.args": '{"path": "/x"}',
            "ai.toolCall.result": '{"text": "same"}',
        },
    ],
)
def test_names_from_before_the_convention_say_the_same(attributes: dict[str, Any]) -> None:
    event = one(attributes)
    assert (event["tool"], event["args"], event["result"]) == ("read", {"path": "/x"}, {"text": "same"})


def test_withheld_arguments_equal_no_others_and_a_withheld_result_is_no_outcome() -> None:
    hidden = {"openinference.span.kind": "TOOL", "tool.name": "read", "input.value": "__REDACTED__"}
    calls = Calls()
    first, second, third = calls.look_at(
        spans_of(as_protobuf(traces(span(1, EXECUTE), span(2, EXECUTE), span(3, hidden))))
    )
    assert len({each["args_hash"] for each in (first, second, third)}) == 3
    assert not {"args", "result", "error"} & first.keys()
    assert (calls.withheld_arguments, calls.withheld_results) == (3, 3)
    # Empty ones that are told are told.
    assert one({**EXECUTE, "gen_ai.tool.call.arguments": "{}"})["args"] == {}


def test_an_error_is_the_exceptions_else_the_status() -> None:
    assert one(EXECUTE, failed="no such file")["error"] == {"name": "Error", "message": "no such file"}
    raised = Span.Event(name="exception", attributes=pairs({"exception.type": "OSError", "exception.message": "gone"}))
    assert one(EXECUTE, failed="", events=[raised])["error"] == {"name": "OSError", "message": "gone"}
    typed = {**EXECUTE, "error.type": "timeout", "gen_ai.tool.call.result": "cut"}
    event = one(typed, failed="")
    assert event["error"] == {"name": "timeout", "message": ""} and "result" not in event


def test_other_spans_are_no_calls_and_one_call_told_by_two_is_one() -> None:
    calls = Calls()
    data = traces(
        span(1, {"gen_ai.operation.name": "invoke_agent", "gen_ai.tool.name": "read"}),
        span(2, {"gen_ai.operation.name": "chat"}),
        span(3, {"openinference.span.kind": "TOOL", "tool.name": "read"}, parent=1),
        span(4, EXECUTE, parent=3),
        span(5, {**EXECUTE, "gen_ai.tool.name": "write"}, parent=3),
    )
    assert [event["tool"] for event in calls.look_at(spans_of(as_protobuf(data)))] == ["read", "write"]
    assert (calls.spans, calls.calls, calls.nested) == (5, 2, 1)


def test_calls_come_in_the_order_in_which_they_ended() -> None:
    events = Calls().look_at(spans_of(as_protobuf(traces(span(3, EXECUTE), span(1, EXECUTE), span(2, EXECUTE)))))
    assert [event["call_id"][-1] for event in events] == ["1", "2", "3"]


@pytest.mark.parametrize("broken", [b'{"resourceSpans": 3}', b"{", b'{"a": 1}', b"\xff\xff", b"no traces"])
def test_what_is_no_trace_is_said(broken: bytes) -> None:
    with pytest.raises(NotOtlp, match="must be OTLP traces"):
        spans_of(broken)


def looping(trace_id: bytes) -> list[TracesData]:
    told = {**EXECUTE, "gen_ai.tool.call.arguments": '{"path": "/x"}', "gen_ai.tool.call.result": "same"}
    return [traces(span(number, told, trace_id=trace_id)) for number in range(1, 5)]


def test_a_topic_of_the_collectors_is_read_once_and_its_loops_are_judged(judging: Any) -> None:
    from kafka import KafkaAdminClient
    from kafka.admin import NewTopic

    topic, trace_id = f"{judging.topics.prefix}otlp_spans", secrets.token_bytes(16)
    (line,) = re.findall(r"^(python -m .* --topic .*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    command = [sys.executable, *shlex.split(line)[1:], "--topic", topic, "--records", "6"]
    reading = subprocess.Popen(command, env=judging.environment(), stderr=subprocess.PIPE, text=True)
    assert reading.stderr is not None
    # It may be there before the Collector's first record.
    assert (
        reading.stderr.readline()
        == f"loopwarden: {topic}: there is no such topic at {judging.servers} yet; waiting for it\n"
    )

    admin = KafkaAdminClient(bootstrap_servers=judging.servers)
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.close()
    loop, quiet = looping(trace_id), secrets.token_bytes(16)
    for record in (*map(as_protobuf, loop[:2]), b"nothing", *map(as_json, loop[2:])):
        judging.producer.send(topic, record)
    judging.producer.send(topic, as_protobuf(traces(*(span(n, EXECUTE, trace_id=quiet) for n in range(1, 9)))))
    judging.producer.flush(HANG_S)

    _, told = reading.communicate(timeout=HANG_S)
    assert reading.returncode == 0, told
    said = told.splitlines()
    assert "offset 2: must be OTLP traces" in said[0]
    assert said[1].startswith("loopwarden: 12 tool calls in 12 spans; arguments withheld of 8, results of 8;")

    judging.wait_until_judged()
    events = [event for event in events_of(judging) if event.run_id in (trace_id.hex(), quiet.hex())]
    assert len(events) == 12
    verdicts = [verdict for _, verdict in judging.verdicts() if verdict.run_id == trace_id.hex()]
    assert [(verdict.action, verdict.phase) for verdict in verdicts] == [("warn", "attempt"), ("block", "order")]
    assert not [verdict for _, verdict in judging.verdicts() if verdict.run_id == quiet.hex()]


def test_a_file_of_the_collectors_becomes_lines_for_judge(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_bytes(b"".join(as_json(each) + b"\n" for each in looping(TRACE)))
    command = [sys.executable, "-m", "loopwarden.adapters.opentelemetry", "--file", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["result"] for line in done.stdout.splitlines()] == ["same"] * 4


def test_a_mistake_gets_a_line_and_no_traceback() -> None:
    command = [sys.executable, "-m", "loopwarden.adapters.opentelemetry"]
    for arguments, said in ((["--broker", "127.0.0.1:9"], ":9"), (["--file", "/no/such"], " /no/such: cannot")):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == 2
        assert said in done.stderr and "Traceback" not in done.stderr
