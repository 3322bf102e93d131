"""Verdicts, built from what the fold found: no field depends on when or where it was computed. (design.md.)"""

from __future__ import annotations

from typing import Final

from loopwarden.judge.findings import Finding
from loopwarden.judge.guard import DETECTOR as GUARD
from loopwarden.judge.messages import message
from loopwarden.judge.orders import OrderKey
from loopwarden.judge.run_state import RunState
from loopwarden_schemas.digests import digest
from loopwarden_schemas.structs import Action, CallEvent, Phase, RunEvent, Scope, Verdict
from loopwarden_schemas.verdicts import RULES_VERSION

PATTERN_ENDED: Final = "pattern_ended"


def attempt(
    state: RunState, event: CallEvent, finding: Finding, tool: str, args_hash: str, evidence: list[str]
) -> Verdict:
    """The warning about, or the block of, the call in the event."""
    covered = None if finding.scope == "tool" else args_hash
    return _verdict(state, event, finding.action, "attempt", finding, event.call_id, tool, covered, evidence)


def abort(state: RunState, event: CallEvent, tool: str, args_hash: str) -> Verdict:
    """The end of a run whose loop persisted across a compaction."""
    size = state.policy.guard_window
    ids = state.guard.event_ids
    return _build(state, event, "abort", "attempt", GUARD, "run", event.call_id, tool, args_hash, size, size, ids)


def order(state: RunState, event: RunEvent, key: OrderKey, finding: Finding, evidence: list[str]) -> Verdict:
    """A block placed ahead of the next call."""
    return _verdict(state, event, "block", "order", finding, None, key.tool, key.args_hash or None, evidence)


def clear(state: RunState, event: RunEvent, key: OrderKey) -> Verdict:
    """The end of a standing block."""
    scope: Scope = "tool" if key.scope == "tool" else "call"
    return _build(state, event, "clear", "order", None, scope, None, key.tool, key.args_hash or None, None, None, None)


def _verdict(
    state: RunState,
    event: RunEvent,
    action: Action,
    phase: Phase,
    finding: Finding,
    call_id: str | None,
    tool: str,
    args_hash: str | None,
    evidence: list[str],
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
        evidence,
    )


def _build(
    state: RunState,
    event: RunEvent,
    action: Action,
    phase: Phase,
    detector: str | None,
    scope: Scope,
    call_id: str | None,
    tool: str,
    args_hash: str | None,
    count: int | None,
    threshold: int | None,
    evidence: list[str] | None,
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
        detector or PATTERN_ENDED,
        message(action, detector, scope, tool, count),
        event.event_id,
        evidence,
        state.policy.digest,
        RULES_VERSION,
        event.ts,
    )
