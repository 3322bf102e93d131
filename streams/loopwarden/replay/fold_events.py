"""A log of many runs through the judge: one state per run, and the policies applied along the way.

The worker does the same with Kafka around it; this is its embedded form, and what its verdicts are compared with.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import UNSET

from loopwarden.judge import RunState, freeze, judge, thaw
from loopwarden_schemas.canonical import NotCanonical
from loopwarden_schemas.policy import DEFAULT_DOCUMENT, PolicyDocument
from loopwarden_schemas.structs import (
    Compaction,
    Decision,
    Event,
    EventOfRun,
    PolicyApplied,
    Rejected,
    RunFinished,
    Verdict,
)

_SWEEP_AFTER_MS: Final = 3600 * 1000
"""A run's state is let go this long after an event would find a fresh run: the worker's rule. (design.md.)"""

_FIRST_SWEEP: Final = 1000

_JUST_ENDED: Final = 1000
"""Runs that ended last keep their state as it is: what comes late mostly comes soon."""


class _Ended(NamedTuple):
    """A run that ended: only what comes late has to be recognised, so its state is kept in its compact form."""

    expires_at: int
    record: bytes


class Folded(NamedTuple):
    """What became of one event."""

    event: Event
    decisions: list[Decision]
    """The answers that are not "allow", before the de-duplication of warnings."""
    verdicts: list[Verdict]
    rejected: Rejected | None = None
    """Why the judge could not take the event; nothing has changed then."""
    armed: int = 0
    """Attempts that the post-compaction guard will watch, where this event armed it."""
    detectors_on: bool = False
    """Whether the rolling-history detectors run for the event's run."""
    guard_on: bool = False
    """Whether the post-compaction guard does."""


class Folder:
    """Folds events in the order of their log.

    Memory is bounded by the runs that are alive at once. That needs a log in about the order of its append times, as a
    topic has it: where a run's first event is not newer than states already let go (by more than an hour),
    `ambiguous` counts it, since it might be the continuation of such a run.
    """

    def __init__(
        self,
        policy: PolicyDocument = DEFAULT_DOCUMENT,
        agent_id: str | None = None,
        archive: Mapping[int, PolicyDocument] | None = None,
        number: int = -1,
    ) -> None:
        """Begin a log.

        Args:
            policy: The fleet's policy until a `policy.applied` in the log.
            agent_id: For events without one.
            archive: The documents by their numbers, for a partition of the topic: what it holds is trusted, and nothing
                else. None: a file, in which the documents are inline.
            number: That of `policy`.
        """
        self.policy = policy
        self.number = number
        self.ambiguous = 0
        self._agent_id = agent_id
        self._archive = archive
        self._states: dict[str, RunState | _Ended] = {}
        self._just_ended: deque[str] = deque()
        self._newest = 0
        self._swept_up_to = -1
        self._sweep_at = _FIRST_SWEEP

    @property
    def runs_held(self) -> int:
        """How many runs' states are held."""
        return len(self._states)

    def fold(self, event: Event) -> Folded:
        """Fold the next event."""
        if isinstance(event, PolicyApplied):
            return self._apply(event)
        if event.agent_id is None and self._agent_id is not None:
            event.agent_id = self._agent_id
        return self._judge(event)

    def _apply(self, event: PolicyApplied) -> Folded:
        if self._archive is not None:
            return self._apply_archived(event, self._archive)
        if event.number < self.number:
            detail = f"number: must not be below {self.number}, the policy in force, got {event.number}"
            return Folded(event, [], [], Rejected(0, "unknown_policy", detail))
        if event.policy is UNSET and event.number != self.number:
            detail = f"policy: the document of policy {event.number} must be inline in a file; the one in force stays"
            return Folded(event, [], [], Rejected(0, "unknown_policy", detail))
        if event.policy is not UNSET:
            if not isinstance(event.policy, Mapping):
                detail = f"policy: must be an object, got {event.policy!r:.60}; the one in force stays"
                return Folded(event, [], [], Rejected(0, "unknown_policy", detail))
            self.policy = PolicyDocument.from_value(event.policy)
            self.number = event.number
        return Folded(event, [], [])

    def _apply_archived(self, event: PolicyApplied, archive: Mapping[int, PolicyDocument]) -> Folded:
        document = archive.get(event.number)
        detail = None
        if document is None:
            detail = f"number: the archive of policies holds no {event.number}"
        elif document.digest != event.digest:
            detail = f"digest: must be that of document {event.number}, {document.digest}, got {event.digest!r:.80}"
        elif event.number < self.number:
            detail = f"number: must not be below {self.number}, the policy in force, got {event.number}"
        else:
            self.policy, self.number = document, event.number
        return Folded(event, [], [], None if detail is None else Rejected(0, "unknown_policy", detail))

    def _judge(self, event: EventOfRun) -> Folded:
        kept = self._states.get(event.run_id)
        state = thaw(kept.record) if type(kept) is _Ended else kept
        try:
            state, decisions, verdicts = judge(state, event, self.policy)  # type: ignore[arg-type]
        except NotCanonical as error:
            return Folded(event, [], [], Rejected(0, "invalid_payload", str(error)))
        if kept is None and event.append_time <= self._swept_up_to:
            self.ambiguous += 1
        if state is not kept:
            self._states[event.run_id] = state
        if state.ended_at is not None and (state is not kept or type(event) is RunFinished or verdicts):
            self._ended(event.run_id)
        if event.append_time > self._newest:
            self._newest = event.append_time
        if len(self._states) >= self._sweep_at:
            self._sweep()
        armed = state.guard.remaining if type(event) is Compaction and state.ended_at is None else 0
        return Folded(event, decisions, verdicts, None, armed, state.policy.detectors_on, state.policy.guard_on)

    def _ended(self, run_id: str) -> None:
        """Keep the state of a run that ended long ago in its compact form."""
        self._just_ended.append(run_id)
        if len(self._just_ended) > _JUST_ENDED:
            oldest = self._just_ended.popleft()
            state = self._states.get(oldest)
            # It may have begun again, or be let go already.
            if isinstance(state, RunState) and state.ended_at is not None:
                self._states[oldest] = _Ended(state.expires_at, freeze(state))

    def _sweep(self) -> None:
        """Let go the states of runs that are over. An event would find a fresh run, with or without them."""
        for run_id, kept in list(self._states.items()):
            if kept.expires_at + _SWEEP_AFTER_MS < self._newest:
                self._swept_up_to = max(self._swept_up_to, kept.expires_at)
                del self._states[run_id]
        # At twice what is left, a sweep costs each event no more than a constant.
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._states))


def fold_events(
    events: Iterable[Event], policy: PolicyDocument = DEFAULT_DOCUMENT, agent_id: str | None = None
) -> Iterator[Folded]:
    """Fold a log lazily: one `Folded` for each event, in order. See `Folder`."""
    folder = Folder(policy, agent_id)
    for event in events:
        yield folder.fold(event)
