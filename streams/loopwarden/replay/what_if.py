"""A history under several policies at once: the course of each run under each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from loopwarden.replay.beginnings import Why
from loopwarden.replay.course import Course, CourseOfRun, Outcome, Spared, outcome_of
from loopwarden.replay.exported import RunExported
from loopwarden.replay.fold_events import Folder
from loopwarden.replay.log_part import LogPart
from loopwarden.replay.records import Records
from loopwarden_schemas.policy import PolicyDocument
from loopwarden_schemas.structs import (
    Event,
    EventOfRun,
    PolicyApplied,
    RunFinished,
    ToolCallBlocked,
    ToolCallFinished,
    ToolCallStarted,
)

_PENDING: Final = 1024
"""Calls of a run whose start is remembered, to tell how long they took."""


class RunUnder(NamedTuple):
    """A run, and what each policy does to it.

    Attributes:
        run_id: The run.
        agent_id: The first agent that its events name.
        outcome: By the reason of its newest `run.finished`.
        calls: Made.
        refused: Calls that the runner refused in the history: what they would have returned nobody knows.
        courses: One for each policy.
    """

    run_id: str
    agent_id: str | None
    outcome: Outcome
    calls: int
    refused: int
    courses: tuple[Course, ...]


class _Facts:
    """What of a run does not depend on the policy."""

    __slots__ = ("active", "agent_id", "outcome", "refused", "started")

    def __init__(self) -> None:
        self.agent_id: str | None = None
        self.outcome: Outcome = "unknown"
        self.refused = 0
        self.active = False
        self.started: dict[str, int] = {}


class WhatIf:
    """Judges a part of a log under several policies. It takes all records, or events, in their order.

    Args:
        part: What is judged.
        policies: Each for every run; None: those in force by the log.
        resolved: See `outcome_of`.
    """

    def __init__(
        self, part: LogPart, policies: Sequence[PolicyDocument | None], resolved: frozenset[str] = frozenset()
    ) -> None:
        self.records = Records(part)
        self._part = part
        self._resolved = resolved
        self._beginnings = part.beginnings()
        self._by_log = [policy is None for policy in policies]
        self._folders = [part.folder() if policy is None else Folder(policy) for policy in policies]
        if not any(self._by_log):
            self._beginnings.policy_known = True
        self._facts: dict[str, _Facts] = {}
        self._courses: list[dict[str, CourseOfRun]] = [{} for _ in policies]

    def take(
        self, offset: int, append_time: int, key: bytes | None, value: bytes | None, content_type: str | None
    ) -> None:
        """Take the next record of the partition."""
        self._beginnings.start(append_time)
        for event in self.records.take(key, value, append_time, content_type):
            self._fold(event, offset, key)

    def take_event(self, event: Event, offset: int) -> None:
        """Take the next event of a file. `offset`: its line."""
        if isinstance(event, PolicyApplied) or self._part.wants(event.run_id.encode("utf-8", "surrogatepass")):
            self.records.events += 1
            if not isinstance(event, PolicyApplied):
                self._beginnings.came(event.run_id)
            self._fold(event, offset, b"")

    def take_exported(self, exported: RunExported) -> None:
        """Take what a file says of a run whose events follow."""
        if not self._part.wants(exported.run_id.encode("utf-8", "surrogatepass")):
            return
        self._beginnings.expect(exported.run_id, exported.events)
        if exported.why is not None:
            self._beginnings.not_whole[exported.run_id] = exported.why

    def runs(self, agent: str | None = None) -> list[RunUnder]:
        """Return what came of the runs that are seen whole. `agent`: only of this agent's."""
        return [
            RunUnder(
                run_id,
                facts.agent_id,
                facts.outcome,
                self._courses[0][run_id].calls,
                facts.refused,
                tuple(courses[run_id].course for courses in self._courses),
            )
            for run_id, facts in self._facts.items()
            if run_id not in self._beginnings.not_whole and facts.active and agent in (None, facts.agent_id)
        ]

    def not_whole(self) -> dict[Why, list[str]]:
        """Return the runs that are not, by the reason."""
        found: dict[Why, list[str]] = {}
        for run_id, why in self._beginnings.not_whole.items():
            # Of one that was exported there may not be a single event.
            if run_id not in self._facts or self._facts[run_id].active:
                found.setdefault(why, []).append(run_id)
        return found

    def _fold(self, event: Event, offset: int, key: bytes | None) -> None:
        if isinstance(event, PolicyApplied):
            self._apply(event)
            return
        took = 0.0
        for number, folder in enumerate(self._folders):
            folded = folder.fold(event)
            if folded.rejected is not None:
                self.records.reject(folded.rejected.reason, key)
                return
            if number == 0:
                took = self._see(event, offset)
            courses = self._courses[number]
            course = courses.get(event.run_id)
            if course is None:
                course = courses[event.run_id] = CourseOfRun()
            course.see(folded, took)

    def _apply(self, event: PolicyApplied) -> None:
        for folder, by_log in zip(self._folders, self._by_log, strict=True):
            if by_log:
                rejected = folder.fold(event).rejected
                if rejected is not None:
                    self.records.reject(rejected.reason)
                known_from = self._part.known_from
                self._beginnings.policy_known = known_from is None or folder.number >= known_from

    def _see(self, event: EventOfRun, offset: int) -> float:
        """Note what the event says of its run; return the milliseconds that it took, where it is an outcome."""
        self._beginnings.see(event)
        facts = self._facts.get(event.run_id)
        if facts is None:
            facts = self._facts[event.run_id] = _Facts()
        facts.active = facts.active or offset >= self._part.since
        if facts.agent_id is None:
            facts.agent_id = event.agent_id
        if isinstance(event, RunFinished):
            facts.outcome = outcome_of(event.reason, self._resolved)
        elif isinstance(event, ToolCallBlocked):
            facts.refused += 1
        elif isinstance(event, ToolCallStarted):
            if event.call_id is not None and len(facts.started) < _PENDING:
                facts.started[event.call_id] = event.append_time
        elif isinstance(event, ToolCallFinished):
            started = facts.started.pop(event.call_id or "", event.append_time)
            return max(0, event.append_time - started) if event.duration_ms is None else event.duration_ms
        return 0.0


def spared_more(run: RunUnder) -> Spared:
    """Return what the second policy spares of a run more than the first."""
    return run.courses[1].spared.minus(run.courses[0].spared)
