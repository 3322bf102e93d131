"""The calls of one run as events, for the formats that say of each call only what was called and what it returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from loopwarden.importers.ids import call_id, event_id, run_prefix
from loopwarden.importers.items import Item, LeftOut, WireEvent
from loopwarden_schemas.digests import digest, error_digest, normalise_tool, result_digest

_LARGE: Final = 400_000
"""Characters of one payload beyond which its hash travels instead: args and result stand in one record of 1 MiB, and a
character may take more than a byte."""


class Outcome(NamedTuple):
    """What a call returned: parts of text, or an error's text."""

    texts: Sequence[str] = ()
    error: str | None = None
    others: Sequence[Any] = ()
    """Parts that are no text, such as images."""


class CallsOfRun:
    """The calls of one run, each of which counts once, however often the file repeats it.

    Args:
        run_id: The run's.
        session_id: Its session's.
        parent_run_id: The run that began it, where it is a sub-agent's or a fork.
    """

    def __init__(self, run_id: str, session_id: str, parent_run_id: str | None = None) -> None:
        self.run_id = run_id
        self._session_id = session_id
        self._parent = parent_run_id
        self._prefix = run_prefix(run_id)
        self._called: set[str] = set()
        self._pending: dict[str, tuple[str, Any]] = {}
        self._begun = parent_run_id is None
        self._ts = 0

    def call(self, line: int, ts: int | None, given_id: Any, tool: str, args: Any) -> Iterator[Item]:
        """Take a call. Without an id of its own it is left out: nothing could say what it returned."""
        if not isinstance(given_id, str) or not given_id:
            yield LeftOut(line, "a call without an id")
            return
        if given_id in self._called:
            return
        self._called.add(given_id)
        self._pending[given_id] = (tool, args)
        yield from self._begin(line, ts)
        fields = {"call_id": call_id(given_id), "tool": tool, **_args(args)}
        yield self._event(line, ts, "tool_call.started", [given_id, "started"], fields)

    def result(self, line: int, ts: int | None, given_id: Any, outcome: Outcome) -> Iterator[Item]:
        """Take what a call returned."""
        called = self._pending.pop(given_id, None) if isinstance(given_id, str) else None
        if called is None:
            known = isinstance(given_id, str) and given_id in self._called
            yield LeftOut(line, "a call's result once more" if known else "a result without its call")
            return
        tool, args = called
        # With the arguments: what counts as an outcome depends on them, for a poll or a message that is sent.
        fields = {"call_id": call_id(given_id), "tool": tool, **_args(args), **_outcome(tool, args, outcome)}
        yield self._event(line, ts, "tool_call.finished", [given_id, "finished"], fields)

    def has(self, given_id: Any) -> bool:
        """Whether there was such a call."""
        return isinstance(given_id, str) and given_id in self._called

    def waits_for(self, given_id: Any) -> bool:
        """Whether there was such a call, and its result was not there yet."""
        return isinstance(given_id, str) and given_id in self._pending

    def compaction(self, line: int, ts: int | None, place: str, manual: bool = False) -> Iterator[Item]:
        """Take a compaction that succeeded; `place` tells it from the others of the run."""
        yield from self._begin(line, ts)
        # None of these agents says why it compacted by itself; what is known is that it happened within an attempt.
        fields = {"trigger": "manual" if manual else "in_attempt", "succeeded": True}
        yield self._event(line, ts, "compaction", ["compaction", place], fields)

    def _begin(self, line: int, ts: int | None) -> Iterator[Item]:
        if not self._begun:
            self._begun = True
            yield self._event(line, ts, "run.started", ["begun"], {"parent_run_id": self._parent})

    def _event(self, line: int, ts: int | None, kind: str, place: list[str], fields: Mapping[str, Any]) -> WireEvent:
        self._ts = ts if ts is not None else self._ts
        common = {
            "schema": 1,
            "type": kind,
            "event_id": event_id(self._prefix, *place),
            "run_id": self.run_id,
            "session_id": self._session_id,
            "ts": self._ts,
        }
        return WireEvent(line, {**common, **fields})


def _args(args: Any) -> dict[str, Any]:
    return {"args_hash": digest(args)} if _size(args) > _LARGE else {"args": args}


def _outcome(tool: str, args: Any, outcome: Outcome) -> dict[str, Any]:
    if outcome.error is not None:
        if len(outcome.error) > _LARGE:
            return {"result_hash": error_digest(outcome.error)[0]}
        return {"error": outcome.error}
    # A picture counts by its bytes, of which only the digest has to travel.
    pictures = [{"type": "other", "text": digest(part)} for part in outcome.others]
    result = {"content": [*({"type": "text", "text": text} for text in outcome.texts), *pictures]}
    if sum(map(len, outcome.texts)) > _LARGE:
        return {"result_hash": result_digest(normalise_tool(tool), args, result)}
    return {"result": result}


def _size(value: Any) -> int:
    """The characters of all text in a value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + _size(inner) for key, inner in value.items())
    return sum(map(_size, value)) if isinstance(value, list) else 8
