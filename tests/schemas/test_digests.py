from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwarden_schemas.canonical import NotCanonical, canonical
from loopwarden_schemas.digests import (
    CHANNELS,
    SEND_ACTIONS,
    VOLATILE_KEYS,
    digest,
    error_text,
    id_hash,
    is_known_poll,
    is_outbound_send,
    normalise_tool,
    outcome_array,
    short_id,
    unknown_tool_of,
)
from loopwarden_schemas.policy import resolve

VECTORS = Path(__file__).parents[1] / "vectors"


def lines(file: str, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (VECTORS / file).read_text().splitlines()]
    return [line for line in found if line["kind"] == kind]


def array_of(tool: str, args: Any, event: dict[str, Any]) -> list[Any] | None:
    """What of a `finished` is hashed; None for a void result."""
    if "error" in event:
        return ["error", error_text(event["error"])]
    return outcome_array(normalise_tool(tool), args, event["result"]) if "result" in event else None


@pytest.mark.parametrize("line", lines("digests.jsonl", "canonical"), ids=lambda line: line["canonical"][:40])
def test_a_value_has_its_canonical_form_and_hash(line: dict[str, Any]) -> None:
    assert canonical(line["value"]) == line["canonical"].encode()
    assert digest(line["value"]) == line["hash"]


@pytest.mark.parametrize("line", lines("digests.jsonl", "outcome"), ids=lambda line: line["name"])
def test_an_outcome_has_its_array_and_hashes(line: dict[str, Any]) -> None:
    array = array_of(line["tool"], line["args"], line["event"])
    assert array == line["array"]
    assert digest(array) == line["result_hash"]
    assert digest(line["args"]) == line["args_hash"]


@pytest.mark.parametrize("line", lines("digests.jsonl", "verdict_id"), ids=lambda line: line["verdict_id"])
def test_a_verdict_has_its_id(line: dict[str, Any]) -> None:
    assert digest(line["fields"]) == line["verdict_id"]


@pytest.mark.parametrize("line", lines("digests.jsonl", "policy_digest"), ids=lambda line: line["policy_digest"])
def test_a_policy_has_its_digest(line: dict[str, Any]) -> None:
    assert resolve(line["resolved"]).digest == line["policy_digest"]


@pytest.mark.parametrize("line", lines("hashing-and-policy.jsonl", "hash_args"), ids=lambda line: line["name"])
def test_signatures_are_equal_exactly_where_the_vectors_say(line: dict[str, Any]) -> None:
    for pair in line["pairs"]:
        a, b = ((normalise_tool(pair[side]["tool"]), digest(pair[side].get("args"))) for side in "ab")
        assert (a == b) is pair["equal"], pair


@pytest.mark.parametrize("line", lines("hashing-and-policy.jsonl", "hash_result"), ids=lambda line: line["name"])
def test_outcomes_are_equal_exactly_where_the_vectors_say(line: dict[str, Any]) -> None:
    for pair in line["pairs"]:
        a, b = (array_of(line["tool"], line["args"], pair[side]) for side in "ab")
        equal = a is not None and b is not None and digest(a) == digest(b)
        assert equal is pair["equal"], pair


def test_every_kind_of_vector_is_read() -> None:
    digests = Path(VECTORS / "digests.jsonl").read_text().splitlines()
    assert {json.loads(line)["kind"] for line in digests} == {"canonical", "outcome", "verdict_id", "policy_digest"}


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("", "tool"),
        (" \t\ufeff", "tool"),
        ("bash", "exec"),
        (" BASH\n", "exec"),
        ("Apply-Patch", "apply_patch"),
        ("Read", "read"),
        # Not white space to ECMAScript.
        ("\u0085read", "\u0085read"),
        ("\x1cread", "\x1cread"),
    ],
)
def test_a_tool_name_is_trimmed_lower_cased_and_replaced(name: str, normal: str) -> None:
    assert normalise_tool(name) == normal


@given(st.text(max_size=12))
def test_a_normal_tool_name_is_its_own_normal_form(name: str) -> None:
    assert normalise_tool(normalise_tool(name)) == normalise_tool(name)


