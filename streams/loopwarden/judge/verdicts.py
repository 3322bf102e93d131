"""Verdicts, built from what the fold found: no field depends on when or where it was computed. (design.md.)"""

from __future__ import annotations

from typing import Final

from loopwarden.judge.evidence import evidence
from loopwarden.judge.findings import Ending, Finding
from loopwarden.judge.messages import message
from loopwarden.judge.orders import Changes, OrderKey
from loopwarden.judge.run_state import RunState
from loopwarden.judge.window import Signature
from loopwarden_schemas.digests import digest
from loopwarden_schemas.structs import Action, CallEvent, Phase, RunEvent, Verdict
from loopwarden_schemas.verdicts import RULES_VERSION

PATTERN_ENDED: Final = "pattern_ended"
OPERATOR_ALLOW: Final = "operator_allow"
OPERATOR_RELEASE: Final = "operator_release"
OPERATOR_ABORT: Final = "operator_abort"

_WHOLE_RUN: Final = OrderKey("run", "", "")


def attempt(state: RunState, event: CallEvent, finding: Finding, signature: Signature, counted: list[str]) -> Verdict:
    """The warning about, or the block of, the call in the event."""
    covered = OrderKey(finding.scope, signature.tool, "" if finding.scope == "tool" else signature.args_hash)
    return _of_finding(state, event, "attempt", finding, covered, counted, call_id=event.call_id)


def abort(state: RunState, event: CallEvent, ending: Ending, signature: Signature) -> Verdict:
    """The end of the run, found at a call."""
    return _verdict(
        state,
        event,
        "abort",
        "attempt",
        OrderKey("run", signature.tool, signature.args_hash),
        detector=ending.detector,
        call_id=event.call_id,
        count=ending.count,
        threshold=ending.threshold,
        evidence=ending.evidence,
    )


def clear(state: RunState, event: RunEvent, key: OrderKey, reason: str = PATTERN_ENDED) -> Verdict:
    """The end of a standing block."""
    return _verdict(state, event, "clear", "order", key, reason=reason)


def of_changes(state: RunState, event: RunEvent, changes: Changes, reason: str = PATTERN_ENDED) -> list[Verdict]:
    """The verdicts of changed orders: the blocks placed ahead of the next call, then those lifted."""
    placed, lifted = changes
    window = state.window
    found = []
    for key, finding in placed:
        signature = window.signatures.get((key.tool, key.args_hash), window.calls[-1].signature)
        found.append(_of_finding(state, event, "order", finding, key, evidence(finding, window, signature)))
    found.extend([clear(state, event, key, reason) for key in lifted])
    return found


def operator_abort(state: RunState, event: RunEvent) -> Verdict:
    """The end of the run by a person's decision."""
    return _verdict(state, event, "abort", "attempt", _WHOLE_RUN, reason=OPERATOR_ABORT)


def operator_release(state: RunState, event: RunEvent) -> Verdict:
    """An abort is lifted by a person's decision."""
    return _verdict(state, event, "clear", "order", _WHOLE_RUN, reason=OPERATOR_RELEASE)


def _of_finding(
    state: RunState,
    event: RunEvent,
    phase: Phase,
    finding: Finding,
    covered: OrderKey,
    counted: list[str],
    call_id: str | None = None,
) -> Verdict:
    return _verdict(
        state,
        event,
        finding.action,
        phase,
        covered,
        detector=finding.detector,
        call_id=call_id,
        count=finding.count,
        threshold=finding.threshold,
        evidence=counted,
    )


def _verdict(
    state: RunState,
    event: RunEvent,
    action: Action,
    phase: Phase,
    covered: OrderKey,
    *,
    detector: str | None = None,
    call_id: str | None = None,
    count: int | None = None,
    threshold: int | None = None,
    evidence: list[str] | None = None,
    reason: str | None = None,
) -> Verdict:
    state.n += 1
    scope, tool, args_hash = covered.scope, covered.tool or None, covered.args_hash or None
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
        evidence,
        state.policy.digest,
        RULES_VERSION,
        event.ts,
        state.enforcement.delivered,
        state.enforcement.obeyed,
        state.enforcement.disobeyed,
    )
