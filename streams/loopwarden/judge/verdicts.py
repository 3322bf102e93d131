"""Verdicts, built from what the fold found: no field depends on when or where it was computed. (design.md.)"""

from __future__ import annotations

from typing import Final

from loopwarden.judge.evidence import evidence
from loopwarden.judge.findings import Ending, Finding
from loopwarden.judge.messages import message
from loopwarden.judge.orders import Changes, OrderKey
from loopwarden.judge.run_state import RunState
from loopwarden_schemas.digests import digest
from loopwarden_schemas.structs import Action, CallEvent, Phase, RunEvent, Scope, Verdict
from loopwarden_schemas.verdicts import RULES_VERSION

PATTERN_ENDED: Final = "pattern_ended"
OPERATOR_ALLOW: Final = "operator_allow"
OPERATOR_RELEASE: Final = "operator_release"
OPERATOR_ABORT: Final = "operator_abort"


def attempt(
    state: RunState, event: CallEvent, finding: Finding, tool: str, args_hash: str, counted: list[str]
) -> Verdict:
    """The warning about, or the block of, the call in the event."""
    covered = None if finding.scope == "tool" else args_hash
    return _verdict(state, event, finding.action, "attempt", finding, event.call_id, tool, covered, counted)


def abort(state: RunState, event: CallEvent, ending: Ending, tool: str, args_hash: str) -> Verdict:
    """The end of the run, found at a call."""
    count, threshold, ids = ending.count, ending.threshold, ending.evidence
    return _build(
        state, event, "abort", "attempt", ending.detector, "run", event.call_id, tool, args_hash, count, threshold, ids
    )


def order(state: RunState, event: RunEvent, key: OrderKey, finding: Finding, counted: list[str]) -> Verdict:
    """A block placed ahead of the next call."""
    return _verdict(state, event, "block", "order", finding, None, key.tool, key.args_hash or None, counted)


def clear(state: RunState, event: RunEvent, key: OrderKey, reason: str = PATTERN_ENDED) -> Verdict:
    """The end of a standing block."""
    scope: Scope = "tool" if key.scope == "tool" else "call"
    args_hash = key.args_hash or None
    return _build(state, event, "clear", "order", None, scope, None, key.tool, args_hash, None, None, None, reason)


def of_changes(state: RunState, event: RunEvent, changes: Changes, reason: str = PATTERN_ENDED) -> list[Verdict]:
    """The verdicts of changed orders: those placed, then those lifted."""
    placed, lifted = changes
    found = []
    for key, finding in placed:
        signature = state.window.signatures.get((key.tool, key.args_hash), state.window.calls[-1].signature)
        found.append(order(state, event, key, finding, evidence(finding, state.window, signature)))
    found.extend(clear(state, event, key, reason) for key in lifted)
    return found


def operator_abort(state: RunState, event: RunEvent) -> Verdict:
    """The end of the run by a person's decision."""
    reason = OPERATOR_ABORT
    return _build(state, event, "abort", "attempt", None, "run", None, None, None, None, None, None, reason)


def operator_release(state: RunState, event: RunEvent) -> Verdict:
    """An abort is lifted by a person's decision."""
    reason = OPERATOR_RELEASE
    return _build(state, event, "clear", "order", None, "run", None, None, None, None, None, None, reason)


def _verdict(
    state: RunState,
    event: RunEvent,
    action: Action,
    phase: Phase,
    finding: Finding,
    call_id: str | None,
    tool: str,
    args_hash: str | None,
    counted: list[str],
) -> Verdict:
    return _build(
        state,
        event,
        action,
        phase,
        finding.detector,
        finding.scope,
        call_id,
        tool,
        args_hash,
        finding.count,
        finding.threshold,
        counted,
    )


def _build(
    state: RunState,
    event: RunEvent,
    action: Action,
    phase: Phase,
    detector: str | None,
    scope: Scope,
    call_id: str | None,
    tool: str | None,
    args_hash: str | None,
    count: int | None,
    threshold: int | None,
    counted: list[str] | None,
    reason: str | None = None,
) -> Verdict:
    state.n += 1
    identity = [
        state.run_id,
        event.event_id,
        call_id,
        action,
        phase,
        detector,
        scope,
        tool,
        args_hash,
        RULES_VERSION,
    ]
    return Verdict(
        1,
        digest(identity),
        state.begun,
        state.n,
        action,
        phase,
        detector,
        state.run_id,
        state.session_id,
        state.agent_id,
        call_id,
        tool,
        args_hash,
        scope,
        count,
        threshold,
        reason or detector or PATTERN_ENDED,
        message(action, detector, scope, tool, count),
        event.event_id,
        counted,
        state.policy.digest,
        RULES_VERSION,
        event.ts,
        state.enforcement.delivered,
        state.enforcement.obeyed,
        state.enforcement.disobeyed,
    )
