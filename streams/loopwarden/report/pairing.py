"""Which call an event is about. While the judge counts it knows: its window and what it remembers are asked.

(design.md, "How a call is put together".) After a run's end nothing is counted any more; what comes then belongs to the
newest open call with its id or, without one, of its signature.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from loopwarden.judge import RunState
from loopwarden.judge.outcome import NO_ARGUMENTS, Hashed
from loopwarden.judge.run_state import Remembered
from loopwarden.judge.window import Recorded
from loopwarden.report.gathered import Call, Key
from loopwarden_schemas.structs import ToolCallBlocked, ToolCallEvent, ToolCallFinished, ToolCallStarted

_KEPT: Final = 1_024
"""Bindings to what the judge holds; beyond that those are let go that it does not hold any more."""


class Pairing:
    """Binds the judge's own records of a run's calls to the calls of the picture."""

    def __init__(self) -> None:
        self._bound: dict[Recorded | Remembered, Call] = {}
        self._open = _OpenCalls()
        self._oldest: Recorded | None = None
        self._found: Recorded | None = None

    def look(self, state: RunState | None, event: ToolCallEvent, hashed: Hashed) -> Call | None:
        """Return the call of an event that the judge is about to fold; None: a new one.

        `state`: of the run, None where it begins with the event.
        """
        self._oldest = self._found = None
        if state is None:
            self._bound, self._open = {}, _OpenCalls()
            return None
        if state.ended_at is not None:
            return self._open.find(event, (hashed.tool, hashed.args_hash or NO_ARGUMENTS))
        window, call_id = state.window, hashed.call_id
        if window.calls and len(window.calls) == window.size:
            self._oldest = window.calls[0]
        if isinstance(event, ToolCallStarted):
            self._found = None if call_id is None or not window.lone else window.find_lone(call_id)
        elif isinstance(event, ToolCallFinished):
            self._found = window.find_pending(call_id, hashed.tool, hashed.args_hash or NO_ARGUMENTS)
        elif call_id is not None:
            self._found = window.find_pending(call_id, hashed.tool, "")
        known: Recorded | Remembered | None = self._found
        if known is None and call_id is not None and not isinstance(event, ToolCallStarted):
            known = state.remembered.get(call_id)
        call = None if known is None else self._bound.get(known)
        # The judge does not forget a refused call; another refusal under its id is of another call.
        return None if call is not None and call.outcome == "blocked" and isinstance(event, ToolCallBlocked) else call

    def bind(self, state: RunState, event: ToolCallEvent, hashed: Hashed, call: Call) -> None:
        """Take the call of an event that the judge has folded, with what it holds of it now."""
        recorded = self._found
        if state.ended_at is None:
            newest = state.window.calls[-1] if state.window.calls else None
            if newest is not None and newest not in self._bound:
                recorded, self._bound[newest] = newest, call
            self._bind_remembered(state, event, hashed, call)
            if len(self._bound) > _KEPT:
                held = {*state.window.calls, *state.remembered.values()}
                self._bound = {each: bound for each, bound in self._bound.items() if each in held}
        if recorded is not None:
            call.key = recorded.signature.key
        elif isinstance(event, ToolCallFinished):
            call.key = (hashed.tool, hashed.args_hash or call.key[1])
        self._open.put(call)

    def _bind_remembered(self, state: RunState, event: ToolCallEvent, hashed: Hashed, call: Call) -> None:
        oldest = self._oldest
        if oldest is not None and oldest.call_id is not None and oldest not in state.window.calls[:1]:
            # It left the window for the new call; the judge remembers it where it was pending.
            left = state.remembered.get(oldest.call_id)
            if left is not None and left not in self._bound and oldest in self._bound:
                self._bound[left] = self._bound[oldest]
        if isinstance(event, ToolCallStarted) and hashed.call_id is not None:
            blocked = state.remembered.get(hashed.call_id)
            if blocked is not None and blocked not in self._bound:
                self._bound[blocked] = call


class _OpenCalls:
    """Calls whose outcome may still come, oldest first."""

    def __init__(self) -> None:
        self._by_id: defaultdict[str, list[Call]] = defaultdict(list)
        self._by_key: defaultdict[Key, list[Call]] = defaultdict(list)

    def put(self, call: Call) -> None:
        """Take a call as it is now."""
        of_id = None if call.call_id is None else self._by_id[call.call_id]
        of_key = self._by_key[call.key]
        closed = call.outcome in ("result", "error", "blocked")
        for calls in (of_key,) if of_id is None else (of_key, of_id):
            if call in calls:
                calls.remove(call)
            if not closed:
                calls.append(call)

    def find(self, event: ToolCallEvent, key: Key) -> Call | None:
        """Return the newest one that an event may be about."""
        if isinstance(event, ToolCallStarted):
            return None
        of_id = self._by_id.get(event.call_id, []) if event.call_id is not None else None
        if of_id is None and isinstance(event, ToolCallBlocked):
            return None
        calls = self._by_key.get(key, []) if of_id is None else of_id
        return calls[-1] if calls else None