@pytest.mark.parametrize(
    ("tool", "args", "poll"),
    [
        ("command_status", None, True),
        ("command_status", {"action": "kill"}, True),
        ("process", {"action": "poll"}, True),
        ("process", {"action": "log"}, True),
        ("process", {"action": "Poll"}, False),
        ("process", {"action": ["poll"]}, False),
        ("process", {}, False),
        ("process", "poll", False),
        ("process", None, False),
        ("exec", {"action": "poll"}, False),
    ],
)
def test_which_calls_are_known_polls(tool: str, args: Any, poll: bool) -> None:
    assert is_known_poll(tool, args) is poll


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("Unknown tool: Foo.Bar", "foo.bar"),
        ("error: unknown tool 'foo-1'", "foo-1"),
        ("UNKNOWN  TOOL:\n`x_y`", "x_y"),
        ('tool "Lookup" not found', "lookup"),
        ("the Tool lookup is not available", "lookup"),
        ("tool lookup was not found", None),
        ("unknown toolbox", None),
        ("no such tool", None),
        ("", None),
    ],
)
def test_which_errors_name_an_unknown_tool(text: str, tool: str | None) -> None:
    assert unknown_tool_of(text) == tool


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("as it is", "as it is"),
        ("", ""),
        ({"message": "m", "name": "n"}, "m"),
        ({"message": "", "name": "n"}, "n"),
        ({"message": "", "name": ""}, ""),
        ({"message": "", "code": 5}, ""),
        ({"name": "n", "code": 5}, "n"),
        ({"message": 5, "name": "n"}, "n"),
        ({"code": 5}, '{"code":5}'),
        (None, "null"),
        (True, "true"),
        (1.0, "1"),
        (["b", "a"], '["b","a"]'),
    ],
)
def test_what_of_an_error_is_hashed(error: Any, text: str) -> None:
    assert error_text(error) == text


@pytest.mark.parametrize("args", [{}, None, "text", {"action": "read"}])
def test_sessions_send_is_a_send_whatever_is_known_of_its_arguments(args: Any) -> None:
    assert is_outbound_send("sessions_send", args)
    result = {"details": {"ok": True, "messageId": "1"}, "content": [{"type": "text", "text": "sent 1"}]}
    assert outcome_array("sessions_send", args, result) == ["send", {"ok": True}]


def test_which_calls_are_outbound_sends() -> None:
    for action in (*SEND_ACTIONS, "read", "Send", "", None, ["send"]):
        assert is_outbound_send("message", {"action": action}) is (isinstance(action, str) and action in SEND_ACTIONS)
    for channel in CHANNELS:
        assert is_outbound_send(channel, {"to": "x"})
        for args in ({"to": ""}, {"to": 5}, {}, None, "x"):
            assert not is_outbound_send(channel, args)
    assert not is_outbound_send("read", {"to": "x", "action": "send"})


def test_of_a_message_only_its_own_id_is_volatile() -> None:
    message = {"id": "1", "text": "t", "direction": "out", "route": {"id": "r"}, "list": [{"id": "2", "ts": 3}]}
    array = outcome_array("sessions_send", {}, {"details": message})
    assert array == ["send", {"text": "t", "direction": "out", "route": {"id": "r"}, "list": [{"id": "2"}]}]
    signs: list[dict[str, Any]] = [{"senderId": "s"}, {"accountId": "a"}, {"conversation": {}}]
    for sign in signs:
        assert outcome_array("sessions_send", {}, {"details": {"id": "1", "text": "t", **sign}}) == [
            "send",
            {"text": "t", **sign},
        ]
    for no_message in (
        {"id": "1", "text": "t"},
        {"id": "1", "direction": "out"},
        {"id": "1", "text": 5, "senderId": "s"},
    ):
        assert outcome_array("sessions_send", {}, {"details": no_message}) == ["send", no_message]


@given(st.sampled_from(sorted(VOLATILE_KEYS)), st.integers(), st.integers())
def test_a_volatile_field_changes_no_send(key: str, one: int, other: int) -> None:
    def sent(value: int) -> list[Any] | None:
        return outcome_array("message", {"action": "send"}, {"details": {"ok": True, "results": [{key: value}]}})

    assert sent(one) == sent(other)


def test_the_details_of_a_send_may_not_be_deeper_than_anything_else() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NotCanonical, match="nested deeper than 64"):
        outcome_array("sessions_send", {}, {"details": {"deep": deep}})
    assert outcome_array("sessions_send", {}, {"details": {"receipt": deep}}) == ["send", {}]


def outcomes_of_histories() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    with gzip.open(VECTORS / "random-histories.jsonl.gz", "rt") as text:
        for line in text:
            for event in json.loads(line)["events"]:
                if event["type"] == "tool_call.finished":
                    yield event["tool"], event.get("args"), event


def test_a_hash_is_32_lower_case_hexadecimal_digits_and_differs_where_the_array_does() -> None:
    arrays: dict[str, bytes] = {}
    for tool, args, event in outcomes_of_histories():
        array = array_of(tool, args, event)
        if array is not None:
            result_hash = digest(array)
            assert len(result_hash) == 32
            assert not set(result_hash) - set("0123456789abcdef")
            assert arrays.setdefault(result_hash, canonical(array)) == canonical(array)
    assert len(arrays) > 50


@given(st.text(max_size=80))
def test_an_id_of_64_bytes_is_kept_and_a_longer_one_is_its_hash(text: str) -> None:
    kept = short_id(text)
    assert kept == text if len(text.encode()) <= 64 else len(kept) == 32
    assert short_id(kept) == kept


@given(st.binary(max_size=40))
def test_the_hash_of_an_id_fits_into_8_bytes(utf8: bytes) -> None:
    assert 0 <= id_hash(utf8) < 2**64
