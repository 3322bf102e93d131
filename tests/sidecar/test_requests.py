"""What a sidecar takes and what it refuses; none of it needs a broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import NOBODY

KINDS = "'run.started', 'tool_call.started', 'tool_call.finished', 'tool_call.blocked', 'compaction', 'run.finished'"

CALL = {"run_id": "r", "tool": "read", "args": {"path": "/x"}}


@pytest.mark.parametrize(
    ("path", "body", "field", "error"),
    [
        ("/v1/calls/before", {"tool": "x"}, "run_id", "run_id: must be given"),
        (
            "/v1/calls/before",
            {**CALL, "run_id": ""},
            "run_id",
            "run_id: string should have at least 1 character, got ''",
        ),
        ("/v1/calls/before", {**CALL, "tool": 7}, "tool", "tool: input should be a valid string, got 7"),
        ("/v1/calls/before", {**CALL, "arg": 1}, "arg", "arg: is no field of this request"),
        (
            "/v1/calls/before",
            {**CALL, "certain": 61},
            "certain",
            "certain: input should be less than or equal to 60, got 61",
        ),
        ("/v1/calls/after", CALL, "call_id", "call_id: must be given"),
        (
            "/v1/calls/after",
            {**CALL, "call_id": "c", "usage": {"cost_usd": -1}},
            "usage.cost_usd",
            "usage.cost_usd: input should be greater than or equal to 0, got -1",
        ),
        ("/v1/events", {"type": "tool_call.started", "run_id": "r"}, "tool", "tool: must be given"),
        (
            "/v1/events",
            {"type": "operator.override", "run_id": "r", "action": "release"},
            "type",
            f"type: must be the type of an event, one of {KINDS}, got 'operator.override'",
        ),
        ("/v1/events", {"run_id": "r"}, "type", "type: must be the type of an event, got None"),
    ],
)
def test_a_bad_request_is_told_its_field_and_the_rule(
    alone: Any, path: str, body: dict[str, Any], field: str, error: str
) -> None:
    assert alone.request("POST", path, body) == (422, {"error": error, "field": field})


def test_what_is_no_json_is_told_where(alone: Any) -> None:
    status, problem = alone.request("POST", "/v1/calls/before", raw=b'{"run_id": }')
    assert (status, problem) == (400, {"error": "the body must be JSON: Expecting value at character 11"})


@pytest.mark.parametrize(
    ("raw", "content_type"),
    [(b"", "application/json"), (b"[1]", "application/json"), (b'{"run_id":"r"}', "text/plain")],
)
def test_what_is_no_json_object_is_refused(alone: Any, raw: bytes, content_type: str) -> None:
    status, problem = alone.request("POST", "/v1/calls/before", raw=raw, Content_Type=content_type)
    assert status == 422
    assert problem["error"] == "the body must be a JSON object, sent with `Content-Type: application/json`"


def test_a_body_that_is_too_large_is_not_read(alone: Any) -> None:
    status, problem = alone.request("POST", "/v1/calls/before", Content_Length=str(2**30))
    assert (status, problem) == (413, {"error": "the body must be at most 4194304 bytes"})


def test_a_body_in_chunks_that_is_too_large_is_told_as_one_with_its_length(alone: Any) -> None:
    connection = alone.connect()
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/calls/before", iter([b" " * 2**20] * 5), headers, encode_chunked=True)
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["error"]) == (413, "the body must be at most 4194304 bytes")
    connection.close()


def test_an_unknown_path_or_run_is_not_found(alone: Any) -> None:
    assert alone.request("GET", "/v1/nothing")[0] == 404
    status, problem = alone.request("GET", "/v1/runs/unheard-of")
    assert (status, problem["error"][:40]) == (404, "this sidecar was told nothing of run 'un")


def test_a_web_page_cannot_speak_to_it_under_a_name_that_it_made_mean_loopback(alone: Any) -> None:
    status, problem = alone.request("POST", "/v1/calls/before", CALL, Host="evil.example:9099")
    assert status == 421
    assert "must name loopback" in problem["error"]


def test_while_the_broker_is_away_calls_are_allowed_and_counted(alone: Any) -> None:
    before = alone.request("GET", "/healthz")[1]
    answer = alone.post("/v1/calls/before", **CALL, certain=0.05)
    assert (answer["action"], answer["certain"], answer["joined"]) == ("allow", False, False)
    assert alone.post("/v1/calls/after", **CALL, call_id=answer["call_id"], result="x") == {
        "note": None,
        "verdict_id": None,
    }
    after = alone.request("GET", "/healthz")[1]
    assert after["status"] == "broker_away"
    assert after["guard"]["uncertain"] == before["guard"]["uncertain"] + 1
    assert after["gateway"]["sent"] == before["gateway"]["sent"] + 2
    assert after["gateway"]["acknowledged"] == 0


def test_the_document_tells_what_each_route_takes_and_answers(alone: Any) -> None:
    document = alone.request("GET", "/openapi.json")[1]
    shown = {
        (method, path): (
            route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {}).get("$ref"),
            {
                status: answer["content"]["application/json"]["schema"]["$ref"]
                for status, answer in route["responses"].items()
                if status < "300"
            },
        )
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    }
    of = "#/components/schemas/"
    assert shown == {
        ("post", "/v1/events"): (f"{of}Event", {"202": f"{of}Accepted"}),
        ("post", "/v1/calls/before"): (f"{of}Call", {"200": f"{of}Answer"}),
        ("post", "/v1/calls/after"): (f"{of}Outcome", {"200": f"{of}Note"}),
        ("get", "/v1/runs/{run_id}"): (None, {"200": f"{of}RunNow"}),
        ("get", "/healthz"): (None, {"200": f"{of}Health"}),
    }


def test_the_document_says_who_may_come_in(alone: Any, start: Callable[..., Any]) -> None:
    guarded = start("--broker", NOBODY, LOOPWARDEN_SIDECAR_TOKEN="t")
    for sidecar, needed in ((alone, [{}, {"token": []}]), (guarded, [{"token": []}])):
        document = sidecar.request("GET", "/openapi.json")[1]
        assert document["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
        assert document["security"] == needed
        assert document["paths"]["/healthz"]["get"]["security"] == []


def test_the_document_names_what_each_event_needs_and_no_more_is_needed(alone: Any) -> None:
    document = alone.request("GET", "/openapi.json")[1]
    schemas = document["components"]["schemas"]
    mapping = schemas["Event"]["discriminator"]["mapping"]
    given = {"run_id": "r", "tool": "read"}
    for kind, reference in mapping.items():
        required = schemas[reference.rsplit("/", 1)[1]]["required"]
        least = {name: given.get(name, kind) for name in required}
        status, answer = alone.request("POST", "/v1/events", least)
        assert (status, answer["run_id"]) == (202, "r"), kind
        for name in required:
            without = {key: value for key, value in least.items() if key != name}
            assert alone.request("POST", "/v1/events", without)[0] == 422, (kind, name)


def test_every_answer_has_exactly_the_documented_fields(alone: Any) -> None:
    schemas = alone.request("GET", "/openapi.json")[1]["components"]["schemas"]
    answers = {
        "Accepted": alone.post("/v1/events", type="run.started", run_id="f"),
        "Answer": alone.post("/v1/calls/before", run_id="f", tool="x"),
        "Note": alone.post("/v1/calls/after", run_id="f", tool="x", call_id="c"),
        "RunNow": alone.request("GET", "/v1/runs/f")[1],
        "Health": alone.request("GET", "/healthz")[1],
        "Problem": alone.request("POST", "/v1/events", {})[1],
    }
    for name, answer in answers.items():
        assert answer.keys() == schemas[name]["properties"].keys(), name
