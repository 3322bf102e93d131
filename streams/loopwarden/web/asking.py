"""What of the runs and of the verdicts is asked for: the same filters for pages and for the JSON API."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from loopwarden.web.bodies import Runs, run_body
from loopwarden.web.fleet import Fleet, Published, gravity, now_ms
from loopwarden.web.watched_run import WatchedRun
from loopwarden_schemas.structs import Verdict

RUNS_AT_ONCE: Final = 100
VERDICTS_AT_ONCE: Final = 200

StatusAsked: TypeAlias = Literal["", "live", "finished", "aborted", "idle"]
Order: TypeAlias = Literal["worst", "newest", "calls"]
ActionAsked: TypeAlias = Literal["", "warn", "block", "abort", "clear"]


@dataclass(frozen=True)
class RunsAsked:
    """Which runs.

    Attributes:
        text: In the id of the run or of its agent, in any case.
        status: Empty: any.
        order: What comes first.
        start: How many of them are passed over.
        limit: How many at most.
    """

    text: str = ""
    status: StatusAsked = ""
    order: Order = "worst"
    start: int = 0
    limit: int = RUNS_AT_ONCE

    def of(self, fleet: Fleet) -> Runs:
        """Return them."""
        now = now_ms()
        return fleet.ask(lambda runs: self._among(runs, now))

    def _among(self, runs: Iterable[WatchedRun], now: int) -> Runs:
        found = [run for run in runs if self._wants(run, now)]
        first = heapq.nlargest(self.start + self.limit, found, key=self._key)
        return Runs(found=len(found), runs=[run_body(run, now) for run in first[self.start :]])

    def _wants(self, run: WatchedRun, now: int) -> bool:
        if self.status and run.status(now) != self.status:
            return False
        text = self.text.lower()
        return not text or text in run.run_id.lower() or text in (run.agent_id or "").lower()

    def _key(self, run: WatchedRun) -> tuple[int, ...]:
        if self.order == "worst":
            return gravity(run)
        return (run.newest_at,) if self.order == "newest" else (run.calls, run.newest_at)


@dataclass(frozen=True)
class VerdictsAsked:
    """Which verdicts.

    Attributes:
        text: In the id of the run or of its agent, or in the tool's name, in any case.
        action: Empty: any.
        reason: The detector's name, or another reason; empty: any.
        orders: Only orders, not what is about single attempts.
        limit: How many at most.
    """

    text: str = ""
    action: ActionAsked = ""
    reason: str = ""
    orders: bool = False
    limit: int = VERDICTS_AT_ONCE

    def of(self, fleet: Fleet) -> list[Published]:
        """Return them, the newest first."""
        return fleet.verdicts(self._wants, self.limit)

    def _wants(self, verdict: Verdict) -> bool:
        if self.action and verdict.action != self.action:
            return False
        if self.reason and verdict.reason != self.reason:
            return False
        if self.orders and verdict.phase != "order":
            return False
        text = self.text.lower()
        named = (verdict.run_id, verdict.agent_id or "", verdict.tool or "")
        return not text or any(text in name.lower() for name in named)
