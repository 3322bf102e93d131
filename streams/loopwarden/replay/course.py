"""What a policy does to one run of a history: from which call on it warns, blocks and aborts, and what that spares.

The history is taken as it was. An agent that is warned, blocked or aborted would have done something else from there
on: what comes first under a policy is exact, what is spared after it is what the history holds.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from loopwarden.replay.fold_events import Folded
from loopwarden_schemas.structs import (
    EventOfRun,
    RunStarted,
    ToolCallBlocked,
    ToolCallFinished,
    ToolCallStarted,
    Verdict,
)

Outcome: TypeAlias = Literal["resolved", "unresolved", "unknown"]

RESOLVED: Final = frozenset("resolved success successful succeeded solved done complete completed passed ok".split())
UNRESOLVED: Final = frozenset(
    (
        "unresolved not unsuccessful failed failure error timeout abort aborted cancelled canceled killed max exhausted"
    ).split()
)
_WORD: Final = re.compile(r"[a-z]+")


def outcome_of(reason: str | None, resolved: frozenset[str] = frozenset()) -> Outcome:
    """Return how a run ended by the reason of its `run.finished`.

    It was resolved where the reason has one of the words of `RESOLVED` and none of `UNRESOLVED`.

    Args:
        reason: The reason.
        resolved: Where given, the reasons (in full, in lower case) that count as resolved; others are not.
    """
    if reason is None:
        return "unknown"
    if resolved:
        return "resolved" if reason.strip().lower() in resolved else "unresolved"
    words = set(_WORD.findall(reason.lower()))
    if words & UNRESOLVED:
        return "unresolved"
    return "resolved" if words & RESOLVED else "unknown"


class Spared(NamedTuple):
    """What a policy spares, or what a run took.

    Attributes:
        calls: Calls that were made, and that the policy refuses or that come after its abort.
        milliseconds: They took, by `duration_ms` where events carry it, else by the append times of start and outcome.
        tokens: Of input and output, where events carry them.
        cost_usd: The same.
    """

    calls: int = 0
    milliseconds: float = 0.0
    tokens: int = 0
    cost_usd: float = 0.0

    def plus(self, other: Spared) -> Spared:
        """Return the sums."""
        calls, milliseconds, tokens, cost_usd = other
        return Spared(
            self.calls + calls, self.milliseconds + milliseconds, self.tokens + tokens, self.cost_usd + cost_usd
        )

    def minus(self, other: Spared) -> Spared:
        """Return the differences."""
        return self.plus(Spared(-other.calls, -other.milliseconds, -other.tokens, -other.cost_usd))


class Course(NamedTuple):
    """What a policy does to one run.

    Attributes:
        warned_at: The number of the call, from 1, at which it warns first; None: it does not.
        blocked_at: The same for its first block, whether or not a call then met it.
        aborted_at: The same for its abort.
        spared: Calls it refuses, or that come after its abort.
    """

    warned_at: int | None = None
    blocked_at: int | None = None
    aborted_at: int | None = None
    spared: Spared = Spared()

    @property
    def stops(self) -> bool:
        """Whether it gets in the run's way: it refuses a call that was made, or ends the run."""
        return self.aborted_at is not None or self.spared.calls > 0


class CourseOfRun:
    """A run's course under one policy, while its events come."""

    __slots__ = ("_aborted", "_finished", "_refused", "_started", "course")

    def __init__(self) -> None:
        self.course = Course()
        self._started = self._finished = 0
        self._aborted = False
        self._refused: dict[str, Spared] = {}
        """Calls refused whose outcome is still to come, and what was counted as spared when they began."""

    @property
    def calls(self) -> int:
        """Calls made so far: a log may hold only the `finished` of its calls."""
        return max(self._started, self._finished)

    def see(self, folded: Folded, took: float) -> None:
        """Take the next event as the policy judges it. `took`: milliseconds, where the event is an outcome."""
        event = folded.event
        after_abort = self._aborted
        if isinstance(event, ToolCallStarted):
            self._started += 1
        elif isinstance(event, ToolCallFinished):
            self._finished += 1
        elif isinstance(event, RunStarted):
            self._aborted = False
        elif isinstance(event, ToolCallBlocked):
            self._see_refusal(event)
        if isinstance(event, (ToolCallStarted, ToolCallFinished)):
            self._see_call(event, folded, after_abort, took)
        for verdict in folded.verdicts:
            self._see_verdict(verdict)

    def _see_call(
        self, event: ToolCallStarted | ToolCallFinished, folded: Folded, after_abort: bool, took: float
    ) -> None:
        blocked = any(decision.action == "block" for decision in folded.decisions)
        refused = event.call_id is not None and event.call_id in self._refused
        if isinstance(event, ToolCallStarted):
            if not (blocked or after_abort):
                return
            spared = self._spare(event, 1, 0.0)
            if event.call_id is not None:
                self._refused[event.call_id] = spared
        elif refused:
            self._refused.pop(event.call_id or "")
            self._spare(event, 0, took)
        elif blocked or after_abort:
            # Its `started` was never seen, or came before the abort: then the call had been made.
            self._spare(event, 1 if blocked or self._finished > self._started else 0, took)

    def _see_refusal(self, event: ToolCallBlocked) -> None:
        # The runner announced the call, then refused it: it was never made, so there is nothing to spare.
        counted = self._refused.pop(event.call_id or "", None)
        if counted is not None:
            self.course = self.course._replace(spared=self.course.spared.minus(counted))

    def _spare(self, event: EventOfRun, calls: int, took: float) -> Spared:
        usage = event.usage
        tokens = 0 if usage is None else (usage.input_tokens or 0) + (usage.output_tokens or 0)
        cost = 0.0 if usage is None else usage.cost_usd or 0.0
        spared = Spared(calls, took, tokens, cost)
        self.course = self.course._replace(spared=self.course.spared.plus(spared))
        return spared

    def _see_verdict(self, verdict: Verdict) -> None:
        course, at = self.course, max(1, self.calls)
        if verdict.action == "clear":
            if verdict.scope == "run":
                self._aborted = False
        elif verdict.detector is None:
            # A person ended the run, under whatever policy.
            return
        elif verdict.action == "warn" and course.warned_at is None:
            self.course = course._replace(warned_at=at)
        elif verdict.action == "block" and course.blocked_at is None:
            self.course = course._replace(blocked_at=at)
        elif verdict.action == "abort":
            self._aborted = True
            if course.aborted_at is None:
                self.course = course._replace(aborted_at=at)
