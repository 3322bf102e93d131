"""Short logs written by hand, folded by the judge and by the recount at once."""

from __future__ import annotations

from typing import Any

from loopwarden_schemas.digests import digest

from .players import FrozenPlayer, JudgePlayer, OrderSet, Played, RecountPlayer, play

UNKNOWN = {"error": "unknown tool: nope"}


def started(tool: str, args: Any = "a", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_call.started", "tool": tool, "args": args, **fields}


def finished(tool: str, args: Any = "a", **fields: Any) -> dict[str, Any]:
    """Without a call id of a `started`: a lone outcome, which is recorded whatever is decided."""
    return {"type": "tool_call.finished", "tool": tool, "args": args, **fields}


def fold(events: list[dict[str, Any]], **policy: Any) -> Played:
    """Fold one run in every way there is, which must all come to the same; event *i* is `i` at time *i*."""
    log = [{"event_id": str(at), "run_id": "r", "ts": at, **event} for at, event in enumerate(events)]
    document = {"tools": {"loopDetection": {"enabled": True, **policy}}}
    played = play(JudgePlayer(), log, document)
    assert play(FrozenPlayer(), log, document) == played
    assert play(RecountPlayer(), log, document) == played
    return played


def orders_at(played: Played, at: int) -> OrderSet:
    """The run's orders after the event with this index."""
    return next((orders for changed_at, _, orders in reversed(played.orders) if changed_at <= at), frozenset())


def of_call(tool: str, args: Any = "a") -> tuple[str, str, str]:
    return "call", tool, digest(args)


def of_tool(tool: str) -> tuple[str, str, str]:
    return "tool", tool, ""
