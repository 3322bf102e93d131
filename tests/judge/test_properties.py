from __future__ import annotations

import contextlib
import copy
import datetime
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwarden.judge import RunState, freeze, judge, thaw
from loopwarden.judge.allowances import Allowances
from loopwarden_schemas.canonical import NotCanonical
from loopwarden_schemas.codec import encode_verdict, event_from_value
from loopwarden_schemas.digests import digest, normalise_tool
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import EventOfRun, PolicyApplied, Rejected, Verdict

from .cases import VECTORS, cases, hashed
from .players import FrozenPlayer, JudgePlayer, RecountPlayer, Runner, orders_of, play
from .strategies import ARGS, TOOLS, fleets, histories, logs

WireEvent = Mapping[str, Any]


def event_of(wire_event: WireEvent) -> EventOfRun:
    event = event_from_value(wire_event)
    assert not isinstance(event, (Rejected, PolicyApplied)), event
    return event


def folded(log: list[dict[str, Any]], policy: WireEvent) -> Iterator[tuple[EventOfRun, RunState, list[Verdict]]]:
    """Judge a log, yielding each event with the state after it and its verdicts."""
    document, state = PolicyDocument.from_value(policy), None
    for wire_event in log:
        event = event_of(wire_event)
        state, _, verdicts = judge(state, event, document)
        yield event, state, verdicts


def verdict_bytes(log: list[dict[str, Any]], policy: WireEvent) -> bytes:
    return b"".join(encode_verdict(verdict) for _, _, verdicts in folded(log, policy) for verdict in verdicts)


def started(tool: str, at: int, **called: Any) -> EventOfRun:
    wire_event = {"type": "tool_call.started", "event_id": "probe", "run_id": "r", "ts": at, "tool": tool, **called}
    return event_of(wire_event)


def would_block(record: bytes, probe: EventOfRun) -> bool:
    """Whether the judge blocks a call now; its state is not touched."""
    decisions = judge(thaw(record), probe, DEFAULT_DOCUMENT).decisions
    return any(decision.action == "block" for decision in decisions)


@settings(max_examples=4 * settings().max_examples)
@given(logs(), fleets())
def test_the_judge_answers_as_the_recount_does(log: list[dict[str, Any]], policy: WireEvent) -> None:
    assert play(JudgePlayer(), log, policy) == play(RecountPlayer(), log, policy)


@given(logs(), fleets())
def test_a_state_goes_on_from_its_record_as_if_nothing_had_been(log: list[dict[str, Any]], policy: WireEvent) -> None:
    assert play(FrozenPlayer(), log, policy) == play(JudgePlayer(), log, policy)


@given(logs(), fleets())
def test_the_same_log_gives_the_same_verdicts_byte_for_byte(log: list[dict[str, Any]], policy: WireEvent) -> None:
    assert verdict_bytes(copy.deepcopy(log), copy.deepcopy(policy)) == verdict_bytes(log, policy)


def test_a_process_of_its_own_gives_the_same_verdicts_and_states() -> None:
    """Nothing may depend on the order in which a set of strings is walked, which differs from process to process."""
    judged = [
        subprocess.run(
            [sys.executable, "-c", "from judge.test_properties import print_histories; print_histories()"],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(VECTORS.parent), *sys.path])},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    ]
    assert judged[0] == judged[1] != b""


def print_histories() -> None:
    """Print what comes of some random histories: every verdict, and each run's last state."""
    for case in cases("random-histories.jsonl.gz")[:60]:
        player = JudgePlayer()
        print(play(player, case.events, case.policy).verdicts)
        print({run_id: freeze(state) for run_id, state in player.states.items()})


@given(logs(max_moves=10), fleets(), st.sampled_from((True, False, None)))
def test_a_runner_refuses_exactly_the_calls_that_the_judge_would_block(
    log: list[dict[str, Any]], policy: WireEvent, known_poll: bool | None
) -> None:
    player, document, runner = JudgePlayer(), PolicyDocument.from_value(policy), Runner()
    flag = {} if known_poll is None else {"known_poll": known_poll}
    for wire_event in log:
        event = event_of(wire_event)
        runner.see(player(event, document))
        state = player.states["r"]
        record = freeze(state)
        for tool, args_hash in signatures_of(log):
            probe = started(tool, state.newest_at, args_hash=args_hash, **flag)
            assert would_block(record, probe) == runner.refuses(tool, args_hash)


