"""What happens in a run besides its calls, in words."""

from __future__ import annotations

from loopwarden.judge import RunState
from loopwarden.report.model import MarkKind
from loopwarden.report.words import clock
from loopwarden_schemas.structs import Compaction, EventOfRun, OperatorOverride, RunFinished, RunStarted


def mark_text(event: EventOfRun, state: RunState) -> tuple[MarkKind, str]:
    """Return the kind of a mark and its words. `state`: of the run after the event."""
    if isinstance(event, Compaction):
        return "compaction", _compaction(event, state)
    if isinstance(event, OperatorOverride):
        return "override", _override(event)
    if isinstance(event, RunFinished):
        return "end", f"Run finished{'' if event.reason is None else f': {event.reason}'}"
    assert isinstance(event, RunStarted)
    parent = "" if event.parent_run_id is None else f", by run {event.parent_run_id}"
    agent = "" if event.agent_id is None else f", agent {event.agent_id}"
    return "run", f"Run started{agent}{parent}{'' if event.cause is None else f': {event.cause}'}"


def _compaction(event: Compaction, state: RunState) -> str:
    armed = state.guard.remaining
    guard = f"; the guard watches the next {armed} outcomes" if armed else "; the guard is not armed"
    return f"Context compacted ({event.trigger or 'automatic'}){guard if event.succeeded else ': failed'}"


def _override(event: OperatorOverride) -> str:
    about = f"allows {event.tool or 'every tool'}" if event.action == "allow" else f"{event.action}s the run"
    until = f" until {clock(event.until)} UTC" if event.until is not None and event.action == "allow" else ""
    return f"{event.by or 'Somebody'} {about}{until}: {event.why or 'no reason given'}"
