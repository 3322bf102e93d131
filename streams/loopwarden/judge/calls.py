"""How a call is put together from its events, which may come late, twice, alone or never. (design.md, "Events".)

The window, the guard and the enforcement change as each event says; what is returned is what that
means for the call at hand.
"""

from __future__ import annotations

from loopwarden.judge.detectors import decide
from loopwarden.judge.enforcement import DETECTOR as BLOCK_IGNORED
from loopwarden.judge.evidence import evidence
from loopwarden.judge.findings import Ending, Finding
from loopwarden.judge.outcome import NO_ARGUMENTS, Hashed
from loopwarden.judge.run_state import Remembered, RunState
from loopwarden.judge.window import Recorded, Signature
from loopwarden_schemas.digests import short_id
from loopwarden_schemas.structs import ToolCallEvent, ToolCallFinished, ToolCallStarted


class Step:
    """What one event did."""

    __slots__ = ("ending", "evidence", "finding", "signature", "touched")

    def __init__(self, touched: tuple[Signature, ...] = (), signature: Signature | None = None) -> None:
        self.touched = touched
        """Signatures whose calls or outcomes changed; empty: the window is as it was."""
        self.signature = signature
        """Of the call at hand."""
        self.finding: Finding | None = None
        """The decision about it, where it is not "allow"."""
        self.evidence: list[str] | None = None
        """Of the finding; None: a warning that was published before."""
        self.ending: Ending | None = None
        """Why the run ends with this event."""


def fold_call(state: RunState, event: ToolCallEvent, hashed: Hashed) -> Step:
    """Fold one event of a call into the window and the guard."""
    if type(event) is ToolCallStarted:
        return _started(state, event, hashed)
    if type(event) is ToolCallFinished:
        return _finished(state, event, hashed)
    return _blocked(state, event, hashed)


def _started(state: RunState, event: ToolCallStarted, hashed: Hashed) -> Step:
    """A call is about to be made: decide about it, and record it unless it is blocked."""
    window = state.window
    call_id = hashed.call_id
    if window.lone and call_id is not None:
        lone = window.find_lone(call_id)
        if lone is not None:
            window.meet(lone)
            return Step()
    signature = window.signature(hashed.tool, hashed.args_hash or NO_ARGUMENTS, hashed.known_poll)
    step = _decide(state, signature)
    if step.finding is not None and step.finding.action == "block":
        known_poll = signature.known_poll or hashed.known_poll
        event_id = short_id(event.event_id)
        state.remember(call_id, Remembered(event_id, signature.args_hash, known_poll))
        state.enforcement.attempted(call_id, event_id)
        step.ending = _block_ignored(state)
        return step
    step.touched = _record(state, signature, hashed, short_id(event.event_id))
    return step


def _finished(state: RunState, event: ToolCallFinished, hashed: Hashed) -> Step:
    """An outcome: of a pending call, of a remembered one, or of a call that nobody announced."""
    window = state.window
    call_id = hashed.call_id
    pending = window.find_pending(call_id, hashed.tool, hashed.args_hash or NO_ARGUMENTS)
    if pending is not None:
        step = Step(_take_executed(state, pending, hashed))
    elif call_id is not None and call_id in state.remembered:
        if hashed.result is None:
            return Step()
        announced = state.remembered.pop(call_id)
        if hashed.args_hash is None:
            hashed.args_hash, hashed.known_poll = announced.args_hash, hashed.known_poll or announced.known_poll
        signature = window.signature(hashed.tool, hashed.args_hash, hashed.known_poll)
        step = Step(_record(state, signature, hashed, announced.event_id))
        pending = window.calls[-1]
    else:
        signature = window.signature(hashed.tool, hashed.args_hash or NO_ARGUMENTS, hashed.known_poll)
        step = _decide(state, signature)
        if step.finding is not None and step.finding.action == "block":
            state.enforcement.attempted(call_id, short_id(event.event_id))
            step.ending = _block_ignored(state)
        step.touched = _record(state, signature, hashed, short_id(event.event_id), lone=True)
        pending = window.calls[-1]
    step.signature = pending.signature
    if hashed.result is not None:
        window.complete(pending, hashed.result, hashed.unknown_tool)
        if state.guard.remaining:
            tool, args_hash = pending.signature.key
            persisted = state.guard.observe(tool, args_hash, hashed.result, short_id(event.event_id))
            step.ending = persisted or step.ending
    return step


def _blocked(state: RunState, event: ToolCallEvent, hashed: Hashed) -> Step:
    """The runner did not execute a call: it leaves the window where it was announced before the order arrived."""
    state.enforcement.refused(hashed.call_id, short_id(event.event_id))
    pending = None if hashed.call_id is None else state.window.find_pending(hashed.call_id, hashed.tool, "")
    step = Step()
    if pending is not None:
        state.window.remove(pending)
        step.touched = (pending.signature,)
    step.ending = _block_ignored(state)
    if step.ending is not None:
        step.signature = state.window.signature(hashed.tool, hashed.args_hash or NO_ARGUMENTS, hashed.known_poll)
    return step


def _decide(state: RunState, signature: Signature) -> Step:
    step = Step(signature=signature)
    finding = decide(state.window, signature, state.policy)
    if finding is not None and finding.action == "block" and state.allowances.covers(signature.tool):
        finding = None
    if finding is None or finding.action == "warn":
        state.enforcement.allowed()
    if finding is None:
        if state.warnings.published:
            state.warnings.forget(signature)
        return step
    step.finding = finding
    if finding.action == "block" or state.warnings.is_due(finding, state.window, signature):
        step.evidence = evidence(finding, state.window, signature)
    return step


def _block_ignored(state: RunState) -> Ending | None:
    limit, enforcement = state.policy.abort_after_blocks, state.enforcement
    if limit is None or enforcement.ignored < limit:
        return None
    return Ending(BLOCK_IGNORED, enforcement.ignored, limit, enforcement.event_ids)


def _record(
    state: RunState, signature: Signature, hashed: Hashed, event_id: str, lone: bool = False
) -> tuple[Signature, ...]:
    if hashed.known_poll:
        signature.known_poll = True
    evicted = state.window.record(signature, hashed.call_id, event_id, lone)
    if evicted is None:
        return (signature,)
    if evicted.result is None:
        left = evicted.signature
        state.remember(evicted.call_id, Remembered(evicted.event_id, left.args_hash, left.known_poll))
    return (signature, evicted.signature)


def _take_executed(state: RunState, pending: Recorded, hashed: Hashed) -> tuple[Signature, ...]:
    """Give a pending call the tool and the arguments that were executed, where they are not the announced ones."""
    announced = pending.signature
    args_hash = hashed.args_hash or announced.args_hash
    if (hashed.tool, args_hash) == announced.key:
        announced.known_poll = announced.known_poll or hashed.known_poll
        return (announced,)
    known_poll = hashed.known_poll if hashed.args_hash else hashed.known_poll or announced.known_poll
    executed = state.window.signature(hashed.tool, args_hash, known_poll)
    executed.known_poll = executed.known_poll or known_poll
    state.window.change_signature(pending, executed)
    return (announced, executed)
