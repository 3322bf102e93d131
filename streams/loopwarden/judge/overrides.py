"""A person decides about a run: `operator.override`, which lies in the log like everything else. (design.md.)"""

from __future__ import annotations

from loopwarden.judge import verdicts
from loopwarden.judge.orders import OrderKey
from loopwarden.judge.run_state import RunState
from loopwarden_schemas.digests import normalise_tool
from loopwarden_schemas.structs import OperatorOverride, RunEvent, Verdict


def override(state: RunState, event: OperatorOverride) -> list[Verdict]:
    """Do what a person decided about a live run."""
    if event.action == "abort":
        verdict = verdicts.operator_abort(state, event)
        state.end(event.append_time, aborted=True)
        return [verdict]
    if event.action == "release":
        standing = [OrderKey("call", *key) for key in state.orders.calls]
        if state.orders.tool is not None:
            standing.append(OrderKey("tool", state.orders.tool, ""))
        cleared = [verdicts.clear(state, event, key, verdicts.OPERATOR_RELEASE) for key in sorted(standing)]
        state.forget()
        return cleared
    state.allowances.add(None if event.tool is None else normalise_tool(event.tool), event.until)
    return _review(state, event, verdicts.OPERATOR_ALLOW)


def revive(state: RunState, event: OperatorOverride) -> list[Verdict]:
    """Lift the abort of a run: it goes on with an empty window."""
    state.ended_at, state.aborted = None, False
    state.newest_at = max(state.newest_at, event.append_time)
    return [verdicts.operator_release(state, event)]


def expire(state: RunState, event: RunEvent) -> list[Verdict]:
    """End the allowances whose time is over, with the first event past it.

    That event is still judged with them: a runner cannot know that they are over before it has read an order.
    """
    if not state.allowances.expire(event.append_time):
        return []
    return _review(state, event, verdicts.PATTERN_ENDED)


def _review(state: RunState, event: RunEvent, reason: str) -> list[Verdict]:
    if not state.policy.detectors_on:
        return []
    changes = state.orders.review(state.window, state.policy, state.allowances)
    return verdicts.of_changes(state, event, changes, reason)
