"""A person decides about a run: `operator.override`, which lies in the log like everything else. (design.md.)"""

from __future__ import annotations

from loopwarden.judge import verdicts
from loopwarden.judge.run_state import RunState
from loopwarden_schemas.digests import normalise_tool
from loopwarden_schemas.structs import OperatorOverride, RunEvent, Verdict


def override(state: RunState, event: OperatorOverride) -> list[Verdict]:
    """Do what a person decided about a live run."""
    if event.action == "abort":
        verdict = verdicts.operator_abort(state, event)
        state.end(event.append_time, aborted=True)
        return [verdict]
    if event.action == "allow":
        state.allowances.add(None if event.tool is None else normalise_tool(event.tool), event.until)
    # The new one may be over already, too.
    state.allowances.expire(event.append_time)
    if event.action == "release":
        cleared = [verdicts.clear(state, event, key, verdicts.OPERATOR_RELEASE) for key in state.orders.standing()]
        state.forget()
        # Where it begins the run, a runner may still hold on to an abort of so long ago that it is forgotten here.
        return cleared or ([verdicts.operator_release(state, event)] if len(state.seen.order) == 1 else [])
    return review(state, event, verdicts.OPERATOR_ALLOW)


def revive(state: RunState, event: OperatorOverride) -> list[Verdict]:
    """Lift the abort of a run: it goes on with an empty window."""
    state.ended_at, state.aborted = None, False
    state.newest_at = max(state.newest_at, event.append_time)
    return [verdicts.operator_release(state, event)]


def review(state: RunState, event: RunEvent, reason: str = verdicts.PATTERN_ENDED) -> list[Verdict]:
    """Bring the orders up to date after the allowances changed, whatever else the event changed."""
    if not state.policy.detectors_on:
        return []
    changes = state.orders.review(state.window, state.policy, state.allowances)
    return verdicts.of_changes(state, event, changes, reason)