def signatures_of(log: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Every signature that can come of a log: each of its tools, and one more, with each of its arguments."""
    calls = [event for event in log if "tool" in event]
    tools = {"other", *(normalise_tool(event["tool"]) for event in calls)}
    hashes = {digest(event.get("args")) for event in calls} | {event.get("args_hash", "other") for event in calls}
    return {(tool, args_hash) for tool in tools for args_hash in hashes}


@given(logs(), fleets())
def test_no_call_of_a_tool_is_blocked_while_a_person_allows_it(log: list[dict[str, Any]], policy: WireEvent) -> None:
    """Until the first event after the allowance's time, which is still judged with it."""
    document, state = PolicyDocument.from_value(policy), None
    for wire_event in log:
        allowances = {} if state is None or wire_event["ts"] > state.expires_at else dict(state.allowances.until)
        event = event_of(wire_event)
        judged = judge(state, event, document)
        state = judged.state
        allowed = {normalise_tool(name) for name in TOOLS if covers(allowances, normalise_tool(name))}
        for verdict in judged.verdicts:
            assert verdict.action != "block" or verdict.phase == "order" or verdict.tool not in allowed
        assert not any(state.allowances.covers(tool) for _, tool, _ in orders_of(state))


def covers(allowances: dict[int, int | None], tool: str) -> bool:
    asked = Allowances()
    asked.until = allowances
    return asked.covers(tool)


@given(logs(), fleets())
def test_a_run_ends_as_soon_as_it_ignored_its_blocks_too_often(log: list[dict[str, Any]], policy: WireEvent) -> None:
    for _, state, verdicts in folded(log, policy):
        limit, ignored = state.policy.abort_after_blocks, state.enforcement.ignored
        assert limit is None or ignored < limit
        for verdict in verdicts:
            if verdict.reason == "block_ignored":
                assert (verdict.action, verdict.count, verdict.threshold) == ("abort", limit, limit)
                assert state.aborted


@given(logs(), fleets(), st.integers(0, 127))
def test_a_redelivered_event_changes_nothing(log: list[dict[str, Any]], policy: WireEvent, back: int) -> None:
    document, expires_at = PolicyDocument.from_value(policy), 0
    known: list[EventOfRun] = []
    for event, state, _ in folded(log, policy):
        if event.append_time > expires_at:
            known.clear()
        if event not in known:
            known.append(event)
        expires_at = state.expires_at
        again = copy.copy(known[-1 - back % min(len(known), 128)])
        again.append_time = event.append_time
        record = freeze(state)
        state, decisions, verdicts = judge(state, again, document)
        assert (freeze(state), decisions, verdicts) == (record, [], [])


@given(histories(), fleets())
def test_hashes_instead_of_payloads_give_the_same_verdicts(log: list[dict[str, Any]], policy: WireEvent) -> None:
    assert verdict_bytes([hashed(event) for event in log], policy) == verdict_bytes(log, policy)


@given(logs(), fleets(), st.integers(0, 2**32 - 1))
def test_payloads_and_hashes_may_be_mixed(log: list[dict[str, Any]], policy: WireEvent, mix: int) -> None:
    # Only of a `process` or a send does an outcome's hash depend on the arguments.
    log = [event for event in log if normalise_tool(event.get("tool", "")) not in ("process", "message", "telegram")]
    mixed = [hashed(event) if mix >> at % 32 & 1 else event for at, event in enumerate(log)]
    assert verdict_bytes(mixed, policy) == verdict_bytes(log, policy)


@given(logs(), fleets())
def test_verdicts_of_an_event_come_in_the_stated_order(log: list[dict[str, Any]], policy: WireEvent) -> None:
    rank = {("warn", "attempt"): 0, ("block", "attempt"): 0, ("abort", "attempt"): 1}
    rank |= {("block", "order"): 2, ("clear", "order"): 3}
    for _, _, verdicts in folded(log, policy):
        ranks = [rank[verdict.action, verdict.phase] for verdict in verdicts]
        assert ranks == sorted(ranks)
        assert max(ranks.count(0), ranks.count(1)) <= 1
        for phase in (2, 3):
            keys = [
                (verdict.scope, verdict.tool, verdict.args_hash)
                for verdict, of_rank in zip(verdicts, ranks, strict=True)
                if of_rank == phase
            ]
            assert keys == sorted(keys, key=lambda key: (key[0], key[1] or "", key[2] or ""))


@given(logs(), fleets())
def test_an_event_changes_at_most_four_orders_unless_a_tool_covers_or_uncovers_calls(
    log: list[dict[str, Any]], policy: WireEvent
) -> None:
    for _, state, verdicts in folded(log, policy):
        orders = [verdict for verdict in verdicts if verdict.phase == "order"]
        most = state.policy.history_size + 2 if any(order.scope == "tool" for order in orders) else 4
        assert len(orders) <= most


@given(logs(), fleets())
def test_the_verdict_counter_rises_by_one_from_verdict_to_verdict(log: list[dict[str, Any]], policy: WireEvent) -> None:
    verdicts = [verdict for _, _, of_event in folded(log, policy) for verdict in of_event]
    for earlier, later in pairwise(verdicts):
        assert (later.n == earlier.n + 1) or (later.n == 1 and later.begun > earlier.begun)
        assert (later.begun, later.n) > (earlier.begun, earlier.n)


@given(histories(), fleets())
def test_no_two_verdicts_share_an_id(log: list[dict[str, Any]], policy: WireEvent) -> None:
    ids = [verdict.verdict_id for _, _, verdicts in folded(log, policy) for verdict in verdicts]
    assert len(set(ids)) == len(ids)


@given(logs(), fleets())
def test_a_message_depends_on_the_verdict_alone_and_quotes_no_arguments(
    log: list[dict[str, Any]], policy: WireEvent
) -> None:
    secret = "sesame-opens-the-door"
    for event in log:
        if isinstance(event.get("args"), dict):
            event["args"] = {**event["args"], "secret": secret}
    said: dict[Any, str] = {}
    for _, _, verdicts in folded(log, policy):
        for verdict in verdicts:
            facts = (verdict.action, verdict.phase, verdict.detector, verdict.scope, verdict.tool, verdict.count)
            assert said.setdefault((*facts, verdict.threshold), verdict.message) == verdict.message
            assert verdict.message
            assert secret not in verdict.message


@pytest.mark.parametrize("kind", ["started", "finished", "blocked"])
@pytest.mark.parametrize("args", [math.nan, {1: 2}, "\ud800", {"deep": math.inf}], ids=repr)
@settings(max_examples=10)
@given(log=logs(max_moves=3), policy=fleets())
def test_an_event_without_canonical_json_changes_nothing(
    log: list[dict[str, Any]], policy: WireEvent, kind: str, args: Any
) -> None:
    *_, (_, state, _) = folded(log, policy)
    record = freeze(state)
    wire_event = {"type": f"tool_call.{kind}", "event_id": "bad", "run_id": "r", "ts": state.newest_at, "tool": "read"}
    event = event_of({**wire_event, "call_id": "c0", "args": args})
    with pytest.raises(NotCanonical):
        judge(state, event, PolicyDocument.from_value(policy))
    assert freeze(state) == record


@pytest.mark.parametrize("field", ["result", "error"])
@settings(max_examples=10)
@given(log=logs(max_moves=3), policy=fleets())
def test_an_outcome_without_canonical_json_changes_nothing(
    log: list[dict[str, Any]], policy: WireEvent, field: str
) -> None:
    *_, (_, state, _) = folded(log, policy)
    record = freeze(state)
    wire_event = {"type": "tool_call.finished", "event_id": "bad", "run_id": "r", "ts": state.newest_at, "tool": "read"}
    event = event_of({**wire_event, "call_id": "c0", field: {"details": {"n": math.nan}}})
    with pytest.raises(NotCanonical):
        judge(state, event, PolicyDocument.from_value(policy))
    assert freeze(state) == record


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


UNUSUAL = [deep(66), deep(900), deep(100_000), (1, 2), {("a",): 1}, datetime.datetime(2026, 1, 1), math.nan, 10**400]


@pytest.mark.parametrize("payload", UNUSUAL, ids=["66", "900", "100000", "tuple", "tuple-key", "date", "nan", "huge"])
@pytest.mark.parametrize("tool", sorted({normalise_tool(name) for name in (*TOOLS, "sessions_send")}))
def test_what_has_no_canonical_json_is_said_to_have_none_wherever_it_stands(tool: str, payload: Any) -> None:
    outcomes = [
        {"result": payload},
        {"result": {"details": {"status": payload}}},
        {"result": {"details": {"status": "completed", "exitCode": payload, "aggregated": payload}}},
        {"result": {"details": payload, "content": payload}},
        {"result": {"content": [payload, {"type": "text", "text": payload}]}},
        {"error": payload},
        {"error": {"message": payload}},
    ]
    calls = [*({"args": args, **outcome} for outcome in outcomes for args in ARGS), {"args": payload, "result": 1}]
    for number, call in enumerate(calls):
        wire_event = {
            "type": "tool_call.finished",
            "event_id": f"{number}",
            "run_id": "r",
            "ts": 1,
            "tool": tool,
            **call,
        }
        with contextlib.suppress(NotCanonical):
            judge(None, event_of(wire_event), DEFAULT_DOCUMENT)
    with pytest.raises(NotCanonical):
        judge(None, event_of(wire_event), DEFAULT_DOCUMENT)


@pytest.mark.parametrize("make_id", [str, "e{}".format, "{:04x}".format, "event-{:03}".format, "é{}".format])
def test_events_with_short_ids_are_never_taken_for_redeliveries(make_id: Any) -> None:
    kinds = ("tool_call.started", "tool_call.finished", "tool_call.blocked")
    state = None
    for number in range(100):
        before = None if state is None else len(state.seen.order)
        wire_event = {"type": kinds[number % 3], "event_id": make_id(number), "run_id": "r", "ts": 1, "tool": "read"}
        state = judge(state, event_of({**wire_event, "call_id": "c0", "result": number}), DEFAULT_DOCUMENT).state
        assert len(state.seen.order) == (before or 0) + 1
