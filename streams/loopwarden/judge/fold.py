"""The fold: one event of a run into its state, and what is to be said about it.

Deterministic, no clock, no I/O, no log.
"""

from __future__ import annotations

from typing import NamedTuple

from loopwarden.judge import overrides, verdicts
from loopwarden.judge.calls import Step, fold_call
from loopwarden.judge.orders import NO_CHANGES
from loopwarden.judge.outcome import hash_call
from loopwarden.judge.redelivery import identity
from loopwarden.judge.run_state import RunState, begin, begin_again
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import (
    TOOL_CALL_EVENTS,
    Compaction,
    Decision,
    EventOfRun,
    OperatorOverride,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    Verdict,
)


class Judged(NamedTuple):
    """What became of one event."""

    state: RunState
    decisions: list[Decision]
    """The answers that are not "allow", before the de-duplication of warnings."""
    verdicts: list[Verdict]
    """What is to be published: attempt, abort, orders, clears."""


def judge(state: RunState | None, event: EventOfRun, policy: PolicyDocument) -> Judged:
    """Fold one event of a run.

    Args:
        state: The run's state, given away: it may be changed in place. None for a run that is not known.
        event: The event, with its append time.
        policy: The fleet's document in force; used only where the event begins a run.

    Raises:
        NotCanonical: a payload has no canonical JSON; nothing has changed then.
    """
    hashed = hash_call(event) if isinstance(event, TOOL_CALL_EVENTS) else None
    who = identity(event) if hashed is None else hashed.identity
    if state is None or event.append_time > state.expires_at:
        state = begin(event, policy)
        state.seen.add(who)
    elif not state.seen.add(who):
        return Judged(state, [], [])
    elif state.ended_at is not None:
        if type(event) is OperatorOverride and event.action == "release" and state.aborted:
            return Judged(state, [], overrides.revive(state, event))
        if type(event) is not RunStarted:
            state.unjudged += 1
            return Judged(state, [], [])
        state = begin_again(state, event, policy)
    if event.append_time > state.newest_at:
        state.newest_at = event.append_time
    if state.session_id is None:
        state.session_id = event.session_id
    if state.agent_id is None:
        state.agent_id = event.agent_id
    if hashed is not None and isinstance(event, TOOL_CALL_EVENTS):
        return _announce(state, event, fold_call(state, event, hashed))
    return Judged(state, [], _fold_other(state, event))


def _fold_other(state: RunState, event: EventOfRun) -> list[Verdict]:
    if type(event) is Compaction:
        if state.policy.guard_on:
            state.guard.arm(event, state.policy.guard_window)
    elif type(event) is RunFinished:
        state.end(event.append_time)
    elif type(event) is OperatorOverride:
        return overrides.override(state, event)
    return overrides.review(state, event) if state.allowances.expire(event.append_time) else []


def _announce(state: RunState, event: ToolCallEvent, step: Step) -> Judged:
    decisions: list[Decision] = []
    published: list[Verdict] = []
    finding, signature, ending = step.finding, step.signature, step.ending
    if event.verdict_id is not None:
        state.enforcement.delivered += 1
    if finding is not None and signature is not None:
        decisions.append(Decision(event.event_id, event.run_id, finding.action, finding.detector, finding.count))
        if step.evidence is not None:
            published.append(verdicts.attempt(state, event, finding, signature, step.evidence))
    if ending is not None and signature is not None:
        decisions.append(Decision(event.event_id, event.run_id, "abort", ending.detector, ending.count))
        published.append(verdicts.abort(state, event, ending, signature))
        state.end(event.append_time, aborted=True)
    elif state.allowances.until and state.allowances.expire(event.append_time):
        published.extend(overrides.review(state, event))
    elif step.touched and state.policy.detectors_on:
        changes = state.orders.refresh(state.window, state.policy, state.allowances, step.touched)
        if changes is not NO_CHANGES:
            published.extend(verdicts.of_changes(state, event, changes))
    return Judged(state, decisions, published)
