"""Whether the verdicts of a run were obeyed, told from its events: each verdict is followed through the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loopwarden.judge.outcome import hash_call
from loopwarden.report.words import plural
from loopwarden_schemas.canonical import NotCanonical
from loopwarden_schemas.structs import (
    TOOL_CALL_EVENTS,
    EventOfRun,
    OperatorOverride,
    RunStarted,
    ToolCallBlocked,
    ToolCallEvent,
    ToolCallStarted,
    Verdict,
)

_Order = tuple[str, str | None, str | None]


@dataclass
class Followed:
    """What became of one verdict.

    Attributes:
        delivered: Events that name it: the runner has it.
        obeyed: Calls that were refused for it.
        disobeyed: Calls that were made all the same.
    """

    verdict: Verdict
    delivered: int = 0
    obeyed: int = 0
    disobeyed: int = 0

    def in_words(self) -> str:
        """Return it for people."""
        action = self.verdict.action
        if action == "clear":
            return ""
        if action == "warn":
            return "shown" if self.delivered else "not known to be shown"
        if action == "abort":
            return f"disobeyed: {plural(self.disobeyed, 'call')} after it" if self.disobeyed else "obeyed"
        told = [f"{word} {count}x" for word, count in (("obeyed", self.obeyed), ("disobeyed", self.disobeyed)) if count]
        return ", ".join(told) or "not tried"

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"delivered": self.delivered, "obeyed": self.obeyed, "disobeyed": self.disobeyed}


class FollowingThrough:
    """Sees the events and the verdicts of a run in the order of its log."""

    def __init__(self) -> None:
        self._by_id: dict[str, Followed] = {}
        self._orders: dict[_Order, Followed] = {}
        self._attempts: dict[str, list[Followed]] = {}
        """What blocked a call that started all the same, by its call id: it may still turn out refused."""
        self._abort: Followed | None = None

    def see_verdict(self, verdict: Verdict) -> Followed:
        """Take a verdict, after the event that caused it; what is returned changes with what comes later."""
        followed = self._by_id[verdict.verdict_id] = Followed(verdict)
        order = (verdict.scope, verdict.tool, verdict.args_hash)
        if verdict.action == "abort":
            self._orders, self._abort = {}, followed
        elif verdict.phase == "order" and verdict.action == "block":
            self._orders[order] = followed
        elif verdict.action == "clear":
            self._orders.pop(order, None)
            if verdict.scope == "run":
                self._abort = None
        elif verdict.action == "block":
            standing = self._orders.get(order)
            blocks = [followed] if standing is None else [followed, standing]
            for block in blocks:
                block.disobeyed += 1
            if verdict.call_id is not None:
                self._attempts[verdict.call_id] = blocks
        return followed

    def see_event(self, event: EventOfRun) -> None:
        """Take an event, before the verdicts that it caused."""
        if isinstance(event, TOOL_CALL_EVENTS):
            self._see_call(event)
        elif isinstance(event, RunStarted) or (isinstance(event, OperatorOverride) and event.action == "release"):
            # What follows belongs to a run that begins, or goes on, by right.
            self._abort = None

    def _see_call(self, event: ToolCallEvent) -> None:
        named = None if event.verdict_id is None else self._by_id.get(event.verdict_id)
        if named is not None:
            named.delivered += 1
        if isinstance(event, ToolCallStarted) and self._abort is not None:
            self._abort.disobeyed += 1
        if not isinstance(event, ToolCallBlocked):
            return
        started = self._attempts.pop(event.call_id, []) if event.call_id is not None else []
        for block in started:
            block.disobeyed -= 1
        refused_for = [*started, *filter(None, [named or self._order_on(event)])]
        for block in {id(block): block for block in refused_for}.values():
            block.obeyed += 1

    def _order_on(self, event: ToolCallBlocked) -> Followed | None:
        """The order that covers a refused call which names no verdict."""
        try:
            hashed = hash_call(event)
        except NotCanonical:
            return None
        return self._orders.get(("tool", hashed.tool, None)) or self._orders.get(
            ("call", hashed.tool, hashed.args_hash)
        )
