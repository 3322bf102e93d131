"""What is kept of a run that is watched: counters and its newest calls. The rest is read from the log on demand."""

from __future__ import annotations

from collections import deque
from typing import Final, Literal, TypeAlias

from msgspec import UNSET

from loopwarden.judge.outcome import hash_call
from loopwarden.judge.run_state import IDLE_MS
from loopwarden_schemas.structs import (
    TOOL_CALL_EVENTS,
    EventOfRun,
    RunFinished,
    RunStarted,
    ToolCallBlocked,
    ToolCallEvent,
    ToolCallFinished,
    Verdict,
)

NEWEST_CALLS: Final = 16
"""Kept of each run. An outcome that comes later than so many calls of its run counts as a call of its own."""

Status: TypeAlias = Literal["live", "finished", "aborted", "idle"]
Severity: TypeAlias = Literal["abort", "block", "warn", "quiet"]

GRAVITY: Final[dict[Severity, int]] = {"abort": 3, "block": 2, "warn": 1, "quiet": 0}

Look: TypeAlias = Literal["pending", "new", "same", "error", "error same", "void", "blocked"]
"""Of a call in a picture, as the report's style sheet has it."""


class NewestCall:
    """One of a run's newest calls."""

    __slots__ = ("call_id", "look", "outcome", "signature", "tool")

    def __init__(self, call_id: str | None, tool: str, signature: int) -> None:
        self.call_id = call_id
        self.tool = tool
        self.signature = signature
        self.outcome: int | None = None
        self.look: Look = "pending"


class WatchedRun:
    """A run since it was first heard of.

    Attributes:
        partition: Where it lies.
        ended: How it ended, if it did; `finished`: it said so itself, aborted or not.
        begun: Append time (ms) of its first event; None: it may have begun before what was read.
        newest_at: Append time of its newest one.
        repeats: Calls that brought the same outcome as the one of their signature before.
        disobeyed: Calls that were made although they were blocked, as the judge's newest verdict has it; but for the
            call that it is about, where the runner then refused that one.
    """

    __slots__ = (
        "_attempt",
        "aborts",
        "agent_id",
        "begun",
        "blocks",
        "calls",
        "disobeyed",
        "ended",
        "ended_at",
        "errors",
        "finished",
        "newest",
        "newest_at",
        "newest_verdict",
        "newest_verdict_at",
        "partition",
        "refused",
        "repeats",
        "run_id",
        "severity",
        "warnings",
    )

    def __init__(self, run_id: str, partition: int) -> None:
        self.run_id = run_id
        self.partition = partition
        self.agent_id: str | None = None
        self.begun: int | None = None
        self.newest_at = 0
        self.ended: Literal["finished", "aborted"] | None = None
        self.ended_at = 0
        self.finished = False
        self.calls = self.repeats = self.errors = self.refused = self.disobeyed = 0
        self.warnings = self.blocks = self.aborts = 0
        self.severity: Severity = "quiet"
        self.newest: deque[NewestCall] = deque(maxlen=NEWEST_CALLS)
        self.newest_verdict: str | None = None
        self.newest_verdict_at: int | None = None
        self._attempt: str | None = None
        """The call that the newest verdict counts as disobeyed: it may still turn out refused."""

    def status(self, now: int) -> Status:
        """Return how it stands at a time (ms)."""
        if self.ended is not None:
            return self.ended
        return "live" if now - self.newest_at <= IDLE_MS else "idle"

    def see_event(self, event: EventOfRun) -> None:
        """Take the next event.

        Raises:
            NotCanonical: what it carries has no canonical JSON; then nothing has changed but the time.
        """
        if type(event) is RunStarted and not self.newest_at:
            self.begun = event.append_time
        self.newest_at = max(self.newest_at, event.append_time)
        self.agent_id = event.agent_id or self.agent_id
        if isinstance(event, TOOL_CALL_EVENTS):
            self._see_call(event)
        elif type(event) is RunFinished:
            self.finished = True
            self._end("finished", event.append_time)
        elif type(event) is RunStarted and event.append_time > self.ended_at:
            self.ended = None
            self.finished = False

    def see_verdict(self, verdict: Verdict, at: int) -> None:
        """Take a verdict that was published `at` (ms)."""
        self.agent_id = verdict.agent_id or self.agent_id
        self.begun = verdict.begun
        self.newest_at = max(self.newest_at, at)
        self.disobeyed = verdict.disobeyed
        self._attempt = verdict.call_id if verdict.action == "block" and verdict.phase == "attempt" else None
        # Events and verdicts are read side by side: the refusal may have been seen already.
        if any(call.look == "blocked" and call.call_id == self._attempt for call in self.newest):
            self._see_refusal(self._attempt)
        if verdict.action == "clear":
            if verdict.scope == "run":
                self.ended = None
            return
        self.newest_verdict, self.newest_verdict_at = verdict.reason, at
        if verdict.action == "warn":
            self.warnings += 1
        elif verdict.action == "abort":
            self.aborts += 1
            self._end("aborted", at)
        elif verdict.phase == "order":
            self.blocks += 1
        if GRAVITY[verdict.action] > GRAVITY[self.severity]:
            self.severity = verdict.action

    def _end(self, how: Literal["finished", "aborted"], at: int) -> None:
        # Events and verdicts are read side by side: which of them is seen first says nothing.
        if self.ended != "aborted":
            self.ended = how
        self.ended_at = max(self.ended_at, at)

    def _see_call(self, event: ToolCallEvent) -> None:
        hashed = hash_call(event)
        call = self._pending(event.call_id) if isinstance(event, (ToolCallFinished, ToolCallBlocked)) else None
        if call is None:
            call = NewestCall(event.call_id, hashed.tool, hash((hashed.tool, hashed.args_hash)))
            self.newest.append(call)
            self.calls += 1
        if isinstance(event, ToolCallBlocked):
            call.look = "blocked"
            self.refused += 1
            self._see_refusal(event.call_id)
        elif isinstance(event, ToolCallFinished):
            self._see_outcome(call, event, None if hashed.result is None else hash(hashed.result))

    def _see_refusal(self, call_id: str | None) -> None:
        if call_id is not None and call_id == self._attempt:
            self._attempt = None
            self.disobeyed -= 1

    def _pending(self, call_id: str | None) -> NewestCall | None:
        for call in reversed(self.newest):
            if call.look == "pending" and call.call_id == call_id:
                return call
        return None

    def _see_outcome(self, call: NewestCall, event: ToolCallFinished, outcome: int | None) -> None:
        if outcome is None:
            call.look = "void"
            return
        before = next(
            (
                each.outcome
                for each in reversed(self.newest)
                if each.outcome is not None and each.signature == call.signature
            ),
            None,
        )
        call.outcome = outcome
        failed = event.error is not UNSET or event.unknown_tool is not None
        self.errors += failed
        self.repeats += outcome == before
        if outcome == before:
            call.look = "error same" if failed else "same"
        else:
            call.look = "error" if failed else "new"
